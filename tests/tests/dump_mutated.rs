//! RESTORE of payloads with changed bytes: there is no panic or hang, memory use is proportional to the payload, and a
//! rejected payload changes nothing.
//!
//! The environment variable `MUTATIONS` overrides the number of mutations, [`MUTATIONS`].
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_engine::testing::Db;
use brisk_persist::rdb::{Encoder, RdbEvent, RdbReader, Sink, Value, dump, kind_of};
use brisk_structures::alloc::{Peak, peak_bytes};
use brisk_testkit::random::Random;
use brisk_testkit::server::rdb_fixtures;
use std::alloc::System;
use std::collections::BTreeMap;
use std::fs;

#[global_allocator]
static ALLOCATOR: Peak<System> = Peak(System);

const MUTATIONS: usize = 50_000;
/// The maximum length of payloads to mutate, and their number for each layout.
const SEED_BYTES_MAX: usize = 4_000;
const SEEDS_OF_A_KIND: usize = 40;
/// The memory that RESTORE may use, as a multiple of the payload's size, in addition to [`CONSTANT`].
const FACTOR: usize = 10;
/// The bytes that RESTORE may always use, for a new key, the request and the reply.
const CONSTANT: usize = 4 << 10;
/// With compression, [`FACTOR`] applies to the uncompressed content, which may be this many times as large as the
/// payload.
const LZF_FACTOR: usize = 88;

fn mutations() -> usize {
    std::env::var("MUTATIONS").map_or(MUTATIONS, |text| text.parse().expect("a number"))
}

/// Payloads of all kinds without their footers, each preceded by an RDB version.
fn seeds(compressed: bool) -> Vec<Vec<u8>> {
    let mut by_kind: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    for file in rdb_fixtures() {
        let bytes = fs::read(file).unwrap();
        let mut reader = RdbReader::new(bytes.as_slice()).unwrap().skip_modules();
        while let Ok(Some(event)) = reader.next_event() {
            let RdbEvent::Entry(entry) = event else { continue };
            let seed = seed(&entry.value, compressed);
            let known = by_kind.entry(seed[0]).or_default();
            if seed.len() <= SEED_BYTES_MAX && known.len() < SEEDS_OF_A_KIND {
                known.push(seed);
            }
        }
    }
    by_kind.into_values().flatten().collect()
}

fn seed(value: &Value, compressed: bool) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    encoder.set_compression(compressed);
    encoder.kind(kind_of(value));
    encoder.value(value);
    encoder.into_sink()
}

/// Changes, removes and repeats bytes.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let len = bytes.len();
        if len < 2 {
            return bytes.put(&[0, 1]);
        }
        let at = random.below(len);
        match random.below(8) {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = *random.pick(&[0, 1, 0x3f, 0x40, 0x80, 0x81, 0xc0, 0xc3, 0xfe, 0xff]),
            4 => drop(bytes.drain(at..at + random.below((len - at).min(9)))),
            5 => {
                let part = bytes[at..at + random.below((len - at).min(40))].to_vec();
                bytes.splice(at..at, part);
            }
            6 => bytes.truncate(at.max(1)),
            _ => bytes[at] = bytes[random.below(len)],
        }
    }
}

/// Commands that read every part of a value and then modify it.
const USES: &[(&str, &[&str])] = &[
    ("string", &["GET k", "APPEND k x", "SETRANGE k 3 y"]),
    ("list", &["LRANGE k 0 -1", "LINSERT k BEFORE a b", "LPUSH k x", "RPOP k", "LTRIM k 1 -2"]),
    ("set", &["SMEMBERS k", "SADD k 1 x", "SRANDMEMBER k -3", "SPOP k 2"]),
    ("hash", &["HGETALL k", "HPTTL k FIELDS 1 a", "HSET k x y", "HDEL k x", "HRANDFIELD k 3"]),
    ("zset", &["ZRANGE k 0 -1 WITHSCORES", "ZADD k 1 x", "ZRANK k x", "ZPOPMIN k", "ZPOPMAX k 3"]),
    (
        "stream",
        &[
            "XINFO STREAM k FULL COUNT 0",
            "XREVRANGE k + -",
            "XADD k * a b",
            "XAUTOCLAIM k g c 0 0",
            "XTRIM k MAXLEN 3",
            "XGROUP DELCONSUMER k g alice",
            "XGROUP DESTROY k g",
            "XTRIM k MAXLEN 0",
        ],
    ),
];

fn use_up(db: &mut Db) {
    let kind = db.run("TYPE k");
    let lines = USES.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, lines)| lines);
    lines.iter().for_each(|line| drop(db.run(line)));
    db.run("DUMP k");
}

fn try_all(compressed: bool, seed_number: u64, count: usize) {
    let seeds = seeds(compressed);
    assert!(seeds.len() > 100, "{}", seeds.len());
    let mut db = Db::new();
    // The first reply allocates buffers that are reused.
    db.run("PING");
    let (mut good, mut bad) = (0, 0);
    for number in 0..count {
        let mut random = Random::derived(seed_number, number as u64);
        let mut payload = random.pick(&seeds).clone();
        mutate(&mut random, &mut payload);
        dump::finish(&mut payload, *random.pick(&[10, 12]));
        db.run("SET k old");
        let words = [b"RESTORE", &b"k"[..], b"0", &payload, b"REPLACE"];
        let (reply, peak) = peak_bytes(|| db.run_args(&words));
        let factor = if compressed { FACTOR * LZF_FACTOR } else { FACTOR };
        assert!(
            peak <= payload.len() * factor + CONSTANT,
            "mutation {number}: {peak} bytes of memory for {}: {payload:02x?}",
            payload.len()
        );
        if reply == "OK" {
            good += 1;
            use_up(&mut db);
        } else {
            bad += 1;
            assert_eq!(reply, "(error) ERR Bad data format", "mutation {number}");
            assert_eq!(db.run("GET k"), "\"old\"", "mutation {number}");
        }
        db.run("DEL k");
    }
    db.invariants();
    // Changes in texts leave a payload valid, but most other changes do not.
    assert!(good > bad / 20 && bad > good / 20, "{good} restored, {bad} refused");
}

#[test]
fn payloads_with_changed_bytes_are_restored_or_rejected() {
    try_all(false, 25, mutations());
}

#[test]
fn compressed_payloads_with_changed_bytes_are_restored_or_rejected() {
    try_all(true, 26, mutations() / 2);
}
