//! Slots: the engine's view of them, in which a table is changed only behind the
//! hook of a snapshot.

use crate::keyspace::cut::Change;
use crate::keyspace::{SlotId, Stored, Table, Ticket, UnixMs};
use crate::types::{Entry, StoredMut, Value};
use brisk_structures::slot::{Slot as RawSlot, SlotGuard as RawGuard};
use brisk_structures::table::TableRef;

/// What a slot knows besides its table.
#[derive(Debug)]
pub struct SlotMeta {
    /// No key of the slot has a deadline before this, and no field of its hashes. A lower bound:
    /// removing the key that set it leaves it until the next sweep.
    pub(crate) earliest: UnixMs,
    /// The same for the deadlines that were set since the expiry cycle began its present walk over
    /// the slot: some of those keys lie behind it.
    pub(crate) earliest_since_walk: UnixMs,
    /// The ticket of the last write.
    pub(crate) last_write: Ticket,
    /// How many keys have a deadline.
    pub(crate) with_deadline: u32,
    /// The expiry cycle leaves the slot alone until this moment: the low 32 bits of milliseconds.
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
    /// A key of the slot now has this deadline.
    #[inline]
    pub(crate) fn note(&mut self, deadline: UnixMs) {
        self.earliest = self.earliest.min(deadline);
        self.earliest_since_walk = self.earliest_since_walk.min(deadline);
    }

    /// No key of the slot has a deadline any more.
    pub(crate) fn no_deadlines(&mut self) {
        self.with_deadline = 0;
        self.earliest = UnixMs::MAX;
        self.earliest_since_walk = UnixMs::MAX;
    }

    /// The table is another one: whatever a walk saw of it until now says nothing.
    pub(crate) fn restart_walk(&mut self) {
        self.earliest_since_walk = self.earliest;
    }
}

/// A slot: its table and what else it knows, behind its lock.
#[repr(transparent)]
pub struct Slot(RawSlot<Value, SlotMeta>);

impl Slot {
    pub(in crate::keyspace) fn new() -> Slot {
        Slot(RawSlot::new(SlotMeta::default()))
    }

    /// The lock, if it is free now.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<SlotGuard<'_>> {
        self.0.try_lock().map(SlotGuard)
    }

    /// The lock, if it becomes free within `bound` looks at it.
    #[inline(always)]
    pub fn lock_spin(&self, bound: u32) -> Option<SlotGuard<'_>> {
        self.0.lock_spin(bound).map(SlotGuard)
    }

    /// How many entries there are, without the lock: out of date as soon as it is known.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, likewise.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Asks for the slot's own line.
    #[inline(always)]
    pub fn prefetch(&self) {
        self.0.prefetch();
    }

    /// Asks for the bucket of `hash`; reads the slot's line.
    #[inline(always)]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.0.prefetch_bucket(hash);
    }

    /// Asks for the entry of `hash`; reads the bucket's line.
    #[inline(always)]
    pub fn prefetch_entry(&self, hash: u64, participant: &brisk_structures::reclaim::Participant) {
        self.0.prefetch_entry(hash, participant);
    }
}

/// A slot's lock, and the only way to what it protects.
///
/// Whatever changes the table passes [`Change::preserve`] first, so that a snapshot that is being
/// taken has the value of its moment: there is no way to a `&mut` of an entry, nor into or out of
/// the table, around it. The two exceptions are named for what they are ([`SlotGuard::stash`]).
pub struct SlotGuard<'a>(RawGuard<'a, Value, SlotMeta>);

impl<'a> SlotGuard<'a> {
    /// The table, for reading.
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

    /// The bits of `marks.rs`.
    #[inline(always)]
    pub fn marks(&self) -> u8 {
        self.0.marks()
    }

    #[inline]
    pub fn set_marks(&mut self, marks: u8) {
        self.0.set_marks(marks);
    }

    /// The cut up to which nothing of the slot is owed any more.
    #[inline(always)]
    pub(in crate::keyspace) fn stamp(&self) -> u32 {
        self.0.stamp()
    }

    pub(in crate::keyspace) fn set_stamp(&mut self, stamp: u32) {
        self.0.set_stamp(stamp);
    }

    /// The same lock, held through another reference to the slot. Panics if it is another slot.
    pub(in crate::keyspace) fn through<'b>(self, slot: &'b Slot) -> SlotGuard<'b> {
        SlotGuard(self.0.through(&slot.0))
    }

    /// The entry, to change.
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

    /// Adds an entry under a key that is not there.
    #[inline(always)]
    pub(in crate::keyspace) fn insert(&mut self, change: Change<'_>, hash: u64, entry: Entry) {
        change.preserve(self, hash, entry.key());
        self.0.table_mut().insert(hash, entry);
    }

    /// The same; a table without entries gets room for `expected` at once.
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

    /// Takes an entry out.
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

    /// As [`brisk_structures::table::TableMut::extract_at`].
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

    /// Takes an entry out of sight until [`SlotGuard::unstash`], within one hold of the lock: no
    /// change.
    pub(in crate::keyspace) fn stash(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        self.0.table_mut().remove(hash, key)
    }

    /// Puts an entry where it was, or one in its place that leaves again within the same hold of
    /// the lock; what was there.
    pub(in crate::keyspace) fn unstash(&mut self, hash: u64, entry: Entry) -> Option<Entry> {
        self.0.table_mut().replace(hash, entry)
    }

    /// Takes the whole table out; who does it has told [`crate::keyspace::cut::Cuts`]. O(1).
    pub(in crate::keyspace) fn take_table(&mut self) -> Table {
        self.0.take_table()
    }

    /// Exchanges the tables of two slots, likewise. O(1).
    pub(in crate::keyspace) fn exchange_tables(&mut self, other: &mut SlotGuard<'_>) {
        let (mine, theirs) = (self.take_table(), other.take_table());
        self.0.table_mut().put(theirs);
        other.0.table_mut().put(mine);
    }
}
