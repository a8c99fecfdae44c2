//! Wakes and stops a topology thread.

use brisk_structures::poison::EvenPoisoned as _;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A signal for a topology thread. Other threads can use it to pause until the threads are stopped.
#[derive(Debug, Default)]
pub(super) struct TopologySignal {
    flags: Mutex<SignalFlags>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalFlags {
    /// True if the thread was woken because something has changed.
    is_awake: bool,
    is_stopped: bool,
}

impl TopologySignal {
    /// Ends the current or the next wait.
    pub(super) fn wake(&self) {
        self.flags.lock().even_poisoned().is_awake = true;
        self.changed.notify_all();
    }

    /// Ends all waits permanently.
    pub(super) fn stop(&self) {
        self.flags.lock().even_poisoned().is_stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.flags.lock().even_poisoned().is_stopped
    }

    /// Waits for up to `limit` until [`TopologySignal::wake`] is called. Returns true if it was called.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        let mut flags = self.wait_while(limit, |flags| !flags.is_awake && !flags.is_stopped);
        std::mem::take(&mut flags.is_awake)
    }

    /// Waits for `duration` or until the threads are stopped.
    pub(super) fn pause(&self, duration: Duration) {
        drop(self.wait_while(duration, |flags| !flags.is_stopped));
    }

    fn wait_while(
        &self,
        limit: Duration,
        waits: impl Fn(&SignalFlags) -> bool,
    ) -> std::sync::MutexGuard<'_, SignalFlags> {
        let end = Instant::now() + limit;
        let mut flags = self.flags.lock().even_poisoned();
        while waits(&flags) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            flags = self.changed.wait_timeout(flags, left).even_poisoned().0;
        }
        flags
    }
}
