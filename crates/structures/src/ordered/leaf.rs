//! Leaves: members in order, packed into three allocations.

use super::room_for;
use crate::prefetch::prefetch_slice;

/// Maximum number of members in a leaf.
pub(super) const LEAF_LEN_MAX: usize = 64;
/// Maximum size in bytes of the members of a leaf that has at least two, so that an insertion moves
/// little memory.
pub(super) const LEAF_BYTES_MAX: usize = 4096;
/// A leaf below both limits is joined with a neighbor if the two fit well into one.
const SPARSE_LEN: usize = LEAF_LEN_MAX / 4;
const SPARSE_BYTES: usize = LEAF_BYTES_MAX / 4;

/// The hash and the position of a member.
#[derive(Debug, Clone, Copy)]
struct Mark {
    hash: u32,
    /// Offset of the member's end in the leaf's arena. The member begins at the end of its
    /// predecessor.
    end: u32,
}

/// Neighboring members, in order. Scores are stored apart from marks because a search reads only
/// one of the two, and the amount of memory that it reads determines its time.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    scores: Vec<f64>,
    marks: Vec<Mark>,
    bytes: Vec<u8>,
}

impl Leaf {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    /// Prefetches the cache lines that a search in the leaf reads, at most `lines` of each array.
    #[inline]
    pub(super) fn prefetch(&self, lines: usize) {
        prefetch_slice(&self.marks, lines);
        prefetch_slice(&self.scores, lines);
        prefetch_slice(&self.bytes, lines);
    }

    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn score(&self, at: usize) -> f64 {
        self.scores[at]
    }

    #[inline]
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Returns the hashes of all members.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u32> {
        self.marks.iter().map(|mark| mark.hash)
    }

    #[inline]
    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.marks[at - 1].end as usize }
    }

    #[inline]
    pub(super) fn member(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.marks[at].end as usize]
    }

    /// Returns the index of `member`, found by its hash.
    #[inline]
    pub(super) fn find(&self, hash: u32, member: &[u8]) -> Option<usize> {
        // Eight at a time: all are compared before the code branches on the result.
        let (eights, rest) = self.marks.as_chunks::<8>();
        let is_candidate = |mark: &Mark| mark.hash == hash;
        let has_some = |marks: &[Mark]| marks.iter().fold(false, |any, m| any | is_candidate(m));
        let within = |from: usize, marks: &[Mark]| {
            let candidates = marks.iter().zip(from..).filter(|(mark, _)| is_candidate(mark));
            candidates.map(|(_, at)| at).find(|&at| self.member(at) == member)
        };
        let found = eights.iter().zip((0..).step_by(8)).filter(|(eight, _)| has_some(&eight[..]));
        let found = found.map(|(eight, from)| within(from, eight)).find(Option::is_some).flatten();
        found.or_else(|| within(self.marks.len() - rest.len(), rest))
    }

    /// Returns how many members precede (`score`, `member`), and whether the next one is that
    /// member.
    #[inline]
    pub(super) fn place(&self, score: f64, member: &[u8]) -> (usize, bool) {
        let mut at = self.scores.partition_point(|other| *other < score);
        if self.scores.get(at).is_none_or(|other| *other > score) {
            return (at, false);
        }
        let end = at + self.scores[at..].partition_point(|other| *other <= score);
        let (mut low, mut high) = (at, end);
        while low < high {
            let middle = low.midpoint(high);
            if self.member(middle) < member {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        at = low;
        (at, at < end && self.member(at) == member)
    }

    /// Returns true if `member` can be added without exceeding the limits.
    #[inline]
    pub(super) fn has_room(&self, member: &[u8]) -> bool {
        self.len() < LEAF_LEN_MAX
            && (self.len() == 0 || self.bytes.len() + member.len() <= LEAF_BYTES_MAX)
    }

    /// Inserts a member at index `at`.
    pub(super) fn insert(&mut self, at: usize, score: f64, hash: u32, member: &[u8]) {
        room_for(&mut self.scores, 1);
        room_for(&mut self.marks, 1);
        room_for(&mut self.bytes, member.len());
        let start = self.start(at);
        let old_len = self.bytes.len();
        self.bytes.resize(old_len + member.len(), 0);
        self.bytes.copy_within(start..old_len, start + member.len());
        self.bytes[start..start + member.len()].copy_from_slice(member);
        for mark in &mut self.marks[at..] {
            mark.end += member.len() as u32;
        }
        self.scores.insert(at, score);
        self.marks.insert(at, Mark { hash, end: (start + member.len()) as u32 });
    }

    /// Changes the score of the member at `at`, which must not change its position.
    #[inline]
    pub(super) fn set_score(&mut self, at: usize, score: f64) {
        self.scores[at] = score;
    }

    /// Removes the members with the indexes `range`.
    pub(super) fn remove(&mut self, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (start, end) = (self.start(range.start), self.marks[range.end - 1].end as usize);
        self.bytes.drain(start..end);
        self.scores.drain(range.clone());
        self.marks.drain(range.clone());
        for mark in &mut self.marks[range.start..] {
            mark.end -= (end - start) as u32;
        }
        // A leaf with few remaining members frees memory.
        if self.scores.len() * 4 < self.scores.capacity() {
            self.fit();
        }
    }

    fn fit(&mut self) {
        self.scores.shrink_to(self.len() + 2);
        self.marks.shrink_to(self.len() + 2);
        self.bytes.shrink_to(self.bytes.len() + 16);
    }

    /// Returns the index at which to split the leaf into halves of about the same size.
    pub(super) fn middle(&self) -> usize {
        let weight = |at: usize| self.start(at) * LEAF_LEN_MAX / LEAF_BYTES_MAX + at;
        let half = (self.bytes.len() * LEAF_LEN_MAX / LEAF_BYTES_MAX + self.len()) / 2;
        let (mut low, mut high) = (1, self.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if weight(middle) < half {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Splits the leaf at `at`, and returns the second part.
    pub(super) fn split_off(&mut self, at: usize) -> Leaf {
        let start = self.start(at);
        let mut right = Leaf::default();
        room_for(&mut right.scores, self.len() - at);
        room_for(&mut right.marks, self.len() - at);
        room_for(&mut right.bytes, self.bytes.len() - start);
        right.bytes.extend_from_slice(&self.bytes[start..]);
        right.scores.extend_from_slice(&self.scores[at..]);
        let moved = self.marks[at..].iter();
        right.marks.extend(moved.map(|mark| Mark { end: mark.end - start as u32, ..*mark }));
        self.scores.truncate(at);
        self.marks.truncate(at);
        self.bytes.truncate(start);
        self.fit();
        right
    }

    /// Returns true if the leaf is too small to stand alone.
    pub(super) fn is_sparse(&self) -> bool {
        self.len() < SPARSE_LEN && self.bytes.len() < SPARSE_BYTES
    }

    /// Returns true if the two leaves together fit into one, with room to grow.
    pub(super) fn can_join(&self, other: &Leaf) -> bool {
        self.len() + other.len() <= LEAF_LEN_MAX * 3 / 4
            && self.bytes.len() + other.bytes.len() <= LEAF_BYTES_MAX * 3 / 4
    }

    /// Appends the members of `other`, all of which come after those of this leaf.
    pub(super) fn append(&mut self, other: &Leaf) {
        let start = self.bytes.len() as u32;
        room_for(&mut self.scores, other.len());
        room_for(&mut self.marks, other.len());
        room_for(&mut self.bytes, other.bytes.len());
        self.bytes.extend_from_slice(&other.bytes);
        self.scores.extend_from_slice(&other.scores);
        self.marks.extend(other.marks.iter().map(|mark| Mark { end: mark.end + start, ..*mark }));
    }

    /// Returns the size of the three allocations in bytes.
    pub(super) fn allocated_bytes(&self) -> usize {
        let marks = self.marks.capacity() * size_of::<Mark>();
        self.scores.capacity() * size_of::<f64>() + marks + self.bytes.capacity()
    }

    /// Panics unless offsets ascend to the arena's end.
    pub(super) fn check(&self) {
        assert_eq!(self.scores.len(), self.marks.len());
        assert!(self.marks.is_sorted_by_key(|mark| mark.end), "offsets ascend");
        assert_eq!(self.marks.last().map_or(0, |mark| mark.end as usize), self.bytes.len());
        assert!(self.len() <= LEAF_LEN_MAX);
    }
}
