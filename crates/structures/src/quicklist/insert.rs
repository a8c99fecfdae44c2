//! Inserts and replaces elements in the middle of a quicklist: splits full nodes and merges small
//! ones.

use super::{End, Node, QuickList, push};
use crate::sequence::Part;

impl QuickList {
    /// Inserts an element before (`Front`) or after (`Back`) element `index`, which must exist.
    pub fn insert(&mut self, index: usize, side: End, text: &[u8]) {
        let (place, within) =
            self.nodes.locate(index).expect("callers insert beside elements that exist");
        let node = self.node(place);
        let at_edge = within == if side == End::Front { 0 } else { node.len() - 1 };
        let neighbor = match side {
            End::Front => place.checked_sub(1),
            End::Back => Some(place + 1),
        };
        if self.admits(node, text.len()) {
            self.edit(place, |node| {
                let list = node.packed_mut().expect("large elements admit no others");
                let at = list.seek(within as i64).expect("the node has that element");
                match side {
                    End::Front => list.insert_before(at, text),
                    End::Back => list.insert_after(at, text),
                };
            });
        } else if at_edge
            && let Some(neighbor_place) = neighbor
            && self.nodes.get(neighbor_place).is_some_and(|node| self.admits(node, text.len()))
        {
            let other = if side == End::Front { End::Back } else { End::Front };
            self.edit(neighbor_place, |node| {
                push(node.packed_mut().expect("large elements admit no others"), other, text);
            });
        } else if at_edge {
            let place = if side == End::Front { place } else { place + 1 };
            self.insert_node(place, self.node_of(text));
        } else {
            self.insert_splitting(place, within + usize::from(side == End::Back), side, text);
        }
    }

    /// Splits the node before its element `within`, and inserts the new element in between.
    fn insert_splitting(&mut self, place: usize, within: usize, side: End, text: &[u8]) {
        self.split_node(place, within);
        if self.options.is_large(text.len()) {
            self.nodes.insert(place + 1, Node::plain(text));
            self.settle_around(place + 1);
            return;
        }
        // The half without the reference element takes the new element.
        let (half, end) =
            if side == End::Front { (place, End::Back) } else { (place + 1, End::Front) };
        self.nodes.update(half, |node| {
            push(node.packed_mut().expect("large elements are not split"), end, text);
        });
        let kept = if side == End::Front { place + 1 } else { place };
        self.merge_around(kept);
    }

    /// Replaces element `index`, which must exist.
    pub fn replace(&mut self, index: usize, text: &[u8]) {
        let (place, within) =
            self.nodes.locate(index).expect("callers replace elements that exist");
        let node = self.node(place);
        let large = self.options.is_large(text.len());
        if !node.is_plain() && !large {
            self.edit(place, |node| {
                let list = node.packed_mut().expect("the node is a listpack");
                let at = list.seek(within as i64).expect("the node has that element");
                list.replace(at, text);
            });
        } else if node.is_plain() && large {
            self.edit(place, |node| *node = Node::plain(text));
        } else if node.is_plain() {
            // The new element may join a neighbor.
            self.insert(index, End::Back, text);
            self.remove_node(place);
        } else {
            if within + 1 < node.len() {
                self.split_node(place, within + 1);
            }
            self.nodes.insert(place + 1, Node::plain(text));
            let emptied = self.nodes.update(place, |node| {
                let list = node.packed_mut().expect("the node is a listpack");
                list.last().map(|last| list.delete(last));
                list.is_empty()
            });
            if emptied {
                self.nodes.remove(place);
            }
            self.merge_around(if emptied { place } else { place + 1 });
        }
    }

    fn node(&self, place: usize) -> &Node {
        self.nodes.get(place).expect("the sequence located it")
    }

    /// Changes a node without adding or removing nodes.
    fn edit(&mut self, place: usize, change: impl FnOnce(&mut Node)) {
        self.nodes.update(place, change);
        self.settle(place);
    }

    /// Moves the elements of a listpack node from `within` on to a new node after it.
    fn split_node(&mut self, place: usize, within: usize) {
        let right = self.nodes.update(place, |node| {
            let left = node.packed_mut().expect("large elements are not split");
            let mut right = left.clone();
            right.delete_range(right.first().expect("no node is empty"), within);
            let at = left.seek(within as i64).expect("both halves have elements");
            left.delete_range(at, usize::MAX);
            right
        });
        self.nodes.insert(place + 1, Node::Packed(right));
    }

    /// Merges nodes around `center` if the limits allow it, in Redis's order: first the two nodes
    /// before it, then the two nodes after it, then `center` with the node before it, then with the
    /// node after it.
    fn merge_around(&mut self, center: usize) {
        let mut center = center;
        if center >= 2 && self.merge(center - 2) {
            center -= 1;
        }
        self.merge(center + 1);
        if center >= 1 && self.merge(center - 1) {
            center -= 1;
        }
        self.merge(center);
        self.settle_around(center);
    }

    /// Merges the node after `place` into the node at `place` if both together stay within the
    /// limits.
    fn merge(&mut self, place: usize) -> bool {
        // After a merge, the header and the end byte are needed only once.
        const LISTPACK_OVERHEAD: usize = 7;
        let (Some(left), Some(right)) = (self.nodes.get(place), self.nodes.get(place + 1)) else {
            return false;
        };
        let bytes = (left.bytes() + right.bytes()).saturating_sub(LISTPACK_OVERHEAD);
        if left.is_plain()
            || right.is_plain()
            || self.options.exceeded(bytes, left.len() + right.len())
        {
            return false;
        }
        let mut right = (*self.nodes.remove(place + 1)).clone();
        self.nodes.update(place, |left| {
            if let (Some(left), Some(right)) = (left.packed_mut(), right.packed_mut()) {
                left.append(right);
            }
        });
        true
    }

    /// Settles all nodes that splitting and merging around `place` may have changed or moved.
    fn settle_around(&mut self, place: usize) {
        const REACH: usize = 3;
        for place in place.saturating_sub(REACH)..=place + REACH {
            self.settle(place);
        }
        self.settle_ends(REACH);
    }
}
