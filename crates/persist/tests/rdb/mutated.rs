//! Payloads and files with changed bytes: no panic, no hang, and memory in proportion to the input.
//!
//! The environment variable `MUTATIONS` replaces the number [`MUTATIONS`].

use crate::{digest, fixture_files};
use brisk_persist::fuzzing::{fuzz_dump, fuzz_file};
use brisk_persist::rdb::{Encoder, RdbEvent, RdbReader, Value, dump, kind_of};
use brisk_structures::alloc::peak_bytes;
use brisk_testkit::random::Random;
use std::collections::BTreeMap;
use std::fs;

const MUTATIONS: usize = 100_000;
/// Maximum size of the payloads to change.
const SEED_BYTES_MAX: usize = 2_000;
/// Memory may be this many times the size of a payload ...
const FACTOR: usize = 10;
/// ... plus this many bytes, for memory that does not depend on the payload.
const CONSTANT: usize = 512;
/// The content of an LZF block has at most this many times the block's size.
const LZF_FACTOR: usize = 88;

fn mutations() -> usize {
    std::env::var("MUTATIONS").map_or(MUTATIONS, |text| text.parse().expect("a number"))
}

fn fixtures() -> Vec<Vec<u8>> {
    fixture_files().iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Values of every type in the fixtures: the version, the type and the value, without a footer.
fn seeds(compressed: bool) -> Vec<Vec<u8>> {
    let mut by_kind: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    for file in fixtures() {
        let mut reader = RdbReader::new(file.as_slice()).unwrap().skip_modules();
        while let Ok(Some(event)) = reader.next_event() {
            let RdbEvent::Entry(entry) = event else { continue };
            for seed in layouts(&entry.value, compressed) {
                let kind = seed[1];
                let known = by_kind.entry(kind).or_default();
                if seed.len() <= SEED_BYTES_MAX && known.len() < 40 {
                    known.push(seed);
                }
            }
        }
    }
    by_kind.into_values().flatten().collect()
}

/// Encodes the value with its current layout, and with older layouts of its type.
fn layouts(value: &Value, compressed: bool) -> Vec<Vec<u8>> {
    let start = |version: u8, kind: u8| {
        let mut encoder = Encoder::new(vec![version]);
        encoder.set_compression(compressed);
        encoder.kind(kind);
        encoder
    };
    let mut encoder = start(12, kind_of(value));
    encoder.value(value);
    let mut all = vec![encoder.into_sink()];
    let mut plain = |kind: u8, texts: Vec<Vec<u8>>, per: usize| {
        let mut encoder = start(9, kind);
        encoder.length((texts.len() / per) as u64);
        texts.iter().for_each(|text| encoder.string(text));
        all.push(encoder.into_sink());
    };
    match value {
        Value::List(_) => plain(1, digest::elements(value), 1),
        Value::Set(_) => plain(2, digest::elements(value), 1),
        Value::Hash(_) => {
            let fields = digest::fields(value);
            plain(4, fields.into_iter().flat_map(|(field, text, _)| [field, text]).collect(), 2);
        }
        Value::SortedSet(_) => {
            let mut encoder = start(8, 3);
            let scored = digest::scored(value);
            encoder.length(scored.len() as u64);
            for (member, score) in scored {
                encoder.string(&member);
                // This layout has a length of one byte, which is also the encoding of a short
                // length.
                let text = format!("{score:e}");
                encoder.length(text.len() as u64);
                text.bytes().for_each(|byte| encoder.kind(byte));
            }
            all.push(encoder.into_sink());
        }
        _ => {}
    }
    all
}

/// Changes, removes, inserts and copies bytes.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, from: usize) {
    for _ in 0..=random.below(4) {
        let len = bytes.len();
        let at = from + random.below(len - from);
        match random.below(8) {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = *random.pick(&[0, 1, 0x3f, 0x40, 0x80, 0x81, 0xc0, 0xc3, 0xfe, 0xff]),
            4 => {
                let end = at + random.below((len - at).min(9));
                bytes.drain(at..end);
            }
            5 => {
                let end = at + random.below((len - at).min(40));
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            6 => bytes.truncate(at.max(from + 1)),
            _ => bytes[at] = bytes[from + random.below(len - from)],
        }
    }
}

fn read(seed: &[u8]) -> bool {
    dump::read_body(&seed[1..], u32::from(seed[0])).is_ok()
}

fn check_memory(seed: &[u8], factor: usize, text: &str) -> bool {
    let (good, peak) = peak_bytes(|| read(seed));
    assert!(
        peak <= seed.len() * factor + CONSTANT,
        "{text}: {peak} bytes of memory for a payload of {}: {seed:02x?}",
        seed.len()
    );
    good
}

#[test]
fn payloads_with_changed_bytes_take_memory_in_proportion() {
    let seeds = seeds(false);
    assert!(seeds.len() > 100);
    for seed in &seeds {
        assert!(check_memory(seed, FACTOR, "unchanged"), "{seed:02x?}");
    }
    let (mut good, mut bad) = (0, 0);
    for number in 0..mutations() {
        let mut random = Random::derived(15, number as u64);
        let mut seed = random.pick(&seeds).clone();
        mutate(&mut random, &mut seed, 1);
        if check_memory(&seed, FACTOR, &format!("mutation {number}")) {
            good += 1;
        } else {
            bad += 1;
        }
        fuzz_dump(&seed);
    }
    // Changes in texts are harmless; most others are not.
    assert!(good > bad / 20 && bad > good / 20, "{good} read, {bad} rejected");
}

#[test]
fn compressed_payloads_with_changed_bytes_take_no_more_than_their_content() {
    let seeds = seeds(true);
    for number in 0..mutations() / 4 {
        let mut random = Random::derived(16, number as u64);
        let mut seed = random.pick(&seeds).clone();
        mutate(&mut random, &mut seed, 1);
        check_memory(&seed, FACTOR * LZF_FACTOR, &format!("mutation {number}"));
        fuzz_dump(&seed);
    }
}

#[test]
fn files_with_changed_bytes_are_read_or_rejected() {
    let mut files = fixtures();
    files.retain(|file| file.len() <= SEED_BYTES_MAX);
    assert!(files.len() > 30);
    for number in 0..mutations() / 10 {
        let mut random = Random::derived(17, number as u64);
        let mut file = random.pick(&files).clone();
        mutate(&mut random, &mut file, 5);
        fuzz_file(&file);
    }
}

#[test]
fn announced_lengths_take_no_memory() {
    // A length of 2^56 at every position that has one.
    let huge = b"\x81\x01\x00\x00\x00\x00\x00\x00\x00";
    for kind in 0..=25 {
        for before in
            [&b""[..], b"\x01", b"\x01\x01", b"\x01\x02", b"\x01\x01a", b"\x00\x00\x00\x00\x00"]
        {
            for after in [&b""[..], b"\x01a\x01b", b"\x00\x00\x00\x00"] {
                let seed = [&[12, kind], before, huge, after].concat();
                check_memory(&seed, FACTOR, "a length");
                let seed = [&[12, kind], before, b"\xc3\x05", huge, b"\x00a\xe0\xff\x00"].concat();
                check_memory(&seed, FACTOR, "the length of a block's content");
                let seed = [&[12, kind], before, b"\xc3", huge, b"\x05\x00a\xe0\xff\x00"].concat();
                check_memory(&seed, FACTOR, "the length of a block");
            }
        }
    }
}
