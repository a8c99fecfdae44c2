//! How long requests wait at 70 % of the highest rate while keys expire and are evicted and snapshots are written.
//!
//! Our server has two workers, and the peer has two I/O threads. They share all CPUs with the generator. Both servers
//! get requests at the same rate, regardless of their replies, and latencies count from the time at which a request is
//! due.

use super::Setup;
use super::huge::pass;
use super::load::{Mix, fill, latency_ms};
use super::report::{Limit, Report, Row, median};
use super::sides::{ours, unpinned_peer};
use anyhow::{Result, ensure};
use brisk_benchmark::{Arrivals, Outcome, Pace};
use brisk_testkit::Server;
use brisk_testkit::server::Launch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 400;
/// The share of the dataset for which there is memory.
const MEMORY_SHARE: f64 = 0.8;
/// The requests and their weights. The TTL is shorter than a round, so keys expire throughout.
const REQUESTS: [(&str, u64); 3] = [
    ("GET key:__rand_int__", 2),
    ("SET key:__rand_int__ __data__", 1),
    ("SET key:__rand_int__ __data__ PX 2000", 1),
];
/// The share of the highest rate.
const RATE_SHARE: f64 = 0.7;
const ROUND: Duration = Duration::from_secs(10);
/// Time between the end of a snapshot and the next one.
const BETWEEN_SNAPSHOTS: Duration = Duration::from_millis(500);

type MetricFn = fn(&Waits) -> f64;

/// The results of one round at the fixed rate, in ms.
struct Waits {
    p99: f64,
    p999: f64,
    longest: f64,
}

pub(crate) fn tails(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let keys = setup.scaled(KEYS);
    let servers = [
        started(ours(setup, 2)?, keys)?,
        started(unpinned_peer(setup).set("io-threads", "2"), keys)?,
    ];
    let mut rates = [0.0; 2];
    for (rate, server) in rates.iter_mut().zip(&servers) {
        let outcome = with_snapshots(server, keys, Pace::Closed)?;
        *rate = outcome.operations as f64 / outcome.seconds;
    }
    let rate = RATE_SHARE * rates[0].min(rates[1]);
    let mut waits: [Vec<Waits>; 2] = [Vec::new(), Vec::new()];
    for round in 0..setup.rounds {
        for at in [round % 2, (round + 1) % 2] {
            let pace = Pace::Open { rate, arrivals: Arrivals::Poisson };
            let outcome = with_snapshots(&servers[at], keys, pace)?;
            waits[at].push(Waits {
                p99: latency_ms(&outcome, 0.99),
                p999: latency_ms(&outcome, 0.999),
                longest: latency_ms(&outcome, 1.0),
            });
        }
    }
    for (field, what) in
        [("expired_keys", "expired"), ("evicted_keys", "evicted"), ("rdb_saves", "saved")]
    {
        ensure!(servers[0].info(field) != "0", "nothing was {what}");
    }
    let name = "GET and SET with expiry, eviction and BGSAVE";
    report.add(Row {
        what: format!("{name}, highest rate"),
        unit: "requests/s",
        ours: rates[0],
        theirs: Some(rates[1]),
        limit: Limit::None,
    });
    let metrics: [(&str, MetricFn, Limit); 3] = [
        ("p99", |waits| waits.p99, Limit::None),
        ("p99.9", |waits| waits.p999, Limit::Ratio(1.0)),
        ("longest", |waits| waits.longest, Limit::None),
    ];
    for (metric, of, limit) in metrics {
        let middle = |side: usize| median(&waits[side].iter().map(of).collect::<Vec<_>>());
        report.add(Row {
            what: format!("{name}, {metric} at 70 % of the lower of both highest rates"),
            unit: "ms",
            ours: middle(0),
            theirs: Some(middle(1)),
            limit,
        });
    }
    Ok(())
}

/// Starts a server, fills it with [`MEMORY_SHARE`] of the keys, and sets `maxmemory` to the memory in use. Each SET of
/// another key then evicts keys.
fn started(launch: Launch, keys: u64) -> Result<Server> {
    let server = launch.try_start().map_err(anyhow::Error::msg)?;
    fill(&server, 0, (keys as f64 * MEMORY_SHARE) as u64, VALUE_BYTES)?;
    let used = server.info("used_memory");
    let mut conn = server.connect();
    for line in [
        "CONFIG SET maxmemory-policy allkeys-lru".to_owned(),
        format!("CONFIG SET maxmemory {used}"),
    ] {
        let reply = conn.cmd(&line).to_string();
        ensure!(reply == "OK", "{line}: {reply}");
    }
    Ok(server)
}

/// Sends the load while snapshots are written, one after the other.
fn with_snapshots(server: &Server, keys: u64, pace: Pace) -> Result<Outcome> {
    let mix = Mix { requests: &REQUESTS, keys, value_bytes: VALUE_BYTES };
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let saving = scope.spawn(|| save_repeatedly(server, &over));
        let outcome = mix.run(server, pace, ROUND);
        over.store(true, Ordering::SeqCst);
        saving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        outcome
    })?;
    server.wait_for_info("rdb_bgsave_in_progress", |in_progress| in_progress == "0");
    Ok(outcome)
}

fn save_repeatedly(server: &Server, over: &AtomicBool) -> Result<()> {
    let mut conn = server.connect();
    while !over.load(Ordering::SeqCst) {
        if conn.info("rdb_bgsave_in_progress") == "0" {
            let reply = conn.cmd("BGSAVE").to_string();
            ensure!(reply == "Background saving started", "BGSAVE: {reply}");
        }
        pass(BETWEEN_SNAPSHOTS)?;
    }
    Ok(())
}
