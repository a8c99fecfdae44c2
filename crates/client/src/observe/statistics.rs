//! What a client counts in any case: numbers that its tasks keep beside what they touch anyway.

use crate::client::Client;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a lane counts. Each number has one writer at a time: the lane's task, or who has the lock of its cell.
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

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Not to be called by two at a time.
    #[inline]
    pub(crate) fn add(&self, more: usize) {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(more as u64);
        self.0.store(sum, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happened on a connection, or on several, since the client was made; and what is so now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Commands that were queued, each attempt for itself.
    pub commands: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Replies.
    pub replies: u64,
    /// Those of them that were errors.
    pub errors: u64,
    /// Bytes that came, push messages included.
    pub received_bytes: u64,
    /// Commands whose time was over.
    pub timeouts: u64,
    /// Connections that were made, the first one included: one less than how often it was made anew.
    pub connections: u64,
    /// Attempts to make one that failed.
    pub failed_connections: u64,
    /// Commands whose replies have not come, about.
    pub pending: u64,
    /// Bytes of requests whose replies have not come, with what is known of each beside: what the budget bounds.
    pub pending_bytes: u64,
    /// Whether there is a connection; of several lanes, how many have one.
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

/// What the lanes of a client have counted; [`Client::statistics`] makes it. Sessions and listeners are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    lanes: Vec<Counts>,
}

impl Statistics {
    /// Each lane's.
    #[must_use]
    pub fn lanes(&self) -> &[Counts] {
        &self.lanes
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.lanes.iter().copied().fold(Counts::default(), |sum, lane| sum + lane)
    }
}

impl Client {
    /// What happened since the client was made. Numbers are read one by one, while others go on: they may
    /// differ by what happened meanwhile. O(lanes), and a lock of each for a moment.
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
