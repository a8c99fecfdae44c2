//! Primaries and replicas: the cost of replication, the lag of a replica, and the duration of role changes.
//!
//! | part | measures |
//! |---|---|
//! | `primary` | CPU time of a primary per SET, with one replica that only reads |
//! | `replica` | CPU time of a replica per SET, with a primary that only sends |
//! | `single` | CPU time of a replica per SET, with a primary that has one client |
//! | `behind` | the lag of a replica of a primary with two workers |
//! | `sync` | a full copy: its duration, and the waits of the primary's clients in the meantime |
//! | `stalled` | memory for replicas that do not read |
//! | `promotion` | from REPLICAOF NO ONE to the first write |
//!
//! In the parts `primary` and `replica`, the other end is this program ([`ends`]), so both servers are measured alike.

mod ends;
mod stream;
mod sync;

use super::Setup;
use super::load::{fill, percentile_ms};
use super::report::{Limit, Report, Row, median};
use super::sides::{LOAD_CPU, ours, step_forward, unpinned_peer};
use anyhow::{Context, Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::holds_within;
use ends::Drain;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The largest ratio of the memory for ten stalled replicas to that for one.
const STALLED_MAX: f64 = 1.2;
const STALLED: [usize; 2] = [1, 10];
/// Bytes that are written while the replicas do not read.
const UNREAD_BYTES: u64 = 64 << 20;
const UNREAD_KEYS: u64 = 1000;
const UNREAD_VALUE: usize = 1000;
/// The limit from REPLICAOF NO ONE to a write, in ms.
const PROMOTED_MS_MAX: f64 = 10.0;
const PROMOTIONS: usize = 7;
/// The time limit for the link to come up with a small dataset.
const LINKED_WITHIN: Duration = Duration::from_secs(30);

/// Our server or the peer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
}

const SIDES: [Side; 2] = [Side::Ours, Side::Peer];

impl Side {
    /// A launch with `workers` workers for our server, and settings that neither disconnect nor delay a slow replica.
    fn launch(self, setup: &Setup<'_>, workers: usize) -> Result<Launch> {
        let launch = match self {
            Side::Ours => ours(setup, workers)?,
            Side::Peer => unpinned_peer(setup),
        };
        Ok(launch
            .set("client-output-buffer-limit", "replica 0 0 0")
            .set("repl-diskless-sync-delay", "0"))
    }

    /// Starts the server, pinned, with one worker.
    fn start_on(self, setup: &Setup<'_>, cpu: usize) -> Result<Server> {
        start(self.launch(setup, 1)?.on_cpu(cpu))
    }
}

fn start(launch: Launch) -> Result<Server> {
    launch.try_start().map_err(anyhow::Error::msg)
}

/// Runs all parts, or one with `--part`.
pub(crate) fn replication(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    type Part = fn(&Setup<'_>, &mut Report) -> Result<()>;
    let parts: [(&str, Part); 7] = [
        ("primary", stream::primary),
        ("replica", stream::replica),
        ("single", stream::single),
        ("behind", stream::behind),
        ("sync", sync::sync),
        ("stalled", stalled),
        ("promotion", promotion),
    ];
    let wanted = setup.options.text("part");
    ensure!(
        wanted.is_none_or(|wanted| parts.iter().any(|(name, _)| *name == wanted)),
        "no such part"
    );
    for (name, run) in parts {
        if wanted.is_none_or(|wanted| wanted == name) {
            eprintln!("bench: replication: {name}");
            run(setup, report)?;
        }
    }
    Ok(())
}

/// An INFO field that is a number.
fn number(server: &Server, field: &str) -> Result<u64> {
    server.info(field).parse().with_context(|| format!("{field} of INFO"))
}

/// Makes `replica` a replica of `primary`, and waits until the link is up.
fn follow(replica: &Server, primary: &Server) -> Result<()> {
    request_replication(replica, primary.port())?;
    let is_up = || replica.info("master_link_status") == "up";
    ensure!(holds_within(LINKED_WITHIN, is_up), "no link:\n{}", replica.log());
    Ok(())
}

fn request_replication(replica: &Server, port: u16) -> Result<()> {
    let mut peer = Peer::connect(&replica.address())?;
    let reply = peer.request(&["REPLICAOF", "127.0.0.1", &port.to_string()])?;
    ensure!(reply == b"+OK\r\n", "REPLICAOF: {}", String::from_utf8_lossy(reply));
    Ok(())
}

/// The memory of a primary for one replica that does not read, and for ten.
fn stalled(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let bytes = (UNREAD_BYTES as f64 * setup.scale.clamp(0.25, 1.0)) as u64;
    let rewrites = bytes / UNREAD_VALUE as u64 / UNREAD_KEYS;
    let mut held = [[0.0; 2]; 2];
    for (side, of_side) in SIDES.iter().zip(&mut held) {
        for (replicas, held) in STALLED.iter().zip(of_side) {
            let primary = start(side.launch(setup, 1)?)?;
            fill(&primary, 0, UNREAD_KEYS, UNREAD_VALUE)?;
            let before = number(&primary, "used_memory")?;
            let drains: Vec<Drain> =
                (0..*replicas).map(|_| Drain::follow(&primary)).collect::<Result<_>>()?;
            for _ in 0..rewrites {
                fill(&primary, 0, UNREAD_KEYS, UNREAD_VALUE)?;
            }
            *held = number(&primary, "used_memory")?.saturating_sub(before) as f64;
            let followers = number(&primary, "connected_slaves")?;
            ensure!(followers == *replicas as u64, "only {followers} replicas are left");
            drop(drains);
        }
    }
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    for (at, replicas) in STALLED.into_iter().enumerate() {
        report.add(Row {
            what: format!("memory for replicas that do not read: {replicas}"),
            unit: "MiB",
            ours: mib(held[0][at]),
            theirs: Some(mib(held[1][at])),
            limit: Limit::None,
        });
    }
    report.add(Row {
        what: "memory for ten replicas that do not read, relative to one".to_owned(),
        unit: "ratio",
        ours: held[0][1] / held[0][0],
        theirs: Some(held[1][1] / held[1][0]),
        limit: Limit::Most(STALLED_MAX),
    });
    Ok(())
}

/// A load of SETs that runs until this value is dropped.
struct Writers(Child);

impl Writers {
    fn start(server: &Server, pipeline: &str) -> Result<Writers> {
        let mut load = Command::new("taskset");
        load.args(["-c", &LOAD_CPU.to_string(), "redis-benchmark", "-q", "-l", "-h", "127.0.0.1"]);
        load.args(["-p", &server.port().to_string(), "-c", "10", "-P", pipeline, "-r", "100000"]);
        load.args(stream::SET).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
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

/// The time from REPLICAOF NO ONE until a write is accepted, on a replica under load.
fn promotion(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let mut found: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for (side, times) in SIDES.iter().zip(&mut found) {
        // The primary is not measured.
        let primary = side.start_on(setup, LOAD_CPU)?;
        let replica = side.start_on(setup, super::sides::SERVER_CPU)?;
        fill(&primary, 0, UNREAD_KEYS, UNREAD_VALUE)?;
        let _writers = Writers::start(&primary, "16")?;
        for _ in 0..PROMOTIONS {
            follow(&replica, &primary)?;
            times.push(promote(&replica)?);
        }
    }
    let longest = |side: usize| found[side].iter().copied().fold(f64::NAN, f64::max);
    for (what, ours, theirs, limit) in [
        (
            "time from REPLICAOF NO ONE until a write is accepted, median of seven",
            median(&found[0]),
            median(&found[1]),
            Limit::None,
        ),
        (
            "time from REPLICAOF NO ONE until a write is accepted, longest of seven",
            longest(0),
            longest(1),
            Limit::Most(PROMOTED_MS_MAX),
        ),
    ] {
        report.add(Row { what: what.to_owned(), unit: "ms", ours, theirs: Some(theirs), limit });
    }
    Ok(())
}

/// Promotes the replica. Returns the duration in ms.
fn promote(replica: &Server) -> Result<f64> {
    let (mut one, mut other) =
        (Peer::connect(&replica.address())?, Peer::connect(&replica.address())?);
    let times = std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<Duration> {
            step_forward()?;
            let refused = other.request(&["SET", "own", "1"])?;
            ensure!(refused.starts_with(b"-READONLY"), "a replica takes writes");
            let begun = Instant::now();
            one.send(&brisk_testkit::words::encode(&["REPLICAOF", "NO", "ONE"]))?;
            while !other.request(&["SET", "own", "1"])?.starts_with(b"+OK") {
                ensure!(begun.elapsed() < LINKED_WITHIN, "it does not become a primary");
            }
            let took = begun.elapsed();
            one.reply().map_err(anyhow::Error::msg)?;
            Ok(took)
        });
        writer.join().map_err(|_| anyhow::anyhow!("the client thread panicked"))?
    })?;
    Ok(percentile_ms(&[times], 100))
}
