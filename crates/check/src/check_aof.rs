//! `brisk-check-aof`: checks whether append-only files can be loaded, and truncates incomplete
//! ones.
#![forbid(unsafe_code)]

use brisk_check::aof::{Terminal, run};
use brisk_check::report;
use std::io::{BufWriter, Write, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let args: Vec<_> = args.collect();
    let mut out = BufWriter::new(stdout().lock());
    let mut terminal =
        Terminal { out: &mut out, answers: &mut stdin().lock(), now_ms: report::now_ms() };
    let outcome = run(&program.to_string_lossy(), &args, &mut terminal);
    report::exit_code(outcome.and_then(|()| Ok(out.flush()?)))
}
