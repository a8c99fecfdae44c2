//! The event loop's integration tests, in one executable.
//!
//! Two files are executables of their own: `descriptors.rs` counts the descriptors of its process, and `exhaustion.rs`
//! takes all of them.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot fail may panic")]

mod line_server;
mod listeners;
mod loopback;
