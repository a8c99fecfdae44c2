//! The shutdown of the server. A signal or SHUTDOWN requests it, and the main thread carries it out.
//!
//! ```text
//! SIGTERM ── scheduled ──┐
//!                        ├─ waits for replicas ── saved, synchronized ── is requested ── process exits
//! SHUTDOWN ──────────────┘        │ SHUTDOWN ABORT, or the dataset cannot be saved
//!                                 └─ called off
//! ```
//! If workers have work to do before the shutdown, the timers of one worker handle the signal. The work of each step is
//! in `persistence/ending.rs`.

use brisk_config::choice::ShutdownMode;
use brisk_engine::keyspace::Ticket;
use brisk_structures::poison::EvenPoisoned;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The state of a shutdown: whether and how the server shuts down.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// True once the shutdown was requested. For threads that check it in every round.
    is_requested: AtomicBool,
    exit_code: Mutex<Option<u8>>,
    requested: Condvar,
    plan: Mutex<Plan>,
}

/// The state of work that must be done before the shutdown.
#[derive(Debug, Default)]
struct Plan {
    /// A shutdown that a signal requested and that has to wait for work of a worker.
    scheduled: Option<ShutdownMode>,
    waiting: Option<Waiting>,
}

/// The wait for replicas.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The options of the shutdown.
    pub how: ShutdownMode,
    /// The end of the wait, in Unix ms. At that time, the server exits even if replicas lag.
    pub until_ms: u64,
    /// The position in the stream that replicas must have acknowledged.
    pub target: Ticket,
    /// The end of the stream when the target was set. It may be after the target, because the stream may contain a
    /// request to replicas to acknowledge their offset.
    pub end: Ticket,
}

impl Shutdown {
    /// Requests the shutdown. Only the first request counts.
    pub fn request(&self, exit_code: u8) {
        self.exit_code.lock().even_poisoned().get_or_insert(exit_code);
        self.is_requested.store(true, Ordering::SeqCst);
        self.requested.notify_all();
    }

    /// Schedules a shutdown, which the timers of one worker carry out.
    pub fn schedule(&self, how: ShutdownMode) {
        self.plan().scheduled = Some(how);
    }

    /// The options of a shutdown that a signal requested.
    pub fn scheduled(&self) -> Option<ShutdownMode> {
        self.plan().scheduled
    }

    /// Begins to wait for replicas. The server exits when they have caught up.
    pub fn wait_for_replicas(&self, waiting: Waiting) {
        self.plan().waiting = Some(waiting);
    }

    /// Notes that the stream ends at this position. Replicas must acknowledge all of it. Has no effect if the shutdown
    /// was canceled or if the current end is later.
    pub fn move_target(&self, end: Ticket) {
        if let Some(waiting) = &mut self.plan().waiting
            && waiting.end < end
        {
            (waiting.target, waiting.end) = (end, end);
        }
    }

    /// Notes that the request to replicas to acknowledge their offset was appended to the stream at this position.
    /// Replicas need not acknowledge the request itself. They must acknowledge everything that a script appended before
    /// it.
    pub fn note_request(&self, request: Range<Ticket>) {
        if let Some(waiting) = &mut self.plan().waiting
            && waiting.end <= request.start
        {
            if waiting.end < request.start {
                waiting.target = request.start;
            }
            waiting.end = request.end;
        }
    }

    /// The wait for replicas, if one is in progress.
    pub fn waiting(&self) -> Option<Waiting> {
        self.plan().waiting
    }

    /// Cancels the shutdown. Returns true if one was planned.
    pub fn call_off(&self) -> bool {
        let mut plan = self.plan();
        // Take both before checking either.
        let (scheduled, waiting) = (plan.scheduled.take(), plan.waiting.take());
        scheduled.is_some() || waiting.is_some()
    }

    /// Reports whether a signal or a client has requested a shutdown that was not canceled.
    pub fn is_planned(&self) -> bool {
        let plan = self.plan();
        plan.scheduled.is_some() || plan.waiting.is_some()
    }

    /// Reports whether a shutdown was requested or is in progress.
    pub fn is_in_progress(&self) -> bool {
        self.is_requested() || self.is_planned()
    }

    /// Reports whether the shutdown was requested.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    /// Waits until the shutdown is requested. Returns the exit code.
    pub fn wait(&self) -> u8 {
        let mut code = self.exit_code.lock().even_poisoned();
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self.requested.wait(code).even_poisoned();
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().even_poisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_must_acknowledge_every_write_and_no_request() {
        let shutdown = Shutdown::default();
        let begin = |at: u64| {
            let how = ShutdownMode::default();
            let waiting = Waiting { how, until_ms: 0, target: Ticket(at), end: Ticket(at) };
            shutdown.wait_for_replicas(waiting);
        };
        let places = || {
            let waiting = shutdown.waiting().unwrap();
            (waiting.target.0, waiting.end.0)
        };
        begin(100);
        shutdown.note_request(Ticket(100)..Ticket(130));
        assert_eq!(places(), (100, 130));
        // A script writes 10 bytes, and the server notices them before the next request.
        shutdown.move_target(Ticket(140));
        assert_eq!(places(), (140, 140));
        // A script writes 20 bytes between the last check of the stream and the request.
        shutdown.note_request(Ticket(160)..Ticket(190));
        assert_eq!(places(), (160, 190));
        // Another worker notes an earlier position later.
        shutdown.note_request(Ticket(150)..Ticket(155));
        shutdown.move_target(Ticket(150));
        assert_eq!(places(), (160, 190));
        // The stream of another server contains no requests for acknowledgements.
        shutdown.note_request(Ticket(190)..Ticket(190));
        assert_eq!(places(), (160, 190));
        shutdown.note_request(Ticket(200)..Ticket(200));
        assert_eq!(places(), (200, 200));
        assert!(shutdown.call_off());
        shutdown.note_request(Ticket(300)..Ticket(330));
        assert!(shutdown.waiting().is_none());
    }
}
