//! The order of the runs, and the measurements during each run.

use super::command::{command_line, public_info};
use super::comparison::{CaseResult, Comparison, Conditions, Sample, ServerInfo, ServerUse};
use super::syscalls::SyscallCount;
use crate::clock::utc_date;
use crate::engine::{Progress, Unwatched, Watch, run};
use crate::load::tag::Tag;
use crate::noise::{Moment, Noise};
use crate::options::{Case, Options};
use crate::report;
use crate::resources::{Usage, machine_line};
use crate::subject::{Place, Subject, SubjectSpec};
use brisk_dial::address::Address;
use std::time::SystemTime;

/// The minimum number of rounds for confidence intervals.
const ROUNDS_FOR_INTERVALS: usize = 3;
const MIB: f64 = 1024.0 * 1024.0;

/// Starts or connects to the servers, and measures them in turn. Each round of each case measures every server once,
/// and the order rotates. `notify` receives lines of progress.
///
/// # Errors
/// If a server does not start or reply, or a run fails.
pub fn compare(options: &Options, notify: &mut dyn FnMut(&str)) -> Result<Comparison, String> {
    let specs: Vec<SubjectSpec> =
        options.servers.iter().map(|text| SubjectSpec::parse(text)).collect();
    let baseline = baseline(options, &specs)?;
    let cases = options.cases()?;
    let mut subjects = Vec::new();
    for spec in &specs {
        notify(&format!("{}: starting", spec.name));
        subjects.push(subject(options, spec)?);
    }
    if options.fill {
        for subject in &subjects {
            notify(&format!("{}: writing the keys", subject.name));
            subject.fill(&options.material(), options.seed, Tag::default())?;
        }
    }
    let mut comparison = Comparison {
        machine: machine_line(),
        generator: concat!("brisk-benchmark ", env!("CARGO_PKG_VERSION")).to_owned(),
        date: utc_date(SystemTime::now()),
        command: command_line(&options.arguments, &options.servers),
        servers: server_infos(options, &specs, &subjects),
        baseline,
        conditions: conditions(options),
        cases: Vec::new(),
        warnings: cases
            .unknown_tests
            .iter()
            .map(|name| format!("there is no test \"{name}\""))
            .collect(),
    };
    for case in &cases.cases {
        let samples = rounds(options, case, &subjects, notify)?;
        let title = case.title.clone();
        comparison.cases.push(CaseResult::new(title, case.pipeline, samples, baseline));
        if options.syscalls {
            syscall_rounds(options, case, &subjects, &mut comparison, notify)?;
        }
    }
    judge(&mut comparison);
    if options.public {
        comparison.cases.iter_mut().for_each(|case| case.samples.clear());
    }
    Ok(comparison)
}

fn baseline(options: &Options, specs: &[SubjectSpec]) -> Result<usize, String> {
    for (i, spec) in specs.iter().enumerate() {
        if specs[..i].iter().any(|other| other.name == spec.name) {
            return Err(format!("two servers are named {}; use other names: a=… b=…", spec.name));
        }
    }
    match &options.baseline {
        None => Ok(0),
        Some(name) => specs
            .iter()
            .position(|spec| spec.name == *name)
            .ok_or_else(|| format!("--baseline: no server is named {name}")),
    }
}

fn subject(options: &Options, spec: &SubjectSpec) -> Result<Subject, String> {
    match &spec.place {
        Place::At(address) => {
            let target = options.target_at(Address::parse(address)?)?;
            Subject::at(&spec.name, target).map_err(|error| format!("{}: {error}", spec.name))
        }
        Place::StartedBy(command) => {
            Subject::start(&spec.name, command, &options.server_cpus, |address| {
                options.target_at(address)
            })
        }
    }
}

fn server_infos(options: &Options, specs: &[SubjectSpec], subjects: &[Subject]) -> Vec<ServerInfo> {
    let servers = specs.iter().zip(subjects).map(server_info).enumerate();
    let shown = |(i, info)| if options.public { public_info(i + 1, info) } else { info };
    servers.map(shown).collect()
}

fn server_info((spec, subject): (&SubjectSpec, &Subject)) -> ServerInfo {
    let (Place::At(place) | Place::StartedBy(place)) = &spec.place;
    ServerInfo {
        name: spec.name.clone(),
        place: place.clone(),
        version: subject.version.clone(),
        local: subject.usage().is_some(),
    }
}

fn conditions(options: &Options) -> Conditions {
    Conditions {
        rounds: options.rounds,
        clients: options.clients,
        threads: options.threads.max(1),
        requests: options.duration.is_none().then_some(options.requests),
        seconds: options.duration.map(|duration| duration.as_secs_f64()),
        warmup_seconds: options.warmup.as_secs_f64(),
        rate: options.rate,
        keep_alive: options.keep_alive,
        keyspace: options.keyspace,
        keys: format!("{:?}", options.keys).to_lowercase(),
        sizes: format!("{:?}", options.sizes).to_lowercase(),
        server_cpus: options.server_cpus.clone(),
        load_cpus: options.load_cpus.clone(),
    }
}

/// Runs all rounds of a case. Returns the samples by server, then by round.
fn rounds(
    options: &Options,
    case: &Case,
    subjects: &[Subject],
    notify: &mut dyn FnMut(&str),
) -> Result<Vec<Vec<Sample>>, String> {
    let mut samples: Vec<Vec<Sample>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for turn in 0..subjects.len() {
            // Rotate the order, so that no server always runs first.
            let i = (turn + round) % subjects.len();
            let subject = &subjects[i];
            let label = format!(
                "{} [{}/{}] {}",
                case.workload.title,
                round + 1,
                options.rounds,
                subject.name
            );
            samples[i].push(sample(options, case, subject, round, &label, notify)?);
        }
    }
    Ok(samples)
}

fn sample(
    options: &Options,
    case: &Case,
    subject: &Subject,
    round: usize,
    label: &str,
    notify: &mut dyn FnMut(&str),
) -> Result<Sample, String> {
    let mut plan = options.plan(case, subject.target.clone());
    // All servers of a round get the same requests. The next round has different ones.
    plan.seed = plan.seed.wrapping_add(round as u64);
    let mut observer = Observer { subject, label, notify, before: None, after: None };
    let outcome =
        run(&plan, &mut observer).map_err(|error| format!("{}: {error}", subject.name))?;
    if let Some(mismatch) = &outcome.first_mismatch {
        return Err(format!("{}: {mismatch}", subject.name));
    }
    let operations = outcome.operations.max(1) as f64;
    let (server, noise) = match (observer.before.take(), observer.after.take()) {
        (Some(before), Some(after)) => {
            (after.server_use(&before, operations), after.moment.noise_since(&before.moment))
        }
        _ => (None, Noise::default()),
    };
    let summary = outcome.summary();
    Ok(Sample {
        operations: outcome.operations,
        rate: summary.rate,
        latency_ms: summary.latency_ms,
        server,
        syscalls: None,
        errors: outcome.errors.count,
        generator_us: summary.generator_us,
        generator_limit: outcome.generator.limit,
        noise,
    })
}

/// Records the state of the server and the machine before and after a run, and forwards progress.
struct Observer<'a> {
    subject: &'a Subject,
    label: &'a str,
    notify: &'a mut dyn FnMut(&str),
    before: Option<Look>,
    after: Option<Look>,
}

impl Watch for Observer<'_> {
    fn begins(&mut self) {
        self.before = Some(Look::now(self.subject));
    }

    fn progress(&mut self, progress: &Progress) {
        (self.notify)(&report::progress(self.label, progress));
    }

    fn ends(&mut self) {
        self.after = Some(Look::now(self.subject));
    }
}

/// The recorded state at one moment.
struct Look {
    usage: Option<Usage>,
    moment: Moment,
}

impl Look {
    fn now(subject: &Subject) -> Look {
        let usage = subject.usage();
        Look { usage, moment: Moment::now(usage.map_or(0, |usage| usage.cpu_ns)) }
    }

    fn server_use(&self, before: &Look, operations: f64) -> Option<ServerUse> {
        let (now, before) = (self.usage?, before.usage?);
        let us = |now: u64, before: u64| now.saturating_sub(before) as f64 / 1000.0 / operations;
        let count = |now: u64, before: u64| now.saturating_sub(before) as f64 / operations;
        Some(ServerUse {
            cpu_us: us(now.cpu_ns, before.cpu_ns),
            user_us: us(now.user_ns, before.user_ns),
            system_us: us(now.system_ns, before.system_ns),
            voluntary_switches: count(now.voluntary_switches, before.voluntary_switches),
            involuntary_switches: count(now.involuntary_switches, before.involuntary_switches),
            rss_mib: now.rss_bytes as f64 / MIB,
        })
    }
}

/// Runs one round per server in which its system calls are counted. Counting slows the server down, so these rounds
/// provide no other results.
fn syscall_rounds(
    options: &Options,
    case: &Case,
    subjects: &[Subject],
    comparison: &mut Comparison,
    notify: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let Some(last) = comparison.cases.pop() else { return Ok(()) };
    let mut samples = last.samples;
    for (subject, samples) in subjects.iter().zip(&mut samples) {
        notify(&format!("{}: counting system calls of {}", last.title, subject.name));
        let Some(pid) = subject.pid else { continue };
        let counted = SyscallCount::start(pid).and_then(|count| {
            let plan = options.plan(case, subject.target.clone());
            let outcome = run(&plan, &mut Unwatched).map_err(|error| error.to_string())?;
            Ok(count.finish()? as f64 / outcome.operations.max(1) as f64)
        });
        match counted {
            Ok(per_request) => {
                samples.iter_mut().for_each(|sample| sample.syscalls = Some(per_request));
            }
            Err(error) => {
                let warning = format!("no system calls were counted: {error}");
                if !comparison.warnings.contains(&warning) {
                    comparison.warnings.push(warning);
                }
            }
        }
    }
    let case = CaseResult::new(last.title, last.pipeline, samples, comparison.baseline);
    comparison.cases.push(case);
    Ok(())
}

/// Collects the caveats for readers of the numbers.
fn judge(comparison: &mut Comparison) {
    let mut warnings = Vec::new();
    for server in comparison.servers.iter().filter(|server| !server.local) {
        warnings.push(format!(
            "the process of {} is not visible from here: its CPU time, memory and context switches \
             are not measured",
            server.name
        ));
    }
    if comparison.conditions.rounds < ROUNDS_FOR_INTERVALS {
        warnings.push(format!(
            "with fewer than {ROUNDS_FOR_INTERVALS} rounds there are no confidence intervals"
        ));
    }
    let mut noise = Noise::default();
    for case in &comparison.cases {
        for (server, samples) in comparison.servers.iter().zip(&case.samples) {
            if let Some(limit) = samples.iter().find_map(|sample| sample.generator_limit.as_ref()) {
                warnings.push(format!(
                    "{}, {}: the generator was the limit: {limit}",
                    case.heading(),
                    server.name
                ));
            }
            let errors: u64 = samples.iter().map(|sample| sample.errors).sum();
            if errors > 0 {
                warnings.push(format!(
                    "{}, {}: {errors} error replies",
                    case.heading(),
                    server.name
                ));
            }
            // If a server's process is not visible but runs on this machine, its work looks like noise.
            for sample in samples.iter().filter(|_| server.local) {
                noise = noise.max(sample.noise);
            }
        }
    }
    warnings.extend(noise.description().map(|text| format!("in the worst round {text}")));
    comparison.warnings.extend(warnings);
}
