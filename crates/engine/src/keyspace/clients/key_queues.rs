//! Interest in keys: queues by key, stored next to the tables.
//!
//! ```text
//! slot (a mark) ──> shard ──> key "jobs" ──> queue: first client, second client, …
//!                             key "mail" ──> queue: …
//! ```
//!
//! A mark of the slot says that a client is interested in one of its keys, whether the key exists or not. In all other
//! slots a change costs one test. Queues are changed only under their slot's lock. A shard's lock is taken after the
//! slot's lock and held only for a single step.

use crate::keyspace::{DbIndex, SlotId};
use brisk_structures::poison::EvenPoisoned;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

const SHARDS: usize = 64;

type Queues<Q> = HashMap<Box<[u8]>, Q>;
type Shard<Q> = HashMap<(DbIndex, SlotId), Queues<Q>>;

/// All queues of one kind of interest. Only non-empty queues, and slots that have any, are stored.
#[derive(Debug)]
pub(in crate::keyspace) struct KeyQueues<Q> {
    shards: Box<[Mutex<Shard<Q>>]>,
}

impl<Q: Default> KeyQueues<Q> {
    pub(in crate::keyspace) fn new() -> KeyQueues<Q> {
        KeyQueues { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn shard(&self, slot: SlotId) -> MutexGuard<'_, Shard<Q>> {
        self.shards[slot.index() % SHARDS].lock().even_poisoned()
    }

    /// Calls `join` with a key's queue, to add a client. O(1).
    pub(in crate::keyspace) fn join<R>(
        &self,
        db: DbIndex,
        slot: SlotId,
        key: &[u8],
        join: impl FnOnce(&mut Q) -> R,
    ) -> R {
        let mut shard = self.shard(slot);
        let queues = shard.entry((db, slot)).or_default();
        join(queues.entry(key.into()).or_default())
    }

    /// Calls `leave` with a key's queue, to remove a client. `leave` reports whether the queue is
    /// then empty. Returns true if no queue of the slot is left. O(1).
    pub(in crate::keyspace) fn leave(
        &self,
        db: DbIndex,
        slot: SlotId,
        key: &[u8],
        leave: impl FnOnce(&mut Q) -> bool,
    ) -> bool {
        let mut shard = self.shard(slot);
        let Some(queues) = shard.get_mut(&(db, slot)) else { return true };
        if !queues.get_mut(key).is_some_and(leave) {
            return false;
        }
        let last = queues.len() == 1;
        if last {
            shard.remove(&(db, slot));
        } else {
            queues.remove(key);
        }
        last
    }

    /// Calls `look` with a key's queue, if the key has one.
    pub(in crate::keyspace) fn with<R>(
        &self,
        db: DbIndex,
        slot: SlotId,
        key: &[u8],
        look: impl FnOnce(&mut Q) -> R,
    ) -> Option<R> {
        self.shard(slot).get_mut(&(db, slot))?.get_mut(key).map(look)
    }

    /// Calls `look` with every key of a slot that has a queue.
    pub(in crate::keyspace) fn each(
        &self,
        db: DbIndex,
        slot: SlotId,
        mut look: impl FnMut(&[u8], &mut Q),
    ) {
        let mut shard = self.shard(slot);
        let queues = shard.get_mut(&(db, slot)).into_iter().flatten();
        queues.for_each(|(key, queue)| look(key, queue));
    }

    /// Reports whether a client is interested in a key of the slot.
    pub(in crate::keyspace) fn has(&self, db: DbIndex, slot: SlotId) -> bool {
        self.shard(slot).contains_key(&(db, slot))
    }

    /// Number of keys with queues. O(slots with queues).
    pub(in crate::keyspace) fn key_count(&self) -> usize {
        let count = |shard: &Mutex<Shard<Q>>| -> usize {
            let shard = shard.lock().even_poisoned();
            shard.values().map(HashMap::len).sum()
        };
        self.shards.iter().map(count).sum()
    }
}
