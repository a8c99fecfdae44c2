//! Point-in-time snapshots of the whole dataset as RDB files: `dbfilename` in `dir`. `loading::rdb` loads them.

use super::disk::{Disk, System, nameless};
use super::pace::WriterPace;
use super::replace::{Failure, Target, replace};
use crate::core::Core;
use crate::core::shared::Shared;
use crate::script::libraries::Set;
use brisk_config::{Config, os_reason};
use brisk_engine::DbNumber;
use brisk_engine::keyspace::Snapshot;
use brisk_engine::snapshot::{self, LoadFailure};
use brisk_observe::version::REDIS_VERSION;
use brisk_persist::LoadError;
use brisk_persist::rdb::{RdbReader, RdbWriter};
use brisk_reactor::unix_ms;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a pause for `rdb-key-save-delay` checks whether the snapshot is still wanted.
const DELAY_SLICE: Duration = Duration::from_millis(1);

/// The file names of incomplete snapshots: a snapshot that is taken while all workers are quiesced, and one that is
/// taken while commands run.
fn temporary_names() -> [String; 2] {
    let pid = std::process::id();
    [format!("temp-{pid}.rdb"), format!("temp-bg-{pid}.rdb")]
}

/// Removes the files of incomplete snapshots. Called before an immediate exit of the process.
pub fn discard_unfinished(config: &Config) {
    for name in temporary_names() {
        // Usually the file does not exist.
        let _ = System.remove(&config.process.dir.as_path().join(name));
    }
}

/// Writes the dataset to its file and logs the result. Called only while all other workers are quiesced. O(all data).
pub fn save(core: &Core) -> Result<(), Failure> {
    let shared = core.shared;
    // A snapshot in progress is older and would replace this one.
    shared.persistence.snapshots.give_up();
    let saved = save_on(&System, core);
    match &saved {
        Ok(()) => {
            shared.persistence.snapshots.note_flushes(shared.keyspace.flushes());
            shared.log.notice(format_args!("DB saved on disk"));
            // No worker changes data during the save.
            shared.persistence.snapshots.note_saved(unix_ms() / 1000, shared.observe.changes());
            shared.update_disk_error();
        }
        Err(failure) => shared.log.warning(format_args!("{failure}")),
    }
    saved
}

fn save_on<D: Disk>(disk: &D, core: &Core) -> Result<(), Failure> {
    let [temporary, _] = temporary_names();
    let wrote = || delay(&core.config, 1, || false);
    replace(disk, target(&core.config, &temporary), |file| {
        write_each(core, file, wrote).map(|_| ())
    })
}

/// Pauses for the `rdb-key-save-delay` of `keys` keys, as it was set when the snapshot began, or until `is_over`
/// returns true. For tests that need slow snapshots.
pub(super) fn delay(config: &Config, keys: u64, is_over: impl Fn() -> bool) {
    let us = config.persistence.rdb_key_save_delay.max(0).cast_unsigned();
    if us == 0 {
        return;
    }
    let end = Instant::now() + Duration::from_micros(us.saturating_mul(keys));
    while !is_over() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        // No other thread unparks this thread earlier.
        std::thread::park_timeout(left.min(DELAY_SLICE));
    }
}

/// Writes a snapshot in progress to the file, on a separate thread. `wrote` is called after every few keys.
pub(super) fn write_file<D: Disk>(
    disk: &D,
    config: &Config,
    head: &Head,
    snapshot: &Snapshot,
    wrote: impl FnMut(u64),
) -> Result<(), Failure> {
    let [_, temporary] = temporary_names();
    replace(disk, target(config, &temporary), |file| {
        let mut out = head.begin(file);
        snapshot.write(&mut out, || true, wrote)?;
        out.finish().map(|_| ())
    })
}

/// Writes a snapshot in progress to an unnamed file, for replicas. The file disappears when the process ends, even if
/// it crashes.
pub(crate) fn write_nameless(
    shared: &Shared,
    config: &Config,
    head: &Head,
    snapshot: &Snapshot,
) -> Result<File, Failure> {
    let name = format!("temp-repl-{}.rdb", std::process::id());
    let dir = config.process.dir.as_path();
    let file = nameless(dir, &name).map_err(|error| Failure::Create {
        name,
        dir: dir.display().to_string(),
        reason: os_reason(&error),
    })?;
    write_to(file, (shared, config), head, snapshot, || true)
}

/// Writes a snapshot without keys to `out`.
pub(crate) fn write_without_keys<W: Write>(out: W, head: &Head) -> io::Result<()> {
    head.begin(out).finish()?.flush()
}

/// Writes a snapshot in progress to `out` and returns the output. `may_compress` is explained at [`Snapshot::write`].
pub(crate) fn write_to<W: Write>(
    out: W,
    (shared, config): (&Shared, &Config),
    head: &Head,
    snapshot: &Snapshot,
    may_compress: impl Fn() -> bool,
) -> Result<W, Failure> {
    let written = (|| {
        let mut out = head.begin(out);
        let mut pace = WriterPace::new(shared, config, snapshot);
        snapshot.write(&mut out, may_compress, |keys| pace.after(keys))?;
        let mut out = out.finish()?;
        out.flush()?;
        Ok(out)
    })();
    written.map_err(|error: io::Error| Failure::Write {
        action: "rdbSaveRio",
        reason: os_reason(&error),
    })
}

fn target<'t>(config: &'t Config, temporary: &'t str) -> Target<'t> {
    Target {
        dir: config.process.dir.as_path(),
        name: config.persistence.dbfilename.as_path(),
        temporary: temporary.as_ref(),
        by_steps: config.persistence.rdb_save_incremental_fsync,
    }
}

/// Writes the dataset and calls `wrote` after each key. Called only while all other workers are quiesced. O(all data).
fn write_each<W: Write>(core: &Core, sink: W, wrote: impl FnMut()) -> io::Result<W> {
    let keyspace = &core.shared.keyspace;
    let mut out = Head::now(core, snapshot::version(keyspace, &core.env)).begin(sink);
    snapshot::save(keyspace, &core.env, &mut out, wrote)?;
    out.finish()
}

/// The header of a file. It is created when the snapshot begins, and the file is written later.
pub(crate) struct Head {
    version: u32,
    is_compressed: bool,
    has_checksum: bool,
    unix_s: u64,
    used_memory: u64,
    libraries: Arc<Set>,
    is_base: bool,
    /// The history and the offset at the beginning of the snapshot, and the database that the stream had selected.
    /// `None` if there is no replication backlog.
    lineage: Option<(String, u64, DbNumber)>,
}

impl Head {
    /// Creates the header. All other workers are quiesced.
    pub(crate) fn now(core: &Core, version: u32) -> Head {
        let (shared, replication) = (core.shared, &core.shared.replication);
        let lineage = replication.stream.has_backlog().then(|| {
            let (id, offset) = replication.position(&shared.keyspace);
            let db = match shared.conditions.is_replica() {
                true => replication.upstream.stream_db(),
                // If the stream has not selected a database, a replica that continues from here is sent a SELECT.
                false => shared.keyspace.journal().database().unwrap_or_default().into(),
            };
            (id, offset, db)
        });
        Head {
            lineage,
            version,
            is_compressed: core.config.persistence.rdbcompression,
            has_checksum: core.config.persistence.rdbchecksum,
            unix_s: unix_ms() / 1000,
            used_memory: brisk_observe::memory::used(),
            libraries: core.shared.scripting.libraries.now(),
            is_base: false,
        }
    }

    /// The header of the base of an append-only file.
    pub(super) fn of_base(self) -> Head {
        // Only the rest of the append-only file continues from the base; replicas do not.
        Head { is_base: true, lineage: None, ..self }
    }

    /// The header of a file without keys, and without function libraries unless `functions` is set.
    pub(crate) fn without_keys(self, functions: bool) -> Head {
        let libraries = if functions { self.libraries } else { Arc::default() };
        Head { libraries, ..self }
    }

    pub(crate) fn used_memory(&self) -> u64 {
        self.used_memory
    }

    pub(super) fn begin<W: Write>(&self, sink: W) -> RdbWriter<W> {
        let mut out = RdbWriter::new(sink, self.version);
        if !self.is_compressed {
            out = out.without_compression();
        }
        if !self.has_checksum {
            out = out.without_checksum();
        }
        out.aux("redis-ver", REDIS_VERSION.as_bytes());
        out.aux("redis-bits", b"64");
        out.aux("ctime", self.unix_s.to_string().as_bytes());
        out.aux("used-mem", self.used_memory.to_string().as_bytes());
        if let Some((id, offset, db)) = &self.lineage {
            out.aux("repl-stream-db", db.0.to_string().as_bytes());
            out.aux("repl-id", id.as_bytes());
            out.aux("repl-offset", offset.to_string().as_bytes());
        }
        out.aux("aof-base", if self.is_base { b"1" } else { b"0" });
        for library in self.libraries.libraries.values() {
            out.function(&library.code);
        }
        out
    }
}

/// The name of a dataset that a primary sends, in log lines.
pub(super) const RECEIVED: &str = "the dataset of the primary";

/// Why and where loading a file failed.
#[derive(Debug, thiserror::Error)]
#[error("{failure}; {path} was read up to byte {position}{}", of(*bytes), path = path.display())]
pub struct Unreadable {
    pub failure: LoadFailure,
    pub(super) path: PathBuf,
    /// Number of bytes that were read before loading failed.
    pub position: u64,
    /// The length of the file; `None` if unknown.
    pub(super) bytes: Option<u64>,
}

fn of(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| format!(" of {bytes}"))
}

impl Unreadable {
    /// Reports whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        let LoadFailure::File(LoadError::Io(error)) = &self.failure else { return false };
        error.kind() == io::ErrorKind::NotFound
    }
}

/// Checks that the file is complete. Returns the sources of its function libraries. O(file).
pub fn verify(core: &Core) -> Result<Vec<Vec<u8>>, Unreadable> {
    let databases = core.shared.keyspace.database_count();
    let source = Source::open(&core.config)?;
    let reader = RdbReader::new(&source.file);
    let reader = reader.map_err(|error| source.unreadable(error.into(), 0))?;
    let checksum = core.config.persistence.rdbchecksum && !core.env.settings.skips_checksums;
    let mut reader = if checksum { reader } else { reader.ignore_checksum() };
    snapshot::verify(&mut reader, databases)
        .map_err(|failure| source.unreadable(failure, reader.position()))
}

/// A file to read, with its name for error messages.
pub(super) struct Source {
    pub(super) file: File,
    pub(super) bytes: u64,
    path: PathBuf,
}

impl Source {
    pub(super) fn open(config: &Config) -> Result<Source, Unreadable> {
        let path = config.path_in_dir(&config.persistence.dbfilename);
        let cannot = |error: io::Error| Unreadable {
            failure: LoadError::from(error).into(),
            path: path.clone(),
            position: 0,
            bytes: Some(0),
        };
        if config.persistence.dbfilename.is_empty() {
            // The path would be the directory itself.
            return Err(cannot(io::ErrorKind::NotFound.into()));
        }
        Source::open_at(path)
    }

    pub(super) fn open_at(path: PathBuf) -> Result<Source, Unreadable> {
        let cannot = |error: io::Error| Unreadable {
            failure: LoadError::from(error).into(),
            path: path.clone(),
            position: 0,
            bytes: Some(0),
        };
        let file = System.open(&path).map_err(cannot)?;
        let bytes = System.len(&file).map_err(cannot)?;
        Ok(Source { file, bytes, path })
    }

    /// Uses an unnamed file.
    pub(super) fn nameless(file: File) -> Result<Source, Unreadable> {
        let path = PathBuf::from(RECEIVED);
        let len = System.len(&file);
        let bytes = len.map_err(|error| Unreadable {
            failure: LoadError::from(error).into(),
            path: path.clone(),
            position: 0,
            bytes: Some(0),
        })?;
        Ok(Source { file, bytes, path })
    }

    pub(super) fn unreadable(&self, failure: LoadFailure, position: u64) -> Unreadable {
        Unreadable { failure, path: self.path.clone(), position, bytes: Some(self.bytes) }
    }
}
