//! Client-side caching: sessions that are told when what they read is no longer true.
//!
//! ```text
//!  engine: a remembered key changes ──> Invalidation ──┐
//!  engine: a key changes ──> Prefixes: who listens? ───┼──> Inbox of the tracker's worker
//!                                                      │      ├─ its own connection
//!                                                      │      └─ Inbox of the worker redirected to
//! ```
//!
//! | file | about |
//! |---|---|
//! | `prefixes` | who listens to prefixes of keys, by worker |
//! | `state` | which keys a session tracks, and who of a worker does |
//! | `notice` | messages |
//! | `session` | a session begins to track, and ends it |
//! | `invalidate` | how the engine's invalidations become messages |
//!
//! The server's `worker/notices.rs` hands messages to sessions. Which keys clients may have is
//! known to the engine (`keyspace/clients/tracking/mod.rs`).

pub mod invalidate;
mod notice;
mod prefixes;
pub mod session;
mod state;

pub use self::notice::{Broadcast, HEAD_RESP2, HEAD_RESP3, Notice, redirection_broken};
pub use self::prefixes::Prefixes;
pub use self::state::{Mode, Tracker, TrackingSessions};
