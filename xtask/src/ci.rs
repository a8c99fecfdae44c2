//! `cargo xtask ci`: everything a change must pass, in the order in which it fails fastest.

use crate::options::Options;
use crate::tidy;
use anyhow::{Context, Result};
use brisk_testkit::server::workspace_root;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// A step: its name, and what to do when it fails.
struct Step {
    name: &'static str,
    run: fn() -> Result<bool>,
    advice: &'static str,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt, advice: "run `cargo fmt`" },
    Step { name: "tidy", run: tidy::main, advice: "each finding says what to do" },
    Step { name: "clippy", run: clippy, advice: "run `cargo clippy --workspace --all-targets`" },
    Step {
        name: "test",
        run: test,
        advice: "run the failing test alone: `cargo test -p CRATE NAME`",
    },
    Step { name: "doc", run: doc, advice: "run `cargo doc --workspace --no-deps`" },
    Step {
        name: "diff",
        run: diff,
        advice: "the output names seed and transcript; see diff/rules.rs",
    },
    Step { name: "readme", run: readme, advice: "make the README's first command work again" },
];

/// Runs all steps, or those named on the command line.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
pub(crate) fn main(options: &Options) -> Result<bool> {
    let begun = Instant::now();
    for step in STEPS {
        if !options.words.is_empty() && !options.words.iter().any(|word| word == step.name) {
            continue;
        }
        println!("ci: {} …", step.name);
        let started = Instant::now();
        if !(step.run)().with_context(|| step.name)? {
            println!(
                "ci: {} FAILED. To repeat: `cargo xtask ci {}`; {}",
                step.name, step.name, step.advice
            );
            return Ok(false);
        }
        println!("ci: {} in {:.0} s", step.name, started.elapsed().as_secs_f64());
    }
    println!("ci: all passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(true)
}

fn cargo(words: &[&str], env: &[(&str, &str)]) -> Result<bool> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).envs(env.iter().copied()).current_dir(workspace_root());
    Ok(command.status().context("cannot run cargo")?.success())
}

fn fmt() -> Result<bool> {
    cargo(&["fmt", "--all", "--check"], &[])
}

fn clippy() -> Result<bool> {
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
}

fn test() -> Result<bool> {
    cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"], &[])
}

fn doc() -> Result<bool> {
    cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-D warnings")])
}

fn diff() -> Result<bool> {
    // A process of its own, so that a crash of a step cannot take the report with it.
    cargo(&["run", "--quiet", "--package", "xtask", "--", "diff", "--sample"], &[])
}

/// The first command of the README's first shell block, run as written.
fn readme() -> Result<bool> {
    let path = workspace_root().join("README.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let command = first_command(&text).context("the README has no ```sh block with a command")?;
    let status = Command::new("timeout")
        .args(["600", "bash", "-euc", command])
        .current_dir(workspace_root())
        .status()?;
    Ok(status.success())
}

fn first_command(readme: &str) -> Option<&str> {
    let block = readme.split("```sh").nth(1)?.split("```").next()?;
    block.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_is_the_first_line_that_is_no_comment() {
        let readme = "# X\n```sh\n# build\n\ncargo build\ncargo run\n```\n";
        assert_eq!(first_command(readme), Some("cargo build"));
        assert_eq!(first_command("no block"), None);
    }
}
