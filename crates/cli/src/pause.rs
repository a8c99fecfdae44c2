//! Letting time pass, on the user's behalf: `-i`, samples of latency, nodes that have to hear of one another.

use rustix::event::{Timespec, poll};
use std::time::{Duration, Instant};

/// Waits for this long.
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

/// A span of time in the form in which the system waits for it.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
