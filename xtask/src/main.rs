//! `cargo xtask …`: the project's own commands. `cargo xtask help` lists them.
//!
//! This program does not depend on the product's crates, so cargo builds it within seconds. The checks that start
//! servers are in the program `checks`, to which their tasks are forwarded.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool speaks on standard output")]

mod artifacts;
mod ci;
mod cpu;
mod forward;
mod layers;
mod nightly;
mod prose;
mod runner;
mod steps;
mod tidy;
mod verified;

use std::process::ExitCode;
use steps::Outcome;

const HELP: &str = "\
cargo xtask ci [STEP …]             everything a change must pass (this is what .ci/run runs); steps with unchanged
                                    inputs are left out unless they are named
cargo xtask ci [STEP …] --record    as above; puts the inputs of steps that pass on record
cargo xtask release-check           every step of ci, whether or not its inputs have changed
cargo xtask nightly [STEP …]        loom, miri, fuzzing, full volumes, speed: checks that take hours
cargo xtask test [NAME …]           the tests of the gate whose names contain one of NAME, with the gate's build
                                    --jobs N: processes at once; --record: records how long each group took
cargo xtask tidy                    the house rules that a program can check
cargo xtask TASK …                  a task of the program `checks`:
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let result = match task.as_str() {
        "ci" => ci::main(&arguments),
        "release-check" => ci::release_check(&arguments),
        "nightly" => nightly::main(&arguments),
        "test" => ci::test_main(&arguments),
        "tidy" => tidy::main(),
        "" | "help" => {
            println!("{HELP}");
            forward::to_checks("help", &[])
                .map(|outcome| outcome == Outcome::Passed && task == "help")
        }
        _ => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            forward::to_checks(&task, &arguments).map(|outcome| outcome != Outcome::Failed)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
