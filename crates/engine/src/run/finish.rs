//! Finishing long commands: a read-only command returns its reply, and a command that stores is run
//! again with its computed result. See [`crate::call::long`].

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Blocking;
use crate::call::long::{ComputedCommand, LongCommand, LongResult, PreparedResult};
use crate::call::recorded::RecordedCommand;
use crate::command::args::Args;
use crate::env::{Env, Garbage};
use crate::keyspace::{ClientRef, Keys, Keyspace, back_off, must_postpone_writes};
use crate::reply::{Outcome, Reply, ReplyBuffer};
use crate::run::exec::{self, run_held};

/// The outcome of finishing a command.
pub enum FinishResult {
    Over(FinishedCommand),
    /// The sources have changed: the work has to be done again.
    Again(LongCommand),
    /// Writes are postponed; try again later.
    Later(ComputedCommand),
}

/// A command that has ended.
pub struct FinishedCommand {
    pub replies: ReplyBuffer,
    /// Number of changes.
    pub dirty: u64,
    /// The error that the command returned.
    pub error: Option<CommandError>,
    /// True if slots were frozen for the command and no longer are.
    pub thawed: bool,
    command: RecordedCommand,
}

impl FinishedCommand {
    /// Calls `show` with the arguments of the request.
    pub fn with_args<R>(&self, keyspace: &Keyspace, show: impl FnOnce(&mut Args<'_>) -> R) -> R {
        self.command.with_args(keyspace, |args, _| show(args))
    }
}

/// Finishes a command whose work is done, on the thread that owns `env`.
pub fn finish(keyspace: &Keyspace, env: &Env, computed: ComputedCommand) -> FinishResult {
    let ComputedCommand { command, client, done, set_aside } = computed;
    let mut replies = ReplyBuffer::new();
    let thawed = matches!(&done, LongResult::Result(made) if made.attempt > 0);
    let (dirty, error) = match done {
        LongResult::Reply(written, result) => {
            replies = written;
            (0, result.err())
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
                    // The memory that `set_aside` accounts for may be in the garbage already, and
                    // is then freed before `set_aside`.
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

/// Ends a command whose work is done, without applying its result. The reply is `error`.
pub fn refuse(
    keyspace: &Keyspace,
    env: &Env,
    computed: ComputedCommand,
    error: CommandError,
) -> FinishedCommand {
    let ComputedCommand { command, client, done, set_aside } = computed;
    let mut thawed = false;
    if let LongResult::Result(made) = done {
        thawed = made.attempt > 0;
        if thawed {
            command.with_args(keyspace, |_, prepared| {
                let slots = &made.product.slots;
                Keys::hold_blocking(keyspace, env, command.db(), prepared, slots).thaw();
            });
        }
        made.discard(env);
    }
    env.garbage.borrow_mut().push(Garbage::Other(Box::new(set_aside)));
    let mut replies = ReplyBuffer::new();
    Reply::new(&mut replies, client.protocol).error(&error);
    FinishedCommand { replies, dirty: 0, error: Some(error), thawed, command }
}

/// The outcome of running a command with its computed result.
enum Attempt {
    /// Nothing has happened yet, because writes are postponed.
    Later(PreparedResult),
    /// The number of changes; `None` if the work has to be done again.
    Over(Result<Option<u64>>),
}

/// Runs the command with its computed result.
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
            // If the result was given up, it cannot be kept for later, so the command continues.
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
            // The command gave up its result and did not get all the slots that it then needed. In
            // the next attempt it must not leave work to another thread.
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
    // The lookups of the sources were counted when the command arrived.
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
