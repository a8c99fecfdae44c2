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

use super::{DbIndex, SlotId};
use brisk_structures::list::List;
use brisk_structures::slab::Id;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;

type Queues<T> = HashMap<Box<[u8]>, List<T>>;
type Shard<T> = HashMap<(DbIndex, SlotId), Queues<T>>;

/// All queues of one kind of interest.
#[derive(Debug)]
pub(super) struct Interests<T> {
    shards: Box<[Mutex<Shard<T>>]>,
}

impl<T> Interests<T> {
    pub(super) fn new() -> Interests<T> {
        Interests { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn shard(&self, slot: SlotId) -> MutexGuard<'_, Shard<T>> {
        self.shards[slot.index() % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `who` at the end of a key's queue. O(1).
    pub(super) fn join(&self, db: DbIndex, slot: SlotId, key: &[u8], who: T) -> Id {
        let mut shard = self.shard(slot);
        let queues = shard.entry((db, slot)).or_default();
        queues.entry(key.into()).or_default().push_back(who)
    }

    /// Takes one out of a key's queue; true if nobody is interested in any key of the slot any
    /// more. O(1).
    pub(super) fn leave(&self, db: DbIndex, slot: SlotId, key: &[u8], place: Id) -> bool {
        let mut shard = self.shard(slot);
        let Some(queues) = shard.get_mut(&(db, slot)) else { return true };
        if let Some(queue) = queues.get_mut(key) {
            queue.remove(place);
            if queue.is_empty() {
                queues.remove(key);
            }
        }
        let last = queues.is_empty();
        if last {
            shard.remove(&(db, slot));
        }
        last
    }

    /// Lets `look` see a key's queue, if it has one.
    pub(super) fn with<R>(
        &self,
        db: DbIndex,
        slot: SlotId,
        key: &[u8],
        look: impl FnOnce(&mut List<T>) -> R,
    ) -> Option<R> {
        self.shard(slot).get_mut(&(db, slot))?.get_mut(key).map(look)
    }

    /// Lets `look` see every key of a slot that has a queue.
    pub(super) fn each(
        &self,
        db: DbIndex,
        slot: SlotId,
        mut look: impl FnMut(&[u8], &mut List<T>),
    ) {
        let mut shard = self.shard(slot);
        let queues = shard.get_mut(&(db, slot)).into_iter().flatten();
        queues.for_each(|(key, queue)| look(key, queue));
    }

    /// How many keys have queues. O(slots with queues).
    pub(super) fn key_count(&self) -> usize {
        let count = |shard: &Mutex<Shard<T>>| -> usize {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.values().map(HashMap::len).sum()
        };
        self.shards.iter().map(count).sum()
    }
}
