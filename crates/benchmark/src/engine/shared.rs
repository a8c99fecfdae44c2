//! The state that the threads of a run share.

use super::plan::{End, Plan};
use crate::error::RunError;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// A time that is never reached.
pub(super) const NEVER: u64 = u64::MAX;

/// State that all workers read. Only the controller writes it, except for the budget.
#[derive(Debug)]
pub(super) struct Shared {
    /// Workers may send from this time on; [`NEVER`] while connections are being opened.
    pub(super) go_ns: AtomicU64,
    /// Requests that are sent from this time on are measured.
    pub(super) measure_ns: AtomicU64,
    /// Nothing is sent from this time on.
    pub(super) end_ns: AtomicU64,
    /// If true, all workers return immediately.
    pub(super) abort: AtomicBool,
    /// Number of measured requests handed out so far.
    issued: AtomicU64,
    /// Number of requests that a cluster node has redirected, to be sent again.
    returned: AtomicU64,
    /// Number of measured requests to hand out in total.
    requests: u64,
    /// True if short connections use many source addresses.
    pub(super) spread: bool,
    pub(super) lines: Vec<Line>,
}

/// One worker's state that other threads access.
#[derive(Debug)]
pub(super) struct Line {
    /// Wakes the worker.
    pub(super) waker: OwnedFd,
    pub(super) tally: Tally,
}

/// Counters of a worker for the progress line, on a separate cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    pub(super) operations: AtomicU64,
    pub(super) latency_us: AtomicU64,
    pub(super) connected: AtomicU64,
    pub(super) waiting: AtomicU64,
}

impl Shared {
    pub(super) fn new(plan: &Plan, spread: bool) -> Result<Shared, RunError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let line = |_| {
            let waker = eventfd(0, flags).map_err(RunError::machine("eventfd"))?;
            Ok(Line { waker, tally: Tally::default() })
        };
        Ok(Shared {
            go_ns: AtomicU64::new(NEVER),
            measure_ns: AtomicU64::new(NEVER),
            end_ns: AtomicU64::new(NEVER),
            abort: AtomicBool::new(false),
            issued: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            requests: match plan.end {
                End::Requests(requests) => requests,
                End::After(_) => u64::MAX,
            },
            spread,
            lines: (0..plan.threads).map(line).collect::<Result<_, RunError>>()?,
        })
    }

    /// Takes `count` requests from the budget. Returns false if the budget is used up. The last call may exceed the
    /// budget, because pipelines are sent whole.
    #[inline]
    pub(super) fn take(&self, count: usize) -> bool {
        if self.requests == u64::MAX {
            return true;
        }
        (self.issued.load(Relaxed) < self.requests
            && self.issued.fetch_add(count as u64, Relaxed) < self.requests)
            || self.take_returned(count as u64)
    }

    /// Like [`Shared::take`], for requests that were handed back.
    #[cold]
    fn take_returned(&self, count: u64) -> bool {
        let less = |returned: u64| (returned > 0).then(|| returned.saturating_sub(count));
        self.returned.fetch_update(Relaxed, Relaxed, less).is_ok()
    }

    /// Returns redirected requests to the budget.
    pub(super) fn hand_back(&self, count: usize) {
        self.returned.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn wake_all(&self) {
        for line in &self.lines {
            // If the write fails because the counter is full, the worker is woken anyway.
            let _ = rustix::io::write(&line.waker, &1u64.to_ne_bytes());
        }
    }

    pub(super) fn abort(&self) {
        self.abort.store(true, Relaxed);
        self.wake_all();
    }

    pub(super) fn sum(&self, counter: impl Fn(&Tally) -> &AtomicU64) -> u64 {
        self.lines.iter().map(|line| counter(&line.tally).load(Relaxed)).sum()
    }
}

/// Messages of the workers to the controller.
#[derive(Debug)]
pub(super) enum Message {
    /// All connections of a worker are open.
    Ready,
    /// A worker has returned, with its results or an error.
    Returned(Result<Box<super::worker::Share>, RunError>),
}

/// A worker's end of the channel.
pub(super) type Reports = Sender<Message>;
