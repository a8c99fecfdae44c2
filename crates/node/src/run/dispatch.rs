//! Dispatches one request: looks it up, checks it, runs it and counts it.
//!
//! [`dispatch`] calls all steps in order. Each step is a function in another file.

use crate::core::Core;
use crate::core::conditions::Condition;
use crate::core::session::{Session, Stall};
use crate::monitor::lines;
use crate::run::batch::{Batch, Request};
use crate::run::count;
use crate::run::gate::{self, Verdict};
use crate::run::invoke;
use crate::run::long;
use crate::run::malformed;
use crate::run::permission;
use crate::run::repeated;
use crate::run::route;
use crate::run::waiting;
use crate::tracking::invalidate;
use crate::transactions::execute;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Outcome, ReplyBuffer};

/// The state of the connection's pipeline after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// The request was run, and its command waits.
    Waiting,
    /// The request was run, and another thread computes the reply.
    Elsewhere,
    /// The request was not run. It is run again when this stall is over.
    Later(Stall),
    /// The request was not run. Keys were evicted for it, and the session must be sent their invalidations first.
    InvalidationsFirst,
}

/// Runs one request of the batch and writes its reply to `replies`.
#[inline]
pub fn dispatch(
    core: &mut Core,
    session: &mut Session,
    batch: &Batch,
    request: &Request,
    data: &[u8],
    replies: &mut ReplyBuffer,
) -> Flow {
    let mut args = batch.args(data, request);
    let Some(row) = request.row else {
        if malformed::is_foreign_protocol(args.argument(0)) {
            malformed::refuse_foreign_protocol(core, session);
            return Flow::Next;
        }
        let error = malformed::unknown_command(&args);
        return reject(core, session, None, error, &args, replies);
    };
    let keys = batch.keys(request);
    if let Some(error) = malformed::find_error(core, row, keys, &args) {
        return reject(core, session, Some(row), error, &args, replies);
    }
    let conditions = core.shared.conditions.now();
    if gate::is_armed(conditions, session, row) || route::is_needed(core, session, keys) {
        let facts = gate::facts(core, session, row, keys, &args);
        match gate::check(core, session, row, &facts) {
            Verdict::Pass => {}
            Verdict::Refuse(error) => {
                return reject(core, session, Some(row), error, &args, replies);
            }
            Verdict::Wait(stall) => return Flow::Later(stall),
        }
        if session.push.is_tracking() && invalidate::must_precede_command(core) {
            return Flow::InvalidationsFirst;
        }
        if session.in_transaction() && row.spec.in_multi.is_queued() {
            execute::queue(core, session, row, &facts, replies);
            return Flow::Next;
        }
        permission::limit_lookups(core, session, row, &args);
    }
    if row.parent.is_some() {
        args.skip_subcommand();
    }
    let mark = replies.mark();
    let result = invoke::invoke(core, session, row, keys, &mut args, replies);
    let mut pushed = false;
    let (failed, waits) = match result {
        Ok(Outcome::Elsewhere) => {
            if conditions.has(Condition::Monitor) && row.is_monitored() {
                lines::show_to_monitors(core, session, row, &args);
            }
            long::leave_long(core, session, row);
            return Flow::Elsewhere;
        }
        Ok(outcome) => {
            pushed = outcome == Outcome::Pushed;
            (false, outcome == Outcome::Waiting)
        }
        Err(error) => {
            permission::forget_limits(core);
            replies.truncate(mark);
            if let Some(stall) = postponed(core, session, &error) {
                return Flow::Later(stall);
            }
            repeated::note_failed(core, session, Some(row), &error);
            count::write_error(core, session, &error, replies);
            (true, false)
        }
    };
    if waits {
        count::note_wait(core, session, row);
    } else {
        count::count_command(core, session, row, failed, &args);
    }
    if conditions.has(Condition::Monitor) && row.is_monitored() {
        lines::show_to_monitors(core, session, row, &args);
    }
    if core.env.has_ready() {
        waiting::serve_waiters(core);
    }
    if !session.wants_reply() && !pushed {
        replies.truncate(mark);
    }
    if waits {
        return Flow::Waiting;
    }
    session.after_command();
    Flow::Next
}

/// If a command's error means that the command must be run again, returns the stall after which this happens.
#[cold]
fn postponed(core: &Core, session: &mut Session, error: &CommandError) -> Option<Stall> {
    match error {
        CommandError::SlotFrozen => Some(Stall::Frozen),
        CommandError::SlotBusy => {
            core.stats().slot_conflicts.add(1);
            session.count_slot_refusal();
            Some(Stall::NextRound)
        }
        _ => None,
    }
}

/// Replies with an error to a request that is not run.
#[cold]
fn reject(
    core: &mut Core,
    session: &mut Session,
    row: Option<&Row>,
    error: CommandError,
    args: &Args<'_>,
    replies: &mut ReplyBuffer,
) -> Flow {
    if let Some(row) = row
        && !malformed::names_no_subcommand(row, args)
    {
        core.stats().commands[row.id].rejected.add(1);
    }
    if let Some(row) = row.filter(|_| session.replication.is_replica()) {
        // When a replica gets this reply, the log names the last command.
        count::note_last(core, session, row);
    }
    // The rejected request may have been a retry of a script.
    session.end_script_try(false);
    let error = execute::refuse_in_transaction(core, session, row, &error, args).unwrap_or(error);
    repeated::note_failed(core, session, row, &error);
    let mark = replies.mark();
    count::write_error(core, session, &error, replies);
    if !session.wants_reply() {
        replies.truncate(mark);
    }
    session.after_command();
    Flow::Next
}
