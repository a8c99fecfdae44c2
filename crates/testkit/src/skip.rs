//! The line that reports that a test, or a part of it, is skipped.

use std::io::Write;

/// Reports that the running test, or a part of it, is skipped, and why. The gate groups these lines by reason, so the
/// reason names only what this machine lacks, and nothing about the test.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let line = format!("skipped: {test}: {reason}\n");
    // `eprint!` is not used, because its text is shown only if the test fails. The line is one write, so that no other
    // output can split it.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
