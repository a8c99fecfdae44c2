//! Reads an append-only file into records: its base, usually an RDB file, and the commands after it.
//!
//! Commands are read twice. The first pass finds the keys that they may change. Then the base is read as a stream. Keys
//! that no command changes become records immediately. The others are loaded into a keyspace of the engine
//! (`replay.rs`). The second pass executes the commands on this keyspace, and its final keys become the remaining
//! records. So memory depends on the keys that commands change, not on the whole dataset. Commands like FLUSHALL and
//! SWAPDB change all keys.
//!
//! This module also determines the files that a path refers to.

use super::SourceError;
use super::rdb;
use super::replay::{Replay, Touched};
use crate::analysis::Analysis;
use crate::progress::{Progress, Unit};
use brisk_persist::aof::manifest::MANIFEST_BYTES_MAX;
use brisk_persist::aof::{
    AofCommand, AofEventKind, AofReader, Manifest, ManifestFile, NotRdb, has_preamble,
};
use brisk_persist::rdb::{RdbEvent, RdbReader};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const MANIFEST_ENDING: &str = ".manifest";

/// A file of commands.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    bytes: u64,
    /// The offset at which its commands begin: after the RDB file at its start, or 0.
    from: u64,
    /// True if it starts with an RDB file.
    has_base: bool,
}

/// Reads an RDB file, an append-only file, its manifest, or a directory that contains an append-only file.
///
/// # Errors
/// If it cannot be opened, or is none of these.
pub fn read_path(
    path: &Path,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Result<(), SourceError> {
    let mut parts = parts(path)?;
    let alone = matches!(&parts[..], [part] if part.has_base);
    if alone && rdb_alone(&mut parts[0])? {
        return rdb::read_file(path, analysis, progress);
    }
    let whole: u64 = parts.iter().map(|part| part.bytes).sum();
    analysis.facts.file_bytes = Some(whole);
    let mut run = Run { analysis, progress, whole, before: 0, error: None };
    run.all(&mut parts)?;
    let error = run.error;
    progress.end();
    analysis.facts.error = error;
    Ok(())
}

/// The files that a path refers to, in the order in which they are loaded.
fn parts(path: &Path) -> Result<Vec<Part>, SourceError> {
    let wrong = |reason: &str| SourceError::file(path, reason);
    let metadata = fs::metadata(path).map_err(|error| SourceError::file(path, error))?;
    let manifest = if metadata.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| SourceError::file(path, error))?;
        let names = entries.flatten().map(|entry| entry.path());
        let is_manifest = |path: &PathBuf| path.to_string_lossy().ends_with(MANIFEST_ENDING);
        let mut manifests: Vec<PathBuf> = names.filter(is_manifest).collect();
        match (manifests.pop(), manifests.is_empty()) {
            (Some(one), true) => Some(one),
            (Some(_), false) => return Err(wrong("contains more than one manifest: specify one")),
            (None, _) => return Err(wrong("contains no manifest of an append-only file")),
        }
    } else {
        path.to_string_lossy().ends_with(MANIFEST_ENDING).then(|| path.to_owned())
    };
    let Some(manifest) = manifest else { return Ok(vec![part(path.to_owned())?]) };
    let mut text = Vec::new();
    let file = File::open(&manifest).map_err(|error| SourceError::file(&manifest, error))?;
    let read = file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| SourceError::file(&manifest, error))?;
    let listed = Manifest::parse(&text);
    let listed = listed.map_err(|error| SourceError::file(&manifest, error.with_line()))?;
    let directory = manifest.parent().unwrap_or(Path::new(""));
    let part_of = |file: &ManifestFile| {
        let part = part(file.path_in(directory))?;
        if file.is_named_rdb() && !part.has_base {
            return Err(SourceError::file(&part.path, NotRdb { bytes: part.bytes }));
        }
        Ok(part)
    };
    listed.files_to_load().map(part_of).collect()
}

fn part(path: PathBuf) -> Result<Part, SourceError> {
    let wrong = |error: std::io::Error| SourceError::file(&path, error);
    let mut file = File::open(&path).map_err(wrong)?;
    let bytes = file.metadata().map_err(wrong)?.len();
    let has_base = has_preamble(&mut file).map_err(wrong)?;
    Ok(Part { path, bytes, from: 0, has_base })
}

/// Reports whether the file ends with its RDB part: the last byte before the checksum is the end mark, or
/// the file is damaged in a way that the RDB reader reports.
fn rdb_alone(part: &mut Part) -> Result<bool, SourceError> {
    // Commands end with a line break. An eight-byte checksum ends with one only by chance, which reading detects.
    let wrong = |error: std::io::Error| SourceError::file(&part.path, error);
    let mut file = File::open(&part.path).map_err(wrong)?;
    let mut end = [0; 2];
    if part.bytes < 2 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-2)).and_then(|_| file.read_exact(&mut end)).map_err(wrong)?;
    if end != *b"\r\n" {
        // The file is a truncated append-only file or a snapshot. Only a file with commands contains a line break
        // followed by `*`.
        let tail = part.bytes.min(TAIL_BYTES);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::End(-(tail as i64))).map_err(wrong)?;
        file.take(tail).read_to_end(&mut bytes).map_err(wrong)?;
        return Ok(!bytes.windows(3).any(|window| window == b"\r\n*"));
    }
    Ok(false)
}

/// Number of bytes at a file's end that are searched for commands.
const TAIL_BYTES: u64 = 64 << 10;

/// The analysis of all files.
struct Run<'a> {
    analysis: &'a mut Analysis,
    progress: &'a mut Progress,
    whole: u64,
    /// Bytes of the preceding files.
    before: u64,
    error: Option<String>,
}

impl Run<'_> {
    fn all(&mut self, parts: &mut [Part]) -> Result<(), SourceError> {
        for part in parts.iter_mut().filter(|part| part.has_base) {
            // The base must be read to find its end. This is only necessary now if commands follow it.
            part.from = if rdb_alone(part)? { part.bytes } else { end_of_base(part)? };
        }
        let mut touched = Touched::default();
        for part in parts.iter() {
            // An error in the data is reported by the second pass.
            if let Err(Reason::Open(error)) = commands(part, |command| touched.add(&command)) {
                return Err(SourceError::file(&part.path, error));
            }
        }
        let mut replay = Replay::new(&touched).map_err(SourceError::Server)?;
        for part in parts.iter() {
            if part.has_base {
                self.base(part, &touched, &mut replay)?;
            }
            let (progress, before, whole) = (&mut *self.progress, self.before, self.whole);
            let done = commands(part, |command| {
                replay.execute(&command);
                progress.show(before + command.end, whole, Unit::Bytes);
            });
            self.before += part.bytes;
            match done {
                Ok(()) => {}
                Err(Reason::Open(error)) => return Err(SourceError::file(&part.path, error)),
                Err(Reason::Fault(text)) => {
                    self.error = Some(format!("{}: {text}", part.path.display()));
                    break;
                }
            }
        }
        self.analysis.facts.notes.push(replay.summary());
        replay.records(self.analysis);
        Ok(())
    }

    /// Reads the RDB file that a part begins with.
    fn base(
        &mut self,
        part: &Part,
        touched: &Touched,
        replay: &mut Replay,
    ) -> Result<(), SourceError> {
        let wrong = |reason: String| SourceError::file(&part.path, reason);
        let file = File::open(&part.path).map_err(|error| wrong(error.to_string()))?;
        let reader = RdbReader::new(file).map_err(|error| wrong(error.to_string()))?;
        let mut reader = reader.skip_modules();
        let mut db = 0;
        loop {
            match reader.next_event() {
                Ok(Some(RdbEvent::SelectDb(number))) => db = number,
                Ok(Some(RdbEvent::Entry(entry))) if touched.has(&entry.key) => {
                    if !replay.restore(db, &entry) {
                        rdb::add(db, &entry, self.analysis);
                    }
                }
                Ok(Some(RdbEvent::Entry(entry))) => rdb::add(db, &entry, self.analysis),
                Ok(Some(event)) => rdb::other(db, event, self.analysis),
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.error = Some(format!("{}: {error}", part.path.display()));
                    return Ok(());
                }
            }
            self.progress.show(self.before + reader.position(), self.whole, Unit::Bytes);
        }
    }
}

/// The offset at which the RDB file at the start ends.
fn end_of_base(part: &Part) -> Result<u64, SourceError> {
    let wrong = |reason: String| SourceError::file(&part.path, reason);
    let file = File::open(&part.path).map_err(|error| wrong(error.to_string()))?;
    let reader = RdbReader::new(file).map_err(|error| wrong(error.to_string()))?;
    let mut reader = reader.skip_modules().ignore_checksum();
    loop {
        match reader.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(reader.position()),
            // The error is reported when the keys are read. In this case, no commands are read.
            Err(_) => return Ok(part.bytes),
        }
    }
}

/// A command and the offset of its end.
pub(super) struct Placed<'a> {
    pub(super) command: AofCommand<'a>,
    pub(super) end: u64,
}

enum Reason {
    Open(std::io::Error),
    Fault(String),
}

/// Calls `each` for all commands of a part.
fn commands(part: &Part, mut each: impl FnMut(Placed<'_>)) -> Result<(), Reason> {
    if part.from >= part.bytes {
        return Ok(());
    }
    let file = File::open(&part.path).map_err(Reason::Open)?;
    let mut reader = AofReader::new(file, part.from).map_err(Reason::Open)?;
    loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                if let AofEventKind::Command(command) = event.kind {
                    each(Placed { command, end: event.end });
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                return Err(Reason::Fault(format!(
                    "{error}; the commands before the error were executed"
                )));
            }
        }
    }
}
