//! Wakes a reactor from other threads, with at most one system call per sleep.
//!
//! ```text
//!            before it sleeps                 wake()
//!  RUNNING ------------------> SLEEPING --------------> NOTIFIED   + one write to the eventfd
//!     |                           ^                         |
//!     |  wake(): no system call   |                         | after it slept: one `woken`
//!     +-----> NOTIFIED: the next sleep is of length 0       +-----> RUNNING
//! ```
//!
//! A busy reactor is notified through the atomic state alone. Only a reactor that sleeps, or is
//! about to sleep, costs a write. The eventfd is watched edge-triggered and never read: only after
//! 2^64 wake-ups would its count be full.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const RUNNING: u8 = 0;
const SLEEPING: u8 = 1;
const NOTIFIED: u8 = 2;

#[derive(Debug)]
struct WakeSignal {
    state: AtomicU8,
    eventfd: File,
}

/// Makes a reactor call its handler's `woken` soon. Cheap to clone and to share.
#[derive(Clone, Debug)]
pub struct Waker {
    signal: Arc<WakeSignal>,
}

impl Waker {
    /// Causes at least one call of `woken` that begins after this call. Several calls may cause
    /// only one.
    pub fn wake(&self) {
        if self.signal.state.swap(NOTIFIED, Ordering::AcqRel) == SLEEPING {
            // The write can neither block nor fail: the count is 2^64 wake-ups away from full.
            let _ = (&self.signal.eventfd).write(&1u64.to_ne_bytes());
        }
    }
}

/// The reactor's side of a [`Waker`].
#[derive(Debug)]
pub(crate) struct WakeState {
    signal: Arc<WakeSignal>,
}

impl WakeState {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = File::from(crate::sys::eventfd()?);
        Ok(Self { signal: Arc::new(WakeSignal { state: AtomicU8::new(RUNNING), eventfd }) })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker { signal: self.signal.clone() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.signal.eventfd.as_fd()
    }

    /// Announces a sleep. Returns false if a wake-up came first; the caller must not sleep then.
    pub(crate) fn may_sleep(&self) -> bool {
        let state = &self.signal.state;
        state.compare_exchange(RUNNING, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends a sleep, announced or not. Returns true if `wake` was called since the last call of
    /// this function.
    pub(crate) fn was_woken(&self) -> bool {
        self.signal.state.swap(RUNNING, Ordering::AcqRel) == NOTIFIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_sleep_prevents_it_and_is_reported_once() {
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
