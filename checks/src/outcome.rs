//! The outcome of a check.

use std::process::ExitCode;

/// The exit code of a check that this machine cannot run; `cargo xtask` interprets it.
const EXIT_SKIPPED: u8 = 77;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// This machine lacks what the check needs. The check has printed what is missing.
    Skipped,
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Outcome {
        if passed { Outcome::Passed } else { Outcome::Failed }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Passed => ExitCode::SUCCESS,
            Outcome::Failed => ExitCode::FAILURE,
            Outcome::Skipped => ExitCode::from(EXIT_SKIPPED),
        }
    }
}
