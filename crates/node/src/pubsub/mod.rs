//! Pub/Sub across all workers.
//!
//! ```text
//! PUBLISH ─ SubscriptionRegistry: which workers have subscribers? ─┬─ Inbox of worker 0 ─ its Topics ─ outputs
//!          (one message, encoded once)                 └─ Inbox of worker 1 ─ its Topics ─ outputs
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `registry` | the number of subscriptions by name and worker; publishing |
//! | `publication` | a message in wire format |
//! | `inbox` | messages for the subscribers of a worker |
//! | `subscribe` | subscribes and unsubscribes sessions |
//! | `topics` | the subscribers on one worker |
//! | `events` | selects the keyspace events to publish |
//! | `publish` | sends messages and events from a worker |
//!
//! A message is in every inbox before the reply to its PUBLISH is sent. Each worker takes the messages of its inbox,
//! including its own, in order. Therefore messages arrive in the order of publication, regardless of the publisher, and
//! all subscribers of a channel receive its messages in the same order.

mod events;
mod inbox;
mod publication;
pub mod publish;
mod registry;
pub mod subscribe;
mod topics;

pub(crate) use self::events::take_config;
pub use self::inbox::{Inbox, PushMessage};
pub use self::publication::{Publication, sigil};
pub use self::registry::{Published, SubscriptionRegistry};
pub use self::topics::{Subscriptions, TopicSubscriber, Topics};

/// The kind of name that a subscription has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Channel,
    Pattern,
    /// Channels of SPUBLISH and SSUBSCRIBE, which have their own namespace.
    ShardChannel,
}

impl Space {
    pub const ALL: [Space; 3] = [Space::Channel, Space::Pattern, Space::ShardChannel];

    /// Index into arrays with an element for each space.
    pub const fn index(self) -> usize {
        self as usize
    }
}
