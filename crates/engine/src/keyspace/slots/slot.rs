//! The engine's view of a slot: every change to its table goes through the snapshot hook.

use crate::keyspace::snapshot::Change;
use crate::keyspace::{SlotId, Stored, Table, Ticket, UnixMs};
use crate::types::{Entry, StoredMut, Value};
use brisk_structures::slot::{Slot as RawSlot, SlotGuard as RawGuard};
use brisk_structures::table::TableRef;

/// The state that a slot stores in addition to its table.
#[derive(Debug)]
pub struct SlotMeta {
    /// Lower bound of the expiry times of the slot's keys and of the fields of its hashes. Removing
    /// the key that set the bound does not raise it until the next sweep.
    pub(crate) earliest: UnixMs,
    /// Lower bound of the expiry times set since the expiry cycle began its current walk over the
    /// slot. The walk has already passed some of those keys.
    pub(crate) earliest_since_walk: UnixMs,
    /// The ticket of the last write.
    pub(crate) last_write: Ticket,
    /// Number of keys with a TTL.
    pub(crate) with_deadline: u32,
    /// The expiry cycle skips the slot until this time: the low 32 bits of milliseconds.
    pub(crate) rest_until: u32,
}

impl Default for SlotMeta {
    fn default() -> SlotMeta {
        SlotMeta {
            earliest: UnixMs::MAX,
            earliest_since_walk: UnixMs::MAX,
            last_write: Ticket::default(),
            with_deadline: 0,
            rest_until: 0,
        }
    }
}

impl SlotMeta {
    /// Records that a key of the slot got this expiry time.
    #[inline]
    pub(crate) fn note(&mut self, deadline: UnixMs) {
        self.earliest = self.earliest.min(deadline);
        self.earliest_since_walk = self.earliest_since_walk.min(deadline);
    }

    /// Records that no key of the slot has a TTL anymore.
    pub(crate) fn no_deadlines(&mut self) {
        self.with_deadline = 0;
        self.earliest = UnixMs::MAX;
        self.earliest_since_walk = UnixMs::MAX;
    }

    /// Called when the table was replaced, so that a walk does not rely on what it has seen.
    pub(crate) fn restart_walk(&mut self) {
        self.earliest_since_walk = self.earliest;
    }
}

/// A slot: its lock, its table and the state next to the table.
#[repr(transparent)]
pub struct Slot(RawSlot<Value, SlotMeta>);

impl Slot {
    pub(in crate::keyspace) fn new() -> Slot {
        Slot(RawSlot::new(SlotMeta::default()))
    }

    /// Takes the lock if it is free now.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<SlotGuard<'_>> {
        self.0.try_lock().map(SlotGuard)
    }

    /// Takes the lock if it becomes free within `bound` attempts.
    #[inline(always)]
    pub fn lock_spin(&self, bound: u32) -> Option<SlotGuard<'_>> {
        self.0.lock_spin(bound).map(SlotGuard)
    }

    /// Number of entries, read without the lock. It may be outdated immediately.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports, without the lock, whether the slot has no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prefetches the slot's own cache line.
    #[inline(always)]
    pub fn prefetch(&self) {
        self.0.prefetch();
    }

    /// Prefetches the bucket of `hash`. Reads the slot's cache line.
    #[inline(always)]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.0.prefetch_bucket(hash);
    }

    /// Prefetches the entry of `hash`. Reads the bucket's cache line.
    #[inline(always)]
    pub fn prefetch_entry(&self, hash: u64, participant: &brisk_structures::reclaim::Participant) {
        self.0.prefetch_entry(hash, participant);
    }
}

/// The lock of a slot, and the only access to the data that it protects.
///
/// Every change to the table passes `Change::preserve` first, so that a snapshot in progress gets
/// the value as it was when the snapshot began. No other path leads to a `&mut` of an entry, or
/// into or out of the table. The two exceptions are `SlotGuard::stash` and `SlotGuard::unstash`.
pub struct SlotGuard<'a>(RawGuard<'a, Value, SlotMeta>);

impl<'a> SlotGuard<'a> {
    /// The table, read-only.
    #[inline(always)]
    pub fn table(&self) -> TableRef<'_, Value> {
        self.0.table()
    }

    #[inline(always)]
    pub fn meta(&self) -> &SlotMeta {
        self.0.meta()
    }

    #[inline(always)]
    pub fn meta_mut(&mut self) -> &mut SlotMeta {
        self.0.meta_mut()
    }

    /// The bits defined in `marks.rs`.
    #[inline(always)]
    pub fn marks(&self) -> u8 {
        self.0.marks()
    }

    #[inline]
    pub fn set_marks(&mut self, marks: u8) {
        self.0.set_marks(marks);
    }

    /// The newest snapshot that no longer needs anything from the slot.
    #[inline(always)]
    pub(in crate::keyspace) fn stamp(&self) -> u32 {
        self.0.stamp()
    }

    pub(in crate::keyspace) fn set_stamp(&mut self, stamp: u32) {
        self.0.set_stamp(stamp);
    }

    /// The same lock, held through another reference to the slot. Panics if `slot` is a different
    /// slot.
    pub(in crate::keyspace) fn through<'b>(self, slot: &'b Slot) -> SlotGuard<'b> {
        SlotGuard(self.0.through(&slot.0))
    }

    /// The entry, mutable.
    #[inline(always)]
    pub(in crate::keyspace) fn find_mut(
        &mut self,
        change: Change<'_>,
        hash: u64,
        key: &[u8],
    ) -> Option<StoredMut<'_>> {
        change.preserve(self, hash, key);
        self.0.table_mut().into_find_mut(hash, key)
    }

    /// Adds an entry whose key does not exist yet.
    #[inline(always)]
    pub(in crate::keyspace) fn insert(&mut self, change: Change<'_>, hash: u64, entry: Entry) {
        change.preserve(self, hash, entry.key());
        self.0.table_mut().insert(hash, entry);
    }

    /// Like [`SlotGuard::insert`]. An empty table reserves room for `expected` entries.
    #[inline(always)]
    pub(in crate::keyspace) fn insert_first_of(
        &mut self,
        change: Change<'_>,
        hash: u64,
        entry: Entry,
        expected: u32,
    ) {
        change.preserve(self, hash, entry.key());
        self.0.table_mut().insert_first_of(hash, entry, expected);
    }

    /// Removes an entry from the table and returns it.
    #[inline(always)]
    pub(in crate::keyspace) fn remove(
        &mut self,
        change: Change<'_>,
        hash: u64,
        key: &[u8],
    ) -> Option<Entry> {
        change.preserve_leaving(self, hash, key);
        self.0.table_mut().remove(hash, key)
    }

    /// Like [`brisk_structures::table::TableMut::extract_at`].
    pub(in crate::keyspace) fn extract_at(
        &mut self,
        change: Change<'_>,
        slot: SlotId,
        cursor: u32,
        is_wanted: impl FnMut(Stored<'_>) -> bool,
        mut sink: impl FnMut(Entry),
    ) -> u32 {
        let owes = change.begin_to_preserve(self, slot);
        self.0.table_mut().extract_at(cursor, is_wanted, |entry| {
            if owes {
                change.preserve_removed(&entry);
            }
            sink(entry);
        })
    }

    /// Hides an entry until [`SlotGuard::unstash`]. The lock must be held throughout. This does not
    /// count as a change to the data.
    pub(in crate::keyspace) fn stash(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        self.0.table_mut().remove(hash, key)
    }

    /// Puts an entry back, or a substitute that is taken out again before the lock is released.
    /// Returns the entry that it replaced.
    pub(in crate::keyspace) fn unstash(&mut self, hash: u64, entry: Entry) -> Option<Entry> {
        self.0.table_mut().replace(hash, entry)
    }

    /// Takes the whole table. The caller has notified [`crate::keyspace::snapshot::Snapshots`]. O(1).
    pub(in crate::keyspace) fn take_table(&mut self) -> Table {
        self.0.take_table()
    }

    /// Exchanges the tables of two slots. The caller has notified the snapshots. O(1).
    pub(in crate::keyspace) fn exchange_tables(&mut self, other: &mut SlotGuard<'_>) {
        let (mine, theirs) = (self.take_table(), other.take_table());
        self.0.table_mut().put(theirs);
        other.0.table_mut().put(mine);
    }
}
