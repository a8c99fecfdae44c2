//! Segments: a map from byte strings to byte strings, of any size, that can be shared.
//!
//! Used for large hashes and sets (whose elements have no value). Elements are packed into segments
//! of at most 512. A two-level directory finds a segment by the first bits of the key's hash:
//!
//! ```text
//!  root ──► page (at most 512 slots) ──► segment: index + arena of entries
//!       └─► page ──► segment, segment, …
//! ```
//!
//! All parts are behind an `Arc`. A clone increments one counter per page; a page has about 150,000
//! elements. A change to a shared map copies only the page and the segment that it touches. A full
//! segment is split in two, and two small halves are merged. No operation works on more than a page
//! of slots and two segments of elements, regardless of the size of the map.
//!
//! The hash space is ordered by the prefix of a part, then by the tag within a segment. A scan's
//! cursor is a position in this order, so it stays valid across splits and merges between two
//! steps.
//!
//! Invariants (`check` verifies these and, file by file, those of the parts)
//!  1. `len` and the pages' `len` are the sums of the segments' lengths.
//!  2. A page has at most `1 << PAGE_BITS` slots. Segments hold at most [`SEGMENT_MAX`] elements.
//!  3. A page's `soonest` is not later than that of any of its segments; the map's is not later
//!     than that of any of its pages.
//!
//! Costs: get, insert, remove O(1), plus a split or merge (up to 512 hashes) once in several
//! hundred operations. Memory: 6 to 12 bytes per element in addition to the bytes of key and value.
//! Keys and values of more than 512 bytes have an allocation of their own, which clones share.

mod codec;
mod directory;
mod placed;
mod prefetch;
mod sample;
mod segment;
#[cfg(test)]
mod tests;

pub use placed::{HashStart, Lookup};
pub use segment::Element;

use crate::hash::HashKey;
use directory::Directory;
use segment::{Segment, TAG_BITS, tag_of};

/// Maximum number of elements in a segment.
pub const SEGMENT_MAX: usize = if cfg!(test) { 16 } else { 512 };

/// Maximum number of slots of a page, as a power of two. In tests it is small, so that a few
/// hundred elements fill several pages.
const PAGE_BITS: u32 = if cfg!(test) { 3 } else { 9 };

/// Maximum length of a prefix in bits, so that prefix and tag fit in a cursor. Exceeding it would
/// take 2^36 segments, or 512 keys whose hashes agree in 36 bits. That is out of reach because the
/// hash is keyed.
const DEPTH_MAX: u32 = CURSOR_BITS - TAG_BITS;

/// Number of bits of a scan's cursor: small enough for clients whose numbers are doubles.
const CURSOR_BITS: u32 = 48;

/// Maximum number of elements for which `with_capacity` prepares the directory, which then takes at
/// most 4 MB.
const PREPARED_MAX: usize = 8 << 20;

#[derive(Debug, Clone)]
struct Page {
    segments: Directory<Segment>,
    len: usize,
    soonest: u64,
}

/// A map from byte strings to byte strings or to nothing. See the module documentation.
#[derive(Debug, Clone)]
pub struct Segments {
    root: Directory<Page>,
    len: usize,
    hash: HashKey,
    soonest: u64,
}

/// The position of a key.
#[derive(Clone, Copy)]
struct Place {
    page: usize,
    segment: usize,
    tag: u32,
    /// Number of bits before the tag.
    depth: u32,
}

/// Returns the bits of `hash` after the first `depth`.
#[inline(always)]
fn after(hash: u64, depth: u32) -> u64 {
    hash.checked_shl(depth).unwrap_or(0)
}

impl Segments {
    /// Creates an empty map whose keys are hashed with `hash`, which clients must not know.
    #[must_use]
    pub fn new(hash: HashKey) -> Segments {
        let page = Page { segments: Directory::new(Segment::new()), len: 0, soonest: u64::MAX };
        Segments { root: Directory::new(page), len: 0, hash, soonest: u64::MAX }
    }

    /// Creates an empty map whose directory is ready for `len` elements. O(len / 256). The
    /// preparation is bounded, so `len` may come from untrusted input.
    #[must_use]
    pub fn with_capacity(hash: HashKey, len: usize) -> Segments {
        let mut map = Segments::new(hash);
        let wanted = (len.min(PREPARED_MAX) * 4 / 3).div_ceil(SEGMENT_MAX);
        let depth = wanted.next_power_of_two().trailing_zeros();
        for _ in 0..depth.saturating_sub(PAGE_BITS) {
            map.root.double();
            map.each_place(|root, at| {
                let page = root.part(at).clone();
                root.split(at, (page.clone(), page));
            });
        }
        map.each_place(|root, at| {
            let page = root.part_mut(at);
            for _ in 0..depth.min(PAGE_BITS) {
                page.segments.double();
                for at in page.segments.places() {
                    page.segments.split(at, (Segment::new(), Segment::new()));
                }
            }
        });
        map
    }

    fn each_place(&mut self, mut change: impl FnMut(&mut Directory<Page>, usize)) {
        for at in self.root.places() {
            change(&mut self.root, at);
        }
    }

    /// Returns true if one is an unchanged clone of the other. O(pages).
    #[must_use]
    pub fn is_same(&self, other: &Segments) -> bool {
        self.root.is_same(&other.root)
    }

    /// Returns the number of elements. O(1).
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn place(&self, hash: u64) -> Place {
        let page = self.root.locate(hash);
        let above = self.root.depth(page);
        let segments = &self.root.part(page).segments;
        let rest = after(hash, above);
        let segment = segments.locate(rest);
        let below = segments.depth(segment);
        Place { page, segment, tag: tag_of(after(rest, below)), depth: above + below }
    }

    #[inline]
    fn segment(&self, place: Place) -> &Segment {
        self.root.part(place.page).segments.part(place.segment)
    }

    /// Returns the element of `key`. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Element<'_>> {
        let place = self.place(self.hash.hash(key));
        let segment = self.segment(place);
        segment.find(place.tag, key).map(|slot| segment.at(slot))
    }

    /// Returns true if `key` exists. O(1).
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let place = self.place(self.hash.hash(key));
        self.segment(place).find(place.tag, key).is_some()
    }

    /// Sets the value and the deadline of `key`. Returns true if the key is new. O(1), or a split.
    pub fn insert(&mut self, key: &[u8], value: Option<&[u8]>, deadline: Option<u64>) -> bool {
        let hash = self.hash.hash(key);
        let place = self.place(hash);
        match self.segment(place).locate(place.tag, key) {
            Ok(slot) => {
                self.segment_mut(place, deadline).replace(slot, value, deadline);
                false
            }
            Err(slot) => {
                self.insert_at(hash, place, slot, key, value, deadline);
                true
            }
        }
    }

    /// Adds `key` if it does not exist; otherwise changes nothing. Returns true if it was added.
    /// O(1), or a split.
    pub fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let hash = self.hash.hash(key);
        let place = self.place(hash);
        let found = self.segment(place).locate(place.tag, key);
        if let Err(slot) = found {
            self.insert_at(hash, place, slot, key, value, None);
        }
        found.is_err()
    }

    /// Adds a key that does not exist, at the slot that `locate` returned.
    fn insert_at(
        &mut self,
        hash: u64,
        mut place: Place,
        mut slot: usize,
        key: &[u8],
        value: Option<&[u8]>,
        deadline: Option<u64>,
    ) {
        while self.segment(place).len() >= SEGMENT_MAX && place.depth < DEPTH_MAX {
            self.split(place);
            place = self.place(hash);
            slot = match self.segment(place).locate(place.tag, key) {
                Ok(slot) | Err(slot) => slot,
            };
        }
        self.segment_mut(place, deadline).add(slot, place.tag, key, value, deadline);
        self.root.part_mut(place.page).len += 1;
        self.len += 1;
    }

    /// Returns the segment so that the caller can set this deadline on one of its elements. Updates
    /// the `soonest` of the page and of the map.
    #[inline]
    fn segment_mut(&mut self, place: Place, deadline: Option<u64>) -> &mut Segment {
        let page = self.root.part_mut(place.page);
        if let Some(deadline) = deadline {
            page.soonest = page.soonest.min(deadline);
            self.soonest = self.soonest.min(deadline);
        }
        page.segments.part_mut(place.segment)
    }

    /// Sets or removes the deadline of `key`. Returns false if the key does not exist. O(1).
    pub fn set_deadline(&mut self, key: &[u8], deadline: Option<u64>) -> bool {
        let place = self.place(self.hash.hash(key));
        let Some(slot) = self.segment(place).find(place.tag, key) else {
            return false;
        };
        self.segment_mut(place, deadline).set_deadline(slot, deadline);
        true
    }

    /// Removes `key`. Returns false if it does not exist. O(1), or a merge.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.take(key, |_| ()).is_some()
    }

    /// Removes `key` after passing its element to `visit`. O(1), or a merge.
    pub fn take<R>(&mut self, key: &[u8], visit: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let place = self.place(self.hash.hash(key));
        let slot = self.segment(place).find(place.tag, key)?;
        let seen = visit(self.segment(place).at(slot));
        let page = self.root.part_mut(place.page);
        page.len -= 1;
        self.len -= 1;
        let segment = page.segments.part_mut(place.segment);
        segment.remove(slot);
        if segment.len() <= SEGMENT_MAX / 4 {
            self.merge(place);
        }
        Some(seen)
    }

    /// Replaces a full segment with two.
    #[cold]
    fn split(&mut self, mut place: Place) {
        let hash = self.hash;
        let page = self.root.part_mut(place.page);
        if page.segments.depth(place.segment) == page.segments.bits() {
            if page.segments.bits() == PAGE_BITS {
                return self.split_page(place.page);
            }
            page.segments.double();
            place.segment *= 2;
        }
        let halves = page.segments.part(place.segment).split(hash, place.depth);
        page.segments.split(place.segment, halves);
    }

    fn split_page(&mut self, mut at: usize) {
        if self.root.depth(at) == self.root.bits() {
            self.root.double();
            at *= 2;
        }
        let (low, high) = self.root.part(at).segments.halve();
        self.root.split(at, (Page::over(low), Page::over(high)));
    }

    /// Replaces two small halves with one segment, and two small pages with one.
    fn merge(&mut self, place: Place) {
        let segments = &mut self.root.part_mut(place.page).segments;
        let mut next = join_segments(segments, place.segment);
        if next.is_none() {
            return;
        }
        while let Some(at) = next {
            next = join_segments(segments, at);
        }
        segments.shrink();
        let mut next = self.join_pages(place.page);
        if next.is_none() {
            return;
        }
        while let Some(at) = next {
            next = self.join_pages(at);
        }
        self.root.shrink();
    }

    /// Replaces two small halves with one page, and returns its position.
    fn join_pages(&mut self, at: usize) -> Option<usize> {
        let small = |(low, high): &(usize, usize)| {
            [low, high].iter().all(|at| self.root.part(**at).segments.bits() + 2 < PAGE_BITS)
        };
        let halves = self.root.halves(at).filter(small)?;
        let (low, high) = (self.root.part(halves.0), self.root.part(halves.1));
        let mut segments = Directory::join(&low.segments, &high.segments);
        if join_segments(&mut segments, 0).is_some() {
            segments.shrink();
        }
        self.root.merge(halves, Page::over(segments));
        Some(halves.0)
    }

    /// Returns all elements, each once, in the order of the hash space.
    pub fn iter(&self) -> impl Iterator<Item = Element<'_>> {
        let segments = self.root.parts().flat_map(|page| page.segments.parts());
        segments.flat_map(Segment::iter)
    }

    /// Runs one step of a scan: visits the elements of the next position from `cursor` on, or none
    /// if the segment ends first. Returns the cursor of the next step; 0 both starts and ends a
    /// scan. Elements that exist from the first to the last step are visited at least once,
    /// regardless of changes between steps. If nothing changes, they are visited exactly once. O(1)
    /// expected. Any number is a valid cursor.
    pub fn scan<'a>(&'a self, cursor: u64, mut visit: impl FnMut(Element<'a>)) -> u64 {
        let position = cursor << (64 - CURSOR_BITS);
        let place = self.place(position);
        // Positions are numbered by prefix and tag; this is the number of the position with tag 0.
        let granule = 64 - TAG_BITS - place.depth;
        let prefix = position >> granule & !((1 << TAG_BITS) - 1);
        let next = match self.segment(place).visit_from(place.tag, &mut visit) {
            Some(found) => prefix + u64::from(found) + 1,
            None => prefix + (1 << TAG_BITS),
        };
        let next = u128::from(next) << granule;
        (next as u64) >> (64 - CURSOR_BITS)
    }

    /// Returns a lower bound of all deadlines; `None` if there are none. O(1).
    #[must_use]
    pub fn soonest(&self) -> Option<u64> {
        (self.soonest != u64::MAX).then_some(self.soonest)
    }

    /// Returns true if any element has a deadline. O(segments that may contain deadlines).
    #[must_use]
    pub fn has_deadlines(&self) -> bool {
        self.root
            .parts()
            .filter(|page| page.soonest != u64::MAX)
            .any(|page| page.segments.parts().any(|segment| segment.timed() > 0))
    }

    /// Removes elements whose deadline is at most `now`, and passes each to `visit` first. Stops
    /// after the segment in which `limit` is reached. Returns true if no due element is left, which
    /// is always the case if `limit` was not reached. Looks only at segments with due elements:
    /// O(pages + slots of pages with due elements + elements of those segments).
    pub fn expire(&mut self, now: u64, limit: usize, mut visit: impl FnMut(Element<'_>)) -> bool {
        let before = self.len;
        let mut soonest = u64::MAX;
        for at in self.root.places() {
            if self.root.part(at).soonest <= now {
                let page = self.root.part_mut(at);
                let left = limit.saturating_sub(before - self.len);
                let expired = page.expire(now, left, &mut visit);
                self.len -= expired;
            }
            soonest = soonest.min(self.root.part(at).soonest);
        }
        self.soonest = soonest;
        if self.len < before {
            for at in self.root.places() {
                // A page that was joined to its lower half no longer exists.
                let mut next = self.root.get(at).map(|_| at);
                while let Some(at) = next {
                    next = self.join_pages(at);
                }
            }
            self.root.shrink();
        }
        soonest > now
    }

    /// Returns the memory usage in bytes, excluding the struct itself. O(segments).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let page = |page: &Page| {
            let segments = page.segments.parts().map(Segment::allocated_bytes).sum::<usize>();
            page.segments.allocated_bytes() + segments
        };
        self.root.allocated_bytes() + self.root.parts().map(page).sum::<usize>()
    }

    /// Returns the approximate number of separate allocations. O(pages).
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.root.parts().map(|page| page.segments.slots()).sum()
    }

    /// Verifies all invariants. O(elements).
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        self.root.check();
        let mut len = 0;
        for page_at in self.root.places() {
            let page = self.root.part(page_at);
            page.segments.check();
            assert!(page.segments.bits() <= PAGE_BITS, "invariant 2");
            assert!(page.soonest >= self.soonest, "invariant 3");
            let above = self.root.depth(page_at);
            let page_prefix = (page_at >> (self.root.bits() - above)) as u64;
            let mut page_len = 0;
            for at in page.segments.places() {
                let segment = page.segments.part(at);
                let below = page.segments.depth(at);
                let prefix = page_prefix << below | (at >> (page.segments.bits() - below)) as u64;
                segment.check(self.hash, above + below, prefix);
                assert!(segment.len() <= SEGMENT_MAX || above + below == DEPTH_MAX, "invariant 2");
                assert!(segment.soonest() >= page.soonest, "invariant 3");
                page_len += segment.len();
            }
            assert_eq!(page.len, page_len, "invariant 1");
            len += page_len;
        }
        assert_eq!(self.len, len, "invariant 1");
    }
}

/// Replaces two small halves with one segment, and returns its position.
fn join_segments(segments: &mut Directory<Segment>, at: usize) -> Option<usize> {
    let small = |(low, high): &(usize, usize)| {
        segments.part(*low).len() + segments.part(*high).len() <= SEGMENT_MAX / 2
    };
    let halves = segments.halves(at).filter(small)?;
    let all = Segment::merge(segments.part(halves.0), segments.part(halves.1));
    segments.merge(halves, all);
    Some(halves.0)
}

impl Page {
    fn over(segments: Directory<Segment>) -> Page {
        let len = segments.parts().map(Segment::len).sum();
        let soonest = segments.parts().map(Segment::soonest).min().unwrap_or(u64::MAX);
        Page { segments, len, soonest }
    }

    /// Like `Segments::expire`; returns how many were removed.
    fn expire(&mut self, now: u64, limit: usize, visit: &mut impl FnMut(Element<'_>)) -> usize {
        let before = self.len;
        for at in self.segments.places() {
            if self.segments.part(at).soonest() > now {
                continue;
            }
            if before - self.len >= limit {
                break;
            }
            let segment = self.segments.part_mut(at);
            let had = segment.len();
            segment.expire(now, visit);
            self.len -= had - segment.len();
        }
        self.soonest = self.segments.parts().map(Segment::soonest).min().unwrap_or(u64::MAX);
        if self.len < before {
            for at in self.segments.places() {
                let mut next = self.segments.get(at).map(|_| at);
                while let Some(at) = next {
                    next = join_segments(&mut self.segments, at);
                }
            }
            self.segments.shrink();
        }
        before - self.len
    }
}
