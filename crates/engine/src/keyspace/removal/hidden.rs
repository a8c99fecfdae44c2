//! Expired keys that have to stay, because this server may not remove them ([`Env::keeps_expired`]).
//!
//! A handler never sees an expired key, so no handler checks for expiry. Usually expired keys are
//! removed before the handler runs. Here they are hidden instead and put back after the handler, all
//! under the locks that the command holds: no count changes, no event is emitted, and no other thread
//! can see a difference. Commands that write do remove them. Otherwise a command that creates the key
//! again could not be repeated on another server.
//!
//! [`Env::keeps_expired`]: crate::env::Env::keeps_expired

use crate::command::Flags;
use crate::keyspace::keys::{Keys, copy_entry, discard};
use crate::keyspace::{Key, UnixMs, fields};
use crate::types::Collection;
use crate::types::hash::Hash;

impl Keys<'_> {
    /// Decides, before a command with these flags looks up its keys, whether expired keys are
    /// hidden.
    #[inline]
    pub(crate) fn choose_expiry_mode(&mut self, flags: Flags) {
        self.hides = self.env().keeps_expired.get() && !flags.contains(Flags::WRITE);
    }

    /// Hides the expired parts of `key`: the key itself, or its expired fields. O(1); for fields
    /// O(expired fields).
    #[cold]
    pub(in crate::keyspace) fn hide_expired(&mut self, key: &Key<'_>) {
        let now = self.env().horizon();
        let Some(entry) = self.find(key) else { return };
        let mut left = None;
        if entry.deadline().is_none_or(|at| UnixMs(at) > now) {
            if fields::inner_deadline(&entry).is_none_or(|at| at > now) {
                return;
            }
            let mut copy = copy_entry(&entry, key.bytes);
            copy.set_deadline(entry.deadline());
            copy.set_clock(entry.clock());
            if let Some(hash) = copy.object_mut().and_then(Hash::of_value_mut) {
                hash.expire(now.0, usize::MAX, |_| {});
                left = (!hash.is_empty()).then_some(copy);
            }
        }
        let Some(slot) = self.slot_mut(key.slot) else { return };
        let hidden = match left {
            Some(rest) => slot.unstash(key.hash, rest),
            None => slot.stash(key.hash, key.bytes),
        };
        let db = self.db();
        self.env().hidden.borrow_mut().extend(hidden.map(|entry| (db, entry)));
        self.hidden_any = true;
    }

    /// Called after the handler: puts the hidden entries back.
    #[inline]
    pub(crate) fn reveal_expired(&mut self) {
        if self.hidden_any {
            self.put_back_hidden();
        }
    }

    #[cold]
    fn put_back_hidden(&mut self) {
        self.hidden_any = false;
        let env = self.env();
        for (db, entry) in env.hidden.take() {
            let Key { hash, slot, .. } = self.keyspace().hasher().key(entry.key());
            let rest = self.in_db(db, |keys| {
                let slot = keys.slot_mut(slot).expect("a command holds its slots to its end");
                slot.unstash(hash, entry)
            });
            rest.into_iter().for_each(|rest| discard(env, rest));
        }
    }
}
