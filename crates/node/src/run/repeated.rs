//! Repeated commands that fail: commands that come from the primary or an append-only file and were executed before. A
//! failure shows that this dataset differs from the one on which the command was executed.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use brisk_config::choice::PropagationError;
use brisk_engine::CommandError;
use brisk_engine::command::Flags;
use brisk_engine::table::{Row, Run};
use std::sync::atomic::Ordering;

/// Logs a command that failed although it should not have. Exits the process if the settings require it.
#[cold]
pub(crate) fn note_failed(
    core: &Core,
    session: &mut Session,
    row: Option<&Row>,
    error: &CommandError,
) {
    session.source.note_ran_nothing();
    report_failed(core, session, row, error);
}

/// Like `note_failed`, for one command of a transaction whose other commands may have been executed.
#[cold]
pub(crate) fn report_failed(
    core: &Core,
    session: &Session,
    row: Option<&Row>,
    error: &CommandError,
) {
    if session.source.is_replay() && row.is_none() {
        // The loader of the file reports an unknown command with its position, and exits.
        return;
    }
    let primary = core.shared.primary_words().lower;
    let (this, whose) = if session.source.is_replay() {
        ("server", "AOF-loading-client")
    } else if session.source.is_primary() {
        ("replica", primary)
    } else if session.record.has(flag::REPLICA) {
        (primary, "replica")
    } else {
        return;
    };
    let command = row.map_or("<unknown>", Row::full_name);
    let shared = core.shared;
    shared.log.warning(format_args!(
        "== CRITICAL == This {this} is sending an error to its {whose}: '-{error}' after processing the \
         command '{command}'"
    ));
    shared.observe.metrics.unexpected_errors.fetch_add(1, Ordering::Relaxed);
    let replication = &core.config.replication;
    let ends = match replication.propagation_error_behavior {
        PropagationError::Ignore => false,
        PropagationError::Panic => {
            session.source.is_replay() || is_read_only_replica(core, session)
        }
        PropagationError::PanicOnReplicas => is_read_only_replica(core, session),
    };
    if ends {
        end_process(
            core,
            "propagation-error-behavior does not allow it to continue after a failed command",
        );
    }
}

/// Reports whether a command of a stream or file is skipped because it uses the selected database, which does not exist
/// here. Running it in another database would change unrelated data.
#[inline]
pub fn lacks_its_database(session: &Session, row: &Row) -> bool {
    session.source.lacks_db() && works_on_selected(row)
}

/// Reports whether a command uses the selected database. FLUSHALL and SWAPDB do not.
#[cold]
pub fn works_on_selected(row: &Row) -> bool {
    match row.run {
        Run::Data(_) => !matches!(row.spec.name, "flushall" | "swapdb"),
        Run::Server(_) => row.has(Flags::RUNS_SCRIPT),
    }
}

/// Counts a command that was skipped. The log already mentions the SELECT before it.
#[cold]
pub fn note_skipped(core: &Core) {
    core.shared.observe.metrics.unexpected_errors.fetch_add(1, Ordering::Relaxed);
}

/// Reports whether the command comes from the primary and this replica rejects writes by clients. A replica that
/// accepts them is expected to differ from its primary.
fn is_read_only_replica(core: &Core, session: &Session) -> bool {
    session.source.is_primary() && core.config.replication.replica_read_only
}

/// Called if a command of the primary cannot be persisted. Either logs this, and the command is executed, or exits the
/// process.
#[cold]
pub(crate) fn note_unwritten(core: &Core) {
    if !core.config.replication.replica_ignore_disk_write_errors {
        let why = "what the primary sends cannot be written to the disk, and \
                   replica-ignore-disk-write-errors is off";
        end_process(core, why);
    }
    if core.shared.replication.upstream.warns_of_disk(core.env.now().0) {
        core.shared.log.warning(format_args!(
            "Replica is applying a command even though it is unable to write to disk."
        ));
    }
}

/// Exits the process immediately, as the settings require. Nothing is saved.
fn end_process(core: &Core, why: &str) -> ! {
    core.shared.log.warning(format_args!("The server exits now: {why}"));
    std::process::abort();
}
