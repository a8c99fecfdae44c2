//! Whether the strings of a sequence differ from each other.
//!
//! An open-addressed table of where they begin, hashed with a random key, so that nobody can choose
//! strings that collide. Places have five bytes: for short strings the table
//! must not outweigh them.

use super::strings::Strings;
use brisk_structures::hash::HashKey;
use std::hash::{BuildHasher, RandomState};

type Place = [u8; 5];
/// Sequences longer than this (1 TiB) are not looked at.
const PLACE_MAX: u64 = (1 << 40) - 1;
const SLOTS_MIN: usize = 16;
/// A larger table is made anew for the next sequence instead of being cleared.
const SLOTS_KEPT_MAX: usize = 1024;

/// The table, kept from value to value for its memory.
pub(super) struct Unique {
    key: HashKey,
    /// One more than where a string begins; zero is free. A power of two, at most
    /// 7/8 taken.
    slots: Vec<Place>,
    len: usize,
}

impl Unique {
    pub(super) fn new() -> Unique {
        let random = RandomState::new();
        let key = HashKey { k0: random.hash_one(0), k1: random.hash_one(1) };
        Unique { key, slots: Vec::new(), len: 0 }
    }

    /// A secret of this reader.
    pub(super) fn key(&self) -> HashKey {
        self.key
    }

    /// Whether the first, `step + 1`st, ... strings are all different. O(bytes of those strings).
    pub(super) fn all(&mut self, strings: &Strings, step: usize) -> bool {
        if self.slots.len() > SLOTS_KEPT_MAX {
            self.slots = Vec::new();
        }
        self.slots.fill([0; 5]);
        self.len = 0;
        let mut iter = strings.iter();
        loop {
            let at = iter.offset();
            let Some(string) = iter.next() else {
                return true;
            };
            if !self.insert(strings, at, string) {
                return false;
            }
            for _ in 1..step {
                iter.next();
            }
        }
    }

    fn insert(&mut self, strings: &Strings, at: usize, string: &[u8]) -> bool {
        let slots = self.slots.len();
        // Few strings meet as few others as possible; many are not to take so much memory.
        let room = if slots < SLOTS_KEPT_MAX { slots / 2 } else { slots / 8 * 7 };
        if self.len >= room {
            self.grow(strings);
        }
        let place = at as u64 + 1;
        if place > PLACE_MAX {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.key.hash(string) as usize & mask;
        while let Some(taken) = offset(self.slots[slot]) {
            if strings.at(taken).is_some_and(|(other, _)| other == string) {
                return false;
            }
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = place_of(place);
        self.len += 1;
        true
    }

    fn grow(&mut self, strings: &Strings) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![[0; 5]; slots]);
        for place in old {
            if let Some((string, _)) = offset(place).and_then(|at| strings.at(at)) {
                let mut slot = self.key.hash(string) as usize & (slots - 1);
                while self.slots[slot] != [0; 5] {
                    slot = (slot + 1) & (slots - 1);
                }
                self.slots[slot] = place;
            }
        }
    }
}

fn place_of(place: u64) -> Place {
    let [a, b, c, d, e, ..] = place.to_le_bytes();
    [a, b, c, d, e]
}

fn offset([a, b, c, d, e]: Place) -> Option<usize> {
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]).checked_sub(1).map(|at| at as usize)
}

#[cfg(test)]
mod tests {
    use super::{Strings, Unique};

    #[test]
    fn duplicates_are_found_wherever_they_stand() {
        let mut unique = Unique::new();
        for count in [1, 2, 15, 16, 17, 1000] {
            let mut strings: Strings = (0..count).map(|n| format!("element {n}")).collect();
            assert!(unique.all(&strings, 1));
            strings.push(b"element 0");
            assert!(!unique.all(&strings, 1));
        }
        let pairs: Strings = ["a", "x", "b", "x", "c", "x"].iter().collect();
        assert!(unique.all(&pairs, 2));
        assert!(!unique.all(&pairs, 1));
        assert!(unique.all(&Strings::new(), 1));
    }
}
