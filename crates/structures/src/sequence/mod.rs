//! Sequence: an ordered list of parts, each of which holds elements. Clones share everything.
//!
//! This is the backbone of long lists. Parts are accessed by their position among the parts, or by
//! the index of an element. The tree has branches with at most [`FANOUT`] children, and each branch
//! counts the parts and elements below it:
//! ```text
//!                 root: 5 parts, 40 elements
//!                /                         \
//!        3 parts, 25 elements        2 parts, 15 elements
//!        /        |        \             /       \
//!     part 0    part 1    part 2      part 3    part 4
//! ```
//! A clone increments one counter. A change copies the part and the branches on the path to it if
//! they are shared, and nothing else.
//!
//! Invariants (`check` verifies each)
//!  1. All leaves have the same depth; only the root of an empty sequence is empty.
//!  2. A branch's counts of parts and elements are those of everything below it.
//!  3. No branch has more than `FANOUT` children; an inner root has at least two.
//!
//! All operations are O(log parts). Branches that have become small are joined with a neighbor,
//! and branches that are filled in order stay full.

#[cfg(test)]
mod tests;

use crate::shared::Shared;

/// Maximum number of children of a branch. Copying a branch copies less than 2 KiB. The value is
/// small in tests, to get deep trees.
const FANOUT: usize = if cfg!(test) { 4 } else { 64 };
/// Branches with fewer children are joined with a neighbor if the two together fit into half a
/// branch.
const SMALL: usize = FANOUT / 4;

/// The parts of a sequence.
pub trait Part: Clone {
    /// Returns the number of elements.
    fn len(&self) -> usize;

    /// Returns true if the part has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An ordered list of parts.
#[derive(Debug, Clone)]
pub struct Sequence<T> {
    root: Child<T>,
}

#[derive(Debug)]
struct Child<T> {
    branch: Shared<Branch<T>>,
    parts: usize,
    elements: usize,
}

#[derive(Debug, Clone)]
enum Branch<T> {
    Leaf(Vec<Leaf<T>>),
    Inner(Vec<Child<T>>),
}

#[derive(Debug)]
struct Leaf<T> {
    part: Shared<T>,
    elements: usize,
}

impl<T> Clone for Child<T> {
    fn clone(&self) -> Self {
        Child { branch: Shared::clone(&self.branch), ..*self }
    }
}

impl<T> Clone for Leaf<T> {
    fn clone(&self) -> Self {
        Leaf { part: Shared::clone(&self.part), ..*self }
    }
}

impl<T: Part> Default for Sequence<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Part> Sequence<T> {
    /// Returns true if one is an unchanged clone of the other. O(1).
    #[must_use]
    pub fn is_same(&self, other: &Sequence<T>) -> bool {
        Shared::ptr_eq(&self.root.branch, &other.root.branch)
    }

    /// Creates an empty sequence.
    #[must_use]
    pub fn new() -> Sequence<T> {
        Sequence { root: Child::leaf(Vec::new()) }
    }

    /// Returns the number of parts.
    #[inline]
    #[must_use]
    pub fn parts(&self) -> usize {
        self.root.parts
    }

    /// Returns the number of elements in all parts.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> usize {
        self.root.elements
    }

    /// Returns the part at `place`.
    #[must_use]
    pub fn get(&self, mut place: usize) -> Option<&Shared<T>> {
        if place >= self.root.parts {
            return None;
        }
        let mut child = &self.root;
        loop {
            match &*child.branch {
                Branch::Leaf(leaves) => return leaves.get(place).map(|leaf| &leaf.part),
                Branch::Inner(children) => {
                    let at = find(children, child.parts, &mut place);
                    child = &children[at];
                }
            }
        }
    }

    /// Returns the position of the part that holds element `index`, and the element's index within
    /// it.
    #[must_use]
    pub fn locate(&self, mut index: usize) -> Option<(usize, usize)> {
        if index >= self.root.elements {
            return None;
        }
        let (mut child, mut place) = (&self.root, 0);
        loop {
            match &*child.branch {
                Branch::Leaf(leaves) => {
                    for leaf in leaves {
                        if index < leaf.elements {
                            return Some((place, index));
                        }
                        index -= leaf.elements;
                        place += 1;
                    }
                    return None;
                }
                Branch::Inner(children) => {
                    let mut children = children.iter();
                    child = loop {
                        let next = children.next()?;
                        if index < next.elements {
                            break next;
                        }
                        index -= next.elements;
                        place += next.parts;
                    };
                }
            }
        }
    }

    /// Returns the index of the first element of the part at `place`.
    #[must_use]
    pub fn elements_before(&self, mut place: usize) -> usize {
        let (mut child, mut before) = (&self.root, 0);
        loop {
            match &*child.branch {
                Branch::Leaf(leaves) => {
                    let leaves = leaves.iter().take(place);
                    return before + leaves.map(|leaf| leaf.elements).sum::<usize>();
                }
                Branch::Inner(children) => {
                    let at = find(children, child.parts, &mut place);
                    before += children[..at].iter().map(|child| child.elements).sum::<usize>();
                    child = &children[at];
                }
            }
        }
    }

    /// Lets `change` edit the part at `place`, which must exist.
    pub fn update<R>(&mut self, place: usize, change: impl FnOnce(&mut T) -> R) -> R {
        assert!(place < self.root.parts, "callers name parts that exist");
        self.root.update(place, change)
    }

    /// Returns the last part, or the first if `front`.
    #[inline]
    #[must_use]
    pub fn end(&self, front: bool) -> Option<&T> {
        let mut child = &self.root;
        loop {
            match &*child.branch {
                Branch::Leaf(leaves) => {
                    let leaf = if front { leaves.first() } else { leaves.last() };
                    return leaf.map(|leaf| &*leaf.part);
                }
                Branch::Inner(children) => {
                    child = if front { children.first() } else { children.last() }?;
                }
            }
        }
    }

    /// Lets `change` edit the last part, or the first if `front`; `None` if there is none. Lists
    /// change at their ends, so this path is shorter than that of [`Sequence::update`].
    #[inline]
    pub fn update_end<R>(&mut self, front: bool, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        (self.root.parts > 0).then(|| self.root.update_end(front, change))
    }

    /// Inserts a part before the one at `place`, or after the last.
    pub fn insert(&mut self, place: usize, part: T) {
        assert!(place <= self.root.parts, "callers insert between parts");
        let leaf = Leaf { elements: part.len(), part: Shared::new(part) };
        if let Some(right) = self.root.insert(place, leaf) {
            let left = std::mem::replace(&mut self.root, Child::leaf(Vec::new()));
            self.root = Child::inner(vec![left, right]);
        }
    }

    /// Removes the part at `place`, which must exist.
    pub fn remove(&mut self, place: usize) -> Shared<T> {
        assert!(place < self.root.parts, "callers name parts that exist");
        let removed = self.root.remove(place);
        loop {
            let only = match &*self.root.branch {
                Branch::Inner(children) if children.len() == 1 => children[0].clone(),
                Branch::Inner(_) | Branch::Leaf(_) => break,
            };
            self.root = only;
        }
        removed
    }

    /// Appends a part.
    pub fn push_back(&mut self, part: T) {
        self.insert(self.root.parts, part);
    }

    /// Returns all parts in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Shared<T>> + ExactSizeIterator {
        (0..self.root.parts).map(|place| self.get(place).expect("by 2 each place has a part"))
    }

    /// Returns the memory usage of the branches in bytes, without the parts.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.root.allocated_bytes()
    }

    /// Verifies the invariants, and each part with `check_part`. O(parts).
    pub fn check(&self, check_part: impl Fn(&T)) {
        self.root.check(true, &check_part);
    }
}

/// Returns the child that contains the part at `place`, and changes `place` to the position within
/// it. `parts` is the total number of parts below all children. `place` may be one after the last
/// part. The last child is checked first, since lists change at their ends.
#[inline]
fn find<T>(children: &[Child<T>], parts: usize, place: &mut usize) -> usize {
    let last = children.len() - 1;
    let before = parts - children[last].parts;
    if *place >= before {
        *place -= before;
        return last;
    }
    for (at, child) in children[..last].iter().enumerate() {
        if *place < child.parts {
            return at;
        }
        *place -= child.parts;
    }
    last
}

#[inline]
fn end_mut<C>(children: &mut [C], front: bool) -> &mut C {
    let end = if front { children.first_mut() } else { children.last_mut() };
    end.expect("by 1 only the root of an empty sequence has no children")
}

/// Splits a full vector to insert a new child at `at`. Vectors that are filled in order stay full.
fn split<C>(children: &mut Vec<C>, at: usize, new: C) -> Vec<C> {
    if at == children.len() {
        return vec![new];
    }
    let middle = if at == 0 { 0 } else { children.len() / 2 };
    let mut right = children.split_off(middle);
    if at <= middle {
        children.insert(at, new)
    } else {
        right.insert(at - middle, new)
    }
    right
}

impl<T: Part> Child<T> {
    fn leaf(leaves: Vec<Leaf<T>>) -> Child<T> {
        let elements = leaves.iter().map(|leaf| leaf.elements).sum();
        Child { parts: leaves.len(), elements, branch: Shared::new(Branch::Leaf(leaves)) }
    }

    fn inner(children: Vec<Child<T>>) -> Child<T> {
        let parts = children.iter().map(|child| child.parts).sum();
        let elements = children.iter().map(|child| child.elements).sum();
        Child { parts, elements, branch: Shared::new(Branch::Inner(children)) }
    }

    fn width(&self) -> usize {
        match &*self.branch {
            Branch::Leaf(leaves) => leaves.len(),
            Branch::Inner(children) => children.len(),
        }
    }

    fn update<R>(&mut self, mut place: usize, change: impl FnOnce(&mut T) -> R) -> R {
        let (before, after, result);
        match Shared::make_mut(&mut self.branch) {
            Branch::Leaf(leaves) => {
                let leaf = &mut leaves[place];
                before = leaf.elements;
                result = change(Shared::make_mut(&mut leaf.part));
                leaf.elements = leaf.part.len();
                after = leaf.elements;
            }
            Branch::Inner(children) => {
                let at = find(children, self.parts, &mut place);
                before = children[at].elements;
                result = children[at].update(place, change);
                after = children[at].elements;
            }
        }
        self.elements = self.elements - before + after;
        result
    }

    fn update_end<R>(&mut self, front: bool, change: impl FnOnce(&mut T) -> R) -> R {
        let (before, after, result);
        match Shared::make_mut(&mut self.branch) {
            Branch::Leaf(leaves) => {
                let leaf = end_mut(leaves, front);
                before = leaf.elements;
                let part = Shared::make_mut(&mut leaf.part);
                result = change(part);
                after = part.len();
                leaf.elements = after;
            }
            Branch::Inner(children) => {
                let child = end_mut(children, front);
                before = child.elements;
                result = child.update_end(front, change);
                after = child.elements;
            }
        }
        self.elements = self.elements - before + after;
        result
    }

    /// Inserts a leaf, and returns the part that was split off to the right, if any.
    fn insert(&mut self, mut place: usize, leaf: Leaf<T>) -> Option<Child<T>> {
        let elements = leaf.elements;
        let right = match Shared::make_mut(&mut self.branch) {
            Branch::Leaf(leaves) if leaves.len() < FANOUT => {
                leaves.insert(place, leaf);
                None
            }
            Branch::Leaf(leaves) => Some(Child::leaf(split(leaves, place, leaf))),
            Branch::Inner(children) => {
                let at = find(children, self.parts, &mut place);
                match children[at].insert(place, leaf) {
                    None => None,
                    Some(new) if children.len() < FANOUT => {
                        children.insert(at + 1, new);
                        None
                    }
                    Some(new) => Some(Child::inner(split(children, at + 1, new))),
                }
            }
        };
        self.parts += 1;
        self.elements += elements;
        if let Some(right) = &right {
            self.parts -= right.parts;
            self.elements -= right.elements;
        }
        right
    }

    fn remove(&mut self, mut place: usize) -> Shared<T> {
        let (removed, elements);
        match Shared::make_mut(&mut self.branch) {
            Branch::Leaf(leaves) => {
                let leaf = leaves.remove(place);
                (removed, elements) = (leaf.part, leaf.elements);
            }
            Branch::Inner(children) => {
                let at = find(children, self.parts, &mut place);
                let before = children[at].elements;
                removed = children[at].remove(place);
                elements = before - children[at].elements;
                tend(children, at);
            }
        }
        self.parts -= 1;
        self.elements -= elements;
        removed
    }

    fn allocated_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        let own = counters + size_of::<Branch<T>>();
        match &*self.branch {
            Branch::Leaf(leaves) => own + leaves.capacity() * size_of::<Leaf<T>>(),
            Branch::Inner(children) => {
                let below: usize = children.iter().map(Child::allocated_bytes).sum();
                own + children.capacity() * size_of::<Child<T>>() + below
            }
        }
    }

    /// Verifies everything below, and returns the depth.
    fn check(&self, root: bool, check_part: &impl Fn(&T)) -> usize {
        assert!(self.width() <= FANOUT, "3: too wide");
        match &*self.branch {
            Branch::Leaf(leaves) => {
                assert!(root || !leaves.is_empty(), "1: an empty branch");
                assert_eq!(self.parts, leaves.len(), "2: parts");
                for leaf in leaves {
                    check_part(&leaf.part);
                    assert_eq!(leaf.elements, leaf.part.len(), "2: elements of a part");
                }
                let elements: usize = leaves.iter().map(|leaf| leaf.elements).sum();
                assert_eq!(self.elements, elements, "2: elements");
                0
            }
            Branch::Inner(children) => {
                assert!(children.len() >= if root { 2 } else { 1 }, "1, 3: too narrow");
                let depths: Vec<_> = children.iter().map(|c| c.check(false, check_part)).collect();
                assert!(depths.windows(2).all(|two| two[0] == two[1]), "1: depths");
                let parts: usize = children.iter().map(|child| child.parts).sum();
                let elements: usize = children.iter().map(|child| child.elements).sum();
                assert_eq!((self.parts, self.elements), (parts, elements), "2: sums");
                depths[0] + 1
            }
        }
    }
}

/// Removes child `at` if it became empty, or joins it with a neighbor if both are small.
fn tend<T: Part>(children: &mut Vec<Child<T>>, at: usize) {
    let width = children[at].width();
    if width == 0 {
        children.remove(at);
        return;
    }
    if width > SMALL || children.len() < 2 {
        return;
    }
    let left = at.saturating_sub(1);
    if children[left].width() + children[left + 1].width() > FANOUT / 2 {
        return;
    }
    let right = children.remove(left + 1);
    let own = &mut children[left];
    own.parts += right.parts;
    own.elements += right.elements;
    match (Shared::make_mut(&mut own.branch), Shared::unwrap_or_clone(right.branch)) {
        (Branch::Leaf(own), Branch::Leaf(more)) => own.extend(more),
        (Branch::Inner(own), Branch::Inner(more)) => own.extend(more),
        _ => unreachable!("by 1 neighbors have the same depth"),
    }
}
