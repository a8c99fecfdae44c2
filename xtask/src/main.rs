//! `cargo xtask …`: the project's own commands. `cargo xtask help` lists them.
//!
//! This program depends on nothing of the product, so that cargo builds it within seconds. The checks that start
//! servers are the program `checks`; their tasks are forwarded to it.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool speaks on standard output")]

mod ci;
mod forward;
mod layers;
mod nightly;
mod steps;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask ci [STEP …]             everything a change must pass (this is what .ci/run runs)
cargo xtask nightly [STEP …]        loom, miri, fuzzing, speed: checks that take hours
cargo xtask tidy                    the house rules that a program can check
cargo xtask TASK …                  a task of the program `checks`:
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let result = match task.as_str() {
        "ci" => ci::main(&arguments),
        "nightly" => nightly::main(&arguments),
        "tidy" => tidy::main(),
        "" | "help" => {
            println!("{HELP}");
            forward::to_checks("help", &[]).map(|_| task == "help")
        }
        _ => forward::to_checks(&task, &arguments),
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
