//! The event loop's integration tests, in one executable.
//!
//! Two files are executables of their own: `descriptors.rs` counts the descriptors of its process, and `exhaustion.rs`
//! takes all of them.

mod line_server;
mod listeners;
mod loopback;
