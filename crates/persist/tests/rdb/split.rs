//! Files read by blocks of entries, as servers load them.

use crate::fixture_files;
use brisk_persist::LoadError;
use brisk_persist::fuzzing::fuzz_file;
use brisk_persist::rdb::value::StringValue;
use brisk_persist::rdb::{
    Checksum, RdbBlock, RdbEvent, RdbPiece, RdbReader, RdbSplitter, RdbWriter, VERSION, Value,
};
use brisk_structures::alloc::peak_bytes;
use std::fs::{self, File};
use std::io::Read;

/// Returns a few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(into.len());
        self.0.read(&mut into[..len])
    }
}

/// Returns a file with `count` strings of length `len`.
fn strings(count: usize, len: usize) -> Vec<u8> {
    let mut out = RdbWriter::new(Vec::new(), VERSION).without_compression();
    out.select_db(0);
    for number in 0..count {
        let value = Value::String(StringValue::Bytes(vec![b'v'; len]));
        out.entry(number.to_string().as_bytes(), Default::default(), &value);
    }
    out.finish().unwrap()
}

fn blocks(splitter: &mut RdbSplitter<impl Read>) -> Result<Vec<RdbBlock>, LoadError> {
    let mut blocks = Vec::new();
    while let Some(piece) = splitter.next_piece()? {
        if let RdbPiece::Entries(block) = piece {
            blocks.push(block);
        }
    }
    Ok(blocks)
}

#[test]
fn every_fixture_reads_the_same_by_blocks() {
    for path in fixture_files() {
        fuzz_file(&fs::read(&path).unwrap());
    }
}

#[test]
fn sections_and_blocks_come_in_order_to_the_last_byte() {
    for path in fixture_files() {
        let mut reader = RdbReader::new(File::open(&path).unwrap()).unwrap();
        let mut splitter = RdbSplitter::new(File::open(&path).unwrap()).unwrap();
        let mut sections = Vec::new();
        let whole = loop {
            match reader.next_event() {
                Ok(Some(RdbEvent::Entry(_) | RdbEvent::EmptyValue { .. })) => {}
                Ok(Some(event)) => sections.push(format!("{event:?}")),
                other => break other.map(drop).map_err(|error| error.to_string()),
            }
        };
        let mut split = Vec::new();
        let by_blocks = loop {
            match splitter.next_piece() {
                Ok(Some(RdbPiece::Section(event))) => split.push(format!("{event:?}")),
                Ok(Some(RdbPiece::Entries(_))) => {}
                other => break other.map(drop).map_err(|error| error.to_string()),
            }
        };
        if whole.is_ok() {
            assert_eq!(split, sections, "{}", path.display());
            assert_eq!(splitter.position(), fs::metadata(&path).unwrap().len(), "all is read");
            assert_eq!(by_blocks, whole);
        }
    }
}

#[test]
fn block_sizes_do_not_depend_on_the_reader() {
    let file = strings(20_000, 100);
    for step in [1, 7, 4096, usize::MAX] {
        let mut splitter = RdbSplitter::new(Slow(&file, step)).unwrap();
        let mut next = None;
        let blocks = blocks(&mut splitter).unwrap();
        for block in &blocks {
            let mut entries = block.entries();
            assert!(next.is_none_or(|next| next == block.position()));
            while entries.next_entry().unwrap().is_some() {}
            next = Some(entries.position());
        }
        assert_eq!(blocks.len(), file.len().div_ceil(256 << 10));
    }
}

#[test]
fn the_checksum_is_that_of_all_bytes() {
    let good = strings(10_000, 100);
    let end = |file: &[u8]| {
        let mut splitter = RdbSplitter::new(file).unwrap();
        let mut last = None;
        while let Some(piece) = splitter.next_piece()? {
            last = Some(piece);
        }
        Ok::<_, LoadError>(last)
    };
    assert!(matches!(end(&good), Ok(Some(RdbPiece::Section(RdbEvent::End(Checksum::Verified))))));
    for at in (20..good.len()).step_by(good.len() / 50) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(end(&bad).is_err(), "byte {at}");
    }
    for at in (9..good.len()).step_by(good.len() / 50) {
        assert!(
            matches!(end(&good[..at]), Err(LoadError::Truncated { offset }) if offset == at as u64)
        );
    }
}

#[test]
fn announced_lengths_take_no_memory() {
    // A length of 2^56 at every position that has one.
    let huge = b"\x81\x01\x00\x00\x00\x00\x00\x00\x00";
    for kind in 0..=25 {
        for before in [&b""[..], b"\x01", b"\x01\x01", b"\x01\x02", b"\x01\x01a"] {
            for after in [&b""[..], b"\x01a\x01b", b"\xc3\x05\x00a\xe0\xff\x00"] {
                let file = [b"REDIS0012", &[kind][..], b"\x01k", before, huge, after].concat();
                let (result, peak) = peak_bytes(|| {
                    let mut splitter = RdbSplitter::new(&file[..])?;
                    for block in blocks(&mut splitter)? {
                        let mut entries = block.entries();
                        while entries.next_entry()?.is_some() {}
                    }
                    Ok::<_, LoadError>(())
                });
                assert!(result.is_err());
                assert!(peak < 600 << 10, "{peak} bytes for {file:02x?}");
            }
        }
    }
}

#[test]
fn an_entry_takes_no_more_than_twice_its_bytes() {
    let file = strings(1, 40 << 20);
    let (blocks, peak) = peak_bytes(|| blocks(&mut RdbSplitter::new(&file[..]).unwrap()).unwrap());
    assert_eq!(blocks.len(), 1);
    assert!(peak < file.len() * 2 + (1 << 20), "{peak}");
}
