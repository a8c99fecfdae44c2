//! Members ordered by score: a B+tree with ranks, and an index from member to leaf.
//!
//! ```text
//!  root: slots (first score and bytes, members, leaf) ------ index: trie over the member's hash
//!        |            |                                          |
//!      inner        inner      ... (up to 64 slots each)      segments of (hash 32, leaf 32)
//!      |   |        |    |                                       |
//!  leaves, by number in a table of chunks: <------------------- leaf number
//!  +------------+-------------------+----------------------+
//!  | scores f64 | hash u32, end u32 | bytes of the members |   three allocations per leaf
//!  +------------+-------------------+----------------------+
//! ```
//!
//! A member is stored once, in its leaf, next to its neighbors, so walking a range reads memory in
//! order. For each member, the index stores only its hash and its leaf's number (8 bytes). A split
//! or join corrects the index entries of the members that move, with at most 48 lookups, amortised
//! over as many insertions or removals.
//!
//! Alternatives: an index of (hash, score) would not need these corrections, but SCAN could not use
//! it to find the member of a hash among many members with the same score. If the members were in
//! an arena and the leaves contained only their numbers, every range would be a walk through
//! scattered memory.
//!
//! Chunks of 16 leaves, inner nodes and index segments are `Shared`: a write copies those that a
//! clone shares. A clone increments three counters and shares everything. The first write after a
//! clone copies one pointer per 16 leaves, and the nodes on the path to the change.
//!
//! Costs: score of a member O(1) (a hash, a short walk in a segment, a scan of a leaf); insert,
//! remove, rank and bounds O(log n) with at most one split or join per level. No step touches more
//! than a few leaves, segments of at most 256 entries and table chunks of 16 leaves. Memory for
//! 1,000 members of 10 bytes: 38 bytes per member if they are added in order, otherwise 41.
//!
//! Invariants (`check` verifies each)
//!  1. Members ascend by (score, bytes) over all leaves; no member occurs twice; no score is NaN.
//!  2. A slot has the score, the first bytes and the leaf of the first member below it, and the
//!     number of all members below it.
//!  3. Only the root may be empty; all leaves are at the same depth.
//!  4. The index has exactly one entry per member: its hash and the leaf that holds it. Segments
//!     are sorted by hash, and contain only entries that belong under their path.
//!  5. A leaf has at most 64 members and, if it can be split, at most 4 KiB of them.

mod index;
mod leaf;
mod prefetch;
mod table;
mod tree;

pub use tree::Lazy;

use crate::entry::size_class;
use crate::hash::HashKey;
use crate::shared::Shared;
use index::{Entry, Index};
use leaf::Leaf;
use std::ops::Range;
use table::{LeafId, Leaves};
use tree::{New, Node, Parts, Prefix, Target};

/// Maximum length of a member in bytes: a leaf holds up to three members that cannot be split, and
/// counts their bytes in 32 bits.
pub const MEMBER_BYTES_MAX: usize = 1 << 30;

/// Makes room for `extra` elements, and for as many more as fit in the allocation's size class.
pub(in crate::ordered) fn room_for<T>(vector: &mut Vec<T>, extra: usize) {
    let wanted = vector.len() + extra;
    if wanted > vector.capacity() {
        let bytes = size_class(wanted * size_of::<T>());
        vector.reserve_exact(bytes / size_of::<T>() - vector.len());
    }
}

/// A set of members with scores, in order.
#[derive(Debug, Clone)]
pub struct Ordered {
    hash_key: HashKey,
    len: usize,
    root: Shared<Node>,
    leaves: Leaves,
    index: Index,
}

impl Ordered {
    /// Creates an empty set. `hash_key` prevents clients from choosing members that collide.
    #[must_use]
    pub fn new(hash_key: HashKey) -> Ordered {
        Ordered {
            hash_key,
            len: 0,
            root: Shared::default(),
            leaves: Leaves::default(),
            index: Index::default(),
        }
    }

    /// Returns true if one is an unchanged clone of the other. O(1).
    #[must_use]
    pub fn is_same(&self, other: &Ordered) -> bool {
        Shared::ptr_eq(&self.root, &other.root) && self.leaves.is_same(&other.leaves)
    }

    /// Returns the number of members.
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
    fn hash(&self, member: &[u8]) -> u32 {
        (self.hash_key.hash(member) >> 32) as u32
    }

    #[inline]
    fn find(&self, hash: u32, member: &[u8]) -> Option<(LeafId, usize)> {
        self.index
            .find(hash)
            .find_map(|id| self.leaves.get(id).find(hash, member).map(|at| (id, at)))
    }

    /// Returns the member's score. O(1).
    #[inline]
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        let (id, at) = self.find(self.hash(member), member)?;
        Some(self.leaves.get(id).score(at))
    }

    /// Returns the member's rank and its score. O(log n).
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        Some((self.root.rank(&self.leaves, score, member), score))
    }

    /// Adds `member`, or changes its score. Returns the old score if the member existed. O(log n).
    ///
    /// # Panics
    /// If the score is not a number, or the member is longer than [`MEMBER_BYTES_MAX`].
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        assert!(!score.is_nan() && member.len() <= MEMBER_BYTES_MAX);
        let hash = self.hash(member);
        let new = New { score, hash, prefix: Prefix::of(member), member };
        let Some((id, at)) = self.find(hash, member) else {
            let leaf = self.add(&new);
            self.index.insert(Entry { hash, leaf });
            self.len += 1;
            return None;
        };
        let leaf = self.leaves.get(id);
        let old = leaf.score(at);
        if old == score {
            return Some(old);
        }
        // If the member stays between its neighbors in the middle of a leaf, nothing else changes.
        let scores = leaf.scores();
        let inside = at > 0 && at + 1 < scores.len();
        if inside && scores[at - 1] < score && score < scores[at + 1] {
            self.leaves.get_mut(id).set_score(at, score);
        } else {
            self.take_out(Target::Member(old, new.prefix, member, at), 1, false);
            let leaf = self.add(&new);
            if leaf != id {
                self.index.relocate(Entry { hash, leaf: id }, leaf);
            }
        }
        Some(old)
    }

    fn add(&mut self, new: &New<'_>) -> LeafId {
        let mut parts = Parts { leaves: &mut self.leaves, index: &mut self.index };
        let (leaf, right) = Shared::make_mut(&mut self.root).insert(&mut parts, new);
        if let Some(right) = right {
            let left = std::mem::take(&mut self.root);
            self.root = Shared::new(Node::above(left, right));
        }
        leaf
    }

    fn take_out(&mut self, target: Target<'_>, max: usize, forget: bool) -> usize {
        let mut parts = Parts { leaves: &mut self.leaves, index: &mut self.index };
        let removed = Shared::make_mut(&mut self.root).remove(&mut parts, target, max, forget);
        while let Some(child) = self.root.only_child() {
            self.root = child;
        }
        removed
    }

    /// Removes `member`, and returns its score if it existed. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (id, at) = self.find(self.hash(member), member)?;
        let score = self.leaves.get(id).score(at);
        self.take_out(Target::Member(score, Prefix::of(member), member, at), 1, true);
        self.len -= 1;
        Some(score)
    }

    /// Removes the members with these ranks. O(log n) per affected leaf.
    ///
    /// # Panics
    /// If the range ends beyond the last member.
    pub fn remove_range(&mut self, ranks: Range<usize>) {
        assert!(ranks.end <= self.len);
        if ranks == (0..self.len) {
            *self = Ordered::new(self.hash_key);
            return;
        }
        let mut left = ranks.len();
        while left > 0 {
            let removed = self.take_out(Target::Rank(ranks.start), left, true);
            left -= removed;
            self.len -= removed;
        }
    }

    /// Returns the member with rank `rank` and its score. O(log n).
    #[must_use]
    pub fn by_rank(&self, rank: usize) -> Option<(&[u8], f64)> {
        if rank >= self.len {
            return None;
        }
        let (id, at) = self.root.at_rank(rank);
        let leaf = self.leaves.get(id);
        Some((leaf.member(at), leaf.score(at)))
    }

    /// Returns the number of members at the front for which `before(score, member)` is true.
    /// `before` must be false for all members after them. This turns bounds into ranks. O(log n).
    pub fn partition(&self, before: impl Fn(f64, Lazy<'_>) -> bool) -> usize {
        self.root.partition(&self.leaves, &before)
    }

    /// Returns how many members have a score less than `score`, or also equal to it if `or_equal`.
    /// O(log n).
    #[must_use]
    pub fn count_below(&self, score: f64, or_equal: bool) -> usize {
        self.partition(|other, _| if or_equal { other <= score } else { other < score })
    }

    /// Returns the members with these ranks, from either end. O(log n) per leaf.
    ///
    /// # Panics
    /// If the range ends beyond the last member.
    #[must_use]
    pub fn range(&self, ranks: Range<usize>) -> Members<'_> {
        assert!(ranks.end <= self.len);
        Members { set: self, ranks, front: None, back: None }
    }

    /// Returns the members with these ranks, leaf by leaf.
    ///
    /// # Panics
    /// If the range ends beyond the last member.
    pub fn runs(&self, mut ranks: Range<usize>) -> impl Iterator<Item = Run<'_>> {
        assert!(ranks.end <= self.len);
        std::iter::from_fn(move || {
            if ranks.is_empty() {
                return None;
            }
            let (id, first) = self.root.at_rank(ranks.start);
            let leaf = self.leaves.get(id);
            let end = leaf.len().min(first + ranks.len());
            ranks.start += end - first;
            Some(Run { leaf, members: first..end })
        })
    }

    /// Returns all members in order.
    #[must_use]
    pub fn iter(&self) -> Members<'_> {
        self.range(0..self.len)
    }

    /// Visits about `count` members, in an order that does not change while others are added or
    /// removed. Returns the cursor to continue with; 0 both starts and ends a scan. A member that
    /// exists during the whole scan is visited at least once, even if its score changes. O(count).
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        let Ok(from) = u32::try_from(cursor) else { return 0 };
        let mut seen = 0;
        let mut last = None;
        let mut next = 0;
        self.index.walk(from, |entry| {
            if seen >= count && last.is_some_and(|last: Entry| last.hash != entry.hash) {
                next = u64::from(entry.hash);
                return false;
            }
            // Equal entries are visited once, since they lead to the same members.
            if last.replace(entry) == Some(entry) {
                return true;
            }
            let leaf = self.leaves.get(entry.leaf);
            for (at, hash) in leaf.hashes().enumerate() {
                if hash == entry.hash {
                    visit(leaf.member(at), leaf.score(at));
                    seen += 1;
                }
            }
            true
        });
        next
    }

    /// Returns the total size of all allocations in bytes. O(n / 64).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.root.allocated_bytes() + self.leaves.allocated_bytes() + self.index.allocated_bytes()
    }

    /// Verifies the invariants listed at the top of this file.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        let mut order = Vec::new();
        self.root.check(&self.leaves, &mut |id| order.push(id));
        let mut members = 0;
        let mut last: Option<(f64, &[u8])> = None;
        for &id in &order {
            let leaf = self.leaves.get(id);
            assert!(leaf.len() <= 3 || leaf.bytes_len() <= 2 * leaf::LEAF_BYTES_MAX);
            for (at, hash) in leaf.hashes().enumerate() {
                let (score, member) = (leaf.score(at), leaf.member(at));
                assert!(!score.is_nan());
                if let Some((last_score, before)) = last {
                    assert!(last_score < score || last_score == score && before < member);
                }
                last = Some((score, member));
                assert_eq!(hash, self.hash(member));
                assert_eq!(self.find(hash, member), Some((id, at)));
                members += 1;
            }
        }
        assert_eq!(members, self.len);
        assert_eq!(self.leaves.iter().count(), order.len(), "no leaf is lost");
        assert_eq!(self.index.check(), self.len);
    }
}

/// Neighboring members in one leaf. See [`Ordered::runs`].
#[derive(Debug, Clone)]
pub struct Run<'a> {
    leaf: &'a Leaf,
    members: Range<usize>,
}

impl<'a> Run<'a> {
    /// Returns the scores of the run's members.
    #[inline]
    #[must_use]
    pub fn scores(&self) -> &'a [f64] {
        &self.leaf.scores()[self.members.clone()]
    }

    /// Returns member `at` of the run.
    #[inline]
    #[must_use]
    pub fn member(&self, at: usize) -> &'a [u8] {
        self.leaf.member(self.members.start + at)
    }
}

/// Neighboring members with their scores. See [`Ordered::range`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    set: &'a Ordered,
    /// The ranks that are still to come.
    ranks: Range<usize>,
    /// The leaf of the next member at this end, and its index there.
    front: Option<(&'a Leaf, usize)>,
    /// The leaf of the last member at this end, and how many of its members are still to come.
    back: Option<(&'a Leaf, usize)>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<(&'a [u8], f64)> {
        if self.ranks.is_empty() {
            return None;
        }
        let (leaf, at) = match self.front {
            Some((leaf, at)) if at < leaf.len() => (leaf, at),
            _ => {
                let (id, at) = self.set.root.at_rank(self.ranks.start);
                (self.set.leaves.get(id), at)
            }
        };
        self.front = Some((leaf, at + 1));
        self.ranks.start += 1;
        Some((leaf.member(at), leaf.score(at)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranks.size_hint()
    }
}

impl DoubleEndedIterator for Members<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ranks.is_empty() {
            return None;
        }
        let (leaf, at) = match self.back {
            Some((leaf, left)) if left > 0 => (leaf, left - 1),
            _ => {
                let (id, at) = self.set.root.at_rank(self.ranks.end - 1);
                (self.set.leaves.get(id), at)
            }
        };
        self.back = Some((leaf, at));
        self.ranks.end -= 1;
        Some((leaf.member(at), leaf.score(at)))
    }
}

impl ExactSizeIterator for Members<'_> {}

#[cfg(test)]
mod tests;
