//! The counters of a client. They are always on, because they cost little: the client's tasks keep them next to data
//! that they use anyway.

use crate::client::Client;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a lane. Each has one writer at a time: the lane's task, or the holder of the lock of its cell.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) commands: Tally,
    pub(crate) sent_bytes: Tally,
    pub(crate) replies: Tally,
    pub(crate) errors: Tally,
    pub(crate) received_bytes: Tally,
    pub(crate) timeouts: Tally,
    pub(crate) connections: Tally,
    pub(crate) failed_connections: Tally,
}

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Adds to the counter. Two threads must not call this at the same time.
    #[inline]
    pub(crate) fn add(&self, more: usize) {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(more as u64);
        self.0.store(sum, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one or several connections since the client was created, and their current state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Commands that were queued. Each attempt counts.
    pub commands: u64,
    /// Bytes of these commands.
    pub sent_bytes: u64,
    /// Replies.
    pub replies: u64,
    /// Error replies, which also count as replies.
    pub errors: u64,
    /// Bytes received, including push messages.
    pub received_bytes: u64,
    /// Commands that timed out.
    pub timeouts: u64,
    /// Connections that were opened, including the first one. The number of reconnections of a lane is one less.
    pub connections: u64,
    /// Failed attempts to open a connection.
    pub failed_connections: u64,
    /// The approximate number of commands without a reply.
    pub pending: u64,
    /// Bytes of requests without a reply, including the overhead of each: the quantity that the budget limits.
    pub pending_bytes: u64,
    /// 1 if the lane is connected, otherwise 0; for several lanes, the number of connected ones.
    pub connected: u64,
}

impl Counts {
    pub(crate) fn of(tallies: &Tallies) -> Counts {
        Counts {
            commands: tallies.commands.value(),
            sent_bytes: tallies.sent_bytes.value(),
            replies: tallies.replies.value(),
            errors: tallies.errors.value(),
            received_bytes: tallies.received_bytes.value(),
            timeouts: tallies.timeouts.value(),
            connections: tallies.connections.value(),
            failed_connections: tallies.failed_connections.value(),
            ..Counts::default()
        }
    }
}

impl std::ops::Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            commands: self.commands + other.commands,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            replies: self.replies + other.replies,
            errors: self.errors + other.errors,
            received_bytes: self.received_bytes + other.received_bytes,
            timeouts: self.timeouts + other.timeouts,
            connections: self.connections + other.connections,
            failed_connections: self.failed_connections + other.failed_connections,
            pending: self.pending + other.pending,
            pending_bytes: self.pending_bytes + other.pending_bytes,
            connected: self.connected + other.connected,
        }
    }
}

/// The counters of a client's lanes; [`Client::statistics`] returns them. Sessions and subscribers are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    lanes: Vec<Counts>,
}

impl Statistics {
    /// Returns the counters of each lane.
    #[must_use]
    pub fn lanes(&self) -> &[Counts] {
        &self.lanes
    }

    /// Returns the sum over all lanes.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.lanes.iter().copied().fold(Counts::default(), |sum, lane| sum + lane)
    }
}

impl Client {
    /// Returns the counters since the client was created. They are read one after another while commands run, so they
    /// may be slightly inconsistent. O(lanes); takes the lock of each lane briefly.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) {
    /// let total = db.statistics().total();
    /// println!("{} commands, {} under way, {} timeouts", total.commands, total.pending, total.timeouts);
    /// # }
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { lanes: self.counts() }
    }
}
