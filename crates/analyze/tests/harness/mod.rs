//! Real servers that are filled, measured, and analyzed by their files. Not every test file uses all of it.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_analyze::measure::Limits;
use brisk_analyze::model::Classes;
use brisk_analyze::progress::Progress;
use brisk_analyze::source::aof::read_path;
use brisk_analyze::source::live::{Server as LiveServer, Words};
use brisk_analyze::{Analysis, Findings};
use brisk_resp::request::encode;
use brisk_resp::{ReplyDecoder, ReplyLimits, ReplyStep, Value};
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Launch, Server, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Number of requests that are sent together.
const AT_ONCE: usize = 500;

/// Number of consecutive checks without a decrease after which used memory is considered stable.
const STEADY_LOOKS: u32 = 50;

/// Minimum time without a decrease in used memory, in seconds of the server's clock.
const STEADY_SECONDS: f64 = 2.0;

/// A connection like the one that `brisk-cli` provides.
pub(crate) struct TestConnection {
    stream: TcpStream,
    decoder: ReplyDecoder,
    received: Vec<u8>,
    /// The total time of the pauses, and the sent requests.
    pub(crate) paused: Duration,
    pub(crate) requests: Vec<Words>,
}

impl TestConnection {
    pub(crate) fn new(server: &Server) -> TestConnection {
        TestConnection {
            stream: TcpStream::connect(server.address()).unwrap(),
            decoder: ReplyDecoder::new(ReplyLimits::default()),
            received: Vec::new(),
            paused: Duration::ZERO,
            requests: Vec::new(),
        }
    }

    fn reply(&mut self) -> Result<Value, String> {
        loop {
            match self.decoder.decode(&self.received).map_err(|error| error.to_string())? {
                ReplyStep::Value { consumed, value } => {
                    self.received.drain(..consumed);
                    return Ok(value);
                }
                ReplyStep::Incomplete { consumed, .. } => {
                    self.received.drain(..consumed);
                }
            }
            let mut room = [0; 65_536];
            let got = self.stream.read(&mut room).map_err(|error| error.to_string())?;
            if got == 0 {
                return Err("the server has gone".to_owned());
            }
            self.received.extend_from_slice(&room[..got]);
        }
    }

    /// Sends all requests in batches, and asserts that none is rejected.
    pub(crate) fn fill(&mut self, requests: impl IntoIterator<Item = Words>) {
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let some: Vec<Words> = requests.by_ref().take(AT_ONCE).collect();
            for reply in self.request_all(&some).unwrap() {
                assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
            }
            self.requests.clear();
        }
    }
}

impl LiveServer for TestConnection {
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
        let mut bytes = Vec::new();
        for request in requests {
            encode(&mut bytes, request);
        }
        self.requests.extend_from_slice(requests);
        self.stream.write_all(&bytes).map_err(|error| error.to_string())?;
        requests.iter().map(|_| self.reply()).collect()
    }

    /// Only counts the pause.
    fn pause(&mut self, time: Duration) {
        self.paused += time;
    }
}

pub(crate) fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A Redis that writes files only on request.
pub(crate) fn redis() -> Server {
    measured(Launch::redis()).set("enable-debug-command", "yes").start()
}

/// Settings of a server whose memory is measured. On a busy machine, the slow log can take more than 100 KiB, and Redis
/// has a 24 KiB histogram for each command that was executed.
pub(crate) fn measured(launch: Launch) -> Launch {
    launch.set("save", "").set("slowlog-log-slower-than", "-1").set("latency-tracking", "no")
}

/// A Brisk whose memory is measured. With several workers, the memory after loading a file depends on how the threads
/// shared the work.
pub(crate) fn brisk() -> Launch {
    let launch = measured(Launch::subject());
    if subject_is_redis() { launch } else { launch.set("threads", "1") }
}

pub(crate) fn fill(server: &Server, requests: impl IntoIterator<Item = Words>) {
    TestConnection::new(server).fill(requests);
}

/// The bytes that the data takes: used memory minus that of the same program without data.
pub(crate) fn used_by_data(server: &Server, which: &'static OnceLock<f64>) -> f64 {
    let empty = which.get_or_init(|| {
        let empty = redis();
        if std::ptr::eq(which, &EMPTY_REDIS) {
            reload(&empty);
            return used(&empty);
        }
        used(&brisk_with(&saved(&empty)))
    });
    used(server) - empty
}

/// The memory of the programs without data.
pub(crate) static EMPTY_REDIS: OnceLock<f64> = OnceLock::new();
pub(crate) static EMPTY_BRISK: OnceLock<f64> = OnceLock::new();

/// Used memory after the clients that wrote the data have disconnected.
fn used(server: &Server) -> f64 {
    let mut conn = server.connect();
    wait_until("the others go", || conn.info("connected_clients") == "1");
    let mut number = |name: &str| conn.info(name).parse::<f64>().unwrap();
    let startup = number("used_memory_startup");
    // After the server accepts clients, its loading threads still free memory. On a busy machine, they may not run
    // during all of the checks.
    wait_until("the loading threads end", || {
        !server.thread_names().iter().any(|name| name.starts_with("brisk-load"))
    });
    let (mut least, mut looks, mut since) = (f64::INFINITY, 0, 0.0);
    wait_until("the used memory is steady", || {
        let (now, uptime) = (number("used_memory"), number("uptime_in_seconds"));
        (looks, since) = if now < least { (0, uptime) } else { (looks + 1, since) };
        least = least.min(now);
        // Timers free memory too, so wait until some have run.
        looks >= STEADY_LOOKS && uptime >= since + STEADY_SECONDS
    });
    least - startup
}

/// Saves and reloads the data, so that all tables have the same size as after a start.
pub(crate) fn reload(server: &Server) {
    let reply = server.connect().cmd("DEBUG RELOAD").to_string();
    assert_eq!(reply, "OK");
}

/// Saves the data. Returns the path of the RDB file.
pub(crate) fn saved(server: &Server) -> PathBuf {
    assert_eq!(server.connect().cmd("SAVE").to_string(), "OK");
    server.dir().join("dump.rdb")
}

/// The size classes of the tested Redis.
pub(crate) fn classes(server: &Server) -> Classes {
    let report = server.connect().cmd("MEMORY MALLOC-STATS").text();
    let quantum = report.lines().find_map(|line| line.trim().strip_prefix("Quantum size:"));
    quantum
        .and_then(|text| Classes::of_quantum(text.trim().parse().ok()?))
        .unwrap_or(Classes::BUNDLED)
}

pub(crate) fn analyzed(path: &Path, classes: Classes) -> Findings {
    let mut analysis = Analysis::new(classes, Limits::default(), 0);
    read_path(path, &mut analysis, &mut Progress::hidden()).unwrap();
    let findings = analysis.finish();
    assert_eq!(findings.facts.error, None);
    findings
}

/// Starts a Brisk that loads a file.
pub(crate) fn brisk_with(file: &Path) -> Server {
    let launch = brisk();
    let mut server = launch.clone().start();
    server.kill_for_now();
    std::fs::copy(file, server.dir().join("dump.rdb")).unwrap();
    launch.start_again(&mut server);
    server
}

/// Asserts that the relative difference between two numbers is at most `part`.
#[track_caller]
pub(crate) fn assert_close(what: &str, expected: f64, found: f64, part: f64) {
    let off = (found - expected) / expected;
    eprintln!("{what}: measured {expected:.0}, model {found:.0}, off by {:.1} %", off * 100.0);
    assert!(off.abs() <= part, "{what}: measured {expected:.0}, model {found:.0}, off by {off:.3}");
}

/// Reproducible pseudorandom numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        Random(1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Bytes that are hard to compress.
    pub(crate) fn text(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| b"abcdefghijklmnopqrstuvwxyzABCDEF"[self.below(32) as usize]).collect()
    }
}
