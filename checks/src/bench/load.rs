//! Load generation: with redis-benchmark where it is sufficient, otherwise with the library of brisk-benchmark or our
//! own connections.

use super::Setup;
use super::report::median;
use super::sides::LOAD_CPU;
use anyhow::{Context, Result, bail};
use brisk_benchmark::load::sizes::ValueSizes;
use brisk_benchmark::load::{Ingredient, Material, Workload};
use brisk_benchmark::{Address, End, Outcome, Pace, Plan, SessionSetup, Target, Unwatched};
use brisk_differential::peer::Peer;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::words::encode_into;
use std::process::Command;
use std::time::{Duration, Instant};

/// One run of redis-benchmark.
pub(crate) struct Run<'a> {
    pub(crate) command: &'a [&'a str],
    pub(crate) operations: u64,
    pub(crate) clients: u32,
    pub(crate) pipeline: u32,
    pub(crate) keep_alive: bool,
    /// The number of keys to draw from; 0 sends the command unchanged.
    pub(crate) keys: u64,
}

/// The results of a run.
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    /// CPU time of the server per operation, µs.
    pub(crate) cpu_us: f64,
    pub(crate) p99_ms: f64,
}

/// Runs redis-benchmark against `server` and measures the server's CPU time.
pub(crate) fn benchmark(server: &Server, run: &Run<'_>) -> Result<Rate> {
    benchmark_at(server.port(), server.pid(), run)
}

/// Runs redis-benchmark against the process `pid`, which listens on `port`.
pub(crate) fn benchmark_at(port: u16, pid: u32, run: &Run<'_>) -> Result<Rate> {
    let before = cpu_ns(pid);
    let mut command = Command::new("taskset");
    command.args(["-c", &LOAD_CPU.to_string(), "redis-benchmark", "--csv", "-h", "127.0.0.1"]);
    command.args(["-p", &port.to_string(), "-n", &run.operations.to_string()]);
    command.args(["-c", &run.clients.to_string(), "-P", &run.pipeline.to_string()]);
    command.args(["-k", if run.keep_alive { "1" } else { "0" }]);
    if run.keys > 0 {
        command.args(["-r", &run.keys.to_string()]);
    }
    let output = command.args(run.command).output().context("redis-benchmark")?;
    // Saturating, because the CPU time of a thread that has ended is no longer counted.
    let cpu_us = cpu_ns(pid).saturating_sub(before) as f64 / 1000.0 / run.operations as f64;
    let text = String::from_utf8_lossy(&output.stdout);
    // The output is a header and one row: the name, requests per second, and the latencies avg, min, p50, p95, p99 and
    // max.
    let row = text.lines().rfind(|line| line.starts_with('"') && !line.starts_with("\"test\""));
    let Some(row) = row.filter(|_| output.status.success()) else {
        bail!("redis-benchmark: {text} {}", String::from_utf8_lossy(&output.stderr));
    };
    // The name may contain commas, but numbers do not, so count from the end.
    let fields: Vec<&str> = row.rsplit(',').map(|field| field.trim_matches('"')).collect();
    let number = |i: usize| fields.get(i).and_then(|f| f.parse().ok()).unwrap_or(f64::NAN);
    Ok(Rate { per_second: number(6), cpu_us, p99_ms: number(1) })
}

/// The medians of servers that get the same load in alternating rounds.
pub(crate) fn by_turns(
    setup: &Setup<'_>,
    servers: &[&Server],
    run: &Run<'_>,
) -> Result<Vec<Medians>> {
    let mut rates: Vec<Vec<Rate>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..setup.rounds {
        for at in 0..servers.len() {
            // The order rotates, so that no server always runs first.
            let at = (at + round) % servers.len();
            rates[at].push(benchmark(servers[at], run)?);
        }
    }
    Ok(rates.iter().map(|rates| Medians::of(rates)).collect())
}

/// The medians of the runs against one server.
pub(crate) struct Medians {
    pub(crate) per_second: f64,
    pub(crate) cpu_us: f64,
    pub(crate) p99_ms: f64,
}

impl Medians {
    fn of(rates: &[Rate]) -> Medians {
        let of = |metric: fn(&Rate) -> f64| median(&rates.iter().map(metric).collect::<Vec<_>>());
        Medians {
            per_second: of(|rate| rate.per_second),
            cpu_us: of(|rate| rate.cpu_us),
            p99_ms: of(|rate| rate.p99_ms),
        }
    }
}

/// Time before a measurement with [`Mix::run`] begins.
const WARM_UP: Duration = Duration::from_secs(1);
/// The number of pending requests of a client in an open loop, so that late replies do not delay requests.
const OPEN_LOOP_PENDING: usize = 16;

/// Random requests of 50 clients.
pub(crate) struct Mix<'a> {
    /// Commands with their weights. `__rand_int__` is the number of a key, `__data__` a value.
    pub(crate) requests: &'a [(&'a str, u64)],
    pub(crate) keys: u64,
    pub(crate) value_bytes: usize,
}

impl Mix<'_> {
    /// Sends the requests for this long, after a second of warm-up.
    pub(crate) fn run(&self, server: &Server, pace: Pace, time: Duration) -> Result<Outcome> {
        let target = Target {
            address: Address::parse(&server.address()).map_err(anyhow::Error::msg)?,
            tls: None,
            session: SessionSetup::default(),
        };
        let plan = Plan {
            pace,
            pipeline: if pace == Pace::Closed { 1 } else { OPEN_LOOP_PENDING },
            end: End::After(time),
            warmup: WARM_UP,
            ..Plan::new(self.workload()?, target)
        };
        let outcome = brisk_benchmark::run(&plan, &mut Unwatched)?;
        if let Some(limit) = &outcome.generator.limit {
            eprintln!("bench: {limit}");
        }
        Ok(outcome)
    }

    fn workload(&self) -> Result<Workload> {
        let sizes = ValueSizes::Fixed(self.value_bytes);
        let material = Material { keyspace: Some(self.keys), sizes, ..Material::default() };
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let parts: Vec<_> = self
            .requests
            .iter()
            .map(|&(line, weight)| (Ingredient::Own(words(line)), weight))
            .collect();
        let name = self.requests.iter().map(|(line, _)| *line).collect::<Vec<_>>().join(", ");
        material.mix(name, &parts).map_err(anyhow::Error::msg)
    }
}

/// A percentile (0 to 1) of the latencies, in ms.
pub(crate) fn latency_ms(outcome: &Outcome, quantile: f64) -> f64 {
    outcome.latency.value_at_quantile(quantile) as f64 / 1e6
}

/// Sets keys `first..first + count`, named as in redis-benchmark (`key:000000000000`), to values of `len` bytes.
pub(crate) fn fill(server: &Server, first: u64, count: u64, len: usize) -> Result<()> {
    const BATCH: u64 = 500;
    let mut peer = Peer::connect(&server.address())?;
    let mut bytes = Vec::new();
    let mut at = first;
    while at < first + count {
        let end = (at + BATCH).min(first + count);
        bytes.clear();
        for i in at..end {
            let value = format!("{i:0len$}");
            encode_into(&mut bytes, &["SET", &format!("key:{i:012}"), &value[..len]]);
        }
        peer.send(&bytes)?;
        for _ in at..end {
            let reply = peer.reply().map_err(anyhow::Error::msg)?;
            if reply != b"+OK\r\n" {
                bail!("SET: {}", String::from_utf8_lossy(reply));
            }
        }
        at = end;
    }
    Ok(())
}

/// Requests or replies of equal length, encoded in advance, so that the load is fast.
pub(crate) struct Lines {
    bytes: Vec<u8>,
    len: usize,
}

impl Lines {
    pub(crate) fn collect(lines: impl Iterator<Item = Vec<u8>>) -> Result<Lines> {
        let lines: Vec<Vec<u8>> = lines.collect();
        let len = lines.first().map(Vec::len).context("no lines")?;
        if lines.iter().any(|line| line.len() != len) {
            bail!("these are not equally long");
        }
        Ok(Lines { bytes: lines.concat(), len })
    }

    /// The number of lines.
    pub(crate) fn count(&self) -> usize {
        self.bytes.len() / self.len
    }

    /// `count` lines, starting with line `first`.
    pub(crate) fn some(&self, first: usize, count: usize) -> &[u8] {
        &self.bytes[first * self.len..][..count * self.len]
    }
}

/// Sends commands and checks that no reply is an error.
pub(crate) fn send_commands(
    server: &Server,
    commands: impl Iterator<Item = Vec<String>>,
) -> Result<()> {
    const BATCH: usize = 500;
    let mut peer = Peer::connect(&server.address())?;
    let mut commands = commands.peekable();
    while commands.peek().is_some() {
        let mut bytes = Vec::new();
        let mut sent = 0;
        for words in commands.by_ref().take(BATCH) {
            encode_into(&mut bytes, &words);
            sent += 1;
        }
        peer.send(&bytes)?;
        for _ in 0..sent {
            let reply = peer.reply().map_err(anyhow::Error::msg)?;
            if reply.starts_with(b"-") {
                bail!("{}", String::from_utf8_lossy(reply));
            }
        }
    }
    Ok(())
}

/// The round-trip times of consecutive PINGs until `stop` returns true.
pub(crate) fn round_trips(server: &Server, stop: impl FnMut() -> bool) -> Result<Vec<Duration>> {
    round_trips_on(&mut Peer::connect(&server.address())?, stop)
}

/// Like [`round_trips`], on an existing connection.
pub(crate) fn round_trips_on(
    peer: &mut Peer,
    mut stop: impl FnMut() -> bool,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !stop() {
        let begun = Instant::now();
        peer.request(&["PING"])?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times)
}

/// The percentile of sorted `times`, in ms.
pub(crate) fn percentile_ms(times: &[Duration], percent: usize) -> f64 {
    let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}
