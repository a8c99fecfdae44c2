//! How commands change lists, sets, sorted sets, hashes and streams.
//!
//! A command only describes how the value changes. The functions here create the key with its first
//! element, delete it with its last one, keep the encoding that is recorded for OBJECT ENCODING up
//! to date, and send all notifications.

use super::evict::{initial_clock, touch};
use super::keys::{Keys, discard, discard_value, free_value};
use super::{Entry, Key, UnixMs};
use crate::base::error::{CommandError, Result};
use crate::env::effect::EventClass;
use crate::types::string::{self, RawString};
use crate::types::{Collection, Edit, EncodingLimits, kind_byte};
use brisk_structures::entry::ValueRef;

impl Keys<'_> {
    /// Lets `change` edit the value of `key`, which is created if it does not exist. If `change`
    /// returns an error, it has left the value unchanged.
    ///
    /// # Errors
    /// WRONGTYPE, and those of `change`.
    #[inline]
    pub fn upsert<C: Collection, R>(
        &mut self,
        key: &Key<'_>,
        change: impl FnOnce(&mut C, &EncodingLimits) -> Result<Edit<R>>,
    ) -> Result<R> {
        let change = match self.edit(key, change) {
            Ok(done) => return done,
            Err(change) => change,
        };
        self.check_declared()?;
        let env = self.env();
        let limits = &env.settings.limits;
        let mut value = C::new(limits);
        let Edit { result, happened, changes, event, metadata_only: _ } =
            change(&mut value, limits)?;
        if !value.is_empty() || (C::MAY_BE_EMPTY && happened) {
            let kind = kind_byte(C::KIND, value.encoding());
            let entry = Entry::new_object(key.bytes, kind, value.into_value());
            entry.set_clock(initial_clock(env));
            self.insert(key, entry);
        }
        if happened {
            self.changed_by(key, changes, C::EVENTS, event);
        }
        Ok(result)
    }

    /// Lets `change` edit the value of `key`; `None` if the key does not exist. If `change` returns
    /// an error, it has left the value unchanged.
    ///
    /// # Errors
    /// WRONGTYPE, and those of `change`.
    #[inline]
    pub fn update<C: Collection, R>(
        &mut self,
        key: &Key<'_>,
        change: impl FnOnce(&mut C, &EncodingLimits) -> Result<Edit<R>>,
    ) -> Result<Option<R>> {
        match self.edit(key, change) {
            Ok(done) => done.map(Some),
            Err(_) => self.check_declared().map(|()| None),
        }
    }

    /// If the key does not exist, returns `change` unused, so that the caller does not look the key
    /// up again.
    #[inline]
    fn edit<C, R, F>(&mut self, key: &Key<'_>, change: F) -> std::result::Result<Result<R>, F>
    where
        C: Collection,
        F: FnOnce(&mut C, &EncodingLimits) -> Result<Edit<R>>,
    {
        let env = self.env();
        let Some(mut entry) = self.find_mut_if_there(key) else { return Err(change) };
        if entry.kind() & 0x0f != C::KIND as u8 {
            return Ok(Err(CommandError::WrongType));
        }
        touch(env, &entry);
        let value = entry.object_mut().and_then(C::of_value_mut);
        let value = value.expect("an entry's kind is that of its value");
        let before = value.wait_fingerprint();
        let edit = match change(value, &env.settings.limits) {
            Ok(edit) => edit,
            Err(error) => return Ok(Err(error)),
        };
        let Edit { result, happened, changes, event, metadata_only } = edit;
        let is_emptied = value.is_empty() && !C::MAY_BE_EMPTY;
        let value_deadline = value.next_deadline();
        let stirred = value.wait_fingerprint() != before;
        let kind = kind_byte(C::KIND, value.encoding());
        entry.set_kind(kind);
        if let Some(deadline) = value_deadline {
            self.note_inside(key.slot, UnixMs(deadline));
        }
        if happened {
            if metadata_only {
                self.changed_metadata(key, changes, C::EVENTS, event);
            } else {
                self.changed_by(key, changes, C::EVENTS, event);
            }
            // Waiters are served when a list or sorted set is created, and with each new entry of a
            // stream.
            if stirred && self.is_waited_for(key.slot) {
                self.signal(key);
            }
        }
        if is_emptied {
            let entry = self.detach(key).expect("it was just found");
            discard(env, entry);
            self.notify_event(key, EventClass::GENERIC, "del");
        }
        Ok(Ok(result))
    }

    /// Frees a value that was removed from its key or never had a key. Large values are freed by
    /// another thread.
    pub fn free<C: Collection>(&self, value: C) {
        discard_value(self.env(), value.into_value());
    }

    /// Stores `value` under `key` without a TTL and replaces what the key held. The STORE forms of
    /// commands use it for their results. A value without elements deletes the key.
    pub fn put<C: Collection>(&mut self, key: &Key<'_>, value: C, event: &'static str) {
        self.put_counting(key, value, 1, event);
    }

    /// Like [`Keys::put`], but the new value counts as `changes` changes.
    pub fn put_counting<C: Collection>(
        &mut self,
        key: &Key<'_>,
        value: C,
        changes: u64,
        event: &'static str,
    ) {
        let env = self.env();
        if !self.holds(key) {
            return discard_value(env, value.into_value());
        }
        let old = self.detach(key);
        let existed = old.is_some();
        old.into_iter().for_each(|entry| discard(env, entry));
        if value.is_empty() && !C::MAY_BE_EMPTY {
            discard_value(env, value.into_value());
            if existed {
                self.changed(key, EventClass::GENERIC, "del");
            }
            return;
        }
        let kind = kind_byte(C::KIND, value.encoding());
        let entry = Entry::new_object(key.bytes, kind, value.into_value());
        entry.set_clock(initial_clock(env));
        self.put_entry(key, entry);
        if !existed {
            self.announce_new(key);
        }
        self.changed_by(key, changes, C::EVENTS, event);
    }

    /// Stores a whole entry under its key and replaces what the key held, as RESTORE does.
    pub(crate) fn restore(&mut self, key: &Key<'_>, entry: Entry) {
        if !self.holds(key) {
            return discard(self.env(), entry);
        }
        if let Some(old) = self.detach(key) {
            discard(self.env(), old);
        }
        self.insert(key, entry);
        self.changed(key, EventClass::GENERIC, "restore");
    }

    /// Stores a string that is already in its stored form under `key`, without a TTL, and replaces
    /// what the key held. An empty string deletes the key.
    pub fn put_raw(&mut self, key: &Key<'_>, string: RawString, event: &'static str) {
        if string.is_empty() {
            self.delete(key);
            return;
        }
        let (env, db) = (self.env(), self.db());
        if !self.holds(key) {
            return;
        }
        if self.contains(key) {
            self.set_deadline(key, None);
        } else {
            self.insert(key, string::new_entry(key.bytes, b""));
        }
        let mut entry = self.find_mut(key);
        if matches!(entry.value(), ValueRef::Object(_)) {
            free_value(env, db, &mut entry);
        }
        string::store_raw(&mut entry, string);
        entry.set_clock(initial_clock(env));
        self.changed(key, EventClass::STRING, event);
    }
}
