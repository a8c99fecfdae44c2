//! Runs the tests of a build: each group of tests in a separate process, with several concurrent processes.
//!
//! A process runs its tests one after another, so the time between two results is the time of a test. Tests mostly wait
//! for servers, so [`JOBS_PER_CPU`] processes are needed to keep a CPU busy. A failed test fails the run, unless it is
//! listed in `retried.tsv` and its second attempt passes. Second attempts are reported.

mod groups;
mod lists;
mod outcome;
mod process;
mod report;

use crate::artifacts::{Built, environment};
use crate::steps::our_cargo;
use anyhow::{Result, bail};
use groups::{Group, groups_of};
use lists::Lists;
use outcome::Outcome;
use process::{Ended, bound_to_us};
use report::{Report, Summary};
use std::collections::VecDeque;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Number of concurrent processes per CPU of the machine.
const JOBS_PER_CPU: usize = 4;
/// The maximum number of concurrent processes on any number of CPUs.
const JOBS_MAX: usize = 32;
/// A process of the gate that prints no result for this long is considered hung.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// The name of the documentation tests.
const DOC_TESTS: &str = "doc";

/// What to run, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'o> {
    /// If not empty, only tests whose names contain one of these are run.
    pub(crate) only: &'o [&'o str],
    /// Number of concurrent processes.
    pub(crate) jobs: Option<usize>,
    /// True to record the durations of the groups.
    pub(crate) record: bool,
    /// Additional environment variables for the tests.
    pub(crate) environment: &'o [(&'o str, &'o str)],
    /// A process that prints no result for this long is killed, and its current test fails.
    pub(crate) silence_max: Duration,
}

impl Default for Options<'_> {
    fn default() -> Self {
        let silence_max = SILENCE_MAX;
        Options { only: &[], jobs: None, record: false, environment: &[], silence_max }
    }
}

/// A process to run.
enum Job<'b> {
    Tests(Group<'b>),
    Doc,
}

impl Job<'_> {
    fn name(&self) -> &str {
        match self {
            Job::Tests(group) => &group.name,
            Job::Doc => DOC_TESTS,
        }
    }

    fn tests(&self) -> &[String] {
        match self {
            Job::Tests(group) => &group.tests,
            Job::Doc => &[],
        }
    }
}

/// Runs the tests of a build.
pub(crate) fn run(built: &Built, options: &Options<'_>) -> Result<Summary> {
    let lists = Lists::read()?;
    let mut groups = Vec::new();
    for executable in &built.tests {
        groups.extend(groups_of(executable)?);
    }
    if groups.is_empty() {
        bail!("the build has no tests");
    }
    let exists = |name: &str| {
        groups.iter().any(|g| g.name == name || g.tests.iter().any(|t| g.full_name(t) == name))
    };
    let stale = lists.stale(exists);
    if !stale.is_empty() {
        bail!("serial.tsv or retried.tsv names what does not exist: {}", stale.join(", "));
    }
    let mut jobs: Vec<Job<'_>> = groups.into_iter().map(Job::Tests).collect();
    jobs.push(Job::Doc);
    if !options.only.is_empty() {
        jobs = jobs.into_iter().filter_map(|job| filtered(job, options.only)).collect();
        if jobs.is_empty() {
            bail!("no test has a name that contains {}", options.only.join(" or "));
        }
    }
    jobs.sort_by(|a, b| lists.seconds(b.name()).total_cmp(&lists.seconds(a.name())));
    let (serial, parallel): (VecDeque<_>, VecDeque<_>) =
        jobs.into_iter().partition(|job| lists.is_serial(job.name()));

    let runner = Runner { built, lists: &lists, options };
    let at_once = options.jobs.unwrap_or_else(default_jobs).max(1);
    let mut report = Report::new(serial.len() + parallel.len());
    runner.run_all(parallel, at_once, &mut report)?;
    runner.run_all(serial, 1, &mut report)?;
    if options.record {
        lists::record_seconds(report.seconds())?;
    }
    Ok(report.finish())
}

fn default_jobs() -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    (cpus * JOBS_PER_CPU).min(JOBS_MAX)
}

/// The job with only those tests whose names contain one of `only`.
fn filtered<'b>(job: Job<'b>, only: &[&str]) -> Option<Job<'b>> {
    let wanted = |name: &str| only.iter().any(|part| name.contains(part));
    match job {
        Job::Doc => only.contains(&DOC_TESTS).then_some(job),
        Job::Tests(mut group) => {
            let name = group.name.clone();
            group.tests.retain(|test| wanted(&groups::full_name(&name, test)));
            (!group.tests.is_empty()).then_some(Job::Tests(group))
        }
    }
}

struct Runner<'r> {
    built: &'r Built,
    lists: &'r Lists,
    options: &'r Options<'r>,
}

impl<'r> Runner<'r> {
    /// Runs the jobs in order, `at_once` at a time.
    fn run_all(&self, jobs: VecDeque<Job<'r>>, at_once: usize, report: &mut Report) -> Result<()> {
        let waiting = Mutex::new(jobs);
        let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
        let (done, results) = channel();
        thread::scope(|scope| {
            for _ in 0..at_once {
                let done = done.clone();
                scope.spawn(move || {
                    while let Some(job) = next() {
                        let result = self.run(&job);
                        if done.send((job, result)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            for (job, result) in results {
                let (ended, outcome, retried) = result?;
                report.add(&job, &ended, &outcome, &retried);
            }
            Ok(())
        })
    }

    /// Runs one job. Also returns the tests that passed on the second attempt.
    fn run(&self, job: &Job<'_>) -> Result<(Ended, Outcome, Vec<String>)> {
        let ended = self.process(job, job.tests())?;
        let mut outcome = Outcome::of(&ended, job.tests());
        let mut retried = Vec::new();
        let Job::Tests(group) = job else { return Ok((ended, outcome, retried)) };
        let failed = std::mem::take(&mut outcome.failed);
        for test in failed {
            let full_name = group.full_name(&test);
            if self.lists.is_retried(&full_name) {
                let only = [test.clone()];
                let again = self.process(job, &only)?;
                if Outcome::of(&again, &only).failed.is_empty() {
                    outcome.passed += 1;
                    retried.push(full_name);
                    continue;
                }
            }
            outcome.failed.push(test);
        }
        Ok((ended, outcome, retried))
    }

    fn process(&self, job: &Job<'_>, tests: &[String]) -> Result<Ended> {
        process::run(&mut self.command(job, tests), self.options.silence_max)
    }

    fn command(&self, job: &Job<'_>, tests: &[String]) -> Command {
        let mut command = match job {
            Job::Doc => {
                let mut command = our_cargo(&["test", "--doc", "--workspace"]);
                command.envs(environment());
                command
            }
            Job::Tests(group) => {
                let mut command = bound_to_us(&group.executable.path);
                command.args(["--test-threads=1", "--color=never", "--exact"]).args(tests);
                // As in cargo. The other variables of cargo are only used at compile time.
                command.current_dir(&group.executable.directory);
                command.env("CARGO_MANIFEST_DIR", &group.executable.directory);
                command.env("CARGO_PKG_NAME", &group.executable.package);
                command
            }
        };
        command.envs(self.options.environment.iter().copied());
        // Pass the built programs, which the test kit would otherwise build.
        if let Ok(server) = self.built.program("brisk-server") {
            command.env("BRISK_SERVER_BIN", server);
        }
        if let Some(examples) = &self.built.examples {
            command.env("BRISK_EXAMPLES_DIR", examples);
        }
        command
    }
}
