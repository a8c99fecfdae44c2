//! Compares every data command of this tree with the build of a recorded commit.
//!
//! Instruction counts do not show everything: a store that must leave the CPU's store buffer before it can be read, or
//! a branch that became a data dependency, costs time but no instructions. So the recorded build and the current one
//! run in alternating rounds on the same CPU, and each command's CPU time is compared.
//!
//! Requests that are not pipelined, and pipelines of 16, are compared with `brisk-benchmark compare`.
//!
//! `benches/recorded-commit` names the commit. A change that makes a command slower for a good reason
//! updates that file, and the commit message gives the reason.

use super::report::{Limit, Report};
use super::sides::{LOAD_CPU, SERVER_CPU, Sides, release_binary, release_program};
use super::{Setup, every};
use crate::options::Options;
use anyhow::{Context, Result, bail, ensure};
use brisk_testkit::server::workspace_root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest accepted ratio of a command's CPU time to that of the recorded build.
const RATIO_MAX: f64 = 1.15;
/// The largest accepted ratio of the CPU time per request. Only a ratio that is above it with a confidence of 95 %
/// fails.
const REQUEST_RATIO_MAX: f64 = 1.03;
/// The metrics of `brisk-benchmark compare` that have this limit.
const REQUEST_METRICS: [&str; 2] = ["server_cpu", "server_user"];
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
    let options = Options::of([("ours", path_text(&release_binary()?)?)]);
    let peer = path_text(&recorded)?;
    let limit = Limit::Ratio(RATIO_MAX);

    let mut first = Report::new("every data command next to the recorded build");
    let setup = Setup { options: &options, peer, rounds: ROUNDS, scale: 1.0 };
    every::measure(&setup, &mut first, limit, &|_| true)?;
    println!("{}", first.table());
    let requests = compare_requests(&recorded)?;
    println!("{}", requests.table());
    let is_as_fast = requests.missed().next().is_none();
    let slower: BTreeSet<String> = first.missed().map(|row| row.what.clone()).collect();
    if slower.is_empty() {
        return Ok(is_as_fast);
    }

    let mut second = Report::new("those that seemed slower, again");
    let setup = Setup { rounds: ROUNDS_AGAIN, ..setup };
    every::measure(&setup, &mut second, limit, &|name| slower.contains(name))?;
    println!("{}", second.table());
    Ok(is_as_fast && second.missed().next().is_none())
}

/// Compares GET and SET, one at a time and in pipelines of 16. The rows contain the lower bound of the 95 % confidence
/// interval of each ratio.
fn compare_requests(recorded: &Path) -> Result<Report> {
    let server = |name: &str, path: &Path| {
        Ok::<_, anyhow::Error>(format!(
            "{name}={} --port {{port}} --save '' --threads 1",
            path_text(path)?
        ))
    };
    let result = workspace_root().join("target/compare.json");
    let mut compare = Command::new(release_program("brisk-benchmark")?);
    compare
        .arg("compare")
        .arg(server("recorded", recorded)?)
        .arg(server("now", &release_binary()?)?);
    compare.args(["-t", "get,set", "-P", "1,16", "-r", "1000000", "--fill", "--rounds", "9"]);
    compare.args(["--duration", "2", "--warmup", "0.5"]);
    compare.args(["--pin", &format!("{SERVER_CPU}/{LOAD_CPU}"), "--save", path_text(&result)?]);
    run(&mut compare)?;
    let text = fs::read_to_string(&result).with_context(|| result.display().to_string())?;
    requests(&serde_json::from_str(&text)?)
}

/// The rows for the result of `brisk-benchmark compare`.
fn requests(result: &Value) -> Result<Report> {
    let mut report = Report::new("requests next to the recorded build: lower bounds of the ratios");
    for case in result["cases"].as_array().context("no cases")? {
        let name = format!(
            "{}, pipeline depth {}",
            case["title"].as_str().unwrap_or("?"),
            case["pipeline"]
        );
        for row in case["rows"].as_array().context("no rows")? {
            let metric = row["metric"].as_str().context("no metric")?;
            if REQUEST_METRICS.contains(&metric) {
                let low = row["ratios"][1]["low"].as_f64().context("no ratio")?;
                let limit = Limit::Most(REQUEST_RATIO_MAX);
                report.ours(format!("{name}, {metric}"), "ratio", low, limit);
            }
        }
    }
    ensure!(!report.is_empty(), "the result has no rows");
    Ok(report)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(low: f64) -> Value {
        let ratios = json!([null, {"value": low + 0.1, "low": low, "high": low + 0.2}]);
        let row = |metric: &str| json!({"metric": metric, "unit": "us", "ratios": ratios});
        let rows = [row("rate"), row("server_cpu"), row("server_user")];
        json!({"cases": [{"title": "GET", "pipeline": 1, "rows": rows}]})
    }

    #[test]
    fn requests_that_became_slower_with_confidence_fail() {
        assert_eq!(requests(&result(1.0)).unwrap().missed().count(), 0);
        assert_eq!(requests(&result(1.05)).unwrap().missed().count(), 2);
        assert!(requests(&json!({"cases": []})).is_err());
    }
}
