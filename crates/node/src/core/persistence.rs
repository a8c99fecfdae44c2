//! The dataset on disk: snapshots, the append-only file, and changes to be written to it.

use super::changes::ChangeDispatcher;
use crate::persistence::aof::state::Aof;
use crate::persistence::state::SnapshotState;
use crate::replication::Replication;
use brisk_engine::effect::HookCell;
use brisk_engine::keyspace::Journal;

/// The state of the dataset on disk.
pub struct Persistence {
    pub snapshots: SnapshotState,
    /// The append-only file.
    pub aof: Aof,
    changes: ChangeDispatcher,
}

impl Persistence {
    pub(super) fn new(workers: usize, started_s: u64) -> Persistence {
        Persistence {
            snapshots: SnapshotState::new(started_s),
            aof: Aof::new(workers),
            changes: ChangeDispatcher::default(),
        }
    }

    /// Lets a worker see whether changes have a reader.
    pub(super) fn share_hooks(&self, hooks: &mut HookCell) {
        self.changes.share_hooks(hooks);
    }

    /// Passes new changes to the append-only file and the replicas. `wake` is called for each worker that has data to
    /// send to its replicas.
    pub(super) fn dispatch(
        &self,
        journal: &Journal,
        replication: &Replication,
        wake: impl FnMut(usize),
    ) {
        self.changes.dispatch(journal, &self.aof, replication, wake);
    }

    /// Reports whether the last snapshot was saved and the append-only file can be written.
    pub(super) fn is_well(&self) -> bool {
        self.snapshots.is_ok() && self.aof.failure().is_none()
    }

    /// Bytes of memory that wait to be written.
    pub(super) fn passing_bytes(&self) -> u64 {
        let snapshot = self.snapshots.underway().map_or(0, |now| now.bytes);
        snapshot.saturating_add(self.aof.buffered())
    }
}
