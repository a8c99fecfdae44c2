//! The Brisk server: what runs a node as a process.
//!
//! Sessions, features, and the way from bytes to a command are in `brisk-node`; here is what drives
//! them, and the commands that need them.
//!
//! | folder | what it is for |
//! |---|---|
//! | `boot` | start to stop: arguments, listeners, signals, service managers, changed settings |
//! | `worker` | the event loop's side: rounds, turns, sessions that wait, timers |
//! | `commands` | commands that need a session or the server |
//! | `info` | what INFO shows |
//! | `doctor` | checks of the machine and the configuration |
//! | `http` | the same for monitoring: `/metrics`, `/health`, `/ready` |
//! | `simulation` | replication, simulated: a test |
#![forbid(unsafe_code)]

pub mod boot;
pub mod commands;
mod doctor;
mod http;
pub mod info;
// An optimised reactor takes its time from the system unless the feature is on.
#[cfg(test)]
#[cfg(any(debug_assertions, feature = "simulated-time"))]
mod simulation;
pub mod worker;
