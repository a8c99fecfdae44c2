//! `cargo xtask ci`: everything a change must pass, in the order in which it fails fastest.

//!
//! One target folder, two profiles: everything is built in `dev`, and the programs once in `release`,
//! the server by the README's command. What takes longer than a change should wait for is in `nightly.rs`.

use crate::options::Options;
use crate::steps::{Step, cargo, run_all};
use crate::{documents, instructions, package, readme, tidy};
use anyhow::Result;

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
    Step {
        name: "readme",
        run: readme::main,
        advice: "make the README's first command work again",
    },
    Step {
        name: "package",
        run: package::check,
        advice: "`cargo xtask package --check` builds and installs again",
    },
    Step {
        name: "documents",
        run: documents::main,
        advice: "make the document say what happens, or happen what it says",
    },
    Step {
        name: "instructions",
        run: instructions::check,
        advice: "make it cheaper again, or say why not and `cargo xtask instructions --update`",
    },
];

/// Runs all steps, or those named on the command line.
pub(crate) fn main(options: &Options) -> Result<bool> {
    run_all("ci", STEPS, &options.words)
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
    // File heads speak to readers of the source and name private items, too.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", flags)])
}

fn diff() -> Result<bool> {
    // A process of its own, so that a crash of a step cannot take the report with it.
    cargo(&["run", "--quiet", "--package", "xtask", "--", "diff", "--sample"], &[])
}
