//! Checks that the strings of a sequence are distinct.
//!
//! The check uses an open-addressed table of string offsets. The hash has a random key, so that an
//! attacker cannot choose strings that collide. Offsets take five bytes: for short strings the
//! table must not be larger than the strings.

use super::strings::Strings;
use brisk_structures::hash::HashKey;
use std::hash::{BuildHasher, RandomState};

type PackedOffset = [u8; 5];
/// Maximum offset of a string. Longer sequences (more than 1 TiB) are not checked and count as
/// duplicates.
const OFFSET_MAX: u64 = (1 << 40) - 1;
const SLOTS_MIN: usize = 16;
/// Maximum number of slots of a table that is cleared for the next sequence. A larger table is
/// freed instead.
const SLOTS_KEPT_MAX: usize = 1024;

/// The table, kept from value to value to reuse its memory.
pub(super) struct UniquenessCheck {
    key: HashKey,
    /// A slot holds the offset of a string plus one; zero is free. The length is a power of two, at
    /// most 7/8 of which are in use.
    slots: Vec<PackedOffset>,
    len: usize,
}

impl UniquenessCheck {
    pub(super) fn new() -> UniquenessCheck {
        let random = RandomState::new();
        let key = HashKey { k0: random.hash_one(0), k1: random.hash_one(1) };
        UniquenessCheck { key, slots: Vec::new(), len: 0 }
    }

    /// Returns the random hash key of this reader.
    pub(super) fn key(&self) -> HashKey {
        self.key
    }

    /// Returns true if the first, `step + 1`st, ... strings are all distinct. O(bytes of those
    /// strings).
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
        // A small table stays sparse to keep probes short. A large one is filled further to save
        // memory.
        let room = if slots < SLOTS_KEPT_MAX { slots / 2 } else { slots / 8 * 7 };
        if self.len >= room {
            self.grow(strings);
        }
        let offset_plus_1 = at as u64 + 1;
        if offset_plus_1 > OFFSET_MAX {
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
        self.slots[slot] = packed(offset_plus_1);
        self.len += 1;
        true
    }

    fn grow(&mut self, strings: &Strings) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![[0; 5]; slots]);
        for offset_plus_1 in old {
            if let Some((string, _)) = offset(offset_plus_1).and_then(|at| strings.at(at)) {
                let mut slot = self.key.hash(string) as usize & (slots - 1);
                while self.slots[slot] != [0; 5] {
                    slot = (slot + 1) & (slots - 1);
                }
                self.slots[slot] = offset_plus_1;
            }
        }
    }
}

fn packed(offset_plus_1: u64) -> PackedOffset {
    let [a, b, c, d, e, ..] = offset_plus_1.to_le_bytes();
    [a, b, c, d, e]
}

fn offset([a, b, c, d, e]: PackedOffset) -> Option<usize> {
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]).checked_sub(1).map(|at| at as usize)
}

#[cfg(test)]
mod tests {
    use super::{Strings, UniquenessCheck};

    #[test]
    fn duplicates_are_found_at_any_position() {
        let mut unique = UniquenessCheck::new();
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
