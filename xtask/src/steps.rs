//! Runs named checks one after another. Prints the time that each took, and how to repeat a failed one.

use crate::{cpu, verified};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Like `Passed`. The task prints these lines last, after the output of all steps.
    PassedWith(Vec<String>),
    Failed,
    /// This machine lacks something that the step needs. The step has printed what is missing.
    Skipped,
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Outcome {
        if passed { Outcome::Passed } else { Outcome::Failed }
    }
}

/// A step of a task.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> Result<Outcome>,
    /// Advice if the step fails.
    pub(crate) advice: &'static str,
    /// The git pathspecs of all files on which its result depends. If there are any, `verified.tsv` records the
    /// contents with which the step passed, and [`Which::Changed`] omits the step until they change.
    pub(crate) inputs: &'static [&'static str],
}

/// The selection of the steps of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'w> {
    /// All steps, except those whose inputs have not changed since the step passed.
    Changed,
    /// The steps with these names.
    Named(&'w [String]),
    /// All steps. A skipped step fails the task.
    All,
}

/// Runs steps up to the first that fails. With `record`, records those that pass.
///
/// # Errors
/// If a name is not a step, or a step could not be run at all.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
pub(crate) fn run_all(task: &str, steps: &[Step], which: Which<'_>, record: bool) -> Result<bool> {
    let wanted: &[String] = if let Which::Named(names) = which { names } else { &[] };
    if let Some(word) = wanted.iter().find(|word| steps.iter().all(|step| step.name != **word)) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("{word} is none of the steps {}", names.join(", "));
    }
    let begun = Instant::now();
    let (mut summary, mut notes) = (Vec::new(), Vec::new());
    for step in steps {
        let name = step.name;
        match which {
            Which::Named(names) if names.iter().all(|wanted| wanted != name) => continue,
            Which::Changed if verified::is_current(step)? => {
                let note =
                    format!("{task}: {name} not run: its inputs are as they were when it passed");
                println!("{note}");
                notes.push(note);
                continue;
            }
            _ => {}
        }
        println!("{task}: {name} …");
        let (started, cpu_before) = (Instant::now(), cpu::seconds());
        let outcome = (step.run)().with_context(|| name)?;
        let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu::seconds() - cpu_before);
        let passed = || if record { verified::record(step) } else { Ok(()) };
        match outcome {
            Outcome::Passed => passed()?,
            Outcome::PassedWith(lines) => {
                passed()?;
                summary.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
            }
            Outcome::Skipped => {
                notes.push(format!(
                    "{task}: {name} SKIPPED: its output names what this machine lacks"
                ));
            }
            Outcome::Failed => {
                summary.iter().chain(&notes).for_each(|line| println!("{line}"));
                println!(
                    "{task}: {name} FAILED after {seconds:.0} s. To repeat: `cargo xtask {task} {name}`; {}",
                    step.advice
                );
                return Ok(false);
            }
        }
        println!("{task}: {name} in {seconds:.0} s, {cpu:.0} CPU-s");
    }
    summary.iter().chain(&notes).for_each(|line| println!("{line}"));
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu::seconds());
    if matches!(which, Which::All) && !notes.is_empty() {
        println!("{task}: FAILED after {seconds:.0} s: every step has to run");
        return Ok(false);
    }
    println!("{task}: all passed in {seconds:.0} s, {cpu:.0} CPU-s");
    Ok(true)
}

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> &'static Path {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.parent().unwrap_or(crate_dir)
}

/// The cargo that runs this program, in the workspace root, as if it were called from a shell. The variables that
/// `cargo run` sets for this package are removed, because otherwise build scripts would be run again.
pub(crate) fn our_cargo(words: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).current_dir(workspace_root());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_this_package) {
            command.env_remove(&name);
        }
    }
    command
}

/// Reports whether `cargo run` sets this variable for the package that it runs.
fn is_of_this_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Runs the cargo that runs this program. Returns whether it succeeded.
pub(crate) fn cargo(words: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
    let status = our_cargo(words).envs(env.iter().copied()).status().context("cannot run cargo")?;
    Ok(status.success().into())
}

/// Runs the cargo of the nightly toolchain. Returns whether it succeeded.
pub(crate) fn nightly_cargo(words: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(words).envs(env.iter().copied());
    // The cargo that runs this program sets these variables for its own toolchain.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    let status = command.current_dir(workspace_root()).status().context("cannot run rustup")?;
    Ok(status.success().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, run: fn() -> Result<Outcome>) -> Step {
        Step { name, run, advice: "none", inputs: &[] }
    }

    #[test]
    fn steps_run_up_to_the_first_that_fails() {
        let steps = [
            step("good", || Ok(Outcome::Passed)),
            step("bad", || Ok(Outcome::Failed)),
            step("broken", || bail!("cannot be run")),
        ];
        let named = |name: &str| {
            let names = [name.to_owned()];
            run_all("test", &steps, Which::Named(&names), false)
        };
        assert!(!run_all("test", &steps, Which::Changed, false).unwrap());
        assert!(named("good").unwrap() && !named("bad").unwrap());
        assert!(named("broken").is_err() && named("none").is_err());
    }

    #[test]
    fn a_skipped_step_fails_only_where_every_step_has_to_run() {
        let steps = [step("lacking", || Ok(Outcome::Skipped))];
        assert!(run_all("test", &steps, Which::Changed, false).unwrap());
        assert!(!run_all("test", &steps, Which::All, false).unwrap());
    }
}
