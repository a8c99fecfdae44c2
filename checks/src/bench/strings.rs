//! Strings of 256 MB: the cost of changing a byte, the cost of reading all bytes, and the waits of other clients.

use super::Setup;
use super::huge::{pass, watch};
use super::load::percentile_ms;
use super::report::{Limit, Report, Row, median};
use super::sides::Sides;
use anyhow::{Context, Result, ensure};
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::words::encode;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The length of the strings in bytes, at a scale of 1.
const LENGTH: u64 = 256_000_000;
/// How long the server is idle before a command.
const CALM: Duration = Duration::from_millis(50);
/// The size of one read of a reply.
const PIECE_BYTES: usize = 1 << 20;

/// A command on a long string. `a` and `b` are long, `copy` is a fresh copy of `a`.
struct Call {
    words: &'static [&'static str],
    /// The limit for its CPU time, compared with the peer's.
    limit: Limit,
}

/// The measured commands. Those that change a byte have no ratio limit, because both servers take microseconds.
const CALLS: &[Call] = &[
    Call { words: &["APPEND", "copy", "y"], limit: Limit::None },
    Call { words: &["SETBIT", "copy", "1000000000", "0"], limit: Limit::None },
    Call { words: &["SETRANGE", "copy", "100000000", "xyz"], limit: Limit::None },
    Call { words: &["GETRANGE", "a", "1000", "200000000"], limit: Limit::Ratio(1.0) },
    Call { words: &["BITCOUNT", "a"], limit: Limit::Ratio(1.0) },
    Call { words: &["BITPOS", "a", "0"], limit: Limit::None },
    Call { words: &["BITOP", "NOT", "result", "a"], limit: Limit::Ratio(1.0) },
    Call { words: &["BITOP", "XOR", "result", "a", "b"], limit: Limit::Ratio(1.0) },
    Call { words: &["BITOP", "AND", "result", "a", "b"], limit: Limit::Ratio(1.0) },
];

/// Sends a request and reads the whole reply, which is one line or a bulk string.
fn request(server: &Server, words: &[&str], buffer: &mut [u8]) -> Result<()> {
    let mut socket = TcpStream::connect(server.address())?;
    socket.write_all(&encode(words))?;
    let mut replies = BufReader::new(socket);
    let mut line = String::new();
    replies.read_line(&mut line)?;
    ensure!(!line.starts_with('-'), "{}: {line}", words.join(" "));
    let Some(length) = line.strip_prefix('$') else { return Ok(()) };
    let mut left = length.trim_end().parse::<usize>().context("a length")? + 2;
    while left > 0 {
        let some = left.min(buffer.len());
        replies.read_exact(&mut buffer[..some])?;
        left -= some;
    }
    Ok(())
}

/// The cost of one call on one server.
#[derive(Default)]
struct Cost {
    /// CPU time of the server, from the request until it is idle again.
    cpu_ms: Vec<f64>,
    /// The time from the request to the end of its reply.
    took_ms: Vec<f64>,
    /// The longest GET of another client.
    wait_ms: Vec<f64>,
}

/// One of the three costs of a call, for each round.
type MetricFn = fn(&Cost) -> &Vec<f64>;

/// Creates the strings with all bytes written, not only extended.
fn build(server: &Server, length: u64, buffer: &mut [u8]) -> Result<()> {
    let last = (length - 1).to_string();
    for (key, from) in [("a", "zeros"), ("b", "a")] {
        request(server, &["SETRANGE", "zeros", &last, "x"], buffer)?;
        request(server, &["BITOP", "NOT", key, from], buffer)?;
    }
    request(server, &["DEL", "zeros"], buffer)
}

/// Runs each call in alternating rounds on the servers, and reports the medians.
pub(crate) fn strings(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let length = setup.scaled(LENGTH);
    let only = setup.options.text("only").map(str::to_ascii_uppercase);
    let sides = Sides::start(setup)?;
    let servers = sides.all();
    let mut buffer = vec![0; PIECE_BYTES];
    for server in &servers {
        build(server, length, &mut buffer)?;
    }
    for call in CALLS {
        let line = call.words.join(" ");
        if only.as_ref().is_some_and(|only| !line.contains(only.as_str())) {
            continue;
        }
        let mut costs: Vec<Cost> = servers.iter().map(|_| Cost::default()).collect();
        for round in 0..setup.rounds {
            for at in 0..servers.len() {
                let at = (at + round) % servers.len();
                let (server, cost) = (servers[at], &mut costs[at]);
                request(server, &["COPY", "a", "copy", "REPLACE"], &mut buffer)?;
                request(server, &["DEL", "result"], &mut buffer)?;
                server.wait_for_info("lazyfree_pending_objects", |pending| pending == "0");
                pass(CALM)?;
                let before = cpu_ns(server.pid());
                let begun = Instant::now();
                request(server, call.words, &mut buffer)?;
                cost.took_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
                pass(CALM)?;
                cost.cpu_ms.push((cpu_ns(server.pid()) - before) as f64 / 1e6);
                request(server, &["COPY", "a", "copy", "REPLACE"], &mut buffer)?;
                request(server, &["DEL", "result"], &mut buffer)?;
                let (times, ()) = watch(server, || request(server, call.words, &mut buffer))?;
                cost.wait_ms.push(percentile_ms(&times, 100));
            }
        }
        let metrics: [(&str, MetricFn, Limit); 3] = [
            ("ms of CPU time", |cost| &cost.cpu_ms, call.limit),
            ("ms", |cost| &cost.took_ms, Limit::None),
            ("ms, longest GET of another client", |cost| &cost.wait_ms, Limit::None),
        ];
        for (unit, metric, limit) in metrics {
            report.add(Row {
                what: format!("{line} ({length} bytes)"),
                unit,
                ours: median(metric(&costs[0])),
                theirs: costs.last().map(|cost| median(metric(cost))),
                limit,
            });
        }
    }
    Ok(())
}
