//! Append-only files of a real Redis and of Brisk give the same results as a snapshot of the same data.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::{self, *};
use brisk_analyze::model::Classes;
use brisk_analyze::progress::Progress;
use brisk_analyze::source::aof::read_path;
use brisk_analyze::source::live::Words;
use brisk_analyze::{Analysis, Findings};
use brisk_testkit::{Launch, Server, TempDir};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn servers() -> [Server; 2] {
    [Launch::redis(), Launch::subject()]
        .map(|launch| launch.set("save", "").set("appendonly", "yes").start())
}

/// The commands for the base.
fn first() -> Vec<Words> {
    let each = |n: u64| {
        [
            format!("SET user:{n} name-{n}"),
            format!("RPUSH list:{n} a b c"),
            format!("HSET hash:{n} a 1 b 2"),
            format!("SADD set:{n} 1 2 3"),
            format!("ZADD board:{n} 1 a 2 b"),
            format!("XADD stream:{n} 1-1 a b"),
            format!("SET untouched:{n} {}", "x".repeat(100)),
        ]
    };
    (0..200).flat_map(each).map(|line| words(&line)).collect()
}

/// The commands after the base, on some keys of each type.
fn then() -> Vec<Words> {
    let each = |n: u64| {
        [
            format!("APPEND user:{n} and-more-of-it"),
            format!("LPUSH list:{n} {}", "y".repeat(300)),
            format!("HDEL hash:{n} a"),
            format!("SADD set:{n} word"),
            format!("ZINCRBY board:{n} 5 c"),
            format!("XADD stream:{n} 2-1 c d"),
            format!("DEL user:{}", 150 + n),
            format!("RENAME list:{} renamed:{n}", 100 + n),
            format!("SETEX fresh:{n} 100000 value"),
            format!("INCRBY counter:{n} 100000"),
            format!("EXPIRE hash:{n} 5000"),
        ]
    };
    let mut all: Vec<Words> = (0..50).flat_map(each).map(|line| words(&line)).collect();
    all.extend([words("SELECT 5"), words("SET elsewhere:1 value"), words("MOVE elsewhere:1 6")]);
    all.extend([words("MULTI"), words("SET both:1 a"), words("SET both:2 b"), words("EXEC")]);
    all
}

/// Writes the data, and waits until all of it is in the file. With a slow disk, servers may reply earlier.
fn fill(server: &Server, requests: impl IntoIterator<Item = Words>) {
    harness::fill(server, requests);
    server.wait_for_info("aof_buffer_length", |bytes| bytes == "0");
}

fn rewritten(server: &Server) {
    let reply = server.connect().cmd("BGREWRITEAOF");
    assert!(!reply.is_error(), "{reply}");
    server.wait_for_info("aof_rewrite_in_progress", |field| field == "0");
    server.wait_for_info("aof_rewrite_scheduled", |field| field == "0");
}

fn read(path: &Path) -> Findings {
    let mut analysis = Analysis::new(Classes::USUAL, brisk_analyze::measure::Limits::default(), 0);
    read_path(path, &mut analysis, &mut Progress::hidden()).unwrap();
    analysis.finish()
}

/// The database, the pattern, the type and the encoding of a group.
type Name = (u64, String, &'static str, &'static str);

/// The numbers of keys, elements, and keys with a TTL of all groups.
fn groups(findings: &Findings) -> BTreeMap<Name, (u64, u64, u64)> {
    let mut all = BTreeMap::new();
    for (pattern, key, group) in &findings.groups {
        let name = (key.db, pattern.to_string(), key.kind.name(), key.encoding.name());
        all.insert(name, (group.keys, group.elements, group.expiring));
    }
    all
}

/// Compares the results with those of a snapshot of the same server.
#[track_caller]
fn assert_same(server: &Server, path: &Path) {
    let (snapshot, found) = (read(&saved(server)), read(path));
    assert_eq!(found.facts.error, None);
    assert_eq!(groups(&found), groups(&snapshot), "{:?}", found.facts.notes);
    assert_close("bytes", snapshot.total().redis, found.total().redis, 0.001);
    assert!(found.facts.notes.iter().all(|note| !note.contains("were not")), "{:?}", found.facts);
}

fn directory(server: &Server) -> PathBuf {
    server.dir().join("appendonlydir")
}

/// The file with the highest number in the directory.
fn last_increment(server: &Server) -> PathBuf {
    let files = fs::read_dir(directory(server)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.to_string_lossy().ends_with(".incr.aof")).collect();
    files.sort();
    files.pop().unwrap()
}

fn base(server: &Server) -> PathBuf {
    let mut files = fs::read_dir(directory(server)).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().ends_with(".base.rdb")).unwrap()
}

#[test]
fn a_base_and_later_commands_give_the_same_result_as_a_snapshot() {
    for server in servers() {
        fill(&server, first());
        // The file contains only commands.
        assert_same(&server, &directory(&server));
        rewritten(&server);
        // The file has only a base, which is found by each of these paths.
        assert_same(&server, &directory(&server));
        assert_same(&server, &base(&server));
        fill(&server, then());
        assert_same(&server, &directory(&server));
        let manifest = directory(&server).join("appendonly.aof.manifest");
        assert_same(&server, &manifest);
        fill(&server, [words("SWAPDB 0 3"), words("SELECT 6"), words("FLUSHDB")]);
        assert_same(&server, &directory(&server));
    }
}

/// Servers before version 7 wrote such files.
#[test]
fn commands_after_a_snapshot_in_one_file_are_executed_too() {
    for server in servers() {
        fill(&server, first());
        rewritten(&server);
        fill(&server, then());
        let home = TempDir::new();
        let path = home.path("appendonly.aof");
        let whole = [fs::read(base(&server)).unwrap(), fs::read(last_increment(&server)).unwrap()];
        fs::write(&path, whole.concat()).unwrap();
        assert_same(&server, &path);
    }
}

#[test]
fn a_truncated_file_is_reported_and_its_complete_part_counted() {
    let [server, _] = servers();
    fill(&server, first());
    let path = last_increment(&server);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let found = read(&directory(&server));
    let error = found.facts.error.clone().unwrap();
    assert!(error.contains("the file is complete up to byte"), "{error}");
    // All keys except the last one.
    assert_eq!(found.keys(), 200 * 7 - 1);
}

#[test]
fn files_of_other_kinds_are_rejected() {
    let home = TempDir::new();
    let mut analysis = Analysis::new(Classes::USUAL, brisk_analyze::measure::Limits::default(), 0);
    let mut error = |path: &Path| {
        read_path(path, &mut analysis, &mut Progress::hidden()).unwrap_err().to_string()
    };
    let missing = home.path("missing");
    assert!(error(&missing).contains("No such file"));
    let directory = home.path("");
    assert!(error(&directory).contains("contains no manifest"));
    let manifest = home.path("a.manifest");
    fs::write(&manifest, "nonsense\n").unwrap();
    assert!(error(&manifest).contains("a.manifest"));
    let text = home.path("notes.txt");
    fs::write(&text, "some text\n").unwrap();
    let mut analysis = Analysis::new(Classes::USUAL, brisk_analyze::measure::Limits::default(), 0);
    read_path(&text, &mut analysis, &mut Progress::hidden()).unwrap();
    assert!(analysis.finish().facts.error.is_some());
}
