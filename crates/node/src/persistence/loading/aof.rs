//! Loads the dataset from the append-only file: its base, then the commands after it.

use super::discard::discard_dataset;
use super::replay::{Replay, ReplayError};
use super::steps::LoadingSteps;
use crate::core::Core;
use crate::core::shared::Shared;
use crate::persistence::aof::ending::{self, FIX};
use crate::persistence::aof::home::Home;
use crate::persistence::aof::lock;
use crate::persistence::aof::rewrite;
use crate::persistence::disk::{Disk, System};
use crate::persistence::loading::rdb;
use crate::persistence::snapshot::Unreadable;
use crate::script::libraries::Policy;
use crate::script::source;
use brisk_config::os_reason;
use brisk_engine::effect::Hooks;
use brisk_persist::aof::{
    AofError, AofEventKind, AofReader, FileKind, Manifest, ManifestFile, NotRdb, has_preamble,
};
use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Commands are gathered up to this size, so that a batch of them can be parsed and prefetched.
const GATHERED_BYTES: usize = 256 << 10;

/// At startup, loads the files that the manifest names. The first worker executes their commands. New changes are
/// appended to the last file, or to a new file if there is no manifest. O(files).
///
/// # Errors
/// A text for the log: which file cannot be loaded, at which position, and what the operator can do. The files have not
/// changed, except that a torn end may have been truncated if `aof-load-truncated` allows it.
pub fn load(shared: &Shared, steps: &LoadingSteps) -> Result<(), String> {
    let home = Home::of(&shared.config());
    // Loading may truncate a file, so the file is locked before it is read.
    let locked = shared.persistence.aof.lock_files(&home, lock::WAIT_RUNNING, &shared.log);
    locked.map_err(|error| error.to_string())?;
    let manifest = home.find(&System)?;
    match &manifest {
        Some(manifest) => load_files(&mut AtStart { shared, steps }, shared, &home, manifest)?,
        None => warn_of_ignored_snapshot(shared),
    }
    steps.open(manifest)
}

/// Logs that the server ignores an RDB file and starts without its keys. The next snapshot replaces the file.
fn warn_of_ignored_snapshot(shared: &Shared) {
    let config = shared.config();
    let path = config.path_in_dir(&config.persistence.dbfilename);
    if config.persistence.dbfilename.is_empty() || !path.exists() {
        return;
    }
    shared.log.warning(format_args!(
        "{} was not loaded: with appendonly yes, the server loads only the append-only file, and there is none yet. \
         The next snapshot overwrites the file. To keep its keys, stop the server with SHUTDOWN NOSAVE, start it \
         with appendonly no, and send CONFIG SET appendonly yes.",
        path.display()
    ));
}

/// DEBUG LOADAOF: discards the dataset and loads it from the append-only file. All other workers are
/// quiesced, and no transaction is running. O(files).
///
/// # Errors
/// The errors of [`load`]. The dataset then consists of the part that was loaded before the error.
pub fn load_again(core: &mut Core) -> Result<(), String> {
    let shared = core.shared;
    // Stop the running rewrite, which would remove files that are being read. No other rewrite begins while workers are
    // quiesced.
    if !rewrite::stop(shared, "the append-only file is loaded again") {
        return Err("an append-only file rewrite is about to end".to_owned());
    }
    if shared.persistence.aof.is_on() {
        shared.dispatch_changes(core.id);
        shared.persistence.aof.flush(shared).map_err(|error| os_reason(&error))?;
    }
    let home = Home::of(&core.config);
    let locked = shared.persistence.aof.lock_files(&home, Duration::ZERO, &shared.log);
    locked.map_err(|error| error.to_string())?;
    let loaded = load_found(core, &home);
    shared.persistence.aof.release_unused_locks();
    loaded
}

fn load_found(core: &mut Core, home: &Home) -> Result<(), String> {
    let shared = core.shared;
    let manifest = home.find(&System)?.ok_or("there is no append-only file")?;
    let had_hooks = core.env.hooks.replace_own(Hooks::empty());
    let propagated = core.env.hooks.get().contains(Hooks::PROPAGATE);
    core.env.hooks.set(Hooks::PROPAGATE, false);
    discard_dataset(core);
    let replay = Replay::new(core);
    let loaded = load_files(&mut Again { core, replay }, shared, home, &manifest);
    core.env.hooks.set(Hooks::PROPAGATE, propagated);
    core.env.hooks.replace_own(had_hooks);
    loaded
}

/// Puts the contents of files into the dataset.
trait Target {
    /// Loads the snapshot at the beginning of a file. Returns its end and the source code of its libraries.
    fn load_base(&mut self, path: &Path) -> Result<(u64, Vec<Vec<u8>>), Unreadable>;
    fn restore(&mut self, sources: Vec<Vec<u8>>) -> Result<(), String>;
    /// Executes all commands of a part of a file.
    fn execute(&mut self, commands: Vec<u8>, part: Range<u64>) -> Result<(), ReplayError>;
    /// Notes that a file has no more commands.
    fn end_file(&mut self) -> Result<(), ReplayError>;
}

/// Loads at startup, on a separate thread. The first worker executes the commands.
struct AtStart<'a> {
    shared: &'a Shared,
    steps: &'a LoadingSteps,
}

impl Target for AtStart<'_> {
    fn load_base(&mut self, path: &Path) -> Result<(u64, Vec<Vec<u8>>), Unreadable> {
        rdb::load_base_at_start(self.shared, path)
    }

    fn restore(&mut self, sources: Vec<Vec<u8>>) -> Result<(), String> {
        self.steps.restore(sources)
    }

    fn execute(&mut self, commands: Vec<u8>, part: Range<u64>) -> Result<(), ReplayError> {
        self.steps.execute(commands, part)
    }

    fn end_file(&mut self) -> Result<(), ReplayError> {
        self.steps.end_file()
    }
}

/// Loads for DEBUG LOADAOF, on a worker while all other workers are quiesced.
struct Again<'a> {
    core: &'a mut Core,
    replay: Replay,
}

impl Target for Again<'_> {
    fn load_base(&mut self, path: &Path) -> Result<(u64, Vec<Vec<u8>>), Unreadable> {
        rdb::load_base(self.core, path)
    }

    fn restore(&mut self, sources: Vec<Vec<u8>>) -> Result<(), String> {
        let sources = sources.iter().map(Vec::as_slice);
        let restored = source::restore(self.core, sources, Policy::Append);
        restored.map_err(|error| error.to_string())
    }

    fn execute(&mut self, commands: Vec<u8>, part: Range<u64>) -> Result<(), ReplayError> {
        self.replay.take(commands, part);
        self.replay.advance(self.core, None, None).map(|_| ())
    }

    fn end_file(&mut self) -> Result<(), ReplayError> {
        self.replay.end_file(self.core);
        Ok(())
    }
}

fn load_files<T: Target>(
    target: &mut T,
    shared: &Shared,
    home: &Home,
    manifest: &Manifest,
) -> Result<(), String> {
    let began = Instant::now();
    let files: Vec<_> = manifest.files_to_load().collect();
    let size = |file: &&ManifestFile| System.len_of(&home.path(file)).ok().flatten().unwrap_or(0);
    shared.persistence.snapshots.loading.begin(files.iter().map(size).sum());
    for (number, file) in files.iter().enumerate() {
        load_file(target, shared, home, file, number + 1 == files.len())?;
    }
    let seconds = began.elapsed().as_secs_f64();
    shared.log.notice(format_args!("DB loaded from append only file: {seconds:.3} seconds"));
    Ok(())
}

fn load_file<T: Target>(
    target: &mut T,
    shared: &Shared,
    home: &Home,
    file: &ManifestFile,
    is_last: bool,
) -> Result<(), String> {
    let (path, began) = (home.path(file), Instant::now());
    let name = String::from_utf8_lossy(&file.name).into_owned();
    let unreadable = |error: std::io::Error| {
        format!(
            "Fatal error: can't open the append log file {name} for reading: {}",
            os_reason(&error)
        )
    };
    let mut source = System.open(&path).map_err(unreadable)?;
    let mut from = 0;
    let is_rdb = has_preamble(&mut source).map_err(unreadable)?;
    if !is_rdb && file.kind == FileKind::Base {
        check_base(shared, file, System.len(&source).map_err(unreadable)?)?;
    }
    if is_rdb {
        let (position, functions) = target.load_base(&path).map_err(|error| {
            format!("Error reading the RDB preamble of the AOF file {name}: {error}. {FIX}")
        })?;
        target
            .restore(functions)
            .map_err(|error| format!("A library of functions in the AOF file {name}: {error}"))?;
        from = position;
    }
    let mut reader = AofReader::new(source, from).map_err(unreadable)?;
    let ended = execute(target, &mut reader).map_err(|unknown| unknown.text(&name))?;
    if let Err(error) = ended {
        end_of(shared, &path, &name, &error, is_last)?;
    }
    let kind = if file.kind == FileKind::Base { "base" } else { "incr" };
    let seconds = began.elapsed().as_secs_f64();
    shared.log.notice(format_args!("DB loaded from {kind} file {name}: {seconds:.3} seconds"));
    Ok(())
}

/// Checks that a base without an RDB file at its beginning may be read as commands.
///
/// # Errors
/// The base should be an RDB file, but its contents are lost. The server would start with an empty dataset.
fn check_base(shared: &Shared, file: &ManifestFile, bytes: u64) -> Result<(), String> {
    let name = String::from_utf8_lossy(&file.name);
    if file.is_named_rdb() {
        let fault = NotRdb { bytes };
        return Err(format!(
            "Bad file format reading the append only file {name}: {fault}; restore the file from a backup"
        ));
    }
    if bytes == 0 {
        shared.log.warning(format_args!(
            "The base AOF {name} is empty. This is correct only if the dataset was empty when the file was written."
        ));
    }
    Ok(())
}

/// Executes all commands from the reader's position on. Returns how the file ended. The first command runs in database
/// 0 and outside of a transaction.
fn execute<T: Target>(
    target: &mut T,
    reader: &mut AofReader<impl Read + Seek>,
) -> Result<Result<(), AofError>, ReplayError> {
    let mut commands = Vec::with_capacity(GATHERED_BYTES * 2);
    let mut from = reader.position();
    let ended = loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                if let AofEventKind::Command(command) = event.kind {
                    commands.extend_from_slice(command.bytes());
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if commands.len() >= GATHERED_BYTES {
            let next = Vec::with_capacity(GATHERED_BYTES * 2);
            let part = from..reader.position();
            from = part.end;
            target.execute(std::mem::replace(&mut commands, next), part)?;
        }
    };
    target.execute(commands, from..reader.position())?;
    target.end_file()?;
    Ok(ended)
}

/// Truncates an incomplete file if the settings allow it; otherwise fails.
fn end_of(
    shared: &Shared,
    path: &Path,
    name: &str,
    error: &AofError,
    is_last: bool,
) -> Result<(), String> {
    let may_cut = shared.config().persistence.aof_load_truncated;
    let at = ending::cut_at(name, error, is_last, may_cut)?;
    let log = &shared.log;
    log.warning(format_args!("!!! Warning: short read while loading the AOF file {name}!!!"));
    log.warning(format_args!("AOF {name} loaded anyway because aof-load-truncated is enabled"));
    log.warning(format_args!("Truncating the AOF {name} at offset {at}: {error}"));
    ending::cut(&System, path, name, at)
}
