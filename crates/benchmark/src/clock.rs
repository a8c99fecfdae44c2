//! Time and CPU time, in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;

/// Nanoseconds of a clock that never goes back.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// CPU time of this process so far, all threads, user and system.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of the calling thread so far, user and system.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// The time for which the calling thread has waited for a CPU that others used; 0 if the kernel
/// does not report it.
#[must_use]
pub fn thread_delay_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A duration as the kernel takes it.
#[must_use]
pub fn timespec(ns: u64) -> Timespec {
    #[expect(clippy::cast_possible_wrap, reason = "seconds of 2^64 ns fit many times")]
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[expect(clippy::cast_sign_loss, reason = "these clocks begin at 0")]
fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
