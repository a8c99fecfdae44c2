//! Passes the changes in the journal to their readers: the append-only file and the replication stream.
//!
//! The journal is ordered and has no gaps, so each dispatch takes the changes that all workers have appended. A worker
//! dispatches at the end of its round. Workers append changes only while [`brisk_engine::effect::Hooks::PROPAGATE`] is
//! set. This flag is set when the first reader is added, while all workers are quiesced. It is cleared some time after
//! the last reader has been removed.
//!
//! Only workers dispatch, so no dispatch is in progress while all workers are quiesced.

use crate::persistence::aof::state::Aof;
use crate::replication::Replication;
use brisk_engine::effect::HookCell;
use brisk_engine::keyspace::{AofEdit, Journal};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

/// Buffers that are larger than this are freed after a dispatch.
const BUFFER_KEPT_MAX: usize = 64 * 1024;

/// Takes changes from the journal, one thread at a time, so that all readers get them in the same order.
#[derive(Default)]
pub struct ChangeDispatcher {
    /// The part of [`brisk_engine::Env::hooks`] that is the same for all workers. It indicates whether changes have a
    /// reader.
    hooks: Arc<AtomicU32>,
    buffers: Mutex<DispatchBuffers>,
}

/// Buffers for the next part of the stream and its edits. Both are empty between dispatches.
#[derive(Default)]
struct DispatchBuffers {
    bytes: Vec<u8>,
    edits: Vec<AofEdit>,
}

impl ChangeDispatcher {
    /// Lets a worker see whether changes have a reader.
    pub fn share_hooks(&self, hooks: &mut HookCell) {
        hooks.share(&self.hooks);
    }

    /// Passes new changes to the readers. `wake` is called for each worker that has data to send to its replicas.
    pub fn dispatch(
        &self,
        journal: &Journal,
        aof: &Aof,
        replication: &Replication,
        wake: impl FnMut(usize),
    ) {
        let mut buffers = self.buffers.lock().even_poisoned();
        if !replication.stream.has_backlog() {
            aof.take_from(journal);
            return;
        }
        let DispatchBuffers { bytes, edits } = &mut *buffers;
        let from = journal.take(bytes, edits);
        if bytes.is_empty() {
            return;
        }
        aof.push(bytes, edits);
        edits.clear();
        replication.append(from, bytes, unix_ms(), wake);
        bytes.clear();
        bytes.shrink_to(BUFFER_KEPT_MAX);
    }
}
