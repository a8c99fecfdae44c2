//! Ending calls whose work was done elsewhere: what only reads is answered, what stores is run
//! again with what was computed for it. See [`crate::call::long`].

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Blocking;
use crate::call::long::{ComputedCommand, LongCommand, LongResult, PreparedResult};
use crate::call::recorded::RecordedCommand;
use crate::command::args::Args;
use crate::env::{Env, Garbage};
use crate::keyspace::{ClientRef, Keys, Keyspace, back_off, must_postpone_writes};
use crate::reply::{Outcome, Reply, ReplyBuffer};
use crate::run::exec::{self, run_held};

/// What came of it.
pub enum FinishResult {
    Over(FinishedCommand),
    /// What it was made of has changed: to be computed anew.
    Again(LongCommand),
    /// The data is to stay as it is for now.
    Later(ComputedCommand),
}

/// A command that is over.
pub struct FinishedCommand {
    pub replies: ReplyBuffer,
    /// How many changes it made.
    pub dirty: u64,
    /// What was answered, if it is an error.
    pub error: Option<CommandError>,
    /// Slots were frozen for it, which they are not any more.
    pub thawed: bool,
    command: RecordedCommand,
}

impl FinishedCommand {
    /// Shows the words of the request.
    pub fn with_args<R>(&self, keyspace: &Keyspace, show: impl FnOnce(&mut Args<'_>) -> R) -> R {
        self.command.with_args(keyspace, |args, _| show(args))
    }
}

/// Ends a command whose work is done, by the thread that `env` belongs to.
pub fn finish(keyspace: &Keyspace, env: &Env, computed: ComputedCommand) -> FinishResult {
    let ComputedCommand { command, client, done, set_aside } = computed;
    let mut replies = ReplyBuffer::new();
    let thawed = matches!(&done, LongResult::Result(made) if made.attempt > 0);
    let (dirty, error) = match done {
        LongResult::Answer(written, answered) => {
            replies = written;
            (0, answered.err())
        }
        LongResult::Result(made) => {
            match run_again(keyspace, env, &command, client, made, &mut replies) {
                Attempt::Later(made) => {
                    let done = LongResult::Result(made);
                    return FinishResult::Later(ComputedCommand {
                        command,
                        client,
                        done,
                        set_aside,
                    });
                }
                Attempt::Over(over) => {
                    // What it stands for may lie there already, and is freed first.
                    env.garbage.borrow_mut().push(Garbage::Other(Box::new(set_aside)));
                    match over {
                        Ok(None) => {
                            let long = env.long.borrow_mut().take();
                            return FinishResult::Again(
                                long.expect("the command said that it is long"),
                            );
                        }
                        Ok(Some(dirty)) => (dirty, None),
                        Err(error) => (0, Some(error)),
                    }
                }
            }
        }
    };
    if let Some(error) = &error {
        replies.clear();
        Reply::new(&mut replies, client.protocol).error(error);
    }
    FinishResult::Over(FinishedCommand { replies, dirty, error, thawed, command })
}

/// What came of running a command with what was computed for it.
enum Attempt {
    /// Nothing yet: the data is to stay as it is.
    Later(PreparedResult),
    /// How many changes were made; `None` if it has to be computed anew.
    Over(Result<Option<u64>>),
}

/// Runs the command with what was computed for it.
fn run_again(
    keyspace: &Keyspace,
    env: &Env,
    command: &RecordedCommand,
    client: ClientRef,
    made: PreparedResult,
    replies: &mut ReplyBuffer,
) -> Attempt {
    let found_before = (env.tally.hits.get(), env.tally.misses.get());
    let found_elsewhere = made.product.found;
    let slots = made.product.slots.clone();
    let mut made = Some(made);
    let mut blocking = Blocking::Client(client);
    let done = loop {
        let done = command.with_args(keyspace, |args, prepared| {
            let mut keys = Keys::hold_blocking(keyspace, env, command.db(), prepared, &slots);
            // What was given up cannot be kept for later: it goes on.
            if made.is_some() && command.writes() && must_postpone_writes() {
                return None;
            }
            env.made.replace(made.take());
            keys.thaw();
            keys.remove_expired(args.keys(), false);
            let reply = Reply::new(replies, client.protocol);
            let done = run_held(&mut keys, &command.invocation(blocking), args, reply);
            if !matches!(&done, Ok(done) if done.outcome == Outcome::Elsewhere) {
                keys.end_observation();
            }
            Some(done)
        });
        match done {
            // It gave up what was made, and did not get all the slots that it then wanted: the next
            // time it is not asked to leave anything to others.
            Some(Err(CommandError::SlotBusy)) => blocking = Blocking::Never,
            done => break done,
        }
        replies.clear();
        back_off();
    };
    let done = match (done, made) {
        (Some(done), _) => done,
        (None, made) => return Attempt::Later(made.expect("it was not used")),
    };
    if let Some(made) = env.made.borrow_mut().take() {
        made.discard(env);
    }
    // The sources were counted when the command came.
    env.tally.hits.add(found_before.0 - env.tally.hits.get());
    env.tally.misses.add(found_before.1 - env.tally.misses.get());
    let over = |done: exec::Executed| (done.outcome != Outcome::Elsewhere).then_some(done.dirty);
    let done = done.map(over);
    if !matches!(done, Ok(None)) {
        env.tally.hits.add(found_elsewhere.0);
        env.tally.misses.add(found_elsewhere.1);
    }
    Attempt::Over(done)
}
