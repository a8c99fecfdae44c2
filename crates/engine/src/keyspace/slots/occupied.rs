//! Which slots of a database may hold keys, so that walks over small databases pass by the others.
//!
//! A bit per slot. It is set, and taken back, by who holds the slot; the slot's mark [`OCCUPIED`]
//! says whether it is, so that adding a key costs one test of a line that is at hand. A slot that
//! became empty keeps its bit until a walk comes by: keys come and go more often than walks. A
//! second array says which words of the first have bits; those bits are taken back only while
//! everything stands still, since nobody holds all slots of a word.

use crate::keyspace::marks::OCCUPIED;
use crate::keyspace::{Database, SLOTS, SlotGuard, SlotId};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = SLOTS / 64;

/// The bits of a database. A slot that holds keys has its bit set, and so has the word of that bit.
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

    /// Whether walks look at the word of a slot.
    pub(in crate::keyspace) fn is_seen(&self, slot: SlotId) -> bool {
        let (word, bit) = self.word_of_words(slot.index() / 64);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// The first word from `first` on that may have bits, or the number of words.
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
    /// A slot that is held got its first key.
    #[cold]
    pub(in crate::keyspace) fn note_occupied(&self, slot: SlotId, guard: &mut SlotGuard<'_>) {
        let (word, bit) = self.occupied.word(slot);
        word.fetch_or(bit, Ordering::Relaxed);
        let (word, bit) = self.occupied.word_of_words(slot.index() / 64);
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

    /// Takes the bits of words back that have none. Only while everything stands still.
    /// O(words that had bits).
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

    /// The slots from `first` on that are not empty, in ascending order: each is looked at when the
    /// iterator comes to it. O(words that have bits + slots that hold keys).
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
