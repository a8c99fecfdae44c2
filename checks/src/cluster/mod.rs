//! `cargo xtask cluster`: tests how real nodes on this machine handle failures and changes.
//!
//! [`failover`] kills primaries under load, [`nemesis`] causes all kinds of faults, and [`formation`] starts clusters
//! and changes their topology. None of them fails because of a slow machine: times are only printed, and only incorrect
//! states are failures. The cost of cluster mode per command is `bench routing`.

mod failover;
mod formation;
mod history;
mod nemesis;
mod nodes;
mod writer;

use crate::bench::load::percentile_ms;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Result, bail};
use std::time::Duration;

/// Runs the named check.
pub(crate) fn main(options: &Options) -> Result<Outcome> {
    match options.words.first().map(String::as_str) {
        Some("failover") => failover::main(options),
        Some("formation") => formation::main(options),
        Some("nemesis") => nemesis::main(options),
        _ => bail!("cluster wants `failover`, `formation` or `nemesis`"),
    }
}

/// `p50 | p95 | p99 | max` of durations, in milliseconds.
fn quantiles(times: &[Duration]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort();
    let shown = [50, 95, 99, 100].map(|percent| format!("{:.0}", percentile_ms(&sorted, percent)));
    shown.join(" | ")
}
