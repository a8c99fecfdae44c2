//! Snapshots that are taken while commands run: BGSAVE, and the save points of `save`.
//!
//! A snapshot begins while all workers are quiesced. Quiescing takes as long as the longest command in progress plus
//! some microseconds. From then on, workers emit entries before they change them, and emit the other entries in small
//! portions between commands. A separate thread writes the emitted entries.

use super::disk::System;
use super::pace::WriterPace;
use super::snapshot::{self, Head};
use super::state::{Ended, Running};
use crate::core::Core;
use crate::core::shared::Shared;
use brisk_config::Config;
use brisk_config::directives::persistence::Persistence as Settings;
use brisk_engine::keyspace::{SlotSet, Snapshot, SnapshotOptions};
use brisk_engine::{CommandError, Result};
use brisk_reactor::unix_ms;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Maximum memory for entries that have been emitted but not written yet. The walkers pause at a quarter of this
/// limit or earlier, so that the rest is left for entries that are emitted because of changes.
const QUEUE_BYTES_MAX: u64 = 1 << 30;
/// Maximum memory for entries that have been emitted but not written yet, as a fraction of `maxmemory`: one part in
/// this number.
const QUEUE_SHARE: u64 = 10;
/// Lower bound of the limit on memory for entries that have been emitted but not written yet. With a lower limit, a few
/// large values would abort a snapshot.
const QUEUE_BYTES_MIN: u64 = 32 << 20;
/// Seconds before a failed automatic snapshot is retried.
const RETRY_S: u64 = 5;

/// The result of BGSAVE or BGREWRITEAOF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStart {
    Started,
    Scheduled,
}

/// BGSAVE: starts a snapshot, or schedules one if it is not possible now and `later` is set.
///
/// # Errors
/// A snapshot is being taken, or, with [`CommandError::SlotBusy`], a slow script is running.
pub fn request(core: &Core, later: bool) -> Result<JobStart> {
    let snapshots = &core.shared.persistence.snapshots;
    snapshots.make_way();
    if is_saving(core.shared) {
        return Err(in_progress());
    }
    if core.shared.keyspace.is_emitting() && !core.unit.is_running() {
        if later {
            snapshots.schedule();
            return Ok(JobStart::Scheduled);
        }
        return Err(CommandError::text(
            "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE \
             in order to schedule a BGSAVE whenever possible.",
        ));
    }
    if core.unit.is_running() {
        // A snapshot that is taken within EXEC would contain only a part of the transaction.
        snapshots.schedule();
        return Ok(JobStart::Scheduled);
    }
    begin(core)?;
    Ok(JobStart::Started)
}

/// Reports whether a snapshot is being taken, including snapshots for replicas. Redis does not distinguish the two.
pub fn is_saving(shared: &Shared) -> bool {
    shared.persistence.snapshots.is_running() || shared.replication.snapshots.is_writing()
}

/// The error while a snapshot is being taken.
pub fn in_progress() -> CommandError {
    CommandError::text("ERR Background save already in progress")
}

/// The error for commands that are not allowed while a dataset is loading.
pub fn refused_while_loading(core: &Core) -> CommandError {
    let title = core.config.process.dialect.title();
    CommandError::text(format!("LOADING {title} is loading the dataset in memory"))
}

/// Begins a snapshot while all other workers are quiesced. Callers check before they quiesce. This function checks
/// again, because a replica may have started to load a dataset in the meantime.
///
/// # Errors
/// Another snapshot is in progress, or a dataset is being loaded.
pub(crate) fn begin_snapshot(core: &Core, options: SnapshotOptions) -> Result<Arc<Snapshot>> {
    if core.shared.conditions.is_loading() {
        return Err(refused_while_loading(core));
    }
    core.shared.keyspace.begin_snapshot(SlotSet::all(), options).ok_or_else(in_progress)
}

/// Starts a snapshot if `save` or BGSAVE SCHEDULE requires one now. Called by the timers of one
/// worker.
pub fn begin_if_due(core: &Core) {
    let shared = core.shared;
    let snapshots = &shared.persistence.snapshots;
    if shared.conditions.is_loading() || shared.process.shutdown.is_requested() {
        return;
    }
    if snapshots.note_flushes(shared.keyspace.flushes()) {
        // Redis saves the empty dataset before it replies to FLUSHALL; here no client waits for the
        // disk.
        snapshots.abandon();
        if !core.config.persistence.save.is_empty() {
            snapshots.schedule_after_flush();
        }
    }
    // If a slow script is running, the timers try again.
    if shared.keyspace.is_emitting() || shared.conditions.is_busy() {
        return;
    }
    let now_s = unix_ms() / 1000;
    let may_try = snapshots.is_ok() || now_s.saturating_sub(snapshots.last_try_s()) > RETRY_S;
    let rules = &core.config.persistence.save;
    if !may_try || (rules.is_empty() && !snapshots.is_scheduled()) {
        return;
    }
    let changes = snapshots.changes_since(shared.observe.changes());
    let elapsed_s = now_s.saturating_sub(snapshots.last_save_s());
    let is_due = |seconds: i64, count: i64| {
        changes >= count.unsigned_abs() && elapsed_s > seconds.unsigned_abs()
    };
    let due = rules.iter().find(|rule| is_due(rule.seconds, rule.changes));
    if let Some(rule) = due {
        let (changes, seconds) = (rule.changes, rule.seconds);
        shared.log.notice(format_args!("{changes} changes in {seconds} seconds. Saving..."));
    }
    if due.is_some() || snapshots.is_scheduled() {
        // This fails if a script has just become slow.
        let _ = begin(core);
    }
}

/// Starts a snapshot. The caller has checked that none is being taken.
fn begin(core: &Core) -> Result<()> {
    let shared = core.shared;
    let config = Arc::clone(&core.config);
    let quiesced = core.quiesce_others()?;
    let began = Instant::now();
    let version = brisk_engine::snapshot::version_at_least(&shared.keyspace, &core.env);
    let head = Head::now(core, version);
    let changes = shared.observe.changes();
    let snapshot = begin_snapshot(core, options(&config, head.used_memory()))?;
    shared.persistence.snapshots.note_flushes(shared.keyspace.flushes());
    drop(quiesced);
    let quiesced_us = began.elapsed().as_micros() as u64;
    let own = Arc::clone(&snapshot);
    shared.observe.metrics.saves.fetch_add(1, Ordering::Relaxed);
    let ended = move |how, peak_bytes| {
        shared.persistence.snapshots.note_ended(how, changes, began.elapsed(), peak_bytes);
        shared.update_disk_error();
    };
    let pid = std::process::id();
    shared.log.notice(format_args!("Background saving started by pid {pid}"));
    let started = shared.persistence.snapshots.begin(quiesced_us, || {
        let own = Arc::clone(&snapshot);
        let thread =
            std::thread::Builder::new().name("brisk-save".to_owned()).spawn(move || {
                let how = write(shared, &config, &head, &own);
                shared.keyspace.end_snapshot(&own);
                ended(how, own.bytes_peak());
            })?;
        Ok(Running { snapshot, began, thread })
    });
    started.map_err(|error| {
        shared.keyspace.end_snapshot(&own);
        shared.log.warning(format_args!("Can't save in background: {error}"));
        ended(Ended::Failed, 0);
        CommandError::text("ERR")
    })
}

/// The error for write commands if the append-only file cannot be written, or if the last snapshot failed and the
/// settings then forbid writes.
pub fn refusal(core: &Core) -> Option<CommandError> {
    if let Some(reason) = core.shared.persistence.aof.failure() {
        let text = format!("MISCONF Errors writing to the AOF file: {reason}");
        return Some(CommandError::text(text));
    }
    has_consequences(core.shared, &core.config.persistence).then(|| {
        let title = core.config.process.dialect.title();
        CommandError::text(format!(
            "MISCONF {title} is configured to save RDB snapshots, but it's currently unable to persist \
             to disk. Commands that may modify the data set are disabled, because this instance is \
             configured to report errors during writes if RDB snapshotting fails \
             (stop-writes-on-bgsave-error option). Please check the {title} logs for details \
             about the RDB error."
        ))
    })
}

/// Reports whether the last snapshot failed and the settings then forbid writes.
fn has_consequences(shared: &Shared, config: &Settings) -> bool {
    let refuses = config.stop_writes_on_bgsave_error && !config.save.is_empty();
    refuses && !shared.persistence.snapshots.is_ok()
}

/// Reports whether write commands are rejected because of disk errors.
pub fn refuses_writes(shared: &Shared, config: &Settings) -> bool {
    shared.persistence.aof.failure().is_some() || has_consequences(shared, config)
}

/// Writes the file and logs the result.
fn write(shared: &Shared, config: &Config, head: &Head, snapshot: &Snapshot) -> Ended {
    let mut pace = WriterPace::new(shared, config, snapshot);
    match snapshot::write_file(&System, config, head, snapshot, |keys| pace.after(keys)) {
        Ok(()) => {
            shared.log.notice(format_args!("DB saved on disk"));
            shared.log.notice(format_args!("Background saving terminated with success"));
            Ended::Saved
        }
        Err(_) if shared.persistence.snapshots.is_unwanted() => {
            shared.log.warning(format_args!("Background saving was canceled"));
            Ended::GivenUp
        }
        Err(failure) => {
            shared.log.warning(format_args!("{failure}"));
            shared.log.warning(format_args!("Background saving error"));
            Ended::Failed
        }
    }
}

pub(crate) fn options(config: &Config, used_memory: u64) -> SnapshotOptions {
    let max = match config.memory.maxmemory {
        0 => QUEUE_BYTES_MAX,
        limit => (limit / QUEUE_SHARE).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX),
    };
    SnapshotOptions {
        compresses: config.persistence.rdbcompression,
        queue_bytes_max: max,
        dataset_bytes: used_memory,
    }
}
