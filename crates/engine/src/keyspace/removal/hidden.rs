//! Keys that have expired but stay: while the dataset is to stay as it is ([`Env::keeps_expired`]).
//!
//! No handler sees an expired key, so none asks whether a key is expired. Usually that is because
//! expired keys are removed before the handler runs. Here they are put aside instead, and put back
//! behind it, all under the locks that the command holds: no count changes, no event arises,
//! and nobody else can see a difference. Commands that write remove them for good: one that creates
//! the key anew could not be repeated elsewhere otherwise.
//!
//! [`Env::keeps_expired`]: crate::env::Env::keeps_expired

use crate::command::Flags;
use crate::keyspace::keys::{Keys, copy_entry, discard};
use crate::keyspace::{Key, UnixMs, fields};
use crate::types::Collection;
use crate::types::hash::Hash;

impl Keys<'_> {
    /// Before a command with these flags looks at its keys: whether it hides the expired ones.
    #[inline]
    pub(crate) fn choose_fate_of_expired(&mut self, flags: Flags) {
        self.hides = self.env().keeps_expired.get() && !flags.contains(Flags::WRITE);
    }

    /// Puts aside what has expired of `key`: all of it, or the fields that are due. O(1), but for
    /// fields O(those that are due).
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

    /// Behind the handler: puts back what was put aside.
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
