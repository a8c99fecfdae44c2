//! Loads an RDB file into the keyspace. One thread reads and splits the file; other threads build the values and insert
//! them.
//!
//! ```text
//!           entries in blocks of 256 KiB            ┌─► decode, build, insert ──┐
//! file ──► RdbSplitter ──────────────────────► Queue ──┼─► decode, build, insert ──┼─► keyspace
//!     checksum; where entries end                   └─► ...      slot locks     ┘
//! ```
//!
//! During the load, no command accesses keys. At startup, the gate rejects such commands
//! ([`crate::core::conditions::Condition::Loading`]). After startup, all workers are quiesced.

use super::queue::{Part, Queue};
use crate::core::Core;
use crate::core::engine_settings;
use crate::core::shared::Shared;
use crate::persistence::snapshot::{RECEIVED, Source, Unreadable};
use crate::persistence::state::Loading;
use crate::replication::history::{self, Offset};
use brisk_config::Config;
use brisk_engine::loader::{AwaitedKeys, Loader};
use brisk_engine::random::Random;
use brisk_engine::snapshot::{Duplicate, ExpiredKeys, LoadFailure, LoadSummary, database};
use brisk_engine::{DbIndex, DbNumber, Env, Keyspace, Settings, UnixMs};
use brisk_observe::log::Log;
use brisk_persist::rdb::{Checksum, RdbEvent, RdbPiece, RdbSplitter};
use brisk_reactor::unix_ms;
use brisk_structures::reclaim::{self, Participant};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread::{Builder, ScopedJoinHandle, park_timeout, scope};
use std::time::{Duration, Instant};

/// Maximum number of loading threads. One reading thread cannot keep more of them busy.
const THREADS_MAX: usize = 16;
/// Every entry has at least this many bytes: a type, a key, and a value.
const ENTRY_BYTES_MIN: u64 = 3;
/// Maximum number of keys for which room is reserved in advance when the length of the file is
/// unknown.
const EXPECTED_MAX: u64 = 1 << 24;
/// Maximum number of empty keys that are named in the log.
const EMPTY_KEYS_LOGGED_MAX: u64 = 10;
/// During a pause for `key-load-delay`, how often the thread checks whether the setting has changed.
const DELAY_SLICE: Duration = Duration::from_millis(5);

/// A failure, and the position up to which the file was read.
type Failed = (LoadFailure, u64);

/// The result of a loading thread.
type Done = Result<(LoadSummary, AwaitedKeys), Failed>;

/// Loads the keys of the file at startup, when no client accesses keys. O(file).
///
/// # Errors
/// The reason why the file cannot be loaded. A part of its keys may have been loaded.
pub fn load_at_start(shared: &Shared) -> Result<LoadResult, Unreadable> {
    let config = shared.config();
    let settings = engine_settings::in_force(shared, &config);
    // Expired keys are not loaded, except by a replica.
    let now = UnixMs(unix_ms());
    let keeps_expired = shared.conditions.is_replica();
    let expired_bytes_max = config.replication.repl_backlog_size;
    let (keyspace, duplicate) = (&shared.keyspace, Duplicate::Refuse);
    let how =
        LoadParameters { keyspace, settings, now, keeps_expired, expired_bytes_max, duplicate };
    load(shared, &config, &how)
}

/// Loads the keys of the file. Called only while all other workers are quiesced. O(file).
///
/// # Errors
/// As in [`load_at_start`].
pub fn reload(core: &Core, duplicate: Duplicate) -> Result<(), Unreadable> {
    let how = LoadParameters {
        keyspace: &core.shared.keyspace,
        settings: core.env.settings.clone(),
        now: core.env.now(),
        keeps_expired: core.shared.conditions.is_replica()
            || core.shared.replication.stream.has_backlog(),
        expired_bytes_max: 0,
        duplicate,
    };
    // The loading threads free replaced values, which is possible only while this thread is offline.
    let loaded = reclaim::offline_while(|| load(core.shared, &core.config, &how));
    core.env.announce_awaited(loaded?.awaited);
    Ok(())
}

/// At startup, loads the snapshot at the beginning of an append-only file. Keys that have expired since the snapshot
/// was taken are loaded as well, because later commands in the file may use them. Returns the end of the snapshot in
/// the file, and the sources of its libraries. O(snapshot).
///
/// # Errors
/// As in [`load_at_start`].
pub fn load_base_at_start(shared: &Shared, path: &Path) -> Result<(u64, Vec<Vec<u8>>), Unreadable> {
    let config = shared.config();
    let settings = engine_settings::in_force(shared, &config);
    // No client waits for keys yet.
    let loaded = load_base_by(shared, &config, settings, path)?;
    Ok((loaded.end, loaded.functions))
}

/// Loads the base of an append-only file while all other workers are quiesced.
///
/// # Errors
/// As in [`load_at_start`].
pub fn load_base(core: &Core, path: &Path) -> Result<(u64, Vec<Vec<u8>>), Unreadable> {
    let settings = core.env.settings.clone();
    let load = || load_base_by(core.shared, &core.config, settings, path);
    let loaded = reclaim::offline_while(load)?;
    core.env.announce_awaited(loaded.awaited);
    Ok((loaded.end, loaded.functions))
}

fn load_base_by(
    shared: &Shared,
    config: &Config,
    settings: Settings,
    path: &Path,
) -> Result<LoadResult, Unreadable> {
    let how = LoadParameters::repeating(&shared.keyspace, settings);
    load_from(shared, config, &how, &Source::open_at(path.to_path_buf())?)
}

/// The result of a load, in addition to the loaded keys: libraries, lineage, and keys that were skipped or that clients
/// wait for.
#[derive(Default)]
pub struct LoadResult {
    /// The sources of the dataset's libraries.
    pub functions: Vec<Vec<u8>>,
    /// Loaded keys for which clients are waiting.
    pub awaited: AwaitedKeys,
    /// The history and the offset at which the dataset was written.
    pub lineage: Lineage,
    /// Keys that were left out because they had expired.
    pub expired_keys: ExpiredKeys,
    /// The end of the dataset in its file.
    end: u64,
}

/// The history and the offset at which a dataset was written, if the file contains them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    pub id: Option<String>,
    pub offset: Option<Offset>,
    /// The number of the database that the stream had selected.
    pub db: Option<DbNumber>,
}

/// Loads a dataset that a primary has sent, including expired keys, because the primary removes them. During the load,
/// the gate rejects commands that access keys. O(file).
///
/// # Errors
/// As in [`load_at_start`].
pub fn load_received(shared: &Shared, file: File) -> Result<LoadResult, Unreadable> {
    let config = shared.config();
    let settings = engine_settings::in_force(shared, &config);
    let how = LoadParameters::repeating(&shared.keyspace, settings);
    let source = Source::nameless(file)?;
    shared.persistence.snapshots.loading.begin(source.bytes);
    load_from(shared, &config, &how, &source)
}

/// Loads a dataset from a stream into `keyspace`, which is the server's keyspace or one that no other thread can
/// access. `bytes` is the length of the stream, if known. The stream's reader runs on this thread. O(stream).
///
/// # Errors
/// As in [`load_at_start`].
pub fn load_stream(
    shared: &Shared,
    stream: impl Read,
    bytes: Option<u64>,
    keyspace: &Keyspace,
) -> Result<LoadResult, Unreadable> {
    let config = shared.config();
    let how = LoadParameters::repeating(keyspace, engine_settings::in_force(shared, &config));
    shared.persistence.snapshots.loading.begin(bytes.unwrap_or(0));
    load_reader(shared, &config, &how, (stream, bytes)).map_err(|(failure, position)| {
        let path = PathBuf::from(RECEIVED);
        Unreadable { failure, path, position, bytes }
    })
}

/// The parameters of loading that all threads use.
struct LoadParameters<'k> {
    /// The destination of the keys.
    keyspace: &'k Keyspace,
    settings: Settings,
    now: UnixMs,
    /// True if expired keys are loaded because later commands or the primary delete them.
    keeps_expired: bool,
    /// Maximum total length of the names of keys that were not loaded, in bytes.
    expired_bytes_max: u64,
    duplicate: Duplicate,
}

impl LoadParameters<'_> {
    /// Loads everything, because later commands delete keys that have expired.
    fn repeating(keyspace: &Keyspace, settings: Settings) -> LoadParameters<'_> {
        let (now, duplicate) = (UnixMs(0), Duplicate::Refuse);
        LoadParameters {
            keyspace,
            settings,
            now,
            keeps_expired: true,
            expired_bytes_max: 0,
            duplicate,
        }
    }
}

fn load(
    shared: &Shared,
    config: &Config,
    how: &LoadParameters<'_>,
) -> Result<LoadResult, Unreadable> {
    let source = Source::open(config)?;
    shared.persistence.snapshots.loading.begin(source.bytes);
    load_from(shared, config, how, &source)
}

fn load_from(
    shared: &Shared,
    config: &Config,
    how: &LoadParameters<'_>,
    source: &Source,
) -> Result<LoadResult, Unreadable> {
    load_reader(shared, config, how, (&source.file, Some(source.bytes)))
        .map_err(|(failure, position)| source.unreadable(failure, position))
}

fn load_reader<R: Read>(
    shared: &Shared,
    config: &Config,
    how: &LoadParameters<'_>,
    (reader, total): (R, Option<u64>),
) -> Result<LoadResult, Failed> {
    let progress = &shared.persistence.snapshots.loading;
    let splitter = RdbSplitter::new(reader).map_err(|error| (error.into(), 0))?;
    progress.note_bytes(splitter.position());
    let checks_sum = config.persistence.rdbchecksum && !how.settings.skips_checksums;
    let mut splitter = if checks_sum { splitter } else { splitter.ignore_checksum() };
    let threads = match config.persistence.key_load_delay {
        0 => shared.serving_workers().clamp(1, THREADS_MAX),
        // With a delay, keys are loaded one at a time.
        _ => 1,
    };
    let mut result = LoadResult::default();
    let LoadResult { functions, lineage, .. } = &mut result;
    let other = |event| match event {
        RdbEvent::Aux { name, value } => {
            log_aux_field(&name, &value, &shared.log, progress);
            lineage.note(&name, &value);
        }
        RdbEvent::Function(source) => functions.push(source),
        RdbEvent::End(Checksum::None) => shared
            .log
            .notice(format_args!("RDB file was saved with checksum disabled: no check performed.")),
        _ => {}
    };
    let (loaded, awaited) = by_threads(shared, how, threads, (&mut splitter, total), other)?;
    shared.persistence.snapshots.note_loaded(loaded.keys, loaded.expired);
    let LoadSummary { keys, expired, empty, expired_keys } = loaded;
    let skipped = if empty > 0 { format!(", empty keys skipped: {empty}") } else { String::new() };
    shared.log.notice(format_args!(
        "Done loading RDB, keys loaded: {keys}, keys expired: {expired}{skipped}."
    ));
    Ok(LoadResult { awaited, expired_keys, end: splitter.position(), ..result })
}

impl Lineage {
    /// Takes a metadata field of the file. An invalid value is ignored.
    fn note(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        match name {
            b"repl-id" if history::is_id(value) => self.id = Some(text.into_owned()),
            b"repl-offset" => self.offset = Offset::read(value),
            b"repl-stream-db" => self.db = text.parse().ok().map(DbNumber),
            _ => {}
        }
    }
}

/// Reads a file on this thread and loads it on other threads. `total` is the length of the file, if known.
fn by_threads<R: Read>(
    shared: &Shared,
    how: &LoadParameters<'_>,
    threads: usize,
    (splitter, total): (&mut RdbSplitter<R>, Option<u64>),
    other: impl FnMut(RdbEvent),
) -> Done {
    let queue = Queue::default();
    scope(|scope| {
        let mut running: Vec<ScopedJoinHandle<'_, Done>> = Vec::new();
        for number in 0..threads {
            let thread = Builder::new().name(format!("brisk-load-{number}"));
            match thread.spawn_scoped(scope, || load_blocks(shared, how, &queue)) {
                Ok(thread) => running.push(thread),
                // The other threads do the work of this one.
                Err(_) if number > 0 => break,
                Err(error) => return Err((LoadFailure::Thread(error), 0)),
            }
        }
        let mut failure = split(shared, &queue, (splitter, total), other).err();
        queue.close();
        let mut all = (LoadSummary::default(), AwaitedKeys::default());
        for thread in running {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok((loaded, awaited)) => {
                    all.0 += loaded;
                    all.1.append(awaited);
                }
                // Report the failure at the lowest position, as if the blocks were loaded in order.
                Err(new) if failure.as_ref().is_none_or(|(_, at)| new.1 < *at) => {
                    failure = Some(new);
                }
                Err(_) => {}
            }
        }
        failure.map_or(Ok(all), Err)
    })
}

/// Puts the file's blocks into the queue, until no more are wanted.
fn split<R: Read>(
    shared: &Shared,
    queue: &Queue,
    (splitter, total): (&mut RdbSplitter<R>, Option<u64>),
    mut other: impl FnMut(RdbEvent),
) -> Result<(), Failed> {
    let mut db = DbIndex::default();
    let mut expected = 0;
    loop {
        let before = splitter.position();
        let piece = splitter.next_piece().map_err(|error| (error.into(), splitter.position()))?;
        match piece {
            Some(RdbPiece::Entries(block)) => {
                if !queue.put(Part { db, expected, block }) {
                    return Ok(());
                }
                continue;
            }
            Some(RdbPiece::Section(RdbEvent::SelectDb(number))) => {
                db = database(number, shared.keyspace.database_count())
                    .map_err(|failure| (failure, splitter.position()))?;
                expected = 0;
            }
            // Use at most the number of keys that the rest of the file can contain, even if the file announces more.
            Some(RdbPiece::Section(RdbEvent::ResizeDb { keys, .. })) => {
                let rest = total.map(|total| total.saturating_sub(splitter.position()));
                expected = keys.min(rest.map_or(EXPECTED_MAX, |rest| rest / ENTRY_BYTES_MIN));
            }
            Some(RdbPiece::Section(event)) => other(event),
            None => return Ok(()),
        }
        shared.persistence.snapshots.loading.note_bytes(splitter.position() - before);
    }
}

/// Loads blocks of the queue until there are no more.
fn load_blocks(shared: &Shared, how: &LoadParameters<'_>, queue: &Queue) -> Done {
    // Ensures that no thread waits for a thread that has panicked.
    let _end = GiveUp(queue);
    // If this thread cannot register, other threads free the values that it replaces.
    let _participant = Participant::register();
    let progress = &shared.persistence.snapshots.loading;
    let is_own = std::ptr::eq(how.keyspace, &raw const shared.keyspace);
    let tally = match is_own {
        true => progress.take_tally(how.keyspace),
        false => how.keyspace.tally(),
    };
    let mut env = Env::new(tally.clone(), Random::seeded(how.now.0));
    env.settings = how.settings.clone();
    match how.keeps_expired {
        true => env.begin_applying(how.now),
        false => env.set_now(how.now),
    }
    let mut loader = Loader::new(how.keyspace, &env, how.duplicate);
    loader.keep_expired_names(how.expired_bytes_max);
    let mut loaded = Ok(());
    while loaded.is_ok() {
        let Some(part) = reclaim::offline_while(|| queue.take()) else { break };
        loaded = load_part(shared, &mut loader, &part);
    }
    let done = loader.finish();
    if is_own {
        progress.give_tally_back(tally);
    }
    if loaded.is_err() {
        queue.give_up();
    }
    loaded.map(|()| done)
}

fn load_part(shared: &Shared, loader: &mut Loader<'_>, part: &Part) -> Result<(), Failed> {
    let mut reached = part.block.position();
    loader.expect(part.expected);
    let delays = delays(shared);
    loader.set_one_by_one(delays);
    let progress = &shared.persistence.snapshots.loading;
    let loaded = loader.load(part.db, &part.block, |position, keys| {
        if delays && keys > 0 {
            delay(shared);
        }
        progress.note_bytes(position - std::mem::replace(&mut reached, position));
    });
    for key in loader.take_empty_keys() {
        if progress.next_empty_key() <= EMPTY_KEYS_LOGGED_MAX {
            let key = key.escape_ascii();
            shared.log.notice(format_args!("rdbLoadObject skipping empty key: {key}"));
        }
    }
    loaded
}

fn delay_us(shared: &Shared) -> i64 {
    shared.config().persistence.key_load_delay
}

/// Reports whether `key-load-delay` delays loading.
pub fn delays(shared: &Shared) -> bool {
    delay_us(shared) != 0
}

/// Pauses after a key for the time in `key-load-delay`, or until the setting changes. A negative value -N means a pause
/// of one microsecond after every N keys. The actual pause is longer because of the system's timers.
pub fn delay(shared: &Shared) {
    let us = delay_us(shared);
    let Ok(length) = u64::try_from(us) else {
        let keys = us.unsigned_abs();
        if shared.persistence.snapshots.loading.next_key().is_multiple_of(keys) {
            park_timeout(Duration::from_micros(1));
        }
        return;
    };
    let end = Instant::now() + Duration::from_micros(length);
    while delay_us(shared) == us {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        // No other thread unparks this thread earlier.
        park_timeout(left.min(DELAY_SLICE));
    }
}

/// When it is dropped during a panic of its thread, notes that no more blocks are wanted.
struct GiveUp<'q>(&'q Queue);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

/// Logs the metadata that the server that wrote the file stored in it.
fn log_aux_field(name: &[u8], value: &[u8], log: &Log, progress: &Loading) {
    let value = String::from_utf8_lossy(value);
    match name {
        b"redis-ver" | b"valkey-ver" => {
            log.notice(format_args!("Loading RDB produced by version {value}"));
        }
        b"ctime" => {
            let age_s = (unix_ms() / 1000).saturating_sub(value.parse().unwrap_or(u64::MAX));
            log.notice(format_args!("RDB age {age_s} seconds"));
        }
        b"used-mem" => {
            let bytes = value.parse().unwrap_or(0);
            progress.note_used_memory(bytes);
            let mib = bytes as f64 / f64::from(1 << 20);
            log.notice(format_args!("RDB memory usage when created {mib:.2} Mb"));
        }
        _ => {}
    }
}
