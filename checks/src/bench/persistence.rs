//! BGSAVE while fifty clients write: the waits of clients, the duration, and the same without a snapshot.
//!
//! The server, its child process and its writer thread share one CPU, so in both servers a snapshot takes CPU time from
//! the write load. If a snapshot uses more CPU time than this load leaves idle, the write rate must drop. A separate
//! prober sends a GET or a SET every two ms.

use super::Setup;
use super::huge::pass;
use super::load::{fill, percentile_ms, send_commands};
use super::report::{Limit, Report, Row, median};
use super::sides::{LOAD_CPU, Sides};
use anyhow::{Context, Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::Conn;
use brisk_testkit::server::Server;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Size of the data at scale 1: one half in strings, the rest in small collections.
const DATA_BYTES: u64 = 1 << 30;
const STRING_BYTES: usize = 400;
/// The estimated memory of a string, including overhead. The next constant is that of a collection.
const STRING_TAKES: u64 = 500;
const COLLECTION_TAKES: u64 = 1000;
const COLLECTION_ELEMENTS: u64 = 20;
/// Elements of the huge values at scale 1.
const HUGE_ELEMENTS: u64 = 1_000_000;
const ELEMENTS_PER_COMMAND: u64 = 500;

const WRITERS: &str = "50";
const PROBE_EVERY: Duration = Duration::from_millis(2);
/// How long the server is measured without a snapshot.
const WITHOUT: Duration = Duration::from_secs(5);
/// The time after which INFO is up to date.
const SAMPLED_WITHIN: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The time limit of a snapshot.
const SAVED_WITHIN: Duration = Duration::from_secs(600);

/// The promised limits.
const LONGER_MS_MAX: f64 = 1.0;
const RATE_MIN: f64 = 0.85;
const MEMORY_PERCENT_MAX: f64 = 15.0;

/// The write load, which runs until it is dropped.
struct Writers(Child);

impl Writers {
    fn start(server: &Server, command: &[String], keys: u64) -> Result<Writers> {
        let mut load = Command::new("taskset");
        load.args(["-c", &LOAD_CPU.to_string(), "redis-benchmark", "-q", "-l", "-h", "127.0.0.1"]);
        load.args(["-p", &server.port().to_string(), "-c", WRITERS, "-r", &keys.to_string()]);
        load.args(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Writers(load.spawn().context("redis-benchmark")?))
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        // If the process has already ended, there is nothing to stop.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The results of a measurement.
struct Seen {
    /// Round trips of the prober, sorted.
    times: Vec<Duration>,
    per_second: f64,
    lasted: f64,
    /// The largest increase of RSS since the start.
    grown: u64,
}

impl Seen {
    fn longest_ms(&self) -> f64 {
        percentile_ms(&self.times, 100)
    }

    /// The 99.9th percentile, in ms.
    fn p999_ms(&self) -> f64 {
        let index = self.times.len() * 999 / 1000;
        self.times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
    }
}

/// Probes until `ends` returns true, which is checked periodically.
fn watch(
    server: &Server,
    conn: &mut Conn,
    mut ends: impl FnMut(&mut Conn) -> bool,
) -> Result<Seen> {
    let done = AtomicBool::new(false);
    let mut prober = Peer::connect(&server.address())?;
    std::thread::scope(|scope| {
        let probing = scope.spawn(|| -> Result<Vec<Duration>> {
            let (mut times, requests) =
                (Vec::new(), [&["SET", "probe", "v"][..], &["GET", "probe"]]);
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                prober.request(requests[times.len() % 2])?;
                times.push(begun.elapsed());
                pass(PROBE_EVERY)?;
            }
            times.sort();
            Ok(times)
        });
        let (begun, rss) = (Instant::now(), server.rss());
        let before = commands(conn);
        let mut grown = 0;
        while !ends(conn) && begun.elapsed() < SAVED_WITHIN {
            grown = grown.max(server.rss().saturating_sub(rss));
            pass(LOOK_EVERY)?;
        }
        let lasted = begun.elapsed().as_secs_f64();
        let executed = commands(conn) - before;
        done.store(true, Ordering::Relaxed);
        let times = probing.join().map_err(|_| anyhow::anyhow!("the prober panicked"))??;
        Ok(Seen { times, per_second: executed / lasted, lasted, grown })
    })
}

fn commands(conn: &mut Conn) -> f64 {
    conn.info("total_commands_processed").parse().unwrap_or(f64::NAN)
}

/// CPU seconds of the server and its children.
fn cpu_s(conn: &mut Conn) -> Result<f64> {
    // Our server updates this value ten times per second.
    pass(SAMPLED_WITHIN)?;
    let parts =
        ["used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children"]
            .map(|field| conn.info(field).parse().unwrap_or(f64::NAN));
    Ok(parts.iter().sum())
}

fn begin(conn: &mut Conn) -> Result<()> {
    let reply = conn.cmd("BGSAVE").to_string();
    ensure!(reply == "Background saving started", "{reply}");
    Ok(())
}

fn is_over(conn: &mut Conn) -> bool {
    conn.info("rdb_bgsave_in_progress") == "0"
}

/// The results of one server and round, in the order of [`NAMES`].
type Metrics = [f64; 10];

const NAMES: [(&str, &str); 10] = [
    ("longest request without a snapshot", "ms"),
    ("longest request during a snapshot", "ms"),
    ("p99.9 without a snapshot", "ms"),
    ("p99.9 during a snapshot", "ms"),
    ("commands per second without a snapshot", "1/s"),
    ("commands per second during a snapshot", "1/s"),
    ("BGSAVE during writes", "s"),
    ("BGSAVE of an idle server", "s"),
    ("CPU time of BGSAVE on an idle server", "s"),
    ("extra memory, relative to the dataset", "%"),
];

fn measure(server: &Server, command: &[String], keys: u64) -> Result<Metrics> {
    let mut conn = server.connect();
    let cpu = cpu_s(&mut conn)?;
    let begun = Instant::now();
    begin(&mut conn)?;
    let idle = watch_end(&mut conn, begun)?;
    let cpu = cpu_s(&mut conn)? - cpu;

    let _writers = Writers::start(server, command, keys)?;
    // Let the writers connect and warm up the caches first.
    let warm = Instant::now();
    watch(server, &mut conn, |_| warm.elapsed() > WITHOUT / 5)?;
    let begun = Instant::now();
    let without = watch(server, &mut conn, |_| begun.elapsed() > WITHOUT)?;
    let data: f64 = conn.info("used_memory_dataset").parse().unwrap_or(f64::NAN);
    let mut started = false;
    let during = watch(server, &mut conn, |conn| {
        // Within the measurement, so that the cost of BGSAVE itself is included.
        started |= !started && begin(conn).is_ok();
        started && is_over(conn)
    })?;
    ensure!(conn.info("rdb_last_bgsave_status") == "ok", "the snapshot failed:\n{}", server.log());
    // The pages of a child process are not in the server's RSS.
    let copied: f64 = conn.info("rdb_last_cow_size").parse().unwrap_or(f64::NAN);
    let copied = copied.max(during.grown as f64);
    Ok([
        without.longest_ms(),
        during.longest_ms(),
        without.p999_ms(),
        during.p999_ms(),
        without.per_second,
        during.per_second,
        during.lasted,
        idle,
        cpu,
        copied * 100.0 / data,
    ])
}

/// Returns the seconds from `begun` to the end of the snapshot.
fn watch_end(conn: &mut Conn, begun: Instant) -> Result<f64> {
    while !is_over(conn) {
        ensure!(begun.elapsed() < SAVED_WITHIN, "a snapshot takes too long");
        pass(LOOK_EVERY)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Strings and small collections of all types.
fn fill_mixed(server: &Server, bytes: u64) -> Result<u64> {
    let strings = bytes / 2 / STRING_TAKES;
    fill(server, 0, strings, STRING_BYTES)?;
    let collections = bytes / 2 / COLLECTION_TAKES;
    send_commands(
        server,
        (0..collections).map(|n| {
            let item = |i: u64| format!("element:{:08}", n * 31 + i * 7);
            let (command, pairs) =
                [("RPUSH", 0), ("SADD", 0), ("HSET", 1), ("ZADD", 2)][n as usize % 4];
            let elements = (0..COLLECTION_ELEMENTS).flat_map(|i| match pairs {
                0 => vec![item(i)],
                1 => vec![item(i), i.to_string()],
                _ => vec![i.to_string(), item(i)],
            });
            [command.to_owned(), format!("collection:{n}")].into_iter().chain(elements).collect()
        }),
    )?;
    Ok(strings)
}

/// Creates a sorted set and a hash, which the writers change.
fn fill_huge(server: &Server, elements: u64) -> Result<()> {
    for (command, key) in [("ZADD", "zset"), ("HSET", "hash")] {
        let chunks = (0..elements).step_by(ELEMENTS_PER_COMMAND as usize);
        send_commands(
            server,
            chunks.map(|first| {
                let pairs = (first..first + ELEMENTS_PER_COMMAND).flat_map(|i| {
                    let element = format!("element:{i:012}");
                    if key == "zset" { [i.to_string(), element] } else { [element, i.to_string()] }
                });
                [command.to_owned(), key.to_owned()].into_iter().chain(pairs).collect()
            }),
        )?;
    }
    Ok(())
}

/// Runs all parts, or one with `--part mixed`, `zset` or `hash`.
pub(crate) fn persistence(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let part = setup.options.text("part");
    let bytes = (DATA_BYTES as f64 * setup.scale) as u64;
    let elements = setup.scaled(HUGE_ELEMENTS).next_multiple_of(ELEMENTS_PER_COMMAND);
    let sets = [words("SET key:__rand_int__"), vec!["x".repeat(STRING_BYTES)]].concat();
    let parts = [
        ("mixed", sets),
        ("zset", words("ZADD zset 1 element:__rand_int__")),
        ("hash", words("HSET hash element:__rand_int__ changed")),
    ];
    for (name, command) in parts {
        if part.is_some_and(|part| part != name) {
            continue;
        }
        let sides = Sides::start(setup)?;
        let servers = [&sides.ours[0].1, &sides.theirs];
        let mut keys = elements;
        for server in servers {
            match name {
                "mixed" => keys = fill_mixed(server, bytes)?,
                _ => fill_huge(server, elements)?,
            }
        }
        let mut metrics: [Vec<Metrics>; 2] = [Vec::new(), Vec::new()];
        for round in 0..setup.rounds {
            for i in [round % 2, (round + 1) % 2] {
                metrics[i].push(measure(servers[i], &command, keys)?);
            }
        }
        report_metrics(report, name, &metrics);
    }
    Ok(())
}

fn report_metrics(report: &mut Report, name: &str, metrics: &[Vec<Metrics>; 2]) {
    let middle = |side: usize, metric: usize| {
        median(&metrics[side].iter().map(|all| all[metric]).collect::<Vec<_>>())
    };
    for (metric, (what, unit)) in NAMES.into_iter().enumerate() {
        let limit = match metric {
            6..=8 => Limit::Ratio(1.0),
            9 => Limit::Most(MEMORY_PERCENT_MAX),
            _ => Limit::None,
        };
        let (ours, theirs) = (middle(0, metric), Some(middle(1, metric)));
        report.add(Row { what: format!("{name}: {what}"), unit, ours, theirs, limit });
    }
    let longer = |side| middle(side, 1) - middle(side, 0);
    report.add(Row {
        what: format!("{name}: increase of the longest request"),
        unit: "ms",
        ours: longer(0),
        theirs: Some(longer(1)),
        limit: Limit::Most(LONGER_MS_MAX),
    });
    let kept = |side| middle(side, 5) / middle(side, 4);
    report.add(Row {
        what: format!("{name}: rate during a snapshot, relative to the rate without one"),
        unit: "ratio",
        ours: kept(0),
        theirs: Some(kept(1)),
        limit: Limit::Least(RATE_MIN),
    });
}
