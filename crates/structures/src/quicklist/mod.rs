//! Quicklist: a long list as a sequence of small listpacks, cheap to copy and to free in parts.
//!
//! ```text
//!  front                                                                    back
//! +----------+  +----------+  +--------------+  +------------+  +----------+
//! | listpack |  | listpack |  | LZF(listpack)|  | one large  |  | listpack |   nodes, in a
//! | a b c d  |  | e f      |  | g h i j k    |  |  element   |  | m n      |   `Sequence`
//! +----------+  +----------+  +--------------+  +------------+  +----------+
//!  \_ depth 2: the two nodes at each end are never compressed, those between are _/
//! ```
//! Node boundaries follow Redis, because they determine when a list converts back to one listpack.
//! A node takes elements until it exceeds its limit. A full node in the middle is split, and small
//! neighbors of the split are merged.
//!
//! A clone increments one counter. A change then copies the node and the branches that lead to it.
//!
//! Invariants (`check` verifies each)
//!  1. The invariants of the sequence and of each listpack hold; no node is empty.
//!  2. A compressed node has at least `compress_depth` nodes before it and after it. With depth 0,
//!     no node is compressed.
//!
//! Costs: push and pop amortised O(1) plus the depth of the tree, which is 4 for 16 million nodes;
//! index O(log nodes) plus a walk through one node; insert and delete as index, plus moving one
//! node's bytes.

mod insert;
mod node;
mod remove;
#[cfg(test)]
mod tests;

pub use node::NodeRef;
pub use remove::remove_matching;

use crate::listpack::{Item, ListPack, Pos};
use crate::sequence::{Part, Sequence};
use node::{Node, View};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum size in bytes of a node whose limit is a number of elements, as in Redis.
const COUNTED_BYTES_MAX: usize = 8192;

/// How nodes are filled and compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// If positive, the maximum number of elements per node (0 counts as 1). -1 to -5 limit a node
    /// to 4, 8, 16, 32 or 64 KiB.
    pub fill: i64,
    /// Number of nodes at each end that are not compressed; 0 compresses none.
    pub compress_depth: usize,
    /// Elements of at least this size in bytes have nodes of their own; 0 lets `fill` decide.
    pub plain_min: usize,
}

impl Options {
    /// Returns the maximum bytes and elements of a node. Only one of the two limits applies; the
    /// other is `usize::MAX`.
    #[must_use]
    pub fn node_limits(&self) -> (usize, usize) {
        match self.fill {
            0.. => (usize::MAX, usize::try_from(self.fill).unwrap_or(usize::MAX).max(1)),
            _ => (4096 << (self.fill.unsigned_abs().min(5) - 1), usize::MAX),
        }
    }

    /// Like [`Options::node_limits`], including the byte limit of a node whose elements are
    /// counted.
    #[inline]
    fn limits(&self) -> (usize, usize) {
        match self.node_limits() {
            (usize::MAX, count) => (COUNTED_BYTES_MAX, count),
            limits => limits,
        }
    }

    /// Returns true if a node of this size would be too large.
    #[inline]
    #[must_use]
    pub fn exceeded(&self, bytes: usize, elements: usize) -> bool {
        let (bytes_max, elements_max) = self.limits();
        bytes > bytes_max || elements > elements_max
    }

    /// Returns true if an element of `len` bytes has a node of its own.
    #[inline]
    #[must_use]
    pub fn is_large(&self, len: usize) -> bool {
        if self.plain_min == 0 { len > self.limits().0 } else { len >= self.plain_min }
    }

    /// Returns true if an element of `len` bytes may be added to a listpack of this size.
    #[inline]
    fn admit(&self, bytes: usize, elements: usize, len: usize) -> bool {
        // A generous estimate of an entry's overhead; Redis uses the same number.
        const ENTRY_OVERHEAD: usize = 8;
        !self.is_large(len) && !self.exceeded(bytes + len + ENTRY_OVERHEAD, elements + 1)
    }
}

/// An end of a list, or a direction: from that end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// A long list.
#[derive(Debug, Clone)]
pub struct QuickList {
    nodes: Sequence<Node>,
    options: Options,
}

impl QuickList {
    /// Creates an empty list.
    #[must_use]
    pub fn new(options: Options) -> QuickList {
        QuickList { nodes: Sequence::new(), options }
    }

    /// Returns true if one is an unchanged clone of the other. O(1).
    #[must_use]
    pub fn is_same(&self, other: &QuickList) -> bool {
        self.nodes.is_same(&other.nodes)
    }

    /// Creates a list with the elements of `list` as one node, regardless of its size.
    #[must_use]
    pub fn from_listpack(list: ListPack, options: Options) -> QuickList {
        let mut own = QuickList::new(options);
        own.append_listpack(list);
        own
    }

    /// Appends `list` as a whole node, the form in which dumps contain it. Does nothing if `list`
    /// is empty.
    pub fn append_listpack(&mut self, list: ListPack) {
        if !list.is_empty() {
            self.insert_node(self.nodes.parts(), Node::Packed(list));
        }
    }

    /// Appends one element in a node of its own.
    pub fn append_plain(&mut self, element: Vec<u8>) {
        self.insert_node(self.nodes.parts(), Node::Plain(Arc::new(element)));
    }

    /// Returns the options of the list.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Changes the minimum size of a large element, for elements that are added from now on.
    pub fn set_plain_min(&mut self, bytes: usize) {
        self.options.plain_min = bytes;
    }

    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.elements()
    }

    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.elements() == 0
    }

    /// Returns the nodes, as dumps write them.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeRef<'_>> {
        self.nodes.iter().map(|node| node.as_dumped())
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.parts()
    }

    /// Returns the node if there is exactly one and it is a listpack.
    #[must_use]
    pub fn single(&self) -> Option<&ListPack> {
        match (self.nodes.parts(), self.nodes.get(0).map(|node| &**node)) {
            (1, Some(Node::Packed(list))) => Some(list),
            _ => None,
        }
    }

    /// Returns the memory usage of the list in bytes, including parts that clones share. O(nodes).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(|node| node.allocated_bytes()).sum();
        self.nodes.allocated_bytes() + nodes
    }

    /// Adds an element at one end. Amortised O(length).
    pub fn push(&mut self, end: End, text: &[u8]) {
        let (front, options) = (end == End::Front, self.options);
        // Checked before the change, since changing a shared node copies it.
        if let Some(Node::Packed(list)) = self.nodes.end(front)
            && options.admit(list.bytes(), list.len(), text.len())
        {
            self.nodes.update_end(front, |node| match node {
                Node::Packed(list) => push(list, end, text),
                _ => unreachable!("it was a listpack"),
            });
            return;
        }
        let place = match end {
            End::Front => 0,
            End::Back => self.nodes.parts(),
        };
        self.insert_node(place, self.node_of(text));
    }

    /// Removes the element at one end after `visit` has seen it. Amortised O(1).
    pub fn pop<R>(&mut self, end: End, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let front = end == End::Front;
        if self.nodes.end(front)?.len() == 1 {
            let place = self.node_at(end);
            let result = self.nodes.get(place)?.view().with(0, visit);
            self.remove_node(place);
            return Some(result);
        }
        self.nodes.update_end(front, |node| {
            let list = node.packed_mut().expect("large elements are alone");
            let at = match end {
                End::Front => list.first(),
                End::Back => list.last(),
            };
            let at = at.expect("by 1 no node is empty");
            let result = visit(list.item(at));
            list.delete(at);
            result
        })
    }

    /// Calls `visit` with element `index`, if there is one.
    pub fn get<R>(&self, index: usize, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let (place, index) = self.nodes.locate(index)?;
        Some(self.nodes.get(place)?.view().with(index, visit))
    }

    /// Calls `visit` with the elements from `index` on and their indexes, in the direction from
    /// `end` to the other end, until `visit` breaks. O(log nodes + elements visited).
    pub fn walk<B>(
        &self,
        index: usize,
        end: End,
        mut visit: impl FnMut(usize, Item<'_>) -> ControlFlow<B>,
    ) -> Option<B> {
        let (mut place, within) = self.nodes.locate(index)?;
        let (mut index, mut within) = (index, Some(within));
        loop {
            let node = self.nodes.get(place)?;
            let mut seen = |item: Item<'_>| {
                let flow = visit(index, item);
                index = match end {
                    End::Front => index + 1,
                    End::Back => index.wrapping_sub(1), // not used after the last visit
                };
                flow
            };
            let flow = match node.view() {
                View::Plain(element) => seen(Item::Str(&element)),
                View::Packed(list) => walk_node(&list, within.take(), end, &mut seen),
            };
            if let ControlFlow::Break(result) = flow {
                return Some(result);
            }
            (place, within) = match end {
                End::Front => (place + 1, None),
                End::Back => (place.checked_sub(1)?, None),
            };
        }
    }

    /// Verifies the invariants. O(bytes).
    pub fn check(&self) {
        self.nodes.check(|node| {
            assert!(!node.is_empty(), "1: an empty node");
            if let View::Packed(list) = node.view() {
                list.check();
                assert_eq!(list.len(), node.len(), "1: the count of a compressed node");
            }
        });
        let (depth, count) = (self.options.compress_depth, self.nodes.parts());
        for (place, node) in self.nodes.iter().enumerate() {
            let inner = depth > 0 && place >= depth && count - place > depth;
            assert!(inner || !node.is_compressed(), "2: node {place} of {count}");
        }
    }

    fn node_at(&self, end: End) -> usize {
        match end {
            End::Front => 0,
            End::Back => self.nodes.parts().saturating_sub(1),
        }
    }

    fn node_of(&self, text: &[u8]) -> Node {
        if self.options.is_large(text.len()) { Node::plain(text) } else { Node::packed(text) }
    }

    /// Returns true if an element of `len` bytes may be added to `node`.
    #[inline]
    fn admits(&self, node: &Node, len: usize) -> bool {
        !node.is_plain() && self.options.admit(node.bytes(), node.len(), len)
    }

    fn insert_node(&mut self, place: usize, node: Node) {
        self.nodes.insert(place, node);
        self.settle(place);
        self.settle_ends(1);
    }

    fn remove_node(&mut self, place: usize) {
        self.nodes.remove(place);
        self.settle_ends(1);
    }

    /// Compresses or decompresses the node at `place`, depending on its distance from the ends.
    fn settle(&mut self, place: usize) {
        let (depth, count) = (self.options.compress_depth, self.nodes.parts());
        if depth == 0 {
            return;
        }
        let Some(node) = self.nodes.get(place) else { return };
        let inner = place >= depth && count - place > depth;
        if !inner && node.is_compressed() {
            self.nodes.update(place, Node::decompress);
        } else if inner && let Some(compressed) = node.compressed() {
            self.nodes.update(place, |node| *node = compressed);
        }
    }

    /// Settles the nodes whose state may have to change after `changed` nodes have been inserted or
    /// removed.
    fn settle_ends(&mut self, changed: usize) {
        let (depth, count) = (self.options.compress_depth, self.nodes.parts());
        if depth == 0 {
            return;
        }
        let first = depth.saturating_sub(changed);
        for distance in first..(depth + changed).min(count) {
            self.settle(distance);
            self.settle(count - 1 - distance);
        }
    }
}

#[inline]
fn push(list: &mut ListPack, end: End, text: &[u8]) {
    match end {
        End::Front => list.push_front(text),
        End::Back => list.push_back(text),
    }
}

/// Visits the elements of a node from index `from`, or from its first or last element, in the
/// direction away from `end`.
fn walk_node<B>(
    list: &ListPack,
    from: Option<usize>,
    end: End,
    visit: &mut impl FnMut(Item<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let start = |default: Option<Pos>| match from {
        Some(index) => list.seek(index as i64),
        None => default,
    };
    match end {
        End::Front => match start(list.first()) {
            Some(at) => list.iter_from(at).try_for_each(visit),
            None => ControlFlow::Continue(()),
        },
        End::Back => {
            let mut at = start(list.last());
            while let Some(pos) = at {
                visit(list.item(pos))?;
                at = list.prev(pos);
            }
            ControlFlow::Continue(())
        }
    }
}
