//! The side effects of a command: its changes are counted, published as keyspace events, and
//! recorded as effects for replicas.

use super::detached::notify;
use super::{HeldSlots, Keys, lock_blocking};
use crate::env::Env;
use crate::env::effect::{EventClass, Hooks};
use crate::keyspace::{DbIndex, Key, Keyspace, SlotGuard, SlotId, Ticket};
use brisk_resp::request;

impl<'a> Keys<'a> {
    /// The slot, if it is held. Otherwise the access is recorded as undeclared.
    pub(in crate::keyspace) fn slot_mut(&mut self, slot: SlotId) -> Option<&mut SlotGuard<'a>> {
        self.guard_mut(slot)
    }

    /// Records that `key` was changed: counters, events and notifications follow from this call.
    #[inline]
    pub(crate) fn changed(&mut self, key: &Key<'_>, class: EventClass, event: &'static str) {
        self.changed_by(key, 1, class, event);
    }

    /// Like [`Keys::changed`] for a change that counts as several. No event is published if `event`
    /// is empty.
    #[inline]
    pub(in crate::keyspace) fn changed_by(
        &mut self,
        key: &Key<'_>,
        changes: u64,
        class: EventClass,
        event: &'static str,
    ) {
        self.notify_change(key);
        self.changed_metadata(key, changes, class, event);
    }

    /// Like [`Keys::changed_by`] for a change that does not affect the value as watchers see it,
    /// such as a change of a stream's consumer groups.
    #[inline]
    pub(in crate::keyspace) fn changed_metadata(
        &mut self,
        key: &Key<'_>,
        changes: u64,
        class: EventClass,
        event: &'static str,
    ) {
        self.dirty += changes;
        self.notify_event(key, class, event);
    }

    /// Publishes a keyspace event for another key that a change affects. The change is counted
    /// elsewhere.
    #[inline]
    pub(crate) fn notify_event(&self, key: &Key<'_>, class: EventClass, event: &'static str) {
        if !event.is_empty() && self.env.hooks.get().contains(Hooks::NOTIFY) {
            self.notify(key.bytes, class, event);
        }
    }

    /// Counts changes that do not belong to a single key, such as those of FLUSHDB.
    pub fn changed_all(&mut self, count: u64) {
        self.dirty += count;
    }

    #[cold]
    pub(super) fn notify(&self, key: &[u8], class: EventClass, name: &'static str) {
        notify(self.env, self.db, key, class, name);
    }

    /// Sets what to propagate instead of the command as it was sent. The replacement is propagated
    /// even if nothing changed here. This method may be called several times. `words` runs only if
    /// effects are collected.
    pub fn propagate(&mut self, words: impl FnOnce() -> Vec<Vec<u8>>) {
        if self.env.hooks.get().contains(Hooks::PROPAGATE) {
            let mut aftermath = self.env.aftermath.borrow_mut();
            aftermath.replaced = true;
            if !aftermath.is_covered_by_relay(&self.keyspace.journal) {
                aftermath.effects.push(self.db, words().iter().map(Vec::as_slice));
            }
        }
    }

    /// Propagates nothing except the arguments of [`Keys::propagate`] calls, regardless of what
    /// changed here.
    pub fn propagate_nothing(&mut self) {
        if self.env.hooks.get().contains(Hooks::PROPAGATE) {
            self.env.aftermath.borrow_mut().replaced = true;
        }
    }

    /// Ends the changes without recording effects, so replicas do not see them.
    pub fn close_without_effects(mut self) {
        self.propagate_nothing();
        let ticket = self.close(|_| ());
        debug_assert!(ticket.is_none(), "nothing is to be propagated");
    }

    /// Ends the changes and records them as this command. Returns the number of changes.
    pub fn close_as(mut self, words: &[&[u8]]) -> u64 {
        // No client waits until the transaction is replicated or on disk.
        let _ = self.close(|out| request::encode(out, words));
        self.dirty
    }

    /// Called after the handler. Records the command as it was sent, if it changed something and
    /// set no replacement, and takes the transaction's ticket. `encode` appends the command. `None`
    /// if nothing is propagated.
    #[inline]
    pub(crate) fn close(&mut self, encode: impl Fn(&mut Vec<u8>)) -> Option<Ticket> {
        if self.env.hooks.get().contains(Hooks::PROPAGATE) {
            self.close_and_propagate(encode)
        } else {
            None
        }
    }

    #[inline(never)]
    fn close_and_propagate(&mut self, encode: impl Fn(&mut Vec<u8>)) -> Option<Ticket> {
        let mut aftermath = self.env.aftermath.borrow_mut();
        // Most writes take this path, on which the command is encoded only once.
        if self.dirty > 0 && aftermath.is_single() {
            let appended = self.keyspace.journal.append_command(self.db, &encode);
            if let Some(ticket) = appended {
                drop(aftermath);
                self.each_held(|guard| guard.meta_mut().last_write = ticket);
                return Some(ticket);
            }
        }
        let replaced = std::mem::take(&mut aftermath.replaced);
        if self.dirty == 0 && !replaced && !self.expired_any {
            return None;
        }
        if self.dirty > 0 && !replaced && !aftermath.is_covered_by_relay(&self.keyspace.journal) {
            aftermath.effects.push_encoded(self.db, encode);
        }
        if aftermath.is_unit() {
            let places = &mut aftermath.slots;
            match &self.held {
                HeldSlots::None => {}
                HeldSlots::One(place, _) => places.push(*place),
                HeldSlots::Many(guards) => places.extend(guards.iter().map(|(place, _)| *place)),
            }
            return None;
        }
        if !aftermath.has_effects() {
            aftermath.slots.clear();
            return None;
        }
        let ticket = aftermath.seal(&self.keyspace.journal, self.held.slots());
        let slots = std::mem::take(&mut aftermath.slots);
        drop(aftermath);
        self.each_held(|guard| guard.meta_mut().last_write = ticket);
        for (db, slot) in slots.into_iter().filter(|place| self.held.at(*place).is_none()) {
            lock_blocking(self.keyspace.database(db), slot).meta_mut().last_write = ticket;
        }
        Some(ticket)
    }

    /// Records the last transaction that the command may have seen: the last one in each of its
    /// slots, or the latest one overall if it holds no slot.
    #[inline]
    pub(crate) fn note_shown(&self) {
        if !self.env.hooks.get().contains(Hooks::PROPAGATE) {
            return;
        }
        let last = |guard: &SlotGuard<'_>| guard.meta().last_write;
        self.env.note_shown(match &self.held {
            HeldSlots::None => self.keyspace.journal().end(),
            HeldSlots::One(_, guard) => last(guard),
            HeldSlots::Many(guards) => {
                guards.iter().map(|(_, guard)| last(guard)).max().unwrap_or_default()
            }
        });
    }

    /// Raises the slot's `last_write` when the command ends, as for held slots.
    pub(super) fn wrote_slot(&self, db: DbIndex, slot: SlotId) {
        if self.env.hooks.get().contains(Hooks::PROPAGATE) {
            self.env.aftermath.borrow_mut().slots.push((db, slot));
        }
    }
}

impl Keyspace {
    /// Propagates a command that changes no key, such as PUBLISH: as part of the running
    /// transaction, or as a separate transaction.
    pub fn propagate_without_keys(&self, env: &Env, db: DbIndex, words: &[&[u8]]) {
        if !env.hooks.get().contains(Hooks::PROPAGATE) {
            return;
        }
        let mut aftermath = env.aftermath.borrow_mut();
        aftermath.effects.push(db, words.iter().copied());
        if !aftermath.is_unit() {
            let _ = aftermath.seal(&self.journal, std::iter::empty());
        }
    }
}
