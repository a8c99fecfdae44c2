//! Slots whose changes are counted while something is computed from their keys by a thread that
//! does not hold them.
//!
//! Who reads a key marks its slot with [`OBSERVED`] and notes the slot's count, both while the slot
//! is locked. As long as the count is the same, each key of the slot is as it was. Only changes in
//! marked slots cost anything. The marks are taken back when nobody observes anything any more.

use crate::keyspace::keys::lock_blocking;
use crate::keyspace::marks::OBSERVED;
use crate::keyspace::{DbSlot, Keys, Keyspace, SLOTS, SlotGuard, SlotId};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// All counts, and how many rely on them.
pub(in crate::keyspace) struct Observed {
    /// How often each slot of a database has changed while it was observed; changed under the
    /// slot's lock.
    counts: Box<[OnceLock<Box<[AtomicU32]>>]>,
    observers: Arc<AtomicUsize>,
}

/// Somebody observes slots as long as this lives.
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

    /// A slot that is held and marked has changed.
    pub(in crate::keyspace) fn raise(&self, place: DbSlot) {
        // The slot's lock orders it.
        self.count(place).fetch_add(1, Ordering::Relaxed);
    }
}

impl Keyspace {
    /// Somebody observes slots from now on.
    pub(crate) fn observer(&self) -> Observer {
        self.observed.observers.fetch_add(1, Ordering::Relaxed);
        Observer(Arc::clone(&self.observed.observers))
    }

    /// Shows `look` a slot, which is locked meanwhile, and its count of changes, which are counted
    /// from now on. For threads that hold no slot.
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

    /// A slot that is held is about to get other contents.
    pub(in crate::keyspace) fn note_other_contents(&self, place: DbSlot, guard: &SlotGuard<'_>) {
        if guard.marks() & OBSERVED != 0 {
            self.observed.raise(place);
        }
    }
}

impl Keys<'_> {
    /// The count of changes of a slot of the selected database, which is held.
    pub(crate) fn changes(&self, slot: SlotId) -> u32 {
        self.keyspace().observed.count((self.db(), slot)).load(Ordering::Relaxed)
    }

    /// Takes the marks of all slots that are held back if nobody observes anything.
    pub(crate) fn end_observation(&mut self) {
        // Who observes one of these slots has said so before its lock was last given back.
        if self.keyspace().observed.observers.load(Ordering::Relaxed) == 0 {
            self.each_held(|guard| {
                let marks = guard.marks() & !OBSERVED;
                guard.set_marks(marks);
            });
        }
    }
}
