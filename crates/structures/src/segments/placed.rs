//! Looks up the elements of one map in another. The position of an element gives the first bits of
//! its key's hash, which are usually all that the other map needs. Elements come in hash order, so
//! consecutive elements usually fall into the same segment.

use super::segment::{Segment, TAG_BITS};
use super::{Element, Segments, after, tag_of};

/// The first bits of a key's hash.
#[derive(Debug, Clone, Copy)]
pub struct HashStart {
    /// The known bits, from the highest bit down; the other bits are 0.
    bits: u64,
    known: u32,
}

impl Segments {
    /// Returns all elements in the order of [`Segments::iter`], with the known bits of their keys'
    /// hashes.
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

    /// Creates a lookup for elements of other maps, which must hash with the same key.
    #[must_use]
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup { map: self, segment: None, prefix: 0, depth: 0 }
    }
}

/// Looks up elements of other maps. See [`Segments::lookup`].
#[derive(Debug, Clone)]
pub struct Lookup<'a> {
    map: &'a Segments,
    /// The segment of the last lookup. `prefix` is the first `depth` bits, which all hashes in it
    /// share.
    segment: Option<&'a Segment>,
    prefix: u64,
    depth: u32,
}

impl<'a> Lookup<'a> {
    /// Returns the map.
    #[must_use]
    pub fn map(&self) -> &'a Segments {
        self.map
    }

    /// Returns true if `key` exists. `key` is the key of an element of another map, and `start` is
    /// the start of its hash. O(1).
    #[inline]
    #[must_use]
    pub fn contains(&mut self, start: HashStart, key: &[u8]) -> bool {
        let differs = (start.bits ^ self.prefix).checked_shr(64 - self.depth).unwrap_or(0) != 0;
        if differs || self.segment.is_none() {
            self.go_to(start);
        }
        // With fewer known bits, the segment or the tag might be wrong.
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
