//! DUMP and RESTORE between our server and a real Redis: each understands the other.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_persist::rdb::value::HashValue;
use brisk_persist::rdb::{Event, RdbReader, Value, dump};
use brisk_testkit::reply::Reply;
use brisk_testkit::server::workspace_root;
use brisk_testkit::{Conn, Launch, Server};
use std::fs;
use std::path::PathBuf;

/// Settings under which small values have all encodings.
const SETTINGS: &[&str] = &[
    "CONFIG SET hash-max-listpack-entries 8",
    "CONFIG SET set-max-intset-entries 8",
    "CONFIG SET zset-max-listpack-entries 8",
    "CONFIG SET list-max-listpack-size 4",
    "CONFIG SET stream-node-max-entries 4",
];

/// Larger payloads of the fixtures are left out.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

struct Pair {
    ours: Conn,
    theirs: Conn,
    _servers: [Server; 2],
}

fn pair() -> Pair {
    let ours = Launch::subject().set("enable-debug-command", "yes").start();
    let theirs = Launch::redis().set("enable-debug-command", "yes").start();
    Pair { ours: ours.connect(), theirs: theirs.connect(), _servers: [ours, theirs] }
}

/// Lines that make keys of every type and encoding.
fn lines() -> Vec<String> {
    let numbered = |start: &str, n: usize, item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..n).map(item).collect();
        format!("{start} {}", items.join(" "))
    };
    let long = "long".repeat(40);
    let mut lines = vec![
        "SET int -70000".into(),
        "SET text hello".into(),
        format!("SET compressed {long}"),
        format!("SETRANGE large 100000 {long}"),
        "PFADD hll a b c d e".into(),
        "CONFIG SET list-compress-depth 1".into(),
        numbered("RPUSH list:lzf", 40, &|n| format!("{long}{n}")),
        "CONFIG SET list-compress-depth 0".into(),
        format!("RPUSH list:large a {} b", "x".repeat(10_000)),
        "ZADD zset:special 1 a 2.5 b -inf c +inf d 0.1 e".into(),
        format!("ZADD zset:long 1 {long} -3.25 b"),
        format!("HSET hash:long f {long} g 1"),
        format!("SADD set:long {long} 1"),
    ];
    for n in [3, 100] {
        lines.push(numbered(&format!("RPUSH list:{n}"), n, &|n| format!("{}", n * n * n)));
        lines.push(numbered(&format!("SADD ints:{n}"), n, &|n| format!("{}", n * n * n)));
        lines.push(numbered(&format!("SADD set:{n}"), n, &|n| format!("m{n}")));
        lines.push(numbered(&format!("HSET hash:{n}"), n, &|n| format!("f{n} {n}")));
        lines.push(numbered(&format!("ZADD zset:{n}"), n, &|n| format!("{n}.5 m{n}")));
    }
    lines.extend((1..30).map(|n| format!("XADD stream {n}-{n} f{} v{n} g w", n / 7)));
    for line in [
        "XDEL stream 3-3 11-11 29-29",
        "XGROUP CREATE stream g 0",
        "XGROUP CREATE stream other 5-5 ENTRIESREAD 5",
        "XREADGROUP GROUP g alice COUNT 7 STREAMS stream >",
        "XREADGROUP GROUP g bob COUNT 3 STREAMS stream >",
        "XGROUP CREATECONSUMER stream g carol",
        "XGROUP CREATE empty g $ MKSTREAM",
    ] {
        lines.push(line.into());
    }
    lines
}

fn bulk(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) => bytes,
        other => panic!("no bulk string: {other}"),
    }
}

fn digest(conn: &mut Conn, key: &str) -> String {
    conn.cmd(&format!("DEBUG DIGEST-VALUE {key}")).to_string()
}

/// Moves each key of `from` to `to` by its payload.
fn hand_over(from: &mut Conn, to: &mut Conn) {
    let keys: Vec<String> = from.cmd("KEYS *").elements().iter().map(|key| key.text()).collect();
    assert!(keys.len() > 20);
    for key in keys {
        let payload = bulk(from.cmd(&format!("DUMP {key}")));
        let reply = to.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]);
        assert_eq!(reply.to_string(), "OK", "{key}");
        assert_eq!(digest(to, &key), digest(from, &key), "{key}");
    }
    for question in ["XINFO STREAM stream", "XINFO GROUPS stream", "XPENDING stream g"] {
        let (one, other) = (from.cmd(question).to_string(), to.cmd(question).to_string());
        assert_eq!(one, other, "{question}");
    }
}

fn fill(conn: &mut Conn, lines: &[String]) {
    for line in lines {
        let reply = conn.cmd(line);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply}");
    }
}

fn set(conn: &mut Conn, settings: &[&str]) {
    settings.iter().for_each(|line| assert_eq!(conn.cmd(line).to_string(), "OK"));
}

#[test]
fn a_real_server_restores_what_we_dump() {
    let mut pair = pair();
    set(&mut pair.ours, SETTINGS);
    fill(&mut pair.ours, &lines());
    hand_over(&mut pair.ours, &mut pair.theirs);
}

#[test]
fn we_restore_what_a_real_server_dumps() {
    let mut pair = pair();
    set(&mut pair.theirs, SETTINGS);
    fill(&mut pair.theirs, &lines());
    hand_over(&mut pair.theirs, &mut pair.ours);
}

#[test]
fn values_convert_to_the_limits_of_who_restores_them() {
    let mut pair = pair();
    fill(&mut pair.theirs, &lines());
    set(&mut pair.ours, SETTINGS);
    hand_over(&mut pair.theirs, &mut pair.ours);
    // And back from what they became.
    pair.theirs.cmd("FLUSHALL");
    hand_over(&mut pair.ours, &mut pair.theirs);
}

fn fixture_files() -> Vec<PathBuf> {
    let root = workspace_root().join("tests/fixtures/rdb");
    let mut files: Vec<PathBuf> = [root.clone(), root.join("old")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .collect();
    files.sort();
    files
}

fn has_deadlines(value: &Value) -> bool {
    let Value::Hash(hash) = value else { return false };
    matches!(hash, HashValue::PackedDeadlines(_) | HashValue::FieldsDeadlines(..))
}

#[test]
fn values_of_snapshots_are_restored_by_both_alike() {
    let mut pair = pair();
    let mut restored = 0;
    for file in fixture_files() {
        let bytes = fs::read(&file).unwrap();
        let mut reader = RdbReader::new(bytes.as_slice()).unwrap().skip_modules();
        while let Ok(Some(event)) = reader.next_event() {
            let Event::Entry(entry) = event else { continue };
            let payload = dump::write(&entry.value);
            if payload.len() > PAYLOAD_BYTES_MAX {
                continue;
            }
            let words = [b"RESTORE", &b"k"[..], b"0", &payload, b"REPLACE"];
            let text = || format!("{}: {:?}", file.display(), String::from_utf8_lossy(&entry.key));
            assert_eq!(pair.ours.call(&words).to_string(), "OK", "{}", text());
            restored += 1;
            if has_deadlines(&entry.value) {
                continue;
            }
            assert_eq!(pair.theirs.call(&words).to_string(), "OK", "{}", text());
            assert_eq!(digest(&mut pair.ours, "k"), digest(&mut pair.theirs, "k"), "{}", text());
        }
    }
    assert!(restored > 400, "{restored}");
}
