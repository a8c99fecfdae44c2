//! Looking up the elements of one map in another: where an element stands tells the first bits of
//! its key's hash, and those are mostly all that the other map needs to know. Elements come in the
//! order of their hashes, so the segment of one is mostly that of the next as well.

use super::segment::{Segment, TAG_BITS};
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
                let known = above + below + TAG_BITS;
                let start = page_start | segment_start.checked_shr(above).unwrap_or(0);
                segment.iter_tagged().map(move |(tag, element)| {
                    let bits = start | u64::from(tag) << (64 - known);
                    (HashStart { bits, known }, element)
                })
            })
        })
    }

    /// For looking up elements of other maps, which must hash with the same key.
    #[must_use]
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup { map: self, segment: None, prefix: 0, depth: 0 }
    }
}

/// Looks elements of other maps up. See [`Segments::lookup`].
#[derive(Debug, Clone)]
pub struct Lookup<'a> {
    map: &'a Segments,
    /// Where the last one was looked for, with the bits that all hashes there begin with.
    segment: Option<&'a Segment>,
    prefix: u64,
    depth: u32,
}

impl<'a> Lookup<'a> {
    /// The map itself.
    #[must_use]
    pub fn map(&self) -> &'a Segments {
        self.map
    }

    /// Whether `key` is there, which an element of another map has that stood at `start`. O(1).
    #[inline]
    #[must_use]
    pub fn contains(&mut self, start: HashStart, key: &[u8]) -> bool {
        let differs = (start.bits ^ self.prefix).checked_shr(64 - self.depth).unwrap_or(0) != 0;
        if differs || self.segment.is_none() {
            self.go_to(start);
        }
        // With fewer bits known neither the segment nor the tag need be the right ones.
        let Some(segment) = self.segment.filter(|_| self.depth + TAG_BITS <= start.known) else {
            return self.map.contains(key);
        };
        let tag = tag_of(after(start.bits, self.depth));
        debug_assert_eq!(tag, tag_of(after(self.map.hash.hash(key), self.depth)));
        segment.find(tag, key).is_some()
    }

    fn go_to(&mut self, start: HashStart) {
        let place = self.map.place(start.bits);
        self.segment = Some(self.map.segment(place));
        (self.prefix, self.depth) = (start.bits, place.depth);
    }
}
