//! Client-side caching: sends invalidations when keys change that clients may have cached.
//!
//! ```text
//! engine: a remembered key changes ──> Invalidation ────┐
//! engine: a key changes ──> Prefixes: which sessions? ──┼──> Inbox of the tracker's worker
//!                                                       │      ├─ its own connection
//!                                                       │      └─ Inbox of the worker redirected to
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `prefixes` | the sessions that track prefixes of keys, by worker |
//! | `state` | the tracking mode of a session, and the tracking sessions of a worker |
//! | `notice` | messages |
//! | `session` | a session begins and ends tracking |
//! | `invalidate` | converts the engine's invalidations to messages |
//!
//! The server's `worker/notices.rs` hands messages to sessions. The engine remembers which keys
//! clients may have cached (`keyspace/clients/tracking/mod.rs`).

pub mod invalidate;
mod notice;
mod prefixes;
pub mod session;
mod state;

pub use self::notice::{Broadcast, HEAD_RESP2, HEAD_RESP3, Notice, redirection_broken};
pub use self::prefixes::Prefixes;
pub use self::state::{Mode, Tracker, TrackingSessions};
