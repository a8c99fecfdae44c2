//! `cargo xtask package`: what a release consists of, built into `target/package`.
//!
//! | part | about |
//! |---|---|
//! | `programs` | the programs, and what each says of itself |
//! | `manual` | manual pages and completions, from the programs' own `--help` |
//! | `settings` | brisk.conf and its manual page, from `brisk-server --print-config` |
//! | `sbom` | the bill of materials, from Cargo.lock |
//! | `release` | building, the packages, the archive, checksums |
//! | `container` | what can be said of the Containerfile without an engine |
//! | `chroot` | a clean Debian that packages are installed into |
//! | `unit` | a stand-in for `systemctl` in there, which reads the unit as systemd does |
//! | `lifetime` | installed, running, restarted, upgraded, removed, purged |

mod chroot;
#[cfg(test)]
mod container;
mod lifetime;
mod manual;
mod programs;
mod release;
mod sbom;
mod settings;
pub(crate) mod unit;

pub(crate) use chroot::{Clean, Inside, inside, skip_reason};

use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Builds the release; with `--check` installs it in a clean Debian as well.
pub(crate) fn main(options: &Options) -> Result<Outcome> {
    let release = release::build()?;
    if options.has("check") { lifetime::check(&release) } else { Ok(Outcome::Passed) }
}

/// Builds the release and returns its directory.
pub(crate) fn built() -> Result<std::path::PathBuf> {
    Ok(release::build()?.folder)
}

/// Runs a program that has to succeed.
fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// The standard output of a program that has to succeed.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} ended with {}: {why}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?}: no text"))
}
