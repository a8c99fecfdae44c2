//! The end of the server: requested by a signal or by SHUTDOWN, carried out by boot.
//!
//! ```text
//!  SIGTERM ── scheduled ──┐
//!                         ├─ waits for replicas ── saved, synchronised ── is asked ── the process ends
//!  SHUTDOWN ──────────────┘        │ SHUTDOWN ABORT, or it cannot be saved
//!                                  └─ called off
//! ```
//! A signal after which a worker has something to do waits for the timers of one. What is done at each step
//! is in `persistence/ending.rs`.

use brisk_config::choice::ShutdownMode;
use brisk_engine::keyspace::Ticket;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Whether and how the server is to end.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// For those who look in every round.
    is_asked: AtomicBool,
    exit_code: Mutex<Option<u8>>,
    asked: Condvar,
    plan: Mutex<Plan>,
}

/// What comes before the end.
#[derive(Debug, Default)]
struct Plan {
    /// What a signal asked for and a worker is to do first.
    scheduled: Option<ShutdownMode>,
    waiting: Option<Waiting>,
}

/// The wait for replicas.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// How the server ends then.
    pub how: ShutdownMode,
    /// When it ends whatever the replicas have, in Unix ms.
    pub until_ms: u64,
    /// Up to where in the stream replicas are to have it.
    pub target: Ticket,
    /// The end of the stream when that was determined: behind the target there may be the request that
    /// replicas acknowledge what they have.
    pub end: Ticket,
}

impl Shutdown {
    /// Asks for the end. The first request counts.
    pub fn ask(&self, exit_code: u8) {
        self.exit_code.lock().even_poisoned().get_or_insert(exit_code);
        self.is_asked.store(true, Ordering::SeqCst);
        self.asked.notify_all();
    }

    /// Leaves the end to the worker whose timers go on with it.
    pub fn schedule(&self, how: ShutdownMode) {
        self.plan().scheduled = Some(how);
    }

    /// How a signal has the server end.
    pub fn scheduled(&self) -> Option<ShutdownMode> {
        self.plan().scheduled
    }

    /// The server ends when replicas have caught up.
    pub fn wait_for_replicas(&self, waiting: Waiting) {
        self.plan().waiting = Some(waiting);
    }

    /// Replicas are to have more than was known before, unless the end was called off meanwhile.
    pub fn move_target(&self, target: Ticket, end: Ticket) {
        if let Some(waiting) = &mut self.plan().waiting {
            (waiting.target, waiting.end) = (target, end);
        }
    }

    /// The wait for replicas that is going on.
    pub fn waiting(&self) -> Option<Waiting> {
        self.plan().waiting
    }

    /// The server goes on; whether it was to end.
    pub fn call_off(&self) -> bool {
        let mut plan = self.plan();
        // Both, whichever was first.
        let (scheduled, waiting) = (plan.scheduled.take(), plan.waiting.take());
        scheduled.is_some() || waiting.is_some()
    }

    /// Whether a signal or a client has asked for the end and it was not called off.
    pub fn is_planned(&self) -> bool {
        let plan = self.plan();
        plan.scheduled.is_some() || plan.waiting.is_some()
    }

    /// Whether the server ends, or is to.
    pub fn is_in_progress(&self) -> bool {
        self.is_asked() || self.is_planned()
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// Waits until the end is asked for; the exit code.
    pub fn wait(&self) -> u8 {
        let mut code = self.exit_code.lock().even_poisoned();
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self.asked.wait(code).even_poisoned();
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().even_poisoned()
    }
}
