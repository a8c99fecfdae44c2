//! The cost of the append-only file: CPU time compared with no file, rates with `always`, and the waits of clients
//! while the disk is slow. (D2, D4)

use super::Setup;
use super::load::{Run, by_turns};
use super::report::{Limit, Report, Row};
use super::sides::{ours, unpinned_peer};
use anyhow::Result;
use brisk_testkit::TempDir;
use brisk_testkit::server::{Launch, Server};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: u64 = 100_000;
const SET: &[&str] = &["SET", "key:__rand_int__", VALUE];
const VALUE: &str = "0123456789012345678901234567890123456789012345678901234567890123";
/// The largest ratio of the CPU time per SET with `everysec` to that without a file.
const COST_MAX: f64 = 1.2;
/// The load that keeps the disk busy writes and syncs pieces of this size.
const BUSY_BYTES: usize = 64 << 20;

/// A server with an append-only file that is never rewritten.
fn with_file(launch: Launch, policy: &str) -> Result<Server> {
    launch
        .set("appendonly", "yes")
        .set("appendfsync", policy)
        .set("auto-aof-rewrite-percentage", "0")
        .try_start()
        .map_err(anyhow::Error::msg)
}

fn set(clients: u32, pipeline: u32, operations: u64) -> Run<'static> {
    Run { command: SET, operations, clients, pipeline, keep_alive: true, keys: KEYS }
}

pub(crate) fn log(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    cost(setup, report)?;
    always(setup, report)?;
    slow_disk(setup, report)
}

/// `everysec` compared with no file.
fn cost(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let start = |launch: Launch| launch.try_start().map_err(anyhow::Error::msg);
    let servers = [
        start(ours(setup, 2)?)?,
        with_file(ours(setup, 2)?, "everysec")?,
        start(unpinned_peer(setup))?,
        with_file(unpinned_peer(setup), "everysec")?,
    ];
    let servers: Vec<&Server> = servers.iter().collect();
    for (pipeline, operations) in [(16, 1_600_000), (100, 4_000_000)] {
        let run = set(50, pipeline, setup.scaled(operations));
        let found = by_turns(setup, &servers, &run)?;
        let cost = |without: usize| found[without + 1].cpu_us / found[without].cpu_us;
        report.add(Row {
            what: format!("SET, everysec, pipeline depth {pipeline}"),
            unit: "µs of CPU time",
            ours: found[1].cpu_us,
            theirs: Some(found[3].cpu_us),
            limit: Limit::None,
        });
        report.add(Row {
            what: format!("SET, everysec, pipeline depth {pipeline}, relative to no file"),
            unit: "ratio of CPU times",
            ours: cost(0),
            theirs: Some(cost(2)),
            limit: Limit::Most(COST_MAX),
        });
    }
    Ok(())
}

/// Every reply waits for the disk.
fn always(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let servers =
        [with_file(ours(setup, 2)?, "always")?, with_file(unpinned_peer(setup), "always")?];
    let servers: Vec<&Server> = servers.iter().collect();
    for (clients, operations, ratio) in [(1, 4_000, 1.0), (50, 40_000, 1.2), (500, 150_000, 1.2)] {
        let run = set(clients, 1, setup.scaled(operations));
        let found = by_turns(setup, &servers, &run)?;
        report.add(Row {
            what: format!("SET, always, {clients} clients"),
            unit: "requests/s",
            ours: found[0].per_second,
            theirs: Some(found[1].per_second),
            limit: Limit::RatioAtLeast(ratio),
        });
    }
    Ok(())
}

/// `everysec`, while another process keeps the same disk busy.
fn slow_disk(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let servers =
        [with_file(ours(setup, 2)?, "everysec")?, with_file(unpinned_peer(setup), "everysec")?];
    let servers: Vec<&Server> = servers.iter().collect();
    let over = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let busy = scope.spawn(|| keep_disk_busy(&over));
        let found = by_turns(setup, &servers, &set(50, 1, setup.scaled(400_000)));
        over.store(true, Ordering::SeqCst);
        busy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        found
    })?;
    report.add(Row {
        what: "SET, everysec, while another process keeps the disk busy".to_owned(),
        unit: "ms (p99)",
        ours: found[0].p99_ms,
        theirs: Some(found[1].p99_ms),
        limit: Limit::Ratio(1.0),
    });
    Ok(())
}

fn keep_disk_busy(over: &AtomicBool) -> Result<()> {
    let home = TempDir::new();
    let piece = vec![7; BUSY_BYTES];
    while !over.load(Ordering::SeqCst) {
        let mut file = File::create(home.path("busy"))?;
        file.write_all(&piece)?;
        file.sync_all()?;
    }
    Ok(())
}
