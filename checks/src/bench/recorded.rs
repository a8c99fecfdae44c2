//! Compares every data command of this tree with the build of a recorded commit.
//!
//! Instruction counts do not show everything: a store that must leave the CPU's store buffer before it can be read, or
//! a branch that became a data dependency, costs time but no instructions. So the recorded build and the current one
//! run in alternating rounds on the same CPU, and each command's CPU time is compared.
//!
//! `benches/recorded-commit` names the commit. A change that makes a command slower for a good reason
//! updates that file, and the commit message gives the reason.

use super::report::{Limit, Report};
use super::sides::{Sides, release_binary};
use super::{Setup, every};
use crate::options::Options;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest accepted ratio of a command's CPU time to that of the recorded build.
const RATIO_MAX: f64 = 1.15;
/// Rounds of the first pass over all commands, and of the second pass over those that seemed slower.
const ROUNDS: usize = 5;
const ROUNDS_AGAIN: usize = 11;

/// Compares the builds. A command fails if it exceeds [`RATIO_MAX`] twice, the second time over more rounds. On a
/// shared machine, about one of two hundred commands exceeds it by chance.
#[expect(clippy::print_stdout, reason = "the table is the output of the command")]
pub(crate) fn compare_with_recorded() -> Result<bool> {
    let _widened = Sides::check_machine()?;
    let root = workspace_root();
    let recorded = build_of(root, &recorded_commit(root)?)?;
    let options =
        Options::of([("ours", path_text(&release_binary()?)?), ("peer", path_text(&recorded)?)]);
    let limit = Limit::Ratio(RATIO_MAX);

    let mut first = Report::new("every data command next to the recorded build");
    let setup = Setup { options: &options, rounds: ROUNDS, scale: 1.0 };
    every::measure(&setup, &mut first, limit, &|_| true)?;
    println!("{}", first.table());
    let slower: BTreeSet<String> = first.missed().map(|row| row.what.clone()).collect();
    if slower.is_empty() {
        return Ok(true);
    }

    let mut second = Report::new("those that seemed slower, again");
    let setup = Setup { rounds: ROUNDS_AGAIN, ..setup };
    every::measure(&setup, &mut second, limit, &|name| slower.contains(name))?;
    println!("{}", second.table());
    Ok(second.missed().next().is_none())
}

/// The commit named in `benches/recorded-commit`.
fn recorded_commit(root: &Path) -> Result<String> {
    let path = root.join("benches/recorded-commit");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let commit = text.trim();
    if commit.len() != 40 || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!("{}: wants the 40 hexadecimal digits of a commit", path.display());
    }
    Ok(commit.to_owned())
}

/// The release build of the server at that commit. It is built in its own work tree and kept for later runs.
fn build_of(root: &Path, commit: &str) -> Result<PathBuf> {
    let tree = root.join("target/recorded").join(commit);
    let server = tree.join("target/release/brisk-server");
    if server.exists() {
        return Ok(server);
    }
    if !tree.exists() {
        let mut add = Command::new("git");
        add.args(["worktree", "add", "--detach"]).arg(&tree).arg(commit);
        run(add.current_dir(root))?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--package", "brisk-server", "--bin", "brisk-server"]);
    run(build.env_remove("CARGO_TARGET_DIR").current_dir(&tree))?;
    Ok(server)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
