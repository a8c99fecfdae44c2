//! A rewrite creates a new base, which is a point-in-time snapshot of the dataset, and a new increment from that point
//! on.
//!
//! ```text
//! new increment created ── all workers quiesced: a snapshot begins, the stream continues in the new increment ──┐
//! the manifest names it, before anything is written to it                                                       │
//! the snapshot is written during commands, renamed to the new base                                              │
//! the manifest names the new base and the new increment; the old files are removed  ◄───────────────────────────┘
//! ```
//! After any failure or process exit, the files that the manifest names contain the dataset. A failed rewrite adds one
//! increment.
//!
//! CONFIG SET appendonly yes works the same way, but the manifest does not name the increment until the base is
//! complete.

use super::files::{self, BaseStyle};
use super::home::Home;
use super::state::AofMode;
use crate::core::Core;
use crate::core::shared::Shared;
use crate::persistence::bgsave::{self, JobStart};
use crate::persistence::disk::{Disk, System};
use crate::persistence::pace::WriterPace;
use crate::persistence::replace::Stepwise;
use crate::persistence::snapshot::Head;
use brisk_config::{Config, os_reason};
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::Snapshot;
use brisk_engine::{CommandError, Result};
use brisk_persist::aof::{BaseFormat, Manifest, ManifestFile};
use brisk_persist::rdb::VERSION;
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// After this number of failures, automatic rewrites are retried less and less often.
const FAILURES_FREE: u64 = 3;
/// Maximum number of minutes between two retries.
const RETRY_MINUTES_MAX: u64 = 60;
/// At the end of a rewrite, how often the thread checks whether the new increment is in use.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How long a shutdown waits for a rewrite to end.
const STOP_MAX: Duration = Duration::from_secs(1);

/// BGREWRITEAOF: starts a rewrite, or schedules it while a snapshot is being taken.
///
/// # Errors
/// A rewrite is in progress, or the new increment cannot be created.
pub fn request(core: &Core) -> Result<JobStart> {
    let aof = &core.shared.persistence.aof;
    if aof.rewrite.is_running.load(Ordering::SeqCst) {
        return Err(in_progress());
    }
    if core.shared.keyspace.is_emitting() || core.unit.is_running() {
        aof.schedule_rewrite();
        return Ok(JobStart::Scheduled);
    }
    begin(core)?;
    Ok(JobStart::Started)
}

/// Starts a rewrite if one was scheduled, or if the file has grown beyond the limit in the
/// settings. Called by the timers of one worker.
pub fn begin_if_due(core: &Core) {
    let (shared, aof) = (core.shared, &core.shared.persistence.aof);
    let rewrite = &aof.rewrite;
    let is_busy = rewrite.is_running.load(Ordering::SeqCst) || shared.keyspace.is_emitting();
    // While a slow script runs, the workers cannot be quiesced.
    let may_not = shared.conditions.is_busy()
        || shared.conditions.is_loading()
        || shared.process.shutdown.is_requested();
    if is_busy || may_not {
        return;
    }
    let growth = if aof.mode() == AofMode::On { growth_too_large(core) } else { None };
    let is_scheduled = rewrite.is_scheduled.load(Ordering::SeqCst);
    if !(is_scheduled || growth.is_some()) || is_put_off(shared) {
        return;
    }
    if let Some(growth) = growth.filter(|_| !is_scheduled) {
        shared.log.notice(format_args!("Starting automatic rewriting of AOF on {growth}% growth"));
    }
    // An error is ignored: the log has the reason, or a slow script only delays the rewrite.
    let _ = begin(core);
}

/// The growth of the file since the last base, in percent, if it exceeds the limit in the settings.
fn growth_too_large(core: &Core) -> Option<u128> {
    let (metrics, config) = (&core.shared.persistence.aof.metrics, &core.config.persistence);
    let percentage = config.auto_aof_rewrite_percentage;
    let size = metrics.size.load(Ordering::Relaxed);
    if percentage <= 0 || size < config.auto_aof_rewrite_min_size {
        return None;
    }
    let base = metrics.base_size.load(Ordering::Relaxed).max(1);
    let growth = (u128::from(size) * 100 / u128::from(base)).saturating_sub(100);
    (growth >= u128::from(percentage.unsigned_abs())).then_some(growth)
}

/// Reports whether the next rewrite is delayed after failures. Each delay is logged once.
fn is_put_off(shared: &Shared) -> bool {
    let rewrite = &shared.persistence.aof.rewrite;
    let minutes = retry_minutes(rewrite.failures.load(Ordering::Relaxed));
    let last_try_s = rewrite.last_try_s.load(Ordering::Relaxed);
    let is_put_off = unix_ms() / 1000 < last_try_s + minutes * 60;
    if is_put_off && !rewrite.is_delay_logged.swap(true, Ordering::Relaxed) {
        shared.log.warning(format_args!(
            "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in \
             {minutes} minutes"
        ));
    }
    is_put_off
}

/// How many minutes the next attempt is delayed after this number of failures.
fn retry_minutes(failures: u64) -> u64 {
    match failures.checked_sub(FAILURES_FREE) {
        None => 0,
        Some(more) => (1 << more.min(6)).min(RETRY_MINUTES_MAX),
    }
}

/// Starts a rewrite, or creates the file itself if there is none and the settings require one. The caller has checked
/// that no snapshot is in progress.
///
/// # Errors
/// The rewrite cannot start, and the log has the reason; or [`CommandError::SlotBusy`] while a slow script runs.
fn begin(core: &Core) -> Result<()> {
    let is_running = &core.shared.persistence.aof.rewrite.is_running;
    // Another worker may be about to start a rewrite.
    if is_running.swap(true, Ordering::SeqCst) {
        return Err(in_progress());
    }
    let begun = begin_alone(core);
    if begun.is_err() {
        is_running.store(false, Ordering::SeqCst);
        core.shared.persistence.aof.release_unused_locks();
    }
    begun
}

fn in_progress() -> CommandError {
    CommandError::text("ERR Background append only file rewriting already in progress")
}

fn refused() -> CommandError {
    CommandError::text(
        "ERR Can't execute an AOF background rewriting. Please check the server logs for more information.",
    )
}

fn begin_alone(core: &Core) -> Result<()> {
    let (shared, aof) = (core.shared, &core.shared.persistence.aof);
    let config = Arc::clone(&core.config);
    let home = Home::of(&config);
    aof.lock_files(&home, Duration::ZERO, &shared.log).map_err(|error| {
        shared.log.warning(format_args!("{error}"));
        aof.rewrite.note_failed();
        refused()
    })?;
    let mut next = if aof.is_on() {
        aof.manifest.lock().even_poisoned().clone()
    } else {
        // There may be older files, which stay unchanged until there is a new base.
        home.read(&System)
            .map_err(|reason| {
                shared.log.warning(format_args!("{reason}"));
                aof.rewrite.note_failed();
                refused()
            })?
            .unwrap_or_default()
    };
    // The base is written even without an append-only file, as in Redis.
    let is_logged = aof.is_on() || config.persistence.appendonly;
    let increment = is_logged.then(|| next.new_increment(&home.name).clone());
    let failed = |error: std::io::Error| {
        let name = increment.as_ref().map_or(&b"base"[..], |file| &file.name);
        let name = String::from_utf8_lossy(name).into_owned();
        let reason = os_reason(&error);
        shared.log.warning(format_args!("Can't open the append-only file {name}: {reason}"));
        aof.rewrite.note_failed();
        refused()
    };
    let mut file = files::begin_rewrite(&System, &home, increment.as_ref()).map_err(failed)?;
    aof.start_threads(shared).map_err(failed)?;
    let quiesced = core.quiesce_others()?;
    let began = Instant::now();
    let options = bgsave::options(&config, brisk_observe::memory::used());
    let snapshot = bgsave::begin_snapshot(core, options)?;
    shared.dispatch_changes(core.id);
    let journal = shared.keyspace.journal();
    // The first command in the new file selects its database.
    journal.name_database();
    if let Some(mut file) = file.take() {
        if shared.conditions.is_replica() {
            // The stream comes from another server, which does not repeat the SELECT for this file. Commands for a
            // missing database are not in the file, so no SELECT is needed for them.
            if let Some(db) = shared.keyspace.db(shared.replication.upstream.stream_db()) {
                file.begin_in(db);
            }
        }
        if aof.mode() == AofMode::Off {
            core.env.hooks.set(Hooks::PROPAGATE, true);
            aof.configure(&config.persistence);
        }
        aof.go_over_to(file, &home, &next, journal.end());
    }
    let version = brisk_engine::snapshot::version_at_least(&shared.keyspace, &core.env);
    let head = Head::now(core, version).of_base();
    // From now on, the rewrite can be stopped.
    *aof.rewrite.snapshot.lock().even_poisoned() = Some(Arc::clone(&snapshot));
    drop(quiesced);
    *aof.manifest.lock().even_poisoned() = next;
    aof.rewrite.is_scheduled.store(false, Ordering::SeqCst);
    *aof.rewrite.began.lock().even_poisoned() = Some(began);
    if let Some(increment) = &increment {
        let name = String::from_utf8_lossy(&increment.name).into_owned();
        shared.log.notice(format_args!("Creating AOF incr file {name} on background rewrite"));
    }
    let pid = std::process::id();
    shared.log.notice(format_args!("Background append only file rewriting started by pid {pid}"));
    let (own, own_increment) = (Arc::clone(&snapshot), increment.clone());
    let run = move || {
        let done = write_base(shared, &config, &home, &head, &own, own_increment.as_ref());
        shared.keyspace.end_snapshot(&own);
        end(shared, done, began);
    };
    if let Err(error) = std::thread::Builder::new().name("brisk-rewrite".to_owned()).spawn(run) {
        shared.keyspace.end_snapshot(&snapshot);
        end(shared, Err(os_reason(&error)), began);
        return Err(failed(error));
    }
    Ok(())
}

fn base_style(config: &Config) -> BaseStyle {
    let config = &config.persistence;
    let is_rdb = config.aof_use_rdb_preamble;
    BaseStyle {
        format: if is_rdb { BaseFormat::Rdb } else { BaseFormat::Commands },
        by_steps: config.aof_rewrite_incremental_fsync,
        has_timestamps: config.aof_timestamp_enabled,
    }
}

/// Writes the base and adds it to the manifest.
fn write_base(
    shared: &Shared,
    config: &Config,
    home: &Home,
    head: &Head,
    snapshot: &Snapshot,
    increment: Option<&ManifestFile>,
) -> std::result::Result<(), String> {
    let aof = &shared.persistence.aof;
    let mut manifest = aof.manifest.lock().even_poisoned().clone();
    let style = base_style(config);
    manifest.replace_base(&home.name, style.format);
    manifest.retire_increments(usize::from(increment.is_some()));
    let written = files::write_base(&System, home, &manifest, style, |file| {
        let mut out = head.begin(file);
        let mut pace = WriterPace::new(shared, config, snapshot);
        snapshot.write(&mut out, || true, |keys| pace.after(keys))?;
        out.finish().map(|_| ())
    });
    written.map_err(|failure| failure.to_string())?;
    // The manifest may name only existing files, so wait until the increment is in use.
    let is_missing = |file: &ManifestFile| !aof.is_in_use(&home.path(file));
    while increment.is_some_and(is_missing) {
        if shared.process.shutdown.is_requested()
            || aof.mode() == AofMode::Off
            || aof.failure().is_some()
        {
            files::discard_base(&System, home, &manifest);
            return Err("the new increment could not be written".to_owned());
        }
        aof.hasten(aof.level());
        std::thread::park_timeout(LOOK_AGAIN);
    }
    // Use the current value of the setting.
    let removes_history = !shared.config().persistence.aof_disable_auto_gc;
    aof.name_base(&System, home, manifest, removes_history).map_err(|error| os_reason(&error))?;
    aof.locks.lock().even_poisoned().keep_only(home);
    Ok(())
}

/// CONFIG SET aof-disable-auto-gc no: removes replaced files. All other workers are quiesced. A rewrite in progress
/// removes the files at its end.
pub fn collect_history(shared: &Shared) {
    let aof = &shared.persistence.aof;
    if aof.is_on() && !aof.rewrite.is_running.load(Ordering::SeqCst) {
        let home = Home::of(&shared.config());
        files::remove_history(&System, &home, &mut aof.manifest.lock().even_poisoned());
    }
}

fn end(shared: &Shared, done: std::result::Result<(), String>, began: Instant) {
    let (aof, log) = (&shared.persistence.aof, &shared.log);
    let rewrite = &aof.rewrite;
    let is_ok = done.is_ok();
    *rewrite.snapshot.lock().even_poisoned() = None;
    match done {
        Ok(()) => {
            log.notice(format_args!("Background AOF rewrite terminated with success"));
            rewrite.failures.store(0, Ordering::Relaxed);
            log.notice(format_args!("Background AOF rewrite finished successfully"));
        }
        Err(reason) => {
            log.warning(format_args!("Background AOF rewrite terminated with error: {reason}"));
            rewrite.note_failed();
            if aof.mode() == AofMode::WaitsForBase {
                // A client requested the file, so the rewrite is retried.
                rewrite.is_scheduled.store(true, Ordering::SeqCst);
            }
        }
    }
    if is_ok {
        rewrite.has_failed.store(false, Ordering::SeqCst);
    }
    let seconds = began.elapsed().as_secs().cast_signed();
    rewrite.last_seconds.store(seconds, Ordering::Relaxed);
    rewrite.count.fetch_add(1, Ordering::Relaxed);
    *rewrite.began.lock().even_poisoned() = None;
    rewrite.is_running.store(false, Ordering::SeqCst);
    aof.release_unused_locks();
}

/// Continues the files of a manifest, or creates new ones. Called after loading, before the first client is served.
///
/// # Errors
/// The error is a text for the log. The server does not start.
pub fn open(core: &Core, manifest: Option<Manifest>) -> std::result::Result<(), String> {
    let (shared, aof) = (core.shared, &core.shared.persistence.aof);
    let home = Home::of(&core.config);
    let head = Head::now(core, VERSION).of_base();
    let write_empty = |file: &mut Stepwise<'_, System>| head.begin(file).finish().map(|_| ());
    let (file, mut manifest) =
        files::open(&System, &home, manifest, base_style(&core.config), write_empty)?;
    if !core.config.persistence.aof_disable_auto_gc {
        files::remove_history(&System, &home, &mut manifest);
    }
    aof.note_found(&System, &home, &manifest);
    aof.configure(&core.config.persistence);
    aof.start_threads(shared).map_err(|error| {
        format!("Can't start the threads of the append-only file: {}", os_reason(&error))
    })?;
    aof.begin_with(file, manifest, shared.keyspace.journal().end());
    shared.keyspace.journal().name_database();
    core.env.hooks.set(Hooks::PROPAGATE, true);
    Ok(())
}

/// CONFIG SET appendonly yes: checks that files can be created in the configured directory, and
/// that no other server holds their lock. The first rewrite locks them.
///
/// # Errors
/// The files cannot be created. The error is a text for the log.
pub fn try_home(shared: &Shared, config: &Config) -> std::result::Result<(), String> {
    let home = Home::of(config);
    // Use a separate name, because another thread may be writing a base.
    let file = home.dir.join(format!("temp-appendonly-{}.aof", std::process::id()));
    let tried = System
        .create_dir(&home.dir)
        .and_then(|()| System.create(&file).map(drop))
        .and_then(|()| System.remove(&file));
    tried.map_err(|error| {
        let (dir, reason) = (home.dir.display(), os_reason(&error));
        format!("Can't open or create append-only dir {dir}: {reason}")
    })?;
    let checked = shared.persistence.aof.locks.lock().even_poisoned().check(&home, &shared.log);
    checked.map_err(|error| error.to_string())
}

/// Reports whether the append-only file was enabled and its first base is not complete.
pub fn is_first(shared: &Shared) -> bool {
    let rewrite = &shared.persistence.aof.rewrite;
    match shared.persistence.aof.mode() {
        AofMode::On => false,
        AofMode::WaitsForBase => rewrite.is_running.load(Ordering::SeqCst),
        AofMode::Off => {
            shared.config().persistence.appendonly && rewrite.is_scheduled.load(Ordering::SeqCst)
        }
    }
}

/// Reports whether a base is being written.
pub fn is_running(shared: &Shared) -> bool {
    shared.persistence.aof.rewrite.is_running.load(Ordering::SeqCst)
}

/// Requests that a rewrite in progress stop soon, without a base.
pub fn give_up(shared: &Shared, why: &'static str) {
    if let Some(snapshot) = &*shared.persistence.aof.rewrite.snapshot.lock().even_poisoned() {
        snapshot.give_up(why);
    }
}

/// Stops a rewrite in progress and removes its temporary file. Waits at most [`STOP_MAX`], because a rewrite that has
/// written its last byte cannot be stopped and is nearly done. Returns true if nothing writes a base any more. A worker
/// that waits for quiescence to start a rewrite has written nothing yet, so this function does not wait for it.
pub fn stop(shared: &Shared, why: &'static str) -> bool {
    let rewrite = &shared.persistence.aof.rewrite;
    if !rewrite.is_running.load(Ordering::SeqCst) {
        return true;
    }
    let is_writing = || rewrite.snapshot.lock().even_poisoned().is_some();
    shared.log.warning(format_args!("There is a child rewriting the AOF. Killing it!"));
    give_up(shared, why);
    let until = Instant::now() + STOP_MAX;
    while is_writing() && Instant::now() < until {
        std::thread::park_timeout(LOOK_AGAIN);
    }
    !is_writing()
}

/// CONFIG SET appendonly no: syncs all changes and stops writing. All other workers are quiesced.
pub fn close(shared: &Shared) {
    let aof = &shared.persistence.aof;
    if aof.mode() == AofMode::Off {
        return;
    }
    // The number of the calling worker is not needed. Without it, at most one worker is woken unnecessarily.
    shared.dispatch_changes(usize::MAX);
    if let Err(error) = aof.flush(shared) {
        let reason = os_reason(&error);
        shared.log.warning(format_args!("The append-only file could not be written: {reason}"));
    }
    if let Some(snapshot) = &*aof.rewrite.snapshot.lock().even_poisoned() {
        shared.log.notice(format_args!("Killing AOF child"));
        snapshot.give_up("the append-only file was disabled");
    }
    aof.end_at(shared.keyspace.journal().end());
    // Clear the error of the last write. Without a file, no later write would clear it.
    aof.note_success(shared);
    aof.rewrite.is_scheduled.store(false, Ordering::SeqCst);
    aof.release_unused_locks();
}
