//! Returns random elements of a map: one, or several distinct ones.

use super::{Element, PAGE_BITS, SEGMENT_MAX, Segments};
use crate::segments::segment::Segment;
use std::collections::HashSet;

/// If a directory has at most this many slots, an element is chosen by its rank instead of drawing
/// a segment.
const FEW_SLOTS: usize = 16;

/// Maximum number of attempts to draw a segment before ranks are used.
const DRAWS_MAX: usize = 128;

/// If at most one in this many elements is wanted, each is drawn separately. Otherwise one walk
/// visits all of them.
const DRAWN_OF_MIN: usize = 16;

impl Segments {
    /// Returns a random element; all have the same probability. `below(n)` returns a random number
    /// below `n`. O(1) expected.
    pub fn random(&self, mut below: impl FnMut(u64) -> u64) -> Option<Element<'_>> {
        if self.is_empty() {
            return None;
        }
        self.draw(&mut below)
    }

    fn draw(&self, below: &mut impl FnMut(u64) -> u64) -> Option<Element<'_>> {
        if self.root.slots() == 1 && self.root.part(0).segments.slots() <= FEW_SLOTS {
            // The rank selects a segment; within the segment any uniform draw will do.
            let mut rank = below(self.len() as u64) as usize;
            for segment in self.root.part(0).segments.parts() {
                if rank < segment.len() {
                    return Some(segment.random(below));
                }
                rank -= segment.len();
            }
        }
        // Draw a segment by page and slot, and keep it with the probability that a place in it is
        // in use. All places of all segments are then equally likely.
        let slots = if self.root.slots() == 1 {
            self.root.part(0).segments.slots()
        } else {
            1 << PAGE_BITS
        };
        for _ in 0..DRAWS_MAX {
            let page = self.root.get(below(self.root.slots() as u64) as usize);
            let slot = below(slots as u64) as usize;
            let place = below(SEGMENT_MAX as u64) as usize;
            let Some(page) = page.filter(|page| slot < page.segments.slots()) else {
                continue;
            };
            if let Some(segment) = page.segments.get(slot).filter(|s| place < s.len()) {
                return Some(segment.random(below));
            }
        }
        Some(self.nth(below(self.len() as u64)))
    }

    /// Returns the element with this rank in the order of `iter`. The rank must be below the
    /// length. O(segments).
    fn nth(&self, rank: u64) -> Element<'_> {
        let mut found = None;
        self.each_rank(&[rank], |element| found = Some(element));
        found.expect("a rank below the length")
    }

    /// Visits the elements with these ranks, which must ascend. O(segments + elements of the
    /// segments with these ranks).
    fn each_rank<'a>(&'a self, ranks: &[u64], mut visit: impl FnMut(Element<'a>)) {
        let mut ranks = ranks.iter().map(|&rank| rank as usize).peekable();
        let mut start = 0;
        for page in self.root.parts() {
            if ranks.peek().is_none_or(|&rank| rank >= start + page.len) {
                start += page.len;
                continue;
            }
            for segment in page.segments.parts() {
                visit_ranks(segment, start, &mut ranks, &mut visit);
                start += segment.len();
            }
        }
    }

    /// Visits `count` distinct elements, or all if there are fewer. Each selection is equally
    /// likely; the order is not random. O(count) if few of many are wanted, otherwise O(elements).
    pub fn sample<'a>(
        &'a self,
        count: usize,
        mut below: impl FnMut(u64) -> u64,
        mut visit: impl FnMut(Element<'a>),
    ) {
        if count >= self.len() {
            return self.iter().for_each(visit);
        }
        if count <= self.len() / DRAWN_OF_MIN {
            let mut seen = HashSet::with_capacity(count);
            while seen.len() < count {
                if let Some(element) = self.draw(&mut below).filter(|e| seen.insert(e.key)) {
                    visit(element);
                }
            }
            return;
        }
        // Floyd's algorithm for distinct random numbers.
        let len = self.len() as u64;
        let mut chosen = HashSet::with_capacity(count);
        for last in len - count as u64..len {
            if !chosen.insert(below(last + 1)) {
                chosen.insert(last);
            }
        }
        let mut ranks: Vec<u64> = chosen.into_iter().collect();
        ranks.sort_unstable();
        self.each_rank(&ranks, visit);
    }
}

/// Visits the elements of a segment whose ranks come next in `ranks`. The segment's first element
/// has the rank `start`.
fn visit_ranks<'a>(
    segment: &'a Segment,
    start: usize,
    ranks: &mut std::iter::Peekable<impl Iterator<Item = usize>>,
    visit: &mut impl FnMut(Element<'a>),
) {
    let end = start + segment.len();
    let places = std::iter::from_fn(|| ranks.next_if(|&rank| rank < end)).map(|rank| rank - start);
    segment.visit_places(places, visit);
}
