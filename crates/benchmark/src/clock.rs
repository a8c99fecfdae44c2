//! Time and CPU time in nanoseconds, and the date.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// The time that the calling thread has waited for a CPU while runnable; 0 if the kernel does not report it.
#[must_use]
pub fn thread_delay_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The date in UTC, for example 2026-01-31.
#[must_use]
pub fn utc_date(at: SystemTime) -> String {
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut day = since_1970.as_secs() / 86_400;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    loop {
        let days = if is_leap(year) { 366 } else { 365 };
        if day < days {
            break;
        }
        day -= days;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day + 1)
}

/// A duration in the form that the kernel uses.
#[must_use]
pub fn timespec(ns: u64) -> Timespec {
    #[expect(clippy::cast_possible_wrap, reason = "seconds of 2^64 ns fit many times")]
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[expect(clippy::cast_sign_loss, reason = "these clocks begin at 0")]
fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The output of `date -u +%F -d @N`.
        for (second, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_798_761_599, "2026-12-31"),
            (1_798_761_600, "2027-01-01"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(utc_date(UNIX_EPOCH + Duration::from_secs(second)), text);
        }
    }
}
