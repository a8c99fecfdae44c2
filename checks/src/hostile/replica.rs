//! A replica that sends requests that no real replica sends: impossible offsets, reports about databases that do not
//! exist, and requests in the middle of a synchronization.

use super::Round;
use super::clients::encoded;
use super::primary::NUMBERS;
use brisk_testkit::random::Random;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

/// Connects as a replica, on one connection after another.
pub(super) fn attach(round: &Round<'_>, mut random: Random) {
    let mut received = vec![0; 1 << 16];
    while !round.is_over() {
        let Some(mut stream) = round.connect() else { continue };
        round.attached.fetch_add(1, Ordering::Relaxed);
        let mut steps = random.below(300);
        while steps > 0 && !round.is_over() {
            steps -= 1;
            if stream.write_all(&request(&mut random)).is_err() {
                break;
            }
            if random.percent(30) && stream.read(&mut received).is_ok_and(|len| len == 0) {
                break;
            }
        }
    }
}

fn request(random: &mut Random) -> Vec<u8> {
    let number = *random.pick(NUMBERS);
    let other = *random.pick(NUMBERS);
    match random.below(16) {
        0 => encoded(&["PSYNC", "?", "-1"]),
        1 => encoded(&["PSYNC", &"0123456789abcdef".repeat(3)[..40], number]),
        2 => encoded(&["PSYNC", number, other]),
        3 => encoded(&["SYNC"]),
        4 => encoded(&["REPLCONF", "listening-port", number]),
        5 => encoded(&["REPLCONF", "ip-address", number]),
        6 => encoded(&[
            "REPLCONF",
            "capa",
            *random.pick(&["eof", "psync2", "brisk-compare/1", number]),
        ]),
        7 | 8 => encoded(&["REPLCONF", "ACK", number]),
        9 => encoded(&["REPLCONF", "ACK", number, "FACK", other]),
        10..13 => encoded(&["REPLCONF", "brisk-compared", &report(random)]),
        13 => encoded(&[
            "REPLCONF",
            *random.pick(&["rdb-only", "rdb-filter-only", "version", "GETACK"]),
            number,
        ]),
        14 => b"\n".to_vec(),
        _ => encoded(&[*random.pick(&["PING", "WAIT", "FAILOVER ABORT", "INFO"]), number, other]),
    }
}

/// The report of a comparison, with numbers of any size.
fn report(random: &mut Random) -> String {
    let mut text = random.below(1000).to_string();
    text += " -";
    for _ in 0..5 {
        text.push(' ');
        text += match random.percent(70) {
            true => *random.pick(&["0", "1"]),
            false => *random.pick(NUMBERS),
        };
    }
    text += " -";
    for _ in 0..random.below(4) {
        let [db, slot, digest] = [(); 3].map(|()| *random.pick(NUMBERS));
        text += &format!(" {db}:{slot}@{digest}");
    }
    text
}
