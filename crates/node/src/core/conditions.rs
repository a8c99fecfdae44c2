//! Server-wide conditions that commands check.
//!
//! The conditions are bits of one number, so that a command reads all of them with one load. If no condition is in
//! force, the command gate skips its checks.

use super::pause::{Hold, Pause, Paused};
use crate::monitor::Monitors;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server-wide condition. The value is its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Condition {
    /// `maxmemory` is set.
    MemoryLimit = 1,
    /// CLIENT PAUSE is in force, or the server holds writes back.
    Pause = 1 << 1,
    /// A client runs MONITOR.
    Monitor = 1 << 2,
    /// A worker has too many undelivered published messages.
    Congestion = 1 << 3,
    /// A slow script is running.
    Busy = 1 << 4,
    /// The last snapshot failed, or the append-only file cannot be written.
    DiskError = 1 << 5,
    /// The dataset is being loaded.
    Loading = 1 << 6,
    /// Too much data waits to be written to the append-only file.
    LogCongestion = 1 << 7,
    /// This server is a replica.
    Replica = 1 << 8,
    /// There are fewer replicas than writes require (`min-replicas-to-write`).
    FewReplicas = 1 << 9,
    /// This server is a replica that rejects reads of its data because its link to the primary is down.
    Stale = 1 << 10,
    /// This server is a replica, and at least one client can be redirected to its primary.
    Redirect = 1 << 11,
    /// Another dataset of the same history is being loaded and will replace the current one, which remains readable
    /// until then.
    AsyncLoading = 1 << 12,
}

/// The set of conditions in force at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionSet(u32);

impl ConditionSet {
    const fn of<const N: usize>(conditions: [Condition; N]) -> ConditionSet {
        let mut bits = 0;
        let mut at = 0;
        while at < N {
            bits |= conditions[at] as u32;
            at += 1;
        }
        ConditionSet(bits)
    }

    #[inline]
    pub fn has(self, condition: Condition) -> bool {
        self.0 & condition as u32 != 0
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn intersects(self, others: ConditionSet) -> bool {
        self.0 & others.0 != 0
    }

    /// Reports whether all commands must be checked. If not, only commands that may write are checked, so that reads
    /// are not slower on a replica or if replicas are missing.
    #[inline]
    pub fn concern_reads(self) -> bool {
        const BEFORE_WRITES: ConditionSet =
            ConditionSet::of([Condition::Replica, Condition::FewReplicas]);
        self.0 & !BEFORE_WRITES.0 != 0
    }
}

/// The conditions in force. This struct also contains the end of a pause and the number of sessions that run MONITOR,
/// because these change together with their conditions.
#[derive(Debug)]
pub struct Conditions {
    bits: AtomicU32,
    pause: Pause,
    monitors: Monitors,
}

impl Conditions {
    pub(super) fn new(workers: usize) -> Conditions {
        Conditions {
            bits: AtomicU32::new(0),
            pause: Pause::default(),
            monitors: Monitors::new(workers),
        }
    }

    /// The conditions in force.
    #[inline]
    pub fn now(&self) -> ConditionSet {
        ConditionSet(self.bits.load(Ordering::Relaxed))
    }

    #[inline]
    pub fn has(&self, condition: Condition) -> bool {
        self.now().has(condition)
    }

    /// Notes that a condition begins or ends.
    pub fn set(&self, condition: Condition, on: bool) {
        if on {
            self.bits.fetch_or(condition as u32, Ordering::SeqCst);
        } else {
            self.bits.fetch_and(!(condition as u32), Ordering::SeqCst);
        }
    }

    /// Sets a condition that depends on values that other threads change: `holds` computes it.
    pub fn settle(&self, condition: Condition, holds: impl Fn() -> bool) {
        let mut on = holds();
        self.set(condition, on);
        // Another thread may have changed a value after this thread read it.
        while holds() != on {
            on = !on;
            self.set(condition, on);
        }
    }

    /// Notes that the dataset is loaded, whether or not the previous one was served during the load.
    pub fn end_loading(&self) {
        let both = ConditionSet::of([Condition::Loading, Condition::AsyncLoading]);
        self.bits.fetch_and(!both.0, Ordering::SeqCst);
    }

    /// Reports whether the dataset is being loaded. During that time, no client reads or changes a key, so no change
    /// could be lost.
    pub fn is_loading(&self) -> bool {
        self.has(Condition::Loading)
    }

    /// Reports whether another dataset is being loaded while the current one is served.
    pub fn is_loading_async(&self) -> bool {
        self.has(Condition::AsyncLoading)
    }

    /// Reports whether this server is a replica.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.has(Condition::Replica)
    }

    /// Reports whether a slow script is running, so quiescence is not possible.
    pub fn is_busy(&self) -> bool {
        self.has(Condition::Busy)
    }

    /// Reports whether expiry and eviction must leave the data unchanged, for reasons other than a
    /// pause.
    pub fn is_data_protected(&self) -> bool {
        self.now().intersects(ConditionSet::of([Condition::Busy, Condition::Loading]))
    }

    /// CLIENT PAUSE: sets which commands are paused, and until when.
    pub fn begin_pause(&self, what: Paused, until_ms: u64, now_ms: u64) {
        self.pause.begin(what, until_ms, now_ms, || self.set(Condition::Pause, true));
    }

    /// Ends the pause that clients requested.
    pub(super) fn end_pause(&self) {
        self.pause.end(|| self.set(Condition::Pause, false));
    }

    /// Holds back all writes, and also reads if the purpose is [`Hold::Switch`], until
    /// [`super::shared::Shared::release_writes`] is called for the same purpose.
    pub fn hold_writes(&self, purpose: Hold) {
        self.pause.hold(purpose, || self.set(Condition::Pause, true));
    }

    /// True while commands are held back for this purpose.
    pub fn is_held(&self, purpose: Hold) -> bool {
        self.has(Condition::Pause) && self.pause.is_held(purpose)
    }

    /// Ends the hold for this purpose.
    pub(super) fn release_writes(&self, purpose: Hold) {
        self.pause.release(purpose);
    }

    /// The commands that are paused at `now_ms`, and until when. If the pause is over, clears its condition.
    pub fn pause_in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        self.pause.in_force_or(now_ms, || self.set(Condition::Pause, false))
    }

    /// Counts a session of this worker that begins to run MONITOR.
    pub fn add_monitor(&self, worker: usize) {
        self.monitors.add(worker, || self.set(Condition::Monitor, true));
    }

    /// Counts a session of this worker that no longer runs MONITOR.
    pub fn remove_monitor(&self, worker: usize) {
        self.monitors.remove(worker, || self.set(Condition::Monitor, false));
    }

    /// Reports whether sessions of this worker run MONITOR.
    pub fn has_monitors(&self, worker: usize) -> bool {
        self.monitors.at(worker)
    }

    /// When the pause in force at `now_ms` ends, if there is one.
    pub fn pause_end_ms(&self, now_ms: u64) -> Option<u64> {
        self.pause.in_force(now_ms).map(|(_, until)| until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_begin_and_end_independently() {
        let conditions = Conditions::new(2);
        assert!(conditions.now().is_empty());
        conditions.set(Condition::Replica, true);
        assert!(!conditions.now().concern_reads() && !conditions.now().is_empty());
        conditions.set(Condition::Loading, true);
        conditions.set(Condition::AsyncLoading, true);
        assert!(conditions.now().concern_reads() && conditions.is_data_protected());
        conditions.end_loading();
        assert!(!conditions.is_loading() && !conditions.is_loading_async());
        assert!(conditions.is_replica() && !conditions.is_data_protected());
        conditions.set(Condition::Replica, false);
        assert!(conditions.now().is_empty());
    }

    #[test]
    fn a_condition_settles_at_the_last_value() {
        let conditions = Conditions::new(2);
        let values = std::cell::RefCell::new(vec![false, false, true]);
        let holds = || {
            let mut values = values.borrow_mut();
            if values.len() > 1 { values.pop() } else { values.first().copied() }.unwrap()
        };
        conditions.settle(Condition::Stale, holds);
        assert!(!conditions.has(Condition::Stale));
    }

    #[test]
    fn the_last_session_that_ends_monitor_ends_the_condition() {
        let conditions = Conditions::new(2);
        conditions.add_monitor(0);
        conditions.add_monitor(1);
        conditions.remove_monitor(0);
        assert!(conditions.has(Condition::Monitor) && !conditions.has_monitors(0));
        conditions.remove_monitor(1);
        assert!(conditions.now().is_empty());
    }

    #[test]
    fn a_pause_is_a_condition_until_it_is_over() {
        let conditions = Conditions::new(2);
        conditions.begin_pause(Paused::All, 2000, 1000);
        assert!(conditions.has(Condition::Pause));
        assert_eq!(conditions.pause_end_ms(1999), Some(2000));
        assert_eq!(conditions.pause_in_force(2000), None);
        assert!(!conditions.has(Condition::Pause));
    }
}
