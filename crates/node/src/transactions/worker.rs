//! Spare memory and ended watches, which a worker keeps for the transactions of its sessions.

use super::queue::Transaction;
use brisk_engine::DbIndex;
use brisk_engine::Keyspace;
use brisk_engine::keyspace::{EndedWatches, Watches};

/// The transactions and watches of one worker's sessions.
#[derive(Default)]
pub struct WorkerTransactions {
    /// Memory for the next transaction.
    spare: Option<Box<Transaction>>,
    /// Watches that have ended but are still in the queues of their keys.
    ended_watches: EndedWatches,
}

impl WorkerTransactions {
    /// Returns a transaction without commands, which begins in database `db`.
    pub(super) fn begin(&mut self, db: DbIndex) -> Box<Transaction> {
        let mut transaction = self.spare.take().unwrap_or_default();
        transaction.db = db;
        transaction
    }

    /// Keeps the memory of a transaction that was executed.
    pub(super) fn reuse(&mut self, mut transaction: Box<Transaction>) {
        *transaction = transaction.emptied();
        self.spare = Some(transaction);
    }

    /// Ends watches. O(1). The caller holds no slots.
    pub(super) fn unwatch(&mut self, keyspace: &Keyspace, watches: &mut Watches) {
        keyspace.unwatch(watches, &mut self.ended_watches);
    }

    /// Reports whether ended watches are still in the queues of their keys.
    #[inline]
    pub fn has_ended_watches(&self) -> bool {
        !self.ended_watches.is_empty()
    }

    /// Removes up to `most` ended watches from the queues of their keys. The caller holds no slots.
    #[inline]
    pub fn remove_ended_watches(&mut self, keyspace: &Keyspace, most: usize) {
        if self.has_ended_watches() {
            keyspace.remove_ended_watches(&mut self.ended_watches, most);
        }
    }
}
