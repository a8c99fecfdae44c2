//! Reads a snapshot into records, entry by entry. Memory use is that of the largest value.

use super::SourceError;
use crate::analysis::Analysis;
use crate::pattern::shown;
use crate::progress::{Progress, Unit};
use crate::record::{Encoding, Kind, Record, kind_of};
use brisk_persist::LoadError;
use brisk_persist::rdb::{Checksum, FilePart, KeyMetadata, RdbEntry, RdbEvent, RdbReader};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The result of reading a file.
#[derive(Debug)]
pub struct Outcome {
    /// The number of bytes read.
    pub bytes: u64,
    /// The error that ended reading early.
    pub error: Option<String>,
}

/// Reads a file. The intact part of a damaged file is analyzed, and the error is recorded.
///
/// # Errors
/// If the file cannot be opened.
pub fn read_file(
    path: &Path,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Result<(), SourceError> {
    let file = File::open(path).map_err(|error| SourceError::file(path, error))?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let mut read = read(file, bytes, analysis, progress);
    if read.error.is_none() && read.bytes < bytes {
        let (more, end) = (bytes - read.bytes, read.bytes);
        read.error = Some(format!("{more} bytes follow the end of the snapshot at byte {end}"));
    }
    analysis.facts.file_bytes = Some(analysis.facts.file_bytes.unwrap_or(0) + read.bytes);
    analysis.facts.error = read.error.map(|error| format!("{}: {error}", path.display()));
    Ok(())
}

/// Reads a snapshot of about `whole` bytes from any reader.
pub fn read(
    source: impl Read,
    whole: u64,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Outcome {
    let mut reader = match RdbReader::new(source) {
        Ok(reader) => reader.skip_modules(),
        Err(error) => return Outcome { bytes: 0, error: Some(error.to_string()) },
    };
    analysis.facts.notes.push(format!("RDB version {}", reader.version()));
    let mut db = 0;
    let error = loop {
        let intact_until = reader.position();
        match reader.next_event() {
            Ok(Some(RdbEvent::SelectDb(number))) => db = number,
            Ok(Some(RdbEvent::Entry(entry))) => add(db, &entry, analysis),
            Ok(Some(event)) => other(db, event, analysis),
            Ok(None) => break None,
            Err(error) => break Some(describe_error(&reader, &error, intact_until)),
        }
        progress.show(reader.position(), whole, Unit::Bytes);
    };
    progress.end();
    Outcome { bytes: reader.position(), error }
}

/// Adds the entries of a snapshot that was just created in memory.
pub(super) fn entries(source: impl Read, analysis: &mut Analysis) {
    let Ok(mut reader) = RdbReader::new(source) else { return };
    let mut db = 0;
    while let Ok(Some(event)) = reader.next_event() {
        match event {
            RdbEvent::SelectDb(number) => db = number,
            RdbEvent::Entry(entry) => add(db, &entry, analysis),
            _ => {}
        }
    }
}

/// Adds an entry.
pub(super) fn add(db: u64, entry: &RdbEntry, analysis: &mut Analysis) {
    let (kind, encoding) = kind_of(&entry.value);
    let record = record(db, &entry.key, kind, encoding, entry.metadata);
    analysis.add(&Record { value: Some(&entry.value), ..record });
}

fn record(
    db: u64,
    key: &[u8],
    kind: Kind,
    encoding: Encoding,
    metadata: KeyMetadata,
) -> Record<'_> {
    Record {
        db,
        key,
        kind,
        encoding,
        value: None,
        elements: None,
        deadline_ms: metadata.expire_at_ms,
        idle_seconds: metadata.idle_seconds,
        frequency: metadata.frequency,
        reported_bytes: None,
    }
}

/// Handles everything except keys with values.
pub(super) fn other(db: u64, event: RdbEvent, analysis: &mut Analysis) {
    match event {
        RdbEvent::Aux { name, value } => note(&name, &value, analysis),
        RdbEvent::ModuleValue { key, .. } => {
            analysis.add(&record(
                db,
                &key,
                Kind::Module,
                Encoding::Unknown,
                KeyMetadata::default(),
            ));
        }
        RdbEvent::EmptyValue { .. } => analysis.facts.skipped_keys += 1,
        RdbEvent::End(Checksum::None) => {
            analysis.facts.notes.push("the file has no checksum".to_owned());
        }
        _ => {}
    }
}

fn note(name: &[u8], value: &[u8], analysis: &mut Analysis) {
    let number = || str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    match name {
        b"redis-ver" | b"valkey-ver" | b"brisk-ver" => {
            let (name, value) = (shown(name), shown(value));
            analysis.facts.notes.push(format!("{name} {value}"));
        }
        // TTLs are computed relative to the time at which the file was written.
        b"ctime" => {
            if let Some(seconds) = number() {
                analysis.set_now(seconds.saturating_mul(1000));
            }
        }
        b"used-mem" => {
            analysis.facts.used_memory = number().and_then(|bytes| u64::try_from(bytes).ok());
        }
        _ => {}
    }
}

/// A text with the error, its position, and the part of the file that the report covers.
fn describe_error<R: Read>(reader: &RdbReader<R>, error: &LoadError, intact_until: u64) -> String {
    let place = reader.context();
    let key = place.key.map(|key| format!(", in the value of key {}", shown(key)));
    let key = key.unwrap_or_default();
    match (error, place.part) {
        (LoadError::Checksum { .. }, _) | (_, FilePart::Checksum) => {
            format!("{error}: all keys were read, but the data is corrupted")
        }
        _ => format!("{error}{key}; the report covers the keys before byte {intact_until}"),
    }
}
