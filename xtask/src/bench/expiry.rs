//! Keys that all die at one instant: when they are gone, and what others wait meanwhile.

use super::Setup;
use super::huge::watch;
use super::load::percentile_ms;
use super::report::{Limit, Report, Row};
use super::sides::Sides;
use anyhow::{Result, ensure};
use brisk_testkit::diff::peer::Peer;
use brisk_testkit::server::Server;
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::encode_into;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEYS: u64 = 1_000_000;
/// Keys per second that any server takes, so that all are there before the deadline.
const KEYS_PER_SECOND_MIN: u64 = 100_000;
const BATCH: u64 = 500;
/// What is owed after the deadline, in ms.
const GONE_MS_MAX: f64 = 1000.0;
/// What others may wait, in ms.
const WAIT_MS_MAX: f64 = 1.0;
/// Others are watched from so long before the deadline on.
const BEFORE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

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

/// How long after their deadline the keys are gone, and the longest round trip of a GET meanwhile; ms.
fn measure(server: &Server, count: u64) -> Result<(f64, f64)> {
    let mut peer = Peer::connect(&server.address())?;
    let deadline = since_epoch() + Duration::from_millis(count * 1000 / KEYS_PER_SECOND_MIN + 500);
    fill(&mut peer, count, deadline)?;
    ensure!(since_epoch() < deadline, "{}: some died while others came", server.address());
    let left = deadline.saturating_sub(since_epoch() + BEFORE);
    ensure!(!holds_within(left, || false));
    let (times, gone_ms) = watch(server, || {
        // The key of the watcher stays.
        let gone = holds_within(PATIENCE, || {
            peer.ask(&["DBSIZE"]).is_ok_and(|reply| reply == b":1\r\n" || reply == b":0\r\n")
        });
        ensure!(gone, "{}: keys are left after {PATIENCE:?}", server.address());
        Ok(since_epoch().saturating_sub(deadline).as_secs_f64() * 1000.0)
    })?;
    Ok((gone_ms, percentile_ms(&times, 100)))
}

/// A million keys with one deadline. What one run gives is spoiled by whatever else the machine does,
/// so the least of several is shown: what expiry itself takes, it takes each time.
pub(crate) fn expiry(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(KEYS);
    let sides = Sides::start(setup)?;
    let mut found = vec![(f64::INFINITY, f64::INFINITY); sides.all().len()];
    for _ in 0..setup.rounds {
        for (found, server) in found.iter_mut().zip(sides.all()) {
            let (gone_ms, wait_ms) = measure(server, count)?;
            *found = (found.0.min(gone_ms), found.1.min(wait_ms));
        }
    }
    type Of = fn(&(f64, f64)) -> f64;
    let rows: [(&str, f64, Of); 2] = [
        ("gone after their deadline", GONE_MS_MAX, |found| found.0),
        ("longest GET meanwhile", WAIT_MS_MAX, |found| found.1),
    ];
    for (what, limit, of) in rows {
        report.add(Row {
            what: format!("{count} keys of one deadline: {what} (least of {})", setup.rounds),
            unit: "ms",
            ours: of(&found[0]),
            theirs: found.last().map(of),
            limit: Limit::Most(limit),
        });
    }
    Ok(())
}
