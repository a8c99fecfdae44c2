//! `cargo xtask race`: runs many concurrent clients, and checks that their history is linearizable.

use crate::options::Options;
use anyhow::{Context, Result};
use brisk_testkit::race;
use brisk_testkit::server::{Launch, Program};
use std::time::Instant;

/// Runs the requested operations with each number of workers; `Ok(false)` after a finding.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let run = race::Options {
        seed: options.number("seed", 1)?,
        operations: options.number("operations", 100_000)?,
        groups: options.number("groups", 3)?,
        clients: options.number("clients", 5)?,
    };
    for workers in options.text("workers").unwrap_or("2,4").split(',') {
        let launch = match options.text("ours").unwrap_or("brisk") {
            "redis" => Launch::redis(),
            _ => Launch::new(Program::Brisk).set("threads", workers),
        };
        let server = launch.try_start().map_err(anyhow::Error::msg).context("the server")?;
        let begun = Instant::now();
        let (summary, found) = race::run(&server.address(), &run)
            .with_context(|| format!("the server's log ends with\n{}", server.log()))?;
        let rate = summary.operations as f64 / begun.elapsed().as_secs_f64();
        println!("{workers} workers, seed {}: {summary} ({rate:.0} per second)", run.seed);
        if let Some(found) = found {
            println!("{found}");
            return Ok(false);
        }
        println!("{workers} workers: every history is linearizable");
    }
    Ok(true)
}
