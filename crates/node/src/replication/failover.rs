//! FAILOVER: a primary hands over to a replica that has everything. Its state; what is done with it is the
//! link's.
//!
//! ```text
//!  FAILOVER ── writes wait ── a replica has acknowledged all ── PSYNC … FAILOVER, as its replica ── over
//!                   │ time is up                                     │ refused
//!                   └─ over, or as if it had all if forced           └─ a primary as before
//! ```

use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;

/// How far it has come, in the words of INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    None,
    /// No replica has everything yet.
    WaitsForSync,
    /// The replica is asked to take over.
    InProgress,
}

/// A failover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub phase: Phase,
    /// Where the replica that is to take over listens; any that has everything if `None`.
    pub target: Option<(String, u16)>,
    /// When it is given up, or forced, in Unix ms; `None` if never.
    pub until_ms: Option<u64>,
    /// The target takes over when time is up though it may not have everything.
    pub is_forced: bool,
}

/// The failover that goes on, if any.
#[derive(Debug, Default)]
pub struct Failover(Mutex<Option<Attempt>>);

impl Failover {
    pub fn attempt(&self) -> Option<Attempt> {
        self.0.lock().even_poisoned().clone()
    }

    pub fn phase(&self) -> Phase {
        self.0.lock().even_poisoned().as_ref().map_or(Phase::None, |attempt| attempt.phase)
    }

    pub fn word(&self) -> &'static str {
        match self.phase() {
            Phase::None => "no-failover",
            Phase::WaitsForSync => "waiting-for-sync",
            Phase::InProgress => "failover-in-progress",
        }
    }

    pub fn set(&self, attempt: Option<Attempt>) {
        *self.0.lock().even_poisoned() = attempt;
    }
}
