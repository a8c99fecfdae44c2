//! Receives a full copy of the primary's dataset, which replaces the current dataset.
//!
//! | `repl-diskless-load` | while the copy is being received | if the copy is incomplete |
//! |---|---|---|
//! | `disabled` | it is written to an unnamed file; the current dataset is served | the current dataset stays |
//! | `on-empty-db`, no keys present | it is loaded | the dataset is empty |
//! | `swapdb` | it is loaded into a second keyspace; the current dataset may be served | the current dataset stays |
//!
//! With `swapdb`, the current dataset is served if it has the same history. With a file, the current dataset is
//! discarded only after the file is complete. The dataset is then emptied while all workers are quiesced, and the file
//! is loaded while they reply LOADING. A second keyspace replaces the first while all workers are quiesced, so every
//! command sees one of the two.

use super::handshake::{Failure, Reader};
use super::payload::Payload;
use super::state::Upstream;
use super::wire::Wire;
use super::{ACK_PERIOD, UpstreamThread};
use crate::core::Core;
use crate::core::conditions::Condition;
use crate::core::shared::Shared;
use crate::persistence::aof::rewrite;
use crate::persistence::disk;
use crate::persistence::loading::discard::discard_dataset;
use crate::persistence::loading::rdb::{self, Lineage, LoadResult};
use crate::replication::follow;
use crate::replication::history::{self, Offset, ReplicationIds};
use crate::script::libraries::Policy;
use crate::script::source;
use brisk_config::choice::DisklessLoad;
use brisk_config::{Config, os_reason};
use brisk_engine::effect::Hooks;
use brisk_engine::env::Garbage;
use brisk_engine::keyspace::Keys;
use brisk_engine::{DbIndex, Keyspace};
use brisk_reactor::unix_ms;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Instant;

/// The position of the dataset: the id of a history and an offset.
type Position = (String, Offset);

/// Receives the dataset of this position and makes it the current one.
pub(super) fn receive(
    thread: &UpstreamThread,
    config: &Config,
    wire: &Wire,
    reader: &mut Reader<'_>,
    position: Position,
) -> Result<(), Failure> {
    let shared = thread.shared;
    match config.replication.repl_diskless_load {
        DisklessLoad::SwapDb => load_and_swap(thread, reader, position)?,
        DisklessLoad::OnEmptyDb if !shared.keyspace.has_keys() => {
            load_as_it_comes(thread, wire, reader, position)?
        }
        _ => load_from_file(thread, config, wire, reader, position)?,
    }
    let upper = shared.primary_words().upper;
    shared.log.notice(format_args!("{upper} <-> REPLICA sync: Finished with success"));
    Ok(())
}

fn load_from_file(
    thread: &UpstreamThread,
    config: &Config,
    wire: &Wire,
    reader: &mut Reader<'_>,
    position: Position,
) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let file = receive_file(thread, config, reader)?;
    discard_present(thread, wire)?;
    let loaded = load_in_background(thread, wire, file)
        .and_then(|result| put_in_force(thread, result, position));
    if let Err(failure) = loaded {
        let upper = thread.shared.primary_words().upper;
        log.warning(format_args!("Failed trying to load the {upper} synchronization DB from disk"));
        discard_failed(thread)?;
        return Err(failure);
    }
    Ok(())
}

fn load_as_it_comes(
    thread: &UpstreamThread,
    wire: &Wire,
    reader: &mut Reader<'_>,
    position: Position,
) -> Result<(), Failure> {
    let mut payload = Payload::begin(thread, reader, "parser")?;
    // The dataset may have received keys since the check, and it may contain libraries.
    discard_present(thread, wire)?;
    let loaded = load_payload(thread, &mut payload, &thread.shared.keyspace);
    if let Err(failure) = loaded.and_then(|result| put_in_force(thread, result, position)) {
        discard_failed(thread)?;
        return Err(failure);
    }
    Ok(())
}

fn load_and_swap(
    thread: &UpstreamThread,
    reader: &mut Reader<'_>,
    position: Position,
) -> Result<(), Failure> {
    let shared = thread.shared;
    let mut payload = Payload::begin(thread, reader, "parser")?;
    let ours = &shared.keyspace;
    let new_keyspace = Arc::new(Keyspace::new(ours.database_count(), ours.hasher().clone()));
    // With the same history, the current dataset is an older state of the same data and is served.
    let is_same_history = shared.replication.history.ids().id == position.0;
    let condition = if is_same_history { Condition::AsyncLoading } else { Condition::Loading };
    thread.when_quiesced(move |core| core.shared.conditions.set(condition, true))?;
    let loaded = load_payload(thread, &mut payload, &new_keyspace);
    let swapped =
        loaded.and_then(|result| swap(thread, result, Arc::clone(&new_keyspace), position));
    if swapped.is_err() {
        let log = &shared.log;
        let upper = thread.shared.primary_words().upper;
        log.notice(format_args!("{upper} <-> REPLICA sync: Discarding temporary DB in background"));
    }
    // Loading is over in any case, even after an error.
    shared.conditions.set(condition, false);
    swapped
}

/// Loads the dataset while it is being received, up to its length or mark.
fn load_payload(
    thread: &UpstreamThread,
    payload: &mut Payload<'_, '_>,
    keyspace: &Keyspace,
) -> Result<LoadResult, Failure> {
    let log = &thread.shared.log;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Loading DB in memory"));
    let total = payload.total();
    let loaded = rdb::load_stream(thread.shared, &mut *payload, total, keyspace);
    let loaded = match loaded {
        Ok(loaded) => payload.finish().map(|()| loaded),
        Err(error) => {
            let failure = payload.take_failure();
            Err(failure.unwrap_or_else(|| Failure::Refused(error.to_string())))
        }
    };
    if loaded.is_err() {
        let upper = thread.shared.primary_words().upper;
        log.warning(format_args!(
            "Failed trying to load the {upper} synchronization DB from socket, check server logs."
        ));
    }
    loaded
}

fn receive_file(
    thread: &UpstreamThread,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<File, Failure> {
    let mut payload = Payload::begin(thread, reader, "disk")?;
    let upper = thread.shared.primary_words().upper;
    let cannot = |error: io::Error| {
        let reason = os_reason(&error);
        Failure::Refused(format!(
            "Write error or short write writing to the DB dump file needed for {upper} <-> REPLICA \
             synchronization: {reason}"
        ))
    };
    let name = format!("temp-thread-{}.rdb", std::process::id());
    let mut file = disk::nameless(config.process.dir.as_path(), &name).map_err(cannot)?;
    // The file is never synced: it has no name, so no restart can use it. If there is enough memory, it is loaded and
    // freed before the kernel writes any of it to the disk.
    while let Some(part) = payload.next()? {
        file.write_all(&part).map_err(cannot)?;
    }
    file.rewind().map_err(cannot)?;
    Ok(file)
}

/// Discards the dataset. From now on, commands get the error LOADING. The memory is freed before loading begins, unless
/// `replica-lazy-flush` is on.
fn discard_present(thread: &UpstreamThread, wire: &Wire) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Flushing old data"));
    let mut last_sign_of_life = Instant::now();
    for garbage in empty(thread)? {
        drop(garbage);
        if last_sign_of_life.elapsed() >= ACK_PERIOD {
            // If the connection is lost, the next read fails.
            let _ = wire.write(b"\n");
            last_sign_of_life = Instant::now();
        }
    }
    Ok(())
}

/// Empties the dataset and returns the garbage that is still to be freed.
fn empty(thread: &UpstreamThread) -> Result<Vec<Garbage>, Failure> {
    let upstream = Arc::clone(&thread.upstream);
    thread.when(move |core| {
        if !end_snapshots(core.shared) {
            return None;
        }
        upstream.note_discarded();
        leave_history(core.shared);
        core.shared.conditions.set(Condition::Loading, true);
        core.shared.keyspace.forget_replica_expires();
        discard_dataset(core);
        let garbage = match core.shared.config().replication.replica_lazy_flush {
            true => Vec::new(),
            false => std::mem::take(&mut *core.env.garbage.borrow_mut()),
        };
        core.free_garbage();
        Some(garbage)
    })
}

/// Aborts snapshots that are being written, because another history follows. Returns true if none is left.
fn end_snapshots(shared: &Shared) -> bool {
    let is_written = shared.keyspace.is_emitting() || rewrite::is_running(shared);
    if is_written {
        shared.persistence.snapshots.abandon();
        shared.replication.snapshots.give_up("another dataset takes the place of this one");
        rewrite::give_up(shared, "another dataset takes the place of this one");
    }
    !is_written
}

/// Ends the current history: the append-only file is closed, replicas are disconnected, and the backlog is
/// dropped.
fn leave_history(shared: &Shared) {
    rewrite::close(shared);
    follow::disconnect_all(shared);
    shared.replication.forget_backlog();
}

/// Replaces the keyspace with the newly loaded one.
fn swap(
    thread: &UpstreamThread,
    result: LoadResult,
    new_keyspace: Arc<Keyspace>,
    (id, offset): Position,
) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Swapping active DB with loaded DB"));
    let LoadResult { functions, lineage, .. } = result;
    let upstream = Arc::clone(&thread.upstream);
    let swapped = thread.when(move |core| {
        if !end_snapshots(core.shared) {
            return None;
        }
        let sources = functions.iter().map(Vec::as_slice);
        // If a library is rejected here, nothing has been changed.
        if let Err(error) = source::restore(core, sources, Policy::Flush) {
            return Some(Err(error.to_string()));
        }
        leave_history(core.shared);
        let mut keys = Keys::unlocked(&core.shared.keyspace, &core.env, DbIndex::FIRST);
        keys.adopt(&new_keyspace);
        core.shared.keyspace.forget_replica_expires();
        keys.invalidate_all();
        keys.close_without_effects();
        core.free_garbage();
        follow_from(core, &upstream, &lineage, (id.clone(), offset));
        Some(Ok(()))
    })?;
    swapped.map_err(refused_library)?;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Discarding old DB in background"));
    Ok(())
}

fn refused_library(why: String) -> Failure {
    Failure::Refused(format!("A library of functions: {why}"))
}

/// Loads the file on a second thread, while this thread shows the primary that the replica is alive.
fn load_in_background(
    thread: &UpstreamThread,
    wire: &Wire,
    file: File,
) -> Result<LoadResult, Failure> {
    let shared = thread.shared;
    let upper = shared.primary_words().upper;
    shared.log.notice(format_args!("{upper} <-> REPLICA sync: Loading DB in memory"));
    let (done, is_done) = sync_channel(1);
    let load = move || {
        let _ = done.send(rdb::load_received(shared, file));
    };
    let thread = std::thread::Builder::new().name("brisk-load".to_owned()).spawn(load);
    thread.map_err(Failure::Io)?;
    loop {
        match is_done.recv_timeout(ACK_PERIOD) {
            Ok(loaded) => return loaded.map_err(|error| Failure::Refused(error.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                // If the connection is lost, the next read fails.
                let _ = wire.write(b"\n");
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Unwanted),
        }
    }
}

/// Makes the loaded dataset the current dataset, with which this server follows the primary.
fn put_in_force(
    thread: &UpstreamThread,
    result: LoadResult,
    position: Position,
) -> Result<(), Failure> {
    let LoadResult { functions, awaited, lineage, .. } = result;
    let restored = thread.on_worker(move |core| {
        core.env.announce_awaited(awaited);
        let sources = functions.iter().map(Vec::as_slice);
        source::restore(core, sources, Policy::Flush).map_err(|error| error.to_string())
    })?;
    restored.map_err(refused_library)?;
    let upstream = Arc::clone(&thread.upstream);
    thread.when_quiesced(move |core| follow_from(core, &upstream, &lineage, position.clone()))
}

/// Sets the position of the dataset and begins to execute the stream after it. All other workers are
/// quiesced.
fn follow_from(core: &Core, upstream: &Upstream, lineage: &Lineage, (id, offset): Position) {
    let (shared, journal) = (core.shared, core.shared.keyspace.journal());
    let replication = &shared.replication;
    // Dispatch the rest of the previous history, so that replicas of the next history do not receive it.
    shared.dispatch_changes(core.id);
    replication.history.adopt(ReplicationIds { id, former: None }, offset, journal.end());
    replication.begin_backlog(journal.end(), unix_ms());
    core.env.hooks.set(Hooks::PROPAGATE, true);
    upstream.set_stream_db(lineage.db.unwrap_or_default());
    upstream.stream.begin();
    upstream.note_whole();
    end_loading(core);
}

/// Makes the dataset usable again.
fn end_loading(core: &Core) {
    let shared = core.shared;
    if shared.config().persistence.appendonly {
        shared.persistence.aof.schedule_rewrite();
    }
    shared.observe.metrics.sample_memory();
    shared.conditions.end_loading();
}

/// Discards a dataset that could not be loaded. The empty dataset has a history of its own.
fn discard_failed(thread: &UpstreamThread) -> Result<(), Failure> {
    thread.when_quiesced(|core| {
        discard_dataset(core);
        let id = history::new_id(&mut core.env.random.borrow_mut());
        core.shared.replication.history.restart(id);
        end_loading(core);
    })
}
