//! A full copy: from REPLICAOF until the replica has everything, and the waits of a client of the primary during this
//! time.
//!
//! The primary has one CPU, and the replica the other. On the replica's CPU, a thread with a higher priority sends the
//! primary a GET or a SET every two ms.

use super::{SIDES, number, request_replication};
use crate::bench::Setup;
use crate::bench::huge::pass;
use crate::bench::load::percentile_ms;
use crate::bench::report::{Limit, Report, Row, median};
use crate::bench::sides::{LOAD_CPU, SERVER_CPU, load_from_here, step_forward};
use anyhow::{Context, Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::Conn;
use brisk_testkit::random::Random;
use brisk_testkit::server::Server;
use brisk_testkit::words::encode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Size of the data at scale 1.
const DATA_BYTES: u64 = 2 << 30;
/// Maximum number of rounds. A round takes up to a minute.
const ROUNDS_MAX: usize = 3;
const PROBE_EVERY: Duration = Duration::from_millis(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the primary is measured without a replica.
const WITHOUT: Duration = Duration::from_secs(3);
const SYNCED_WITHIN: Duration = Duration::from_secs(300);
/// The number of keys whose values are compared.
const SAMPLE: usize = 500;

/// One half of the data is strings of random bytes, and the rest is small collections of all types. The memory of each,
/// including overhead, is estimated.
const STRING_BYTES: usize = 400;
const STRING_TAKES: u64 = 500;
const COLLECTION_ELEMENTS: u64 = 20;
const COLLECTION_TAKES: u64 = 1000;
const COMMANDS_AT_ONCE: u64 = 500;

/// The promised limit.
const LONGER_MS_MAX: f64 = 1.0;

/// The results of one round, in the order of [`NAMES`].
type Metrics = [f64; 4];

const NAMES: [(&str, &str); 4] = [
    ("until the replica has everything", "s"),
    ("longest request without a copy", "ms"),
    ("longest request during the copy", "ms"),
    ("p99.9 during the copy", "ms"),
];

pub(super) fn sync(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let bytes = (DATA_BYTES as f64 * setup.scale) as u64;
    let primaries: Vec<Server> =
        SIDES.iter().map(|side| side.start_on(setup, SERVER_CPU)).collect::<Result<_>>()?;
    for primary in &primaries {
        fill(primary, bytes)?;
    }
    let mut found: [Vec<Metrics>; 2] = [Vec::new(), Vec::new()];
    for round in 0..setup.rounds.min(ROUNDS_MAX) {
        for at in 0..SIDES.len() {
            let at = (at + round) % SIDES.len();
            let replica = SIDES[at].start_on(setup, LOAD_CPU)?;
            found[at].push(measure(&primaries[at], &replica)?);
        }
    }
    let middle = |side: usize, metric: usize| {
        median(&found[side].iter().map(|all: &Metrics| all[metric]).collect::<Vec<_>>())
    };
    let gb = bytes as f64 / f64::from(1 << 30);
    for (metric, (what, unit)) in NAMES.into_iter().enumerate() {
        report.add(Row {
            what: format!("full copy of {gb:.1} GB: {what}"),
            unit,
            ours: middle(0, metric),
            theirs: Some(middle(1, metric)),
            limit: if metric == 0 { Limit::Ratio(1.0) } else { Limit::None },
        });
    }
    report.add(Row {
        what: format!("full copy of {gb:.1} GB: increase of the longest request"),
        unit: "ms",
        ours: middle(0, 2) - middle(0, 1),
        theirs: Some(middle(1, 2) - middle(1, 1)),
        limit: Limit::Most(LONGER_MS_MAX),
    });
    Ok(())
}

fn measure(primary: &Server, replica: &Server) -> Result<Metrics> {
    let (_, without) = probed(primary, || pass(WITHOUT))?;
    let (took, meanwhile) = probed(primary, || {
        let begun = Instant::now();
        request_replication(replica, primary.port())?;
        loop {
            ensure!(begun.elapsed() < SYNCED_WITHIN, "no full copy:\n{}", replica.log());
            if replica.info("master_link_status") == "up"
                && number(replica, "slave_repl_offset")? >= number(primary, "master_repl_offset")?
            {
                return Ok(begun.elapsed());
            }
            pass(LOOK_EVERY)?;
        }
    })?;
    compare(&mut primary.connect(), &mut replica.connect())?;
    let at = meanwhile.len() * 999 / 1000;
    Ok([
        took.as_secs_f64(),
        percentile_ms(&without, 100),
        percentile_ms(&meanwhile, 100),
        meanwhile.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0),
    ])
}

/// The sorted round trips of requests during `work`.
fn probed<T>(server: &Server, work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<Duration>)> {
    let over = AtomicBool::new(false);
    let mut prober = Peer::connect(&server.address())?;
    std::thread::scope(|scope| {
        let probing = scope.spawn(|| -> Result<Vec<Duration>> {
            load_from_here()?;
            step_forward()?;
            let requests = [&["SET", "probe", "v"][..], &["GET", "probe"]];
            let mut times = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                prober.request(requests[times.len() % 2])?;
                times.push(begun.elapsed());
                pass(PROBE_EVERY)?;
            }
            times.sort();
            Ok(times)
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        let times = probing.join().map_err(|_| anyhow::anyhow!("the prober panicked"))??;
        Ok((done?, times))
    })
}

/// Checks that both servers have the same number of keys, and the same values for some of them.
fn compare(primary: &mut Conn, replica: &mut Conn) -> Result<()> {
    let (wanted, found) = (primary.cmd("DBSIZE"), replica.cmd("DBSIZE"));
    ensure!(wanted == found, "the replica has {found} keys of {wanted}");
    for _ in 0..SAMPLE {
        let look = format!("DEBUG DIGEST-VALUE {}", primary.cmd("RANDOMKEY").text());
        let (wanted, found) = (primary.cmd(&look), replica.cmd(&look));
        ensure!(wanted == found && !wanted.is_error(), "{look}: {found} of {wanted}");
    }
    Ok(())
}

/// Commands that differ only in the number of their key. They are encoded in advance, so that filling is fast.
struct Numbered {
    bytes: Vec<u8>,
    /// The position of the number's digits.
    digits: usize,
}

impl Numbered {
    const DIGITS: &str = "000000000000";

    fn new(command: &str, further_words: &[String]) -> Result<Numbered> {
        let key = format!("{}:{}", command.to_ascii_lowercase(), Self::DIGITS);
        let words = [command.to_owned(), key].into_iter().chain(further_words.iter().cloned());
        let bytes = encode(&words.collect::<Vec<_>>());
        let digits = bytes.windows(Self::DIGITS.len()).position(|at| at == Self::DIGITS.as_bytes());
        Ok(Numbered { bytes, digits: digits.context("no number in it")? })
    }

    /// Appends the command with this number. Returns its position.
    fn write(&self, number: u64, into: &mut Vec<u8>) -> usize {
        let begin = into.len();
        into.extend_from_slice(&self.bytes);
        let digits = format!("{number:012}");
        into[begin + self.digits..][..digits.len()].copy_from_slice(digits.as_bytes());
        begin
    }
}

/// Fills a server with about this many bytes.
fn fill(server: &Server, bytes: u64) -> Result<()> {
    let mut random = Random::new(23);
    let noise: Vec<u8> = (0..1 << 17).flat_map(|_| random.bits().to_le_bytes()).collect();
    let string = Numbered::new("SET", &["x".repeat(STRING_BYTES)])?;
    let value = string.bytes.len() - b"\r\n".len() - STRING_BYTES;
    let mut write_string = |number, into: &mut Vec<u8>| {
        let begin = string.write(number, into);
        let from = random.below(noise.len() - STRING_BYTES);
        into[begin + value..][..STRING_BYTES].copy_from_slice(&noise[from..][..STRING_BYTES]);
    };
    send(server, bytes / 2 / STRING_TAKES, &mut write_string)?;
    let item = |i: u64| format!("element:{:08}", i * 7919);
    let collections =
        [("RPUSH", 0), ("SADD", 0), ("HSET", 1), ("ZADD", 2)].map(|(command, pairs)| {
            let words = (0..COLLECTION_ELEMENTS).flat_map(|i| match pairs {
                0 => vec![item(i)],
                1 => vec![item(i), i.to_string()],
                _ => vec![i.to_string(), item(i)],
            });
            Numbered::new(command, &words.collect::<Vec<_>>())
        });
    let collections: Vec<Numbered> = collections.into_iter().collect::<Result<_>>()?;
    send(server, bytes / 2 / COLLECTION_TAKES, &mut |number, into| {
        collections[number as usize % collections.len()].write(number, into);
    })
}

/// Sends commands with the numbers below `count`.
fn send(server: &Server, count: u64, write: &mut dyn FnMut(u64, &mut Vec<u8>)) -> Result<()> {
    let mut peer = Peer::connect(&server.address())?;
    let mut bytes = Vec::new();
    for first in (0..count).step_by(COMMANDS_AT_ONCE as usize) {
        bytes.clear();
        let numbers = first..count.min(first + COMMANDS_AT_ONCE);
        numbers.clone().for_each(|number| write(number, &mut bytes));
        peer.send(&bytes)?;
        for _ in numbers {
            let reply = peer.reply().map_err(anyhow::Error::msg)?;
            ensure!(!reply.starts_with(b"-"), "{}", String::from_utf8_lossy(reply));
        }
    }
    Ok(())
}
