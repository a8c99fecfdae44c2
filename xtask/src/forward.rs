//! Tasks of the program `checks`, which cargo builds when one is called.

use crate::steps::cargo;
use anyhow::Result;

/// Runs a task of `checks`; says whether it succeeded.
pub(crate) fn to_checks(task: &str, arguments: &[String]) -> Result<bool> {
    let mut command = vec!["run", "--quiet", "--package", "checks", "--", task];
    command.extend(arguments.iter().map(String::as_str));
    cargo(&command, &[])
}
