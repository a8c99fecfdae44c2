//! Runs tasks of the program `checks`: the executable that this process has built, or otherwise one that cargo builds
//! now.

use crate::artifacts::{self, Built};
use crate::steps::{Outcome, our_cargo, workspace_root};
use anyhow::{Context, Result};
use std::process::Command;

/// The exit code with which `checks` reports that this machine lacks something that a check needs.
const EXIT_SKIPPED: i32 = 77;

/// Runs a task of `checks`.
pub(crate) fn to_checks(task: &str, arguments: &[&str]) -> Result<Outcome> {
    let mut command = match artifacts::kept() {
        Some(built) => {
            let mut command = Command::new(built.program("checks")?);
            command.current_dir(workspace_root());
            command
        }
        None => our_cargo(&["run", "--quiet", "--package", "checks", "--"]),
    };
    run(command.arg(task).args(arguments))
}

/// Runs a task of a build's `checks`, with the server of that build.
pub(crate) fn to_checks_of(built: &Built, task: &str, arguments: &[&str]) -> Result<Outcome> {
    let mut command = Command::new(built.program("checks")?);
    command.env("BRISK_SERVER_BIN", built.program("brisk-server")?);
    run(command.arg(task).args(arguments).current_dir(workspace_root()))
}

fn run(command: &mut Command) -> Result<Outcome> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(if status.code() == Some(EXIT_SKIPPED) { Outcome::Skipped } else { status.success().into() })
}
