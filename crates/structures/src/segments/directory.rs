//! A directory: finds the part of a hash space to which a hash belongs, by the first bits of the
//! hash.
//!
//! Parts have prefixes of different lengths. The directory has a slot for every value of the
//! longest prefix. A part is stored only in the first slot of its block, so that there is only one
//! reference to it and a change need not copy it:
//!
//! ```text
//!  slot      000   001   010   011   100   101   110   111
//!          [ 00* | --  | 010 | 011 | 1** | --  | --  | --  ]
//! ```
//!
//! Invariants (`check`)
//!  1. There are `1 << bits` slots; the blocks of the parts are aligned and cover all slots.

use crate::shared::Shared;

#[derive(Debug, Clone)]
pub(super) struct Directory<T> {
    slots: Vec<Option<Shared<T>>>,
    bits: u32,
}

impl<T: Clone> Directory<T> {
    pub(super) fn new(only: T) -> Directory<T> {
        Directory { slots: vec![Some(Shared::new(only))], bits: 0 }
    }

    #[inline(always)]
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    #[inline(always)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slot of the part for `rest`, a hash from which the bits that were used before
    /// have been shifted out.
    #[inline]
    pub(super) fn locate(&self, rest: u64) -> usize {
        if self.bits == 0 {
            return 0;
        }
        let mut at = (rest >> (64 - self.bits)) as usize;
        while self.slots[at].is_none() {
            at &= at - 1;
        }
        at
    }

    /// Returns the part at exactly this slot.
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.slots[at].as_deref()
    }

    #[inline(always)]
    pub(super) fn part(&self, at: usize) -> &T {
        self.slots[at].as_deref().expect("invariant 1: `locate` gave the slot")
    }

    /// Returns a mutable reference to the part. It is copied first if it is shared.
    #[inline(always)]
    pub(super) fn part_mut(&mut self, at: usize) -> &mut T {
        let part = self.slots[at].as_mut().expect("invariant 1: `locate` gave the slot");
        Shared::make_mut(part)
    }

    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// Returns all parts, each with its prefix (in the highest bits of the number) and the length
    /// of the prefix.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u64, u32, &T)> {
        let taken = self.slots.iter().enumerate();
        let taken = taken.filter_map(|(at, slot)| slot.as_deref().map(|part| (at, part)));
        let prefix = |at: usize| (at as u64).checked_shl(64 - self.bits).unwrap_or(0);
        taken.map(move |(at, part)| (prefix(at), self.depth(at), part))
    }

    /// Returns the slots of all parts.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> + use<T> {
        let taken: Vec<usize> =
            (0..self.slots.len()).filter(|&at| self.slots[at].is_some()).collect();
        taken.into_iter()
    }

    /// Returns the number of slots in the block of the part at `at`.
    #[inline]
    fn block(&self, at: usize) -> usize {
        let mut end = at + 1;
        while matches!(self.slots.get(end), Some(None)) {
            end += 1;
        }
        end - at
    }

    /// Returns the length of the prefix of the part at `at`, in bits.
    #[inline]
    pub(super) fn depth(&self, at: usize) -> u32 {
        if self.bits == 0 { 0 } else { self.bits - self.block(at).trailing_zeros() }
    }

    /// Replaces the part at `at` with two halves. Its prefix must be shorter than the longest one.
    pub(super) fn split(&mut self, at: usize, (low, high): (T, T)) {
        let half = self.block(at) / 2;
        self.slots[at] = Some(Shared::new(low));
        self.slots[at + half] = Some(Shared::new(high));
    }

    /// Doubles the number of slots. O(slots).
    pub(super) fn double(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots.reserve_exact(old.len() * 2);
        for slot in old {
            self.slots.push(slot);
            self.slots.push(None);
        }
        self.bits += 1;
    }

    /// Halves the number of slots until some part needs all bits of its slot number. O(slots).
    pub(super) fn shrink(&mut self) {
        while self.bits > 0 && self.slots.iter().skip(1).step_by(2).all(Option::is_none) {
            let mut odd = true;
            self.slots.retain(|_| {
                odd = !odd;
                !odd
            });
            self.slots.shrink_to_fit();
            self.bits -= 1;
        }
    }

    /// Returns the slots of a part and of the other half of their common parent, in order, if that
    /// half has not been split further.
    pub(super) fn halves(&self, at: usize) -> Option<(usize, usize)> {
        let block = self.block(at);
        if block == self.slots.len() {
            return None;
        }
        let other = at ^ block;
        let whole = self.slots[other].is_some() && self.block(other) == block;
        whole.then_some((at.min(other), at.max(other)))
    }

    /// Replaces two halves with one part.
    pub(super) fn merge(&mut self, (low, high): (usize, usize), all: T) {
        self.slots[low] = Some(Shared::new(all));
        self.slots[high] = None;
    }

    /// Splits the directory into two, one for each half of the hash space. There must be more than
    /// one part.
    pub(super) fn halve(&self) -> (Directory<T>, Directory<T>) {
        let (low, high) = self.slots.split_at(self.slots.len() / 2);
        let half = |slots: &[Option<Shared<T>>]| {
            let mut half = Directory { slots: slots.to_vec(), bits: self.bits - 1 };
            half.shrink();
            half
        };
        (half(low), half(high))
    }

    /// Joins two directories, one for each half of a hash space.
    pub(super) fn join(low: &Directory<T>, high: &Directory<T>) -> Directory<T> {
        let (mut low, mut high) = (low.clone(), high.clone());
        while low.bits < high.bits {
            low.double();
        }
        while high.bits < low.bits {
            high.double();
        }
        low.slots.append(&mut high.slots);
        low.bits += 1;
        low
    }

    /// Returns true if both directories share the same parts.
    pub(super) fn is_same(&self, other: &Directory<T>) -> bool {
        let same = |(a, b): (&Option<Shared<T>>, &Option<Shared<T>>)| match (a, b) {
            (Some(a), Some(b)) => Shared::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.slots.len() == other.slots.len() && self.slots.iter().zip(&other.slots).all(same)
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        let parts = self.parts().count() * (size_of::<T>() + 2 * size_of::<usize>());
        self.slots.capacity() * size_of::<Option<Shared<T>>>() + parts
    }

    /// Verifies the invariant listed at the top of this file, and that there are no unnecessary
    /// slots.
    pub(super) fn check(&self) {
        assert_eq!(self.slots.len(), 1 << self.bits);
        let mut at = 0;
        while at < self.slots.len() {
            assert!(self.slots[at].is_some(), "a block without a part");
            let block = self.block(at);
            assert!(block.is_power_of_two() && at.is_multiple_of(block), "a block out of line");
            at += block;
        }
    }
}
