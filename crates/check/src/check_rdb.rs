//! `brisk-check-rdb`: checks whether an RDB file can be loaded.
#![forbid(unsafe_code)]

use brisk_check::rdb::{Context, run};
use brisk_check::report;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let args: Vec<_> = args.collect();
    let mut out = BufWriter::new(stdout().lock());
    let mut context = Context { out: &mut out, now_ms: report::now_ms() };
    let outcome = run(&program.to_string_lossy(), &args, &mut context);
    report::exit_code(outcome.and_then(|()| Ok(out.flush()?)))
}
