//! The report of a run: a line for each group, the complete output of failures, and a summary.
#![expect(clippy::print_stdout, reason = "the report is the output of the command")]

use super::Job;
use super::outcome::Outcome;
use super::process::{End, Ended};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of slowest tests that the summary lists.
const SLOWEST: usize = 20;
/// Number of tests that the summary names per reason for skipping.
const NAMED: usize = 5;

/// The result of a run.
pub(crate) struct Summary {
    /// True if all tests passed.
    pub(crate) passed: bool,
    /// The slowest tests, the skipped ones with reasons, and the counts. They have already been printed.
    lines: Vec<String>,
}

impl From<Summary> for crate::steps::Outcome {
    fn from(summary: Summary) -> Self {
        if summary.passed { Self::PassedWith(summary.lines) } else { Self::Failed }
    }
}

/// The results so far.
pub(super) struct Report {
    started: Instant,
    groups: usize,
    passed: usize,
    ignored: usize,
    failed: Vec<String>,
    retried: Vec<String>,
    cpu: f64,
    times: Vec<(String, Duration)>,
    /// Tests by the reason why they, or parts of them, were skipped.
    skips: BTreeMap<String, Vec<String>>,
    seconds: Vec<(String, f64)>,
}

impl Report {
    pub(super) fn new(groups: usize) -> Report {
        Report {
            started: Instant::now(),
            groups,
            passed: 0,
            ignored: 0,
            failed: Vec::new(),
            retried: Vec::new(),
            cpu: 0.0,
            times: Vec::new(),
            skips: BTreeMap::new(),
            seconds: Vec::new(),
        }
    }

    /// Adds a group and prints its line. If a test failed, prints the output first.
    pub(super) fn add(
        &mut self,
        job: &Job<'_>,
        ended: &Ended,
        outcome: &Outcome,
        retried: &[String],
    ) {
        let full_name = |test: &str| match job {
            Job::Tests(group) => group.full_name(test),
            Job::Doc => test.to_owned(),
        };
        self.passed += outcome.passed;
        self.ignored += outcome.ignored;
        self.cpu += ended.cpu;
        self.seconds.push((job.name().to_owned(), ended.elapsed.as_secs_f64()));
        if let Job::Tests(_) = job {
            self.times.extend(outcome.times.iter().map(|(test, time)| (full_name(test), *time)));
        }
        for (test, reason) in &outcome.skips {
            self.skips.entry(reason.clone()).or_default().push(full_name(test));
        }
        if !outcome.failed.is_empty() || !retried.is_empty() {
            println!("---- the output of {}:", job.name());
            ended.lines.iter().for_each(|(_, line)| println!("{line}"));
            println!("{}", ended.errors.trim_end());
            match &ended.end {
                End::Silent => println!("it was killed: it printed no result for too long"),
                End::Exited(status) => println!("it ended with {status}"),
            }
            println!("----");
        }
        self.failed.extend(outcome.failed.iter().map(|test| full_name(test)));
        self.retried.extend(retried.iter().cloned());
        println!(
            "test: {:3} of {}: {}: {} passed, {} failed in {:.1} s, {:.1} CPU-s",
            self.seconds.len(),
            self.groups,
            job.name(),
            outcome.passed,
            outcome.failed.len(),
            ended.elapsed.as_secs_f64(),
            ended.cpu
        );
    }

    /// The duration of each group in seconds.
    pub(super) fn seconds(&self) -> Vec<(String, f64)> {
        self.seconds.clone()
    }

    /// Prints the summary and returns it.
    pub(super) fn finish(self) -> Summary {
        let summary = self.summary();
        summary.lines.iter().for_each(|line| println!("{line}"));
        summary
    }

    fn summary(mut self) -> Summary {
        self.times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let mut lines = vec!["the slowest tests:".to_owned()];
        for (test, time) in self.times.iter().take(SLOWEST) {
            lines.push(format!("{:7.1} s  {test}", time.as_secs_f64()));
        }
        for (reason, tests) in &mut self.skips {
            tests.sort();
            tests.dedup();
            let named: Vec<&str> = tests.iter().take(NAMED).map(String::as_str).collect();
            let more = match tests.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "skipped completely or in part: {} ({reason}): {}{more}",
                tests.len(),
                named.join(", ")
            ));
        }
        let named = |what: &str, tests: &[String]| {
            tests.iter().map(|test| format!("{what}: {test}")).collect::<Vec<_>>()
        };
        lines.extend(named("RETRIED, passed on the second try", &self.retried));
        lines.extend(named("FAILED", &self.failed));
        let skipped: usize = self.skips.values().map(Vec::len).sum();
        lines.push(format!(
            "tests: {} passed, {} failed, {} ignored, {skipped} skipped or in part, {} retried in {:.0} s, {:.0} CPU-s",
            self.passed,
            self.failed.len(),
            self.ignored,
            self.retried.len(),
            self.started.elapsed().as_secs_f64(),
            self.cpu
        ));
        Summary { passed: self.failed.is_empty(), lines }
    }
}
