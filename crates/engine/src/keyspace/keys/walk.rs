//! Walks over all slots of a database: each slot is locked separately, or all threads are quiesced.

use super::Keys;
use super::detached::{after_expiry, detach, seal_slot};
use super::slot_wait::{lock_blocking, must_postpone_writes};
use crate::env::Garbage;
use crate::keyspace::entry::EntryRef;
use crate::keyspace::fields;
use crate::keyspace::marks::{FIELD_MARKS, WAITED_FOR, WATCHED};
use crate::keyspace::tally::DatabaseTotals;
use crate::keyspace::{DbIndex, Key, Keyspace, SLOTS, SlotGuard, SlotId, Stored, UnixMs};
use std::ops::ControlFlow;

impl<'a> Keys<'a> {
    /// Calls `visit` with every slot of a database that is not empty. Each slot is locked
    /// separately. O(slots with keys), plus the cost of `visit`.
    pub fn each_slot(
        &self,
        db: DbIndex,
        mut visit: impl FnMut(SlotId, &mut SlotGuard<'a>) -> ControlFlow<()>,
    ) {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(db) else { return };
        for slot in database.occupied_from(0) {
            let mut guard = lock_blocking(database, slot);
            if visit(slot, &mut guard).is_break() {
                return;
            }
        }
    }

    /// Up to `count` keys of a slot, which is locked during the call. Expired keys that were not removed are among
    /// them. O(keys returned).
    pub fn keys_of_slot(&self, db: DbIndex, slot: SlotId, count: usize) -> Vec<Vec<u8>> {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(db) else { return Vec::new() };
        let guard = lock_blocking(database, slot);
        let (table, mut found) =
            (guard.table(), Vec::with_capacity(count.min(guard.table().len())));
        let mut position = 0;
        while found.len() < count {
            position = table.scan(position, |entry| {
                if found.len() < count {
                    found.push(entry.key().to_vec());
                }
            });
            if position == 0 {
                break;
            }
        }
        found
    }

    /// Number of entries of a held slot, including expired ones.
    pub(crate) fn entry_count(&self, slot: SlotId) -> usize {
        self.guard(slot).map_or(0, |guard| guard.table().len())
    }

    /// Reports whether a held slot may have keys or hash fields that expire by `now`. O(1).
    pub(crate) fn may_have_due(&self, slot: SlotId, now: UnixMs) -> bool {
        self.guard(slot).is_some_and(|guard| guard.meta().earliest <= now)
    }

    /// Calls `visit` with all entries of a held slot, including expired ones. O(entries).
    pub(crate) fn each_entry(&self, slot: SlotId, mut visit: impl FnMut(EntryRef<'_>)) {
        if let Some(guard) = self.guard(slot) {
            guard.table().for_each_prefetched(|entry| visit(EntryRef(entry)));
        }
    }

    /// Visits at least `count` keys, in whole buckets, starting at `cursor`. Returns the next cursor, which is 0 at the
    /// end. Keys that exist throughout a full iteration are visited exactly once, even if tables grow or shrink during
    /// it. Expired keys are not visited.
    ///
    /// A cursor is `slot * 2^24 + position`, where a position is a point in the order of hashes.
    pub fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(EntryRef<'_>)) -> u64 {
        self.walk(cursor, count, |_| false, visit).0
    }

    /// Reports whether a key exists and has not expired. The key's slot is not held. An expired key
    /// is not removed, as in all commands that only iterate over keys.
    pub fn is_alive(&self, key: &Key<'_>) -> bool {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(self.db) else { return false };
        let guard = lock_blocking(database, key.slot);
        let alive =
            |entry: Stored<'_>| entry.deadline().is_none_or(|at| UnixMs(at) > self.env.horizon());
        guard.table().find(key.hash, key.bytes).is_some_and(alive)
    }

    /// Reports whether a key exists and has expired. The key's slot is not held.
    pub(crate) fn has_expired(&self, key: &Key<'_>) -> bool {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(self.db) else { return false };
        let guard = lock_blocking(database, key.slot);
        let due =
            |entry: Stored<'_>| entry.deadline().is_some_and(|at| UnixMs(at) <= self.env.horizon());
        guard.meta().earliest <= self.env.horizon()
            && guard.table().find(key.hash, key.bytes).is_some_and(due)
    }

    /// Like [`Keys::scan`], but also removes the expired keys for which `concerns` returns true.
    pub fn scan_and_expire(
        &mut self,
        cursor: u64,
        count: u64,
        concerns: impl FnMut(&EntryRef<'_>) -> bool,
        visit: impl FnMut(EntryRef<'_>),
    ) -> u64 {
        let (next, removed) = self.walk(cursor, count, concerns, visit);
        self.expired_any |= removed;
        next
    }

    /// Returns the next cursor, and whether expired keys were removed.
    fn walk(
        &self,
        cursor: u64,
        count: u64,
        mut remove: impl FnMut(&EntryRef<'_>) -> bool,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> (u64, bool) {
        self.assert_holds_nothing();
        const POSITION_BITS: u32 = 24;
        let Some(database) = self.keyspace.database_if_used(self.db) else { return (0, false) };
        let now = self.env.horizon();
        let keeps_expired = self.env.keeps_expired.get();
        let mut position = (cursor & ((1 << POSITION_BITS) - 1)) as u32;
        let first = usize::try_from(cursor >> POSITION_BITS).unwrap_or(SLOTS).min(SLOTS);
        let (mut seen, mut removed) = (0, false);
        let mut expired: Vec<Vec<u8>> = Vec::new();
        for id in database.occupied_from(first) {
            if id.index() != first {
                position = 0;
            }
            while !database.slot(id).is_empty() {
                if seen >= count {
                    let slot = id.index() as u64;
                    return (slot << POSITION_BITS | u64::from(position), removed);
                }
                let mut guard = lock_blocking(database, id);
                position = guard.table().scan(position, |entry| {
                    seen += 1;
                    let alive = entry.deadline().is_none_or(|at| UnixMs(at) > now);
                    let entry = EntryRef(entry);
                    if alive {
                        visit(entry);
                    } else if !keeps_expired && remove(&entry) {
                        expired.push(entry.key().to_vec());
                    }
                });
                if !expired.is_empty() && must_postpone_writes() {
                    expired.clear();
                }
                for key in expired.drain(..) {
                    let hash = self.keyspace.hasher().hash(&key);
                    let entry = detach(self.keyspace, self.env, self.db, &mut guard, hash, &key);
                    entry.into_iter().for_each(|entry| after_expiry(self.env, self.db, entry));
                    removed = true;
                    seal_slot(self.keyspace, self.env, (self.db, id), &mut guard);
                }
                if position == 0 {
                    break;
                }
            }
        }
        (0, removed)
    }

    /// Removes all keys of a database and returns their number. Call it only during quiescence. O(slots with keys),
    /// because another thread frees the memory.
    pub fn flush(&mut self, db: DbIndex) -> u64 {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(db) else { return 0 };
        let was = self.keyspace.totals_of(db);
        for id in database.occupied_from(0) {
            let mut guard = lock_blocking(database, id);
            if guard.marks() & WATCHED != 0 {
                self.keyspace.break_watches_of_all((db, id), self.env.horizon(), &guard, None);
            }
            self.keyspace.note_other_contents((db, id), &guard);
            guard.meta_mut().no_deadlines();
            let marks = guard.marks() & !FIELD_MARKS;
            guard.set_marks(marks);
            let table = self.keyspace.hand_over(self.env, (db, id), &mut guard);
            if guard.marks() & WAITED_FOR != 0 {
                self.signal_all(db, id);
            }
            self.env.garbage.borrow_mut().extend(table.map(Garbage::Table));
            self.wrote_slot(db, id);
        }
        self.env.tally.database(db).shift(&was, &DatabaseTotals::default());
        was.keys
    }

    /// Exchanges two databases. Call it only during quiescence. O(slots with keys).
    pub fn swap(&mut self, a: DbIndex, b: DbIndex) {
        self.assert_holds_nothing();
        // Exchanging a database with itself counts as a change too, although nothing moves.
        self.dirty += 1;
        if a == b {
            return;
        }
        self.keyspace.clocks.start_again();
        let (first, second) = (self.keyspace.database(a), self.keyspace.database(b));
        first.forget_empty_words();
        second.forget_empty_words();
        let mut places: Vec<SlotId> =
            first.occupied_from(0).chain(second.occupied_from(0)).collect();
        places.sort_unstable();
        places.dedup();
        for id in places {
            let mut first_guard = lock_blocking(first, id);
            let mut second_guard = lock_blocking(second, id);
            for (db, before, after) in
                [(a, &first_guard, &second_guard), (b, &second_guard, &first_guard)]
            {
                let place = (db, id);
                self.keyspace.note_other_contents(place, before);
                if before.marks() & WATCHED != 0 {
                    self.keyspace.break_watches_of_all(
                        place,
                        self.env.horizon(),
                        before,
                        Some(after),
                    );
                }
            }
            std::mem::swap(first_guard.meta_mut(), second_guard.meta_mut());
            // A sweep in the middle of one table continues in the other table.
            first_guard.meta_mut().restart_walk();
            second_guard.meta_mut().restart_walk();
            fields::swap_marks(&mut first_guard, &mut second_guard);
            self.keyspace.exchange(self.env, [a, b], id, [&mut first_guard, &mut second_guard]);
            first.note_occupied(id, &mut first_guard);
            second.note_occupied(id, &mut second_guard);
            self.wrote_slot(a, id);
            self.wrote_slot(b, id);
            // Clients wait for keys of a database number, so the swap may have made their keys
            // ready.
            for (db, guard) in [(a, &first_guard), (b, &second_guard)] {
                if guard.marks() & WAITED_FOR != 0 {
                    self.signal_all(db, id);
                }
            }
        }
        first.share_inner_deadlines(second);
        let (at_a, at_b) = (self.keyspace.totals_of(a), self.keyspace.totals_of(b));
        self.env.tally.database(a).shift(&at_a, &at_b);
        self.env.tally.database(b).shift(&at_b, &at_a);
    }
}

impl Keys<'_> {
    /// Replaces all contents with those of another keyspace with the same number of databases.
    /// Another thread frees the old contents. Call it only during quiescence, while no snapshot
    /// emits entries and the caller is the only user of the other keyspace. O(slots with keys).
    pub fn adopt(&mut self, other: &Keyspace) {
        self.assert_holds_nothing();
        self.keyspace.clocks.start_again();
        for db in self.keyspace.databases() {
            let Some(theirs) = other.database_if_used(db) else {
                self.flush(db);
                continue;
            };
            let ours = self.keyspace.database(db);
            ours.forget_empty_words();
            let mut places: Vec<SlotId> =
                ours.occupied_from(0).chain(theirs.occupied_from(0)).collect();
            places.sort_unstable();
            places.dedup();
            for id in places {
                let mut our_guard = lock_blocking(ours, id);
                let mut their_guard = lock_blocking(theirs, id);
                self.keyspace.note_other_contents((db, id), &our_guard);
                if our_guard.marks() & WATCHED != 0 {
                    let horizon = self.env.horizon();
                    self.keyspace.break_watches_of_all(
                        (db, id),
                        horizon,
                        &our_guard,
                        Some(&their_guard),
                    );
                }
                let last_write = our_guard.meta().last_write;
                std::mem::swap(our_guard.meta_mut(), their_guard.meta_mut());
                our_guard.meta_mut().restart_walk();
                our_guard.meta_mut().last_write = last_write;
                fields::swap_marks(&mut our_guard, &mut their_guard);
                our_guard.exchange_tables(&mut their_guard);
                if !our_guard.table().is_empty() {
                    ours.note_occupied(id, &mut our_guard);
                }
                let before = their_guard.take_table();
                if !before.view().is_empty() {
                    self.env.garbage.borrow_mut().push(Garbage::Table(before));
                }
                if our_guard.marks() & WAITED_FOR != 0 {
                    self.signal_all(db, id);
                }
            }
            ours.share_inner_deadlines(theirs);
            let (was, is) = (self.keyspace.totals_of(db), other.totals_of(db));
            self.env.tally.database(db).shift(&was, &is);
        }
    }
}

impl Keyspace {
    /// Calls `visit` with all keys of a database that have not expired, slot by slot. Each step
    /// locks its slot separately. Keys that exist throughout are visited exactly once. The calling
    /// thread must hold no slot. O(keys + slots with keys).
    pub(crate) fn each_key(&self, db: DbIndex, now: UnixMs, mut visit: impl FnMut(EntryRef<'_>)) {
        let Some(database) = self.database_if_used(db) else { return };
        for id in database.occupied_from(0) {
            let mut position = 0;
            while !database.slot(id).is_empty() {
                let guard = lock_blocking(database, id);
                position = guard.table().scan(position, |entry| {
                    if entry.deadline().is_none_or(|at| UnixMs(at) > now) {
                        visit(EntryRef(entry));
                    }
                });
                if position == 0 {
                    break;
                }
            }
        }
    }
}
