//! Simulates replication: real servers replicate each other. The clock, the network and the faults are generated from a
//! seed.
//!
//! ```text
//!   clients ── worker 0, its event loop ══╗                ╔══ worker 0 ── clients
//!                   upstream threads ══╗  ║    network     ║
//!                                      ╚══╩════════════════╝   late, in pieces, one way, cut
//! ```
//!
//! A server consists of the usual parts: one worker with its event loop, sessions, timers, snapshots on the disk, and
//! the upstream thread. Only one of its threads runs at a time, and the clock does not advance while it runs. A
//! separate model defines the expected datasets.
//!
//! | file | about |
//! |---|---|
//! | `world` | a run: the sequence of events |
//! | `checks` | invariants that are checked after each step |
//! | `model` | the expected datasets and histories |
//! | `node`, `client` | a server; its client |
//! | `network` | bytes between servers |
//! | `thread_group`, `environment` | threads that run one at a time; the environment of an upstream |
//! | `trace` | a log of events |
//!
//! `BRISK_REPLICATION_SEED=17` repeats run 17, and `BRISK_REPLICATION_RUNS=1000000` sets the number of runs. Separate
//! processes execute the runs, because the simulation sets the clock of its process, and resources that servers leave
//! behind are freed when the process ends.

mod checks;
mod client;
mod environment;
mod model;
mod network;
mod node;
mod thread_group;
mod trace;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use world::{Seen, World};

/// Number of runs of each test.
const RUNS: u64 = 400;
/// The number of steps of a run, and of every `LARGE_EACH`-th run.
const SMALL: usize = 60;
const LARGE: usize = 600;
const LARGE_EACH: u64 = 25;
/// Number of runs per process.
const RUNS_AT_ONCE: u64 = 50;

/// The name of the test, which the processes that execute a part of its runs need.
const NAME: &str = "simulation::replicas_have_the_dataset_of_their_primary";
const PART: &str = "BRISK_REPLICATION_PART";

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn replicas_have_the_dataset_of_their_primary() {
    if let Ok(part) = std::env::var(PART) {
        let (from, to) = part.split_once('-').expect("from-to");
        run_part(from.parse().expect("a number"), to.parse().expect("a number"));
        return;
    }
    let (from, to) = match env_number("BRISK_REPLICATION_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, env_number("BRISK_REPLICATION_RUNS").unwrap_or(RUNS)),
    };
    let processes = std::thread::available_parallelism().map_or(1, usize::from);
    let mut next = from;
    let mut parts = Vec::new();
    let mut sums = [0; 11];
    while next < to || !parts.is_empty() {
        while next < to && parts.len() < processes {
            let end = to.min(next + RUNS_AT_ONCE);
            parts.push(begin_part(next, end));
            next = end;
        }
        end_part(parts.remove(0), &mut sums);
    }
    println!("{} runs: {sums:?}", to - from);
    assert!(to - from < RUNS || sums.iter().all(|sum| *sum > (to - from) / 20), "{sums:?}");
}

fn begin_part(from: u64, to: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", NAME, "--nocapture", "--test-threads=1"]);
    command.env(PART, format!("{from}-{to}")).stdout(Stdio::piped()).stderr(Stdio::piped());
    if Path::new("/dev/shm").is_dir() {
        // Writing snapshots to a real disk would take most of the time.
        command.env("TMPDIR", "/dev/shm");
    }
    command.spawn().expect("this test")
}

fn end_part(part: Child, sums: &mut [u64; 11]) {
    let output = part.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = text.lines().find_map(|line| line.split_once("counted: "));
    let Some((_, counts)) = counts.filter(|_| output.status.success()) else {
        panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    for (sum, count) in sums.iter_mut().zip(counts.split(' ')) {
        *sum += count.parse::<u64>().expect("a number");
    }
}

/// Binds the threads of this process to one CPU. Only one of them runs at a time, and switching between them is cheaper
/// on one CPU.
fn stay_on_one(part: u64) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(all) = sched_getaffinity(None) else { return };
    let count = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).count();
    let own = part as usize % count.max(1);
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).nth(own).unwrap_or(0));
    // If this fails, the simulation still works.
    let _ = sched_setaffinity(None, &one);
}

fn run_part(from: u64, to: u64) {
    stay_on_one(from / RUNS_AT_ONCE);
    let mut sums = [0; 11];
    for seed in from..to {
        let (seen, events) = run(seed);
        for (sum, count) in sums.iter_mut().zip(seen.counts()) {
            *sum += count;
        }
        if seed.is_multiple_of(RUNS_AT_ONCE) {
            let difference = trace::difference(&events, &run(seed).1);
            assert!(difference.is_none(), "run {seed} differs: {}", difference.unwrap_or_default());
        }
    }
    println!("counted: {}", sums.map(|sum| sum.to_string()).join(" "));
}

/// Returns the counts of a run and its event log.
fn run(seed: u64) -> (Seen, Vec<String>) {
    trace::take();
    let prints = std::env::var("BRISK_REPLICATION_SEED").is_ok();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let steps = if seed.is_multiple_of(LARGE_EACH) { LARGE } else { SMALL };
        World::new(seed, prints).run(steps)
    }));
    let Ok(seen) = ran else {
        println!("{}", trace::latest());
        panic!("BRISK_REPLICATION_SEED={seed} repeats it");
    };
    (seen, trace::take())
}
