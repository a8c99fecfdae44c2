//! Facts about this process from its start to its shutdown.

use crate::core::oom::OomScore;
use crate::core::shutdown::Shutdown;
use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;
use std::time::Instant;

/// Facts that the startup code determines and INFO shows, and the state of the shutdown.
#[derive(Debug)]
pub struct Process {
    /// When the setup began, for the uptime.
    pub started: Instant,
    /// When the setup began, in Unix ms.
    pub started_unix_ms: u64,
    /// Identifies this process to its clients.
    pub run_id: String,
    /// True if the last worker serves the admin lane.
    pub has_admin_lane: bool,
    /// True if a service manager supervises the process.
    pub is_supervised: bool,
    /// `oom-score-adj`.
    pub oom_score: OomScore,
    /// The state of the shutdown.
    pub shutdown: Shutdown,
    backend: Mutex<&'static str>,
}

impl Process {
    /// Creates the facts about a starting process.
    pub fn new(
        run_id: String,
        started_unix_ms: u64,
        has_admin_lane: bool,
        is_supervised: bool,
    ) -> Process {
        Process {
            started: Instant::now(),
            started_unix_ms,
            run_id,
            has_admin_lane,
            is_supervised,
            oom_score: OomScore::default(),
            shutdown: Shutdown::default(),
            backend: Mutex::new("epoll"),
        }
    }

    /// `epoll+io_uring`, `epoll` or `io_uring`: the back end of the event loops.
    pub fn backend(&self) -> &'static str {
        *self.backend.lock().even_poisoned()
    }

    /// Sets the name of the back end of the event loops.
    pub fn set_backend(&self, name: &'static str) {
        *self.backend.lock().even_poisoned() = name;
    }
}
