//! A full copy: received, and put in the place of what was there.
//!
//! | `repl-diskless-load` | while it comes | if it does not come whole |
//! |---|---|---|
//! | `disabled` | goes into a nameless file; what was there stays and is served | nothing has happened |
//! | `on-empty-db`, nothing there | is loaded | nothing is there |
//! | `swapdb` | is loaded beside what was there, which is served if it is of the same history | nothing has happened |
//!
//! A file is whole before anything is thrown away. Then the dataset is emptied while all workers stand
//! still, and loaded while they answer that it is being loaded. What was loaded beside takes the other's
//! place while all stand still, so everybody sees one or the other.

use super::handshake::{Failure, Reader};
use super::payload::Payload;
use super::state::Upstream;
use super::wire::Wire;
use super::{ACK_PERIOD, UpstreamThread};
use crate::core::Core;
use crate::core::shared::{Shared, armed};
use crate::persistence::aof::rewrite;
use crate::persistence::disk;
use crate::persistence::loading::discard::discard_dataset;
use crate::persistence::loading::rdb::{self, Beside, Lineage};
use crate::replication::follow;
use crate::replication::history::{self, Ids, Offset};
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

/// What came is put on the disk each so many bytes: the system would else do it all at once.
const SYNC_EACH: u64 = 8 << 20;

/// The place of the dataset: so many bytes of this history.
type Place = (String, Offset);

/// Takes the dataset in, as of `place`.
pub(super) fn take(
    thread: &UpstreamThread,
    config: &Config,
    wire: &Wire,
    reader: &mut Reader<'_>,
    place: Place,
) -> Result<(), Failure> {
    let shared = thread.shared;
    match config.replication.repl_diskless_load {
        DisklessLoad::SwapDb => load_and_swap(thread, reader, place)?,
        DisklessLoad::OnEmptyDb if is_empty(shared) => {
            load_as_it_comes(thread, wire, reader, place)?
        }
        _ => load_from_file(thread, config, wire, reader, place)?,
    }
    let upper = shared.primary_words().upper;
    shared.log.notice(format_args!("{upper} <-> REPLICA sync: Finished with success"));
    Ok(())
}

fn is_empty(shared: &Shared) -> bool {
    let keyspace = &shared.keyspace;
    keyspace.databases().all(|db| keyspace.key_count(db) == 0)
}

fn load_from_file(
    thread: &UpstreamThread,
    config: &Config,
    wire: &Wire,
    reader: &mut Reader<'_>,
    place: Place,
) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let file = receive(thread, config, reader)?;
    make_room(thread, wire)?;
    let loaded =
        load_beside(thread, wire, file).and_then(|loaded| put_in_force(thread, loaded, place));
    if let Err(failure) = loaded {
        let upper = thread.shared.primary_words().upper;
        log.warning(format_args!("Failed trying to load the {upper} synchronization DB from disk"));
        give_up(thread)?;
        return Err(failure);
    }
    Ok(())
}

fn load_as_it_comes(
    thread: &UpstreamThread,
    wire: &Wire,
    reader: &mut Reader<'_>,
    place: Place,
) -> Result<(), Failure> {
    let mut payload = Payload::begin(thread, reader, "parser")?;
    // It may have got keys since, and libraries it may have anyway.
    make_room(thread, wire)?;
    let loaded = load_payload(thread, &mut payload, &thread.shared.keyspace);
    if let Err(failure) = loaded.and_then(|loaded| put_in_force(thread, loaded, place)) {
        give_up(thread)?;
        return Err(failure);
    }
    Ok(())
}

fn load_and_swap(
    thread: &UpstreamThread,
    reader: &mut Reader<'_>,
    place: Place,
) -> Result<(), Failure> {
    let shared = thread.shared;
    let mut payload = Payload::begin(thread, reader, "parser")?;
    let ours = &shared.keyspace;
    let beside = Arc::new(Keyspace::new(ours.database_count(), ours.hasher().clone()));
    // Then what is there is an older state of the same data. Other data nobody is told of any more.
    let is_same_history = shared.replication.history.ids().id == place.0;
    let bit = if is_same_history { armed::ASYNC_LOADING } else { armed::LOADING };
    thread.when_still(move |core| core.shared.arm(bit, true))?;
    let loaded = load_payload(thread, &mut payload, &beside);
    let swapped = loaded.and_then(|loaded| swap(thread, loaded, Arc::clone(&beside), place));
    if swapped.is_err() {
        let log = &shared.log;
        let upper = thread.shared.primary_words().upper;
        log.notice(format_args!("{upper} <-> REPLICA sync: Discarding temporary DB in background"));
    }
    // Whatever has become of it, and also if nobody wants it any more.
    shared.arm(bit, false);
    swapped
}

/// Loads what comes, up to what says that this was all.
fn load_payload(
    thread: &UpstreamThread,
    payload: &mut Payload<'_, '_>,
    keyspace: &Keyspace,
) -> Result<Beside, Failure> {
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

fn receive(
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
    let mut unsynced = 0;
    while let Some(part) = payload.next()? {
        file.write_all(&part).map_err(cannot)?;
        unsynced += part.len() as u64;
        if unsynced >= SYNC_EACH {
            file.sync_data().map_err(cannot)?;
            unsynced = 0;
        }
    }
    file.rewind().map_err(cannot)?;
    Ok(file)
}

/// Nothing is there any more, and who asks is told that the dataset is being loaded. The memory is free
/// before anything is loaded, unless `replica-lazy-flush` is on.
fn make_room(thread: &UpstreamThread, wire: &Wire) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Flushing old data"));
    let mut told = Instant::now();
    for thing in empty(thread)? {
        drop(thing);
        if told.elapsed() >= ACK_PERIOD {
            // If it is gone the stream will tell.
            let _ = wire.write(b"\n");
            told = Instant::now();
        }
    }
    Ok(())
}

/// Empties the dataset, and gives what is still to be freed.
fn empty(thread: &UpstreamThread) -> Result<Vec<Garbage>, Failure> {
    thread.when(|core| {
        if !end_snapshots(core.shared) {
            return None;
        }
        leave_history(core.shared);
        core.shared.arm(armed::LOADING, true);
        core.shared.keyspace.forget_own_deadlines();
        discard_dataset(core);
        let garbage = match core.shared.config().replication.replica_lazy_flush {
            true => Vec::new(),
            false => std::mem::take(&mut *core.env.garbage.borrow_mut()),
        };
        core.free_garbage();
        Some(garbage)
    })
}

/// Has snapshots that are being written end before what follows, which is another history; whether there
/// are none.
fn end_snapshots(shared: &Shared) -> bool {
    let is_written = shared.keyspace.is_emitting() || rewrite::is_running(shared);
    if is_written {
        shared.snapshots.abandon();
        shared.replication.give_up("another dataset takes the place of this one");
        rewrite::give_up(shared, "another dataset takes the place of this one");
    }
    !is_written
}

/// Neither the append-only file nor any replica gets more of what this server had.
fn leave_history(shared: &Shared) {
    rewrite::close(shared);
    follow::disconnect_all(shared);
    shared.replication.feed.forget_backlog();
}

/// What was loaded beside takes the place of what is there.
fn swap(
    thread: &UpstreamThread,
    loaded: Beside,
    beside: Arc<Keyspace>,
    (id, offset): Place,
) -> Result<(), Failure> {
    let log = &thread.shared.log;
    let upper = thread.shared.primary_words().upper;
    log.notice(format_args!("{upper} <-> REPLICA sync: Swapping active DB with loaded DB"));
    let Beside { functions, lineage, .. } = loaded;
    let upstream = Arc::clone(&thread.upstream);
    let swapped = thread.when(move |core| {
        if !end_snapshots(core.shared) {
            return None;
        }
        let sources = functions.iter().map(Vec::as_slice);
        // If they are none nothing has happened.
        if let Err(error) = source::restore(core, sources, Policy::Flush) {
            return Some(Err(error.to_string()));
        }
        leave_history(core.shared);
        let mut keys = Keys::unlocked(&core.shared.keyspace, &core.env, DbIndex::FIRST);
        keys.adopt(&beside);
        core.shared.keyspace.forget_own_deadlines();
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

/// Loads the file on a thread beside this one, which shows the primary meanwhile that it lives.
fn load_beside(thread: &UpstreamThread, wire: &Wire, file: File) -> Result<Beside, Failure> {
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
                // If it is gone the stream will tell.
                let _ = wire.write(b"\n");
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Unwanted),
        }
    }
}

/// The loaded dataset is the one that this server follows the primary with.
fn put_in_force(thread: &UpstreamThread, loaded: Beside, place: Place) -> Result<(), Failure> {
    let Beside { functions, awaited, lineage, .. } = loaded;
    let restored = thread.on_worker(move |core| {
        core.env.take_awaited(awaited);
        let sources = functions.iter().map(Vec::as_slice);
        source::restore(core, sources, Policy::Flush).map_err(|error| error.to_string())
    })?;
    restored.map_err(refused_library)?;
    let upstream = Arc::clone(&thread.upstream);
    thread.when_still(move |core| follow_from(core, &upstream, &lineage, place.clone()))
}

/// The dataset is that of this place, and what follows it is executed. All other workers stand still.
fn follow_from(core: &Core, upstream: &Upstream, lineage: &Lineage, (id, offset): Place) {
    let (shared, journal) = (core.shared, core.shared.keyspace.journal());
    let replication = &shared.replication;
    // What is left of the history before is for nobody who follows.
    shared.pump(core.id);
    replication.history.adopt(Ids { id, former: None }, offset, journal.end());
    replication.feed.begin_backlog(journal.end(), unix_ms());
    core.env.hooks.set(Hooks::PROPAGATE, true);
    upstream.set_stream_db(lineage.db.unwrap_or_default());
    upstream.stream.begin();
    open(core);
}

/// The dataset can be used again.
fn open(core: &Core) {
    let shared = core.shared;
    if shared.config().persistence.appendonly {
        shared.aof.schedule_rewrite();
    }
    shared.observe.figures.sample_memory();
    shared.arm(armed::LOADING | armed::ASYNC_LOADING, false);
}

/// It could not be loaded: there is none, and it is nobody's.
fn give_up(thread: &UpstreamThread) -> Result<(), Failure> {
    thread.when_still(|core| {
        discard_dataset(core);
        let id = history::new_id(&mut core.env.random.borrow_mut());
        core.shared.replication.history.begin_anew(id);
        open(core);
    })
}
