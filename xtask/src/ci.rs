//! `cargo xtask ci`: everything a change must pass, in the order in which it fails fastest.
//!
//! One target folder, two profiles: everything is built in `dev`, and the programs once in `release`,
//! the server by the README's command. What takes longer than a change should wait for is in `nightly.rs`.

use crate::forward::to_checks;
use crate::steps::{Step, cargo, our_cargo, run_all, workspace_root};
use crate::tidy;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// More test programs that fail are no accident.
const RETRIED_MAX: usize = 3;

const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt, advice: "run `cargo fmt`" },
    Step { name: "tidy", run: tidy::main, advice: "each finding says what to do" },
    Step { name: "clippy", run: clippy, advice: "run `cargo clippy --workspace --all-targets`" },
    Step {
        name: "test",
        run: test,
        advice: "run the failing test alone: `cargo test -p CRATE NAME`",
    },
    Step {
        name: "jvm",
        run: jvm,
        advice: "run `mvn -B verify` in clients/lettuce-lanes with BRISK_SERVER_BIN set",
    },
    Step { name: "doc", run: doc, advice: "run `cargo doc --workspace --no-deps`" },
    Step {
        name: "diff",
        run: diff,
        advice: "the output names seed and transcript; see diff/rules.rs",
    },
    Step { name: "readme", run: readme, advice: "make the README's first command work again" },
    Step {
        name: "package",
        run: package,
        advice: "`cargo xtask package --check` builds and installs again",
    },
    Step {
        name: "documents",
        run: documents,
        advice: "make the document say what happens, or happen what it says",
    },
    Step {
        name: "instructions",
        run: instructions,
        advice: "make it cheaper again, or say why not and `cargo xtask instructions --update`",
    },
];

/// Runs all steps, or those named on the command line.
pub(crate) fn main(wanted: &[String]) -> Result<bool> {
    run_all("ci", STEPS, wanted)
}

fn fmt() -> Result<bool> {
    cargo(&["fmt", "--all", "--check"], &[])
}

fn clippy() -> Result<bool> {
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
}

/// All tests. A test program that fails has a second try, alone: tests set clocks, sockets and processes against each
/// other, and a machine that others use, too, may stand still for longer than any of them waits. That is said, so
/// that whoever reads the output mends the test; what fails twice has failed.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
fn test() -> Result<bool> {
    let mut child = our_cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"])
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().context("it is piped")?).lines() {
        let line = line?;
        eprintln!("{line}");
        said.push_str(&line);
        said.push('\n');
    }
    if child.wait()?.success() {
        return Ok(true);
    }
    let failed = failed_targets(&said);
    if failed.is_empty() || failed.len() > RETRIED_MAX {
        return Ok(false);
    }
    for target in &failed {
        println!("ci: `cargo test {target}` FAILED; it has a second try");
        let words: Vec<&str> = ["test", "--quiet"].into_iter().chain(target.split(' ')).collect();
        if !cargo(&words, &[])? {
            return Ok(false);
        }
    }
    println!("ci: UNSTABLE, passed at the second try: {}", failed.join(", "));
    Ok(true)
}

/// What cargo says at the end of the targets that failed, as words for `cargo test`.
fn failed_targets(said: &str) -> Vec<&str> {
    let lines = said.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix('`')?.strip_suffix('`'))
        .filter(|words| words.starts_with("-p "))
        .collect()
}

/// The JVM client module, with the server as the tests use it.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
fn jvm() -> Result<bool> {
    // Maven says which JDK it runs on, and fails where there is none.
    let mut probe = Command::new("mvn");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        println!("ci: jvm is left out, there is no Maven with a JDK here");
        return Ok(true);
    }
    if !cargo(&["build", "--quiet", "--package", "brisk-server", "--bin", "brisk-server"], &[])? {
        return Ok(false);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let server = workspace_root().join(target).join("debug/brisk-server");
    let status = Command::new("mvn")
        .args(["-B", "-q", "verify"])
        .env("BRISK_SERVER_BIN", server)
        .current_dir(workspace_root().join("clients/lettuce-lanes"))
        .status()
        .context("cannot run mvn")?;
    Ok(status.success())
}

fn doc() -> Result<bool> {
    // File heads speak to readers of the source and name private items, too.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", flags)])
}

fn diff() -> Result<bool> {
    to_checks("diff", &["--sample".to_owned()])
}

fn readme() -> Result<bool> {
    to_checks("readme", &[])
}

fn package() -> Result<bool> {
    to_checks("package", &["--check".to_owned()])
}

fn documents() -> Result<bool> {
    to_checks("documents", &[])
}

fn instructions() -> Result<bool> {
    to_checks("instructions", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_failed_are_what_cargo_names() {
        let said = "error: test failed, to rerun pass `-p brisk-cli --test modes`\nerror: 2 targets failed:\n    \
                    `-p brisk --test replica_reads`\n    `-p brisk-cli --test modes`\n";
        assert_eq!(
            failed_targets(said),
            ["-p brisk --test replica_reads", "-p brisk-cli --test modes"]
        );
        assert!(failed_targets("error: could not compile `brisk` (lib)\n").is_empty());
    }
}
