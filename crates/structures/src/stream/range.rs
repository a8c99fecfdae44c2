//! The entries of a stream as a separate value, and iteration over a range of them.

use super::block::{Block, BlockIter, BlockIterReversed, Entry};
use super::id::StreamId;
use crate::sequence::Sequence;

/// Entries, ordered by ID. Cloning is O(1), and later changes do not affect the clone.
#[derive(Debug, Clone, Default)]
pub struct Entries(pub(super) Sequence<Block>);

impl Entries {
    pub fn len(&self) -> usize {
        self.0.elements()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position of the block for `id`; `None` if `id` is below all blocks.
    pub(super) fn place_of(&self, id: StreamId) -> Option<usize> {
        let starts_by = |place: usize| self.0.get(place).is_some_and(|b| b.first_id() <= id);
        let (mut low, mut high) = (0, self.0.parts());
        // Most callers look for new entries.
        if high > 0 && starts_by(high - 1) {
            return Some(high - 1);
        }
        while low < high {
            let middle = low.midpoint(high);
            if starts_by(middle) { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    /// Returns the entries from `start` to `end`, both included, in ascending order.
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        let place = self.place_of(start).unwrap_or(0);
        let block = self.0.get(place).map(|block| block.iter());
        Range { entries: self, place, block, start, end }
    }

    /// Returns the same entries in descending order.
    pub fn range_reversed(&self, start: StreamId, end: StreamId) -> ReverseRange<'_> {
        let places = if start > end { 0 } else { self.place_of(end).map_or(0, |place| place + 1) };
        ReverseRange { entries: self, places, block: None, start, end }
    }

    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    pub fn first(&self) -> Option<Entry<'_>> {
        self.range(StreamId::MIN, StreamId::MAX).next()
    }

    pub fn last(&self) -> Option<Entry<'_>> {
        self.range_reversed(StreamId::MIN, StreamId::MAX).next()
    }

    /// Returns the number of entries in a range. O(log blocks + entries of a block).
    pub fn count(&self, start: StreamId, end: StreamId) -> usize {
        if start > end {
            return 0;
        }
        let up_to_end = end.next().map_or(self.len(), |after| self.rank(after));
        up_to_end.saturating_sub(self.rank(start))
    }

    /// Returns the number of entries below `id`.
    fn rank(&self, id: StreamId) -> usize {
        let Some(place) = self.place_of(id) else { return 0 };
        let Some(block) = self.0.get(place) else { return 0 };
        let inside = if id > block.last_id() {
            block.live()
        } else {
            block.iter().take_while(|entry| entry.id < id).count()
        };
        self.0.elements_before(place) + inside
    }
}

/// Entries of a range, ascending.
#[derive(Debug, Clone)]
pub struct Range<'a> {
    entries: &'a Entries,
    place: usize,
    block: Option<BlockIter<'a>>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            match self.block.as_mut()?.next() {
                Some(entry) if entry.id > self.end => {
                    self.block = None;
                    return None;
                }
                Some(entry) if entry.id >= self.start => return Some(entry),
                Some(_) => {}
                None => {
                    self.place += 1;
                    self.block = self.entries.0.get(self.place).map(|block| block.iter());
                }
            }
        }
    }
}

/// Entries of a range, descending.
#[derive(Debug)]
pub struct ReverseRange<'a> {
    entries: &'a Entries,
    /// The remaining blocks are those before this position.
    places: usize,
    block: Option<BlockIterReversed<'a>>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for ReverseRange<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            match self.block.as_mut().and_then(Iterator::next) {
                Some(entry) if entry.id < self.start => {
                    (self.block, self.places) = (None, 0);
                    return None;
                }
                Some(entry) if entry.id <= self.end => return Some(entry),
                Some(_) => {}
                None => {
                    self.places = self.places.checked_sub(1)?;
                    self.block = self.entries.0.get(self.places).map(|block| block.iter_reversed());
                }
            }
        }
    }
}
