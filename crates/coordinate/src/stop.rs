//! Pauses that another thread can end.

use brisk_structures::poison::EvenPoisoned as _;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A flag that ends all pauses once it is set. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopFlag(Arc<(Mutex<bool>, Condvar)>);

impl StopFlag {
    pub(crate) fn stop(&self) {
        *self.0.0.lock().even_poisoned() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.0.0.lock().even_poisoned()
    }

    /// Waits for `duration` or until the flag is set; returns whether it is set.
    pub(crate) fn pause(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        let mut stopped = self.0.0.lock().even_poisoned();
        while !*stopped {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            stopped = self.0.1.wait_timeout(stopped, left).even_poisoned().0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_a_pause_of_another_thread() {
        let flag = StopFlag::default();
        let other = flag.clone();
        let paused = std::thread::spawn(move || other.pause(Duration::from_secs(600)));
        flag.stop();
        assert!(paused.join().unwrap());
        assert!(flag.is_stopped() && flag.pause(Duration::from_secs(600)));
    }
}
