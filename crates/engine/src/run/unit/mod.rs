//! A unit: several commands run one after the other as if they were one.
//!
//! Nobody else sees what the keys hold between two of its commands: either the slots of all
//! commands are held from the first to the last, or all other threads stand still. The commands are
//! otherwise run as any; what they leave behind for persistence and replicas takes one ticket.

use crate::base::error::Result;
use crate::command::args::{Args, PreparedKey};
use crate::env::Env;
use crate::keyspace::{DbIndex, DbSlot, HeldLocks, Keys, Keyspace, Ticket, Watches, lock_blocking};
use crate::reply::Reply;
use crate::run::exec::{self, Executed, Invocation};

/// Several commands that run as one. [`Unit::finish`] must follow.
pub struct Unit<'k> {
    keyspace: &'k Keyspace,
    /// `None` if all other threads stand still: then each command finds its slots free.
    held: Option<HeldLocks<'k>>,
}

impl<'k> Unit<'k> {
    /// A unit whose commands use keys in `places` only; all are locked, or none.
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

    /// A unit whose commands may do anything: all other threads stand still until it is finished.
    pub fn alone(keyspace: &'k Keyspace, env: &Env) -> Unit<'k> {
        env.aftermath.borrow_mut().begin_unit();
        Unit { keyspace, held: None }
    }

    /// Whether what a session watches, all of it held, is as it was; from now on changes do not
    /// matter to it. O(watched keys).
    pub fn settle(&mut self, env: &Env, watches: &Watches) -> bool {
        let keyspace = self.keyspace;
        let held = &mut self.held;
        let expired = keyspace.any_expired(watches, env.horizon(), |(db, slot), look| match held {
            Some(locks) => locks.at((db, slot)).is_none_or(|guard| look(guard)),
            None => look(&lock_blocking(keyspace.database(db), slot)),
        });
        watches.settle() && !expired
    }

    /// Whether a command that uses these keys can run.
    pub fn holds(&mut self, db: DbIndex, keys: &[PreparedKey]) -> bool {
        self.held.as_mut().is_none_or(|locks| keys.iter().all(|key| locks.has((db, key.slot))))
    }

    /// The slots that it holds, in ascending order.
    pub fn places(&self) -> Vec<DbSlot> {
        self.held.as_ref().map(HeldLocks::places).unwrap_or_default()
    }

    /// Whether its commands may do anything.
    pub fn is_alone(&self) -> bool {
        self.held.is_none()
    }

    /// Gives its slots free. From now on nobody else may touch what its commands touch, by other
    /// means: all other threads stand still, or keep away from it.
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
            keys.choose_fate_of_expired(call.spec.flags);
            keys.remove_expired(args.keys(), false);
            exec::run_held(keys, call, args, reply)
        })
    }

    /// Lets `action` work on keys of one of the commands.
    pub fn with_keys<R>(
        &mut self,
        env: &Env,
        db: DbIndex,
        prepared: &[PreparedKey],
        action: impl FnOnce(&mut Keys<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut keys = Keys::unlocked(self.keyspace, env, db);
        let Some(locks) = &mut self.held else {
            // Whoever may run beside it holds a slot for a moment only.
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

    /// Ends the unit and gives its slots free. `None` if nothing is to be propagated.
    pub fn finish(mut self, env: &Env) -> Option<Ticket> {
        let mut aftermath = env.aftermath.borrow_mut();
        if !aftermath.end_unit() {
            aftermath.slots.clear();
            return None;
        }
        let ticket = aftermath.seal(self.keyspace.journal());
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
        // Who waits for a slot holds none: its holder may be waiting for one of these.
        self.release();
        for (db, slot) in others {
            let mut guard = lock_blocking(self.keyspace.database(db), slot);
            // Somebody else may have written there since.
            let last_write = &mut guard.meta_mut().last_write;
            *last_write = ticket.max(*last_write);
        }
        Some(ticket)
    }
}

#[cfg(test)]
mod tests;
