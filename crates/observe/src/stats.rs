//! The counters of a worker. Only the worker writes them, any thread may read them, and no access
//! needs a lookup.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A number that one thread changes and others may read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }
    pub fn raise(&self, n: u64) {
        if n > self.get() {
            self.set(n);
        }
    }
}

/// Number of steps between two powers of two in a [`Histogram`]: each about 3 % wide.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Durations of up to 2^40 ns (18 minutes) have separate buckets.
const EXPONENTS: usize = 41;
/// Number of buckets of a [`Histogram`].
pub const BUCKETS: usize = EXPONENTS * STEPS;

/// Durations in ns, in buckets of 3 % width. The buckets are allocated with the first entry.
#[derive(Debug, Default)]
pub struct Histogram(OnceLock<Box<[Count]>>);

impl Histogram {
    #[inline]
    pub fn record(&self, ns: u64) {
        let buckets = self.0.get_or_init(|| (0..BUCKETS).map(|_| Count::default()).collect());
        buckets[bucket(ns)].add(1);
    }

    /// Calls `visit` with the upper bound in ns and the count of each non-empty bucket.
    pub fn for_each(&self, mut visit: impl FnMut(u64, u64)) {
        for (at, count) in self.0.get().into_iter().flat_map(|buckets| buckets.iter().enumerate()) {
            if count.get() != 0 {
                visit(upper_bound(at), count.get());
            }
        }
    }

    /// Adds the counts to `sums`, bucket by bucket. Returns false if there are none.
    pub fn add_to(&self, sums: &mut [u64; BUCKETS]) -> bool {
        let Some(buckets) = self.0.get() else { return false };
        for (sum, count) in sums.iter_mut().zip(buckets) {
            *sum += count.get();
        }
        true
    }

    pub fn reset(&self) {
        for count in self.0.get().into_iter().flatten() {
            count.set(0);
        }
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min((1 << EXPONENTS) - 1);
    if ns < STEPS as u64 {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros();
    let step = (ns >> (exponent - STEP_BITS)) as usize & (STEPS - 1);
    ((exponent - STEP_BITS + 1) as usize) * STEPS + step
}

/// Returns the longest duration in ns that a bucket counts.
pub fn upper_bound(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let exponent = (bucket / STEPS) as u32 + STEP_BITS - 1;
    let step = (bucket % STEPS) as u64;
    ((STEPS as u64 + step + 1) << (exponent - STEP_BITS)) - 1
}

/// One worker's metrics for one command.
#[derive(Debug, Default)]
pub struct CommandStats {
    pub calls: Count,
    /// Time in nanoseconds.
    pub time_ns: Count,
    /// Rejected before execution.
    pub rejected: Count,
    /// Failed during execution.
    pub failed: Count,
    pub latency: Histogram,
}

/// One worker's metrics.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// By row id.
    pub commands: Box<[CommandStats]>,
    pub commands_processed: Count,
    /// Changes to the keyspace.
    pub changes: Count,
    pub connections_received: Count,
    pub error_replies: Count,
    pub bytes_in: Count,
    pub bytes_out: Count,
    /// Bytes that are queued for clients and not yet taken by the kernel.
    pub output_bytes: AtomicI64,
    pub reads: Count,
    pub writes: Count,
    /// Time in ns spent in each phase of the rounds.
    pub accept_ns: Count,
    pub read_ns: Count,
    pub parse_ns: Count,
    pub execute_ns: Count,
    pub write_ns: Count,
    pub background_ns: Count,
    pub wait_ns: Count,
    /// Number of system calls of each kind.
    pub wait_calls: Count,
    pub sleep_calls: Count,
    pub ctl_calls: Count,
    pub accept_calls: Count,
    pub receive_calls: Count,
    pub send_calls: Count,
    pub close_calls: Count,
    pub rounds: Count,
    /// Time in ns between two waits, which is one round: the total, and the longest.
    pub round_ns: Count,
    pub round_ns_max: Count,
    /// Maximum number of commands in one round.
    pub round_commands_max: Count,
    pub batches: Count,
    pub batched_requests: Count,
    pub batch_max: Count,
    /// Commands that were deferred because another worker held a slot.
    pub slot_conflicts: Count,
    /// Requests for which all other workers were stopped, because the requests could not get their
    /// slots for a long time.
    pub starved_requests: Count,
    /// Connections that were stalled because their client did not read.
    pub output_stalls: Count,
    pub expire_ns: Count,
    pub eviction_ns: Count,
    /// The largest input and output buffers of the last seconds, in bytes.
    pub recent_input: RecentMax,
    pub recent_output: RecentMax,
}

/// Number of seconds that [`RecentMax`] covers.
const RECENT_SECONDS: usize = 8;

/// The highest value of the last eight seconds: one maximum per second. Only one thread records
/// values.
#[derive(Debug, Default)]
pub struct RecentMax {
    /// Indexed by the second, modulo the number of seconds.
    maxima: [Count; RECENT_SECONDS],
    /// The second of the latest maximum.
    second: Count,
}

impl RecentMax {
    /// Records a value at `second`.
    pub fn note(&self, second: u64, value: u64) {
        let last = self.second.get();
        if second > last {
            for passed in (last + 1..=second).rev().take(RECENT_SECONDS) {
                self.maxima[passed as usize % RECENT_SECONDS].set(0);
            }
            self.second.set(second);
        }
        self.maxima[second as usize % RECENT_SECONDS].raise(value);
    }

    /// Returns the highest value of the seconds up to `second`.
    pub fn get(&self, second: u64) -> u64 {
        let last = self.second.get();
        let aged = second.saturating_sub(last).min(RECENT_SECONDS as u64);
        (0..RECENT_SECONDS as u64 - aged)
            .map(|back| self.maxima[last.wrapping_sub(back) as usize % RECENT_SECONDS].get())
            .max()
            .unwrap_or(0)
    }
}

impl WorkerStats {
    /// Creates the metrics for commands with ids below `commands`.
    pub fn new(commands: usize) -> WorkerStats {
        WorkerStats {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            ..WorkerStats::default()
        }
    }

    /// Resets the counters. The owner must not be counting at the same time. Gauges
    /// (`output_bytes`, the recent maxima) are kept.
    pub fn reset(&self) {
        for command in &self.commands {
            command.calls.set(0);
            command.time_ns.set(0);
            command.rejected.set(0);
            command.failed.set(0);
            command.latency.reset();
        }
        for count in self.counts() {
            count.set(0);
        }
    }

    /// Returns all counters that can be reset.
    fn counts(&self) -> [&Count; 32] {
        [
            &self.commands_processed,
            &self.connections_received,
            &self.error_replies,
            &self.bytes_in,
            &self.bytes_out,
            &self.reads,
            &self.writes,
            &self.accept_ns,
            &self.read_ns,
            &self.parse_ns,
            &self.execute_ns,
            &self.write_ns,
            &self.background_ns,
            &self.wait_ns,
            &self.wait_calls,
            &self.sleep_calls,
            &self.ctl_calls,
            &self.accept_calls,
            &self.receive_calls,
            &self.send_calls,
            &self.close_calls,
            &self.rounds,
            &self.round_ns,
            &self.round_ns_max,
            &self.round_commands_max,
            &self.batches,
            &self.batched_requests,
            &self.batch_max,
            &self.slot_conflicts,
            &self.output_stalls,
            &self.expire_ns,
            &self.eviction_ns,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recent_maximum_is_forgotten_after_eight_seconds() {
        let recent = RecentMax::default();
        recent.note(1000, 7);
        recent.note(1001, 3);
        assert_eq!((recent.get(1001), recent.get(1007), recent.get(1008)), (7, 7, 3));
        assert_eq!(recent.get(1009), 0);
        recent.note(1010, 1);
        assert_eq!((recent.get(1010), recent.get(1017), recent.get(5000)), (1, 1, 0));
    }

    #[test]
    fn a_duration_is_at_most_a_step_below_the_bound_of_its_bucket() {
        for ns in (0..2000).chain([4095, 4096, 1 << 20, (1 << 33) + 12345, u64::MAX >> 20]) {
            let bound = upper_bound(bucket(ns));
            let clamped = ns.min((1 << EXPONENTS) - 1);
            assert!(bound >= clamped, "{ns} above {bound}");
            assert!(bound - clamped <= clamped / STEPS as u64 + 1, "{ns} far below {bound}");
        }
    }
}
