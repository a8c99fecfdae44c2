//! From MULTI to EXEC: queueing, rejecting and running a transaction.
//!
//! EXEC locks the slots of all commands and watched keys together. If it cannot know these slots in advance, it
//! quiesces all other workers; see [`brisk_engine::unit`].

use super::queue::{Execution, Queued, Transaction};
use crate::clients::flag;
use crate::core::Core;
use crate::core::call::Call;
use crate::core::conditions::Condition;
use crate::core::session::Session;
use crate::monitor::lines;
use crate::run::count;
use crate::run::gate::RequestFacts;
use crate::run::invoke;
use crate::run::permission;
use crate::run::repeated;
use crate::run::route;
use crate::script::run;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::InMulti;
use brisk_engine::ctx::Blocking;
use brisk_engine::exec::Invocation;
use brisk_engine::table::{Row, Run};
use brisk_engine::unit::Unit;
use brisk_engine::{Args, CommandError, Outcome, Reply, ReplyBuffer, Result};
use std::sync::atomic::Ordering;

/// MULTI: the following commands are queued.
pub fn begin_transaction(core: &mut Core, session: &mut Session) {
    session.transaction.open(core.transactions.begin(session.db()));
}

/// Drops a session's queued commands and watches. O(1). The caller holds no slots.
pub fn end_transaction(core: &mut Core, session: &mut Session) {
    drop(session.transaction.take_queued());
    unwatch(core, session);
    session.publish_transaction();
}

/// Drops a session's watches, and forgets that a watched key was changed. O(1). The caller holds no slots.
pub fn unwatch(core: &mut Core, session: &mut Session) {
    if let Some(watches) = session.transaction.watches_mut() {
        core.transactions.unwatch(&core.shared.keyspace, watches);
        session.record.watched.store(0, Ordering::Relaxed);
    }
}

/// Adds a command to the session's transaction.
#[cold]
pub(crate) fn queue(
    core: &mut Core,
    session: &mut Session,
    row: &'static Row,
    facts: &RequestFacts<'_>,
    replies: &mut ReplyBuffer,
) {
    // As in Redis, commands after a rejected command are not kept.
    if let Some(transaction) = session.transaction.queued_mut().filter(|queued| !queued.refused) {
        let what = (facts.flags, facts.keys, facts.words);
        transaction.push(row, what, &core.shared.keyspace);
    }
    session.publish_transaction();
    session.record.last_command.store(row.id as u32, Ordering::Relaxed);
    core.accounting.note_last(row);
    if session.wants_reply() {
        Reply::new(replies, session.protocol()).word("QUEUED");
    }
    session.after_command();
    // The next command is not charged for this time.
    core.accounting.charge_from_now(core.clock);
}

/// Called when a command is rejected. If the session is in a transaction, EXEC will be rejected as well. A rejected
/// EXEC ends the transaction immediately, with an error that contains the reason.
#[cold]
pub(crate) fn refuse_in_transaction(
    core: &mut Core,
    session: &mut Session,
    row: Option<&Row>,
    error: &CommandError,
    args: &Args<'_>,
) -> Option<CommandError> {
    if let Some(transaction) = session.transaction.queued_mut() {
        transaction.refused = true;
    }
    let row = row.filter(|row| row.spec.in_multi == InMulti::Executes)?;
    end_transaction(core, session);
    if let CommandError::Redirect { .. } | CommandError::NotServed(_) = error {
        // The client must receive the redirect itself and retry the transaction on the other
        // server.
        return None;
    }
    if core.shared.conditions.has(Condition::Monitor) {
        // The hidden arguments belong to the last command that ran.
        core.accounting.forget_redacted();
        lines::show_to_monitors(core, session, row, args);
    }
    let why = error.wire();
    let why = why.strip_prefix(b"ERR ").unwrap_or(&why);
    let before = "EXECABORT Transaction discarded because of: ";
    Some(CommandError::text_around(before, why, ""))
}

/// Runs and ends the session's transaction. After [`CommandError::SlotBusy`], no command has been run, and the
/// transaction stays open.
pub fn execute_transaction(
    core: &mut Core,
    session: &mut Session,
    row: &'static Row,
    reply: &mut Reply<'_>,
) -> Result<Outcome> {
    let shared = core.shared;
    let Some(transaction) = session.transaction.take_queued() else {
        return Err(CommandError::text("ERR EXEC without MULTI"));
    };
    if transaction.refused {
        end_transaction(core, session);
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(CommandError::text(text));
    }
    if session.has_old_user() {
        session.renew_user();
    }
    // If a SELECT were rejected, the slots that are held for later commands would be those of the wrong database.
    let may_be_refused = session.is_restricted() || transaction.changes_user;
    let is_certain = !(transaction.selects && may_be_refused);
    let watched = session.transaction.watched_slots();
    let places = is_certain.then(|| transaction.places(watched)).flatten();
    let unit = match places.filter(|_| !session.is_starved()) {
        None => core.quiesce_others_for(session).and_then(|quiesced| {
            route::check_again_when_quiesced(core)?;
            Ok((Unit::alone(&shared.keyspace, &core.env), quiesced))
        }),
        Some(places) => Unit::holding(&shared.keyspace, &core.env, places).map(|unit| (unit, None)),
    };
    let (mut unit, quiesced) = match unit {
        Ok(begun) => begun,
        Err(error) => {
            session.transaction.open(transaction);
            return Err(error);
        }
    };
    let watches = session.transaction.watches();
    if watches.is_none_or(|watches| unit.settle(&core.env, watches)) {
        session.record.last_command.store(row.id as u32, Ordering::Relaxed);
        let began = core.accounting.last_ticks();
        core.unit.begin(unit, quiesced);
        if transaction.runs_scripts {
            core.scripts.used_slot = transaction.all_keys().first().map(|key| key.slot);
            return execute_scripts(core, session, transaction, row, reply);
        }
        reply.array(transaction.len());
        for command in &transaction.commands {
            run_queued(core, session, &transaction, command, reply.buffer());
        }
        // The whole time is charged to EXEC.
        core.accounting.charge_from(began);
    } else {
        core.unit.begin(unit, quiesced);
        session.source.note_ran_nothing();
        reply.null_array();
    }
    run::end_unit(core);
    end_transaction(core, session);
    core.transactions.reuse(transaction);
    Ok(Outcome::Replied)
}

/// Runs a transaction with scripts. If a script becomes slow, the remaining commands run after it
/// has ended: see [`resume_execution`].
fn execute_scripts(
    core: &mut Core,
    session: &mut Session,
    transaction: Box<Transaction>,
    row: &'static Row,
    reply: &mut Reply<'_>,
) -> Result<Outcome> {
    let began = core.accounting.last_ticks();
    let mut replies = ReplyBuffer::new();
    Reply::new(&mut replies, session.protocol()).array(transaction.len());
    let execution = Execution { transaction, next: 0, replies, row, ns: 0 };
    let Some(mut execution) = resume_execution(core, session, Box::new(execution)) else {
        end_transaction(core, session);
        return Ok(Outcome::Elsewhere);
    };
    // The whole time is charged to EXEC.
    core.accounting.charge_from(began);
    run::end_unit(core);
    end_transaction(core, session);
    execution.replies.finish();
    Ok(reply.append(execution.replies))
}

/// Runs the remaining commands. Returns `None` if one of them is suspended, which also suspends the rest.
pub(crate) fn resume_execution(
    core: &mut Core,
    session: &mut Session,
    mut execution: Box<Execution>,
) -> Option<Box<Execution>> {
    while execution.next < execution.transaction.len() {
        let Execution { transaction, next, replies, .. } = &mut *execution;
        let command = &transaction.commands[*next];
        *next += 1;
        if session.db() != command.db {
            // The session stands in for a client that has disconnected.
            session.select(command.db);
        }
        run_queued(core, session, transaction, command, replies);
        execution = core.scripts.defer(execution)?;
    }
    Some(execution)
}

/// Checks again whether a queued command may run. The user may have changed, and after a slow script also the topology
/// or the lease.
#[inline]
fn admit_queued(
    core: &mut Core,
    session: &Session,
    row: &Row,
    keys: &[PreparedKey],
    args: &Args<'_>,
) -> Result<()> {
    if session.is_restricted() {
        permission::permit_queued(core, session, row, args)?;
        permission::limit_lookups(core, session, row, args);
    }
    if core.cluster.is_on() && !session.repeats() {
        route::refusal(core, session, row, keys, row.spec.flags).map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Runs one command of a transaction, within [`Core::unit`].
fn run_queued(
    core: &mut Core,
    session: &mut Session,
    transaction: &Transaction,
    command: &Queued,
    replies: &mut ReplyBuffer,
) {
    let shared = core.shared;
    let (row, prepared) = (command.row, transaction.keys(command));
    let mut args = transaction.args(command);
    if repeated::lacks_its_database(session, row) {
        repeated::note_skipped(core);
        return;
    }
    let mark = replies.mark();
    // As in Redis, a client that has killed itself gets no replies to the later commands.
    let is_heard = !session.record.has(flag::CLOSE_AFTER_REPLY);
    if session.has_old_user() {
        session.renew_user();
    }
    if let Err(error) = admit_queued(core, session, row, prepared, &args) {
        count::write_error(core, session, &error, replies);
        if !is_heard {
            replies.truncate(mark);
        }
        return;
    }
    let reply = Reply::new(replies, session.protocol());
    let result = match row.run {
        Run::Data(run) => {
            let (spec, parent, db) = (row.spec, row.parent, session.db());
            let call = Invocation { spec, parent, run, db, blocking: Blocking::Never };
            let unit = core.unit.current().expect("EXEC has begun a unit");
            let done = unit.run(&core.env, &call, prepared, &mut args, reply);
            done.map(|done| core.stats().changes.add(done.dirty))
        }
        Run::Server(at) => {
            let run = core.shared.handlers[usize::from(at)];
            core.accounting.forget_redacted();
            let mut call = Call { core, session, reply, row, prepared };
            let done = run(&mut call, &mut args);
            let done = done.map(|_| invoke::propagate_server(core, row, session.db(), &args));
            done.map_err(|error| match error {
                CommandError::UndeclaredKey(_) => {
                    CommandError::UndeclaredKey(row.full_name().to_owned().into())
                }
                error => error,
            })
        }
    };
    permission::forget_limits(core);
    if !core.unit.is_running() {
        // A slow script was suspended, which also suspends the unit.
        return;
    }
    if let Err(error) = &result {
        replies.truncate(mark);
        repeated::report_failed(core, session, Some(row), error);
        count::write_error(core, session, error, replies);
    }
    replies.finish();
    count::count_command(core, session, row, result.is_err(), &args);
    if shared.conditions.has(Condition::Monitor) && row.is_monitored() {
        lines::show_to_monitors(core, session, row, &args);
    }
    // The hidden arguments belong to this command, not to EXEC.
    core.accounting.forget_redacted();
    if !is_heard {
        replies.truncate(mark);
    }
}
