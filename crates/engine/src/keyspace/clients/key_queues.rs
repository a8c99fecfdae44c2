//! Who is interested in which key: queues by key, kept beside the tables.
//!
//! ```text
//! slot (a mark) ──> shard ──> key "jobs" ──> queue: who came first, who came next, …
//!                             key "mail" ──> queue: …
//! ```
//!
//! A mark of the slot says that somebody is interested in one of its keys, present or not, so that
//! all other slots pay one test. Queues are changed only under their slot's lock; the shards' own
//! locks are held for single steps, after the slot's.

use crate::keyspace::{DbIndex, SlotId};
use brisk_structures::poison::EvenPoisoned;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

const SHARDS: usize = 64;

type Queues<Q> = HashMap<Box<[u8]>, Q>;
type Shard<Q> = HashMap<(DbIndex, SlotId), Queues<Q>>;

/// All queues of one kind of interest; a queue is there while it is not empty,
/// a slot while it has one.
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

    /// Lets `join` put somebody into a key's queue. O(1).
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

    /// Lets `leave` take somebody out of a key's queue and say whether it is empty then; true if
    /// nobody is interested in any key of the slot any more. O(1).
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

    /// Lets `look` see a key's queue, if it has one.
    pub(in crate::keyspace) fn with<R>(
        &self,
        db: DbIndex,
        slot: SlotId,
        key: &[u8],
        look: impl FnOnce(&mut Q) -> R,
    ) -> Option<R> {
        self.shard(slot).get_mut(&(db, slot))?.get_mut(key).map(look)
    }

    /// Lets `look` see every key of a slot that has a queue.
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

    /// Whether somebody is interested in a key of the slot.
    pub(in crate::keyspace) fn has(&self, db: DbIndex, slot: SlotId) -> bool {
        self.shard(slot).contains_key(&(db, slot))
    }

    /// How many keys have queues. O(slots with queues).
    pub(in crate::keyspace) fn key_count(&self) -> usize {
        let count = |shard: &Mutex<Shard<Q>>| -> usize {
            let shard = shard.lock().even_poisoned();
            shard.values().map(HashMap::len).sum()
        };
        self.shards.iter().map(count).sum()
    }
}
