//! Which slots of a database may hold keys, so that walks over small databases pass by the others.
//!
//! A bit per slot. It is set, and taken back, by who holds the slot; the slot's mark [`OCCUPIED`] says
//! whether it is, so that adding a key costs one test of a line that is at hand. A slot that became
//! empty keeps its bit until a walk comes by: keys come and go more often than walks.

use super::marks::OCCUPIED;
use super::{Database, SLOTS, SlotGuard, SlotId};
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a database. A slot that holds keys has its bit set.
pub(super) struct Occupied([AtomicU64; SLOTS / 64]);

impl Occupied {
    pub(super) fn new() -> Occupied {
        Occupied([const { AtomicU64::new(0) }; SLOTS / 64])
    }

    fn word(&self, slot: SlotId) -> (&AtomicU64, u64) {
        (&self.0[slot.index() / 64], 1 << (slot.index() % 64))
    }

    pub(super) fn contains(&self, slot: SlotId) -> bool {
        let (word, bit) = self.word(slot);
        word.load(Ordering::Relaxed) & bit != 0
    }
}

impl Database {
    /// A slot that is held got its first key.
    #[cold]
    pub(super) fn note_occupied(&self, slot: SlotId, guard: &mut SlotGuard<'_>) {
        let (word, bit) = self.occupied.word(slot);
        word.fetch_or(bit, Ordering::Relaxed);
        let marks = guard.marks() | OCCUPIED;
        guard.set_marks(marks);
    }

    /// Takes the bit back if the slot is still empty and nobody holds it.
    #[cold]
    fn forget_occupied(&self, slot: SlotId) {
        let Some(mut guard) = self.slot(slot).try_lock() else { return };
        if guard.table().is_empty() {
            let (word, bit) = self.occupied.word(slot);
            word.fetch_and(!bit, Ordering::Relaxed);
            let marks = guard.marks() & !OCCUPIED;
            guard.set_marks(marks);
        }
    }

    /// The slots from `first` on that are not empty, in ascending order: each is looked at when the
    /// iterator comes to it. O(slots / 64 + slots that hold keys).
    pub(super) fn occupied_from(&self, first: usize) -> impl Iterator<Item = SlotId> + '_ {
        let mut next = first;
        std::iter::from_fn(move || {
            while next < SLOTS {
                let bits = self.occupied.0[next / 64].load(Ordering::Relaxed) >> (next % 64);
                if bits == 0 {
                    next = (next / 64 + 1) * 64;
                    continue;
                }
                let slot = SlotId::new((next + bits.trailing_zeros() as usize) as u16);
                next = slot.index() + 1;
                if !self.slot(slot).is_empty() {
                    return Some(slot);
                }
                self.forget_occupied(slot);
            }
            None
        })
    }
}
