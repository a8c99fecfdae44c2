//! The cargo that runs this program, or the one in `PATH`.

use anyhow::{Context, Result};
use brisk_testkit::server::workspace_root;
use std::process::Command;

/// Runs cargo in the workspace root. Returns whether it succeeded.
pub(crate) fn cargo(arguments: &[&str]) -> Result<bool> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(workspace_root()).status();
    Ok(status.context("cannot run cargo")?.success())
}
