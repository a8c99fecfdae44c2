//! The set of slots of a database that may hold keys, so that walks over small databases skip empty
//! slots.
//!
//! There is a bit per slot. The holder of the slot sets and clears it. The slot's mark [`OCCUPIED`]
//! mirrors the bit, so that adding a key tests only a cache line that is already loaded. A slot
//! that becomes empty keeps its bit until a walk visits it, because keys come and go more often
//! than walks run. A second array records which words of the first have set bits. The bits of the
//! second array are cleared only during quiescence, because no thread ever holds all slots of a
//! word.

use crate::keyspace::marks::OCCUPIED;
use crate::keyspace::{Database, SLOTS, SlotGuard, SlotId};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = SLOTS / 64;

/// The bits of a database. The bit of a slot that holds keys is set, and so is the bit of its word.
pub(in crate::keyspace) struct Occupied {
    slots: [AtomicU64; WORDS],
    words: [AtomicU64; WORDS / 64],
}

impl Occupied {
    pub(in crate::keyspace) fn new() -> Occupied {
        Occupied {
            slots: [const { AtomicU64::new(0) }; WORDS],
            words: [const { AtomicU64::new(0) }; WORDS / 64],
        }
    }

    fn word(&self, slot: SlotId) -> (&AtomicU64, u64) {
        (&self.slots[slot.index() / 64], 1 << (slot.index() % 64))
    }

    pub(in crate::keyspace) fn contains(&self, slot: SlotId) -> bool {
        let (word, bit) = self.word(slot);
        word.load(Ordering::Relaxed) & bit != 0
    }

    fn word_of_words(&self, word: usize) -> (&AtomicU64, u64) {
        (&self.words[word / 64], 1 << (word % 64))
    }

    /// Reports whether walks visit the word of a slot.
    pub(in crate::keyspace) fn is_seen(&self, slot: SlotId) -> bool {
        let (word, bit) = self.word_of_words(slot.index() / 64);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// The first word at or after `first` that may have bits, or the number of words.
    fn next_word(&self, first: usize) -> usize {
        let mut next = first;
        while next < WORDS {
            let bits = self.words[next / 64].load(Ordering::Relaxed) >> (next % 64);
            if bits != 0 {
                return next + bits.trailing_zeros() as usize;
            }
            next = (next / 64 + 1) * 64;
        }
        WORDS
    }
}

impl Database {
    /// Called when a held slot got its first key.
    #[cold]
    pub(in crate::keyspace) fn note_occupied(&self, slot: SlotId, guard: &mut SlotGuard<'_>) {
        let (word, bit) = self.occupied.word(slot);
        word.fetch_or(bit, Ordering::Relaxed);
        let (word, bit) = self.occupied.word_of_words(slot.index() / 64);
        word.fetch_or(bit, Ordering::Relaxed);
        let marks = guard.marks() | OCCUPIED;
        guard.set_marks(marks);
    }

    /// Clears the bit if the slot is still empty and not held.
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

    /// Clears the word bits of empty words. Call it only during quiescence. O(words that had bits).
    pub(in crate::keyspace) fn forget_empty_words(&self) {
        let mut next = self.occupied.next_word(0);
        while next < WORDS {
            if self.occupied.slots[next].load(Ordering::Relaxed) == 0 {
                let (word, bit) = self.occupied.word_of_words(next);
                word.fetch_and(!bit, Ordering::Relaxed);
            }
            next = self.occupied.next_word(next + 1);
        }
    }

    /// The slots at or after `first` that are not empty, in ascending order. Each slot is checked
    /// when the iterator reaches it. O(words that have bits + slots that hold keys).
    pub(in crate::keyspace) fn occupied_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = SlotId> + '_ {
        let mut next = first;
        std::iter::from_fn(move || {
            while next < SLOTS {
                let word = next / 64;
                let bits = self.occupied.slots[word].load(Ordering::Relaxed) >> (next % 64);
                if bits == 0 {
                    next = self.occupied.next_word(word + 1) * 64;
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
