//! Client-side caching: sends invalidations when keys that clients may have cached change.
//!
//! ```text
//! engine: a remembered key changes ──> Invalidation ────┐
//! engine: a key changes ──> Prefixes: which sessions? ──┼──> Inbox of the tracker's worker
//!                                                       │      ├─ its own connection
//!                                                       │      └─ Inbox of the redirection target's worker
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `prefixes` | the sessions that track prefixes of keys, by worker |
//! | `state` | the tracking mode of a session, and the tracking sessions of a worker |
//! | `notice` | the messages to clients |
//! | `session` | begins and ends tracking for a session |
//! | `invalidate` | converts the engine's invalidations to messages |
//!
//! The server's `worker/invalidations.rs` passes messages to sessions. The engine remembers which keys clients may have
//! cached (`keyspace/clients/tracking/mod.rs`).

pub mod invalidate;
mod notice;
mod prefixes;
pub mod session;
mod state;

use brisk_config::Config;
use brisk_engine::Env;
use brisk_engine::keyspace::Tracking;

pub use self::notice::{Broadcast, HEAD_RESP2, HEAD_RESP3, Notice, redirection_broken};
pub use self::prefixes::Prefixes;
pub use self::state::{Tracker, TrackingMode, TrackingSessions};

/// Number of keys that are removed immediately when `tracking-table-max-keys` is lowered. The rest are removed in
/// steps.
const TRIMMED_AT_ONCE: usize = 128;

/// Limits the number of keys that clients track.
pub(crate) fn take_config(tracking: &Tracking, env: &Env, config: &Config) {
    let most = config.clients.tracking_table_max_keys;
    tracking.set_keys_max(usize::try_from(most).unwrap_or(0));
    tracking.trim(env, TRIMMED_AT_ONCE);
}
