//! Entries that leave their slot: bookkeeping and notifications.

use crate::env::effect::{Event, EventClass, Hooks};
use crate::env::{Env, Garbage};
use crate::keyspace::marks::{CONCERNED, HAS_FIELD_TTLS};
use crate::keyspace::snapshot::Change;
use crate::keyspace::{DbIndex, DbSlot, Entry, Key, Keyspace, SlotGuard, SlotId, StoredMut};
use crate::types::{Value, ValueKind};
use brisk_resp::slot::key_slot;
use brisk_structures::chunked::ChunkedBytes;

/// Removes an entry from a locked slot and updates the counters.
pub(in crate::keyspace) fn detach(
    keyspace: &Keyspace,
    env: &Env,
    db: DbIndex,
    guard: &mut SlotGuard<'_>,
    hash: u64,
    key: &[u8],
) -> Option<Entry> {
    let entry = guard.remove(Change { keyspace, env, db }, hash, key)?;
    let marks = guard.marks();
    if marks & CONCERNED != 0 {
        let key = Key { bytes: key, slot: SlotId::new(key_slot(key)), hash };
        keyspace.notify_concerned(env, db, &key, marks, false);
    }
    let tally = env.tally.database(db);
    tally.keys.add(-1);
    if let Some(deadline) = entry.deadline() {
        let has_field_ttls = guard.marks() & HAS_FIELD_TTLS != 0;
        let meta = guard.meta_mut();
        meta.with_deadline -= 1;
        if meta.with_deadline == 0 && !has_field_ttls {
            meta.no_deadlines();
        }
        tally.with_deadline.add(-1);
        tally.deadlines_ms.add((deadline as i64).wrapping_neg());
    }
    Some(entry)
}

/// Seals the effects of removing keys from a slot that no command holds, as a separate transaction.
/// Within a unit, these effects become part of the unit.
pub(in crate::keyspace) fn seal_slot(
    keyspace: &Keyspace,
    env: &Env,
    place: DbSlot,
    guard: &mut SlotGuard<'_>,
) {
    if !env.hooks.get().contains(Hooks::PROPAGATE) {
        return;
    }
    let mut aftermath = env.aftermath.borrow_mut();
    if aftermath.is_unit() {
        aftermath.slots.push(place);
    } else if aftermath.has_effects() {
        guard.meta_mut().last_write = aftermath.seal(&keyspace.journal, std::iter::once(place.1));
    }
}

/// Notifies clients that wait in a consumer group of a stream that the stream was deleted.
pub(in crate::keyspace) fn note_removed(env: &Env, db: DbIndex, entry: &Entry) {
    if crate::types::kind_of(entry) == ValueKind::Stream {
        env.note_ready(db, entry.key());
    }
}

/// Sends the notifications for a key that was removed because it had expired.
pub(in crate::keyspace) fn after_expiry(env: &Env, db: DbIndex, entry: Entry) {
    env.tally.expired.add(1);
    note_removed(env, db, &entry);
    if !env.hooks.get().is_empty() {
        crate::keyspace::tracking::changed_by_no_client(env, entry.key());
        notify(env, db, entry.key(), EventClass::EXPIRED, "expired");
        propagate_removal(env, db, entry.key(), env.settings.lazy_expire);
    }
    discard(env, entry);
}

/// Sends the notifications for a key that was evicted.
pub(in crate::keyspace) fn after_eviction(env: &Env, db: DbIndex, entry: &Entry) {
    note_removed(env, db, entry);
    if !env.hooks.get().is_empty() {
        crate::keyspace::tracking::changed_by_no_client(env, entry.key());
        notify(env, db, entry.key(), EventClass::EVICTED, "evicted");
        propagate_removal(env, db, entry.key(), env.settings.lazy_eviction);
    }
}

fn propagate_removal(env: &Env, db: DbIndex, key: &[u8], lazy: bool) {
    if env.hooks.get().contains(Hooks::PROPAGATE) {
        let word: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
        env.aftermath.borrow_mut().effects.push(db, [word, key].into_iter());
    }
}

pub(in crate::keyspace) fn notify(
    env: &Env,
    db: DbIndex,
    key: &[u8],
    class: EventClass,
    name: &'static str,
) {
    if env.hooks.get().contains(Hooks::NOTIFY) && env.settings.events.contains(class) {
        let event = Event { db, class, name, key: key.to_vec() };
        env.aftermath.borrow_mut().events.push(event);
    }
}

/// Frees an entry: immediately if that is quick, in another thread if its value is large.
pub(crate) fn discard(env: &Env, mut entry: Entry) {
    if entry.object_mut().is_some_and(|value| !value.is_light()) {
        env.garbage.borrow_mut().push(Garbage::Entry(entry));
    }
}

/// Like [`discard`], for a value that belongs to no entry.
pub(crate) fn discard_value(env: &Env, value: Value) {
    if !value.is_light() {
        env.garbage.borrow_mut().push(Garbage::Value(value));
    }
}

/// Moves a large value out of an entry that is about to be overwritten. Another thread frees the
/// value.
#[cold]
pub(in crate::keyspace) fn free_value(env: &Env, db: DbIndex, entry: &mut StoredMut<'_>) {
    note_removed(env, db, entry);
    if let Some(value) = entry.object_mut()
        && !value.is_light()
    {
        let value = std::mem::replace(value, Value::Str(ChunkedBytes::new()));
        discard_value(env, value);
    }
}

pub(in crate::keyspace) fn copy_entry(source: &Entry, key: &[u8]) -> Entry {
    use brisk_structures::entry::ValueRef;
    match source.value() {
        ValueRef::Bytes(bytes) => Entry::new_bytes(key, source.kind(), bytes),
        ValueRef::Int(number) => Entry::new_int(key, source.kind(), number),
        ValueRef::Object(value) => Entry::new_object(key, source.kind(), value.clone()),
    }
}
