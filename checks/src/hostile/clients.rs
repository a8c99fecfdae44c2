//! Ordinary clients: random commands, in pipelines whose replies are read late or never.

use super::Round;
use brisk_differential::generate::Generator;
use brisk_testkit::random::Random;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

/// Reports whether clients may run the command. Commands that stop the server or lock its operator out are excluded.
pub(super) fn may_run(name: &str) -> bool {
    let kept_back =
        ["shutdown", "acl|", "config|", "debug", "client|pause", "module|", "replicaof", "slaveof"];
    !kept_back.iter().any(|start| name.starts_with(start))
}

/// Encodes a request.
pub(super) fn encoded<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Runs commands, on one connection after another.
pub(super) fn run(round: &Round<'_>, mut random: Random) {
    let mut calls = Generator::of_all(round.table, Random::new(random.bits()));
    let mut replies = vec![0; 1 << 16];
    while !round.is_over() {
        let Some(mut stream) = round.connect() else { continue };
        for _ in 0..random.below(200) {
            let count = 1 + random.below(50);
            let batch: Vec<u8> = (0..count).flat_map(|_| encoded(&calls.words())).collect();
            if stream.write_all(&batch).is_err() {
                break;
            }
            round.commands.fetch_add(count as u64, Ordering::Relaxed);
            if random.percent(90) && stream.read(&mut replies).is_ok_and(|len| len == 0) {
                break;
            }
            if round.is_over() {
                return;
            }
        }
    }
}
