//! Keys that all expire at the same time: when they are removed, and how long other clients wait until then.

use super::Setup;
use super::huge::{pass, watch};
use super::load::percentile_ms;
use super::report::{Limit, Report, Row};
use super::resources::longest_round_ms;
use super::sides::Sides;
use anyhow::{Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::server::Server;
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::encode_into;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEYS: u64 = 1_000_000;
/// The lowest insertion rate of any server, so that all keys exist before their expiry time.
const KEYS_PER_SECOND_MIN: u64 = 100_000;
const BATCH: u64 = 500;
/// The limit for removing all keys after their expiry time, in ms.
const REMOVAL_MS_MAX: f64 = 1000.0;
/// The limit for the waits of other clients, in ms.
const WAIT_MS_MAX: f64 = 1.0;
/// How long before the expiry time the measurement of other clients begins.
const BEFORE: Duration = Duration::from_millis(300);
/// How long other clients are measured before that, while no key expires.
const CALM: Duration = Duration::from_millis(1000);
const TIMEOUT: Duration = Duration::from_secs(60);

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn fill(peer: &mut Peer, count: u64, deadline: Duration) -> Result<()> {
    let deadline_ms = deadline.as_millis().to_string();
    let mut bytes = Vec::new();
    for first in (0..count).step_by(BATCH as usize) {
        bytes.clear();
        let batch = first..(first + BATCH).min(count);
        for i in batch.clone() {
            let key = format!("key:{i:012}");
            encode_into(&mut bytes, &["SET", &key, "value", "PXAT", &deadline_ms]);
        }
        peer.send(&bytes)?;
        for _ in batch {
            ensure!(peer.reply().map_err(anyhow::Error::msg)? == b"+OK\r\n", "SET failed");
        }
    }
    Ok(())
}

/// The results of one run, in ms.
struct Found {
    /// From the expiry time until all keys are removed.
    removal: f64,
    /// The longest GET of another client in this time.
    wait: f64,
    /// The longest GET while no key expires, which shows the noise of the machine.
    calm: f64,
    /// The longest iteration of the event loop while keys expire, if the server reports it. Other clients may have
    /// waited for this long.
    round: f64,
}

impl Found {
    const NOTHING: Found = Found {
        removal: f64::INFINITY,
        wait: f64::INFINITY,
        calm: f64::INFINITY,
        round: f64::INFINITY,
    };

    fn least(&self, other: &Found) -> Found {
        Found {
            removal: self.removal.min(other.removal),
            wait: self.wait.min(other.wait),
            calm: self.calm.min(other.calm),
            round: self.round.min(other.round),
        }
    }
}

fn measure(server: &Server, count: u64) -> Result<Found> {
    let mut peer = Peer::connect(&server.address())?;
    let filling = Duration::from_millis(count * 1000 / KEYS_PER_SECOND_MIN + 500);
    let deadline = since_epoch() + filling + CALM + BEFORE;
    fill(&mut peer, count, deadline)?;
    let until = |before: Duration| deadline.saturating_sub(since_epoch() + before);
    ensure!(!until(BEFORE + CALM).is_zero(), "{}: filled too slowly", server.address());
    pass(until(BEFORE + CALM))?;
    let calm = watch(server, || pass(until(BEFORE)))?.0;
    server.connect().cmd("CONFIG RESETSTAT");
    let (times, removal) = watch(server, || {
        // The other client's own key remains.
        let all_removed = holds_within(TIMEOUT, || {
            peer.request(&["DBSIZE"]).is_ok_and(|reply| reply == b":1\r\n" || reply == b":0\r\n")
        });
        ensure!(all_removed, "{}: keys are left after {TIMEOUT:?}", server.address());
        Ok(since_epoch().saturating_sub(deadline).as_secs_f64() * 1000.0)
    })?;
    Ok(Found {
        removal,
        wait: percentile_ms(&times, 100),
        calm: percentile_ms(&calm, 100),
        round: longest_round_ms(server).unwrap_or(f64::INFINITY),
    })
}

/// A million keys with the same expiry time. The machine disturbs some runs, so the minimum of several runs is
/// reported. The cost of expiry itself occurs in each run.
pub(crate) fn expiry(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(KEYS);
    let sides = Sides::start(setup)?;
    let mut found: Vec<Found> = sides.all().iter().map(|_| Found::NOTHING).collect();
    for _ in 0..setup.rounds {
        for (found, server) in found.iter_mut().zip(sides.all()) {
            *found = found.least(&measure(server, count)?);
        }
    }
    type Of = fn(&Found) -> f64;
    let rows: [(&str, Limit, Of); 4] = [
        ("removed after the expiry time", Limit::Most(REMOVAL_MS_MAX), |found| found.removal),
        ("longest round of the event loop", Limit::Most(WAIT_MS_MAX), |found| found.round),
        ("longest GET of another client", Limit::None, |found| found.wait),
        ("longest GET in the idle second before", Limit::None, |found| found.calm),
    ];
    for (what, limit, of) in rows {
        report.add(Row {
            what: format!(
                "{count} keys with the same expiry time: {what} (minimum of {})",
                setup.rounds
            ),
            unit: "ms",
            ours: of(&found[0]),
            theirs: found.last().map(of).filter(|metric| metric.is_finite()),
            limit,
        });
    }
    Ok(())
}
