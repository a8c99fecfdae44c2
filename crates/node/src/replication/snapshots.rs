//! The snapshot for replicas that is being written, if any.

use super::transfer::SnapshotTransfer;
use crate::persistence::state::Underway;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The state of snapshots for replicas. Only one is written at a time.
#[derive(Default)]
pub struct ReplicaSnapshots {
    present: Mutex<Option<Arc<SnapshotTransfer>>>,
    /// True while `present` has a value, for threads that check it often.
    is_writing: AtomicBool,
    /// True if the last snapshot that was sent while it was being written took too much memory.
    needs_file: AtomicBool,
}

impl ReplicaSnapshots {
    /// True while a snapshot for replicas is being written.
    #[inline]
    pub fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// The progress of the snapshot that is being written, if any.
    pub fn underway(&self) -> Option<Underway> {
        if !self.is_writing() {
            return None;
        }
        self.present.lock().even_poisoned().as_ref().map(|transfer| transfer.underway())
    }

    /// Aborts the snapshot that is being written and disconnects its replicas.
    pub fn give_up(&self, reason: &str) {
        if let Some(snapshot) =
            self.present.lock().even_poisoned().as_ref().and_then(|now| now.snapshot())
        {
            snapshot.give_up(reason);
        }
    }

    pub(super) fn begin(&self, transfer: &Arc<SnapshotTransfer>) {
        let mut present = self.present.lock().even_poisoned();
        *present = Some(Arc::clone(transfer));
        self.is_writing.store(true, Ordering::SeqCst);
    }

    /// Notes the end of a snapshot. Another snapshot may have begun since the keyspace ended this one.
    pub(super) fn end(&self, transfer: &SnapshotTransfer) {
        let mut present = self.present.lock().even_poisoned();
        if present.take_if(|present| std::ptr::eq(&raw const **present, transfer)).is_some() {
            self.is_writing.store(false, Ordering::SeqCst);
        }
    }

    /// Notes that a snapshot that was sent while it was being written took too much memory. The next snapshot is
    /// written to a file first.
    pub(super) fn require_file(&self) {
        self.needs_file.store(true, Ordering::Relaxed);
    }

    /// Returns true once after [`ReplicaSnapshots::require_file`].
    pub(super) fn take_needs_file(&self) -> bool {
        self.needs_file.swap(false, Ordering::Relaxed)
    }
}
