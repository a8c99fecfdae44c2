//! The results of tests, read from the output of their executable.

use super::process::{End, Ended};
use std::time::Duration;

/// The prefix of a line that reports a skipped test, or a skipped part of a test. The test kit prints `skipped: TEST:
/// REASON`.
const SKIPPED: &str = "skipped: ";

/// The outcome of one process.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) ignored: usize,
    pub(super) failed: Vec<String>,
    /// Tests and their durations. The sum is meaningful only if the tests ran one after another.
    pub(super) times: Vec<(String, Duration)>,
    /// Tests, and the reasons why they or parts of them were skipped.
    pub(super) skips: Vec<(String, String)>,
}

impl Outcome {
    /// Parses the output of a process that was started to run `tests`. A test without a result counts as failed.
    pub(super) fn of(ended: &Ended, tests: &[String]) -> Outcome {
        let mut outcome = Outcome::parse(&ended.lines, &ended.errors);
        let succeeded = matches!(ended.end, End::Exited(status) if status.success());
        for test in tests {
            if !outcome.times.iter().any(|(name, _)| name == test) {
                outcome.failed.push(test.clone());
            }
        }
        let counted = outcome.passed + outcome.ignored + outcome.failed.len();
        if (!succeeded && outcome.failed.is_empty())
            || (!tests.is_empty() && counted != tests.len())
        {
            outcome.failed.push("(the process)".to_owned());
        }
        outcome
    }

    /// Parses results. `test NAME ... ok` is printed in two parts, before and after the test. Output of the test's
    /// processes may be between them.
    fn parse(lines: &[(Duration, String)], errors: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let mut since = Duration::ZERO;
        let mut running: Option<String> = None;
        for (at, line) in lines {
            if line.starts_with("running ") {
                since = *at;
            }
            let mut result = line.as_str();
            if let Some((name, rest)) =
                line.strip_prefix("test ").and_then(|l| l.split_once(" ... "))
            {
                running = Some(name.trim_end_matches(" - should panic").to_owned());
                result = rest;
            }
            let Some(name) = &running else { continue };
            // The reason why a test is ignored follows the word.
            let ignored = result == "ignored" || result.starts_with("ignored, ");
            if ignored {
                outcome.ignored += 1;
            } else if result.ends_with("ok") {
                outcome.passed += 1;
            } else if result.ends_with("FAILED") {
                outcome.failed.push(name.clone());
            } else {
                continue;
            }
            outcome.times.push((name.clone(), at.saturating_sub(since)));
            since = *at;
            running = None;
        }
        let skips = errors.lines().filter_map(|line| line.strip_prefix(SKIPPED)?.split_once(": "));
        outcome.skips = skips.map(|(test, why)| (test.to_owned(), why.to_owned())).collect();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::process;
    use std::process::Command;

    fn lines(text: &str) -> Vec<(Duration, String)> {
        let lines = text.lines().zip(1..);
        lines.map(|(line, second)| (Duration::from_secs(second), line.to_owned())).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn each_test_has_a_result_and_a_time() {
        let text = "\nrunning 4 tests\ntest a ... ok\ntest b::c ... FAILED\n\ntest d - should panic ... ok\n\
                    test e ... ignored, no time\n\nfailures:\n\n---- b::c stdout ----\ntest x ... is text\n";
        let outcome = Outcome::parse(&lines(text), "");
        assert_eq!((outcome.passed, outcome.ignored), (2, 1));
        assert_eq!(outcome.failed, ["b::c"]);
        let times: Vec<(&str, u64)> =
            outcome.times.iter().map(|(name, time)| (name.as_str(), time.as_secs())).collect();
        assert_eq!(times, [("a", 1), ("b::c", 1), ("d", 2), ("e", 1)]);
    }

    #[test]
    fn a_result_is_found_after_the_output_of_a_process() {
        let outcome =
            Outcome::parse(&lines("running 2 tests\ntest a ... hello\nok\ntest b ... ok\n"), "");
        assert_eq!((outcome.passed, outcome.failed.len()), (2, 0));
    }

    #[test]
    fn skips_are_lines_of_standard_error() {
        let outcome = Outcome::parse(&[], "x\nskipped: a::b: no Valkey: none is named\nskipped\n");
        assert_eq!(outcome.skips, [("a::b".to_owned(), "no Valkey: none is named".to_owned())]);
    }

    #[test]
    fn a_test_without_a_result_and_a_process_that_fails_count_as_failed() {
        let of = |line: &str, tests: &[&str]| {
            let mut command = Command::new("sh");
            let ended = process::run(command.args(["-c", line]), Duration::from_secs(60)).unwrap();
            Outcome::of(&ended, &names(tests)).failed
        };
        assert_eq!(
            of("echo 'test a ... ok'; printf 'test b ... '; kill -SEGV $$", &["a", "b", "c"]),
            ["b", "c"]
        );
        assert_eq!(of("echo 'test a ... ok'; exit 1", &["a"]), ["(the process)"]);
        assert_eq!(of("echo 'test a ... ok'; echo 'test z ... ok'", &["a"]), ["(the process)"]);
        assert_eq!(of("echo 'test a ... ok'", &["a"]), Vec::<String>::new());
        assert_eq!(of("exit 0", &[]), Vec::<String>::new());
    }
}
