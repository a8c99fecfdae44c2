//! Limits the CPU time of the threads that write snapshots, so that the workers lose little of theirs.
//!
//! If the workers leave a CPU unused, the thread that writes uses it. Otherwise it writes for a short time and then
//! rests, so that it uses only what the workers leave, but at least [`SHARE_MIN`] of a CPU, and more if commands emit
//! entries faster than it writes them. If the queue might become full, which ends the snapshot, it does not rest.
//!
//! The thread rests between entries, so it writes a value of millions of elements without a rest.

use super::snapshot::delay;
use crate::core::shared::Shared;
use brisk_config::Config;
use brisk_engine::keyspace::Snapshot;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The minimum share of a CPU for the thread. It doubles until the entries that wait stop the walk, and increases by as
/// much again for each further such amount.
const SHARE_MIN: f64 = 0.05;
/// The maximum share. The thread rests even if CPUs are unused: a thread that wakes on its CPU would otherwise wait for
/// the end of its time slice, which takes milliseconds.
const SHARE_MAX: f64 = 0.7;
/// How often the workers' use of the CPUs is measured. Their working time is wall time, so it is an upper bound of
/// their CPU time.
const MEASURED_EVERY: Duration = Duration::from_millis(10);
/// The limits of a rest: the system wakes threads some tens of microseconds late, and the workers' use may change
/// during a long rest.
const REST_MIN: Duration = Duration::from_micros(100);
const REST_MAX: Duration = Duration::from_millis(5);

/// The pace of the thread that writes a snapshot.
pub(crate) struct WriterPace<'p> {
    shared: &'p Shared,
    config: &'p Config,
    snapshot: &'p Snapshot,
    cpus: f64,
    /// When the workers' use of the CPUs was last measured, and the sum of their working time until then.
    measured: Instant,
    worked_ns: u64,
    /// The number of CPUs that the workers do not use.
    unused: f64,
    /// The thread's CPU time until its last rest.
    rested_at: Duration,
}

impl<'p> WriterPace<'p> {
    /// Begins to measure. Called on the thread that writes.
    pub(crate) fn new(shared: &'p Shared, config: &'p Config, snapshot: &'p Snapshot) -> Self {
        WriterPace {
            shared,
            config,
            snapshot,
            cpus: std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64),
            measured: Instant::now(),
            worked_ns: worked_ns(shared),
            unused: 0.0,
            rested_at: cpu_time(),
        }
    }

    /// Called when the thread has written some keys. Rests if it must.
    pub(crate) fn after(&mut self, keys: u64) {
        let is_over = || self.snapshot.is_over();
        delay(self.config, keys, is_over);
        let elapsed = self.measured.elapsed();
        if elapsed >= MEASURED_EVERY {
            let worked = worked_ns(self.shared);
            let used = worked.saturating_sub(self.worked_ns) as f64 / elapsed.as_nanos() as f64;
            self.unused = self.cpus - used;
            (self.measured, self.worked_ns) = (Instant::now(), worked);
        }
        let now = cpu_time();
        if self.snapshot.is_writer_behind() {
            self.rested_at = now;
            return;
        }
        let share = share(self.unused, self.snapshot.waiting());
        let rest = now.saturating_sub(self.rested_at).mul_f64(1.0 / share - 1.0);
        if rest >= REST_MIN {
            std::thread::park_timeout(rest.min(REST_MAX));
            self.rested_at = now;
        }
    }
}

/// The share of a CPU for the thread if the workers leave this many CPUs unused. `waiting` is [`Snapshot::waiting`].
fn share(unused: f64, waiting: f64) -> f64 {
    let needed = SHARE_MIN * (1.0 + waiting);
    unused.max(needed).min(SHARE_MAX)
}

fn worked_ns(shared: &Shared) -> u64 {
    shared.observe.stats.iter().map(|stats| stats.round_ns.get()).sum()
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    // The clock's values are not negative.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_uses_what_the_workers_leave() {
        let is = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(is(share(0.5, 0.0), 0.5));
        assert!(is(share(3.0, 0.0), SHARE_MAX));
        // Workers measure their time independently of each other, so the sum may exceed the number of CPUs.
        assert!(is(share(-0.2, 0.0), SHARE_MIN));
        assert!(is(share(0.0, 3.0), 4.0 * SHARE_MIN));
        assert!(is(share(0.0, 100.0), SHARE_MAX));
    }
}
