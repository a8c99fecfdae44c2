//! Change counters of slots, for computations on a thread that does not hold the slots.
//!
//! A reader marks the slot of a key with [`OBSERVED`] and remembers the slot's counter, both while
//! the slot is locked. While the counter has the same value, no key of the slot has changed. Only
//! changes in marked slots cost anything. The marks are removed when the last observer is gone.

use crate::keyspace::keys::lock_blocking;
use crate::keyspace::marks::OBSERVED;
use crate::keyspace::{DbSlot, Keys, Keyspace, SLOTS, SlotGuard, SlotId};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// All counters, and the number of observers that rely on them.
pub(in crate::keyspace) struct Observed {
    /// Number of changes to each slot while it was observed. Modified under the slot's lock.
    counts: Box<[OnceLock<Box<[AtomicU32]>>]>,
    observers: Arc<AtomicUsize>,
}

/// While this value lives, slots are observed.
#[derive(Debug)]
pub(crate) struct Observer(Arc<AtomicUsize>);

impl Drop for Observer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Observed {
    pub(in crate::keyspace) fn new(databases: u32) -> Observed {
        let counts = (0..databases).map(|_| OnceLock::new()).collect();
        Observed { counts, observers: Arc::default() }
    }

    fn count(&self, (db, slot): DbSlot) -> &AtomicU32 {
        let counts = self.counts[db.index()]
            .get_or_init(|| std::iter::repeat_with(AtomicU32::default).take(SLOTS).collect());
        &counts[slot.index()]
    }

    /// Counts a change to a slot that is held and marked.
    pub(in crate::keyspace) fn raise(&self, place: DbSlot) {
        // The slot's lock orders this.
        self.count(place).fetch_add(1, Ordering::Relaxed);
    }
}

impl Keyspace {
    /// Registers an observer.
    pub(crate) fn observer(&self) -> Observer {
        self.observed.observers.fetch_add(1, Ordering::Relaxed);
        Observer(Arc::clone(&self.observed.observers))
    }

    /// Calls `look` with a locked slot and its change counter. From now on the slot's changes are
    /// counted. The calling thread must hold no slot.
    pub(crate) fn observe<R>(
        &self,
        _observer: &Observer,
        place: DbSlot,
        look: impl FnOnce(&SlotGuard<'_>, u32) -> R,
    ) -> R {
        let mut guard = lock_blocking(self.database(place.0), place.1);
        let marks = guard.marks() | OBSERVED;
        guard.set_marks(marks);
        look(&guard, self.observed.count(place).load(Ordering::Relaxed))
    }

    /// Called when the contents of a held slot are about to be replaced.
    pub(in crate::keyspace) fn note_other_contents(&self, place: DbSlot, guard: &SlotGuard<'_>) {
        if guard.marks() & OBSERVED != 0 {
            self.observed.raise(place);
        }
    }
}

impl Keys<'_> {
    /// The change counter of a held slot in the selected database.
    pub(crate) fn changes(&self, slot: SlotId) -> u32 {
        self.keyspace().observed.count((self.db(), slot)).load(Ordering::Relaxed)
    }

    /// Removes the marks of all held slots if there is no observer.
    pub(crate) fn end_observation(&mut self) {
        // An observer of one of these slots was registered before the slot's lock was last
        // released.
        if self.keyspace().observed.observers.load(Ordering::Relaxed) == 0 {
            self.each_held(|guard| {
                let marks = guard.marks() & !OBSERVED;
                guard.set_marks(marks);
            });
        }
    }
}
