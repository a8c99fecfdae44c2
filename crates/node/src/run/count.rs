//! Statistics of commands that ran: calls and time, the slow log, errors, and the client's last command.

use crate::clients::ClientRecord;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Reply, ReplyBuffer};
use std::sync::atomic::Ordering;

/// Counts a command that ran, for the statistics, the slow log and the latency monitor.
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

/// Counts a command that took `ns` and ended outside of its session's batch.
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

/// Notes that the command waits. The command is counted when the wait is over.
#[cold]
pub(crate) fn note_wait(core: &mut Core, session: &mut Session, row: &Row) {
    let ns = core.accounting.charge(core.clock);
    note_last(core, session, row);
    session.blocked.begin(core.env.take_waiter());
    if let Some(waiter) = session.blocked.waiter() {
        waiter.spent_ns.store(ns, Ordering::Relaxed);
    }
}

/// Sets the session's last command. The command is counted later.
pub(crate) fn note_last(core: &mut Core, session: &Session, row: &Row) {
    core.accounting.note_last(row);
    session.record.last_command.store(core.accounting.last_row(), Ordering::Relaxed);
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
    Reply::new(replies, session.protocol()).error(error);
}

pub fn count_error(core: &Core, error: &CommandError) {
    core.stats().error_replies.add(1);
    core.shared.observe.errors.count(&error.to_string());
    let log = &core.shared.log;
    match error {
        CommandError::BadPayload(why) => {
            log.warning(format_args!("RESTORE rejected a value: {why}"));
        }
        CommandError::UndeclaredKey(command) => log.warning(format_args!(
            "Internal error: the command '{command}' used a key that it does not declare. The \
             access was rejected and the command returned an error. Please report this."
        )),
        _ => {}
    }
}
