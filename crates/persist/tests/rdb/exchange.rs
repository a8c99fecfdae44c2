//! This crate reads what a real server writes, and the server reads what this crate writes. The
//! server's own digests must be equal.

use crate::digest;
use brisk_persist::rdb::{RdbEntry, RdbEvent, RdbReader, RdbWriter, VERSION, Value, dump};
use brisk_testkit::conn::Conn;
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Launch, Server};
use std::fs;

/// Thresholds low enough that every encoding occurs.
fn server() -> Server {
    Launch::redis()
        .set("hash-max-listpack-entries", "8")
        .set("zset-max-listpack-entries", "8")
        .set("set-max-intset-entries", "8")
        .set("list-max-listpack-size", "5")
        .set("stream-node-max-entries", "4")
        .start()
}

/// Strings around the limits between string encodings.
fn word(random: &mut Random) -> Vec<u8> {
    match random.below(9) {
        0 => vec![],
        1 => random
            .pick(&["-129", "127", "32768", "2147483648", "-9223372036854775808"])
            .as_bytes()
            .to_vec(),
        2 => random.below(1 << 20).to_string().into_bytes(),
        3 => vec![b'r'; random.below(400)],
        4 => (0..random.below(80)).map(|_| random.bits() as u8).collect(),
        5 => format!("-{:03}", random.below(300)).into_bytes(),
        6 => format!("word {} word {} word", random.below(30), random.below(3)).into_bytes(),
        _ => format!("w{}", random.below(200)).into_bytes(),
    }
}

fn id(random: &mut Random) -> Vec<u8> {
    format!("{}-{}", random.below(40), random.below(5)).into_bytes()
}

/// Commands that create and change values of all types under a few keys.
fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let number = random.below(4);
    let key = |kind: &str| format!("{kind}:{number}").into_bytes();
    let mut words: Vec<Vec<u8>> = match random.below(14) {
        0 => vec![b"SET".to_vec(), key("string")],
        1 => vec![b"RPUSH".to_vec(), key("list"), word(random)],
        2 => vec![b"LPUSH".to_vec(), key("list")],
        3 => vec![b"SADD".to_vec(), key("set"), word(random)],
        4 => {
            return vec![
                b"SADD".to_vec(),
                key("ints"),
                random.below(1 << (8 * number + 4)).to_string().into_bytes(),
            ];
        }
        5 => vec![b"HSET".to_vec(), key("hash"), word(random)],
        6 | 7 => {
            let score = match random.below(6) {
                0 => "-inf".into(),
                1 => format!("{:e}", f64::from_bits(random.bits() >> 2)),
                _ => (random.below(2000) as f64 / 8.0 - 99.0).to_string(),
            };
            vec![b"ZADD".to_vec(), key("zset"), score.into_bytes()]
        }
        8 | 9 => vec![b"XADD".to_vec(), key("stream"), b"*".to_vec(), word(random)],
        10 => {
            return vec![
                b"XADD".to_vec(),
                key("old"),
                id(random),
                word(random),
                word(random),
                word(random),
                word(random),
            ];
        }
        11 => return vec![b"XDEL".to_vec(), key("old"), id(random)],
        12 => {
            let group = format!("g{}", random.below(3)).into_bytes();
            return vec![b"XGROUP".to_vec(), b"CREATE".to_vec(), key("old"), group, id(random)];
        }
        _ => {
            let group = format!("g{}", random.below(3));
            let consumer = format!("c{}", random.below(4));
            let line = ["XREADGROUP", "GROUP", &group, &consumer, "COUNT", "3", "STREAMS"];
            let mut words: Vec<Vec<u8>> = line.iter().map(|w| w.as_bytes().to_vec()).collect();
            words.extend([key("old"), b">".to_vec()]);
            return words;
        }
    };
    words.push(word(random));
    words
}

fn bulk(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) => bytes,
        other => panic!("a bulk string was expected: {other:?}"),
    }
}

fn keys(conn: &mut Conn) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> =
        conn.cmd("KEYS *").elements().into_iter().map(|key| bulk(key.clone())).collect();
    keys.sort();
    keys
}

fn digest_value(conn: &mut Conn, key: &[u8]) -> String {
    conn.call(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key]).elements()[0].text()
}

#[test]
fn payloads_go_from_a_real_server_and_back() {
    let server = server();
    let mut conn = server.connect();
    let mut seen = 0;
    for seed in 0..12 {
        conn.cmd("FLUSHALL");
        let mut random = Random::derived(seed, 3);
        for _ in 0..400 {
            conn.call(&command(&mut random));
        }
        for key in keys(&mut conn) {
            seen += 1;
            let name = String::from_utf8_lossy(&key).into_owned();
            let payload = bulk(conn.call(&[b"DUMP", key.as_slice()]));
            let value = dump::read(&payload).unwrap_or_else(|e| panic!("seed {seed}, {name}: {e}"));
            let expected = digest_value(&mut conn, &key);
            assert_eq!(digest::of(&value, false), expected, "seed {seed}, {name}");

            let written = dump::write(&value);
            let reply = conn.call(&[b"RESTORE", b"copy".as_slice(), b"0", &written, b"REPLACE"]);
            assert_eq!(reply.text(), "OK", "seed {seed}, {name}");
            assert_eq!(digest_value(&mut conn, b"copy"), expected, "seed {seed}, {name}");
            if matches!(value, Value::Stream(_)) {
                let full = |conn: &mut Conn, key: &[u8]| {
                    conn.call(&[b"XINFO".as_slice(), b"STREAM", key, b"FULL", b"COUNT", b"0"])
                };
                assert_eq!(full(&mut conn, b"copy"), full(&mut conn, &key), "seed {seed}, {name}");
            }
            conn.cmd("DEL copy");
        }
    }
    assert!(seen > 200, "{seen} values");
}

#[test]
fn libraries_go_from_a_real_server_and_back() {
    let server = server();
    let mut conn = server.connect();
    for name in ["one", "other"] {
        let source = format!(
            "#!lua name={name}\nredis.register_function('{name}_f', function() return 1 end)"
        );
        conn.call(&["FUNCTION", "LOAD", &source]);
    }
    let libraries = dump::read_functions(&bulk(conn.cmd("FUNCTION DUMP"))).unwrap();
    assert_eq!(libraries.len(), 2);
    conn.cmd("FUNCTION FLUSH");
    let payload = dump::write_functions(&libraries);
    let reply = conn.call(&[b"FUNCTION".as_slice(), b"RESTORE", &payload]);
    assert_eq!(reply.text(), "OK");
    assert_eq!(conn.cmd("FUNCTION LIST").elements().len(), 2);
}

fn read_file(file: &[u8]) -> Vec<RdbEvent> {
    let mut reader = RdbReader::new(file).unwrap();
    let mut events = vec![];
    while let Some(event) = reader.next_event().unwrap() {
        events.push(event);
    }
    events
}

fn write_file(events: &[RdbEvent], checksum: bool) -> Vec<u8> {
    let mut writer = RdbWriter::new(Vec::new(), VERSION);
    if !checksum {
        writer = writer.without_checksum().without_compression();
    }
    for event in events {
        match event {
            RdbEvent::Aux { name, value } => writer.aux(&String::from_utf8_lossy(name), value),
            RdbEvent::SelectDb(db) => writer.select_db(*db),
            RdbEvent::ResizeDb { keys, expires } => writer.resize_db(*keys, *expires),
            RdbEvent::Function(source) => writer.function(source),
            RdbEvent::Entry(RdbEntry { key, value, metadata }) => {
                writer.entry(key, *metadata, value)
            }
            RdbEvent::End(_) => {}
            other => panic!("a real server does not write {other:?}"),
        }
    }
    writer.finish().expect("memory can be written")
}

#[test]
fn files_go_from_a_real_server_and_back() {
    let server = server();
    let mut conn = server.connect();
    conn.cmd("CONFIG SET rdb-del-sync-files no maxmemory-policy allkeys-lfu");
    conn.cmd("CONFIG SET dbfilename dump.rdb");
    let mut random = Random::derived(77, 1);
    for db in [0, 3, 15] {
        conn.cmd(&format!("SELECT {db}"));
        for _ in 0..600 {
            conn.call(&command(&mut random));
        }
        conn.cmd("PEXPIREAT list:1 4102444800001");
        conn.cmd("PEXPIREAT old:1 4102444800002");
    }
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    conn.call(&["FUNCTION", "LOAD", library]);
    let expected = conn.cmd("DEBUG DIGEST").text();
    let path = server.dir().join("dump.rdb");
    for checksum in [true, false] {
        assert_eq!(conn.cmd("SAVE").text(), "OK");
        let events = read_file(&fs::read(&path).unwrap());
        fs::write(&path, write_file(&events, checksum)).unwrap();
        conn.cmd("FUNCTION FLUSH");
        assert_eq!(conn.cmd("DEBUG RELOAD NOSAVE").text(), "OK", "{}", server.log());
        assert_eq!(conn.cmd("DEBUG DIGEST").text(), expected);
        assert_eq!(conn.cmd("FUNCTION LIST").elements().len(), 1);
    }
}
