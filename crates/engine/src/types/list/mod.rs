//! Lists: a listpack while the list fits into one node, a quicklist otherwise.
//!
//! The limit is `list-max-listpack-size`. A list becomes a quicklist as soon as an addition might
//! exceed the limit. It becomes a listpack again when its last node has shrunk to half the limit,
//! so that pushing and popping around the limit does not convert every time.

mod dump;

use super::{Collection, Encoding, EncodingLimits, Value, ValueKind};
use crate::base::event::EventClass;
use brisk_structures::listpack::{Item, ListPack};
use brisk_structures::quicklist::{Options, QuickList, remove_matching};
use std::ops::ControlFlow;

pub use brisk_structures::quicklist::{End, NodeRef};

/// Maximum number of quicklist nodes that are freed immediately. Lists with more nodes are handed
/// to another thread.
const LIGHT_NODES_MAX: usize = 32;

/// A list in one of its encodings.
#[derive(Debug, Clone)]
pub enum List {
    ListPack(ListPack),
    /// A clone shares all nodes.
    QuickList(Box<QuickList>),
}

impl Collection for List {
    const KIND: ValueKind = ValueKind::List;
    const EVENTS: EventClass = EventClass::LIST;

    fn new(_: &EncodingLimits) -> List {
        List::ListPack(ListPack::new())
    }

    fn of_value(value: &Value) -> Option<&List> {
        match value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    fn of_value_mut(value: &mut Value) -> Option<&mut List> {
        match value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        Value::List(self)
    }

    fn is_empty(&self) -> bool {
        match self {
            List::ListPack(list) => list.is_empty(),
            List::QuickList(list) => list.is_empty(),
        }
    }

    fn encoding(&self) -> Encoding {
        match self {
            List::ListPack(_) => Encoding::ListPack,
            List::QuickList(_) => Encoding::QuickList,
        }
    }
}

/// A node of a list that is being loaded.
#[derive(Debug, Clone)]
pub enum LoadedNode {
    Packed(ListPack),
    /// A node that contains only one element.
    Plain(Vec<u8>),
    /// One element, which is added as a push would add it.
    Element(Vec<u8>),
}

fn options(limits: &EncodingLimits) -> Options {
    Options {
        fill: limits.list_max_listpack_size,
        compress_depth: limits.list_compress_depth,
        plain_min: limits.list_plain_min,
    }
}

#[expect(clippy::len_without_is_empty, reason = "it is the one of `Collection`")]
impl List {
    /// Like `Value::is_same`.
    pub(super) fn is_same(&self, other: &List) -> bool {
        match (self, other) {
            (List::ListPack(a), List::ListPack(b)) => a.as_bytes() == b.as_bytes(),
            (List::QuickList(a), List::QuickList(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// A list of nodes as read from a dump, in the encoding that Redis chooses after loading: a
    /// listpack if there is only one node and it is within the limit. Empty nodes are dropped.
    pub fn of_nodes(nodes: impl IntoIterator<Item = LoadedNode>, limits: &EncodingLimits) -> List {
        let options = options(limits);
        let mut list = QuickList::new(options);
        for node in nodes {
            match node {
                LoadedNode::Packed(node) => list.append_listpack(node),
                LoadedNode::Plain(element) => list.append_plain(element),
                LoadedNode::Element(element) => list.push(End::Back, &element),
            }
        }
        let small = list.single().filter(|node| {
            let (bytes, count) = options.node_limits();
            node.bytes() <= bytes && node.len() <= count
        });
        match small {
            Some(node) => List::ListPack(node.clone()),
            None if list.is_empty() => List::new(limits),
            None => List::QuickList(Box::new(list)),
        }
    }

    /// Calls `visit` with each node, as dumps write them.
    pub fn each_node(&self, mut visit: impl FnMut(NodeRef<'_>)) {
        match self {
            List::ListPack(list) => visit(NodeRef::Packed(list)),
            List::QuickList(list) => list.nodes().for_each(visit),
        }
    }

    /// Number of elements. O(1).
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            List::ListPack(list) => list.len(),
            List::QuickList(list) => list.len(),
        }
    }

    /// The index of an element; negative ones count from the end. `None` if there is no such
    /// element.
    #[inline]
    pub fn index(&self, index: i64) -> Option<usize> {
        let distance = usize::try_from(index.unsigned_abs()).ok()?;
        let index = if index < 0 { self.len().checked_sub(distance)? } else { distance };
        (index < self.len()).then_some(index)
    }

    /// The part between two indexes, both included, as (first, count). Negative indexes count from
    /// the end. The part is limited to existing elements.
    pub fn span(&self, start: i64, stop: i64) -> (usize, usize) {
        let len = i64::try_from(self.len()).unwrap_or(i64::MAX);
        let from_front = |index: i64| if index < 0 { len.saturating_add(index) } else { index };
        let (start, stop) = (from_front(start).max(0), from_front(stop).min(len - 1));
        if start > stop { (0, 0) } else { (start as usize, (stop - start) as usize + 1) }
    }

    /// Adds elements at one end, one after the other.
    #[inline]
    pub fn push<'w>(
        &mut self,
        end: End,
        elements: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
        limits: &EncodingLimits,
    ) {
        if let List::QuickList(list) = self {
            list.set_plain_min(limits.list_plain_min);
            return elements.for_each(|element| list.push(end, element));
        }
        let count = elements.len();
        let bytes = elements.clone().map(<[u8]>::len).sum();
        match self.grown(bytes, count, limits) {
            List::ListPack(list) => match end {
                End::Front => elements.for_each(|element| list.push_front(element)),
                End::Back => elements.for_each(|element| list.push_back(element)),
            },
            List::QuickList(list) => elements.for_each(|element| list.push(end, element)),
        }
    }

    /// Removes the element at one end, after calling `visit` with it.
    #[inline]
    pub fn pop(
        &mut self,
        end: End,
        limits: &EncodingLimits,
        visit: impl FnOnce(Item<'_>),
    ) -> Option<()> {
        self.take(end, visit)?;
        self.shrink(limits);
        Some(())
    }

    /// Moves the element at `from` to the end `to`. Before the move, `visit` is called with the
    /// element and returns its text.
    pub fn rotate<T: AsRef<[u8]>>(
        &mut self,
        from: End,
        to: End,
        limits: &EncodingLimits,
        visit: impl FnOnce(Item<'_>) -> T,
    ) -> Option<T> {
        let text = self.take(from, visit)?;
        self.push(to, [text.as_ref()].into_iter(), limits);
        self.shrink(limits);
        Some(text)
    }

    #[inline]
    fn take<R>(&mut self, end: End, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let list = match self {
            List::ListPack(list) => list,
            List::QuickList(list) => return list.pop(end, visit),
        };
        let at = match end {
            End::Front => list.first()?,
            End::Back => list.last()?,
        };
        let result = visit(list.item(at));
        list.delete(at);
        Some(result)
    }

    /// Calls `visit` with element `index`, if there is one.
    pub fn get<R>(&self, index: usize, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self {
            List::ListPack(list) => list.get(index as i64).map(visit),
            List::QuickList(list) => list.get(index, visit),
        }
    }

    /// Calls `visit` with the elements starting at `index`, and their indexes, in the direction
    /// from `end` to the other end, until `visit` breaks.
    pub fn walk<B>(
        &self,
        index: usize,
        end: End,
        mut visit: impl FnMut(usize, Item<'_>) -> ControlFlow<B>,
    ) -> Option<B> {
        let list = match self {
            List::ListPack(list) => list,
            List::QuickList(list) => return list.walk(index, end, visit),
        };
        let mut at = list.seek(index as i64);
        let mut index = index;
        while let Some(pos) = at {
            if let ControlFlow::Break(result) = visit(index, list.item(pos)) {
                return Some(result);
            }
            (at, index) = match end {
                End::Front => (list.next(pos), index + 1),
                End::Back => (list.prev(pos), index.wrapping_sub(1)), // wraps only after the last element
            };
        }
        None
    }

    /// Adds an element before (`Front`) or after (`Back`) the first element that equals `pivot`.
    /// Returns false if there is no such element.
    pub fn insert_next_to(
        &mut self,
        pivot: &[u8],
        side: End,
        element: &[u8],
        limits: &EncodingLimits,
    ) -> bool {
        // The encoding changes even if the pivot does not exist, as in Redis.
        match self.grown(element.len(), 1, limits) {
            List::ListPack(list) => {
                let first = list.first();
                let Some(at) = first.and_then(|first| list.find(first, pivot, 0)) else {
                    return false;
                };
                match side {
                    End::Front => list.insert_before(at, element),
                    End::Back => list.insert_after(at, element),
                };
            }
            List::QuickList(list) => {
                let index = list.walk(0, End::Front, |index, item| {
                    if item.is(pivot) {
                        ControlFlow::Break(index)
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                let Some(index) = index else { return false };
                list.insert(index, side, element);
            }
        }
        true
    }

    /// Replaces the element with index `index`; negative ones count from the end. Returns false if
    /// there is no such element.
    pub fn set(&mut self, index: i64, element: &[u8], limits: &EncodingLimits) -> bool {
        // The encoding may change even if the element does not exist, as in Redis.
        let index = self.index(index);
        let own = self.grown(element.len(), 1, limits);
        let Some(index) = index else { return false };
        match own {
            List::ListPack(list) => {
                let at = list.seek(index as i64).expect("the index was checked");
                list.replace(at, element);
            }
            List::QuickList(list) => {
                list.replace(index, element);
                self.shrink(limits);
            }
        }
        true
    }

    /// Removes the first `limit` elements that equal `text`, counted from `end`. Returns their
    /// number.
    pub fn remove(
        &mut self,
        text: &[u8],
        limit: usize,
        end: End,
        limits: &EncodingLimits,
    ) -> usize {
        match self {
            List::ListPack(list) => remove_matching(list, text, limit, end),
            List::QuickList(list) => {
                let removed = list.remove_matching(text, limit, end);
                if removed > 0 {
                    self.shrink(limits);
                }
                removed
            }
        }
    }

    /// Removes `count` elements starting at `index`, or as many as there are.
    pub fn remove_range(&mut self, index: usize, count: usize, limits: &EncodingLimits) {
        match self {
            List::ListPack(list) => {
                if let Some(at) = list.seek(index as i64) {
                    list.delete_range(at, count);
                }
            }
            List::QuickList(list) => {
                list.remove_range(index, count);
                self.shrink(limits);
            }
        }
    }

    /// Keeps `count` elements starting at `index` and removes all others.
    pub fn keep_range(&mut self, index: usize, count: usize, limits: &EncodingLimits) {
        let end = index + count;
        self.remove_ends(index, end);
        self.shrink(limits);
    }

    fn remove_ends(&mut self, index: usize, end: usize) {
        match self {
            List::ListPack(list) => {
                if let Some(at) = list.seek(end as i64) {
                    list.delete_range(at, usize::MAX);
                }
                if let Some(first) = list.first() {
                    list.delete_range(first, index);
                }
            }
            List::QuickList(list) => {
                list.remove_range(end, usize::MAX);
                list.remove_range(0, index);
            }
        }
    }

    /// The list with room for `count` elements of `bytes` bytes in total.
    #[inline]
    fn grown(&mut self, bytes: usize, count: usize, limits: &EncodingLimits) -> &mut List {
        match self {
            List::ListPack(list) => {
                let options = options(limits);
                if options.exceeded(list.bytes().saturating_add(bytes), list.len() + count) {
                    let list = std::mem::take(list);
                    *self = List::QuickList(Box::new(QuickList::from_listpack(list, options)));
                }
            }
            List::QuickList(list) => list.set_plain_min(limits.list_plain_min),
        }
        self
    }

    /// Converts back to one listpack if at most half a node is left.
    fn shrink(&mut self, limits: &EncodingLimits) {
        self.become_listpack_within(2, limits);
    }

    /// Converts to one listpack if everything fits into a node whose limit is divided by `divisor`.
    fn become_listpack_within(&mut self, divisor: usize, limits: &EncodingLimits) {
        let List::QuickList(list) = self else { return };
        let Some(single) = list.single() else { return };
        let (bytes, count) = options(limits).node_limits();
        if single.bytes() <= bytes / divisor && single.len() <= count / divisor {
            *self = List::ListPack(single.clone());
        }
    }

    /// Reports whether freeing the list is as quick as handing it to another thread.
    pub(super) fn is_light(&self) -> bool {
        match self {
            List::ListPack(_) => true,
            List::QuickList(list) => list.node_count() <= LIGHT_NODES_MAX,
        }
    }

    /// Memory usage of the list in bytes, excluding the struct itself. O(nodes).
    pub(super) fn allocated_bytes(&self) -> usize {
        match self {
            List::ListPack(list) => list.allocated_bytes(),
            List::QuickList(list) => size_of::<QuickList>() + list.allocated_bytes(),
        }
    }

    /// Verifies the invariants of the encoding. O(bytes).
    pub fn check(&self) {
        match self {
            List::ListPack(list) => list.check(),
            List::QuickList(list) => list.check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(elements: &[&[u8]]) -> LoadedNode {
        let mut list = ListPack::new();
        elements.iter().for_each(|element| list.push_back(*element));
        LoadedNode::Packed(list)
    }

    #[test]
    fn one_small_node_is_loaded_as_a_listpack() {
        let limits = EncodingLimits { list_max_listpack_size: 3, ..EncodingLimits::default() };
        let encoding = |nodes: Vec<LoadedNode>| {
            let list = List::of_nodes(nodes, &limits);
            list.check();
            (list.encoding(), list.len())
        };
        assert_eq!(encoding(vec![packed(&[b"a", b"b", b"c"])]), (Encoding::ListPack, 3));
        assert_eq!(encoding(vec![packed(&[b"a", b"b", b"c", b"d"])]), (Encoding::QuickList, 4));
        assert_eq!(encoding(vec![packed(&[b"a"]), packed(&[b"b"])]), (Encoding::QuickList, 2));
        assert_eq!(encoding(vec![packed(&[]), packed(&[b"b"])]), (Encoding::ListPack, 1));
        assert_eq!(encoding(vec![LoadedNode::Plain(b"x".to_vec())]), (Encoding::QuickList, 1));
        let element = || LoadedNode::Element(b"e".to_vec());
        assert_eq!(encoding(vec![element(), element()]), (Encoding::ListPack, 2));
        assert_eq!(encoding(vec![]), (Encoding::ListPack, 0));
    }

    #[test]
    fn nodes_are_dumped_as_they_are_loaded() {
        let limits = EncodingLimits { list_max_listpack_size: 3, ..EncodingLimits::default() };
        let nodes = [packed(&[b"a", b"b"]), LoadedNode::Plain(b"x".to_vec()), packed(&[b"c"])];
        let list = List::of_nodes(nodes, &limits);
        let mut seen = Vec::new();
        list.each_node(|node| match node {
            NodeRef::Packed(list) => seen.push(list.len()),
            NodeRef::Plain(element) => seen.push(element.len() + 100),
            NodeRef::Compressed { .. } => seen.push(1000),
        });
        assert_eq!(seen, [2, 101, 1]);
    }
}
