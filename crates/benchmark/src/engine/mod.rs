//! Executes runs: threads send the workload and measure, and a controller starts and stops them.
//!
//! | file | contents |
//! |---|---|
//! | `plan` | the requested run |
//! | `worker`, `receiving`, `lane` | a thread and its loop; received data; one of its connections |
//! | `socket`, `schedule` | connecting; when requests of an open loop are due |
//! | `turns` | which lane sends next if each request has its own connection |
//! | `shared` | phases, budget and counters that threads share |

mod lane;
pub mod plan;
mod receiving;
mod schedule;
mod shared;
mod socket;
mod turns;
mod worker;

pub(crate) use worker::Share;

use crate::clock::{now_ns, process_cpu_ns};
use crate::error::RunError;
use crate::outcome::Outcome;
use plan::{End, Pace, Plan, Source};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use shared::{Message, NEVER, Shared};
use socket::{Spreading, spreading};
use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use turns::ACTIVE_MAX;
use worker::Worker;

/// Open files of the process in addition to those of a run.
const DESCRIPTORS_RESERVED: usize = 64;
/// The interval between progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

const SPREADING_REFUSED: &str = "the server rejects all loopback addresses except 127.0.0.1 \
     (protected mode), so all connections came from there, and ports may have been scarce";

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Open connections.
    pub connected: u64,
    /// Connections that wait for replies.
    pub waiting: u64,
    /// Replies since the measurement began.
    pub operations: u64,
    /// Seconds since the measurement began.
    pub seconds: f64,
    /// Requests per second since the last progress.
    pub rate_now: f64,
    /// Mean latency of the requests since the last progress, in ms.
    pub latency_now_ms: f64,
    /// Mean latency since the measurement began, in ms.
    pub latency_ms: f64,
}

/// Observes a run; called on the thread that called [`run`].
pub trait Watch {
    /// Called right before the measurement begins.
    fn begins(&mut self) {}

    /// Called a few times per second.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// Called when all replies have arrived.
    fn ends(&mut self) {}
}

/// Ignores the events of a run.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Executes a plan: connects, warms up, measures, and waits for the last reply. With an idle plan, it returns only if
/// it fails.
///
/// # Errors
/// The first error that occurred; see [`RunError`].
pub fn run(plan: &Plan, watch: &mut dyn Watch) -> Result<Outcome, RunError> {
    let plan = plan.clone().bounded();
    if let Source::Library(load) = plan.source {
        return crate::library::run(&plan, load, watch);
    }
    allow_descriptors(plan.clients + 4 * plan.threads + DESCRIPTORS_RESERVED)?;
    let spreading = match plan.keep_alive {
        true => Spreading::Elsewhere,
        false => match &plan.cluster {
            Some(cluster) => {
                let nodes = cluster.nodes().iter();
                nodes.map(|node| spreading(&node.target.address)).max().unwrap_or_default()
            }
            None => spreading(&plan.target.address),
        },
    };
    let shared = Shared::new(&plan, spreading == Spreading::Possible)?;
    let (reports, inbox) = channel();
    std::thread::scope(|scope| {
        for index in 0..plan.threads {
            let (plan, shared, reports) = (&plan, &shared, reports.clone());
            scope.spawn(move || {
                let share = prepare_thread(plan, index)
                    .and_then(|()| Worker::new(plan, shared, index))
                    .and_then(|worker| worker.run(&reports));
                // The receiver is gone if another thread has failed.
                let _ = reports.send(Message::Returned(share));
            });
        }
        drop(reports);
        let outcome = Controller { plan: &plan, shared: &shared, inbox, watch }.run();
        shared.abort();
        outcome.map(|mut outcome| {
            if !plan.keep_alive && plan.clients > ACTIVE_MAX {
                outcome.notes.push(format!(
                    "at most {ACTIVE_MAX} of the {} clients wait for a reply at a time, and the others hold \
                     their connections: more would overrun the server's listen queue",
                    plan.clients
                ));
            }
            if spreading == Spreading::Refused {
                outcome.notes.push(SPREADING_REFUSED.to_owned());
            }
            outcome
        })
    })
}

/// Raises the limit on open files if it is too low for a run and can be raised.
pub(crate) fn allow_descriptors(wanted: usize) -> Result<(), RunError> {
    let wanted = wanted as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(RunError::Plan(format!(
            "{wanted} open files are needed and {} allowed: raise the hard limit (`ulimit -n`)",
            limit.maximum.unwrap_or_default()
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .map_err(RunError::machine("raising the limit of open files"))
}

fn prepare_thread(plan: &Plan, index: usize) -> Result<(), RunError> {
    if let Pace::Open { .. } = plan.pace {
        // The kernel wakes threads up to 50 µs late to save power, unless this is turned off.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(RunError::machine("timer slack"))?;
    }
    if let Some(&cpu) = plan.cpus.get(index % plan.cpus.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(RunError::machine("pinning a thread"))?;
    }
    Ok(())
}

struct Controller<'a, 'w> {
    plan: &'a Plan,
    shared: &'a Shared,
    inbox: Receiver<Message>,
    watch: &'w mut dyn Watch,
}

/// The values from which the last progress was computed.
#[derive(Clone, Copy, Default)]
struct Seen {
    ns: u64,
    operations: u64,
    latency_us: u64,
}

impl Controller<'_, '_> {
    fn run(mut self) -> Result<Outcome, RunError> {
        self.wait_for_all_connections()?;
        let shared = self.shared;
        let mut shares: Vec<Share> = Vec::new();
        let mut seen = Seen::default();
        if self.plan.pace == Pace::Idle {
            return Err(self
                .collect(NEVER, &mut shares, &mut seen)
                .err()
                .unwrap_or(RunError::Closed));
        }
        if self.plan.warmup.is_zero() {
            self.watch.begins();
        }
        let warmup_ns = duration_ns(self.plan.warmup);
        let measure_ns = now_ns() + warmup_ns;
        shared.measure_ns.store(measure_ns, Relaxed);
        if let End::After(time) = self.plan.end {
            shared.end_ns.store(measure_ns + duration_ns(time), Relaxed);
        }
        let mut cpu_ns = process_cpu_ns();
        // Store this last, so that a thread that sees it also sees the other times.
        shared.go_ns.store(measure_ns - warmup_ns, Release);
        shared.wake_all();
        seen.ns = measure_ns;
        if warmup_ns > 0 {
            self.collect(measure_ns, &mut shares, &mut seen)?;
            self.watch.begins();
            cpu_ns = process_cpu_ns();
        }
        self.collect(NEVER, &mut shares, &mut seen)?;
        let cpu_ns = process_cpu_ns() - cpu_ns;
        self.watch.ends();
        self.outcome(&shares, measure_ns, cpu_ns)
    }

    fn wait_for_all_connections(&mut self) -> Result<(), RunError> {
        let mut ready = 0;
        while ready < self.plan.threads {
            match self.inbox.recv_timeout(PROGRESS_EVERY) {
                Ok(Message::Ready) => ready += 1,
                Ok(Message::Returned(Err(error))) => return Err(error),
                Ok(Message::Returned(Ok(_))) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Closed);
                }
                Err(RecvTimeoutError::Timeout) => self.report_progress(&mut Seen::default(), 0),
            }
        }
        Ok(())
    }

    /// Collects the results of workers and reports progress, until all have returned or the time is over.
    fn collect(
        &mut self,
        until_ns: u64,
        shares: &mut Vec<Share>,
        seen: &mut Seen,
    ) -> Result<(), RunError> {
        let begun = seen.ns;
        while shares.len() < self.plan.threads {
            let left = until_ns.saturating_sub(now_ns());
            if left == 0 {
                return Ok(());
            }
            match self.inbox.recv_timeout(PROGRESS_EVERY.min(Duration::from_nanos(left))) {
                Ok(Message::Returned(share)) => shares.push(*share?),
                Ok(Message::Ready) => {}
                Err(RecvTimeoutError::Timeout) => self.report_progress(seen, begun),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn report_progress(&mut self, seen: &mut Seen, begun: u64) {
        let now = Seen {
            ns: now_ns(),
            operations: self.shared.sum(|tally| &tally.operations),
            latency_us: self.shared.sum(|tally| &tally.latency_us),
        };
        let seconds = |from: u64| now.ns.saturating_sub(from) as f64 / 1e9;
        let new = now.operations - seen.operations;
        let mean_ms = |us: u64, count: u64| us as f64 / 1000.0 / (count.max(1)) as f64;
        self.watch.progress(&Progress {
            connected: self.shared.sum(|tally| &tally.connected),
            waiting: self.shared.sum(|tally| &tally.waiting),
            operations: now.operations,
            seconds: seconds(begun),
            rate_now: new as f64 / seconds(seen.ns).max(1e-9),
            latency_now_ms: mean_ms(now.latency_us - seen.latency_us, new),
            latency_ms: mean_ms(now.latency_us, now.operations),
        });
        *seen = now;
    }

    fn outcome(&self, shares: &[Share], begun: u64, cpu_ns: u64) -> Result<Outcome, RunError> {
        let mut outcome = Outcome::new(self.plan)?;
        let last = shares.iter().map(|share| share.last_ns).max().unwrap_or(0);
        outcome.seconds = last.saturating_sub(begun) as f64 / 1e9;
        outcome.generator.cpu_seconds = cpu_ns as f64 / 1e9;
        for share in shares {
            outcome.add(share);
        }
        outcome.judge_generator();
        Ok(outcome)
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
