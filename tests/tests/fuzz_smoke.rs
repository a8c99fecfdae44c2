//! Runs each fuzz target on its corpus and on a few thousand mutations, so that every machine finds what a fuzzer would
//! find within seconds. For long runs, use `cargo +nightly fuzz run TARGET`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::random::Random;
use brisk_testkit::server::workspace_root;
use std::fs;
use std::process::Command;

/// Mutated inputs per target. They take seconds in an unoptimized build.
const MUTATIONS: usize = 4_000;

/// Maximum length of an input. Longer inputs would not find more.
const LEN_MAX: usize = 600;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = workspace_root().join("fuzz/corpus").join(target);
    let mut files: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort(); // the same seed must give the same run everywhere
    let inputs: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!inputs.is_empty(), "{} is empty", directory.display());
    inputs
}

/// Changes `input` at one position: flips a bit, replaces a byte, or removes, duplicates or inserts a piece.
fn mutate(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(input.len() + 1);
    let end = (at + 1 + random.below(16)).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 => input.insert(at, *random.pick(b"\r\n*$+-:_,#(%~>|=!;?0123456789 \"'\\\x00\xff")),
        2 if at < end => drop(input.drain(at..end)),
        3 if at < end => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        4 if !other.is_empty() => {
            let from = random.below(other.len());
            let to = (from + 1 + random.below(32)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
        _ => input.truncate(at),
    }
    input.truncate(LEN_MAX);
}

fn smoke(target: &str, run: fn(&[u8])) {
    let inputs = corpus(target);
    inputs.iter().for_each(|input| run(input));
    let mut random = Random::new(0xb215c);
    let mut input = Vec::new();
    for _ in 0..MUTATIONS {
        if random.percent(20) || input.is_empty() {
            input.clone_from(random.pick(&inputs));
        }
        for _ in 0..1 + random.below(4) {
            let other = random.pick(&inputs).clone();
            mutate(&mut random, &mut input, &other);
        }
        let outcome = std::panic::catch_unwind(|| run(&input));
        if outcome.is_err() {
            // Print the input as a Rust literal, ready for a named test and a corpus file.
            panic!("{target} fails on b\"{}\"", input.escape_ascii());
        }
    }
}

#[test]
fn requests_survive() {
    smoke("request", brisk_resp::fuzzing::request);
}

#[test]
fn replies_survive() {
    smoke("reply", brisk_resp::fuzzing::reply);
}

#[test]
fn tables_survive() {
    smoke("table", brisk_structures::fuzzing::fuzz_table);
}

#[test]
fn entries_survive() {
    smoke("entry", brisk_structures::fuzzing::fuzz_entry);
}

#[test]
fn hyperloglogs_survive() {
    smoke("hyperloglog", brisk_structures::fuzzing::fuzz_hyperloglog);
}

#[test]
fn integer_sets_survive() {
    smoke("intset", brisk_structures::fuzzing::fuzz_intset);
}

#[test]
fn listpacks_survive() {
    smoke("listpack", brisk_structures::fuzzing::fuzz_listpack);
}

#[test]
fn lzf_blocks_survive() {
    smoke("lzf", brisk_structures::fuzzing::fuzz_lzf);
}

#[test]
fn configuration_files_survive() {
    smoke("config_file", brisk_config::fuzzing::config_file);
}

#[test]
fn dump_payloads_survive() {
    smoke("rdb_dump", brisk_persist::fuzzing::fuzz_dump);
}

#[test]
fn rdb_files_survive() {
    smoke("rdb_file", brisk_persist::fuzzing::fuzz_file);
}

#[test]
fn files_of_commands_survive() {
    smoke("aof_file", brisk_persist::fuzzing::fuzz_aof);
}

#[test]
fn manifests_survive() {
    smoke("aof_manifest", brisk_persist::fuzzing::fuzz_manifest);
}

#[test]
fn script_libraries_survive() {
    smoke("script_libraries", brisk_script::fuzzing::fuzz_libraries);
}

#[test]
fn the_manifest_of_the_fuzz_targets_is_sound_and_names_them_all() {
    let directory = workspace_root().join("fuzz");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata = String::from_utf8(metadata.stdout).unwrap();
    for file in fs::read_dir(directory.join("fuzz_targets")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(metadata.contains(&format!("fuzz_targets/{name}\"")), "{name} is no target");
    }
}
