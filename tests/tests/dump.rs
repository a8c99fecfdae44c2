//! DUMP and RESTORE between our server and a real Redis: each restores the payloads of the other.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_persist::rdb::value::HashValue;
use brisk_persist::rdb::{RdbEvent, RdbReader, Value, dump};
use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Program, workspace_root};
use brisk_testkit::{Conn, Launch, Server, assert_reply};
use std::fs;
use std::path::{Path, PathBuf};

/// Settings with which small values use all encodings.
const SETTINGS: &[&str] = &[
    "CONFIG SET hash-max-listpack-entries 8",
    "CONFIG SET set-max-intset-entries 8",
    "CONFIG SET zset-max-listpack-entries 8",
    "CONFIG SET list-max-listpack-size 4",
    "CONFIG SET stream-node-max-entries 4",
];

/// The maximum size of a payload from the fixtures. Larger ones are left out.
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

/// Commands that create keys of every type and encoding.
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

/// Copies each key of `from` to `to` with DUMP and RESTORE.
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
fn restored_values_use_the_limits_of_the_receiving_server() {
    let mut pair = pair();
    fill(&mut pair.theirs, &lines());
    set(&mut pair.ours, SETTINGS);
    hand_over(&mut pair.theirs, &mut pair.ours);
    // Then copy the restored keys back.
    pair.theirs.cmd("FLUSHALL");
    hand_over(&mut pair.ours, &mut pair.theirs);
}

fn fixture_files() -> Vec<PathBuf> {
    let root = workspace_root().join("tests/fixtures/rdb");
    let mut files: Vec<PathBuf> = [root.clone(), root.join("old")]
        .iter()
        .flat_map(|directory| fs::read_dir(directory).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .collect();
    files.sort();
    files
}

fn has_deadlines(value: &Value) -> bool {
    let Value::Hash(hash) = value else { return false };
    matches!(hash, HashValue::PackedExpiry(_) | HashValue::FieldsExpiry(..))
}

#[test]
fn values_of_snapshots_are_restored_by_both_alike() {
    let mut pair = pair();
    let mut restored = 0;
    for file in fixture_files() {
        let bytes = fs::read(&file).unwrap();
        let mut reader = RdbReader::new(bytes.as_slice()).unwrap().skip_modules();
        while let Ok(Some(event)) = reader.next_event() {
            let RdbEvent::Entry(entry) = event else { continue };
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

/// The digest of the dataset in a manifest; `None` if the file is rejected.
///
/// Later servers use a different notation for scores in the digest. If there is a 7.0.15 file with the same name, it
/// has the same data, and its digest is used.
fn digest_in_manifest(file: &Path) -> Option<String> {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let dataset = name.strip_prefix("valkey-8.0.1.");
    let dataset = dataset.or_else(|| name.strip_prefix("redis-unstable-2024-10."));
    let same = dataset.map(|name| file.with_file_name(format!("redis-7.0.15.{name}.json")));
    let path = same.filter(|path| path.exists()).unwrap_or_else(|| file.with_extension("json"));
    let manifest = fs::read_to_string(path).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    Some(manifest.get("debug_digest")?.as_str().unwrap().to_owned())
}

fn dataset_digest(conn: &mut Conn) -> String {
    conn.cmd("DEBUG DIGEST").text()
}

#[test]
fn snapshots_load_as_their_manifests_say() {
    let server = Launch::new(Program::Brisk).set("enable-debug-command", "yes").start();
    let mut conn = server.connect();
    let (mut loaded, mut refused) = (0, 0);
    for file in fixture_files() {
        fs::copy(&file, server.dir().join("dump.rdb")).unwrap();
        conn.cmd("SET stays here");
        let before = dataset_digest(&mut conn);
        let reply = conn.cmd("DEBUG RELOAD NOSAVE").to_string();
        match digest_in_manifest(&file) {
            Some(digest) => {
                assert_eq!(reply, "OK", "{}", file.display());
                assert_eq!(dataset_digest(&mut conn), digest, "{}", file.display());
                loaded += 1;
            }
            None => {
                let error = "ERR Error trying to load the RDB dump, check server logs.";
                assert!(reply.contains(error), "{}: {reply}", file.display());
                assert_eq!(dataset_digest(&mut conn), before, "a refused file changed something");
                refused += 1;
            }
        }
    }
    assert!(loaded > 50 && refused == 3, "{loaded} loaded, {refused} refused");
}

#[test]
fn debug_object_shows_the_same_for_equal_encodings() {
    let Pair { mut ours, mut theirs, _servers } = pair();
    let marked = |conn: &mut Conn, key: &str, marks: &[&str]| -> Vec<String> {
        let line = conn.cmd(&format!("DEBUG OBJECT {key}")).text();
        let words = line.split(' ').filter(|word| marks.iter().any(|mark| word.starts_with(mark)));
        words.map(str::to_owned).collect()
    };
    for conn in [&mut ours, &mut theirs] {
        set(conn, SETTINGS);
        fill(conn, &lines());
        fill(conn, &["SET shared 9999".into()]);
    }
    let nodes = ["encoding:", "ql_nodes:", "ql_avg_node:", "ql_listpack_max:", "ql_compressed:"];
    let sizes = ["serializedlength:", "ql_uncompressed_size:"];
    for key in ["list:lzf", "list:100"] {
        let marks = [&nodes[..], &sizes].concat();
        let want = marked(&mut theirs, key, &marks);
        assert_eq!(want.len(), marks.len());
        assert_eq!(marked(&mut ours, key, &marks), want, "{key}");
    }
    for key in ["zset:3", "hash:3", "ints:3", "zset:100", "hash:100", "text", "int", "shared"] {
        let marks = ["refcount:", "encoding:", "serializedlength:"];
        assert_eq!(marked(&mut ours, key, &marks), marked(&mut theirs, key, &marks), "{key}");
    }
}

/// Replaces the dataset of `to` with that of `from` by copying the RDB file.
fn carry_snapshot(from: &mut Conn, from_dir: &Path, to: &mut Conn, to_dir: &Path) {
    assert_eq!(from.cmd("DEBUG RELOAD").to_string(), "OK");
    fs::copy(from_dir.join("dump.rdb"), to_dir.join("dump.rdb")).unwrap();
    assert_eq!(to.cmd("DEBUG RELOAD NOSAVE").to_string(), "OK");
    assert_eq!(dataset_digest(to), dataset_digest(from));
}

#[test]
fn a_snapshot_is_the_same_dataset_for_both() {
    let Pair { mut ours, mut theirs, _servers: [our, their] } = pair();
    set(&mut ours, SETTINGS);
    fill(&mut ours, &lines());
    fill(&mut ours, &["PEXPIREAT text 4102444800000".into(), "SELECT 7".into()]);
    fill(&mut ours, &["SET k v".into(), "SET gone v PX 1".into(), "SELECT 0".into()]);
    let before = dataset_digest(&mut ours);
    assert_eq!(ours.cmd("DEBUG RELOAD").to_string(), "OK");
    assert_eq!(ours.cmd("PEXPIRETIME text").to_string(), "(integer) 4102444800000");
    carry_snapshot(&mut ours, our.dir(), &mut theirs, their.dir());
    assert_ne!(before, "0".repeat(40));

    fill(&mut theirs, &["SET theirs too".into(), "DEL text".into()]);
    carry_snapshot(&mut theirs, their.dir(), &mut ours, our.dir());
}

#[test]
fn a_damaged_snapshot_changes_nothing() {
    let server = Launch::new(Program::Brisk).set("enable-debug-command", "yes").start();
    let mut conn = server.connect();
    fill(&mut conn, &lines());
    assert_eq!(conn.cmd("DEBUG RELOAD").to_string(), "OK");
    let (path, digest) = (server.dir().join("dump.rdb"), dataset_digest(&mut conn));
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    for bytes in [&whole[..whole.len() - 3], &whole[..9], b"", b"REDIS0099", &damaged] {
        fs::write(&path, bytes).unwrap();
        assert!(conn.cmd("DEBUG RELOAD NOSAVE").to_string().contains("check server logs"));
        assert_eq!(dataset_digest(&mut conn), digest);
    }
    fs::write(&path, &whole).unwrap();
    assert!(conn.cmd("DEBUG RELOAD NOSAVE NOFLUSH").to_string().contains("check server logs"));
    assert_eq!(conn.cmd("DEBUG RELOAD NOSAVE NOFLUSH MERGE").to_string(), "OK");
    assert_eq!(dataset_digest(&mut conn), digest);
}

/// The log contains the texts that users search for in logs of Redis. Clients get the same replies.
#[test]
fn defects_of_a_payload_are_logged() {
    let server = Launch::new(Program::Brisk).start();
    let mut conn = server.connect();
    let whole = bulk(conn.cmd(
        "EVAL 'redis.call(\"HSET\", \"h\", \"f\", \"v\") return redis.call(\"DUMP\", \"h\")' 0",
    ));
    let mut wrong = whole.clone();
    // Change a byte of the listpack, which follows the type and the length.
    wrong[8] ^= 0x7f;
    let checksum = "(error) ERR DUMP payload version or checksum are wrong";
    let restore = |conn: &mut Conn, payload: &[u8]| {
        let words: [&[u8]; 5] = [b"RESTORE", b"k", b"0", payload, b"REPLACE"];
        conn.call(&words).to_string()
    };
    assert_eq!(restore(&mut conn, &wrong), checksum);
    assert_reply!(conn, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1", "OK");
    assert_eq!(restore(&mut conn, &wrong), "(error) ERR Bad data format");
    let log = server.log();
    assert!(log.contains("Hash listpack integrity check failed: "), "{log}");
    assert_reply!(conn, "EXISTS k", "(integer) 0");
    let mut unsummed = whole;
    *unsummed.last_mut().unwrap() ^= 1;
    assert_eq!(restore(&mut conn, &unsummed), "OK");
    assert_reply!(conn, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 0", "OK");
    assert_eq!(restore(&mut conn, &unsummed), checksum);
}
