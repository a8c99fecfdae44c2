//! Looking up the elements of one map in another: where an element stands tells the first bits of its
//! key's hash, and those are mostly all that the other map needs to know.

use super::segment::TAG_BITS;
use super::{Element, Segments, after, tag_of};

/// The first bits of the hash of a key.
#[derive(Debug, Clone, Copy)]
pub struct HashStart {
    /// From the highest bit down; the others are 0.
    bits: u64,
    known: u32,
}

impl Segments {
    /// All elements, as [`Segments::iter`] shows them, with what is known of their keys' hashes.
    pub fn iter_placed(&self) -> impl Iterator<Item = (HashStart, Element<'_>)> {
        self.root.placed().flat_map(|(page_start, above, page)| {
            page.segments.placed().flat_map(move |(segment_start, below, segment)| {
                let depth = above + below;
                let start = page_start | after_zeros(segment_start, above);
                segment.iter_tagged().map(move |(tag, element)| {
                    let bits = start | after_zeros(u64::from(tag) << (64 - TAG_BITS), depth);
                    (HashStart { bits, known: depth + TAG_BITS }, element)
                })
            })
        })
    }

    /// Whether `key` is there, which an element of another map has that stood at `start`; the maps
    /// must hash with the same key. O(1).
    #[inline]
    #[must_use]
    pub fn contains_placed(&self, start: HashStart, key: &[u8]) -> bool {
        let place = self.place(start.bits);
        // With fewer bits known neither the segment nor the tag need be the right ones.
        if place.depth + TAG_BITS > start.known {
            return self.contains(key);
        }
        debug_assert_eq!(place.tag, tag_of(after(self.hash.hash(key), place.depth)));
        self.segment(place).find(place.tag, key).is_some()
    }
}

/// Bits that follow `count` others.
#[inline(always)]
fn after_zeros(bits: u64, count: u32) -> u64 {
    bits.checked_shr(count).unwrap_or(0)
}
