//! The integration tests of the event loop, in one executable.
//!
//! Two files are separate executables: `descriptors.rs` counts the descriptors of its process, and
//! `exhaustion.rs` takes all of them.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot fail may panic")]

mod batches;
mod line_server;
mod listeners;
mod loopback;
