//! CLIENT PAUSE: for a while, commands (or only writing ones) wait.

use brisk_structures::poison::EvenPoisoned;
use std::sync::{Mutex, MutexGuard};

/// Which commands wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paused {
    Writes,
    All,
}

/// The pause in force, if any. What it arms is changed under its lock, so that the end of one
/// pause cannot disarm the next.
#[derive(Debug, Default)]
pub struct Pause(Mutex<Option<(Paused, u64)>>);

impl Pause {
    /// Pauses until `until_ms`. A pause that is in force at `now_ms` is never made weaker or
    /// shorter.
    pub fn begin(&self, what: Paused, until_ms: u64, now_ms: u64, arm: impl FnOnce()) {
        let mut pause = self.lock();
        *pause = Some(match pause.filter(|(_, until)| *until > now_ms) {
            Some((before, until)) => (before.max(what), until.max(until_ms)),
            None => (what, until_ms),
        });
        arm();
    }

    /// Ends any pause.
    pub fn end(&self, disarm: impl FnOnce()) {
        *self.lock() = None;
        disarm();
    }

    /// What is paused at `now_ms`, and until when.
    pub fn in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        self.lock().filter(|(_, until)| *until > now_ms)
    }

    /// As [`Pause::in_force`]; disarms if nothing is paused any more.
    pub fn in_force_or(&self, now_ms: u64, disarm: impl FnOnce()) -> Option<(Paused, u64)> {
        let mut pause = self.lock();
        *pause = pause.filter(|(_, until)| *until > now_ms);
        if pause.is_none() {
            disarm();
        }
        *pause
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Paused, u64)>> {
        self.0.lock().even_poisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(pause: &Pause, what: Paused, until_ms: u64, now_ms: u64) {
        pause.begin(what, until_ms, now_ms, || ());
    }

    #[test]
    fn a_pause_in_force_is_made_neither_weaker_nor_shorter() {
        let pause = Pause::default();
        begin(&pause, Paused::Writes, 2000, 1000);
        begin(&pause, Paused::All, 1300, 1000);
        assert_eq!(pause.in_force(1999), Some((Paused::All, 2000)));
        assert_eq!(pause.in_force(2000), None);
    }

    #[test]
    fn a_pause_that_ran_out_leaves_nothing_to_the_next() {
        let pause = Pause::default();
        begin(&pause, Paused::All, 2000, 1000);
        begin(&pause, Paused::Writes, 2500, 2000);
        assert_eq!(pause.in_force(2100), Some((Paused::Writes, 2500)));
    }

    #[test]
    fn only_a_pause_that_is_over_is_disarmed() {
        let pause = Pause::default();
        begin(&pause, Paused::All, 2000, 1000);
        pause.in_force_or(1500, || panic!("still in force"));
        let mut disarmed = false;
        pause.in_force_or(2000, || disarmed = true);
        assert!(disarmed);
    }
}
