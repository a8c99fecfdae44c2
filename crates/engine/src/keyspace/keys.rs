//! The one gate to values: what a running command may do with keys, and what it thereby leaves
//! behind.

use super::entry::{EntryMut, EntryRef};
use super::evict::{initial_clock, touch};
use super::fields;
use super::marks::{CONCERNED, FIELD_MARKS, FIELDS_EXPIRE, OCCUPIED, WAITED_FOR, WATCHED};
use super::tally::DatabaseTotals;
use super::{
    Database, DbIndex, Entry, Key, Keyspace, Place, SLOTS, SlotGuard, SlotId, Stored, StoredMut,
    Ticket, UnixMs,
};
use crate::args::PreparedKey;
use crate::effect::{Armed, Effect, Event, EventClass};
use crate::env::{Env, Garbage};
use crate::error::{CommandError, Result};
use crate::types::string::{self, Str};
use crate::types::{Kind, Type, Value};
use brisk_structures::crc16::key_slot;
use smallvec::SmallVec;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::rc::Rc;

/// How often a held lock is looked at again before the command is put off: a few microseconds,
/// longer than most commands hold a slot.
const SPIN_ROUNDS: u32 = 200;

/// The slots a command holds.
enum Held<'a> {
    None,
    One(Place, SlotGuard<'a>),
    /// In ascending order, no place twice.
    Many(SmallVec<[(Place, SlotGuard<'a>); 4]>),
}

/// Slots held for several commands, each of which borrows those of its keys.
pub(crate) struct Locks<'k> {
    keyspace: &'k Keyspace,
    /// In ascending order, no place twice; `None` while a command has the guard.
    guards: SmallVec<[(Place, Option<SlotGuard<'k>>); 2]>,
}

impl<'k> Locks<'k> {
    /// Locks all of `places` or none. [`CommandError::SlotBusy`] if another thread holds one.
    pub(crate) fn take(
        keyspace: &'k Keyspace,
        places: impl Iterator<Item = Place>,
    ) -> Result<Locks<'k>> {
        let places = distinct(places);
        let mut guards = SmallVec::with_capacity(places.len());
        for place in places {
            let slot = keyspace.database(place.0).slot(place.1);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            guards.push((place, Some(guard)));
        }
        Ok(Locks { keyspace, guards })
    }

    /// The slot of a place that is held, and that no command has.
    pub(crate) fn at(&mut self, place: Place) -> Option<&mut SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held).ok()?;
        self.guards[at].1.as_mut()
    }

    /// All places, in ascending order.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.guards.iter().map(|(place, _)| *place).collect()
    }

    /// Whether a place is held.
    pub(crate) fn has(&self, place: Place) -> bool {
        self.guards.binary_search_by_key(&place, |(held, _)| *held).is_ok()
    }

    fn lend(&mut self, place: Place) -> Result<SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held);
        let guard = at.ok().and_then(|at| self.guards[at].1.take());
        debug_assert!(guard.is_some(), "a unit holds the slots of all its commands");
        guard.ok_or(CommandError::SlotBusy)
    }

    /// Gives the slots of `prepared` to keys that hold nothing yet.
    pub(crate) fn lend_to<'a>(&mut self, keys: &mut Keys<'a>, wanted: &[PreparedKey]) -> Result<()>
    where
        'k: 'a,
    {
        keys.assert_holds_nothing();
        keys.held = match wanted {
            [] => Held::None,
            [key] => Held::One((keys.db, key.slot), self.lend((keys.db, key.slot))?),
            many => {
                let mut guards = SmallVec::new();
                for place in distinct(many.iter().map(|key| (keys.db, key.slot))) {
                    guards.push((place, self.lend(place)?));
                }
                Held::Many(guards)
            }
        };
        Ok(())
    }

    /// Takes back what [`Locks::lend_to`] gave.
    pub(crate) fn take_back(&mut self, keys: Keys<'_>) {
        let (keyspace, own) = (self.keyspace, &mut self.guards);
        let mut put = |place: Place, guard: SlotGuard<'_>| {
            if let Ok(at) = own.binary_search_by_key(&place, |(held, _)| *held) {
                let slot = keyspace.database(place.0).slot(place.1);
                own[at].1 = Some(guard.through(slot));
            }
        };
        match keys.held {
            Held::None => {}
            Held::One(place, guard) => put(place, guard),
            Held::Many(guards) => guards.into_iter().for_each(|(place, guard)| put(place, guard)),
        }
    }
}

/// Places in ascending order, none twice.
fn distinct(places: impl Iterator<Item = Place>) -> SmallVec<[Place; 16]> {
    let mut places: SmallVec<[Place; 16]> = places.collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What becomes of a key's deadline when its value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    Persist,
    KeepDeadline,
    ExpireAt(UnixMs),
}

/// The keys a command may touch: those in the slots it holds.
pub struct Keys<'a> {
    keyspace: &'a Keyspace,
    env: &'a Env,
    db: DbIndex,
    held: Held<'a>,
    dirty: u64,
    /// Expired keys were removed on the way, which is propagated whatever the command does.
    pub(super) expired_any: bool,
    /// Expired keys are put aside, see `hidden.rs`.
    pub(super) hides: bool,
    /// Some were.
    pub(super) hidden_any: bool,
}

impl<'a> Keys<'a> {
    /// Locks the slots of `prepared` in database `db`, all or none, and removes those of the keys
    /// that are expired. [`CommandError::SlotBusy`] if another thread holds one of the slots.
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

    /// [`Keys::lock`] of keys that hold nothing yet; in place, because moving them costs more than
    /// the lock.
    #[inline]
    pub(crate) fn hold(&mut self, prepared: &[PreparedKey]) -> Result<()> {
        self.assert_holds_nothing();
        match prepared {
            [] => {}
            [key] => {
                let slot = self.keyspace.database(self.db).slot(key.slot);
                let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
                self.held = Held::One((self.db, key.slot), guard);
            }
            many => {
                let db = self.db;
                self.lock_many(many.iter().map(|key| (db, key.slot)))?;
            }
        }
        Ok(())
    }

    /// Keys that hold no slot: for commands without keys, or that look at slots one by one.
    #[inline]
    pub fn unlocked(keyspace: &'a Keyspace, env: &'a Env, db: DbIndex) -> Keys<'a> {
        Keys {
            keyspace,
            env,
            db,
            held: Held::None,
            dirty: 0,
            expired_any: false,
            hides: false,
            hidden_any: false,
        }
    }

    fn lock_many(&mut self, wanted: impl Iterator<Item = Place>) -> Result<()> {
        let places = distinct(wanted);
        let mut guards = SmallVec::with_capacity(places.len());
        for place in places {
            let slot = self.keyspace.database(place.0).slot(place.1);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            guards.push((place, guard));
        }
        self.held = Held::Many(guards);
        Ok(())
    }

    /// Lets the command also touch `key` in database `db`. Nothing may have been changed yet.
    /// [`CommandError::SlotBusy`] if another thread holds the slot.
    pub fn lock_also(&mut self, db: DbIndex, key: &Key<'_>) -> Result<()> {
        let place = (db, key.slot);
        if self.guard_at(place).is_none() {
            let slot = self.keyspace.database(db).slot(key.slot);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            let mut guards = match std::mem::replace(&mut self.held, Held::None) {
                Held::None => SmallVec::new(),
                Held::One(place, guard) => SmallVec::from_iter([(place, guard)]),
                Held::Many(guards) => guards,
            };
            // A try-lock out of order cannot deadlock; the order is for the search only.
            let at = guards.partition_point(|(held, _)| *held < place);
            guards.insert(at, (place, guard));
            self.held = Held::Many(guards);
        }
        self.in_db(db, |keys| keys.remove_if_expired(key, usize::MAX));
        Ok(())
    }

    /// The same, however long another thread holds the slot. The command holds no other.
    pub fn lock_also_patiently(&mut self, db: DbIndex, key: &Key<'_>) {
        self.assert_holds_nothing();
        while self.lock_also(db, key).is_err() {
            have_patience();
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
    /// How many changes were made.
    #[inline]
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    #[inline]
    fn guard_at(&self, place: Place) -> Option<&SlotGuard<'a>> {
        match &self.held {
            Held::One(held, guard) if *held == place => Some(guard),
            Held::None | Held::One(..) => None,
            Held::Many(guards) => {
                let at = guards.binary_search_by_key(&place, |(held, _)| *held).ok()?;
                Some(&guards[at].1)
            }
        }
    }

    /// For walks that lock slots one by one: they would wait for ever for one that is held here.
    #[inline]
    pub(super) fn assert_holds_nothing(&self) {
        assert!(matches!(self.held, Held::None), "a walk over slots while one is held");
    }

    #[inline]
    fn guard(&self, slot: SlotId) -> &SlotGuard<'a> {
        self.guard_at((self.db, slot)).expect("a command touches only the keys of its key spec")
    }

    #[inline]
    fn guard_mut(&mut self, slot: SlotId) -> &mut SlotGuard<'a> {
        let place = (self.db, slot);
        let found = match &mut self.held {
            Held::One(held, guard) if *held == place => Some(guard),
            Held::None | Held::One(..) => None,
            Held::Many(guards) => match guards.binary_search_by_key(&place, |(held, _)| *held) {
                Ok(at) => Some(&mut guards[at].1),
                Err(_) => None,
            },
        };
        found.expect("a command touches only the keys of its key spec")
    }

    #[inline]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<Stored<'_>> {
        self.guard(key.slot).table().find(key.hash, key.bytes)
    }

    #[inline]
    pub(super) fn find_mut_if_there(&mut self, key: &Key<'_>) -> Option<StoredMut<'_>> {
        self.guard_mut(key.slot).table_mut().into_find_mut(key.hash, key.bytes)
    }

    pub(super) fn find_mut(&mut self, key: &Key<'_>) -> StoredMut<'_> {
        self.find_mut_if_there(key).expect("an open entry stays while it is open")
    }

    /// The value to read, `None` if the key does not exist. Counts a hit or a miss and moves the
    /// access clock.
    #[inline]
    pub fn open<T: Type>(&self, key: &Key<'_>) -> Result<Option<T::Ref<'_>>> {
        match self.find(key) {
            Some(entry) => {
                self.env.tally.hits.add(1);
                touch(self.env, &entry);
                T::of(entry).map(Some)
            }
            None => {
                self.missed(key);
                Ok(None)
            }
        }
    }

    /// The entry to look at without leaving a trace in its access clock.
    pub fn peek(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(key);
        match found {
            Some(_) => self.env.tally.hits.add(1),
            None => self.missed(key),
        }
        found.map(EntryRef)
    }

    /// As [`Keys::peek`], but the lack of the key is no event.
    pub fn peek_silently(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(key);
        match found {
            Some(_) => self.env.tally.hits.add(1),
            None => self.env.tally.misses.add(1),
        }
        found.map(EntryRef)
    }

    /// The entry, without trace in clocks, statistics or events.
    pub fn inspect(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        self.find(key).map(EntryRef)
    }

    /// Moves the access clock of an existing key, as TOUCH does; counts a hit or a miss.
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
        if !self.env.armed.get().is_empty() {
            self.notify(key.bytes, EventClass::KEY_MISS, "keymiss");
        }
    }

    /// The value to change, `None` if the key does not exist.
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
            None => Ok(None),
        }
    }

    /// The string to change; an empty one under a key that does not exist, which the caller must
    /// then give a value.
    pub fn open_or_insert_string<'k>(&'k mut self, key: &Key<'k>) -> Result<EntryMut<'k, 'a, Str>> {
        match self.find(key) {
            Some(entry) => {
                touch(self.env, &entry);
                Str::of(entry)?;
            }
            None => {
                let entry = string::new_entry(key.bytes, b"");
                entry.set_clock(initial_clock(self.env));
                self.insert(key, entry);
            }
        }
        Ok(EntryMut { keys: self, key: *key, kind: PhantomData })
    }

    /// An entry of any type, for changes to its deadline or its removal.
    pub fn open_any_mut<'k>(&'k mut self, key: &Key<'k>) -> Option<EntryMut<'k, 'a, ()>> {
        let entry = self.find(key)?;
        touch(self.env, &entry);
        Some(EntryMut { keys: self, key: *key, kind: PhantomData })
    }

    /// Whether the key exists; leaves no trace.
    #[inline]
    pub fn contains(&self, key: &Key<'_>) -> bool {
        self.find(key).is_some()
    }

    /// Stores `bytes` as SET does, whatever the key held before. A new deadline is told as `expire`
    /// after `event`, but both are one change.
    #[inline]
    pub fn set_string(
        &mut self,
        key: &Key<'_>,
        bytes: &[u8],
        deadline: Overwrite,
        event: &'static str,
    ) {
        let (keyspace, env, db) = (self.keyspace, self.env, self.db);
        let guard = self.guard_mut(key.slot);
        let has_deadlines = guard.meta().with_deadline != 0;
        match guard.table_mut().find_mut(key.hash, key.bytes) {
            Some(mut entry) => {
                if matches!(entry.value(), brisk_structures::entry::ValueRef::Boxed(_)) {
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
                guard.table_mut().insert(key.hash, entry);
                env.tally.database(db).keys.add(1);
                self.announce_new(key);
            }
        }
        if let Overwrite::ExpireAt(at) = deadline {
            self.set_deadline(key, Some(at));
        }
        self.changed(key, EventClass::STRING, event);
        if matches!(deadline, Overwrite::ExpireAt(_)) && !self.env.armed.get().is_empty() {
            self.notify(key.bytes, EventClass::GENERIC, "expire");
        }
    }

    /// Adds an entry under a key that does not exist. Its deadline comes with it.
    pub(crate) fn insert(&mut self, key: &Key<'_>, entry: Entry) {
        self.place(key, entry);
        self.announce_new(key);
    }

    /// As [`Keys::insert`] in place of an entry that was just taken out: the key is not new.
    pub(super) fn place(&mut self, key: &Key<'_>, entry: Entry) {
        debug_assert_eq!(entry.key(), key.bytes);
        if let Some(deadline) = fields::inner_deadline(&entry) {
            self.note_inside(key.slot, deadline);
        }
        let deadline = entry.deadline().map(UnixMs);
        let tally = self.env.tally.database(self.db);
        let database = self.keyspace.database(self.db);
        let guard = self.guard_mut(key.slot);
        if guard.marks() & OCCUPIED == 0 {
            database.note_occupied(key.slot, guard);
        }
        if let Some(deadline) = deadline {
            let meta = guard.meta_mut();
            meta.with_deadline += 1;
            meta.note(deadline);
            tally.with_deadline.add(1);
            tally.deadlines_ms.add(deadline.0 as i64);
        }
        guard.table_mut().insert(key.hash, entry);
        let awaited = guard.marks() & WAITED_FOR != 0;
        tally.keys.add(1);
        if awaited {
            self.signal(key);
        }
    }

    pub(super) fn each_held(&mut self, mut change: impl FnMut(&mut SlotGuard<'a>)) {
        match &mut self.held {
            Held::None => {}
            Held::One(_, guard) => change(guard),
            Held::Many(guards) => guards.iter_mut().for_each(|(_, guard)| change(guard)),
        }
    }

    /// Whether one of the slots that are held has the mark.
    #[inline]
    pub(super) fn any_mark(&self, bit: u8) -> bool {
        match &self.held {
            Held::None => false,
            Held::One(_, guard) => guard.marks() & bit != 0,
            Held::Many(guards) => guards.iter().any(|(_, guard)| guard.marks() & bit != 0),
        }
    }

    /// Sets bits of a slot's marks.
    pub(super) fn mark(&mut self, slot: SlotId, bits: u8) {
        let guard = self.guard_mut(slot);
        let marks = guard.marks() | bits;
        guard.set_marks(marks);
    }

    /// Tells who watches or caches a key that it was changed.
    #[inline]
    fn disturb(&self, key: &Key<'_>) {
        let marks = match &self.held {
            Held::One(_, guard) => guard.marks(),
            Held::None | Held::Many(_) => self.guard(key.slot).marks(),
        };
        if marks & CONCERNED != 0 {
            self.tell_concerned(key, marks);
        }
    }

    #[cold]
    fn tell_concerned(&self, key: &Key<'_>, marks: u8) {
        let exists = marks & WATCHED != 0 && self.contains(key);
        self.keyspace.tell_concerned(self.env, self.db, key, marks, exists);
    }

    /// Whether somebody waits for a key of this slot.
    pub(super) fn is_waited_for(&self, slot: SlotId) -> bool {
        self.guard(slot).marks() & WAITED_FOR != 0
    }

    pub(super) fn announce_new(&self, key: &Key<'_>) {
        if !self.env.armed.get().is_empty() {
            self.notify(key.bytes, EventClass::NEW, "new");
        }
    }

    /// Takes the entry out, deadline and all. Silent: the caller tells what it means.
    pub(crate) fn detach(&mut self, key: &Key<'_>) -> Option<Entry> {
        let (keyspace, env, db) = (self.keyspace, self.env, self.db);
        let entry = detach(keyspace, env, db, self.guard_mut(key.slot), key.hash, key.bytes);
        if let Some(entry) = &entry {
            note_gone(self.env, self.db, entry);
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

    /// Moves a key to another name of the selected database, deadline and all, replacing what is
    /// there. Both keys must be locked and the first must exist.
    pub fn rename(&mut self, from: &Key<'_>, to: &Key<'_>) {
        if let Some(old) = self.detach(to) {
            discard(self.env, old);
        }
        let entry = self.detach(from).expect("RENAME checked that the key exists");
        self.insert(to, entry.with_key(to.bytes));
        self.tell(from, EventClass::GENERIC, "rename_from");
        self.changed(to, EventClass::GENERIC, "rename_to");
    }

    /// Moves a key to database `to`, deadline and all. Both places must be locked; the key must
    /// exist here and not there.
    pub fn move_to(&mut self, key: &Key<'_>, to: DbIndex) {
        let entry = self.detach(key).expect("MOVE checked that the key exists");
        self.in_db(to, |keys| keys.insert(key, entry));
        self.tell(key, EventClass::GENERIC, "move_from");
        self.in_db(to, |keys| keys.changed(key, EventClass::GENERIC, "move_to"));
    }

    /// Copies a key to `to` in database `db`, replacing what is there. Large values are shared, so
    /// this is O(1) for them. Both places must be locked; the source must exist.
    pub fn copy_to(&mut self, from: &Key<'_>, db: DbIndex, to: &Key<'_>) {
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

    /// Sets or removes a deadline; true if there was one. Silent: the caller tells what it means.
    pub(crate) fn set_deadline(&mut self, key: &Key<'_>, deadline: Option<UnixMs>) -> bool {
        let tally = self.env.tally.database(self.db);
        let guard = self.guard_mut(key.slot);
        let Some(mut entry) = guard.table_mut().into_find_mut(key.hash, key.bytes) else {
            return false;
        };
        let before = entry.deadline();
        entry.set_deadline(deadline.map(|at| at.0));
        let fields_expire = guard.marks() & FIELDS_EXPIRE != 0;
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
        } else if meta.with_deadline == 0 && !fields_expire {
            meta.no_deadlines();
        }
        before.is_some()
    }

    /// Removes those of the command's keys whose deadline has passed, and what is due inside the
    /// others. With `in_slices` only so much of that that it does not take long: false if more is
    /// due.
    #[inline]
    pub(crate) fn remove_expired<'w>(
        &mut self,
        keys: impl Iterator<Item = Key<'w>>,
        in_slices: bool,
    ) -> bool {
        let now = self.now();
        let due = match &self.held {
            Held::None => false,
            Held::One(_, guard) => guard.meta().earliest <= now,
            Held::Many(guards) => guards.iter().any(|(_, guard)| guard.meta().earliest <= now),
        };
        let limit = if in_slices { fields::FIELDS_PER_SLICE } else { usize::MAX };
        let mut keys = keys;
        !due || keys.all(|key| self.remove_if_expired(&key, limit))
    }

    /// False if more than `limit` things are due inside the key's value.
    #[cold]
    fn remove_if_expired(&mut self, key: &Key<'_>, limit: usize) -> bool {
        if self.hides {
            self.hide_expired(key);
            return true;
        }
        let now = self.now();
        let deadline = self.find(key).and_then(|entry| entry.deadline());
        if deadline.is_some_and(|at| UnixMs(at) <= now) {
            let entry = self.detach(key).expect("it was just found");
            self.expired_any = true;
            after_expiry(self.env, self.db, entry);
            return true;
        }
        self.remove_expired_inside(key, limit)
    }

    /// The soonest deadline inside the value of a key, or a lower bound of it.
    pub(super) fn inner_deadline(&self, key: &Key<'_>) -> Option<UnixMs> {
        self.find(key).and_then(|entry| fields::inner_deadline(&entry))
    }

    pub(super) fn slot_mut(&mut self, slot: SlotId) -> &mut SlotGuard<'a> {
        self.guard_mut(slot)
    }

    /// Records that `key` was changed. Everything that must not be forgotten hangs on this.
    #[inline]
    pub(crate) fn changed(&mut self, key: &Key<'_>, class: EventClass, event: &'static str) {
        self.changed_by(key, 1, class, event);
    }

    /// Like [`Keys::changed`] for a change that counts as several. An empty `event` is none.
    #[inline]
    pub(super) fn changed_by(
        &mut self,
        key: &Key<'_>,
        changes: u64,
        class: EventClass,
        event: &'static str,
    ) {
        self.disturb(key);
        self.changed_beside(key, changes, class, event);
    }

    /// Like [`Keys::changed_by`] for a change that leaves what the key holds as it was, so that who
    /// watches the key need not know: consumer groups of a stream.
    #[inline]
    pub(super) fn changed_beside(
        &mut self,
        key: &Key<'_>,
        changes: u64,
        class: EventClass,
        event: &'static str,
    ) {
        self.dirty += changes;
        self.tell(key, class, event);
    }

    /// Tells of one more key that a change concerns, which is counted elsewhere.
    #[inline]
    pub(crate) fn tell(&self, key: &Key<'_>, class: EventClass, event: &'static str) {
        if !event.is_empty() && !self.env.armed.get().is_empty() {
            self.notify(key.bytes, class, event);
        }
    }

    /// Counts a change that no single key stands for, such as FLUSHDB.
    pub fn changed_all(&mut self, count: u64) {
        self.dirty += count;
    }

    #[cold]
    fn notify(&self, key: &[u8], class: EventClass, name: &'static str) {
        notify(self.env, self.db, key, class, name);
    }

    /// Says what to propagate instead of the command as it was sent, and that something is to be
    /// propagated even if nothing changed here; may be called several times. `words` runs only if
    /// somebody listens.
    pub fn propagate(&mut self, words: impl FnOnce() -> Vec<Vec<u8>>) {
        if self.env.armed.get().contains(Armed::PROPAGATE) {
            let mut aftermath = self.env.aftermath.borrow_mut();
            aftermath.replaced = true;
            aftermath.effects.push(Effect { db: self.db, words: words() });
        }
    }

    /// Says that nothing is to be propagated, whatever changed here, but for what
    /// [`Keys::propagate`] is told.
    pub fn propagate_nothing(&mut self) {
        if self.env.armed.get().contains(Armed::PROPAGATE) {
            self.env.aftermath.borrow_mut().replaced = true;
        }
    }

    /// After the handler: notes the command as sent if it changed something and did not say
    /// otherwise, and takes the transaction's ticket. `None` if nothing is to be propagated.
    #[inline]
    pub(crate) fn close<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>) -> Option<Ticket> {
        if self.env.armed.get().contains(Armed::PROPAGATE) {
            self.close_and_propagate(words)
        } else {
            None
        }
    }

    #[cold]
    fn close_and_propagate<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>) -> Option<Ticket> {
        let mut aftermath = self.env.aftermath.borrow_mut();
        let replaced = std::mem::take(&mut aftermath.replaced);
        if self.dirty == 0 && !replaced && !self.expired_any {
            return None;
        }
        if self.dirty > 0 && !replaced {
            let words = words.map(<[u8]>::to_vec).collect();
            aftermath.effects.push(Effect { db: self.db, words });
        }
        if aftermath.is_unit() {
            let places = &mut aftermath.slots;
            match &self.held {
                Held::None => {}
                Held::One(place, _) => places.push(*place),
                Held::Many(guards) => places.extend(guards.iter().map(|(place, _)| *place)),
            }
            return None;
        }
        if aftermath.effects.is_empty() {
            aftermath.slots.clear();
            return None;
        }
        let ticket = self.keyspace.next_ticket();
        self.env.sealed.borrow_mut().push(aftermath.seal(ticket));
        let slots = std::mem::take(&mut aftermath.slots);
        drop(aftermath);
        self.each_held(|guard| guard.meta_mut().last_write = ticket);
        for (db, slot) in slots {
            lock_patiently(self.keyspace.database(db), slot).meta_mut().last_write = ticket;
        }
        Some(ticket)
    }

    /// Has the slot's `last_write` raised when the command ends, as those of held slots are.
    fn wrote_slot(&self, db: DbIndex, slot: SlotId) {
        if self.env.armed.get().contains(Armed::PROPAGATE) {
            self.env.aftermath.borrow_mut().slots.push((db, slot));
        }
    }

    /// Shows `visit` every slot of a database that is not empty, each locked by itself.
    /// O(slots with keys), and whatever `visit` does.
    pub fn each_slot(
        &self,
        db: DbIndex,
        mut visit: impl FnMut(SlotId, &mut SlotGuard<'a>) -> ControlFlow<()>,
    ) {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(db) else { return };
        for slot in database.occupied_from(0) {
            let mut guard = lock_patiently(database, slot);
            if visit(slot, &mut guard).is_break() {
                return;
            }
        }
    }

    /// Visits at least `count` keys (all of whole buckets) from `cursor` on and returns the next
    /// cursor, 0 at the end. Keys that stay throughout a full iteration are seen exactly once
    /// whatever grows or shrinks meanwhile. The visitor gets no expired keys.
    ///
    /// A cursor is `slot * 2^24 + position`, where a position is a place in the order of hashes.
    pub fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(EntryRef<'_>)) -> u64 {
        self.walk(cursor, count, |_| false, visit).0
    }

    /// Whether a key is there and has not expired, asked of a slot that is not held; an expired one
    /// stays, as for all commands that only look through the keys.
    pub fn is_alive(&self, key: &Key<'_>) -> bool {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(self.db) else { return false };
        let guard = lock_patiently(database, key.slot);
        let alive = |entry: Stored<'_>| entry.deadline().is_none_or(|at| UnixMs(at) > self.now());
        guard.table().find(key.hash, key.bytes).is_some_and(alive)
    }

    /// Whether a key is there but has expired, asked of a slot that is not held.
    pub(crate) fn has_expired(&self, key: &Key<'_>) -> bool {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(self.db) else { return false };
        let guard = lock_patiently(database, key.slot);
        let due = |entry: Stored<'_>| entry.deadline().is_some_and(|at| UnixMs(at) <= self.now());
        guard.meta().earliest <= self.now()
            && guard.table().find(key.hash, key.bytes).is_some_and(due)
    }

    /// As [`Keys::scan`], and removes those expired keys on the way that `concerns` admits.
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

    /// The next cursor, and whether expired keys were removed.
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
        let now = self.now();
        let keeps_expired = self.env.keeps_expired.get();
        let mut position = (cursor & ((1 << POSITION_BITS) - 1)) as u32;
        let first = usize::try_from(cursor >> POSITION_BITS).unwrap_or(SLOTS).min(SLOTS);
        let (mut seen, mut removed) = (0, false);
        let mut gone: Vec<Vec<u8>> = Vec::new();
        for id in database.occupied_from(first) {
            if id.index() != first {
                position = 0;
            }
            while !database.slot(id).is_empty() {
                if seen >= count {
                    let slot = id.index() as u64;
                    return (slot << POSITION_BITS | u64::from(position), removed);
                }
                let mut guard = lock_patiently(database, id);
                position = guard.table().scan(position, |entry| {
                    seen += 1;
                    let alive = entry.deadline().is_none_or(|at| UnixMs(at) > now);
                    let entry = EntryRef(entry);
                    if alive {
                        visit(entry);
                    } else if !keeps_expired && remove(&entry) {
                        gone.push(entry.key().to_vec());
                    }
                });
                if !gone.is_empty() && must_give_way() {
                    gone.clear();
                }
                for key in gone.drain(..) {
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

    /// Takes all keys out of a database; their number. Only under quiescence. O(slots with keys); the memory
    /// is freed elsewhere.
    pub fn flush(&mut self, db: DbIndex) -> u64 {
        self.assert_holds_nothing();
        let Some(database) = self.keyspace.database_if_used(db) else { return 0 };
        let was = self.keyspace.totals().databases[db.0 as usize];
        for id in database.occupied_from(0) {
            let mut guard = lock_patiently(database, id);
            if guard.marks() & WATCHED != 0 {
                self.keyspace.tell_watchers_of_all((db, id), self.now(), &guard, None);
            }
            guard.meta_mut().no_deadlines();
            let marks = guard.marks() & !FIELD_MARKS;
            guard.set_marks(marks);
            let table = guard.table_mut().take();
            if guard.marks() & WAITED_FOR != 0 {
                self.signal_all(db, id);
            }
            self.env.garbage.borrow_mut().push(Garbage::Table(table));
            self.wrote_slot(db, id);
        }
        self.env.tally.database(db).shift(&was, &DatabaseTotals::default());
        was.keys
    }

    /// Exchanges two databases. Only under quiescence. O(slots with keys).
    pub fn swap(&mut self, a: DbIndex, b: DbIndex) {
        self.assert_holds_nothing();
        // Exchanging a database with itself is a change too, though nothing moves.
        self.dirty += 1;
        if a == b {
            return;
        }
        let (first, second) = (self.keyspace.database(a), self.keyspace.database(b));
        let mut places: Vec<SlotId> =
            first.occupied_from(0).chain(second.occupied_from(0)).collect();
        places.sort_unstable();
        places.dedup();
        for id in places {
            let mut here = lock_patiently(first, id);
            let mut there = lock_patiently(second, id);
            for (db, before, after) in [(a, &here, &there), (b, &there, &here)] {
                if before.marks() & WATCHED != 0 {
                    let place = (db, id);
                    self.keyspace.tell_watchers_of_all(place, self.now(), before, Some(after));
                }
            }
            std::mem::swap(here.meta_mut(), there.meta_mut());
            // A sweep that is half way through one of the tables goes on in the other.
            here.meta_mut().restart_walk();
            there.meta_mut().restart_walk();
            fields::swap_marks(&mut here, &mut there);
            let (table, other) = (here.table_mut().take(), there.table_mut().take());
            here.table_mut().put(other);
            there.table_mut().put(table);
            first.note_occupied(id, &mut here);
            second.note_occupied(id, &mut there);
            self.wrote_slot(a, id);
            self.wrote_slot(b, id);
            // Who waits, waits for a key of the database of that number.
            for (db, guard) in [(a, &here), (b, &there)] {
                if guard.marks() & WAITED_FOR != 0 {
                    self.signal_all(db, id);
                }
            }
        }
        first.share_inner_deadlines(second);
        let totals = self.keyspace.totals();
        let (at_a, at_b) = (totals.databases[a.0 as usize], totals.databases[b.0 as usize]);
        self.env.tally.database(a).shift(&at_a, &at_b);
        self.env.tally.database(b).shift(&at_b, &at_a);
    }
}

impl Keyspace {
    /// Shows `visit` all keys of a database that have not expired, slot after slot, each step of
    /// which is locked by itself. Keys that stay throughout are seen exactly once. For threads that
    /// hold no slot. O(keys + slots with keys).
    pub(crate) fn each_key(&self, db: DbIndex, now: UnixMs, mut visit: impl FnMut(EntryRef<'_>)) {
        let Some(database) = self.database_if_used(db) else { return };
        for id in database.occupied_from(0) {
            let mut position = 0;
            while !database.slot(id).is_empty() {
                let guard = lock_patiently(database, id);
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

/// Locks a slot that no command of this thread holds. Who holds it waits for nobody, or only for
/// threads that [`have_patience`].
pub(crate) fn lock_patiently(database: &Database, id: SlotId) -> SlotGuard<'_> {
    loop {
        if let Some(guard) = database.slot(id).lock_spin(SPIN_ROUNDS) {
            return guard;
        }
        have_patience();
    }
}

thread_local! {
    static WHILE_WAITING: Cell<Option<Rc<dyn Fn()>>> = const { Cell::new(None) };
}

/// Has `action` called again and again whenever this thread waits for a slot, which it does while it
/// holds none: it may stand still then.
pub fn while_waiting(action: impl Fn() + 'static) {
    WHILE_WAITING.set(Some(Rc::new(action)));
}

thread_local! {
    static GIVES_WAY: Cell<Option<Rc<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// Has `asks` asked by what this thread does on its own account (serving waiters, finishing what was
/// computed elsewhere, expiry, eviction) when it has got a slot, since things may have changed while
/// it waited: if so, it leaves the data as it is, and what it wanted for later.
pub fn giving_way(asks: impl Fn() -> bool + 'static) {
    GIVES_WAY.set(Some(Rc::new(asks)));
}

/// Whether the data is to stay as it is; see [`giving_way`].
pub(crate) fn must_give_way() -> bool {
    let Some(asks) = GIVES_WAY.take() else { return false };
    let answer = asks();
    GIVES_WAY.set(Some(asks));
    answer
}

/// Lets others run while a slot is not free.
#[cold]
pub(crate) fn have_patience() {
    if let Some(action) = WHILE_WAITING.take() {
        action();
        WHILE_WAITING.set(Some(action));
    }
    std::thread::yield_now();
}

/// Takes an entry out of a locked slot and keeps the books.
pub(super) fn detach(
    keyspace: &Keyspace,
    env: &Env,
    db: DbIndex,
    guard: &mut SlotGuard<'_>,
    hash: u64,
    key: &[u8],
) -> Option<Entry> {
    let entry = guard.table_mut().remove(hash, key)?;
    let marks = guard.marks();
    if marks & CONCERNED != 0 {
        let key = Key { bytes: key, slot: SlotId::new(key_slot(key)), hash };
        keyspace.tell_concerned(env, db, &key, marks, false);
    }
    let tally = env.tally.database(db);
    tally.keys.add(-1);
    if let Some(deadline) = entry.deadline() {
        let fields_expire = guard.marks() & FIELDS_EXPIRE != 0;
        let meta = guard.meta_mut();
        meta.with_deadline -= 1;
        if meta.with_deadline == 0 && !fields_expire {
            meta.no_deadlines();
        }
        tally.with_deadline.add(-1);
        tally.deadlines_ms.add((deadline as i64).wrapping_neg());
    }
    Some(entry)
}

/// Seals what was left by removing keys of a slot that no command holds: a transaction of its own.
/// Within a unit it is part of that.
pub(super) fn seal_slot(keyspace: &Keyspace, env: &Env, place: Place, guard: &mut SlotGuard<'_>) {
    if !env.armed.get().contains(Armed::PROPAGATE) {
        return;
    }
    let mut aftermath = env.aftermath.borrow_mut();
    if aftermath.is_unit() {
        aftermath.slots.push(place);
    } else if !aftermath.effects.is_empty() {
        let ticket = keyspace.next_ticket();
        env.sealed.borrow_mut().push(aftermath.seal(ticket));
        guard.meta_mut().last_write = ticket;
    }
}

/// Who waits in a group of a stream must hear that it is gone.
pub(super) fn note_gone(env: &Env, db: DbIndex, entry: &Entry) {
    if crate::types::kind_of(entry) == Kind::Stream {
        env.note_ready(db, entry.key());
    }
}

/// Tells of a key that was removed because its deadline had passed.
pub(super) fn after_expiry(env: &Env, db: DbIndex, entry: Entry) {
    env.tally.expired.add(1);
    note_gone(env, db, &entry);
    if !env.armed.get().is_empty() {
        super::tracking::nobody_changed(env, entry.key());
        notify(env, db, entry.key(), EventClass::EXPIRED, "expired");
        propagate_removal(env, db, entry.key(), env.settings.lazy_expire);
    }
    discard(env, entry);
}

/// Tells of a key that was removed to make room.
pub(super) fn after_eviction(env: &Env, db: DbIndex, entry: &Entry) {
    note_gone(env, db, entry);
    if !env.armed.get().is_empty() {
        super::tracking::nobody_changed(env, entry.key());
        notify(env, db, entry.key(), EventClass::EVICTED, "evicted");
        propagate_removal(env, db, entry.key(), env.settings.lazy_eviction);
    }
}

fn propagate_removal(env: &Env, db: DbIndex, key: &[u8], lazy: bool) {
    if env.armed.get().contains(Armed::PROPAGATE) {
        let word: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
        let words = vec![word.to_vec(), key.to_vec()];
        env.aftermath.borrow_mut().effects.push(Effect { db, words });
    }
}

pub(super) fn notify(env: &Env, db: DbIndex, key: &[u8], class: EventClass, name: &'static str) {
    if env.armed.get().contains(Armed::NOTIFY) && env.settings.events.contains(class) {
        let event = Event { db, class, name, key: key.to_vec() };
        env.aftermath.borrow_mut().events.push(event);
    }
}

/// Frees an entry: at once if that is quick, elsewhere if its value is large.
pub(super) fn discard(env: &Env, mut entry: Entry) {
    if entry.boxed_mut().is_some_and(|value| !value.is_light()) {
        env.garbage.borrow_mut().push(Garbage::Entry(entry));
    }
}

/// Like [`discard`] for a value that was in no entry.
pub(crate) fn discard_value(env: &Env, value: Value) {
    if !value.is_light() {
        env.garbage.borrow_mut().push(Garbage::Value(value));
    }
}

/// Moves a large value out of an entry that is about to be overwritten, to be freed elsewhere.
#[cold]
pub(super) fn free_value(env: &Env, db: DbIndex, entry: &mut StoredMut<'_>) {
    note_gone(env, db, entry);
    if let Some(value) = entry.boxed_mut()
        && !value.is_light()
    {
        let value = std::mem::replace(value, Value::Str(std::sync::Arc::default()));
        discard_value(env, value);
    }
}

pub(super) fn copy_entry(source: &Entry, key: &[u8]) -> Entry {
    use brisk_structures::entry::ValueRef;
    match source.value() {
        ValueRef::Bytes(bytes) => Entry::new_bytes(key, source.kind(), bytes),
        ValueRef::Int(number) => Entry::new_int(key, source.kind(), number),
        ValueRef::Boxed(value) => Entry::new_boxed(key, source.kind(), Box::new(value.clone())),
    }
}
