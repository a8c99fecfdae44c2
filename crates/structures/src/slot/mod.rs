//! A slot: a table and its payload behind a one-byte lock, in one cache line.
//!
//! ```text
//!  0                        24     25      28      32                       64
//! +------------------------+------+-------+-------+------------------------+
//! | table root             | lock | marks | stamp | payload M, to 32 bytes |
//! +------------------------+------+-------+-------+------------------------+
//! ```
//!
//! The lock is a try-lock with a bounded spin. A caller that does not get the lock defers its
//! batch. Prefetching needs no lock (see `table.rs`, invariant 4: the thread must be a participant
//! of `reclaim`).
//!
//! Invariants (SAFETY notes cite them)
//!  1. `lock` is 1 exactly while one `SlotGuard` exists (or was leaked). It is set with acquire and
//!     cleared with release, so its holder sees everything that earlier holders did.
//!  2. Table contents, marks, stamp and payload are read and changed only through the guard;
//!     without the guard, only the table's prefetch methods may run.

use crate::prefetch::prefetch;
use crate::reclaim::Participant;
use crate::table::{Root, Table, TableMut, TableRef};
use std::cell::UnsafeCell;
use std::marker::PhantomData;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU8, Ordering};

const FREE: u8 = 0;
const HELD: u8 = 1;

/// A table with payload `M`, on cache lines of its own.
#[repr(C, align(64))]
pub struct Slot<V, M> {
    table: Root<V>,
    lock: AtomicU8,
    /// Eight bits of payload at an offset where they take no extra memory.
    marks: UnsafeCell<u8>,
    /// A word of payload that takes no extra memory either.
    stamp: UnsafeCell<u32>,
    meta: UnsafeCell<M>,
}

// SAFETY: 1 and 2: the contents are accessed by one thread at a time, so they only need to be Send.
unsafe impl<V: Send, M: Send> Sync for Slot<V, M> {}

impl<V, M: Default> Default for Slot<V, M> {
    fn default() -> Self {
        Self::new(M::default())
    }
}

impl<V, M> Slot<V, M> {
    /// Creates an unlocked slot with an empty table.
    #[must_use]
    pub fn new(meta: M) -> Self {
        Self {
            table: Root::new(),
            lock: AtomicU8::new(FREE),
            marks: UnsafeCell::new(0),
            stamp: UnsafeCell::new(0),
            meta: UnsafeCell::new(meta),
        }
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<SlotGuard<'_, V, M>> {
        // No check beforehand, because the lock is usually free. A failed exchange writes nothing.
        let taken = self.lock.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| SlotGuard { slot: self, not_send: PhantomData })
    }

    /// Takes the lock if it becomes free within `bound` checks.
    #[inline]
    pub fn lock_spin(&self, bound: u32) -> Option<SlotGuard<'_, V, M>> {
        match self.try_lock() {
            Some(guard) => Some(guard),
            None => self.spin(bound),
        }
    }

    #[cold]
    fn spin(&self, bound: u32) -> Option<SlotGuard<'_, V, M>> {
        for _ in 0..bound {
            // Checking before trying keeps the cache line shared among the waiting threads.
            if !self.is_locked()
                && let Some(guard) = self.try_lock()
            {
                return Some(guard);
            }
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            std::hint::spin_loop();
        }
        None
    }

    /// Returns true if the lock is held. The result may already be out of date.
    #[inline]
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.load(Ordering::Relaxed) == HELD
    }

    /// Returns the table and the payload without locking, since no other code can access the slot.
    pub fn get_mut(&mut self) -> (TableMut<'_, V>, &mut M) {
        (TableMut::new(&self.table), self.meta.get_mut())
    }

    /// Returns the number of entries without the lock. The result may already be out of date.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        TableRef::new(&self.table).len()
    }

    /// Returns true if there are no entries, without the lock. The result may already be out of
    /// date.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefetches the slot's own cache line: the first of three prefetches.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(std::ptr::from_ref(self));
    }

    /// Prefetches the bucket of `hash`, without the lock; reads the slot's cache line.
    #[inline(always)]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.table.prefetch_bucket(hash);
    }

    /// Prefetches the entry of `hash`, without the lock; reads the bucket's cache line. Does
    /// nothing while `participant` is offline.
    #[inline(always)]
    pub fn prefetch_entry(&self, hash: u64, participant: &Participant) {
        if participant.is_online() {
            self.table.prefetch_entry(hash);
        }
    }
}

/// The held lock of a slot, and the only access to the protected data. Dropping the guard unlocks
/// the slot. The guard cannot move to another thread.
pub struct SlotGuard<'a, V, M> {
    slot: &'a Slot<V, M>,
    not_send: PhantomData<*mut (V, M)>,
}

impl<'a, V, M> SlotGuard<'a, V, M> {
    /// Returns the table for reading.
    #[inline(always)]
    #[must_use]
    pub fn table(&self) -> TableRef<'_, V> {
        TableRef::new(&self.slot.table)
    }

    /// Returns the operations that change the table.
    #[inline(always)]
    pub fn table_mut(&mut self) -> TableMut<'_, V> {
        TableMut::new(&self.slot.table)
    }

    /// Returns the payload.
    #[inline(always)]
    #[must_use]
    pub fn meta(&self) -> &M {
        // SAFETY: 2: the guard is exclusive, and the payload is borrowed only as long as the guard.
        unsafe { &*self.slot.meta.get() }
    }

    /// Returns a mutable reference to the payload.
    #[inline(always)]
    pub fn meta_mut(&mut self) -> &mut M {
        // SAFETY: 2: as in `meta`, borrowed exclusively.
        unsafe { &mut *self.slot.meta.get() }
    }

    /// Returns eight bits that belong to the caller, 0 at first. They stay with the slot, not with
    /// its table.
    #[inline(always)]
    #[must_use]
    pub fn marks(&self) -> u8 {
        // SAFETY: 2: read through the exclusive guard.
        unsafe { *self.slot.marks.get() }
    }

    #[inline]
    pub fn set_marks(&mut self, marks: u8) {
        // SAFETY: 2: written through the exclusive guard, borrowed exclusively.
        unsafe { *self.slot.marks.get() = marks };
    }

    /// Returns a word that belongs to the caller, 0 at first. It stays with the slot, not with its
    /// table.
    #[inline(always)]
    #[must_use]
    pub fn stamp(&self) -> u32 {
        // SAFETY: 2: read through the exclusive guard.
        unsafe { *self.slot.stamp.get() }
    }

    #[inline]
    pub fn set_stamp(&mut self, stamp: u32) {
        // SAFETY: 2: written through the exclusive guard, borrowed exclusively.
        unsafe { *self.slot.stamp.get() = stamp };
    }

    /// Moves the whole table out; O(1).
    #[must_use]
    pub fn take_table(&mut self) -> Table<V> {
        self.table_mut().take()
    }

    /// Converts the guard into one that borrows the same slot through another reference, for guards
    /// that are lent for a shorter time than they live. Panics if `slot` is a different slot.
    #[must_use]
    pub fn through<'b>(self, slot: &'b Slot<V, M>) -> SlotGuard<'b, V, M> {
        assert!(std::ptr::eq(self.slot, slot), "a guard of another slot");
        std::mem::forget(self);
        SlotGuard { slot, not_send: PhantomData }
    }

    /// Returns the slot of this guard.
    #[inline(always)]
    #[must_use]
    pub fn slot(&self) -> &'a Slot<V, M> {
        self.slot
    }
}

impl<V, M> Drop for SlotGuard<'_, V, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.lock.store(FREE, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
