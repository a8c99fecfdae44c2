//! The replication stream: its cost for primary and replica, and the lag of a replica.

use super::ends::{Drain, Source};
use super::{SIDES, Side, follow, number, request_replication, start};
use crate::bench::Setup;
use crate::bench::load::{Lines, Run, by_turns};
use crate::bench::report::{Limit, Report, Row, median};
use crate::bench::sides::{LOAD_CPU, SERVER_CPU, load_from_here};
use anyhow::{Context, Result, ensure};
use brisk_testkit::random::Random;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::encode;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(super) const SET: &[&str] = &["SET", "key:__rand_int__", VALUE];
const VALUE: &str = "0123456789012345678901234567890123456789012345678901234567890123";
const KEYS: u64 = 100_000;
/// The largest ratio of the CPU time per SET to the peer's.
const COST_MAX: f64 = 0.5;
/// SETs per system call of the simulated primary, and the total number of SETs.
const SHAPES: [(usize, u64); 3] = [(1, 400_000), (16, 1_000_000), (500, 2_000_000)];
/// Total number of SETs of the single client.
const SINGLE_SETS: u64 = 150_000;
/// The lag limit of a replica that keeps up: it must have executed everything within this time after the load.
const BEHIND_MS_MAX: f64 = 100.0;
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(60);

/// CPU time of a primary per SET, with a replica that reads immediately.
pub(super) fn primary(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let servers: Vec<Server> =
        SIDES.iter().map(|side| side.start_on(setup, SERVER_CPU)).collect::<Result<_>>()?;
    let servers: Vec<&Server> = servers.iter().collect();
    let shapes = [(16, 800_000), (100, 2_000_000)];
    let limits = [Limit::None, Limit::Ratio(COST_MAX)];
    for (with, limit) in ["no replica", "a replica"].into_iter().zip(limits) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let mut drains = Vec::new();
            if limit != Limit::None {
                for server in &servers {
                    let mut drain = Drain::follow(server)?;
                    let over = &over;
                    drains.push(scope.spawn(move || {
                        load_from_here()?;
                        drain.read_on(over)
                    }));
                }
            }
            let measured = shapes.into_iter().try_for_each(|(pipeline, operations)| {
                let run = Run {
                    command: SET,
                    operations: setup.scaled(operations),
                    clients: 50,
                    pipeline,
                    keep_alive: true,
                    keys: KEYS,
                };
                let found = by_turns(setup, &servers, &run)?;
                report.add(Row {
                    what: format!("primary, SET, pipeline depth {pipeline}, {with}"),
                    unit: "µs of CPU time",
                    ours: found[0].cpu_us,
                    theirs: Some(found[1].cpu_us),
                    limit,
                });
                anyhow::Ok(())
            });
            over.store(true, Ordering::Relaxed);
            for drain in drains {
                drain.join().map_err(|_| anyhow::anyhow!("a replica panicked"))??;
            }
            measured
        })?;
    }
    Ok(())
}

/// CPU time of a replica per SET.
pub(super) fn replica(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let mut random = Random::new(7);
    let lines = Lines::collect((0..KEYS).map(|_| {
        let key = format!("key:{:012}", random.below(KEYS as usize));
        encode(&["SET", &key, VALUE])
    }))?;
    let mut replicas = Vec::new();
    for side in SIDES {
        let server = side.start_on(setup, SERVER_CPU)?;
        let listener = Source::listen()?;
        request_replication(&server, listener.local_addr()?.port())?;
        let source = Source::accept(&listener)?;
        replicas.push((server, source));
    }
    for (at_once, operations) in SHAPES {
        let operations = setup.scaled(operations);
        let mut found: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
        for round in 0..setup.rounds {
            for at in 0..replicas.len() {
                let at = (at + round) % replicas.len();
                let (server, source) = &mut replicas[at];
                found[at].push(applied(server, source, &lines, operations, at_once)?);
            }
        }
        report.add(Row {
            what: format!("replica, {at_once} SETs in each write of the primary"),
            unit: "µs of CPU time",
            ours: median(&found[0]),
            theirs: Some(median(&found[1])),
            limit: Limit::Ratio(COST_MAX),
        });
    }
    Ok(())
}

/// CPU time per SET, in µs, of a replica that receives this many SETs.
fn applied(
    server: &Server,
    source: &mut Source,
    lines: &Lines,
    operations: u64,
    at_once: usize,
) -> Result<f64> {
    let before = cpu_ns(server.pid());
    // Use a separate thread, because child processes inherit the CPU affinity of a thread.
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            load_from_here()?;
            source.send_lines(lines, operations as usize, at_once)?;
            source.wait()
        });
        sending.join().map_err(|_| anyhow::anyhow!("the primary panicked"))?
    })?;
    Ok(cpu_ns(server.pid()).saturating_sub(before) as f64 / 1000.0 / operations as f64)
}

/// CPU time of a replica per SET if one client of a primary sends one SET at a time. Both replicas have a primary of
/// the peer. The primary and its client share a CPU.
pub(super) fn single(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let [_, peer] = SIDES;
    let pairs: Vec<(Server, Server)> = SIDES
        .iter()
        .map(|side| {
            let (primary, replica) =
                (peer.start_on(setup, LOAD_CPU)?, side.start_on(setup, SERVER_CPU)?);
            follow(&replica, &primary)?;
            Ok((primary, replica))
        })
        .collect::<Result<_>>()?;
    let operations = setup.scaled(SINGLE_SETS);
    let mut found: [Vec<(f64, f64)>; 2] = [Vec::new(), Vec::new()];
    for round in 0..setup.rounds {
        for at in 0..pairs.len() {
            let at = (at + round) % pairs.len();
            let (primary, replica) = &pairs[at];
            let (before, begun) = (cpu_ns(replica.pid()), Instant::now());
            let mut load = Command::new("taskset");
            load.args(["-c", &LOAD_CPU.to_string(), "redis-benchmark", "-q", "-c", "1"]);
            load.args(["-p", &primary.port().to_string(), "-n", &operations.to_string()]);
            let output = load.args(["-r", &KEYS.to_string()]).args(SET).output()?;
            ensure!(output.status.success(), "redis-benchmark failed");
            let seconds = begun.elapsed().as_secs_f64();
            let end = number(primary, "master_repl_offset")?;
            let has_all = || number(replica, "slave_repl_offset").is_ok_and(|at| at >= end);
            ensure!(holds_within(CAUGHT_UP_WITHIN, has_all), "the replica is behind");
            let cpu = cpu_ns(replica.pid()).saturating_sub(before) as f64;
            found[at].push((cpu / 1000.0 / operations as f64, operations as f64 / seconds));
        }
    }
    let middle = |side: usize, metric: fn(&(f64, f64)) -> f64| {
        median(&found[side].iter().map(metric).collect::<Vec<_>>())
    };
    report.add(Row {
        what: "replica, SETs of one client of the primary".to_owned(),
        unit: "µs of CPU time",
        ours: middle(0, |one| one.0),
        theirs: Some(middle(1, |one| one.0)),
        limit: Limit::Ratio(COST_MAX),
    });
    report.add(Row {
        what: "primary, SETs of one client, with this replica".to_owned(),
        unit: "SET/s",
        ours: middle(0, |one| one.1),
        theirs: Some(middle(1, |one| one.1)),
        limit: Limit::None,
    });
    Ok(())
}

/// The results of a primary and its replica under full load.
#[derive(Clone, Copy)]
struct Behind {
    per_second: f64,
    mib: f64,
    ms: f64,
}

/// The lag of a replica of a primary with two workers.
pub(super) fn behind(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let mut found: [Vec<Behind>; 2] = [Vec::new(), Vec::new()];
    let pairs: Vec<(Server, Server)> = SIDES
        .iter()
        .map(|side: &Side| {
            let (primary, replica) =
                (start(side.launch(setup, 2)?)?, start(side.launch(setup, 2)?)?);
            follow(&replica, &primary)?;
            Ok((primary, replica))
        })
        .collect::<Result<_>>()?;
    for round in 0..setup.rounds {
        for at in 0..pairs.len() {
            let at = (at + round) % pairs.len();
            found[at].push(under_load(&pairs[at].0, &pairs[at].1, setup.scaled(2_000_000))?);
        }
    }
    let middle = |side: usize, metric: fn(&Behind) -> f64| {
        median(&found[side].iter().map(metric).collect::<Vec<_>>())
    };
    let rows = [
        (
            "rate during the load",
            "SET/s",
            [0, 1].map(|side| middle(side, |one| one.per_second)),
            Limit::None,
        ),
        (
            "at the end of the load",
            "MiB",
            [0, 1].map(|side| middle(side, |one| one.mib)),
            Limit::None,
        ),
        (
            "until it has caught up",
            "ms",
            [0, 1].map(|side| middle(side, |one| one.ms)),
            Limit::Most(BEHIND_MS_MAX),
        ),
    ];
    for (what, unit, [ours, theirs], limit) in rows {
        report.add(Row {
            what: format!(
                "lag of a replica of a primary with two workers, pipeline depth 100: {what}"
            ),
            unit,
            ours,
            theirs: Some(theirs),
            limit,
        });
    }
    Ok(())
}

fn under_load(primary: &Server, replica: &Server, operations: u64) -> Result<Behind> {
    let begun = Instant::now();
    let output = Command::new("redis-benchmark")
        .args(["-q", "-h", "127.0.0.1", "-p", &primary.port().to_string(), "--threads", "2"])
        .args(["-n", &operations.to_string(), "-c", "50", "-P", "100", "-r", &KEYS.to_string()])
        .args(SET)
        .output()
        .context("redis-benchmark")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let per_second = operations as f64 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let end = number(primary, "master_repl_offset")?;
    let mut at = number(replica, "slave_repl_offset")?;
    let mib = end.saturating_sub(at) as f64 / f64::from(1 << 20);
    while at < end {
        ensure!(begun.elapsed() < CAUGHT_UP_WITHIN, "it does not catch up:\n{}", replica.log());
        at = number(replica, "slave_repl_offset")?;
    }
    Ok(Behind { per_second, mib, ms: begun.elapsed().as_secs_f64() * 1000.0 })
}
