//! Snapshots for replicas. Each one contains the dataset at a position of the stream. It is written while commands run.
//!
//! ```text
//!  SYNC, PSYNC ── replicas that wait ──┐
//!                                      ├─ quiesce: a snapshot begins, position in the stream, effects are collected
//!  no other snapshot in progress ──────┘        │
//!                                               ├─ each replica: +FULLRESYNC, and the stream is kept for it
//!       a thread writes it ◄────────────────────┘
//!       the workers of the replicas send it, and then the stream
//! ```
//!
//! The snapshot is written to an unnamed file, which is sent when it is complete. With `repl-diskless-sync`, if all
//! replicas accept a mark at the end, the snapshot is written to a pipe and sent at the same time. This needs no disk,
//! but changes are kept in memory until the slowest replica has received the snapshot. If the changes take too much
//! memory, the next snapshot is written to a file first. Strings that are sent directly are compressed only while the
//! network or a replica is slower than the writer, because otherwise the copy would take longer.
//!
//! A replica that wants no keys needs no snapshot of the dataset, and gets a snapshot without keys immediately.
//!
//! All replicas that wait share the next snapshot. Only one snapshot of the dataset is in progress at a time. While
//! another one is being written for BGSAVE, the append-only file or other replicas, they wait until it is complete.

use super::history::new_id;
use super::pipe::{PipeWriter, SnapshotPipe};
use super::replica::{ReplicaFilter, ReplicaStage};
use super::replicas::ReplicaHandle;
use super::transfer::{SnapshotFile, SnapshotTransfer, TransferOutcome};
use crate::core::Core;
use crate::core::mailbox::Message;
use crate::core::shared::Shared;
use crate::persistence::bgsave;
use crate::persistence::snapshot::{self, Head};
use brisk_config::Config;
use brisk_config::directives::replication::Replication as Settings;
use brisk_engine::Result as CommandResult;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::Snapshot;
use brisk_persist::rdb::VERSION;
use std::sync::Arc;

/// Maximum number of keys that are examined, while workers are quiesced, to choose the version of the file. This takes
/// an estimated 1 ms. No key is examined if no hash field ever had a TTL.
const KEYS_LOOKED_AT_MAX: usize = 10_000;

/// Begins a snapshot for the replicas that wait for one, unless another one is being written or the settings delay it
/// so that more replicas can share it.
///
/// # Errors
/// [`brisk_engine::CommandError::SlotBusy`] while a slow script runs. The replicas continue to wait.
pub fn begin_if_possible(core: &Core) -> CommandResult<()> {
    let shared = core.shared;
    let replicas = &shared.replication.replicas;
    if !replicas.has_waiting()
        || shared.conditions.is_loading()
        || shared.process.shutdown.is_requested()
    {
        return Ok(());
    }
    begin_without_keys(core)?;
    if shared.keyspace.is_emitting() {
        return Ok(());
    }
    if !is_due(shared, &core.config.replication, brisk_reactor::unix_ms()) {
        return Ok(());
    }
    let config = Arc::clone(&core.config);
    let quiesced = core.quiesce_others()?;
    if replicas.count(|replica| replica.waits_for(None)) == 0 {
        // The replicas disconnected or were served while this worker waited for quiescence.
        return Ok(());
    }
    // Use the lowest possible version: a replica may not support a later one.
    let version =
        brisk_engine::snapshot::version_within(&shared.keyspace, &core.env, KEYS_LOOKED_AT_MAX);
    let head = Head::now(core, version);
    let options = bgsave::options(&config, head.used_memory());
    // While this worker waited for the others to quiesce, another snapshot or the loading of a dataset
    // may have started.
    let Ok(snapshot) = bgsave::begin_snapshot(core, options) else { return Ok(()) };
    shared.dispatch_changes(core.id);
    let journal = shared.keyspace.journal();
    core.env.hooks.set(Hooks::PROPAGATE, true);
    let pipe = streams(shared, &core.config.replication).then(|| {
        // An id is random enough and has the length of an end mark.
        SnapshotPipe::new(new_id(&mut core.env.random.borrow_mut()))
    });
    let target = if pipe.is_some() { "replicas sockets" } else { "disk" };
    let transfer = Arc::new(SnapshotTransfer::new(Arc::clone(&snapshot), journal.end().0, pipe));
    shared.replication.join((&transfer, None), journal, brisk_reactor::unix_ms());
    shared.replication.snapshots.begin(&transfer);
    drop(quiesced);
    shared.log.notice(format_args!("Starting BGSAVE for SYNC with target: {target}"));
    let (own, own_snapshot) = (Arc::clone(&transfer), Arc::clone(&snapshot));
    let write = move || write(shared, (&config, &head), &own, &own_snapshot);
    if let Err(error) = std::thread::Builder::new().name("brisk-sync".to_owned()).spawn(write) {
        shared.log.warning(format_args!("Can't save in background: {error}"));
        end(shared, &transfer, &snapshot, TransferOutcome::Failed);
    }
    notify_workers(shared);
    Ok(())
}

/// Begins snapshots for replicas that want no keys.
///
/// # Errors
/// As for [`begin_if_possible`].
fn begin_without_keys(core: &Core) -> CommandResult<()> {
    let shared = core.shared;
    let replicas = &shared.replication.replicas;
    for filter in ReplicaFilter::ALL {
        let waits = || replicas.count(|replica| replica.waits_for(Some(filter))) > 0;
        if !waits() {
            continue;
        }
        let quiesced = core.quiesce_others()?;
        if !waits() {
            continue;
        }
        let head = Head::now(core, VERSION).without_keys(filter.functions);
        shared.dispatch_changes(core.id);
        let journal = shared.keyspace.journal();
        core.env.hooks.set(Hooks::PROPAGATE, true);
        let pipe = SnapshotPipe::new(new_id(&mut core.env.random.borrow_mut()));
        let transfer = Arc::new(SnapshotTransfer::without_keys(journal.end().0, pipe));
        shared.replication.join((&transfer, Some(filter)), journal, brisk_reactor::unix_ms());
        drop(quiesced);
        shared.log.notice(format_args!("Starting BGSAVE for SYNC with target: replicas sockets"));
        let own = Arc::clone(&transfer);
        let write = move || write_without_keys(shared, &head, &own);
        if let Err(error) = std::thread::Builder::new().name("brisk-sync".to_owned()).spawn(write) {
            shared.log.warning(format_args!("Can't save in background: {error}"));
            transfer.end(TransferOutcome::Failed);
        }
        notify_workers(shared);
    }
    Ok(())
}

/// Writes a snapshot without keys.
fn write_without_keys(shared: &Shared, head: &Head, transfer: &SnapshotTransfer) {
    let Some(pipe) = transfer.pipe() else { return };
    let is_over = || !transfer.is_wanted();
    let wake = |worker: usize| shared.mailboxes.send(worker, Message::ContinueFullSyncs);
    let written = snapshot::write_without_keys(PipeWriter::new(pipe, &is_over, &wake), head);
    match written {
        Ok(()) => {
            pipe.finish();
            shared.log.notice(format_args!("Background RDB transfer terminated with success"));
            transfer.end(TransferOutcome::Streamed);
        }
        // No replica waits for the snapshot any more.
        Err(_) => transfer.end(TransferOutcome::Failed),
    }
    notify_workers(shared);
}

/// Returns true if the waiting replicas receive the snapshot while it is being written. O(replicas).
fn streams(shared: &Shared, settings: &Settings) -> bool {
    let replication = &shared.replication;
    let wants_file = |one: &ReplicaHandle| one.waits_for(None) && !one.takes_unknown_length;
    settings.repl_diskless_sync
        && replication.replicas.count(wants_file) == 0
        && !replication.snapshots.take_needs_file()
}

/// Returns true if a snapshot must begin: a replica does not wait for other replicas, a replica has waited long enough,
/// or `repl-diskless-sync-max-replicas` replicas wait. O(replicas).
fn is_due(shared: &Shared, settings: &Settings, now_ms: u64) -> bool {
    let delay_ms = settings.repl_diskless_sync_delay_s.max(0).cast_unsigned().saturating_mul(1000);
    let enough = settings.repl_diskless_sync_max_replicas.max(0).cast_unsigned();
    let is_waiting = |replica: &ReplicaHandle| replica.waits_for(None);
    let replicas = &shared.replication.replicas;
    let hurries = |replica: &ReplicaHandle| {
        is_waiting(replica)
            && (!settings.repl_diskless_sync
                || !replica.takes_unknown_length
                || now_ms.saturating_sub(replica.since_ms) >= delay_ms)
    };
    replicas.count(hurries) > 0 || (enough > 0 && replicas.count(is_waiting) >= enough)
}

/// As [`begin_if_possible`], for the timers of one worker.
pub fn begin_if_due(core: &Core) {
    // If a slow script prevents quiescence, one of the next calls succeeds.
    let _ = begin_if_possible(core);
}

/// Writes the snapshot and logs the result.
fn write(
    shared: &Shared,
    (config, head): (&Config, &Head),
    transfer: &SnapshotTransfer,
    snapshot: &Snapshot,
) {
    let log = &shared.log;
    let written = match transfer.pipe() {
        Some(pipe) => write_to(pipe, shared, (config, head), snapshot),
        None => snapshot::write_nameless(shared, config, head, snapshot)
            .map_err(|failure| failure.to_string())
            .and_then(|file| SnapshotFile::new(file).map_err(|error| error.to_string()))
            .map(TransferOutcome::File),
    };
    let what = if transfer.pipe().is_some() { "RDB transfer" } else { "saving" };
    match &written {
        Ok(_) => log.notice(format_args!("Background {what} terminated with success")),
        Err(_) if !transfer.is_wanted() => {
            log.notice(format_args!(
                "Background {what} was canceled: no replica is waiting for it"
            ));
        }
        Err(failure) => {
            log.warning(format_args!("{failure}"));
            log.warning(format_args!("Background {what} error"));
        }
    }
    if written.is_err() && transfer.pipe().is_some() && snapshot.ran_full() {
        shared.replication.snapshots.require_file();
    }
    end(shared, transfer, snapshot, written.unwrap_or(TransferOutcome::Failed));
    notify_workers(shared);
}

/// Writes the snapshot to the pipe from which replicas receive it at the same time.
fn write_to(
    pipe: &SnapshotPipe,
    shared: &Shared,
    (config, head): (&Config, &Head),
    snapshot: &Snapshot,
) -> Result<TransferOutcome, String> {
    let is_over = || snapshot.is_over();
    let wake = |worker: usize| shared.mailboxes.send(worker, Message::ContinueFullSyncs);
    let out = PipeWriter::new(pipe, &is_over, &wake);
    let may_compress = || pipe.is_half_full();
    snapshot::write_to(out, (shared, config), head, snapshot, may_compress)
        .map_err(|failure| failure.to_string())?;
    pipe.finish();
    Ok(TransferOutcome::Streamed)
}

fn end(
    shared: &Shared,
    transfer: &SnapshotTransfer,
    snapshot: &Snapshot,
    outcome: TransferOutcome,
) {
    shared.keyspace.end_snapshot(snapshot);
    shared.replication.snapshots.end(transfer);
    transfer.end(outcome);
}

/// Notifies each worker with replicas that are not online.
fn notify_workers(shared: &Shared) {
    let mut workers: Vec<usize> = shared
        .replication
        .replicas
        .list()
        .into_iter()
        .filter(|replica| replica.progress.stage() != ReplicaStage::Online)
        .map(|replica| replica.client.worker)
        .collect();
    workers.sort_unstable();
    workers.dedup();
    for worker in workers {
        shared.mailboxes.send(worker, Message::ContinueFullSyncs);
    }
}
