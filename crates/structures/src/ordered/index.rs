//! The index: maps a member's hash to the leaf that contains the member.
//!
//! The index is a trie over 32 hash bits, four at a time. Its segments are arrays of (hash, leaf)
//! in hash order. Hashes are evenly distributed, so a lookup begins at the expected position and
//! walks the few entries to the real one. SCAN also walks in hash order, which neither growing nor
//! shrinking changes. Members with the same hash have one entry each; the entries are equal if the
//! members share a leaf.

use super::room_for;
use super::table::LeafId;
use crate::prefetch::prefetch;
use crate::shared::Shared;

/// Maximum number of entries in a segment, unless all hash bits are used up.
const SEGMENT_LEN_MAX: usize = 256;
/// A branch with at most this many entries below it becomes a segment again.
const COLLAPSE_LEN: usize = 64;
/// Number of hash bits that a branch uses, and its number of children.
const BITS: u32 = 4;
const FANOUT: usize = 1 << BITS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) hash: u32,
    pub(super) leaf: LeafId,
}

#[derive(Debug, Clone)]
enum Node {
    Segment(Shared<Vec<Entry>>),
    Branch(Shared<Branch>),
}

#[derive(Debug, Clone)]
struct Branch {
    /// Number of entries below this branch.
    len: usize,
    children: [Node; FANOUT],
}

/// The whole index. Clones share everything.
#[derive(Debug, Clone)]
pub(super) struct Index(Node);

impl Default for Index {
    fn default() -> Index {
        Index(Node::Segment(Shared::default()))
    }
}

/// Returns the child of a branch that is `depth` levels below the root.
#[inline]
fn child_of(hash: u32, depth: u32) -> usize {
    (hash << (depth * BITS) >> (32 - BITS)) as usize
}

/// Returns the position that `hash` would have in a segment `depth` levels below the root if the
/// hashes were distributed perfectly evenly.
#[inline]
fn start(segment: &[Entry], hash: u32, depth: u32) -> usize {
    let below = u64::from(hash.checked_shl(depth * BITS).unwrap_or(0));
    ((below * segment.len() as u64) >> 32) as usize
}

/// Returns the position of the first entry whose hash is at least `hash`, in a segment `depth`
/// levels below the root.
#[inline]
fn seek(segment: &[Entry], hash: u32, depth: u32) -> usize {
    let mut at = start(segment, hash, depth);
    while at > 0 && segment[at - 1].hash >= hash {
        at -= 1;
    }
    while at < segment.len() && segment[at].hash < hash {
        at += 1;
    }
    at
}

impl Index {
    /// Returns the segment for entries with this hash, and its level below the root. Reads only the
    /// branches above it.
    #[inline]
    pub(super) fn segment_of(&self, hash: u32) -> (&Vec<Entry>, u32) {
        let mut node = &self.0;
        let mut depth = 0;
        loop {
            match node {
                Node::Segment(segment) => return (segment, depth),
                Node::Branch(branch) => {
                    node = &branch.children[child_of(hash, depth)];
                    depth += 1;
                }
            }
        }
    }

    /// Prefetches the part of the segment of `hash` where a search begins.
    #[inline]
    pub(super) fn prefetch(&self, hash: u32) {
        let (segment, depth) = self.segment_of(hash);
        prefetch(segment.as_ptr().wrapping_add(start(segment, hash, depth)));
    }

    /// Returns the leaves of all members with this hash.
    #[inline]
    pub(super) fn find(&self, hash: u32) -> impl Iterator<Item = LeafId> {
        let (segment, depth) = self.segment_of(hash);
        let at = seek(segment, hash, depth);
        segment[at..].iter().take_while(move |entry| entry.hash == hash).map(|entry| entry.leaf)
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, entry: Entry) {
        let mut node = &mut self.0;
        let mut depth = 0;
        loop {
            if let Node::Segment(segment) = &*node
                && segment.len() >= SEGMENT_LEN_MAX
                && depth < 32 / BITS
            {
                *node = divide(segment, depth);
            }
            match node {
                Node::Segment(segment) => {
                    let segment = Shared::make_mut(segment);
                    let at = seek(segment, entry.hash, depth);
                    room_for(segment, 1);
                    return segment.insert(at, entry);
                }
                Node::Branch(branch) => {
                    let branch = Shared::make_mut(branch);
                    branch.len += 1;
                    node = &mut branch.children[child_of(entry.hash, depth)];
                    depth += 1;
                }
            }
        }
    }

    /// Removes an entry, which must exist.
    pub(super) fn remove(&mut self, entry: Entry) {
        let mut node = &mut self.0;
        let mut depth = 0;
        loop {
            if let Node::Branch(branch) = &*node
                && branch.len <= COLLAPSE_LEN
            {
                let mut all = Vec::new();
                room_for(&mut all, branch.len);
                gather(node, &mut all);
                *node = Node::Segment(Shared::new(all));
            }
            match node {
                Node::Segment(segment) => {
                    let segment = Shared::make_mut(segment);
                    let at = position(segment, entry, depth);
                    segment.remove(at);
                    if segment.len() * 2 < segment.capacity() {
                        segment.shrink_to(segment.len() + 8);
                    }
                    return;
                }
                Node::Branch(branch) => {
                    let branch = Shared::make_mut(branch);
                    branch.len -= 1;
                    node = &mut branch.children[child_of(entry.hash, depth)];
                    depth += 1;
                }
            }
        }
    }

    /// Records that the member of an entry, which must exist, has moved to leaf `to`.
    pub(super) fn relocate(&mut self, entry: Entry, to: LeafId) {
        let mut node = &mut self.0;
        let mut depth = 0;
        loop {
            match node {
                Node::Segment(segment) => {
                    let segment = Shared::make_mut(segment);
                    let at = position(segment, entry, depth);
                    segment[at].leaf = to;
                    return;
                }
                Node::Branch(branch) => {
                    node = &mut Shared::make_mut(branch).children[child_of(entry.hash, depth)];
                    depth += 1;
                }
            }
        }
    }

    /// Visits entries in hash order, from `from` on, until `visit` returns false.
    pub(super) fn walk(&self, from: u32, mut visit: impl FnMut(Entry) -> bool) {
        walk(&self.0, from, 0, &mut visit);
    }

    /// Returns the memory usage of all nodes in bytes. O(nodes).
    pub(super) fn allocated_bytes(&self) -> usize {
        allocated(&self.0)
    }

    /// Panics unless entries are in order at the positions of their hashes. Returns their number.
    pub(super) fn check(&self) -> usize {
        check(&self.0, 0, 0)
    }
}

fn position(segment: &[Entry], entry: Entry, depth: u32) -> usize {
    let from = seek(segment, entry.hash, depth);
    let same = segment[from..].iter().position(|other| *other == entry);
    from + same.expect("every member of a leaf has its entry in the index")
}

/// Returns a branch with the entries of a full segment.
fn divide(segment: &[Entry], depth: u32) -> Node {
    let mut rest = segment;
    let children = std::array::from_fn(|child| {
        let here = rest.partition_point(|entry| child_of(entry.hash, depth) <= child);
        let (these, others) = rest.split_at(here);
        rest = others;
        let mut part = Vec::new();
        room_for(&mut part, these.len() + 1);
        part.extend_from_slice(these);
        Node::Segment(Shared::new(part))
    });
    Node::Branch(Shared::new(Branch { len: segment.len(), children }))
}

fn gather(node: &Node, all: &mut Vec<Entry>) {
    match node {
        Node::Segment(segment) => all.extend_from_slice(segment),
        Node::Branch(branch) => branch.children.iter().for_each(|child| gather(child, all)),
    }
}

fn walk(node: &Node, from: u32, depth: u32, visit: &mut impl FnMut(Entry) -> bool) -> bool {
    match node {
        Node::Segment(segment) => {
            let at = segment.partition_point(|entry| entry.hash < from);
            segment[at..].iter().all(|entry| visit(*entry))
        }
        Node::Branch(branch) => {
            let first = child_of(from, depth);
            let own = walk(&branch.children[first], from, depth + 1, visit);
            own && branch.children[first + 1..].iter().all(|child| walk(child, 0, depth + 1, visit))
        }
    }
}

fn allocated(node: &Node) -> usize {
    const ARC_BYTES: usize = 2 * size_of::<usize>();
    ARC_BYTES
        + match node {
            Node::Segment(segment) => {
                size_of::<Vec<Entry>>() + segment.capacity() * size_of::<Entry>()
            }
            Node::Branch(branch) => {
                size_of::<Branch>() + branch.children.iter().map(allocated).sum::<usize>()
            }
        }
}

fn check(node: &Node, prefix: u32, depth: u32) -> usize {
    match node {
        Node::Segment(segment) => {
            assert!(segment.is_sorted_by_key(|entry| entry.hash));
            let low_bits = 32 - depth * BITS;
            let high = |hash: u32| hash.checked_shr(low_bits).unwrap_or(0);
            assert!(segment.iter().all(|entry| high(entry.hash) == prefix));
            segment.len()
        }
        Node::Branch(branch) => {
            let children = branch.children.iter().zip(0..);
            let len = children.map(|(child, i)| check(child, prefix << BITS | i, depth + 1)).sum();
            assert_eq!(branch.len, len);
            len
        }
    }
}
