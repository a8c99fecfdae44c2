//! One request: looked up, checked, run, counted.

use crate::clients::ClientRecord;
use crate::core::Core;
use crate::core::call::{Call, ECHO_BYTES_MAX};
use crate::core::conditions::Condition;
use crate::core::quiesce::Quiesced;
use crate::core::session::{Session, Stall};
use crate::monitor::lines;
use crate::run::batch::{Batch, Request};
use crate::run::gate::{self, RequestFacts, Verdict};
use crate::run::long;
use crate::run::permission;
use crate::run::repeated;
use crate::run::waiting;
use crate::script::invoked;
use crate::transactions::execute;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Group, InMulti, Scope};
use brisk_engine::ctx::Blocking;
use brisk_engine::effect::Hooks;
use brisk_engine::exec::{self, Invocation};
use brisk_engine::keyspace::ClientRef;
use brisk_engine::table::{Row, Run};
use brisk_engine::{Args, CommandError, DbIndex, Outcome, Reply, ReplyBuffer, Result};
use brisk_structures::entry::KEY_LEN_MAX;
use std::sync::atomic::Ordering;

/// The state of the connection's pipeline after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// It was run and waits inside its command.
    Waiting,
    /// It was run, and another thread computes the reply.
    Elsewhere,
    /// The request was not run; run it again when this stall is over.
    Later(Stall),
    /// It was not run: keys were evicted for it, and the session is sent their invalidations first.
    InvalidationsFirst,
}

/// Runs one request of the batch; its reply goes to `replies`.
#[inline]
pub fn dispatch(
    core: &mut Core,
    session: &mut Session,
    batch: &Batch,
    request: &Request,
    data: &[u8],
    replies: &mut ReplyBuffer,
) -> Flow {
    let shared = core.shared;
    let mut args = batch.args(data, request);
    let Some(row) = request.row else {
        if is_foreign_protocol(args.argument(0)) {
            return refuse_foreign_protocol(core, session);
        }
        let error = unknown_command(&args);
        return reject(core, session, None, error, &args, replies);
    };
    let wrong = misused(row, &args).or_else(|| overlong(core, batch.keys(request), &args));
    if let Some(error) = wrong {
        return reject(core, session, Some(row), error, &args, replies);
    }
    let conditions = shared.conditions.now();
    if gate::is_armed(conditions, session, row) {
        let facts = facts(core, session, row, batch.keys(request), &args);
        match gate::check(core, session, row, &facts) {
            Verdict::Pass => {}
            Verdict::Refuse(error) => {
                return reject(core, session, Some(row), error, &args, replies);
            }
            Verdict::Wait(stall) => return Flow::Later(stall),
        }
        if session.tracker.is_some() && must_send_invalidations(core) {
            return Flow::InvalidationsFirst;
        }
        if session.in_transaction() && row.spec.in_multi.is_queued() {
            return execute::queue(core, session, row, &facts, replies);
        }
        permission::limit_lookups(core, session, row, &args);
    }
    if row.parent.is_some() {
        args.skip_subcommand();
    }
    let mark = replies.mark();
    let result = run(core, session, row, batch.keys(request), &mut args, replies);
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
            write_error(core, session, &error, replies);
            (true, false)
        }
    };
    if waits {
        note_wait(core, session, row);
    } else {
        count_command(core, session, row, failed, &args);
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

/// Notes that the command waits; it is counted when the wait is over.
#[cold]
fn note_wait(core: &mut Core, session: &mut Session, row: &Row) {
    let ns = core.accounting.charge(core.clock);
    note_last(core, session, row);
    session.waiter = core.env.take_waiter();
    if let Some(waiter) = &session.waiter {
        waiter.spent_ns.store(ns, Ordering::Relaxed);
    }
}

/// Sets the session's last command to one that is counted later.
pub(crate) fn note_last(core: &mut Core, session: &Session, row: &Row) {
    core.accounting.note_last(row);
    session.record.last_command.store(core.accounting.last_row(), Ordering::Relaxed);
}

/// The stall after which a command is run again, if its error requests that.
#[cold]
fn postponed(core: &Core, session: &mut Session, error: &CommandError) -> Option<Stall> {
    match error {
        CommandError::SlotFrozen => Some(Stall::Frozen),
        CommandError::SlotBusy => {
            core.stats().slot_conflicts.add(1);
            session.slot_refusals = session.slot_refusals.saturating_add(1);
            Some(Stall::NextRound)
        }
        _ => None,
    }
}

/// Reports whether invalidations must be sent before the present command, and were not sent yet.
#[cold]
fn must_send_invalidations(core: &mut Core) -> bool {
    let any = core.env.hooks.get().contains(Hooks::INVALIDATE);
    core.tracking.must_send_before_request(any)
}

/// The facts that the gate needs about a request.
#[cold]
fn facts<'a>(
    core: &mut Core,
    session: &Session,
    row: &Row,
    keys: &'a [PreparedKey],
    args: &'a Args<'_>,
) -> RequestFacts<'a> {
    let flags = session.flags_of(row);
    let flags = if row.has(Flags::RUNS_SCRIPT) {
        invoked::flags_of_script(core, flags, row, args)
    } else {
        flags
    };
    RequestFacts { flags, keys, words: args }
}

/// Finds a key that is too long for any entry. With the usual limit of arguments there is none.
#[inline]
fn overlong(core: &Core, keys: &[PreparedKey], args: &Args<'_>) -> Option<CommandError> {
    let most = core.config.clients.proto_max_bulk_len;
    let is_long = |key: &PreparedKey| args.argument(key.index as usize).len() > KEY_LEN_MAX;
    (most > KEY_LEN_MAX as u64 && keys.iter().any(is_long))
        .then(|| CommandError::text(format!("ERR keys are limited to {KEY_LEN_MAX} bytes")))
}

/// Runs a command that may run.
#[inline]
fn run(
    core: &mut Core,
    session: &mut Session,
    row: &'static Row,
    prepared: &[PreparedKey],
    args: &mut Args<'_>,
    replies: &mut ReplyBuffer,
) -> Result<Outcome> {
    let shared = core.shared;
    let reply = Reply::new(replies, session.protocol);
    let quiesced = match row.spec.scope {
        Scope::Quiescent if gate::is_operator_request(session, row) => {
            Some(core.stop_others_despite_scripts())
        }
        Scope::Quiescent => core.stop_others()?,
        _ if session.slot_refusals != 0 => stop_others_if_starved(core, session, row)?,
        _ => None,
    };
    if row.spec.scope == Scope::Quiescent {
        gate::check_again_when_still(core, session, row)?;
    }
    let outcome = match row.run {
        Run::Data(run) => {
            let client = ClientRef {
                worker: core.id,
                token: session.token.to_u64(),
                id: session.id(),
                protocol: session.protocol,
            };
            let call = Invocation {
                spec: row.spec,
                parent: row.parent,
                run,
                db: session.db,
                blocking: if session.repeats() {
                    Blocking::Never
                } else {
                    Blocking::Client(client)
                },
            };
            let done = exec::run(&shared.keyspace, &core.env, &call, prepared, args, reply)?;
            core.stats().changes.add(done.dirty);
            done.outcome
        }
        Run::Server(at) => {
            let run = core.shared.handlers[usize::from(at)];
            core.accounting.forget_redacted();
            if row.has(Flags::RUNS_SCRIPT) {
                // Its commands report it as the client's last command.
                note_last(core, session, row);
            }
            let outcome = run(&mut Call { core, session, reply, row, prepared }, args)?;
            propagate_server(core, row, session.db, args);
            // A command that shows nothing of the dataset is replied to even while nothing can be
            // written: INFO, MULTI, and the CONFIG SET that fixes the problem. The commands of
            // scripts and transactions note what they show, but EXEC also shows whether other
            // clients have changed something.
            let shows_libraries =
                row.spec.group == Group::Scripting && !row.has(Flags::RUNS_SCRIPT);
            let executes = row.spec.in_multi == InMulti::Executes;
            if shows_libraries || executes || row.has(Flags::WRITE) {
                core.env.note_shown(shared.keyspace.journal().end());
            }
            outcome
        }
    };
    drop(quiesced);
    Ok(outcome)
}

/// Stops all other workers for a request that could not lock its slots for a long time. EXEC,
/// scripts and functions do so themselves, since they lock the slots of the commands they run.
#[cold]
fn stop_others_if_starved(
    core: &Core,
    session: &Session,
    row: &Row,
) -> Result<Option<Quiesced<'static>>> {
    let begins_unit = row.has(Flags::RUNS_SCRIPT) || row.spec.in_multi == InMulti::Executes;
    if begins_unit || !session.is_starved() {
        return Ok(None);
    }
    core.stop_others_for_starved()
}

/// Propagates a command that changes something other than keys, for example FUNCTION LOAD. All
/// other workers are quiesced for it, so the order of tickets is the order of the changes.
#[inline]
pub(crate) fn propagate_server(core: &Core, row: &Row, db: DbIndex, args: &Args<'_>) {
    if row.has(Flags::WRITE) {
        debug_assert_eq!(row.spec.scope, Scope::Quiescent);
        let words: Vec<&[u8]> = args.arguments().collect();
        core.shared.keyspace.propagate_without_keys(&core.env, db, &words);
    }
}

/// Closes without a reply. A request that a browser was made to send must not be executed, nor
/// reveal anything.
#[cold]
fn refuse_foreign_protocol(core: &Core, session: &mut Session) -> Flow {
    core.shared.log.warning(format_args!(
        "Possible SECURITY ATTACK detected: {} sent an HTTP request. It may come from a web \
         page that was made to reach this server. The connection is closed.",
        session.record.addr
    ));
    session.record.set(crate::clients::flag::CLOSE_ASAP, true);
    Flow::Next
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
        && !names_no_subcommand(row, args)
    {
        core.stats().commands[row.id].rejected.add(1);
    }
    if let Some(row) = row.filter(|_| session.replica.is_some()) {
        // The log names it when a replica gets this reply.
        note_last(core, session, row);
    }
    // It may have been a retry that was rejected.
    session.script_shown = false;
    let error = execute::refuse_in_transaction(core, session, row, &error, args).unwrap_or(error);
    repeated::note_failed(core, session, row, &error);
    let mark = replies.mark();
    write_error(core, session, &error, replies);
    if !session.wants_reply() {
        replies.truncate(mark);
    }
    session.after_command();
    Flow::Next
}

pub(crate) fn write_error(
    core: &Core,
    session: &Session,
    error: &CommandError,
    replies: &mut ReplyBuffer,
) {
    if !matches!(error, CommandError::Reported(_)) {
        count_error(core, error);
    }
    Reply::new(replies, session.protocol).error(error);
}

pub fn count_error(core: &Core, error: &CommandError) {
    core.stats().error_replies.add(1);
    core.shared.observe.errors.count(&error.to_string());
    let log = &core.shared.log;
    match error {
        CommandError::BadPayload(why) => {
            log.warning(format_args!("RESTORE was given a value that is refused: {why}"));
        }
        CommandError::UndeclaredKey(command) => log.warning(format_args!(
            "Internal error: the command '{command}' used a key that it does not declare. The \
             access was refused and the command ended with an error. Please report this."
        )),
        _ => {}
    }
}

/// Statistics, slow log, latency monitor.
#[inline]
pub(crate) fn count_command(
    core: &mut Core,
    session: &Session,
    row: &'static Row,
    failed: bool,
    words: &Args<'_>,
) {
    let ns = core.accounting.charge(core.clock);
    core.accounting.note_ran(row);
    count_call(core, &session.record, row, failed, ns, words);
}

/// The same for a command that took `ns` and ends outside of its session's batch.
pub(crate) fn count_late_command(
    core: &mut Core,
    client: &ClientRecord,
    row: &'static Row,
    failed: bool,
    ns: u64,
    words: &Args<'_>,
) {
    core.stats().commands_processed.add(1);
    client.commands_elsewhere.fetch_add(1, Ordering::Relaxed);
    count_call(core, client, row, failed, ns, words);
}

#[inline]
fn count_call(
    core: &mut Core,
    client: &ClientRecord,
    row: &'static Row,
    failed: bool,
    ns: u64,
    words: &Args<'_>,
) {
    let own = &core.stats().commands[row.id];
    own.calls.add(1);
    own.time_ns.add(ns);
    if failed {
        own.failed.add(1);
    }
    if core.accounting.tracks_latency() {
        own.latency.record(ns);
    }
    if core.accounting.is_slow(ns) {
        core.account_slow(client, row, ns, words);
    }
}

/// Reports whether an argument after the name of a container command is not one of its subcommands.
/// As for an unknown command, no row counts it.
#[inline]
fn names_no_subcommand(row: &Row, args: &Args<'_>) -> bool {
    row.is_container() && args.argc() > 1
}

/// Checks the arity, and that the subcommand exists.
#[inline]
fn misused(row: &'static Row, args: &Args<'_>) -> Option<CommandError> {
    if names_no_subcommand(row, args) {
        let after = format!("'. Try {} HELP.", row.name.to_ascii_uppercase());
        let word = cut(args.argument(1), ECHO_BYTES_MAX);
        return Some(CommandError::text_around("ERR unknown subcommand '", word, &after));
    }
    if row.spec.arity_admits(args.argc()) {
        None
    } else {
        Some(CommandError::Arity(row.full_name().into()))
    }
}

/// The part of an argument that errors repeat: at most `most` bytes, and nothing from a NUL on.
fn cut(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cold]
fn unknown_command(args: &Args<'_>) -> CommandError {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(cut(args.argument(0), ECHO_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let begin = text.len();
    for word in args.arguments().skip(1) {
        let written = text.len() - begin;
        if written >= ECHO_BYTES_MAX {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(cut(word, ECHO_BYTES_MAX - written));
        text.extend_from_slice(b"' ");
    }
    CommandError::bytes(text)
}

/// Reports whether a command name is one that begins a line of an HTTP request and is no Redis
/// command.
fn is_foreign_protocol(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}
