//! `cargo xtask ci`: all checks that a change must pass, ordered so that failures show early.
//!
//! The workspace is built once (`artifacts.rs`); lints, tests, documentation and the differential sample use that
//! build. The last six steps take long or need special programs. Each has a list of input files, and the gate runs
//! it only if one of them has changed since the step passed (`verified.rs`). `cargo xtask release-check` runs
//! every step. Checks that take hours are in `nightly.rs`.

use crate::forward::{to_checks, to_checks_of};
use crate::steps::{Outcome, Step, Which, cargo, our_cargo, run_all, workspace_root};
use crate::{artifacts, runner, tidy};
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt, advice: "run `cargo fmt`", inputs: &[] },
    Step { name: "tidy", run: tidy, advice: "each finding says what to do", inputs: &[] },
    Step {
        name: "build",
        run: build,
        advice: "warnings are errors; `cargo clippy --workspace --all-targets` shows them, too",
        inputs: &[],
    },
    Step {
        name: "test",
        run: test,
        advice: "`cargo xtask test NAME` runs the tests whose names contain NAME",
        inputs: &[],
    },
    Step { name: "doc", run: doc, advice: "run `cargo doc --workspace --no-deps`", inputs: &[] },
    Step {
        name: "diff",
        run: diff,
        advice: "the output shows the seed and the transcript; intended differences are in crates/differential/src/rules.rs",
        inputs: &[],
    },
    Step {
        name: "jvm",
        run: jvm,
        advice: "run `mvn -B verify` in clients/lettuce-lanes with BRISK_SERVER_BIN set",
        inputs: &["clients/lettuce-lanes"],
    },
    Step {
        name: "readme",
        run: readme,
        advice: "make the README's `cargo run` command work again",
        inputs: README_INPUTS,
    },
    Step {
        name: "package",
        run: package,
        advice: "`cargo xtask package --check` builds and installs again",
        inputs: PACKAGE_INPUTS,
    },
    Step {
        name: "documents",
        run: documents,
        advice: "correct the document, or make the command do what the document says",
        inputs: DOCUMENTS_INPUTS,
    },
    Step {
        name: "book",
        run: book,
        advice: "correct the links or the table of contents; `cargo xtask book` builds the book again",
        inputs: BOOK_INPUTS,
    },
    Step {
        name: "instructions",
        run: instructions,
        advice: "make the named command execute fewer instructions, or accept the new counts with `cargo xtask instructions --update` and give the reason in the commit message",
        inputs: INSTRUCTIONS_INPUTS,
    },
];

/// The inputs of the step `readme`. The README's `cargo run` command builds a server for release and starts it, and the
/// server must survive failing scripts.
const README_INPUTS: &[&str] = &[
    "README.md",
    "checks/src/readme.rs",
    ".cargo",
    "rust-toolchain.toml",
    "Cargo.toml",
    "Cargo.lock",
    "crates/*/Cargo.toml",
    "crates/script",
    "crates/server/src/boot",
];

/// The inputs of the step `package`. Packages contain the programs, their manual pages and completions, which are
/// generated from `--help`, and brisk.conf, which is generated from the directives.
const PACKAGE_INPUTS: &[&str] = &[
    "packaging",
    "checks/src/package",
    "checks/src/cargo.rs",
    ".cargo",
    "rust-toolchain.toml",
    "Cargo.toml",
    "Cargo.lock",
    "crates/*/Cargo.toml",
    "crates/config/src",
    "crates/server/src/boot",
    "crates/cli/src/about",
    "crates/cli/src/options",
    "crates/benchmark/src/options",
    "crates/check/src",
    ":(exclude)*/tests/*",
    ":(exclude)*/tests.rs",
];

/// The inputs of the step `documents`. The commands in the documents run the programs of the packages, and the
/// documents show their output.
const DOCUMENTS_INPUTS: &[&str] = &[
    "docs/install.md",
    "docs/quick-start.md",
    "docs/moving-from-redis.md",
    "docs/durability.md",
    "docs/replication.md",
    "docs/security.md",
    "docs/monitoring.md",
    "docs/backup.md",
    "docs/upgrades.md",
    "docs/capacity.md",
    "docs/troubleshooting.md",
    "checks/src/documents.rs",
    "checks/src/package",
    "packaging",
    "crates/config/src",
    "crates/server/src/boot",
    "crates/server/src/doctor",
    "crates/server/src/http",
    "crates/cli/src",
    "crates/check/src",
    "crates/analyze/src",
    "crates/benchmark/src/options",
    "crates/benchmark/src/report.rs",
    ":(exclude)*/tests/*",
    ":(exclude)*/tests.rs",
];

/// The inputs of the step `book`. The book consists of the pages in `docs`. Some of them are generated from tables in
/// the code, but a test already checks that they are up to date.
const BOOK_INPUTS: &[&str] = &["book.toml", "docs", "checks/src/book"];

/// The inputs of the step `instructions`. Instructions are counted from receiving a request to sending its reply.
const INSTRUCTIONS_INPUTS: &[&str] = &[
    "checks/src/instructions.rs",
    "checks/src/instructions.tsv",
    ".cargo",
    "rust-toolchain.toml",
    "Cargo.toml",
    "Cargo.lock",
    "crates/resp/src",
    "crates/structures/src",
    "crates/reactor/src",
    "crates/engine/src",
    "crates/script",
    "crates/observe/src",
    "crates/acl/src",
    "crates/node/src",
    "crates/server/src/worker",
    "crates/server/src/info",
    ":(exclude)*/tests/*",
    ":(exclude)*/tests.rs",
];

/// `cargo xtask ci [STEP …] [--record]`: runs all steps whose inputs have changed, or the named steps.
pub(crate) fn main(arguments: &[String]) -> Result<bool> {
    let record = arguments.iter().any(|argument| argument == "--record");
    let names: Vec<String> =
        arguments.iter().filter(|argument| *argument != "--record").cloned().collect();
    let which = if names.is_empty() { Which::Changed } else { Which::Named(&names) };
    run_all("ci", STEPS, which, record)
}

/// `cargo xtask release-check`: runs all steps, even those recorded as passed.
pub(crate) fn release_check(arguments: &[String]) -> Result<bool> {
    let record = match arguments {
        [] => false,
        [argument] if argument == "--record" => true,
        _ => bail!("release-check takes no argument but --record"),
    };
    run_all("release-check", STEPS, Which::All, record)
}

/// `cargo xtask test [NAME …] [--jobs N] [--record]`: runs the tests of the gate, with the build of the gate.
pub(crate) fn test_main(arguments: &[String]) -> Result<bool> {
    let mut options = runner::Options::default();
    let mut only = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--record" => options.record = true,
            "--jobs" => {
                let number = arguments.next().context("--jobs needs a number")?;
                options.jobs = Some(number.parse().with_context(|| format!("--jobs {number}"))?);
            }
            flag if flag.starts_with("--") => bail!("unknown option of test: {flag}"),
            name => only.push(name),
        }
    }
    options.only = &only;
    if options.record && !only.is_empty() {
        bail!("--record needs a run of all tests");
    }
    match artifacts::built()? {
        Some(built) => runner::run(built, &options).map(|summary| summary.passed),
        None => Ok(false),
    }
}

fn fmt() -> Result<Outcome> {
    cargo(&["fmt", "--all", "--check"], &[])
}

fn tidy() -> Result<Outcome> {
    tidy::main().map(Outcome::from)
}

fn build() -> Result<Outcome> {
    Ok(artifacts::built()?.is_some().into())
}

fn test() -> Result<Outcome> {
    let Some(built) = artifacts::built()? else { return Ok(Outcome::Failed) };
    runner::run(built, &runner::Options::default()).map(Outcome::from)
}

/// Tests the JVM client module, with the server that the tests use.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
fn jvm() -> Result<Outcome> {
    // Maven prints the JDK that it runs on, and fails if there is none.
    let mut probe = Command::new("mvn");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        println!("ci: jvm: this machine has no Maven with a JDK");
        return Ok(Outcome::Skipped);
    }
    let Some(built) = artifacts::built()? else { return Ok(Outcome::Failed) };
    let status = Command::new("mvn")
        .args(["-B", "-q", "verify"])
        .env("BRISK_SERVER_BIN", built.program("brisk-server")?)
        .current_dir(workspace_root().join("clients/lettuce-lanes"))
        .status()
        .context("cannot run mvn")?;
    Ok(status.success().into())
}

fn doc() -> Result<Outcome> {
    // Module comments are for readers of the source and also link to private items.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    let mut command = our_cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.envs(artifacts::environment()).env("RUSTDOCFLAGS", flags);
    Ok(command.status().context("cannot run cargo")?.success().into())
}

fn diff() -> Result<Outcome> {
    let Some(built) = artifacts::built()? else { return Ok(Outcome::Failed) };
    to_checks_of(built, "diff", &["--sample"])
}

fn readme() -> Result<Outcome> {
    to_checks("readme", &[])
}

fn package() -> Result<Outcome> {
    to_checks("package", &["--check"])
}

fn documents() -> Result<Outcome> {
    to_checks("documents", &[])
}

fn book() -> Result<Outcome> {
    to_checks("book", &[])
}

fn instructions() -> Result<Outcome> {
    to_checks("instructions", &[])
}
