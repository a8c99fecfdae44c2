//! Long commands: what takes long is computed elsewhere, from views of the values.
//!
//! A command with more than [`LONG_STEPS_MIN`] steps to do takes views of its values (clones that
//! share everything with them) while it holds its slots, and says what is to be made of these. Then
//! its slots are free, and another thread does the work ([`LongCommand::compute`]) while the client waits.
//!
//! ```text
//!  handler: views ──> Long ──compute (any thread)──> Computed ──finish──> the answer
//!                       ^                                          │
//!                       └───────── the sources have changed ───────┘
//! ```
//!
//! A command that only reads is over with that: its answer is that of the moment of its views. One
//! that stores is run again with what was computed ([`crate::run::finish`]); it stores it if its
//! sources are what they were, and else begins anew. From the second attempt on their slots
//! are *frozen*: commands that write wait for it, so that the attempt does not fail again. Nothing
//! relies on that, since what the sources are is looked at in any case.
//!
//! What such a command takes for itself until it is over is set aside ([`SetAside`]): others do not
//! evict keys for it, and are not refused.

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

/// So often the work is done elsewhere; then at once, since transactions, which do not wait for
/// frozen slots, could change the sources for ever.
pub(crate) const ATTEMPTS_MAX: u32 = 8;

type AnswerFn = dyn FnOnce(&Keyspace, &mut Reply<'_>) -> Result<Outcome> + Send;
type PrepareFn = dyn FnOnce(&Keyspace, &[View]) -> Prepared + Send;

enum Work {
    /// Writes the reply.
    Answer(Box<AnswerFn>),
    /// Makes something of the views, with which the command is run again.
    Result(Vec<View>, Box<PrepareFn>),
}

/// A command whose work is to be done elsewhere.
pub struct LongCommand {
    command: RecordedCommand,
    client: ClientRef,
    work: Work,
    attempt: u32,
    /// It waits for others, not for a processor.
    apart: bool,
    /// The copy of the request.
    set_aside: SetAside,
}

/// What is made for a command that is run again.
pub(crate) struct Prepared {
    pub(crate) result: Box<dyn Any + Send>,
    /// Slots of the command's database that it wants to hold besides those of its keys.
    pub(crate) slots: Vec<SlotId>,
    /// Keys that were looked up for it and found, and not found.
    pub(crate) found: (i64, i64),
}

impl Prepared {
    fn of<R: Send + 'static>(result: R) -> Prepared {
        Prepared::looked_up(result, Vec::new(), (0, 0))
    }

    /// Of a command that looked up keys in `slots`, which it found or not.
    pub(crate) fn looked_up<R: Send + 'static>(
        result: R,
        slots: Vec<SlotId>,
        found: (i64, i64),
    ) -> Prepared {
        Prepared { result: Box::new(result), slots, found }
    }
}

/// What was made of views.
pub(crate) struct PreparedResult {
    pub(crate) views: Vec<View>,
    pub(crate) product: Prepared,
    pub(crate) attempt: u32,
}

pub(crate) enum LongResult {
    Answer(ReplyBuffer, Result<()>),
    Result(PreparedResult),
}

/// A command whose work is done.
pub struct ComputedCommand {
    pub(crate) command: RecordedCommand,
    pub(crate) client: ClientRef,
    pub(crate) done: LongResult,
    /// What it takes beside the data, which nobody is to make room for.
    pub(crate) set_aside: SetAside,
}

impl LongCommand {
    /// What `answer` writes, for a command that is none of this crate's and touches no keys: the
    /// request is `words`, in database `db`.
    pub fn answer<W: AsRef<[u8]>>(
        (spec, parent): (&'static Spec, Option<&'static Spec>),
        db: DbIndex,
        words: &[W],
        client: ClientRef,
        answer: impl FnOnce(&mut Reply<'_>) -> Outcome + Send + 'static,
    ) -> LongCommand {
        let command = RecordedCommand::unrepeatable(spec, parent, db, words);
        let answer: Box<AnswerFn> = Box::new(move |_, reply| Ok(answer(reply)));
        let (work, set_aside) = (Work::Answer(answer), SetAside::default());
        LongCommand { command, client, work, attempt: 0, apart: false, set_aside }
    }

    /// Whether the work is to wait for others: who does it has time for nothing else.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Does the work. Takes as long as it takes; holds no slot longer than a step.
    pub fn compute(self, keyspace: &Keyspace) -> ComputedCommand {
        let LongCommand { command, client, work, attempt, set_aside, .. } = self;
        let aside = AsideMeter::begin();
        let done = match work {
            Work::Answer(answer) => {
                let mut replies = ReplyBuffer::new();
                let answered = answer(keyspace, &mut Reply::new(&mut replies, client.protocol));
                replies.share();
                LongResult::Answer(replies, answered.map(drop))
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
    /// Whether to finish it may change the data.
    pub fn writes(&self) -> bool {
        matches!(self.done, LongResult::Result(_)) && self.command.writes()
    }
}

impl PreparedResult {
    /// Leaves it to be freed elsewhere: both may be the last of something huge.
    pub(crate) fn discard(self, env: &Env) {
        discard_views(env, self.views);
        env.garbage.borrow_mut().push(Garbage::Other(self.product.result));
    }
}

/// Leaves them to be freed elsewhere.
pub(crate) fn discard_views(env: &Env, views: Vec<View>) {
    views.into_iter().flatten().for_each(|view| discard_value(env, view));
}

impl Ctx<'_, '_> {
    /// Whether a command with so many steps to do is to be computed elsewhere. Never where it must
    /// be over at once: in transactions and scripts.
    #[inline]
    pub fn is_long(&self, steps: usize) -> bool {
        steps >= LONG_STEPS_MIN && self.can_wait()
    }

    /// How many members of the smallest of `sets` sets are looked at before a count of those in all
    /// is left to be done elsewhere: of many, too, `limit` common ones are often found soon.
    pub(crate) fn counted_at_once(&self, steps: usize, limit: usize, sets: usize) -> usize {
        match self.is_long(steps) {
            false => usize::MAX,
            true if limit < LONG_STEPS_MIN => LONG_STEPS_MIN / sets,
            true => 0,
        }
    }

    /// Whether a client waits for the answer, and nobody else does.
    #[inline]
    pub(crate) const fn can_wait(&self) -> bool {
        matches!(self.blocking, Blocking::Client(_))
    }

    /// Lets `answer` write the reply elsewhere, from what it owns. Only if [`Ctx::can_wait`], and
    /// for commands that change nothing from then on.
    pub fn answer_elsewhere(
        &mut self,
        args: &Args<'_>,
        answer: impl FnOnce(&Keyspace, &mut Reply<'_>) -> Result<Outcome> + Send + 'static,
    ) -> Outcome {
        self.leave(args, Work::Answer(Box::new(answer)), 0, false)
    }

    /// What `make` makes of the values of `keys`, if it has been computed from them as they are
    /// now; else it is going to be, elsewhere, and the command ends with [`Outcome::Elsewhere`],
    /// having changed nothing. Only if [`Ctx::is_long`].
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

    /// What has been made of values, if they are still these; and which attempt it is to make it,
    /// or was. The last is the number [`ATTEMPTS_MAX`].
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

    /// Lets `make` make something of `views` elsewhere, with which the command is run again: it
    /// then holds the slots that the product names as well. Only if [`Ctx::can_wait`].
    pub(crate) fn make_elsewhere(
        &mut self,
        args: &Args<'_>,
        views: Vec<View>,
        attempt: u32,
        make: impl FnOnce(&Keyspace, &[View]) -> Prepared + Send + 'static,
    ) -> Outcome {
        self.leave(args, Work::Result(views, Box::new(make)), attempt, false)
    }

    /// Has `errand` run elsewhere, which may wait for other servers. Then the command is run again
    /// and finds in [`Ctx::errand_result`] what came of it. The slots that it has frozen are free
    /// by then. Only for a client that can wait.
    pub(crate) fn errand<R: Send + 'static>(
        &mut self,
        args: &Args<'_>,
        errand: impl FnOnce() -> R + Send + 'static,
    ) -> Outcome {
        let make: Box<PrepareFn> = Box::new(move |_, _| Prepared::of(errand()));
        // That it is no first attempt tells those who wait for frozen slots.
        self.leave(args, Work::Result(Vec::new(), make), 1, true)
    }

    /// What came of the errand that the command was about, if it was.
    pub(crate) fn errand_result<R: 'static>(&mut self) -> Option<R> {
        let made = self.keys.env().made.borrow_mut().take()?;
        let result = made.product.result.downcast::<R>();
        Some(*result.expect("the same command makes the same"))
    }

    fn leave(&mut self, args: &Args<'_>, work: Work, attempt: u32, apart: bool) -> Outcome {
        let Blocking::Client(client) = self.blocking else {
            unreachable!("only what is long is computed elsewhere")
        };
        let words: Vec<&[u8]> = args.words().collect();
        let command = RecordedCommand::new(self, &words);
        let set_aside = SetAside::of(command.request_bytes());
        let long = LongCommand { command, client, work, attempt, apart, set_aside };
        *self.keys.env().long.borrow_mut() = Some(long);
        Outcome::Elsewhere
    }
}

/// Whether all values are what they were.
fn same(before: &[View], now: &[View]) -> bool {
    let pairs = || before.iter().zip(now);
    before.len() == now.len()
        && pairs().all(|pair| match pair {
            (Some(before), Some(now)) => before.is_same(now),
            (before, now) => before.is_none() && now.is_none(),
        })
}

impl Env {
    /// Leaves work to be done elsewhere; the command ends with [`Outcome::Elsewhere`].
    pub fn leave_long(&self, long: LongCommand) {
        *self.long.borrow_mut() = Some(long);
    }

    /// The work that the command which just ran left to be done.
    pub fn take_long(&self) -> Option<LongCommand> {
        self.long.borrow_mut().take()
    }
}

#[cfg(test)]
mod tests;
