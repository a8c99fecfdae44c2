//! `cargo xtask bench`: compares our server with a peer on one machine, in one run.
//!
//! Both servers run at the same time, pinned to CPU 0, with one worker and without persistence, except in the cases
//! `persistence`, `log`, `replication` and `start`. The load runs on CPU 1. Rounds alternate between the servers, so
//! slow drifts of the machine affect both, and medians are reported. The reliable result is the server's CPU time per
//! operation (all threads, user and system). Requests per second depend on the other load of the machine.
//!
//! - [`cases`]: the list of cases. [`results`]: the results of several cases in a file.
//! - [`sides`]: the servers. [`load`]: redis-benchmark and our own load. [`report`]: the table.
//! - [`throughput`]: rates with redis-benchmark. [`resources`]: memory, stalls, slow readers.
//! - [`blocking`]: blocking clients. [`pubsub`]: messages to many subscribers.
//! - [`types`]: commands on collections, and the memory of collections. [`huge`]: values of millions of elements.
//! - [`expiry`]: keys that expire at the same time.
//! - [`clients`]: CLIENT LIST with ten thousand clients. [`consoles`]: ten open consoles.
//! - [`tracking`]: client-side caching.
//! - [`transactions`]: MULTI and EXEC. [`persistence`]: snapshots during writes. [`tails`]: waits while keys expire and
//!   are evicted and snapshots are written.
//! - [`log`]: the append-only file. [`replication`]: primaries and replicas.
//! - [`strings`]: strings of 256 MB. [`start`]: loading a file at startup.
//! - [`every`]: all data commands. [`recorded`]: all data commands, compared with an earlier build. [`large`]: the
//!   commands whose cost may depend on the size.
//! - [`routing`]: the cost of cluster mode per command.
//! - [`generator`]: the cost of brisk-benchmark itself.

mod blocking;
mod cases;
mod clients;
mod consoles;
mod every;
mod expiry;
mod generator;
mod huge;
mod large;
pub(crate) mod load;
mod log;
mod persistence;
mod pubsub;
pub(crate) mod recorded;
mod replication;
pub(crate) mod report;
mod resources;
pub(crate) mod results;
mod routing;
pub(crate) mod sides;
mod start;
mod strings;
mod tails;
mod throughput;
mod tracking;
mod transactions;
mod types;

use crate::options::Options;
use anyhow::{Context, Result, bail};
use cases::{CASES, Case};
use report::Report;
use results::Results;
use sides::{PEER, Sides};
use std::path::Path;
use std::time::Instant;

/// The options of every case.
pub(crate) struct Setup<'a> {
    pub(crate) options: &'a Options,
    /// The program of the peer.
    pub(crate) peer: &'a str,
    pub(crate) rounds: usize,
    /// A factor for the number of operations: below 1 for a quick run.
    pub(crate) scale: f64,
}

impl Setup<'_> {
    /// `operations` multiplied by the scale, at least 1000.
    pub(crate) fn scaled(&self, operations: u64) -> u64 {
        ((operations as f64 * self.scale) as u64).max(1000)
    }
}

/// Runs a case on a thread of its own. Cases move their thread to the CPU of the load and change its priority, and the
/// servers that the next case starts would inherit both.
fn run_on_own_thread(case: &Case, setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    std::thread::scope(|scope| {
        let case = scope.spawn(|| (case.run)(setup, report));
        case.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs the cases named on the command line next to each peer. With `--save`, writes the results to a file after each
/// case. With `--resume`, skips the cases that the file already contains. A case that fails does not end the run.
#[expect(clippy::print_stdout, reason = "the tables are the output of the command")]
pub(crate) fn main(options: &Options) -> Result<bool> {
    let Some(wanted) = options.words.first() else {
        bail!("bench needs the name of a case, `all` or `list`")
    };
    if wanted == "list" {
        for Case { name, about, selected_by, .. } in CASES {
            let options = if selected_by.is_empty() { "" } else { "; " };
            println!("{name:<14}{about}{options}{selected_by}");
        }
        return Ok(true);
    }
    for word in options.words.iter().filter(|word| *word != "all") {
        if !CASES.iter().any(|case| case.name == word) {
            bail!("unknown case {word}; `cargo xtask bench list` lists the cases");
        }
    }
    let cases = CASES
        .iter()
        .filter(|case| wanted == "all" || options.words.iter().any(|word| word == case.name));
    let mut peers = options.texts("peer");
    if peers.is_empty() {
        peers.push(PEER);
    }
    let (rounds, scale) = (options.number("rounds", 5)?, options.number("scale", 1.0)?);
    let _widened = Sides::check_machine()?;
    let mut results = Results::new(options.text("ours"), &peers, rounds, scale)?;
    let saved = options.text("save").map(Path::new);
    if options.has("resume") {
        if options.has("part") || options.has("only") {
            bail!("--resume continues runs of complete cases, without --part and --only");
        }
        results.resume(saved.context("--resume needs --save FILE")?)?;
    }
    for case in cases {
        if results.has_complete(case.name) {
            continue;
        }
        results.add_case(case);
        let measured = if case.has_peer { &*peers } else { &peers[..1] };
        for (number, &peer) in measured.iter().enumerate() {
            eprintln!("bench: {} next to {peer}: {}", case.name, case.about);
            let setup = Setup { options, peer, rounds, scale };
            let mut report = Report::new(case.name);
            let began = Instant::now();
            if let Err(error) = run_on_own_thread(case, &setup, &mut report) {
                eprintln!("bench: {}: {error:#}", case.name);
                results.add_failure(number, &error);
            }
            println!("{}", report.table());
            println!("{}", report.json_lines());
            results.add_report(number, report, began.elapsed());
        }
        if let Some(path) = saved {
            results.save(path)?;
        }
    }
    Ok(results.is_complete())
}
