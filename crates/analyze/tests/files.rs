//! Files: those of servers of many versions, damaged ones, and one with more keys than fit in memory.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::*;
use brisk_analyze::Analysis;
use brisk_analyze::measure::Limits;
use brisk_analyze::model::Classes;
use brisk_analyze::pattern::tree::{GROUPS_MAX, NODES_MAX};
use brisk_analyze::progress::Progress;
use brisk_analyze::source::rdb;
use brisk_persist::rdb::value::StringValue;
use brisk_persist::rdb::{KeyMetadata, RdbEvent, RdbReader, RdbWriter, VERSION, Value};
use brisk_testkit::TempDir;
use brisk_testkit::server::rdb_fixtures;
use std::fs::{self, File};
use std::io::{Read, Result as IoResult, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

fn analysis() -> Analysis {
    Analysis::new(Classes::BUNDLED, Limits::default(), 0)
}

/// The result of the file reader alone: the number of keys, and whether it reached the end.
fn read_plainly(file: File) -> (u64, bool) {
    let len = file.metadata().unwrap().len();
    let Ok(reader) = RdbReader::new(file) else { return (0, false) };
    let mut reader = reader.skip_modules();
    let mut keys = 0;
    loop {
        match reader.next_event() {
            Ok(Some(RdbEvent::Entry(_) | RdbEvent::ModuleValue { .. })) => keys += 1,
            Ok(Some(_)) => {}
            // No data may follow.
            Ok(None) => return (keys, reader.position() == len),
            Err(_) => return (keys, false),
        }
    }
}

#[test]
fn files_of_all_server_versions_are_analyzed() {
    let (mut whole, mut broken) = (0, 0);
    for path in rdb_fixtures() {
        let (keys, is_whole) = read_plainly(File::open(&path).unwrap());
        let mut analysis = analysis();
        rdb::read_file(&path, &mut analysis, &mut Progress::hidden()).unwrap();
        let findings = analysis.finish();
        assert_eq!(findings.keys(), keys, "{}", path.display());
        assert_eq!(findings.facts.error.is_none(), is_whole, "{}", path.display());
        let grouped: u64 = findings.groups.iter().map(|(_, _, group)| group.keys).sum();
        assert_eq!(grouped, keys, "{}", path.display());
        if is_whole { whole += 1 } else { broken += 1 }
    }
    assert!(whole > 40 && broken > 0, "{whole} {broken}");
}

/// The RDB file of a real Redis with keys of every type.
fn real_file(home: &TempDir) -> Vec<u8> {
    let server = redis();
    let lines = [
        "SET user:N some-value",
        "HSET hash:N a 1 b 2",
        "RPUSH list:N a b c",
        "SADD set:N 1 2 3",
        "ZADD board:N 1 a 2 b",
        "XADD stream:N * a b",
    ];
    let numbered = |n: u64| lines.map(|line| words(&line.replacen('N', &n.to_string(), 1)));
    fill(&server, (0..300).flat_map(numbered));
    let path = home.path("whole.rdb");
    fs::copy(saved(&server), &path).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_truncated_file_is_reported_with_the_offset_of_its_end() {
    let home = TempDir::new();
    let whole = real_file(&home);
    let path = home.path("cut.rdb");
    for part in [3, 9, whole.len() / 4, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        fs::write(&path, &whole[..part]).unwrap();
        let mut analysis = analysis();
        rdb::read_file(&path, &mut analysis, &mut Progress::hidden()).unwrap();
        let findings = analysis.finish();
        let error = findings.facts.error.clone().unwrap();
        assert!(error.contains(&format!("the data ends at byte {part}")), "{part}: {error}");
        let (keys, _) = read_plainly(File::open(&path).unwrap());
        assert_eq!(findings.keys(), keys);
        if part > whole.len() / 2 {
            assert!(keys > 500, "{keys}");
        }
    }
}

#[test]
fn bytes_after_a_snapshot_are_reported() {
    let home = TempDir::new();
    let mut bytes = real_file(&home);
    let end = bytes.len();
    bytes.extend_from_slice(b"rubbish");
    let path = home.path("longer.rdb");
    fs::write(&path, &bytes).unwrap();
    let mut analysis = analysis();
    rdb::read_file(&path, &mut analysis, &mut Progress::hidden()).unwrap();
    let findings = analysis.finish();
    assert_eq!(findings.keys(), 300 * 6);
    let expected = format!("7 bytes follow the end of the snapshot at byte {end}");
    assert!(findings.facts.error.unwrap().ends_with(&expected));
}

#[test]
fn no_changed_byte_does_harm() {
    let home = TempDir::new();
    let whole = real_file(&home);
    let mut random = Random::new();
    for _ in 0..300 {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        let mut analysis = analysis();
        let outcome =
            rdb::read(&bytes[..], bytes.len() as u64, &mut analysis, &mut Progress::hidden());
        let error = outcome.error.expect("the checksum tells, if nothing else does");
        // A flipped bit in the version may give another version that can be read.
        assert!(error.contains("byte") || error.contains("checksum") || at < 9, "{at}: {error}");
    }
}

/// The writing end of [`pipe`].
struct PipeWriter(SyncSender<Vec<u8>>);

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        // The reader may have given up. It reports the reason.
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

/// Reads what another thread writes, with little buffering.
struct PipeReader {
    from: Receiver<Vec<u8>>,
    held: Vec<u8>,
    at: usize,
}

impl Read for PipeReader {
    fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
        if self.at == self.held.len() {
            match self.from.recv() {
                Ok(next) => (self.held, self.at) = (next, 0),
                Err(_) => return Ok(0),
            }
        }
        let len = out.len().min(self.held.len() - self.at);
        out[..len].copy_from_slice(&self.held[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// There are more than a million different keys with words at every position, so that there are as many patterns as
/// possible.
#[test]
fn memory_does_not_depend_on_the_number_of_keys() {
    const KEYS: u64 = 1_200_000;
    let (to, from) = sync_channel(4);
    let writer = std::thread::spawn(move || {
        let mut file = RdbWriter::new(PipeWriter(to), VERSION);
        let mut random = Random::new();
        let value = Value::String(StringValue::Bytes(b"a value of some bytes".to_vec()));
        for n in 0..KEYS {
            if n.is_multiple_of(10_000) {
                // The number of databases is bounded too.
                file.select_db(n / 10_000 * 3);
            }
            let mut name = || -> String {
                (0..4).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
            };
            let key = match n % 3 {
                0 => format!("{}:{}:{n}", name(), name()),
                1 => format!("{}.{}/{}", name(), n, name()),
                _ => format!("user:{n}:{}", name()),
            };
            let expire_at_ms = n.is_multiple_of(2).then_some(n as i64);
            file.entry(
                key.as_bytes(),
                KeyMetadata { expire_at_ms, ..KeyMetadata::default() },
                &value,
            );
        }
        file.finish().map(drop)
    });
    let mut analysis = analysis();
    let reader = PipeReader { from, held: Vec::new(), at: 0 };
    let outcome = rdb::read(reader, 0, &mut analysis, &mut Progress::hidden());
    writer.join().unwrap().unwrap();
    assert_eq!(outcome.error, None);
    let (groups, nodes) = analysis.held();
    assert!(groups <= GROUPS_MAX && nodes <= NODES_MAX, "{groups} groups, {nodes} nodes");
    let findings = analysis.finish();
    assert_eq!(findings.keys(), KEYS);
    assert_eq!(findings.groups.iter().map(|(_, _, group)| group.keys).sum::<u64>(), KEYS);
    assert_eq!(
        findings.databases.values().map(|database| database.expiring).sum::<u64>(),
        KEYS / 2
    );
}
