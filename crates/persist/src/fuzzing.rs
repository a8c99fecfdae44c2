//! The bodies of the fuzz targets, and of tests that feed mutated bytes. They panic on a
//! difference.

use crate::aof::{AofError, AofEventKind, AofReader, Manifest, writer};
use crate::error::LoadError;
use crate::rdb::value::StringValue;
use crate::rdb::{
    EntryContent, KeyMetadata, RdbEvent, RdbPiece, RdbReader, RdbSplitter, Value, dump,
};
use std::io::Cursor;

/// Decodes a value without a footer: writing it and reading it again must give the same value.
/// O(input and content of its LZF blocks).
pub fn fuzz_dump(data: &[u8]) {
    let Some((version, body)) = data.split_first() else {
        return;
    };
    let Ok(value) = dump::read_body(body, u32::from(*version)) else {
        return;
    };
    let once = dump::write(&value);
    let again = dump::read(&once).expect("what was written can be read");
    assert_eq!(again.type_name(), value.type_name());
    assert_eq!(dump::write(&again), once, "written twice alike");
}

/// Reads a whole file without comparing its checksum: reading by blocks must give the same result
/// as reading in one pass. O(input and content of its LZF blocks).
pub fn fuzz_file(data: &[u8]) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let (whole, split) = (by_events(data, &mut one), by_blocks(data, &mut other));
    assert_eq!(whole.is_ok(), split.is_ok(), "{whole:?} and {split:?}");
    assert!(one == other, "{} entries and {}", one.len(), other.len());
    let Ok(reader) = RdbReader::new(data) else {
        return;
    };
    let mut reader = reader.ignore_checksum().skip_modules();
    while let Ok(Some(event)) = reader.next_event() {
        if let RdbEvent::Entry(entry) = event {
            check_writable(&entry.value);
        }
    }
}

fn check_writable(value: &Value) {
    assert!(dump::read(&dump::write(value)).is_ok(), "what was written can be read");
}

/// Reads a file of commands. The part before its fault must be a complete file with the same
/// commands. These commands, written as batches, must read back unchanged. O(file).
pub fn fuzz_aof(data: &[u8]) {
    let (commands, outcome) = read_aof(data);
    let whole = match outcome {
        Ok(()) => data.len() as u64,
        Err(error) => error.intact_until().expect("a slice can be read"),
    };
    let (kept, outcome) = read_aof(&data[..whole as usize]);
    assert!(outcome.is_ok(), "what is whole has no fault: {outcome:?}");
    assert!(commands.starts_with(&kept));

    let mut file = Vec::new();
    for (ticket, some) in kept.chunks(3).enumerate() {
        let mut batch = Vec::new();
        for args in some.iter().filter(|args| !is_transaction(args)) {
            writer::command(&mut batch, args);
        }
        writer::timestamp(&mut file, ticket as i64);
        writer::batch_line(&mut file, ticket as u64, &batch);
        file.extend_from_slice(&batch);
    }
    let (again, outcome) = read_aof(&file);
    assert!(outcome.is_ok(), "what was written can be read: {outcome:?}");
    assert!(kept.iter().filter(|args| !is_transaction(args)).eq(&again));
}

type Args = Vec<Vec<u8>>;

fn read_aof(data: &[u8]) -> (Vec<Args>, Result<(), AofError>) {
    let mut reader = AofReader::new(Cursor::new(data), 0).expect("a slice can be read");
    let (mut commands, mut position) = (Vec::new(), 0);
    loop {
        match reader.next_event() {
            Ok(None) => return (commands, Ok(())),
            Err(error) => return (commands, Err(error)),
            Ok(Some(event)) => {
                assert_eq!(event.start, position, "events follow one another");
                position = event.end;
                if let AofEventKind::Command(command) = event.kind {
                    commands.push(command.args().map(<[u8]>::to_vec).collect());
                }
            }
        }
    }
}

fn is_transaction(args: &Args) -> bool {
    args[0].eq_ignore_ascii_case(b"multi") || args[0].eq_ignore_ascii_case(b"exec")
}

/// Parses a manifest: formatting it and parsing it again must give the same manifest, even after
/// files were replaced. O(text).
pub fn fuzz_manifest(data: &[u8]) {
    let Ok(mut manifest) = Manifest::parse(data) else {
        return;
    };
    check_manifest(&manifest);
    manifest.new_increment(b"a file");
    manifest.replace_base(b"a file", crate::aof::BaseFormat::Rdb);
    manifest.retire_increments(1);
    check_manifest(&manifest);
    for old in manifest.take_history() {
        assert!(manifest.files_to_load().all(|used| used.name != old.name));
    }
}

fn check_manifest(manifest: &Manifest) {
    let text = manifest.format();
    // A long name takes up to four times its bytes, which could exceed the maximum length of a
    // line.
    if text.split(|byte| *byte == b'\n').all(|line| line.len() < 1024) && !text.is_empty() {
        assert_eq!(Manifest::parse(&text).as_ref(), Ok(manifest), "what was written can be read");
    }
}

/// Key, value as a DUMP payload, and metadata.
type EntrySummary = (Vec<u8>, Vec<u8>, KeyMetadata);

fn by_events(data: &[u8], seen: &mut Vec<EntrySummary>) -> Result<(), LoadError> {
    let mut reader = RdbReader::new(data)?.ignore_checksum();
    while let Some(event) = reader.next_event()? {
        if let RdbEvent::Entry(entry) = event {
            seen.push((entry.key, dump::write(&entry.value), entry.metadata));
        }
    }
    Ok(())
}

fn by_blocks(data: &[u8], seen: &mut Vec<EntrySummary>) -> Result<(), LoadError> {
    let mut splitter = RdbSplitter::new(data)?.ignore_checksum();
    while let Some(piece) = splitter.next_piece()? {
        let RdbPiece::Entries(block) = piece else { continue };
        let mut entries = block.entries();
        while let Some(entry) = entries.next_entry()? {
            let value = match entry.content {
                EntryContent::Bytes(bytes) => Value::String(StringValue::Bytes(bytes.into_owned())),
                EntryContent::Value(value) => value,
                EntryContent::Empty => continue,
            };
            seen.push((entry.key.into_owned(), dump::write(&value), entry.metadata));
        }
    }
    Ok(())
}
