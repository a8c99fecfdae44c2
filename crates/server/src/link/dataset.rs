//! A full copy: received into a file, and loaded in place of what was there.
//!
//! The file is whole before anything is thrown away, so that a connection that breaks leaves the replica
//! with what it had. Then the dataset is emptied while all workers stand still, and loaded while they
//! answer that it is being loaded.

use super::handshake::{Failure, Reader};
use super::wire::Wire;
use super::{ACK_PERIOD, Link};
use crate::commands::scripting::libraries;
use crate::loading::aof::forget;
use brisk_config::{Config, os_reason};
use brisk_engine::DbIndex;
use brisk_engine::effect::Hooks;
use brisk_node::core::Core;
use brisk_node::core::shared::armed;
use brisk_node::persistence::aof::rewrite;
use brisk_node::persistence::loading::{self, Beside};
use brisk_node::replication::follow;
use brisk_node::replication::history::{self, Ids};
use brisk_node::script::libraries::Policy;
use brisk_reactor::unix_ms;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

/// Length of what marks the end of a dataset whose length is not told.
const MARK_LEN: usize = 40;
/// What came is put on the disk each so many bytes: the system would else do it all at once.
const SYNC_EACH: u64 = 8 << 20;

/// How the end of the dataset is known.
enum End {
    Length(u64),
    Mark(Vec<u8>),
}

/// Takes the dataset in, as of `offset` of the history `id`.
pub(super) fn take(
    link: &Link,
    config: &Config,
    wire: &Wire,
    reader: &mut Reader<'_>,
    (id, offset): (String, u64),
) -> Result<(), Failure> {
    let log = &link.shared.log;
    let file = receive(link, config, reader)?;
    log.notice(format_args!("MASTER <-> REPLICA sync: Flushing old data"));
    empty(link)?;
    log.notice(format_args!("MASTER <-> REPLICA sync: Loading DB in memory"));
    let loaded =
        load_beside(link, wire, file).and_then(|loaded| put_in_force(link, loaded, id, offset));
    if let Err(failure) = loaded {
        log.warning(format_args!("Failed trying to load the MASTER synchronization DB from disk"));
        give_up(link)?;
        return Err(failure);
    }
    log.notice(format_args!("MASTER <-> REPLICA sync: Finished with success"));
    Ok(())
}

fn receive(link: &Link, config: &Config, reader: &mut Reader<'_>) -> Result<File, Failure> {
    let line = reader.line()?;
    let end = end_of(&line)?;
    let log = &link.shared.log;
    match &end {
        End::Length(bytes) => log.notice(format_args!(
            "MASTER <-> REPLICA sync: receiving {bytes} bytes from master to disk"
        )),
        End::Mark(_) => log.notice(format_args!(
            "MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF to disk"
        )),
    }
    let primary = link.primary();
    let total = if let End::Length(bytes) = end { Some(bytes) } else { None };
    primary.note_incoming(|incoming| incoming.total = total);
    let cannot = |error: io::Error| {
        let reason = os_reason(&error);
        Failure::Refused(format!(
            "Write error or short write writing to the DB dump file needed for MASTER <-> REPLICA \
             synchronization: {reason}"
        ))
    };
    let mut file = nameless(config).map_err(cannot)?;
    let mut sink = Sink { end, read: 0, tail: Vec::new() };
    let mut synced = 0;
    while !sink.is_whole() {
        let Some(bytes) = reader.next()? else { continue };
        let (part, rest) = sink.take(bytes);
        file.write_all(&part).map_err(cannot)?;
        reader.put_back(rest);
        primary.note_incoming(|incoming| {
            (incoming.read, incoming.last_ms) = (sink.read, unix_ms());
        });
        if sink.read - synced >= SYNC_EACH {
            file.sync_data().map_err(cannot)?;
            synced = sink.read;
        }
    }
    if let End::Mark(_) = sink.end {
        file.set_len(sink.read - MARK_LEN as u64).map_err(cannot)?;
    }
    file.rewind().map_err(cannot)?;
    Ok(file)
}

/// `$<bytes>` or `$EOF:<mark>`.
fn end_of(line: &[u8]) -> Result<End, Failure> {
    let text = String::from_utf8_lossy(line);
    if let Some(reason) = text.strip_prefix('-') {
        let text = format!("MASTER aborted replication with an error: {reason}");
        return Err(Failure::Refused(text));
    }
    let end = line.strip_prefix(b"$").and_then(|end| match end.strip_prefix(b"EOF:") {
        Some(mark) => (mark.len() == MARK_LEN).then(|| End::Mark(mark.to_vec())),
        None => std::str::from_utf8(end).ok()?.parse().ok().map(End::Length),
    });
    end.ok_or_else(|| {
        let text = text.escape_debug();
        Failure::Refused(format!(
            "Bad protocol from MASTER, the first byte is not '$' (we received '{text}'), are you \
             sure the host and port are right?"
        ))
    })
}

/// What is written of what comes.
struct Sink {
    end: End,
    read: u64,
    /// The last bytes, if they may be the mark.
    tail: Vec<u8>,
}

impl Sink {
    fn is_whole(&self) -> bool {
        match &self.end {
            End::Length(bytes) => self.read == *bytes,
            End::Mark(mark) => self.tail == *mark,
        }
    }

    /// What of these bytes belongs to the file, and what comes behind it. Nothing comes behind a mark: the
    /// primary waits for an acknowledgement.
    fn take(&mut self, mut bytes: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        let mut rest = Vec::new();
        match &self.end {
            End::Length(total) => {
                let wanted = usize::try_from(total - self.read).unwrap_or(usize::MAX);
                if bytes.len() > wanted {
                    rest = bytes.split_off(wanted);
                }
            }
            End::Mark(_) => {
                let kept = bytes.len().min(MARK_LEN);
                self.tail.extend_from_slice(&bytes[bytes.len() - kept..]);
                let surplus = self.tail.len().saturating_sub(MARK_LEN);
                self.tail.drain(..surplus);
            }
        }
        self.read += bytes.len() as u64;
        (bytes, rest)
    }
}

/// A file that is gone with this process, whatever becomes of it.
fn nameless(config: &Config) -> io::Result<File> {
    let name = format!("temp-link-{}.rdb", std::process::id());
    let path = config.process.dir.as_path().join(name);
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Nothing is there any more, and who asks is told that the dataset is being loaded. Snapshots that are
/// being written end before: what follows is another history.
fn empty(link: &Link) -> Result<(), Failure> {
    link.when(|core| {
        let shared = core.shared;
        if shared.keyspace.is_emitting() || rewrite::is_running(shared) {
            shared.snapshots.abandon();
            shared.replication.give_up("another dataset takes the place of this one");
            rewrite::give_up(shared, "another dataset takes the place of this one");
            return None;
        }
        rewrite::close(shared);
        follow::disconnect_all(shared);
        shared.replication.feed.forget_backlog();
        shared.arm(armed::LOADING, true);
        forget(core);
        core.free_garbage();
        Some(())
    })
}

/// Loads the file on a thread beside this one, which shows the primary meanwhile that it lives.
fn load_beside(link: &Link, wire: &Wire, file: File) -> Result<Beside, Failure> {
    let shared = link.shared;
    let (done, is_done) = sync_channel(1);
    let load = move || {
        let _ = done.send(loading::load_received(shared, file));
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
fn put_in_force(link: &Link, loaded: Beside, id: String, offset: u64) -> Result<(), Failure> {
    let Beside { functions, awaited, lineage, .. } = loaded;
    let restored = link.on_worker(move |core| {
        core.env.take_awaited(awaited);
        let sources = functions.iter().map(Vec::as_slice);
        libraries::restore_sources(core, sources, Policy::Flush).map_err(|error| error.to_string())
    })?;
    restored.map_err(|why| Failure::Refused(format!("A library of functions: {why}")))?;
    let ids = Ids { id, former: None };
    link.when_still(move |core| {
        let (shared, journal) = (core.shared, core.shared.keyspace.journal());
        let replication = &shared.replication;
        // What is left of the history before is for nobody who follows.
        shared.pump(core.id);
        replication.history.adopt(ids.clone(), offset, journal.end());
        replication.feed.begin_backlog(journal.end(), unix_ms());
        core.env.hooks.set(Hooks::PROPAGATE, true);
        replication.primary.set_stream_db(lineage.db.unwrap_or(DbIndex(0)));
        replication.primary.stream.begin();
        open(core);
    })
}

/// The dataset can be used again.
fn open(core: &Core) {
    let shared = core.shared;
    if shared.config().persistence.appendonly {
        shared.aof.schedule_rewrite();
    }
    shared.observe.figures.sample_memory();
    shared.arm(armed::LOADING, false);
}

/// It could not be loaded: there is none, and it is nobody's.
fn give_up(link: &Link) -> Result<(), Failure> {
    link.when_still(|core| {
        forget(core);
        let id = history::new_id(&mut core.env.random.borrow_mut());
        core.shared.replication.history.begin_anew(id);
        open(core);
    })
}
