//! Long commands: another thread does expensive work, using views of the values.
//!
//! A command with at least `LONG_STEPS_MIN` steps of work takes views of its values while it holds its slots. A view is
//! a clone that shares all its parts. The command also specifies what to compute from the views. Then its slots are
//! released, and another thread does the work ([`LongCommand::compute`]) while the client waits.
//!
//! ```text
//!  handler: views ──> LongCommand ──compute (any thread)──> ComputedCommand ──finish──> reply
//!                       ^                                          │
//!                       └────────── the sources have changed ──────┘
//! ```
//!
//! A command that only reads is then done. Its reply shows the data at the time of its views. A command that stores a
//! result is run again with that result ([`crate::run::finish`]). It stores the result if its sources have not changed,
//! and otherwise starts again. From the second attempt on, the slots of the sources are *frozen*: commands that write
//! to them wait, so that the attempt does not fail again. Correctness does not depend on that, because the sources are
//! compared in any case.
//!
//! The memory that a long command uses until it ends is set aside ([`SetAside`]): no keys are evicted for it, and no
//! commands are rejected because of it.

use crate::base::error::Result;
use crate::base::steps::LONG_STEPS_MIN;
use crate::call::ctx::{Blocking, Ctx};
use crate::call::recorded::RecordedCommand;
use crate::command::Spec;
use crate::command::args::Args;
use crate::env::{Env, Garbage};
use crate::keyspace::{ClientRef, DbIndex, Key, Keyspace, SlotId, discard_value};
use crate::reply::{Outcome, Reply, ReplyBuffer};
use crate::types::View;
use brisk_structures::alloc::{AsideMeter, SetAside};
use std::any::Any;

/// Maximum number of attempts on another thread. After that, the command does the work itself.
/// Transactions do not wait for frozen slots and could otherwise change the sources forever.
pub(crate) const ATTEMPTS_MAX: u32 = 8;

type ReplyFn = dyn FnOnce(&Keyspace, &mut Reply<'_>) -> Result<Outcome> + Send;
type PrepareFn = dyn FnOnce(&Keyspace, &[View]) -> Prepared + Send;

enum Work {
    /// Writes the reply.
    Reply(Box<ReplyFn>),
    /// Computes a result from the views. The command is then run again with the result.
    Result(Vec<View>, Box<PrepareFn>),
}

/// A command whose work is left to another thread.
pub struct LongCommand {
    command: RecordedCommand,
    client: ClientRef,
    work: Work,
    attempt: u32,
    /// True if the work waits for other servers and needs little CPU time.
    apart: bool,
    /// The memory of the copied request.
    set_aside: SetAside,
}

/// The result that was computed for a command that is run again.
pub(crate) struct Prepared {
    pub(crate) result: Box<dyn Any + Send>,
    /// Slots of the command's database that it needs in addition to those of its keys.
    pub(crate) slots: Vec<SlotId>,
    /// Number of keys that were looked up for the result: found, and not found.
    pub(crate) found: (i64, i64),
}

impl Prepared {
    fn of<R: Send + 'static>(result: R) -> Prepared {
        Prepared::looked_up(result, Vec::new(), (0, 0))
    }

    /// Creates the result of a command that looked up keys in `slots`. `found` contains the numbers of keys found and
    /// not found.
    pub(crate) fn looked_up<R: Send + 'static>(
        result: R,
        slots: Vec<SlotId>,
        found: (i64, i64),
    ) -> Prepared {
        Prepared { result: Box::new(result), slots, found }
    }
}

/// The result that was computed from views.
pub(crate) struct PreparedResult {
    pub(crate) views: Vec<View>,
    pub(crate) product: Prepared,
    pub(crate) attempt: u32,
}

pub(crate) enum LongResult {
    Reply(ReplyBuffer, Result<()>),
    Result(PreparedResult),
}

/// A command whose work is done.
pub struct ComputedCommand {
    pub(crate) command: RecordedCommand,
    pub(crate) client: ClientRef,
    pub(crate) done: LongResult,
    /// The memory that it uses in addition to the data; no keys are evicted for it.
    pub(crate) set_aside: SetAside,
}

impl LongCommand {
    /// A command of another crate that uses no keys. `write_reply` writes its reply. The request is
    /// `words`, in database `db`.
    pub fn reply_with<W: AsRef<[u8]>>(
        (spec, parent): (&'static Spec, Option<&'static Spec>),
        db: DbIndex,
        words: &[W],
        client: ClientRef,
        write_reply: impl FnOnce(&mut Reply<'_>) -> Outcome + Send + 'static,
    ) -> LongCommand {
        let command = RecordedCommand::unrepeatable(spec, parent, db, words);
        let write_reply: Box<ReplyFn> = Box::new(move |_, reply| Ok(write_reply(reply)));
        let (work, set_aside) = (Work::Reply(write_reply), SetAside::default());
        LongCommand { command, client, work, attempt: 0, apart: false, set_aside }
    }

    /// Like [`LongCommand::reply_with`], for an `errand` that waits for other servers and blocks its thread. If it
    /// returns an error, that is the reply.
    pub fn errand<W: AsRef<[u8]>>(
        (spec, parent): (&'static Spec, Option<&'static Spec>),
        db: DbIndex,
        words: &[W],
        client: ClientRef,
        errand: impl FnOnce(&mut Reply<'_>) -> Result<Outcome> + Send + 'static,
    ) -> LongCommand {
        let command = RecordedCommand::unrepeatable(spec, parent, db, words);
        let write_reply: Box<ReplyFn> = Box::new(move |_, reply| errand(reply));
        let (work, set_aside) = (Work::Reply(write_reply), SetAside::default());
        LongCommand { command, client, work, attempt: 0, apart: true, set_aside }
    }

    /// Reports whether the work waits for other servers and blocks its thread.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Does the work. It may take a long time, but holds no slot for longer than one step.
    pub fn compute(self, keyspace: &Keyspace) -> ComputedCommand {
        let LongCommand { command, client, work, attempt, set_aside, .. } = self;
        let aside = AsideMeter::begin();
        let done = match work {
            Work::Reply(write_reply) => {
                let mut replies = ReplyBuffer::new();
                let result = write_reply(keyspace, &mut Reply::new(&mut replies, client.protocol));
                replies.share();
                LongResult::Reply(replies, result.map(drop))
            }
            Work::Result(views, make) => {
                let product = make(keyspace, &views);
                LongResult::Result(PreparedResult { views, product, attempt })
            }
        };
        ComputedCommand { command, client, done, set_aside: set_aside.and(aside.end()) }
    }
}

impl ComputedCommand {
    /// Reports whether finishing the command may change the data.
    pub fn writes(&self) -> bool {
        matches!(self.done, LongResult::Result(_)) && self.command.writes()
    }
}

impl PreparedResult {
    /// Has the views and the result freed by another thread, because they may hold the last reference to something
    /// huge.
    pub(crate) fn discard(self, env: &Env) {
        discard_views(env, self.views);
        env.garbage.borrow_mut().push(Garbage::Other(self.product.result));
    }
}

/// Has the views freed by another thread.
pub(crate) fn discard_views(env: &Env, views: Vec<View>) {
    views.into_iter().flatten().for_each(|view| discard_value(env, view));
}

impl Ctx<'_, '_> {
    /// Reports whether a command with this number of steps is computed on another thread. Returns false in transactions
    /// and scripts, where a command must end immediately.
    #[inline]
    pub fn is_long(&self, steps: usize) -> bool {
        steps >= LONG_STEPS_MIN && self.can_wait()
    }

    /// Returns how many members of the smallest of `sets` sets are checked before another thread takes over counting
    /// the common members. Even among many members, `limit` common ones are often found quickly.
    pub(crate) fn counted_at_once(&self, steps: usize, limit: usize, sets: usize) -> usize {
        match self.is_long(steps) {
            false => usize::MAX,
            true if limit < LONG_STEPS_MIN => LONG_STEPS_MIN / sets,
            true => 0,
        }
    }

    /// Reports whether the command may leave its client waiting, because only that client waits for
    /// the reply.
    #[inline]
    pub(crate) const fn can_wait(&self) -> bool {
        matches!(self.blocking, Blocking::Client(_))
    }

    /// Lets `write_reply` write the reply on another thread from data that `write_reply` owns. Call it only
    /// if `Ctx::can_wait`, for commands that change nothing afterward.
    pub fn reply_elsewhere(
        &mut self,
        args: &Args<'_>,
        write_reply: impl FnOnce(&Keyspace, &mut Reply<'_>) -> Result<Outcome> + Send + 'static,
    ) -> Outcome {
        self.leave(args, Work::Reply(Box::new(write_reply)), 0, false)
    }

    /// Returns the result of `make` for the values of `keys`, if it was computed from their current
    /// values. Otherwise another thread computes it, and the command ends with
    /// [`Outcome::Elsewhere`] without any changes. Call it only if [`Ctx::is_long`].
    pub fn result_elsewhere<R: Send + 'static>(
        &mut self,
        args: &Args<'_>,
        keys: &[Key<'_>],
        make: impl FnOnce(&[View]) -> R + Send + 'static,
    ) -> Option<R> {
        let views = self.keys.views(keys);
        let (attempt, result) = self.made_of(&views);
        let env = self.keys.env();
        if result.is_some() {
            discard_views(env, views);
            return result;
        }
        if attempt >= ATTEMPTS_MAX {
            let result = make(&views);
            discard_views(env, views);
            return Some(result);
        }
        if attempt > 0 {
            keys.iter().for_each(|key| self.keys.freeze(key.slot));
        }
        self.make_elsewhere(args, views, attempt, |_, views| Prepared::of(make(views)));
        None
    }

    /// Returns the result that was computed from values, if they have not changed, and the number
    /// of the attempt that will compute it or has computed it. The last attempt has the number
    /// [`ATTEMPTS_MAX`].
    pub(crate) fn made_of<R: 'static>(&mut self, views: &[View]) -> (u32, Option<R>) {
        let env = self.keys.env();
        let Some(made) = env.made.borrow_mut().take() else { return (0, None) };
        if !same(&made.views, views) {
            let attempt = made.attempt + 1;
            made.discard(env);
            return (attempt, None);
        }
        discard_views(env, made.views);
        let result = made.product.result.downcast::<R>();
        (made.attempt, Some(*result.expect("the same command makes the same of the same")))
    }

    /// Lets `make` compute something from `views` on another thread. Then the command is run again
    /// and also holds the slots that the result names. Call it only if [`Ctx::can_wait`].
    pub(crate) fn make_elsewhere(
        &mut self,
        args: &Args<'_>,
        views: Vec<View>,
        attempt: u32,
        make: impl FnOnce(&Keyspace, &[View]) -> Prepared + Send + 'static,
    ) -> Outcome {
        self.leave(args, Work::Result(views, Box::new(make)), attempt, false)
    }

    /// Runs `errand` on another thread, where it may wait for other servers. Then the command is
    /// run again and gets the outcome from [`Ctx::errand_result`]. By then, the slots that the
    /// command has frozen are no longer frozen. Call it only for a client that can wait.
    pub(crate) fn errand<R: Send + 'static>(
        &mut self,
        args: &Args<'_>,
        errand: impl FnOnce() -> R + Send + 'static,
    ) -> Outcome {
        let make: Box<PrepareFn> = Box::new(move |_, _| Prepared::of(errand()));
        // An attempt number above 0 makes `finish` notify clients that wait for frozen slots.
        self.leave(args, Work::Result(Vec::new(), make), 1, true)
    }

    /// The outcome of the command's errand, if it had one.
    pub(crate) fn errand_result<R: 'static>(&mut self) -> Option<R> {
        let made = self.keys.env().made.borrow_mut().take()?;
        let result = made.product.result.downcast::<R>();
        Some(*result.expect("the same command makes the same"))
    }

    fn leave(&mut self, args: &Args<'_>, work: Work, attempt: u32, apart: bool) -> Outcome {
        let Blocking::Client(client) = self.blocking else {
            unreachable!("only what is long is computed elsewhere")
        };
        let words: Vec<&[u8]> = args.arguments().collect();
        let command = RecordedCommand::new(self, &words);
        let set_aside = SetAside::of(command.request_bytes());
        let long = LongCommand { command, client, work, attempt, apart, set_aside };
        *self.keys.env().long.borrow_mut() = Some(long);
        Outcome::Elsewhere
    }
}

/// Reports whether no value has changed.
fn same(before: &[View], now: &[View]) -> bool {
    let pairs = || before.iter().zip(now);
    before.len() == now.len()
        && pairs().all(|pair| match pair {
            (Some(before), Some(now)) => before.is_same(now),
            (before, now) => before.is_none() && now.is_none(),
        })
}

impl Env {
    /// Leaves work to another thread. The command ends with [`Outcome::Elsewhere`].
    pub fn leave_long(&self, long: LongCommand) {
        *self.long.borrow_mut() = Some(long);
    }

    /// Takes the work that the last command has left.
    pub fn take_long(&self) -> Option<LongCommand> {
        self.long.borrow_mut().take()
    }
}

#[cfg(test)]
mod tests;
