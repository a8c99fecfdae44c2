//! Payloads, replies, events and effects are those of Redis 7.0.15. `payloads.txt` has one line per
//! value: name, encoding, DEBUG DIGEST-VALUE, payload in hexadecimal.

use crate::dataset::digest::Digest;
use crate::env::EvictionPolicy;
use crate::keyspace::{DbIndex, Keys};
use crate::testing::Db;
use brisk_persist::rdb::{Encoder, dump, kind};

const PAYLOADS: &str = include_str!("payloads.txt");

/// The string `hello`, as an argument of an inline request.
const HELLO: &str = r#""\x00\x05hello\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a""#;
/// The same with a wrong checksum.
const BROKEN: &str = r#""\x00\x05hello\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x78""#;

struct Row {
    name: &'static str,
    encoding: &'static str,
    digest: &'static str,
    payload: Vec<u8>,
}

fn rows() -> impl Iterator<Item = Row> {
    PAYLOADS.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let (name, encoding, digest, hex) = (word(), word(), word(), word());
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let payload = (0..hex.len()).step_by(2).map(byte).collect();
        Row { name, encoding, digest, payload }
    })
}

fn row(name: &str) -> Row {
    rows().find(|row| row.name == name).unwrap()
}

fn restore(db: &mut Db, key: &str, payload: &[u8]) -> String {
    db.run_args(&[b"RESTORE", key.as_bytes(), b"0", payload, b"REPLACE"])
}

/// The bytes of DUMP.
fn dumped(db: &mut Db, key: &str) -> Vec<u8> {
    let wire = db.wire(&[b"DUMP", key.as_bytes()]);
    let start = wire.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    wire[start..wire.len() - 2].to_vec()
}

fn digest(db: &Db, key: &str) -> String {
    let key = db.keyspace().hasher().key(key.as_bytes());
    let prepared = [crate::run::exec::prepare(1, &key)];
    let keys = Keys::lock(db.keyspace(), db.env(), DbIndex::FIRST, &prepared).unwrap();
    Digest::of_value(&keys.inspect(&key).unwrap()).to_string()
}

/// A payload assembled by hand.
fn payload_of(version: u32, write: impl FnOnce(&mut Encoder<Vec<u8>>)) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    write(&mut encoder);
    let mut payload = encoder.into_sink();
    dump::finish(&mut payload, version);
    payload
}

#[test]
fn values_of_every_type_and_encoding_are_restored_as_they_were() {
    let mut db = Db::new();
    db.settings().limits.stream_node_max_entries = 3;
    for row in rows() {
        assert_eq!(restore(&mut db, row.name, &row.payload), "OK", "{}", row.name);
        db.check(&format!("OBJECT ENCODING {}", row.name), &format!("\"{}\"", row.encoding));
        assert_eq!(digest(&db, row.name), row.digest, "{}", row.name);
    }
    db.invariants();
}

#[test]
fn a_restored_value_is_dumped_as_the_same_bytes() {
    let mut db = Db::new();
    // Compressed payloads differ, because compressors differ, and so do hash tables, which have no
    // order.
    for name in ["str", "int", "int64", "list", "nodes", "hash", "zset", "stream", "empty"] {
        let row = row(name);
        db.settings().limits.list_max_listpack_size = if name == "nodes" { 3 } else { -2 };
        restore(&mut db, "k", &row.payload);
        assert_eq!(dumped(&mut db, "k"), row.payload, "{name}");
    }
}

#[test]
fn a_dumped_value_is_restored_as_the_same_value() {
    let mut db = Db::new();
    for row in rows() {
        restore(&mut db, "k", &row.payload);
        let payload = dumped(&mut db, "k");
        restore(&mut db, "k", &payload);
        assert_eq!(digest(&db, "k"), row.digest, "{}", row.name);
    }
}

#[test]
fn encodings_beyond_the_limits_are_converted() {
    let mut db = Db::new();
    let limits = &mut db.settings().limits;
    limits.hash_max_listpack_entries = 2;
    limits.set_max_intset_entries = 4;
    limits.zset_max_listpack_entries = 4;
    limits.list_max_listpack_size = 2;
    for (name, encoding) in [
        ("hash", "hashtable"),
        ("ints", "hashtable"),
        ("words", "hashtable"),
        ("zset", "skiplist"),
        ("list", "quicklist"),
    ] {
        let row = row(name);
        restore(&mut db, name, &row.payload);
        db.check(&format!("OBJECT ENCODING {name}"), &format!("\"{encoding}\""));
        assert_eq!(digest(&db, name), row.digest, "{name}");
    }
    let limits = &mut db.settings().limits;
    limits.hash_max_listpack_value = 70;
    limits.zset_max_listpack_value = 70;
    for name in ["table", "skip"] {
        restore(&mut db, name, &row(name).payload);
        let encoding = if name == "table" { "hashtable" } else { "listpack" };
        db.check(&format!("OBJECT ENCODING {name}"), &format!("\"{encoding}\""));
    }
}

#[test]
fn a_stream_keeps_its_groups_and_pending_entries() {
    let mut db = Db::new();
    restore(&mut db, "stream", &row("stream").payload);
    db.check("XLEN stream", "(integer) 4");
    db.check("XPENDING stream grp", "1) (integer) 2\n2) \"2-0\"\n3) \"3-0\"\n4) 1) 1) \"alice\"\n      2) \"1\"\n   2) 1) \"bob\"\n      2) \"1\"");
    db.check("XACK stream grp 3-0", "(integer) 1");
    db.check("XGROUP DELCONSUMER stream grp alice", "(integer) 1");
    db.check("XGROUP DELCONSUMER stream grp carol", "(integer) 0");
    db.check(
        "XADD stream 4-0 a b",
        "(error) ERR The ID specified in XADD is equal or smaller than the target stream top item",
    );
    db.check("XADD stream 4-1 a b", "\"4-1\"");
    db.check("XTRIM stream MAXLEN 1", "(integer) 4");
    db.invariants();
}

#[test]
fn ttls_of_fields_are_restored() {
    let mut db = Db::new();
    db.run("HSET h a 1 b 2 c 3");
    db.run("HPEXPIREAT h 9000 FIELDS 1 b");
    db.run("HPEXPIREAT h 5000 FIELDS 1 c");
    let want = "1) (integer) -1\n2) (integer) 9000\n3) (integer) 5000";
    for encoding in ["listpackex", "hashtable"] {
        let payload = dumped(&mut db, "h");
        assert_eq!(payload[payload.len() - 10..payload.len() - 8], [12, 0]);
        assert_eq!(restore(&mut db, "copy", &payload), "OK");
        db.check("OBJECT ENCODING copy", &format!("\"{encoding}\""));
        db.check("HPEXPIRETIME copy FIELDS 3 a b c", want);
        assert_eq!(digest(&db, "copy"), digest(&db, "h"));
        // In the next round, the encoding is a table.
        db.settings().limits.hash_max_listpack_entries = 2;
        assert_eq!(restore(&mut db, "h", &payload), "OK");
    }
    db.at(6000).check("HGET copy c", "(nil)").check("HLEN copy", "(integer) 2");
    // Without TTLs, servers that do not support field TTLs can read the payload.
    db.run("HPERSIST copy FIELDS 1 b");
    let payload = dumped(&mut db, "copy");
    assert_eq!(payload[payload.len() - 10..payload.len() - 8], [10, 0]);
    db.invariants();
}

#[test]
fn older_and_later_layouts_are_read() {
    let mut db = Db::new();
    let texts = |encoder: &mut Encoder<Vec<u8>>, texts: &[&str]| {
        texts.iter().for_each(|text| encoder.string(text.as_bytes()));
    };
    let list = payload_of(6, |encoder| {
        encoder.kind(kind::LIST);
        encoder.length(3);
        texts(encoder, &["a", "2", "c"]);
    });
    restore(&mut db, "list", &list);
    db.check("LRANGE list 0 -1", "1) \"a\"\n2) \"2\"\n3) \"c\"");
    db.check("OBJECT ENCODING list", "\"listpack\"");
    let mut pack = brisk_structures::listpack::ListPack::new();
    ["b", "1", "a"].iter().for_each(|text| pack.push_back(text.as_bytes()));
    let set = payload_of(11, |encoder| {
        encoder.kind(kind::SET_LISTPACK);
        encoder.string(pack.as_bytes());
    });
    restore(&mut db, "set", &set);
    db.check("SMEMBERS set", "1) \"b\"\n2) \"1\"\n3) \"a\"");
    db.check("OBJECT ENCODING set", "\"listpack\"");
    db.settings().limits.set_max_listpack_entries = 2;
    restore(&mut db, "set", &set);
    db.check("OBJECT ENCODING set", "\"hashtable\"");
}

#[test]
fn a_missing_key_has_no_payload() {
    Db::new().check("DUMP k", "(nil)");
}

#[test]
fn options_are_judged_first_then_the_key_then_the_ttl_then_the_payload() {
    const SYNTAX: &str = "(error) ERR syntax error";
    const NO_INTEGER: &str = "(error) ERR value is not an integer or out of range";
    const NO_IDLE: &str = "(error) ERR Invalid IDLETIME value, must be >= 0";
    const NO_FREQ: &str = "(error) ERR Invalid FREQ value, must be >= 0 and <= 255";
    const CHECKSUM: &str = "(error) ERR DUMP payload version or checksum are wrong";
    let mut db = Db::new();
    for (options, want) in [
        ("replace foo", SYNTAX),
        ("idletime", SYNTAX),
        ("idletime x", NO_INTEGER),
        ("idletime -1 foo", NO_IDLE),
        ("freq 256 foo", NO_FREQ),
        ("freq -1", NO_FREQ),
        ("freq x", NO_INTEGER),
        ("freq 1 idletime 1", SYNTAX),
        ("idletime 1 idletime 1", NO_INTEGER),
        ("", NO_INTEGER),
    ] {
        db.check(&format!("RESTORE k x {BROKEN} {options}"), want);
    }
    db.check(&format!("RESTORE k -1 {BROKEN}"), "(error) ERR Invalid TTL value, must be >= 0");
    db.check(&format!("RESTORE k 0 {BROKEN}"), CHECKSUM);
    db.check("RESTORE k 0 \"\"", CHECKSUM);
    db.check(&format!("RESTORE k 0 {HELLO}"), "OK");
    let busy = "(error) BUSYKEY Target key name already exists.";
    db.check(&format!("RESTORE k x {BROKEN}"), busy);
    db.check(&format!("RESTORE k x {BROKEN} REPLACE"), NO_INTEGER);
    db.check("GET k", "\"hello\"");
}

#[test]
fn bad_data_changes_nothing() {
    let mut db = Db::new();
    db.run("SET k old PX 5000");
    let bad: [&[u8]; 5] = [b"\x01\x00", b"\x02\x02\x01a\x01a", b"\x63", b"\x00\x05a", b""];
    for body in bad {
        let payload = payload_of(10, |encoder| body.iter().for_each(|byte| encoder.kind(*byte)));
        assert_eq!(restore(&mut db, "k", &payload), "(error) ERR Bad data format", "{body:?}");
    }
    db.check("GET k", "\"old\"").check("PTTL k", "(integer) 5000");
}

#[test]
fn a_ttl_is_relative_or_absolute_and_in_the_past_deletes_the_key() {
    let mut db = Db::new();
    let dirty = |db: &mut Db, words: &str| {
        let (reply, changes) = db.run_counting(&format!("RESTORE k {words}"));
        assert_eq!(reply, "OK", "{words}");
        changes
    };
    assert_eq!(dirty(&mut db, &format!("10000 {HELLO}")), 1);
    db.check("PEXPIRETIME k", "(integer) 11000");
    assert_eq!(dirty(&mut db, &format!("500 {HELLO} REPLACE ABSTTL")), 1);
    db.check("EXISTS k", "(integer) 0");
    assert_eq!(dirty(&mut db, &format!("500 {HELLO} ABSTTL")), 0);
    db.check("EXISTS k", "(integer) 0");
    assert_eq!(dirty(&mut db, &format!("9223372036854775807 {HELLO}")), 0);
    db.check("EXISTS k", "(integer) 0");
    assert_eq!(dirty(&mut db, &format!("9223372036854775807 {HELLO} ABSTTL")), 1);
    db.check("PEXPIRETIME k", "(integer) 9223372036854775807");
    assert_eq!(dirty(&mut db, &format!("0 {HELLO} REPLACE")), 1);
    db.check("PTTL k", "(integer) -1");
    db.invariants();
}

#[test]
fn a_propagated_restore_has_an_absolute_time() {
    let mut db = Db::new();
    let quoted = r#""\x00\x05hello\n\x00cr\xdfve4 \n""#;
    let later = format!("restore k 11000 {quoted} REPLACE ABSTTL");
    db.effects(&format!("restore k 10000 {HELLO} REPLACE"), &[&later]);
    db.effects(&format!("restore k 500 {HELLO} replace absttl"), &["DEL k"]);
    db.effects(&format!("restore k 500 {HELLO} replace absttl"), &[]);
    let as_sent = format!("restore k 0 {quoted} freq 3");
    db.effects(&format!("restore k 0 {HELLO} freq 3"), &[&as_sent]);
    db.settings().lazy_server_del = true;
    db.effects(&format!("restore k 500 {HELLO} replace absttl"), &["UNLINK k"]);
}

#[test]
fn events_name_the_key_and_not_the_value_it_replaced() {
    let mut db = Db::new();
    db.events(&format!("RESTORE k 0 {HELLO}"), &["restore k"]);
    db.events(&format!("RESTORE k 5000 {HELLO} REPLACE"), &["restore k"]);
    db.events(&format!("RESTORE k 1 {HELLO} REPLACE ABSTTL"), &["del k"]);
    db.events(&format!("RESTORE k 1 {HELLO} REPLACE ABSTTL"), &[]);
}

#[test]
fn idle_time_or_frequency_come_with_the_value_if_the_policy_counts_them() {
    let mut db = Db::new();
    db.at(1_000_000_000_000);
    db.run(&format!("RESTORE k 0 {HELLO} IDLETIME 1000"));
    db.check("OBJECT IDLETIME k", "(integer) 1000");
    db.run(&format!("RESTORE k 0 {HELLO} REPLACE IDLETIME 100000000000"));
    db.check("OBJECT IDLETIME k", "(integer) 7792640");
    db.run(&format!("RESTORE k 0 {HELLO} REPLACE FREQ 10"));
    db.check("OBJECT IDLETIME k", "(integer) 0");
    db.settings().eviction = EvictionPolicy::AllKeysLfu;
    db.run(&format!("RESTORE k 0 {HELLO} REPLACE FREQ 10"));
    db.check("OBJECT FREQ k", "(integer) 10");
    db.run(&format!("RESTORE k 0 {HELLO} REPLACE IDLETIME 10"));
    db.check("OBJECT FREQ k", "(integer) 5");
}

#[test]
fn a_large_string_is_dumped_and_restored_whole() {
    let mut db = Db::new();
    let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    db.run_args(&[b"SET", &b"k"[..], &text]);
    let payload = dumped(&mut db, "k");
    restore(&mut db, "copy", &payload);
    assert_eq!(db.wire(&[b"GET", &b"copy"[..]]), db.wire(&[b"GET", &b"k"[..]]));
    db.check("OBJECT ENCODING copy", "\"raw\"");
}
