//! Waking a reactor from other threads, with at most one system call per sleep.
//!
//! ```text
//!            before it sleeps                 wake()
//!  RUNNING ------------------> SLEEPING --------------> NOTIFIED   + one write to the eventfd
//!     |                           ^                         |
//!     |  wake(): no system call   |                         | after it slept: one `woken`
//!     +-----> NOTIFIED: the next sleep is of length 0       +-----> RUNNING
//! ```
//!
//! A reactor that is busy is told by the state alone; only one that sleeps, or is about to, costs a
//! write. The eventfd is watched edge-triggered and never read: its count would need 2^64 wakes to
//! be full.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const RUNNING: u8 = 0;
const SLEEPING: u8 = 1;
const NOTIFIED: u8 = 2;

#[derive(Debug)]
struct Bell {
    state: AtomicU8,
    eventfd: File,
}

/// Makes a reactor call its handler's `woken` soon. Cheap to clone and to share.
#[derive(Clone, Debug)]
pub struct Waker {
    bell: Arc<Bell>,
}

impl Waker {
    /// Causes at least one `woken` that begins after this call; several calls may cause only one.
    pub fn wake(&self) {
        if self.bell.state.swap(NOTIFIED, Ordering::AcqRel) == SLEEPING {
            // The write cannot block nor fail: the count is 2^64 wakes away from full.
            let _ = (&self.bell.eventfd).write(&1u64.to_ne_bytes());
        }
    }
}

/// The reactor's side.
#[derive(Debug)]
pub(crate) struct WakeState {
    bell: Arc<Bell>,
}

impl WakeState {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = File::from(crate::sys::eventfd()?);
        Ok(Self { bell: Arc::new(Bell { state: AtomicU8::new(RUNNING), eventfd }) })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker { bell: self.bell.clone() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.eventfd.as_fd()
    }

    /// Announces a sleep; false if a wake came first, and then the caller must not sleep.
    pub(crate) fn may_sleep(&self) -> bool {
        let state = &self.bell.state;
        state.compare_exchange(RUNNING, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends a sleep, announced or not; true if somebody has called `wake` since the last time.
    pub(crate) fn was_woken(&self) -> bool {
        self.bell.state.swap(RUNNING, Ordering::AcqRel) == NOTIFIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_sleep_forbids_it_and_is_reported_once() {
        let state = WakeState::new().unwrap();
        let waker = state.waker();
        assert!(state.may_sleep());
        assert!(!state.was_woken());
        waker.wake();
        waker.clone().wake();
        assert!(!state.may_sleep());
        assert!(state.was_woken());
        assert!(!state.was_woken());
    }
}
