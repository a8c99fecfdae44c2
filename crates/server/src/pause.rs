//! CLIENT PAUSE: for a while, commands (or only writing ones) wait.

use std::sync::{Mutex, PoisonError};

/// Which commands wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paused {
    Writes,
    All,
}

/// The pause in force, if any.
#[derive(Debug, Default)]
pub struct Pause(Mutex<Option<(Paused, u64)>>);

impl Pause {
    /// Pauses until `until_ms`. A pause that is in force is never made weaker or shorter.
    pub fn begin(&self, what: Paused, until_ms: u64) {
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *pause = Some(match *pause {
            Some((before, until)) => (before.max(what), until.max(until_ms)),
            None => (what, until_ms),
        });
    }

    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What is paused at `now_ms`, and until when.
    pub fn in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        let pause = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pause.filter(|(_, until)| *until > now_ms)
    }
}
