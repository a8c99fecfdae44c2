//! A unit: several commands that run one after the other as if they were one.
//!
//! No other thread sees the keys between two commands of a unit. The slots of all commands are held
//! from the first command to the last, or all other threads are quiesced. Otherwise the commands
//! run as usual. Their effects for persistence and replicas share one ticket.

use crate::base::error::Result;
use crate::command::args::{Args, PreparedKey};
use crate::env::Env;
use crate::keyspace::{DbIndex, DbSlot, HeldLocks, Keys, Keyspace, Ticket, Watches, lock_blocking};
use crate::reply::Reply;
use crate::run::exec::{self, Executed, Invocation};

/// Several commands that run as one. The caller must call [`Unit::finish`].
pub struct Unit<'k> {
    keyspace: &'k Keyspace,
    /// `None` if all other threads are quiesced: then each command finds its slots free.
    held: Option<HeldLocks<'k>>,
}

impl<'k> Unit<'k> {
    /// A unit whose commands use only keys in `places`. All of these slots are locked, or none.
    ///
    /// # Errors
    /// [`crate::base::error::CommandError::SlotBusy`] if another thread holds one of the slots.
    pub fn holding(
        keyspace: &'k Keyspace,
        env: &Env,
        places: impl IntoIterator<Item = DbSlot>,
    ) -> Result<Unit<'k>> {
        let held = Some(HeldLocks::take(keyspace, places.into_iter())?);
        env.aftermath.borrow_mut().begin_unit();
        Ok(Unit { keyspace, held })
    }

    /// A unit whose commands may do anything: all other threads are quiesced until it is finished.
    pub fn alone(keyspace: &'k Keyspace, env: &Env) -> Unit<'k> {
        env.aftermath.borrow_mut().begin_unit();
        Unit { keyspace, held: None }
    }

    /// Reports whether the keys that a session watches are unchanged. The unit holds their slots.
    /// From now on, changes to these keys no longer matter to the session. O(watched keys).
    pub fn settle(&mut self, env: &Env, watches: &Watches) -> bool {
        let keyspace = self.keyspace;
        let held = &mut self.held;
        let expired = keyspace.any_expired(watches, env.horizon(), |(db, slot), look| match held {
            Some(locks) => locks.at((db, slot)).is_none_or(|guard| look(guard)),
            None => look(&lock_blocking(keyspace.database(db), slot)),
        });
        watches.settle() && !expired
    }

    /// Reports whether a command that uses these keys can run.
    pub fn holds(&mut self, db: DbIndex, keys: &[PreparedKey]) -> bool {
        self.held.as_mut().is_none_or(|locks| keys.iter().all(|key| locks.has((db, key.slot))))
    }

    /// The slots that the unit holds, in ascending order.
    pub fn places(&self) -> Vec<DbSlot> {
        self.held.as_ref().map(HeldLocks::places).unwrap_or_default()
    }

    /// Reports whether the commands may do anything.
    pub fn is_alone(&self) -> bool {
        self.held.is_none()
    }

    /// Releases the unit's slots. From now on the caller must exclude other threads from the unit's
    /// data by other means: all other threads are quiesced, or avoid that data.
    pub fn release(&mut self) {
        self.held = None;
    }

    /// Runs one command, like [`exec::run`].
    pub fn run(
        &mut self,
        env: &Env,
        call: &Invocation,
        prepared: &[PreparedKey],
        args: &mut Args<'_>,
        reply: Reply<'_>,
    ) -> Result<Executed> {
        self.with_keys(env, call.db, prepared, |keys| {
            keys.choose_expiry_mode(call.spec.flags);
            keys.remove_expired(args.keys(), false);
            exec::run_held(keys, call, args, reply)
        })
    }

    /// Calls `action` with the keys of one of the commands.
    pub fn with_keys<R>(
        &mut self,
        env: &Env,
        db: DbIndex,
        prepared: &[PreparedKey],
        action: impl FnOnce(&mut Keys<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut keys = Keys::unlocked(self.keyspace, env, db);
        let Some(locks) = &mut self.held else {
            // A thread that may run concurrently holds a slot only for a moment.
            while keys.hold(prepared).is_err() {
                std::thread::yield_now();
            }
            return action(&mut keys);
        };
        let lent = locks.lend_to(&mut keys, prepared);
        let result = lent.and_then(|()| action(&mut keys));
        locks.take_back(keys);
        result
    }

    /// Ends the unit and releases its slots. `None` if nothing is propagated.
    pub fn finish(mut self, env: &Env) -> Option<Ticket> {
        let mut aftermath = env.aftermath.borrow_mut();
        if !aftermath.end_unit() {
            aftermath.slots.clear();
            return None;
        }
        let ticket = aftermath.seal(self.keyspace.journal(), std::iter::empty());
        env.note_shown(ticket);
        let slots = std::mem::take(&mut aftermath.slots);
        drop(aftermath);
        let mut others = Vec::new();
        for place in slots {
            match self.held.as_mut().and_then(|locks| locks.at(place)) {
                Some(guard) => guard.meta_mut().last_write = ticket,
                None => others.push(place),
            }
        }
        // A thread that waits for a slot must hold none, because the slot's holder may wait for one
        // of this thread's slots.
        self.release();
        for (db, slot) in others {
            let mut guard = lock_blocking(self.keyspace.database(db), slot);
            // Another thread may have written to the slot since then.
            let last_write = &mut guard.meta_mut().last_write;
            *last_write = ticket.max(*last_write);
        }
        Some(ticket)
    }
}

#[cfg(test)]
mod tests;
