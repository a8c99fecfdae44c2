//! Removes elements from a quicklist: ranges, and elements equal to a text.

use super::{End, QuickList, View};
use crate::listpack::ListPack;
use crate::sequence::Part;

impl QuickList {
    /// Removes `count` elements from `index` on, or as many as exist. O(log nodes) per node.
    pub fn remove_range(&mut self, index: usize, count: usize) {
        let mut left = count.min(self.len().saturating_sub(index));
        let Some((mut place, mut within)) = self.nodes.locate(index) else { return };
        let before = self.nodes.parts();
        while left > 0 {
            let Some(node) = self.nodes.get(place) else { break };
            let removed = left.min(node.len() - within);
            if removed == node.len() {
                self.nodes.remove(place);
            } else {
                self.nodes.update(place, |node| {
                    let list = node.packed_mut().expect("a node of several elements is a listpack");
                    if let Some(at) = list.seek(within as i64) {
                        list.delete_range(at, removed);
                    }
                });
                self.settle(place);
                place += 1;
            }
            left -= removed;
            within = 0;
        }
        self.settle_ends(before - self.nodes.parts());
    }

    /// Removes the first `limit` elements whose text is `text`, counted from `end`, and returns how
    /// many there were. O(bytes).
    pub fn remove_matching(&mut self, text: &[u8], limit: usize, end: End) -> usize {
        let before = self.nodes.parts();
        let (mut removed, mut passed) = (0, 0);
        while removed < limit && passed < self.nodes.parts() {
            let place = match end {
                End::Front => passed,
                End::Back => self.nodes.parts() - 1 - passed,
            };
            let Some(node) = self.nodes.get(place) else { break };
            let (found, all) = match node.view() {
                view if !view.contains(text) => (0, false),
                View::Plain(_) => (1, true),
                View::Packed(list) => {
                    let found = list.iter().filter(|item| item.is(text)).count();
                    (found, found == list.len())
                }
            };
            let found = found.min(limit - removed);
            if all && found == node.len() {
                self.nodes.remove(place);
            } else {
                if found > 0 {
                    self.nodes.update(place, |node| {
                        let list =
                            node.packed_mut().expect("a node of several elements is a listpack");
                        remove_matching(list, text, found, end);
                    });
                    self.settle(place);
                }
                passed += 1;
            }
            removed += found;
        }
        self.settle_ends(before - self.nodes.parts());
        removed
    }
}

/// Removes the first `limit` elements whose text is `text` from a listpack, counted from `end`, and
/// returns how many there were. O(bytes) for each.
pub fn remove_matching(list: &mut ListPack, text: &[u8], limit: usize, end: End) -> usize {
    let mut removed = 0;
    match end {
        End::Front => {
            let mut from = list.first();
            while removed < limit
                && let Some(at) = from.and_then(|from| list.find(from, text, 0))
            {
                from = list.delete(at);
                removed += 1;
            }
        }
        End::Back => {
            let mut at = list.last();
            while removed < limit
                && let Some(pos) = at
            {
                at = list.prev(pos);
                if list.item(pos).is(text) {
                    list.delete(pos);
                    removed += 1;
                }
            }
        }
    }
    removed
}
