//! TTLs inside values: hash fields that expire while their key stays.
//!
//! The lower bound of a slot's expiry times covers fields too, so both ways to remove expired keys
//! work for fields. The step before a command removes the expired fields of its keys, and the
//! expiry cycle walks a slot whose bound has passed. The count of keys with a TTL does not include
//! these hashes, so two marks report that they may exist: [`HAS_FIELD_TTLS`], and
//! `FIELD_TTLS_SET_SINCE_WALK` for TTLs set since the cycle began its walk over the slot. The cycle
//! clears the marks when a whole walk finds no such field.

use crate::env::Env;
use crate::env::effect::{EventClass, Hooks};
use crate::keyspace::keys::{Keys, detach, discard, note_removed, notify};
use crate::keyspace::marks::{CONCERNED, FIELD_MARKS, HAS_FIELD_TTLS};
use crate::keyspace::snapshot::Change;
use crate::keyspace::{DbIndex, Entry, Key, Keyspace, SlotGuard, SlotId, UnixMs};
use crate::types::hash::Hash;
use crate::types::{Collection, ValueKind, kind_of};
use brisk_structures::entry::ValueRef;
use std::ops::ControlFlow;

/// Number of fields that one command, or one step of the expiry cycle, removes from a hash.
pub(in crate::keyspace) const FIELDS_PER_SLICE: usize = 2000;

/// Maximum number of expired fields in one propagated HDEL.
const PROPAGATED_FIELDS_MAX: usize = 1024;

/// The earliest expiry time inside an entry's value, or a lower bound of it.
#[inline]
pub(in crate::keyspace) fn inner_deadline(entry: &Entry) -> Option<UnixMs> {
    if kind_of(entry) != ValueKind::Hash {
        return None;
    }
    match entry.value() {
        ValueRef::Object(value) => value.next_deadline().map(UnixMs),
        ValueRef::Bytes(_) | ValueRef::Int(_) => None,
    }
}

impl Keys<'_> {
    /// Records that a value of the slot contains an element with this expiry time.
    #[cold]
    pub(in crate::keyspace) fn note_inside(&mut self, slot: SlotId, deadline: UnixMs) {
        self.mark(slot, FIELD_MARKS);
        let Some(guard) = self.slot_mut(slot) else { return };
        guard.meta_mut().note(deadline);
        self.keyspace().database(self.db()).note_inner_deadlines();
    }

    /// Calls `visit` with each slot of a database in which fields may have TTLs. Each slot is
    /// locked separately. O(slots with keys).
    pub(crate) fn each_slot_of_field_deadlines(
        &self,
        db: DbIndex,
        mut visit: impl FnMut(&SlotGuard<'_>),
    ) {
        self.each_slot(db, |_, slot| {
            if slot.marks() & HAS_FIELD_TTLS != 0 {
                visit(slot);
            }
            ControlFlow::Continue(())
        });
    }

    /// Removes about `limit` expired elements from the value of `key`. Returns false if more have
    /// expired.
    pub(in crate::keyspace) fn remove_expired_inside(
        &mut self,
        key: &Key<'_>,
        limit: usize,
    ) -> bool {
        let now = self.env().horizon();
        if self.inner_deadline(key).is_none_or(|at| at > now) {
            return true;
        }
        let (keyspace, env, db) = (self.keyspace(), self.env(), self.db());
        self.expired_any = true;
        let Some(slot) = self.slot_mut(key.slot) else { return true };
        expire_inside(keyspace, env, db, slot, key.hash, key.bytes, limit)
    }
}

/// Exchanges the marks along with the tables. A walk over one table continues in the other, where
/// everything counts as new.
pub(in crate::keyspace) fn swap_marks<'g>(here: &mut SlotGuard<'g>, there: &mut SlotGuard<'g>) {
    let (mine, theirs) = (here.marks(), there.marks());
    for (guard, kept, other) in [(here, mine, theirs), (there, theirs, mine)] {
        let fields = if other & HAS_FIELD_TTLS != 0 { FIELD_MARKS } else { 0 };
        guard.set_marks(kept & !FIELD_MARKS | fields);
    }
}

/// Removes about `limit` expired fields from a hash, and the hash itself if no field is left.
/// Returns false if more fields have expired.
pub(in crate::keyspace) fn expire_inside(
    keyspace: &Keyspace,
    env: &Env,
    db: DbIndex,
    guard: &mut SlotGuard<'_>,
    key_hash: u64,
    key: &[u8],
    limit: usize,
) -> bool {
    let hooks = env.hooks.get();
    let (mut count, mut names) = (0i64, Vec::new());
    let change = Change { keyspace, env, db };
    let found = guard.find_mut(change, key_hash, key).and_then(|mut entry| {
        let hash = Hash::of_value_mut(entry.object_mut()?)?;
        let done = hash.expire(env.horizon().0, limit, |field| {
            count += 1;
            if hooks.contains(Hooks::PROPAGATE) {
                names.push(field.to_vec());
            }
        });
        Some((done, hash.is_empty()))
    });
    let Some((done, is_empty)) = found else { return true };
    let marks = guard.marks();
    if count > 0 && marks & CONCERNED != 0 {
        let key = keyspace.hasher().key(key);
        keyspace.notify_concerned(env, db, &key, marks, true);
        crate::keyspace::tracking::changed_by_no_client(env, key.bytes);
    }
    env.tally.expired_fields.add(count);
    if count > 0 && !hooks.is_empty() {
        notify(env, db, key, EventClass::HASH, "hexpired");
        for fields in names.chunks(PROPAGATED_FIELDS_MAX) {
            let mut words: Vec<&[u8]> = vec![b"HDEL", key];
            words.extend(fields.iter().map(Vec::as_slice));
            env.aftermath.borrow_mut().effects.push(db, words.into_iter());
        }
    }
    if is_empty && let Some(entry) = detach(keyspace, env, db, guard, key_hash, key) {
        note_removed(env, db, &entry);
        discard(env, entry);
        if !hooks.is_empty() {
            notify(env, db, key, EventClass::GENERIC, "del");
        }
    }
    done
}
