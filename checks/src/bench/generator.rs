//! The cost of a load generator: brisk-benchmark and redis-benchmark against one server.
//!
//! Here "ours" and "peer" are the generators. Each run is a separate process on the CPU of the load. All of its CPU
//! time counts, user and system, including starting, connecting and printing.

use super::Setup;
use super::report::{Limit, Report, Row, median};
use super::sides::{LOAD_CPU, peer, release_program};
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::Command;

/// The largest accepted ratio. A generator that costs more would hide the server's cost.
const LIMIT: Limit = Limit::Ratio(0.5);
const CLIENTS: &str = "50";
const KEYS: &str = "100000";
/// Pipeline depths, with enough requests for a second of CPU time or more. The 20 ms of starting are then negligible.
const DEPTHS: [(u32, u64); 3] = [(1, 200_000), (16, 3_200_000), (100, 12_000_000)];
const TESTS: [&str; 3] = ["ping_mbulk", "set", "get"];

/// One run of a generator.
struct Spent {
    cpu_us: f64,
    per_second: f64,
}

/// CPU time per request of both generators in alternating rounds: the medians and their ratio.
pub(crate) fn generator(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let ours = release_program("brisk-benchmark")?.display().to_string();
    let programs = [ours.as_str(), "redis-benchmark"];
    let server = peer(setup)?;
    for (pipeline, operations) in DEPTHS {
        let operations = setup.scaled(operations);
        for test in TESTS {
            let mut rounds = [Vec::new(), Vec::new()];
            for round in 0..setup.rounds {
                for turn in 0..programs.len() {
                    let i = (turn + round) % programs.len();
                    rounds[i].push(run(programs[i], server.port(), test, pipeline, operations)?);
                }
            }
            let of = |i: usize, metric: fn(&Spent) -> f64| {
                median(&rounds[i].iter().map(metric).collect::<Vec<_>>())
            };
            let mut row = |unit, metric: fn(&Spent) -> f64, limit| {
                let what = format!("{}, pipeline depth {pipeline}", test.to_uppercase());
                report.add(Row {
                    what,
                    unit,
                    ours: of(0, metric),
                    theirs: Some(of(1, metric)),
                    limit,
                });
            };
            row("µs of the generator's CPU time", |spent| spent.cpu_us, LIMIT);
            row("requests/s", |spent| spent.per_second, Limit::None);
        }
    }
    Ok(())
}

fn run(program: &str, port: u16, test: &str, pipeline: u32, operations: u64) -> Result<Spent> {
    let before = children_cpu_us()?;
    let output = Command::new("taskset")
        .args(["-c", &LOAD_CPU.to_string(), program, "--csv", "-p", &port.to_string()])
        .args(["-t", test, "-r", KEYS, "-c", CLIENTS])
        .args(["-P", &pipeline.to_string(), "-n", &operations.to_string()])
        .output()
        .with_context(|| program.to_owned())?;
    // The process has ended and was waited for, so its time is included in that of the children.
    let cpu_us = (children_cpu_us()? - before) / operations as f64;
    let text = String::from_utf8_lossy(&output.stdout);
    // The header and one row; the rate follows the title.
    let rate = text.lines().last().and_then(|row| row.split("\",\"").nth(1)?.parse().ok());
    match rate {
        Some(per_second) if output.status.success() => Ok(Spent { cpu_us, per_second }),
        _ => bail!("{program}: {text} {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// CPU time of all terminated children that have been waited for, in µs. The kernel's resolution is 10 ms.
fn children_cpu_us() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain any characters, so count the fields after it.
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat")?;
    let ticks = fields.split(' ').skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn the_cpu_time_of_a_child_is_counted_after_it_ends() {
        let (begun, before) = (Instant::now(), children_cpu_us().unwrap());
        while children_cpu_us().unwrap() - before < 20_000.0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "a child that counts used no time");
            let counting = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
            assert!(Command::new("sh").args(["-c", counting]).status().unwrap().success());
        }
    }
}
