//! `cargo xtask package`: builds all parts of a release in `target/package`.
//!
//! | part | contents |
//! |---|---|
//! | `programs` | the programs, and their descriptions |
//! | `manual` | manual pages and completions, from the programs' own `--help` |
//! | `settings` | brisk.conf and its manual page, from `brisk-server --print-config` |
//! | `sbom` | the bill of materials, from Cargo.lock |
//! | `release` | building, the packages, the archive, checksums |
//! | `container` | checks of the Containerfile that need no container engine |
//! | `chroot` | a clean Debian in which packages are installed |
//! | `unit` | a replacement for `systemctl` in the clean Debian, which reads units as systemd does |
//! | `lifetime` | the life cycle of the packages in a clean Debian |

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

/// Builds the release. With `--check`, also installs it in a clean Debian.
pub(crate) fn main(options: &Options) -> Result<Outcome> {
    let release = release::build()?;
    if options.has("check") { lifetime::check(&release) } else { Ok(Outcome::Passed) }
}

/// Builds the release and returns its directory.
pub(crate) fn built() -> Result<std::path::PathBuf> {
    Ok(release::build()?.directory)
}

/// Runs a program, which must succeed.
fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a program, which must succeed, and returns its standard output.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} ended with {}: {why}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?}: no text"))
}
