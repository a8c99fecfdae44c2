//! Running named checks one after another, with the time each took and how to repeat the one that
//! failed.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A step: its name, and what to do when it fails.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> Result<bool>,
    pub(crate) advice: &'static str,
}

/// Runs those of `steps` that are named in `wanted` (all if none is), up to the first that fails.
///
/// # Errors
/// A name is no step, or a step could not be run at all.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
pub(crate) fn run_all(task: &str, steps: &[Step], wanted: &[String]) -> Result<bool> {
    if let Some(word) = wanted.iter().find(|word| steps.iter().all(|step| step.name != **word)) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("{word} is none of the steps {}", names.join(", "));
    }
    let begun = Instant::now();
    for step in steps {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == step.name) {
            continue;
        }
        println!("{task}: {} …", step.name);
        let started = Instant::now();
        if !(step.run)().with_context(|| step.name)? {
            println!(
                "{task}: {} FAILED. To repeat: `cargo xtask {task} {}`; {}",
                step.name, step.name, step.advice
            );
            return Ok(false);
        }
        println!("{task}: {} in {:.0} s", step.name, started.elapsed().as_secs_f64());
    }
    println!("{task}: all passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(true)
}

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> &'static Path {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.parent().unwrap_or(crate_dir)
}

/// The cargo that runs us, in the workspace's root.
pub(crate) fn our_cargo(words: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).current_dir(workspace_root());
    command
}

/// Runs the cargo that runs us; tells whether it succeeded.
pub(crate) fn cargo(words: &[&str], env: &[(&str, &str)]) -> Result<bool> {
    let status = our_cargo(words).envs(env.iter().copied()).status().context("cannot run cargo")?;
    Ok(status.success())
}

/// Runs the cargo of the nightly toolchain; tells whether it succeeded.
pub(crate) fn nightly_cargo(words: &[&str], env: &[(&str, &str)]) -> Result<bool> {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(words).envs(env.iter().copied());
    // Set by the cargo that runs us, for its own toolchain.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    let status = command.current_dir(workspace_root()).status().context("cannot run rustup")?;
    Ok(status.success())
}
