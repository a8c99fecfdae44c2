//! How a running command accesses its keys, with all side effects of the changes.
//!
//! A command declares its keys ([`crate::command::keyspec`]) and holds their slots. An access to a
//! key whose slot is not held is a bug in the command and is rejected: the key appears not to
//! exist, nothing is written, and the command ends with [`CommandError::UndeclaredKey`]
//! ([`Keys::refuse_undeclared`]). Earlier changes to keys that it holds stay and are propagated.

use super::entry::{EntryMut, EntryRef};
use super::evict::{initial_clock, touch};
use super::fields;
use super::marks::{CONCERNED, HAS_FIELD_TTLS, OCCUPIED, WAITED_FOR, WATCHED};
use super::snapshot::Change;
use super::{DbIndex, DbSlot, Entry, Key, Keyspace, SlotGuard, SlotId, Stored, StoredMut, UnixMs};
use crate::base::error::{CommandError, Result};
use crate::call::ctx::full_name;
use crate::command::Spec;
use crate::command::args::PreparedKey;
use crate::env::Env;
use crate::env::effect::{EventClass, Hooks};
use crate::types::Type;
use crate::types::string::{self, Str};
use std::cell::Cell;
use std::marker::PhantomData;

mod aftermath;
mod detached;
mod held;
mod locks;
mod slot_wait;
mod walk;

pub(super) use detached::{
    after_eviction, after_expiry, copy_entry, detach, free_value, note_removed, notify, seal_slot,
};
pub(crate) use detached::{discard, discard_value};
use held::{GuardList, Guards, HeldSlots};
pub(crate) use locks::HeldLocks;
use locks::distinct;
pub(crate) use slot_wait::{back_off, lock_blocking, must_postpone_writes};
pub use slot_wait::{on_slot_wait, postpone_writes_while};

/// Number of attempts on a held lock before the command is postponed: a few microseconds, longer
/// than most commands hold a slot.
const SPIN_ROUNDS: u32 = 200;

/// How replacing a value affects the key's TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    Persist,
    KeepDeadline,
    ExpireAt(UnixMs),
}

/// The keys that a command may use: those in the slots that it holds.
pub struct Keys<'a> {
    keyspace: &'a Keyspace,
    env: &'a Env,
    db: DbIndex,
    held: HeldSlots<'a>,
    dirty: u64,
    /// True if expired keys were removed first. The removal is propagated regardless of what the
    /// command does.
    pub(super) expired_any: bool,
    /// True if expired keys are hidden; see `hidden.rs`.
    pub(super) hides: bool,
    /// True if keys were hidden.
    pub(super) hidden_any: bool,
    /// True if the command used a key whose slot is not held.
    used_undeclared: Cell<bool>,
}

impl<'a> Keys<'a> {
    /// Locks the slots of `prepared` in database `db`, all or none, and removes the keys that have
    /// expired. [`CommandError::SlotBusy`] if another thread holds one of the slots.
    #[inline]
    pub fn lock(
        keyspace: &'a Keyspace,
        env: &'a Env,
        db: DbIndex,
        prepared: &[PreparedKey],
    ) -> Result<Keys<'a>> {
        let mut keys = Keys::unlocked(keyspace, env, db);
        keys.hold(prepared)?;
        Ok(keys)
    }

    /// Like [`Keys::lock`], for a `Keys` that holds nothing yet. It works in place, because moving
    /// the struct costs more than the lock. (If it were not inlined, a GET would take 38 more
    /// instructions; it takes 1,750.)
    #[inline(always)]
    pub(crate) fn hold(&mut self, prepared: &[PreparedKey]) -> Result<()> {
        self.assert_holds_nothing();
        match prepared {
            [] => {}
            [key] => {
                let slot = self.keyspace.database(self.db).slot(key.slot);
                let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
                self.held = HeldSlots::One((self.db, key.slot), guard);
            }
            many => {
                let db = self.db;
                self.lock_many(many.iter().map(|key| (db, key.slot)))?;
            }
        }
        Ok(())
    }

    /// Creates a `Keys` that holds no slot, for commands that have no keys or lock slots one by
    /// one.
    #[inline]
    pub fn unlocked(keyspace: &'a Keyspace, env: &'a Env, db: DbIndex) -> Keys<'a> {
        Keys {
            keyspace,
            env,
            db,
            held: HeldSlots::None,
            dirty: 0,
            expired_any: false,
            hides: false,
            hidden_any: false,
            used_undeclared: Cell::new(false),
        }
    }

    /// Locks the slots of `prepared` and `more` in database `db`. Waits as long as other threads
    /// hold them.
    pub(crate) fn hold_blocking(
        keyspace: &'a Keyspace,
        env: &'a Env,
        db: DbIndex,
        prepared: &[PreparedKey],
        more: &[SlotId],
    ) -> Keys<'a> {
        let mut keys = Keys::unlocked(keyspace, env, db);
        loop {
            let held = if more.is_empty() {
                keys.hold(prepared)
            } else {
                let slots = prepared.iter().map(|key| key.slot).chain(more.iter().copied());
                keys.lock_many(slots.map(|slot| (db, slot)))
            };
            if held.is_ok() {
                return keys;
            }
            back_off();
        }
    }

    fn lock_many(&mut self, wanted: impl Iterator<Item = DbSlot>) -> Result<()> {
        let places = distinct(wanted);
        let mut guards = GuardList::with_capacity(places.len());
        for place in places {
            let slot = self.keyspace.database(place.0).slot(place.1);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            guards.push((place, guard));
        }
        self.held = HeldSlots::Many(Guards::in_order(guards));
        Ok(())
    }

    /// Allows the command to use one more key, `key` in database `db`. The command must not have
    /// changed anything yet. [`CommandError::SlotBusy`] if another thread holds the slot.
    pub fn lock_also(&mut self, db: DbIndex, key: &Key<'_>) -> Result<()> {
        let place = (db, key.slot);
        if self.held.at(place).is_none() {
            let slot = self.keyspace.database(db).slot(key.slot);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            // A try-lock out of order cannot deadlock.
            self.held.add(place, guard);
        }
        let now = self.env.horizon();
        if self.held.at(place).is_some_and(|guard| guard.meta().earliest <= now) {
            self.in_db(db, |keys| keys.remove_if_expired(key, usize::MAX));
        }
        Ok(())
    }

    /// Like [`Keys::lock_also`], but waits as long as another thread holds the slot. The command
    /// must hold no other slot.
    pub fn lock_also_blocking(&mut self, db: DbIndex, key: &Key<'_>) {
        self.assert_holds_nothing();
        while self.lock_also(db, key).is_err() {
            back_off();
        }
    }

    /// Runs `action` with `db` as the selected database.
    pub fn in_db<R>(&mut self, db: DbIndex, action: impl FnOnce(&mut Keys<'a>) -> R) -> R {
        let home = std::mem::replace(&mut self.db, db);
        let result = action(self);
        self.db = home;
        result
    }

    #[inline]
    pub fn now(&self) -> UnixMs {
        self.env.now()
    }
    #[inline]
    pub fn db(&self) -> DbIndex {
        self.db
    }
    pub fn env(&self) -> &'a Env {
        self.env
    }
    pub fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }
    /// Number of changes made.
    #[inline]
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// For walks that lock slots one by one: they would wait forever for a slot that is held here.
    #[inline]
    pub(super) fn assert_holds_nothing(&self) {
        assert!(matches!(self.held, HeldSlots::None), "a walk over slots while one is held");
    }

    /// The slot, if it is held. Otherwise the access is recorded as undeclared.
    #[inline]
    fn guard(&self, slot: SlotId) -> Option<&SlotGuard<'a>> {
        let guard = self.held.at((self.db, slot));
        if guard.is_none() {
            self.note_undeclared();
        }
        guard
    }

    /// Like [`Self::guard`], but mutable.
    #[inline]
    fn guard_mut(&mut self, slot: SlotId) -> Option<&mut SlotGuard<'a>> {
        let guard = self.held.at_mut((self.db, slot));
        if guard.is_none() {
            self.used_undeclared.set(true);
        }
        guard
    }

    #[cold]
    fn note_undeclared(&self) {
        self.used_undeclared.set(true);
    }

    /// Reports whether the slot of a key is held. If not, the access is recorded as undeclared.
    pub(crate) fn holds(&self, key: &Key<'_>) -> bool {
        self.guard(key.slot).is_some()
    }

    /// Reports whether the command used a key whose slot is not held.
    #[inline]
    pub(crate) fn used_undeclared(&self) -> bool {
        self.used_undeclared.get()
    }

    /// Returns an error after the use of an undeclared key, so that the command does not continue
    /// as if the key did not exist.
    #[inline]
    pub(super) fn check_declared(&self) -> Result<()> {
        if self.used_undeclared() { Err(CommandError::undeclared_key()) } else { Ok(()) }
    }

    /// Replaces a command's result with an error that names the command, if it used an undeclared
    /// key.
    ///
    /// # Errors
    /// Those of the command, and [`CommandError::UndeclaredKey`].
    pub fn refuse_undeclared<R>(
        &self,
        result: Result<R>,
        spec: &'static Spec,
        parent: Option<&'static Spec>,
    ) -> Result<R> {
        match result {
            Err(CommandError::UndeclaredKey(_)) => {}
            result if !self.used_undeclared() => return result,
            _ => {}
        }
        Err(CommandError::UndeclaredKey(full_name(parent, spec)))
    }

    /// The context in which a slot is changed.
    #[inline(always)]
    fn change(&self) -> Change<'a> {
        Change { keyspace: self.keyspace, env: self.env, db: self.db }
    }

    #[inline]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<Stored<'_>> {
        self.guard(key.slot)?.table().find(key.hash, key.bytes)
    }

    #[inline]
    pub(super) fn find_mut_if_there(&mut self, key: &Key<'_>) -> Option<StoredMut<'_>> {
        let change = self.change();
        self.guard_mut(key.slot)?.find_mut(change, key.hash, key.bytes)
    }

    pub(super) fn find_mut(&mut self, key: &Key<'_>) -> StoredMut<'_> {
        self.find_mut_if_there(key).expect("an open entry stays while it is open")
    }

    /// The value, read-only; `None` if the key does not exist. Counts a hit or a miss and updates
    /// the access clock.
    #[inline]
    pub fn open<T: Type>(&self, key: &Key<'_>) -> Result<Option<T::Ref<'_>>> {
        match self.find(key) {
            Some(entry) => {
                self.env.tally.hits.add(1);
                touch(self.env, &entry);
                T::of(entry).map(Some)
            }
            None => {
                self.check_declared()?;
                self.missed(key);
                Ok(None)
            }
        }
    }

    /// The entry, read-only. Does not update its access clock.
    pub fn peek(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(key);
        match found {
            Some(_) => self.env.tally.hits.add(1),
            None => self.missed(key),
        }
        found.map(EntryRef)
    }

    /// Like [`Keys::peek`], without a keyspace event for a missing key.
    pub fn peek_silently(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(key);
        match found {
            Some(_) => self.env.tally.hits.add(1),
            None => self.env.tally.misses.add(1),
        }
        found.map(EntryRef)
    }

    /// The entry, without side effects on clocks, statistics or events.
    pub fn inspect(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        self.find(key).map(EntryRef)
    }

    /// Updates the access clock of an existing key, as TOUCH does. Counts a hit or a miss.
    pub fn touch(&self, key: &Key<'_>) -> bool {
        match self.find(key) {
            Some(entry) => {
                self.env.tally.hits.add(1);
                touch(self.env, &entry);
                true
            }
            None => {
                self.missed(key);
                false
            }
        }
    }

    fn missed(&self, key: &Key<'_>) {
        self.env.tally.misses.add(1);
        if !self.env.hooks.get().is_empty() {
            self.notify(key.bytes, EventClass::KEY_MISS, "keymiss");
        }
    }

    /// Reports whether an event is published for each key that was read and does not exist.
    pub(crate) fn notifies_misses(&self) -> bool {
        let (hooks, events) = (self.env.hooks.get(), self.env.settings.events);
        hooks.contains(Hooks::NOTIFY) && events.contains(EventClass::KEY_MISS)
    }

    /// The value, mutable; `None` if the key does not exist.
    #[inline]
    pub fn open_mut<'k, T: Type>(
        &'k mut self,
        key: &Key<'k>,
    ) -> Result<Option<EntryMut<'k, 'a, T>>> {
        match self.find(key) {
            Some(entry) => {
                touch(self.env, &entry);
                T::of(entry)?;
                Ok(Some(EntryMut { keys: self, key: *key, kind: PhantomData }))
            }
            None => self.check_declared().map(|()| None),
        }
    }

    /// The string, mutable. A key that does not exist is created with an empty string, and the
    /// caller must give it a value.
    pub fn open_or_insert_string<'k>(&'k mut self, key: &Key<'k>) -> Result<EntryMut<'k, 'a, Str>> {
        match self.find(key) {
            Some(entry) => {
                touch(self.env, &entry);
                Str::of(entry)?;
            }
            None => {
                self.check_declared()?;
                let entry = string::new_entry(key.bytes, b"");
                entry.set_clock(initial_clock(self.env));
                self.insert(key, entry);
            }
        }
        Ok(EntryMut { keys: self, key: *key, kind: PhantomData })
    }

    /// An entry of any type, to change its TTL or to remove it.
    pub fn open_any_mut<'k>(&'k mut self, key: &Key<'k>) -> Option<EntryMut<'k, 'a, ()>> {
        let entry = self.find(key)?;
        touch(self.env, &entry);
        Some(EntryMut { keys: self, key: *key, kind: PhantomData })
    }

    /// Reports whether the key exists, without side effects.
    #[inline]
    pub fn contains(&self, key: &Key<'_>) -> bool {
        self.find(key).is_some()
    }

    /// Stores `bytes` as SET does, regardless of what the key held before. A new TTL publishes the
    /// event `expire` after `event`, but both are one change.
    #[inline]
    pub fn set_string(
        &mut self,
        key: &Key<'_>,
        bytes: &[u8],
        deadline: Overwrite,
        event: &'static str,
    ) {
        let (keyspace, env, db) = (self.keyspace, self.env, self.db);
        let change = self.change();
        let Some(guard) = self.guard_mut(key.slot) else { return };
        let has_deadlines = guard.meta().with_deadline != 0;
        match guard.find_mut(change, key.hash, key.bytes) {
            Some(mut entry) => {
                if matches!(entry.value(), brisk_structures::entry::ValueRef::Object(_)) {
                    free_value(env, db, &mut entry);
                }
                string::store(&mut entry, bytes);
                entry.set_clock(initial_clock(env));
                if has_deadlines && deadline == Overwrite::Persist {
                    self.set_deadline(key, None);
                }
            }
            None => {
                let entry = string::new_entry(key.bytes, bytes);
                entry.set_clock(initial_clock(env));
                if guard.marks() & OCCUPIED == 0 {
                    keyspace.database(db).note_occupied(key.slot, guard);
                }
                guard.insert(change, key.hash, entry);
                env.tally.database(db).keys.add(1);
                self.announce_new(key);
            }
        }
        if let Overwrite::ExpireAt(at) = deadline {
            self.set_deadline(key, Some(at));
        }
        self.changed(key, EventClass::STRING, event);
        if matches!(deadline, Overwrite::ExpireAt(_)) && !self.env.hooks.get().is_empty() {
            self.notify(key.bytes, EventClass::GENERIC, "expire");
        }
    }

    /// Adds an entry under a key that does not exist. The entry may have a TTL.
    pub(crate) fn insert(&mut self, key: &Key<'_>, entry: Entry) {
        self.put_entry(key, entry);
        self.announce_new(key);
    }

    /// Like [`Keys::insert`]. An empty slot reserves room for `expected` keys.
    pub(crate) fn insert_first_of(&mut self, key: &Key<'_>, entry: Entry, expected: u32) {
        self.put_entry_first_of(key, entry, expected);
        self.announce_new(key);
    }

    /// Like [`Keys::insert`], to replace an entry that was just removed: the key is not new.
    pub(super) fn put_entry(&mut self, key: &Key<'_>, entry: Entry) {
        self.put_entry_first_of(key, entry, 0);
    }

    fn put_entry_first_of(&mut self, key: &Key<'_>, entry: Entry, expected: u32) {
        debug_assert_eq!(entry.key(), key.bytes);
        if let Some(deadline) = fields::inner_deadline(&entry) {
            self.note_inside(key.slot, deadline);
        }
        let deadline = entry.deadline().map(UnixMs);
        let tally = self.env.tally.database(self.db);
        let database = self.keyspace.database(self.db);
        let (env, change) = (self.env, self.change());
        let Some(guard) = self.guard_mut(key.slot) else { return discard(env, entry) };
        if guard.marks() & OCCUPIED == 0 {
            database.note_occupied(key.slot, guard);
        }
        if let Some(deadline) = deadline {
            let meta = guard.meta_mut();
            meta.with_deadline += 1;
            meta.note(deadline);
            tally.with_deadline.add(1);
            tally.deadlines_ms.add(deadline.0 as i64);
            self.note_replica_expire(key);
        }
        let Some(guard) = self.guard_mut(key.slot) else { return discard(env, entry) };
        match expected {
            0 => guard.insert(change, key.hash, entry),
            expected => guard.insert_first_of(change, key.hash, entry, expected),
        }
        let awaited = guard.marks() & WAITED_FOR != 0;
        tally.keys.add(1);
        if awaited {
            self.signal(key);
        }
    }

    pub(super) fn each_held(&mut self, mut change: impl FnMut(&mut SlotGuard<'a>)) {
        match &mut self.held {
            HeldSlots::None => {}
            HeldSlots::One(_, guard) => change(guard),
            HeldSlots::Many(guards) => guards.iter_mut().for_each(|(_, guard)| change(guard)),
        }
    }

    /// Reports whether one of the held slots has the mark.
    #[inline]
    pub(super) fn any_mark(&self, bit: u8) -> bool {
        match &self.held {
            HeldSlots::None => false,
            HeldSlots::One(_, guard) => guard.marks() & bit != 0,
            HeldSlots::Many(guards) => guards.iter().any(|(_, guard)| guard.marks() & bit != 0),
        }
    }

    /// Sets bits of a slot's marks.
    pub(super) fn mark(&mut self, slot: SlotId, bits: u8) {
        let Some(guard) = self.guard_mut(slot) else { return };
        let marks = guard.marks() | bits;
        guard.set_marks(marks);
    }

    pub(super) fn unmark(&mut self, slot: SlotId, bits: u8) {
        let Some(guard) = self.guard_mut(slot) else { return };
        let marks = guard.marks() & !bits;
        guard.set_marks(marks);
    }

    /// Called when a key was changed. Breaks its watches, and invalidates the key for clients that
    /// cache it.
    #[inline]
    fn notify_change(&self, key: &Key<'_>) {
        let marks = match &self.held {
            HeldSlots::One(_, guard) => guard.marks(),
            HeldSlots::None | HeldSlots::Many(_) => {
                self.guard(key.slot).map_or(0, SlotGuard::marks)
            }
        };
        if marks & CONCERNED != 0 {
            self.notify_concerned(key, marks);
        }
    }

    #[cold]
    fn notify_concerned(&self, key: &Key<'_>, marks: u8) {
        let exists = marks & WATCHED != 0 && self.contains(key);
        self.keyspace.notify_concerned(self.env, self.db, key, marks, exists);
    }

    /// Reports whether a client waits for a key of this slot.
    pub(super) fn is_waited_for(&self, slot: SlotId) -> bool {
        self.guard(slot).is_some_and(|guard| guard.marks() & WAITED_FOR != 0)
    }

    pub(super) fn announce_new(&self, key: &Key<'_>) {
        if self.env.hooks.get().contains(Hooks::NOTIFY) {
            self.notify(key.bytes, EventClass::NEW, "new");
        }
    }

    /// Removes the entry and returns it with its TTL. Publishes no event: that is up to the caller.
    pub(crate) fn detach(&mut self, key: &Key<'_>) -> Option<Entry> {
        let (keyspace, env, db) = (self.keyspace, self.env, self.db);
        let entry = detach(keyspace, env, db, self.guard_mut(key.slot)?, key.hash, key.bytes);
        if let Some(entry) = &entry {
            note_removed(self.env, self.db, entry);
        }
        entry
    }

    /// Removes a key as DEL and UNLINK do. False if it does not exist.
    pub fn delete(&mut self, key: &Key<'_>) -> bool {
        let Some(entry) = self.detach(key) else { return false };
        discard(self.env, entry);
        self.changed(key, EventClass::GENERIC, "del");
        true
    }

    /// Restarts the access clock of an entry that is about to move, because the walk that restarts
    /// clocks may already have passed the new slot.
    fn restart_clock(&self, entry: &Entry) {
        if self.keyspace.restarts_clocks() {
            entry.set_clock(initial_clock(self.env));
        }
    }

    /// Moves a key, with its TTL, to another name in the selected database and replaces that key.
    /// Both keys must be locked, and `from` must exist.
    pub fn rename(&mut self, from: &Key<'_>, to: &Key<'_>) {
        if !self.holds(from) || !self.holds(to) {
            return;
        }
        if let Some(old) = self.detach(to) {
            discard(self.env, old);
        }
        let entry = self.detach(from).expect("RENAME checked that the key exists");
        self.restart_clock(&entry);
        self.insert(to, entry.with_key(to.bytes));
        self.notify_event(from, EventClass::GENERIC, "rename_from");
        self.changed(to, EventClass::GENERIC, "rename_to");
    }

    /// Moves a key, with its TTL, to database `to`. Both slots must be locked. The key must exist
    /// in the selected database and not in `to`.
    pub fn move_to(&mut self, key: &Key<'_>, to: DbIndex) {
        if !self.holds(key) || !self.in_db(to, |keys| keys.holds(key)) {
            return;
        }
        let entry = self.detach(key).expect("MOVE checked that the key exists");
        self.restart_clock(&entry);
        self.in_db(to, |keys| keys.insert(key, entry));
        self.notify_event(key, EventClass::GENERIC, "move_from");
        self.in_db(to, |keys| keys.changed(key, EventClass::GENERIC, "move_to"));
    }

    /// Copies a key to `to` in database `db` and replaces that key. Large values are shared, so the
    /// copy is O(1) for them. Both slots must be locked, and the source must exist.
    pub fn copy_to(&mut self, from: &Key<'_>, db: DbIndex, to: &Key<'_>) {
        if !self.holds(from) || !self.in_db(db, |keys| keys.holds(to)) {
            return;
        }
        let source = self.find(from).expect("COPY checked that the key exists");
        let mut copy = copy_entry(&source, to.bytes);
        copy.set_deadline(source.deadline());
        let env = self.env;
        copy.set_clock(initial_clock(env));
        self.in_db(db, |keys| {
            if let Some(old) = keys.detach(to) {
                discard(env, old);
            }
            keys.insert(to, copy);
            keys.changed(to, EventClass::GENERIC, "copy_to");
        });
    }

    /// Sets or removes a TTL. Returns true if there was one. Publishes no event: that is up to the
    /// caller.
    pub(crate) fn set_deadline(&mut self, key: &Key<'_>, deadline: Option<UnixMs>) -> bool {
        let tally = self.env.tally.database(self.db);
        let change = self.change();
        let Some(guard) = self.guard_mut(key.slot) else { return false };
        let Some(mut entry) = guard.find_mut(change, key.hash, key.bytes) else {
            return false;
        };
        let before = entry.deadline();
        entry.set_deadline(deadline.map(|at| at.0));
        let has_field_ttls = guard.marks() & HAS_FIELD_TTLS != 0;
        let meta = guard.meta_mut();
        if let Some(before) = before {
            meta.with_deadline -= 1;
            tally.with_deadline.add(-1);
            tally.deadlines_ms.add((before as i64).wrapping_neg());
        }
        if let Some(at) = deadline {
            meta.with_deadline += 1;
            meta.note(at);
            tally.with_deadline.add(1);
            tally.deadlines_ms.add(at.0 as i64);
            self.note_replica_expire(key);
        } else if meta.with_deadline == 0 && !has_field_ttls {
            meta.no_deadlines();
        }
        before.is_some()
    }

    /// On a replica, records whether the replica's own clients have set the key's TTL. For all
    /// other keys, the primary decides which have expired.
    #[inline]
    fn note_replica_expire(&self, key: &Key<'_>) {
        if self.env.keeps_expired.get() {
            match self.env.is_replay() {
                true => self.keyspace.forget_replica_expire(self.db, key),
                false => self.keyspace.note_replica_expire(self.db, key),
            }
        }
    }

    /// Removes the command's keys that have expired, and the expired parts of the other keys'
    /// values. With `in_slices`, removes only as much as is quick, and returns false if more has
    /// expired.
    #[inline]
    pub(crate) fn remove_expired<'w>(
        &mut self,
        keys: impl Iterator<Item = Key<'w>>,
        in_slices: bool,
    ) -> bool {
        let now = self.env.horizon();
        let due = match &self.held {
            HeldSlots::None => false,
            HeldSlots::One(_, guard) => guard.meta().earliest <= now,
            HeldSlots::Many(guards) => guards.iter().any(|(_, guard)| guard.meta().earliest <= now),
        };
        let limit = if in_slices { fields::FIELDS_PER_SLICE } else { usize::MAX };
        let mut keys = keys;
        !due || keys.all(|key| self.remove_if_expired(&key, limit))
    }

    /// Returns false if more than `limit` elements of the key's value have expired.
    #[cold]
    fn remove_if_expired(&mut self, key: &Key<'_>, limit: usize) -> bool {
        if self.hides {
            self.hide_expired(key);
            return true;
        }
        let now = self.env.horizon();
        let deadline = self.find(key).and_then(|entry| entry.deadline());
        if deadline.is_some_and(|at| UnixMs(at) <= now) {
            let entry = self.detach(key).expect("it was just found");
            self.expired_any = true;
            after_expiry(self.env, self.db, entry);
            return true;
        }
        self.remove_expired_inside(key, limit)
    }

    /// The earliest expiry time inside a key's value, or a lower bound of it.
    pub(super) fn inner_deadline(&self, key: &Key<'_>) -> Option<UnixMs> {
        self.find(key).and_then(|entry| fields::inner_deadline(&entry))
    }
}
