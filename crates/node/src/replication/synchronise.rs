//! Snapshots for replicas: a cut of the dataset at a place of the stream, written to a file beside
//! commands.
//!
//! ```text
//!  SYNC, PSYNC ── replicas that wait ──┐
//!                                      ├─ all stand still: cut, place in the stream, effects collected
//!  no other cut is being written ──────┘        │
//!                                               ├─ each replica: +FULLRESYNC, and the stream is held for it
//!       a thread writes it ◄────────────────────┘
//!       the workers of the replicas send it, and then what was held
//! ```
//! It is written to a nameless file, which is sent when it is whole; or, with `repl-diskless-sync`, if all
//! of them know the end of a snapshot by a mark, to a pipe from which they are sent it meanwhile. Then
//! nothing needs a disk, but what is changed is kept in memory for as long as the slowest replica takes: if
//! that becomes too much the next one goes by way of a file.
//!
//! A replica that wants no keys needs no cut, and gets a snapshot at once.
//!
//! All replicas that wait share the next cut. There is one cut at a time: while another is being
//! written, for BGSAVE, the append-only file or other replicas, they wait for its end.

use super::history::new_id;
use super::pipe::{Pipe, PipeWriter};
use super::replica::{ReplicaFilter, ReplicaStage};
use super::replicas::ReplicaHandle;
use super::transfer::{Outcome, Payload, Transfer};
use crate::core::Core;
use crate::core::mailbox::Message;
use crate::core::shared::Shared;
use crate::persistence::bgsave;
use crate::persistence::snapshot::{self, Head};
use brisk_config::Config;
use brisk_config::directives::replication::Replication as Settings;
use brisk_engine::Result as CommandResult;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::Cut;
use brisk_persist::rdb::VERSION;
use std::sync::Arc;

/// Keys that are looked at while everybody stands still, for what the file's version has to be, at most:
/// about a millisecond by estimate. None if no field of a hash ever had a deadline.
const KEYS_LOOKED_AT_MAX: usize = 10_000;

/// Begins a snapshot for the replicas that wait for one, if no other is being written and no more of them
/// are waited for.
///
/// # Errors
/// [`brisk_engine::CommandError::SlotBusy`] while a script takes long. They go on waiting.
pub fn begin_if_possible(core: &Core) -> CommandResult<()> {
    let shared = core.shared;
    let replicas = &shared.replication.replicas;
    if !replicas.has_waiting() || shared.is_loading() || shared.shutdown.is_asked() {
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
    let quiesced = core.stop_others()?;
    if replicas.count(|replica| replica.waits_for(None)) == 0 {
        // They left while this worker waited for stillness, or have been served.
        return Ok(());
    }
    // A replica may be one that no later version can be sent to.
    let version =
        brisk_engine::snapshot::version_within(&shared.keyspace, &core.env, KEYS_LOOKED_AT_MAX);
    let head = Head::now(core, version);
    let options = bgsave::options(&config, head.used_memory());
    // While this worker waited for the others to quiesce, another cut or the loading of a dataset may
    // have started.
    let Ok(cut) = bgsave::begin_cut(core, options) else { return Ok(()) };
    shared.dispatch_changes(core.id);
    let journal = shared.keyspace.journal();
    core.env.hooks.set(Hooks::PROPAGATE, true);
    let pipe = streams(shared, &core.config.replication).then(|| {
        // Random enough, and as long as a mark is.
        Pipe::new(new_id(&mut core.env.random.borrow_mut()))
    });
    let target = if pipe.is_some() { "replicas sockets" } else { "disk" };
    let transfer = Arc::new(Transfer::new(Arc::clone(&cut), journal.end().0, pipe));
    shared.replication.join((&transfer, None), journal, brisk_reactor::unix_ms());
    shared.replication.snapshots.begin(&transfer);
    drop(quiesced);
    shared.log.notice(format_args!("Starting BGSAVE for SYNC with target: {target}"));
    let (own, own_cut) = (Arc::clone(&transfer), Arc::clone(&cut));
    let write = move || write(shared, (&config, &head), &own, &own_cut);
    if let Err(error) = std::thread::Builder::new().name("brisk-sync".to_owned()).spawn(write) {
        shared.log.warning(format_args!("Can't save in background: {error}"));
        end(shared, &transfer, &cut, Outcome::Failed);
    }
    tell_workers(shared);
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
        let quiesced = core.stop_others()?;
        if !waits() {
            continue;
        }
        let head = Head::now(core, VERSION).without_keys(filter.functions);
        shared.dispatch_changes(core.id);
        let journal = shared.keyspace.journal();
        core.env.hooks.set(Hooks::PROPAGATE, true);
        let pipe = Pipe::new(new_id(&mut core.env.random.borrow_mut()));
        let transfer = Arc::new(Transfer::without_keys(journal.end().0, pipe));
        shared.replication.join((&transfer, Some(filter)), journal, brisk_reactor::unix_ms());
        drop(quiesced);
        shared.log.notice(format_args!("Starting BGSAVE for SYNC with target: replicas sockets"));
        let own = Arc::clone(&transfer);
        let write = move || write_without_keys(shared, &head, &own);
        if let Err(error) = std::thread::Builder::new().name("brisk-sync".to_owned()).spawn(write) {
            shared.log.warning(format_args!("Can't save in background: {error}"));
            transfer.end(Outcome::Failed);
        }
        tell_workers(shared);
    }
    Ok(())
}

/// Writes a snapshot without keys.
fn write_without_keys(shared: &Shared, head: &Head, transfer: &Transfer) {
    let Some(pipe) = transfer.pipe() else { return };
    let is_over = || !transfer.is_wanted();
    let wake = |worker: usize| shared.mailboxes[worker].send(Message::Synchronise);
    let written = snapshot::write_without_keys(PipeWriter::new(pipe, &is_over, &wake), head);
    match written {
        Ok(()) => {
            pipe.finish();
            shared.log.notice(format_args!("Background RDB transfer terminated with success"));
            transfer.end(Outcome::Streamed);
        }
        // No replica waits for it any more.
        Err(_) => transfer.end(Outcome::Failed),
    }
    tell_workers(shared);
}

/// Whether the replicas that wait are sent the snapshot while it is written. O(replicas).
fn streams(shared: &Shared, settings: &Settings) -> bool {
    let replication = &shared.replication;
    let wants_file = |one: &ReplicaHandle| one.waits_for(None) && !one.takes_unknown_length;
    settings.repl_diskless_sync
        && replication.replicas.count(wants_file) == 0
        && !replication.snapshots.take_needs_file()
}

/// Whether a snapshot is to be begun for those that wait: one of them does not wait for others to come, or
/// has done so for long, or as many have come as are waited for. O(replicas).
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

/// The same for the timers of one worker.
pub fn begin_if_due(core: &Core) {
    // A script that takes long is in the way: at one of the next turns then.
    let _ = begin_if_possible(core);
}

/// Writes the snapshot, and tells the log.
fn write(shared: &Shared, (config, head): (&Config, &Head), transfer: &Transfer, cut: &Cut) {
    let log = &shared.log;
    let written = match transfer.pipe() {
        Some(pipe) => write_to(pipe, shared, (config, head), cut),
        None => snapshot::write_nameless(config, head, cut)
            .map_err(|failure| failure.to_string())
            .and_then(|file| Payload::new(file).map_err(|error| error.to_string()))
            .map(Outcome::File),
    };
    let what = if transfer.pipe().is_some() { "RDB transfer" } else { "saving" };
    match &written {
        Ok(_) => log.notice(format_args!("Background {what} terminated with success")),
        Err(_) if !transfer.is_wanted() => {
            log.notice(format_args!("Background {what} was given up: no replica waits for it"));
        }
        Err(failure) => {
            log.warning(format_args!("{failure}"));
            log.warning(format_args!("Background {what} error"));
        }
    }
    if written.is_err() && transfer.pipe().is_some() && cut.ran_full() {
        shared.replication.snapshots.require_file();
    }
    end(shared, transfer, cut, written.unwrap_or(Outcome::Failed));
    tell_workers(shared);
}

/// Writes it for replicas that are sent it meanwhile.
fn write_to(
    pipe: &Pipe,
    shared: &Shared,
    (config, head): (&Config, &Head),
    cut: &Cut,
) -> Result<Outcome, String> {
    let is_over = || cut.is_over();
    let wake = |worker: usize| shared.mailboxes[worker].send(Message::Synchronise);
    let out = PipeWriter::new(pipe, &is_over, &wake);
    snapshot::write_to(out, config, head, cut).map_err(|failure| failure.to_string())?;
    pipe.finish();
    Ok(Outcome::Streamed)
}

fn end(shared: &Shared, transfer: &Transfer, cut: &Cut, outcome: Outcome) {
    shared.keyspace.end_cut(cut);
    shared.replication.snapshots.end(transfer);
    transfer.end(outcome);
}

/// Has each worker look at its replicas that are not online.
fn tell_workers(shared: &Shared) {
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
        shared.mailboxes[worker].send(Message::Synchronise);
    }
}
