//! What a consumer tells of its work.

use super::message::Id;
use crate::error::Error;
use std::time::Duration;

/// What happened. [`Consumer::observe`](super::Consumer::observe) hears of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An entry was handled. That the server knows so follows.
    Handled {
        /// Which.
        id: Id,
        /// At which delivery.
        deliveries: u64,
        /// How long it took.
        took: Duration,
    },
    /// The handler failed, or panicked.
    Failed {
        /// On which entry.
        id: Id,
        /// At which delivery.
        deliveries: u64,
        /// What it said.
        why: &'a str,
        /// When it will be handled again; never if it was the last attempt.
        again_in: Option<Duration>,
    },
    /// An entry that failed is handled again.
    Retried {
        /// Which.
        id: Id,
        /// This delivery included.
        deliveries: u64,
    },
    /// An entry has had all its attempts.
    Dead {
        /// Which.
        id: Id,
        /// How often it was delivered.
        deliveries: u64,
        /// Why the last attempt failed; or that nobody came to an end with it.
        why: &'a str,
        /// What becomes of it.
        fate: Fate,
    },
    /// An entry that had been pending for too long was taken over, mostly from another member.
    Claimed {
        /// Which.
        id: Id,
        /// This delivery included.
        deliveries: u64,
    },
    /// An entry was deleted from the stream before it was handled: it is confirmed.
    Deleted {
        /// Which.
        id: Id,
    },
    /// The group was made, since it did not exist.
    GroupMade,
    /// The server cannot be reached, or refuses for now. It will be asked again.
    Interrupted {
        /// Why.
        error: &'a Error,
        /// When.
        again_in: Duration,
    },
    /// Nothing is read any more; what is being handled may come to its end.
    Stopping,
}

/// What becomes of an entry that has had all its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the stream of dead letters, and confirmed.
    DeadLetter,
    /// It is confirmed: nobody will hear of it again.
    Discarded,
    /// It stays pending, and no member with these settings handles it.
    Kept,
}

/// What a consumer has done from its beginning to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries that were handled.
    pub handled: u64,
    /// Times that the handler failed.
    pub failed: u64,
    /// Times that an entry was handled again.
    pub retried: u64,
    /// Entries that had had all their attempts.
    pub dead: u64,
    /// Entries that were taken over.
    pub claimed: u64,
    /// Entries that it had read and not come to an end with; another member, or this one when it begins again,
    /// gets them at once.
    pub returned: u64,
}
