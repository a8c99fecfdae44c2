//! Pauses: for `-i`, between latency samples, and while cluster nodes learn of one another.

use rustix::event::{Timespec, poll};
use std::time::{Duration, Instant};

/// Waits for this time.
pub(crate) fn pause(time: Duration) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match poll(&mut [], Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// A duration in the form that system calls use.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
