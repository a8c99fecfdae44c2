//! The Brisk server: runs a node as a process.
//!
//! Sessions, features, and the path from bytes to a command are in `brisk-node`. This crate contains the code that
//! drives them, and the commands that depend on this code.
//!
//! | directory | purpose |
//! |---|---|
//! | `boot` | startup and shutdown: arguments, listeners, signals, service managers, changed settings |
//! | `worker` | the event loop's side: rounds, turns, blocked sessions, timers |
//! | `commands` | commands that need a session or the server |
//! | `info` | the sections of INFO |
//! | `doctor` | checks of the host and the configuration |
//! | `http` | monitoring over HTTP: `/metrics`, `/health`, `/ready` |
//! | `topology` | cluster mode: the source of the topology, and how this process follows it |
//! | `simulation` | a test that simulates replication |
#![forbid(unsafe_code)]

pub mod boot;
pub mod commands;
mod doctor;
pub mod http;
pub mod info;
// In optimized builds, the reactor uses the system's clock unless the feature `simulated-time` is on.
#[cfg(test)]
#[cfg(any(debug_assertions, feature = "simulated-time"))]
mod simulation;
mod topology;
pub mod worker;
