//! Publish and subscribe, across all workers.
//!
//! ```text
//!  PUBLISH ─ Registry: who listens, on which workers? ─┬─ Inbox of worker 0 ─ its Topics ─ outputs
//!           (one message, encoded once)                └─ Inbox of worker 1 ─ its Topics ─ outputs
//! ```
//!
//! | file | about |
//! |---|---|
//! | `registry` | how many listen to what on which worker; publishing |
//! | `publication` | a message in the form of the wire |
//! | `inbox` | messages on their way to the subscribers of a worker |
//! | `subscribe` | a session begins to listen, and ends it |
//! | `topics` | who listens on one worker |
//! | `events` | which keyspace events are asked for |
//! | `publish` | a worker sends messages and events |
//!
//! A message is in every inbox before its PUBLISH is answered, and each worker takes its inbox in
//! order, its own messages included. So what happened before is heard before, whoever published it,
//! and all subscribers of a channel hear its messages in the same order.

mod events;
mod inbox;
mod publication;
pub mod publish;
mod registry;
pub mod subscribe;
mod topics;

pub use self::events::event_classes;
pub use self::inbox::{Inbox, Mail};
pub use self::publication::{Publication, sigil};
pub use self::registry::{Published, Registry};
pub use self::topics::{Member, Subscriptions, Topics};

/// What a subscription names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Channel,
    Pattern,
    /// Channels of SPUBLISH and SSUBSCRIBE: a namespace of their own.
    ShardChannel,
}

impl Space {
    pub const ALL: [Space; 3] = [Space::Channel, Space::Pattern, Space::ShardChannel];

    /// For arrays with a place for each.
    pub const fn index(self) -> usize {
        self as usize
    }
}
