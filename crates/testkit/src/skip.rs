//! The line by which a test says that it, or a part of it, is skipped.

use std::io::Write;

/// Says that the running test, or a part of it, is skipped, and why. The gate lists these lines by reason, so the
/// reason names what this machine lacks, and nothing of the test.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let line = format!("skipped: {test}: {reason}\n");
    // Not `eprint!`, whose text is shown only if the test fails, and not several writes, since other output could come
    // in between.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
