//! Entries as commands see them: [`EntryRef`] is read-only, [`EntryMut`] is for changes.
//!
//! Every method of `EntryMut` that changes something takes the name of the keyspace event and does
//! all the bookkeeping. A value cannot be changed without it.

use super::keys::Keys;
use super::{DbIndex, Key, Stored, UnixMs};
use crate::env::Settings;
use crate::env::effect::EventClass;
use crate::types::dump::Dumpable;
use crate::types::stream::Stream;
use crate::types::string::{self, RawString, Str, StrMut, StrRef};
use crate::types::{Edit, Encoding, Type, Value, ValueKind, allocated_bytes, encoding_of, kind_of};
use brisk_structures::entry::ValueRef;
use std::marker::PhantomData;

/// Redis shares these integers among all keys, and does not count their references.
const SHARED_INTEGERS: std::ops::Range<i64> = 0..10_000;

/// An entry of any type, read-only.
#[derive(Clone)]
pub struct EntryRef<'k>(pub(crate) Stored<'k>);

impl<'k> EntryRef<'k> {
    pub fn kind(&self) -> ValueKind {
        kind_of(&self.0)
    }
    pub fn encoding(&self) -> Encoding {
        encoding_of(&self.0)
    }
    /// The key's expiry time.
    pub fn deadline(&self) -> Option<UnixMs> {
        self.0.deadline().map(UnixMs)
    }
    /// The access clock: seconds, or minutes and a counter under an LFU policy.
    pub fn clock(&self) -> u32 {
        self.0.clock()
    }
    /// The reference count of the value as Redis shows it: one, or `i32::MAX` for a shared value.
    ///
    /// A shared value does not have its own access clock, so policies that need one forbid sharing
    /// if there is a memory limit. (Redis returns 1 for an integer created by COPY. This server
    /// does not record how an integer was created.)
    pub fn reference_count(&self, settings: &Settings) -> i64 {
        let small = matches!(self.string(), Some(StrRef::Int(n)) if SHARED_INTEGERS.contains(&n));
        let policy = settings.eviction;
        let has_clock = settings.limited && (policy.is_lru() || policy.is_lfu());
        if small && !has_clock { i64::from(i32::MAX) } else { 1 }
    }
    /// Bytes of memory that the key and its value use, without their share of the table.
    pub fn allocated_bytes(&self) -> usize {
        allocated_bytes(&self.0)
    }
    /// The key.
    pub fn key(&self) -> &'k [u8] {
        self.0.key()
    }
    /// The value, unless it is bytes or an integer stored in the entry.
    pub(crate) fn object(&self) -> Option<&'k Value> {
        match self.0.value() {
            ValueRef::Object(value) => Some(value),
            ValueRef::Bytes(_) | ValueRef::Int(_) => None,
        }
    }
    /// The value if it is a stream.
    pub fn stream(&self) -> Option<&'k Stream> {
        Stream::of(self.0.clone()).ok()
    }
    /// The value if it is a string.
    pub fn string(&self) -> Option<StrRef<'k>> {
        self.get::<Str>()
    }
    /// The value, for serialization as a dump.
    pub(crate) fn dumpable(&self) -> Dumpable<'k> {
        match (self.string(), self.object()) {
            (Some(text), _) => Dumpable::Str(text),
            (None, value) => {
                Dumpable::Other(value.expect("a value that is not a string is an object"))
            }
        }
    }
    /// Size of the value's dump in bytes. O(value).
    pub fn dumped_len(&self) -> usize {
        self.dumpable().len()
    }
    /// The value if it is of type `T`.
    pub fn get<T: Type>(&self) -> Option<T::Ref<'k>> {
        T::of(self.0.clone()).ok()
    }
}

/// An entry that is open for changes.
pub struct EntryMut<'k, 'a, T> {
    pub(super) keys: &'k mut Keys<'a>,
    pub(super) key: Key<'k>,
    pub(super) kind: PhantomData<T>,
}

impl<T> EntryMut<'_, '_, T> {
    fn entry(&self) -> Stored<'_> {
        self.keys.find(&self.key).expect("an open entry stays while it is open")
    }

    pub fn deadline(&self) -> Option<UnixMs> {
        self.entry().deadline().map(UnixMs)
    }

    pub fn db(&self) -> DbIndex {
        self.keys.db()
    }

    /// Removes the key.
    pub fn delete(self) {
        self.keys.delete(&self.key);
    }

    /// Sets the expiry time.
    pub fn expire_at(&mut self, deadline: UnixMs) {
        self.keys.set_deadline(&self.key, Some(deadline));
        self.keys.changed(&self.key, EventClass::GENERIC, "expire");
    }

    /// Removes the TTL. Returns false if there was none.
    pub fn persist(&mut self) -> bool {
        let had = self.keys.set_deadline(&self.key, None);
        if had {
            self.keys.changed(&self.key, EventClass::GENERIC, "persist");
        }
        had
    }
}

impl EntryMut<'_, '_, Str> {
    pub fn value(&self) -> StrRef<'_> {
        Str::view(self.entry())
    }

    /// Replaces the value and keeps the TTL.
    pub fn store(&mut self, bytes: &[u8], event: &'static str) {
        string::store(&mut self.keys.find_mut(&self.key), bytes);
        self.keys.changed(&self.key, EventClass::STRING, event);
    }

    /// Replaces the value with an integer and keeps the TTL.
    pub fn store_integer(&mut self, number: i64, event: &'static str) {
        string::store_integer(&mut self.keys.find_mut(&self.key), number);
        self.keys.changed(&self.key, EventClass::STRING, event);
    }

    /// Replaces the value with `bytes`, without converting the digits of an integer, and keeps the
    /// TTL.
    pub fn store_text(&mut self, bytes: &[u8], event: &'static str) {
        string::store_text(&mut self.keys.find_mut(&self.key), bytes);
        self.keys.changed(&self.key, EventClass::STRING, event);
    }

    /// Resizes the value to `len` bytes, fills new bytes with zeros, and lets `change` edit it in
    /// place.
    pub fn modify(&mut self, len: usize, event: &'static str, change: impl FnOnce(StrMut<'_>)) {
        string::modify(&mut self.keys.find_mut(&self.key), len, change);
        self.keys.changed(&self.key, EventClass::STRING, event);
    }

    /// Like [`EntryMut::modify`], for changes that may turn out to have no effect. Afterwards the
    /// value is stored as bytes.
    pub fn edit<R>(&mut self, len: usize, change: impl FnOnce(StrMut<'_>) -> Edit<R>) -> R {
        let mut edit = None;
        string::modify(&mut self.keys.find_mut(&self.key), len, |bytes| edit = Some(change(bytes)));
        let edit: Edit<R> = edit.expect("modify calls its closure");
        let Edit { result, happened, changes, event, metadata_only: _ } = edit;
        if happened {
            self.keys.changed_by(&self.key, changes, EventClass::STRING, event);
        }
        result
    }

    /// Appends `tail`.
    pub fn append(&mut self, tail: &[u8], event: &'static str) {
        string::append(&mut self.keys.find_mut(&self.key), tail);
        self.keys.changed(&self.key, EventClass::STRING, event);
    }

    /// Replaces the value with a string in its stored form and keeps the TTL. It counts as
    /// `changes` changes.
    pub fn store_raw(&mut self, string: impl Into<RawString>, changes: u64, event: &'static str) {
        string::store_raw(&mut self.keys.find_mut(&self.key), string.into());
        self.keys.changed_by(&self.key, changes, EventClass::STRING, event);
    }
}
