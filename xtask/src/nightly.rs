//! `cargo xtask nightly`: the checks that take minutes to hours, to be run overnight.
//!
//! loom and the fuzz targets rebuild everything with their own flags. Each has a separate target directory, so that it
//! does not discard the builds of `ci`. miri and fuzz need the nightly toolchain with the component `miri`. fuzz also
//! needs the tool `cargo-fuzz`.

use crate::forward::to_checks;
use crate::steps::{Outcome, Step, Which, cargo, nightly_cargo, run_all, workspace_root};
use crate::{artifacts, runner};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// How long each fuzz target runs.
const FUZZ_SECONDS: &str = "-max_total_time=600";

/// Number of concurrent processes of the step `load`.
const LOAD_JOBS: usize = 24;
/// How long a test of this task may run without output.
const SILENCE_MAX: Duration = Duration::from_secs(6 * 3600);
/// Environment variables that set the volumes of tests, about a hundred times those of the gate.
const VOLUMES: &[(&str, &str)] = &[
    ("BRISK_CHAIN_CUTS", "1000"),
    ("BRISK_CHAIN_WRITES", "300000"),
    ("BRISK_CLIENT_CANCELS", "5000000"),
    ("BRISK_CLIENT_CUTS", "2000"),
    ("BRISK_COMPARE_ROUNDS", "3000"),
    ("BRISK_FAILOVERS", "200"),
    ("BRISK_KILL_ROUNDS", "1000"),
];
/// The test groups that read these variables.
const VOLUME_GROUPS: &[&str] = &[
    "brisk-tests/chains::",
    "brisk-tests/comparison::",
    "brisk-tests/sentinel::",
    "brisk-tests/aof::",
    "brisk/storms::",
];

const STEPS: &[Step] = &[
    Step {
        name: "loom",
        run: loom,
        advice: "loom prints the interleaving; LOOM_LOG=trace tells more",
        inputs: &[],
    },
    Step { name: "miri", run: miri, advice: "run the named test alone under miri", inputs: &[] },
    Step {
        name: "fuzz",
        run: fuzz,
        advice: "add the input to the corpus and a test that names it",
        inputs: &[],
    },
    Step {
        name: "power",
        run: power,
        advice: "set BRISK_POWER_SEED to the seed in the output to repeat the run",
        inputs: &[],
    },
    Step {
        name: "replication",
        run: replication,
        advice: "set BRISK_REPLICATION_SEED to the seed in the output to repeat the run",
        inputs: &[],
    },
    Step {
        name: "load",
        run: load,
        advice: "a test that fails only under load has a race condition; see its output",
        inputs: &[],
    },
    Step { name: "volumes", run: volumes, advice: "the test's output names its seed", inputs: &[] },
    Step {
        name: "redis",
        run: redis,
        advice: "the test expects behavior that Redis does not have: correct the test",
        inputs: &[],
    },
    Step {
        name: "diff",
        run: diff,
        advice: "the output shows the seed and the transcript; intended differences are in crates/differential/src/rules.rs",
        inputs: &[],
    },
    Step {
        name: "acl",
        run: acl,
        advice: "the output names the user and the command",
        inputs: &[],
    },
    Step { name: "race", run: race, advice: "the output shows the history", inputs: &[] },
    Step {
        name: "cluster",
        run: cluster,
        advice: "the output names the round and shows the logs; --seed 1 repeats the order of the kills",
        inputs: &[],
    },
    Step { name: "hostile", run: hostile, advice: "the output names the seed", inputs: &[] },
    Step {
        name: "speed",
        run: speed,
        advice: "find the commit with `cargo xtask bench every --ours A --peer B --only COMMAND`",
        inputs: &[],
    },
];

/// Runs all steps, or those named on the command line.
pub(crate) fn main(wanted: &[String]) -> Result<bool> {
    let which = if wanted.is_empty() { Which::All } else { Which::Named(wanted) };
    run_all("nightly", STEPS, which, false)
}

/// Checks the models of the slot lock, reclamation, quiescence and the client's lanes in every interleaving. The client
/// has its own `cfg`, because tokio has no sockets under `cfg(loom)`.
fn loom() -> Result<Outcome> {
    const MODELS: [(&str, &str, &str); 3] = [
        ("brisk-structures", "model", "--cfg loom"),
        ("brisk-node", "quiesce", "--cfg loom"),
        ("brisk", "model", "--cfg brisk_loom"),
    ];
    for (package, filter, flags) in MODELS {
        let env = [("RUSTFLAGS", flags), ("CARGO_TARGET_DIR", "target/loom")];
        let words = ["test", "--release", "--package", package, "--lib", filter];
        if cargo(&words, &env)? == Outcome::Failed {
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Passed)
}

/// Runs the tests of the unsafe data structures in Miri, an interpreter that detects undefined behavior.
fn miri() -> Result<Outcome> {
    let env = [
        ("CARGO_TARGET_DIR", "target/miri"),
        // Tagged pointers keep their provenance. A cast through an integer is reported.
        ("MIRIFLAGS", "-Zmiri-strict-provenance"),
    ];
    nightly_cargo(&["miri", "test", "--package", "brisk-structures", "--lib"], &env)
}

/// Simulates a million power failures while the append-only file is being used.
fn power() -> Result<Outcome> {
    let words = ["test", "--release", "--package", "brisk-node", "--lib", "aof::power"];
    cargo(&words, &[("BRISK_POWER_CUTS", "1000000")])
}

/// Simulates a million runs of servers that replicate from one another.
fn replication() -> Result<Outcome> {
    let words = [
        "test",
        "--release",
        "--package",
        "brisk-server",
        "--features",
        "simulated-time",
        "--lib",
        "simulation",
    ];
    cargo(&words, &[("BRISK_REPLICATION_RUNS", "1000000")])
}

/// Runs all tests, with more concurrent processes than the machine can handle in time.
fn load() -> Result<Outcome> {
    tests(runner::Options { jobs: Some(LOAD_JOBS), ..runner::Options::default() })
}

/// Runs the tests whose volume is configurable, with a large volume.
fn volumes() -> Result<Outcome> {
    tests(runner::Options {
        environment: VOLUMES,
        only: VOLUME_GROUPS,
        ..runner::Options::default()
    })
}

/// Runs the integration tests against a real Redis, which shows that they expect the correct behavior.
fn redis() -> Result<Outcome> {
    let environment = &[("BRISK_TEST_SUBJECT", "redis")];
    tests(runner::Options { environment, only: &["brisk-tests/"], ..runner::Options::default() })
}

fn tests(options: runner::Options) -> Result<Outcome> {
    let Some(built) = artifacts::built()? else { return Ok(Outcome::Failed) };
    let options = runner::Options { silence_max: SILENCE_MAX, ..options };
    runner::run(built, &options).map(Outcome::from)
}

fn diff() -> Result<Outcome> {
    to_checks("diff", &["--seeds", "1..21", "--commands", "100000"])
}

fn acl() -> Result<Outcome> {
    to_checks("acl", &["--pairs", "1000000"])
}

fn race() -> Result<Outcome> {
    to_checks("race", &["--operations", "1000000"])
}

/// Runs 500 failovers with etcd, half of them with each lease TTL, and 200 rounds with all kinds of faults.
fn cluster() -> Result<Outcome> {
    for ttl in ["3", "5"] {
        let words = ["failover", "--rounds", "250", "--ttl", ttl, "--coordinator", "etcd"];
        let outcome = to_checks("cluster", &words)?;
        if outcome != Outcome::Passed {
            return Ok(outcome);
        }
    }
    to_checks("cluster", &["nemesis", "--rounds", "200"])
}

fn hostile() -> Result<Outcome> {
    to_checks("hostile", &["--minutes", "60"])
}

/// Compares every data command with the build of a recorded commit.
fn speed() -> Result<Outcome> {
    to_checks("speed", &[])
}

fn fuzz() -> Result<Outcome> {
    let directory = workspace_root().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    targets.sort();
    for target in &targets {
        let words = ["fuzz", "run", target, "--", FUZZ_SECONDS];
        if nightly_cargo(&words, &[])? == Outcome::Failed {
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Passed)
}
