//! An index over a list of elements, which lives as long as one command. It maps the hash of an
//! element to its position in the list.
//!
//! Open addressing with linear probing, at most half full. A word holds the upper half of a hash
//! and, below it, a position plus one. The lowest bits of the upper half determine where a probe
//! begins, so growing does not need the full hashes. The list itself belongs to the caller, who
//! decides which element matches.

use crate::hash::HashKey;
use crate::listpack::Item;

/// Number of bits of a word for a position plus one.
const PLACE_BITS: u32 = 32;

/// Up to this number of elements, quick hashes are used: an attacker who makes those collide gains
/// little among so few elements.
const QUICK_MAX: usize = 512;

/// Positions by hash. Entries are never removed.
#[derive(Debug, Clone)]
pub struct Places {
    /// 0 is empty. The length is a power of two.
    words: Vec<u64>,
    len: usize,
    key: HashKey,
    quick: bool,
}

impl Places {
    /// Creates an empty index with room for `expected` elements. The index will never have more
    /// than `len_max` elements. O(expected).
    #[must_use]
    pub fn new(key: HashKey, expected: usize, len_max: usize) -> Places {
        let words = vec![0; (expected * 2).next_power_of_two().max(2)];
        Places { words, len: 0, key, quick: len_max <= QUICK_MAX }
    }

    /// Returns the hash under which an element's position is stored. The element must be canonical.
    #[inline]
    #[must_use]
    pub fn hash(&self, element: Item<'_>) -> u64 {
        let number;
        let bytes = match element {
            Item::Str(text) => text,
            Item::Int(int) => {
                number = int.to_le_bytes();
                &number
            }
        };
        if self.quick { self.key.quick(bytes) } else { self.key.hash(bytes) }
    }

    /// Returns the position stored under this hash for which `is` returns true. O(1) expected if
    /// hashes are evenly distributed.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        let mask = self.words.len() - 1;
        let mut at = (hash >> PLACE_BITS) as usize & mask;
        loop {
            let word = self.words[at];
            if word == 0 {
                return None;
            }
            if (word ^ hash) >> PLACE_BITS == 0 {
                let place = (word & u64::from(u32::MAX)) as usize - 1;
                if is(place) {
                    return Some(place);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Stores a position. Amortised O(1).
    ///
    /// # Panics
    /// If the position does not fit into 32 bits.
    #[inline]
    pub fn insert(&mut self, hash: u64, place: usize) {
        let low = u32::try_from(place + 1).expect("lists are shorter");
        if (self.len + 1) * 2 > self.words.len() {
            self.grow();
        }
        self.len += 1;
        self.put(hash >> PLACE_BITS << PLACE_BITS | u64::from(low));
    }

    #[inline]
    fn put(&mut self, word: u64) {
        let mask = self.words.len() - 1;
        let mut at = (word >> PLACE_BITS) as usize & mask;
        while self.words[at] != 0 {
            at = (at + 1) & mask;
        }
        self.words[at] = word;
    }

    #[cold]
    fn grow(&mut self) {
        let words = vec![0; self.words.len() * 2];
        for word in std::mem::replace(&mut self.words, words) {
            if word != 0 {
                self.put(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn equal_elements_have_the_same_hash_in_every_form() {
        for len_max in [QUICK_MAX, QUICK_MAX + 1] {
            let places = Places::new(HashKey { k0: 1, k1: 2 }, 10, len_max);
            let hash = |element: Item<'_>| places.hash(element.canonical());
            assert_eq!(hash(Item::Int(57)), hash(Item::Str(b"57")));
            assert_eq!(hash(Item::Str(b"element")), hash(Item::Str(&b"element"[..])));
            assert_ne!(hash(Item::Str(b"057")), hash(Item::Str(b"57")));
        }
    }

    #[test]
    fn places_are_found_as_in_a_map_however_the_hashes_collide() {
        for bits in [0, 1, 4, 16, 64] {
            let mut places = Places::new(HashKey::default(), 3, 3000);
            let mut model: HashMap<u64, usize> = HashMap::new();
            let mut things = Vec::new();
            let hash = |thing: u64| {
                let mixed = thing.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                if bits == 0 { 0 } else { mixed >> (64 - bits) << (64 - bits) }
            };
            for number in 0..if bits < 16 { 200 } else { 3000u64 } {
                let thing = number * number % 1009;
                let found = places.find(hash(thing), |place| things[place] == thing);
                assert_eq!(found, model.get(&thing).copied());
                if found.is_none() {
                    model.insert(thing, things.len());
                    places.insert(hash(thing), things.len());
                    things.push(thing);
                }
            }
            assert_eq!(places.find(hash(5000), |place| things[place] == 5000), None);
        }
    }
}
