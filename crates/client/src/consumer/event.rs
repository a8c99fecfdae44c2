//! The events and the summary of a consumer.

use super::message::Id;
use crate::error::Error;
use std::time::Duration;

/// An event of a consumer, for [`Consumer::observe`](super::Consumer::observe).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The handler succeeded. The entry is acknowledged next.
    Handled {
        /// The entry.
        id: Id,
        /// The number of deliveries, including this one.
        deliveries: u64,
        /// The duration of the handler.
        took: Duration,
    },
    /// The handler returned an error or panicked.
    Failed {
        /// The entry.
        id: Id,
        /// The number of deliveries, including this one.
        deliveries: u64,
        /// The handler's error.
        why: &'a str,
        /// The pause before the next attempt; `None` after the last attempt.
        again_in: Option<Duration>,
    },
    /// A failed entry is handled again.
    Retried {
        /// The entry.
        id: Id,
        /// The number of deliveries, including this one.
        deliveries: u64,
    },
    /// An entry has no attempts left.
    Dead {
        /// The entry.
        id: Id,
        /// The number of deliveries.
        deliveries: u64,
        /// The error of the last attempt, or a note that no handler has finished on this entry.
        why: &'a str,
        /// What happens to the entry.
        fate: Fate,
    },
    /// An entry that had been pending for too long was taken over, usually from another member.
    Claimed {
        /// The entry.
        id: Id,
        /// The number of deliveries, including this one.
        deliveries: u64,
    },
    /// An entry was deleted from the stream before it was handled. It is acknowledged.
    Deleted {
        /// The entry.
        id: Id,
    },
    /// The group did not exist and was created.
    GroupCreated,
    /// The server cannot be reached or returned a temporary error. The consumer tries again.
    Interrupted {
        /// The error.
        error: &'a Error,
        /// The pause before the next attempt.
        again_in: Duration,
    },
    /// The consumer is stopping: it reads no more entries, and the running handlers may finish.
    Stopping,
}

/// What happens to an entry that has no attempts left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The entry was moved to the dead-letter stream and acknowledged.
    DeadLetter,
    /// The entry was acknowledged and is not handled again.
    Discarded,
    /// The entry stays pending. Members with the same settings as this one do not handle it again.
    Kept,
}

/// The counters of a consumer over its whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries that were handled.
    pub handled: u64,
    /// Failures of the handler.
    pub failed: u64,
    /// Attempts after the first one.
    pub retried: u64,
    /// Entries that had no attempts left.
    pub dead: u64,
    /// Entries that were taken over.
    pub claimed: u64,
    /// Entries that were read but not finished. Another member, or this one after a restart, can receive them
    /// immediately.
    pub returned: u64,
}
