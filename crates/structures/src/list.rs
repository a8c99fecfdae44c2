//! List: a queue whose members can be removed from the middle in O(1), by the id that they got when
//! they were added.
//!
//! Used for queues in order of arrival that a member may leave early: the blocked clients of a key,
//! sessions to be closed, sessions with output. An id is valid only for the list that issued it.
//!
//! Invariants (`check` verifies both)
//!  1. Following `next` from `front` reaches all nodes; following `previous` from `back` reaches
//!     them in the opposite order.
//!  2. The list is empty if and only if `front` and `back` are `None`.

use crate::slab::{Id, Slab};

#[derive(Debug)]
struct Node<T> {
    previous: Option<Id>,
    next: Option<Id>,
    value: T,
}

/// A doubly linked list over slab ids. All operations except walking are O(1).
#[derive(Debug)]
pub struct List<T> {
    nodes: Slab<Node<T>>,
    front: Option<Id>,
    back: Option<Id>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> List<T> {
    /// Creates an empty list; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Slab::new(), front: None, back: None }
    }

    /// Appends a value.
    pub fn push_back(&mut self, value: T) -> Id {
        let previous = self.back;
        let id = self.nodes.insert(Node { previous, next: None, value });
        match previous.and_then(|before| self.nodes.get_mut(before)) {
            Some(before) => before.next = Some(id),
            None => self.front = Some(id),
        }
        self.back = Some(id);
        id
    }

    /// Removes the value of `id` at any position; `None` if it was already removed.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let Node { previous, next, value } = self.nodes.remove(id)?;
        match previous.and_then(|before| self.nodes.get_mut(before)) {
            Some(before) => before.next = next,
            None => self.front = next,
        }
        match next.and_then(|after| self.nodes.get_mut(after)) {
            Some(after) => after.previous = previous,
            None => self.back = previous,
        }
        Some(value)
    }

    /// Removes the oldest value.
    pub fn pop_front(&mut self) -> Option<T> {
        self.remove(self.front?)
    }

    /// Returns the oldest value.
    #[must_use]
    pub fn front(&self) -> Option<(Id, &T)> {
        self.iter().next()
    }

    /// Returns the value of `id` if it still exists.
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&T> {
        self.nodes.get(id).map(|node| &node.value)
    }

    /// Returns a mutable reference to the value of `id` if it still exists.
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.nodes.get_mut(id).map(|node| &mut node.value)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the id after `id`, for walks during which the list changes.
    #[must_use]
    pub fn after(&self, id: Id) -> Option<Id> {
        self.nodes.get(id)?.next
    }

    /// Returns all values in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        std::iter::successors(self.front, |&id| self.after(id))
            .filter_map(|id| Some((id, self.get(id)?)))
    }

    /// Verifies the invariants. O(len).
    pub fn check(&self) {
        self.nodes.check();
        let forward: Vec<Id> = self.iter().map(|(id, _)| id).collect();
        let back = std::iter::successors(self.back, |&id| self.nodes.get(id)?.previous);
        let mut backward: Vec<Id> = back.collect();
        backward.reverse();
        assert_eq!(forward, backward, "1: order");
        assert_eq!(forward.len(), self.len(), "1: a node is not linked");
        assert_eq!(self.front.is_none(), self.is_empty(), "2: front");
        assert_eq!(self.back.is_none(), self.is_empty(), "2: back");
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn members_leave_from_anywhere_and_the_others_keep_their_order() {
        let mut list = List::new();
        let mut model = vec![];
        let mut random = 5u64;
        for step in 0..if cfg!(miri) { 200 } else { 3_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(3);
            match random >> 33 & 3 {
                0 if !model.is_empty() => {
                    let (id, value) = model.remove((random >> 40) as usize % model.len());
                    assert_eq!(list.remove(id), Some(value));
                    assert_eq!(list.remove(id), None);
                }
                1 if !model.is_empty() => {
                    assert_eq!(list.pop_front(), Some(model.remove(0).1));
                }
                _ => model.push((list.push_back(step), step)),
            }
            list.check();
            assert!(list.iter().map(|(id, v)| (id, *v)).eq(model.iter().copied()));
            assert_eq!(list.front().map(|(id, v)| (id, *v)), model.first().copied());
        }
    }
}
