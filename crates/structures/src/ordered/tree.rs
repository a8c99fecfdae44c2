//! The inner nodes: the leaves in order, and the number of members below each slot.

use super::index::{Entry, Index};
use super::leaf::Leaf;
use super::room_for;
use super::table::{LeafId, Leaves};
use crate::prefetch::prefetch_slice;
use crate::shared::Shared;
use std::cmp::Ordering;

/// Maximum number of slots in an inner node.
const SLOTS_MAX: usize = 64;
/// A node with fewer slots is joined with a neighbor if the two fit well into one.
const SLOTS_SPARSE: usize = SLOTS_MAX / 4;
/// Number of cache lines that the scores of a full node may span.
const SCORE_LINES: usize = SLOTS_MAX * size_of::<f64>() / 64 + 1;

/// The first bytes of a member, as numbers that sort like the members. If two prefixes are equal,
/// the remaining bytes decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Prefix([u64; 3]);

impl PartialOrd for Prefix {
    #[inline]
    fn partial_cmp(&self, other: &Prefix) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Prefix {
    /// Like the comparison of arrays, but with three comparisons instead of a loop.
    #[inline]
    fn cmp(&self, other: &Prefix) -> Ordering {
        let ([a, b, c], [x, y, z]) = (&self.0, &other.0);
        a.cmp(x).then_with(|| b.cmp(y)).then_with(|| c.cmp(z))
    }
}

impl Prefix {
    #[inline]
    pub(super) fn of(member: &[u8]) -> Prefix {
        let mut bytes = [0; 24];
        let len = member.len().min(bytes.len());
        bytes[..len].copy_from_slice(&member[..len]);
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Prefix(words)
    }
}

/// The data that an inner node stores about one child, except the score of the child's first
/// member.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The first bytes of the first member. Without them, a search among many equal scores would
    /// read three cache lines of a leaf for each slot that it looks at.
    prefix: Prefix,
    /// Number of members below the child.
    len: usize,
    /// The child's first leaf; on the lowest level, the child itself.
    first: LeafId,
}

/// One slot for each child, in order. Scores are stored separately because searches read them
/// first, and usually nothing else.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// The score of the first member below each slot.
    scores: Vec<f64>,
    slots: Vec<Slot>,
    /// One child for each slot; empty on the lowest level, where children are leaves.
    children: Vec<Shared<Node>>,
}

/// The leaves and the index, which must be updated when members are added, removed or moved.
pub(super) struct Parts<'a> {
    pub(super) leaves: &'a mut Leaves,
    pub(super) index: &'a mut Index,
}

/// A member to add.
#[derive(Clone, Copy)]
pub(super) struct New<'a> {
    pub(super) score: f64,
    pub(super) hash: u32,
    pub(super) prefix: Prefix,
    pub(super) member: &'a [u8],
}

/// The first member to remove.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// The member with this score; its index in its leaf is known.
    Member(f64, Prefix, &'a [u8], usize),
    Rank(usize),
}

/// A member whose bytes are looked up only if they decide a comparison.
pub struct Lazy<'a> {
    leaves: &'a Leaves,
    leaf: LeafId,
    at: usize,
}

impl<'a> Lazy<'a> {
    pub fn bytes(&self) -> &'a [u8] {
        self.leaves.get(self.leaf).member(self.at)
    }
}

/// A slot with its score.
#[derive(Clone, Copy)]
struct Whole {
    score: f64,
    slot: Slot,
}

impl Whole {
    fn of_leaf(id: LeafId, leaf: &Leaf) -> Whole {
        let prefix = Prefix::of(leaf.member(0));
        Whole { score: leaf.score(0), slot: Slot { prefix, len: leaf.len(), first: id } }
    }

    fn of_node(node: &Node) -> Whole {
        Whole { score: node.scores[0], slot: Slot { len: node.len(), ..node.slots[0] } }
    }
}

impl Node {
    fn add_slot(&mut self, at: usize, whole: Whole) {
        room_for(&mut self.scores, 1);
        room_for(&mut self.slots, 1);
        self.scores.insert(at, whole.score);
        self.slots.insert(at, whole.slot);
    }

    fn set_slot(&mut self, at: usize, whole: Whole) {
        self.scores[at] = whole.score;
        self.slots[at] = whole.slot;
    }

    fn remove_slot(&mut self, at: usize) -> Slot {
        self.scores.remove(at);
        self.slots.remove(at)
    }

    /// Returns the number of members below this node. O(slots).
    fn len(&self) -> usize {
        self.slots.iter().map(|slot| slot.len).sum()
    }

    pub(super) fn is_lowest(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns the slot of (`score`, `member`).
    #[inline]
    fn locate(&self, leaves: &Leaves, score: f64, prefix: Prefix, member: &[u8]) -> usize {
        self.locate_by(score, prefix, |slot| leaves.get(slot.first).member(0) <= member)
    }

    /// Like `locate`, but calls `not_after` for slots with exactly this score and prefix.
    #[inline]
    fn locate_by(&self, score: f64, prefix: Prefix, not_after: impl Fn(&Slot) -> bool) -> usize {
        // If many members have the same score, some nodes contain no other score.
        let only = self.scores.first() == Some(&score) && self.scores.last() == Some(&score);
        let (lower, same) = if only {
            (0, self.scores.len())
        } else {
            let lower = self.scores.partition_point(|other| *other < score);
            if self.scores.get(lower) != Some(&score) {
                return lower.saturating_sub(1);
            }
            (lower, self.scores[lower..].partition_point(|other| *other == score))
        };
        let ties = &self.slots[lower..lower + same];
        let before = ties.partition_point(|slot| match slot.prefix.cmp(&prefix) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => not_after(slot),
        });
        (lower + before).saturating_sub(1)
    }

    /// Returns the child for a member with this score and prefix; on the lowest level, the leaf.
    /// This is a guess, because no leaf is read.
    #[inline]
    pub(super) fn near(&self, score: f64, prefix: Prefix) -> Result<&Node, Option<LeafId>> {
        let at = self.locate_by(score, prefix, |_| true);
        match self.children.get(at) {
            Some(child) => Ok(child),
            None => Err(self.slots.get(at).map(|slot| slot.first)),
        }
    }

    /// Prefetches the memory that [`Node::near`] reads first.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_slice(&self.scores, SCORE_LINES);
    }

    /// Returns the slot of the member with this rank, and the rank within the slot.
    #[inline]
    fn locate_rank(&self, mut rank: usize) -> (usize, usize) {
        for (i, slot) in self.slots.iter().enumerate() {
            if rank < slot.len {
                return (i, rank);
            }
            rank -= slot.len;
        }
        unreachable!("ranks are below the number of members")
    }

    /// Returns the leaf of the member with this rank, and its index in the leaf.
    #[inline]
    pub(super) fn at_rank(&self, rank: usize) -> (LeafId, usize) {
        let mut node = self;
        let mut rank = rank;
        loop {
            let (i, within) = node.locate_rank(rank);
            match node.children.get(i) {
                Some(child) => (node, rank) = (child, within),
                None => return (node.slots[i].first, within),
            }
        }
    }

    /// Returns how many members precede (`score`, `member`).
    #[inline]
    pub(super) fn rank(&self, leaves: &Leaves, score: f64, member: &[u8]) -> usize {
        let mut node = self;
        let mut rank = 0;
        let prefix = Prefix::of(member);
        while !node.slots.is_empty() {
            let i = node.locate(leaves, score, prefix, member);
            rank += node.slots[..i].iter().map(|slot| slot.len).sum::<usize>();
            match node.children.get(i) {
                Some(child) => node = child,
                None => return rank + leaves.get(node.slots[i].first).place(score, member).0,
            }
        }
        rank
    }

    /// Returns how many members at the front satisfy `before`, which must be false for all members
    /// after them.
    pub(super) fn partition(
        &self,
        leaves: &Leaves,
        before: &impl Fn(f64, Lazy<'_>) -> bool,
    ) -> usize {
        let mut node = self;
        let mut rank = 0;
        while !node.slots.is_empty() {
            let (mut low, mut high) = (0, node.slots.len());
            while low < high {
                let at = low.midpoint(high);
                if before(node.scores[at], Lazy { leaves, leaf: node.slots[at].first, at: 0 }) {
                    low = at + 1;
                } else {
                    high = at;
                }
            }
            let Some(i) = low.checked_sub(1) else { return rank };
            rank += node.slots[..i].iter().map(|slot| slot.len).sum::<usize>();
            match node.children.get(i) {
                Some(child) => node = child,
                None => {
                    let id = node.slots[i].first;
                    let scores = leaves.get(id).scores();
                    let (mut low, mut high) = (0, scores.len());
                    while low < high {
                        let at = low.midpoint(high);
                        if before(scores[at], Lazy { leaves, leaf: id, at }) {
                            low = at + 1;
                        } else {
                            high = at;
                        }
                    }
                    return rank + low;
                }
            }
        }
        rank
    }

    /// Adds a member that does not exist; updates the index only for members that move. Returns the
    /// leaf of the new member, and the right part of this node if it was split.
    pub(super) fn insert(
        &mut self,
        parts: &mut Parts<'_>,
        new: &New<'_>,
    ) -> (LeafId, Option<Node>) {
        if self.slots.is_empty() {
            let mut leaf = Leaf::default();
            leaf.insert(0, new.score, new.hash, new.member);
            let first = parts.leaves.add(leaf);
            let slot = Slot { prefix: new.prefix, len: 1, first };
            self.add_slot(0, Whole { score: new.score, slot });
            return (first, None);
        }
        let i = self.locate(parts.leaves, new.score, new.prefix, new.member);
        let mut grown = None;
        let home = if self.is_lowest() {
            let (home, right, at) = self.insert_into_leaf(i, parts, new);
            if let Some(id) = right {
                self.add_slot(i + 1, Whole::of_leaf(id, parts.leaves.get(id)));
                grown = Some(i + 1);
            }
            let slot = &mut self.slots[i];
            slot.len = parts.leaves.get(slot.first).len();
            if at == 0 {
                slot.prefix = new.prefix;
                self.scores[i] = new.score;
            }
            home
        } else {
            let child = Shared::make_mut(&mut self.children[i]);
            let (home, right) = child.insert(parts, new);
            let len = self.slots[i].len + 1;
            self.slots[i] = Slot { len, ..child.slots[0] };
            self.scores[i] = child.scores[0];
            if let Some(right) = right {
                room_for(&mut self.children, 1);
                let moved = Whole::of_node(&right);
                self.slots[i].len -= moved.slot.len;
                self.add_slot(i + 1, moved);
                self.children.insert(i + 1, Shared::new(right));
                grown = Some(i + 1);
            }
            home
        };
        let full = self.slots.len() > SLOTS_MAX;
        (home, grown.filter(|_| full).map(|at| self.split(at)))
    }

    /// Returns the leaf of the new member, the new leaf after that of slot `i`, if any, and the
    /// index that the member would have without the split.
    fn insert_into_leaf(
        &mut self,
        i: usize,
        parts: &mut Parts<'_>,
        new: &New<'_>,
    ) -> (LeafId, Option<LeafId>, usize) {
        let id = self.slots[i].first;
        let leaf = parts.leaves.get_mut(id);
        let (at, exists) = leaf.place(new.score, new.member);
        debug_assert!(!exists);
        if leaf.has_room(new.member) {
            leaf.insert(at, new.score, new.hash, new.member);
            return (id, None, at);
        }
        // Members that are added in ascending order leave full leaves behind.
        let appending = at == leaf.len() && i + 1 == self.slots.len();
        let cut = if appending || leaf.len() == 1 { at } else { leaf.middle() };
        let mut right = leaf.split_off(cut);
        // Neither half may be empty; if `cut` were 0, the left one would be.
        let goes_right = at >= cut && cut > 0;
        if goes_right {
            right.insert(at - cut, new.score, new.hash, new.member);
        } else {
            leaf.insert(at, new.score, new.hash, new.member);
        }
        let right_id = parts.leaves.add(right);
        let own = goes_right.then(|| at - cut);
        for (moved, hash) in parts.leaves.get(right_id).hashes().enumerate() {
            if own != Some(moved) {
                parts.index.relocate(Entry { hash, leaf: id }, right_id);
            }
        }
        (if goes_right { right_id } else { id }, Some(right_id), at)
    }

    /// Splits off the right part and returns it. Slot `grown` is the newest.
    fn split(&mut self, grown: usize) -> Node {
        let appending = grown + 1 == self.slots.len();
        let cut = if appending { grown } else { self.slots.len() / 2 };
        let children = if self.is_lowest() { Vec::new() } else { self.children.split_off(cut) };
        Node { scores: self.scores.split_off(cut), slots: self.slots.split_off(cut), children }
    }

    /// Creates a root above the two parts of the old one.
    pub(super) fn above(left: Shared<Node>, right: Node) -> Node {
        let halves = [Whole::of_node(&left), Whole::of_node(&right)];
        Node {
            scores: halves.map(|half| half.score).to_vec(),
            slots: halves.map(|half| half.slot).to_vec(),
            children: vec![left, Shared::new(right)],
        }
    }

    /// Removes the member at `target` and at most `max - 1` members after it in the same leaf, also
    /// from the index if `forget`. Returns how many were removed.
    pub(super) fn remove(
        &mut self,
        parts: &mut Parts<'_>,
        target: Target<'_>,
        max: usize,
        forget: bool,
    ) -> usize {
        let (i, target) = match target {
            Target::Member(score, prefix, member, _) => {
                (self.locate(parts.leaves, score, prefix, member), target)
            }
            Target::Rank(rank) => {
                let (i, within) = self.locate_rank(rank);
                (i, Target::Rank(within))
            }
        };
        if self.is_lowest() {
            return self.remove_from_leaf(i, parts, target, max, forget);
        }
        let child = Shared::make_mut(&mut self.children[i]);
        let removed = child.remove(parts, target, max, forget);
        if child.slots.is_empty() {
            self.remove_slot(i);
            self.children.remove(i);
            return removed;
        }
        let len = self.slots[i].len - removed;
        self.slots[i] = Slot { len, ..child.slots[0] };
        self.scores[i] = child.scores[0];
        if child.slots.len() < SLOTS_SPARSE {
            self.join_nodes(i);
        }
        removed
    }

    fn remove_from_leaf(
        &mut self,
        i: usize,
        parts: &mut Parts<'_>,
        target: Target<'_>,
        max: usize,
        forget: bool,
    ) -> usize {
        let id = self.slots[i].first;
        let leaf = parts.leaves.get_mut(id);
        let (Target::Rank(at) | Target::Member(_, _, _, at)) = target;
        let end = leaf.len().min(at.saturating_add(max));
        if forget {
            for hash in leaf.hashes().take(end).skip(at) {
                parts.index.remove(Entry { hash, leaf: id });
            }
        }
        leaf.remove(at..end);
        if leaf.len() == 0 {
            parts.leaves.remove(id);
            self.remove_slot(i);
            return end - at;
        }
        if at == 0 {
            self.set_slot(i, Whole::of_leaf(id, leaf));
        } else {
            self.slots[i].len = leaf.len();
        }
        if leaf.is_sparse() {
            self.join_leaves(i, parts);
        }
        end - at
    }

    /// Joins the leaf of slot `i` with a neighbor if the two fit well into one.
    fn join_leaves(&mut self, i: usize, parts: &mut Parts<'_>) {
        let good = |left: usize| {
            let slots = self.slots.get(left..left + 2);
            slots.is_some_and(|pair| {
                parts.leaves.get(pair[0].first).can_join(parts.leaves.get(pair[1].first))
            })
        };
        let Some(left) = [Some(i), i.checked_sub(1)].into_iter().flatten().find(|l| good(*l))
        else {
            return;
        };
        let (into, from) = (self.slots[left].first, self.slots[left + 1].first);
        let removed = parts.leaves.remove(from);
        for hash in removed.hashes() {
            parts.index.relocate(Entry { hash, leaf: from }, into);
        }
        parts.leaves.get_mut(into).append(&removed);
        self.set_slot(left, Whole::of_leaf(into, parts.leaves.get(into)));
        self.remove_slot(left + 1);
    }

    /// Joins child `i` with a neighbor if the two fit well into one.
    fn join_nodes(&mut self, i: usize) {
        let good = |left: usize| {
            let pair = self.children.get(left..left + 2);
            pair.is_some_and(|pair| pair[0].slots.len() + pair[1].slots.len() <= SLOTS_MAX * 3 / 4)
        };
        let Some(left) = [Some(i), i.checked_sub(1)].into_iter().flatten().find(|l| good(*l))
        else {
            return;
        };
        let removed = self.children.remove(left + 1);
        let len = self.remove_slot(left + 1).len;
        self.slots[left].len += len;
        let into = Shared::make_mut(&mut self.children[left]);
        into.scores.extend_from_slice(&removed.scores);
        into.slots.extend_from_slice(&removed.slots);
        into.children.extend_from_slice(&removed.children);
    }

    /// Returns the only child if the root has just one and is therefore not needed.
    pub(super) fn only_child(&self) -> Option<Shared<Node>> {
        match &self.children[..] {
            [child] => Some(Shared::clone(child)),
            _ => None,
        }
    }

    /// Returns the memory usage of the nodes in bytes. O(nodes).
    pub(super) fn allocated_bytes(&self) -> usize {
        2 * size_of::<usize>()
            + size_of::<Node>()
            + self.scores.capacity() * size_of::<f64>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.children.capacity() * size_of::<usize>()
            + self.children.iter().map(|child| child.allocated_bytes()).sum::<usize>()
    }

    /// Panics unless the slots match their children and all leaves have the same depth. Visits the
    /// leaves in order, and returns the height.
    pub(super) fn check(&self, leaves: &Leaves, visit: &mut impl FnMut(LeafId)) -> usize {
        assert!(self.slots.len() <= SLOTS_MAX);
        assert_eq!(self.scores.len(), self.slots.len());
        if self.is_lowest() {
            for (slot, score) in self.slots.iter().zip(&self.scores) {
                let leaf = leaves.get(slot.first);
                leaf.check();
                assert!(leaf.len() > 0 && leaf.len() == slot.len);
                assert!(leaf.score(0) == *score);
                assert_eq!(slot.prefix, Prefix::of(leaf.member(0)));
                visit(slot.first);
            }
            return 0;
        }
        assert_eq!(self.slots.len(), self.children.len());
        let slots = self.slots.iter().zip(&self.scores);
        let mut heights = slots.zip(&self.children).map(|((slot, score), child)| {
            assert!(!child.slots.is_empty());
            let height = child.check(leaves, visit);
            let truth = Whole::of_node(child);
            assert!(truth.score == *score && truth.slot.prefix == slot.prefix);
            assert_eq!((truth.slot.len, truth.slot.first), (slot.len, slot.first));
            height
        });
        let height = heights.next().expect("an inner node has children");
        assert!(heights.all(|other| other == height), "all leaves are equally deep");
        height + 1
    }
}
