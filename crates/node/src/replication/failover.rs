//! FAILOVER: a primary hands over to a replica that has everything. This module has the state; `handover` acts on it.
//!
//! ```text
//!  FAILOVER ── writes wait ── a replica has acknowledged all ── PSYNC … FAILOVER, as its replica ── done
//!                   │ timeout                                        │ rejected
//!                   └─ aborted, or done anyway with FORCE            └─ a primary as before
//! ```

use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;

/// The phase of a failover, with the names that INFO uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailoverPhase {
    None,
    /// No suitable replica has everything yet.
    WaitsForSync,
    /// The replica has been requested to take over.
    InProgress,
}

/// A failover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailoverAttempt {
    pub phase: FailoverPhase,
    /// The address of the replica that takes over. If `None`, any replica that has everything can.
    pub target: Option<(String, u16)>,
    /// When the failover is aborted or forced, in Unix ms. `None` if there is no timeout.
    pub until_ms: Option<u64>,
    /// The target takes over after the timeout even if it does not have everything.
    pub is_forced: bool,
}

/// The failover that is in progress, if any.
#[derive(Debug, Default)]
pub struct Failover(Mutex<Option<FailoverAttempt>>);

impl Failover {
    pub fn attempt(&self) -> Option<FailoverAttempt> {
        self.0.lock().even_poisoned().clone()
    }

    pub fn phase(&self) -> FailoverPhase {
        self.0.lock().even_poisoned().as_ref().map_or(FailoverPhase::None, |attempt| attempt.phase)
    }

    pub fn word(&self) -> &'static str {
        match self.phase() {
            FailoverPhase::None => "no-failover",
            FailoverPhase::WaitsForSync => "waiting-for-sync",
            FailoverPhase::InProgress => "failover-in-progress",
        }
    }

    pub fn set(&self, attempt: Option<FailoverAttempt>) {
        *self.0.lock().even_poisoned() = attempt;
    }
}
