//! `cargo xtask acl`: compares the results of ACL DRYRUN for random users and commands on our server and on a real
//! Redis.

use crate::diff::{Side, table};
use crate::options::Options;
use anyhow::{Context, Result};
use brisk_differential::access;
use std::time::Instant;

/// Compares the requested number of pairs; `Ok(false)` after a disagreement.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let run = access::Options {
        seed: options.number("seed", 1)?,
        pairs: options.number("pairs", 100_000)?,
    };
    let table = table(options)?;
    let ours = Side::of(options.text("ours").unwrap_or("brisk")).context("our server")?;
    let theirs = Side::of(options.text("theirs").unwrap_or("redis")).context("their server")?;
    let begun = Instant::now();
    match access::run(&table, &ours.address(), &theirs.address(), &run)? {
        Ok(judged) => {
            let access::Judged { allowed, refused, errors } = judged;
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{} pairs agree: {allowed} allowed, {refused} refused, {errors} no commands \
                 ({seconds:.0} s)",
                run.pairs
            );
            Ok(true)
        }
        Err(found) => {
            println!("{found}");
            Ok(false)
        }
    }
}
