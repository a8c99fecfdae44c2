//! The Brisk server: everything that needs a session, a thread or the process.
//!
//! | folder | what it is for |
//! |---|---|
//! | `boot` | start to stop: arguments, listeners, signals, service managers, changed settings |
//! | `worker` | the event loop's side: rounds, turns, sessions that wait, timers |
//! | `commands` | commands that need a session or the server |
//! | `info` | what INFO shows |
//! | `run` | from bytes to a command: batches, the gate, permissions, dispatch |
//! | `core` | what commands may use of a worker, and what all workers share |
//! | `clients` | who is connected, as whom, from where, and what it takes |
//! | `transactions`, `script`, `pubsub`, `tracking`, `monitor`, `persistence`, `replication` | a feature each |
#![forbid(unsafe_code)]

pub mod boot;
pub mod clients;
pub mod commands;
pub mod core;
pub mod info;
pub mod monitor;
pub mod persistence;
pub mod pubsub;
pub mod replication;
pub mod run;
pub mod script;
pub mod tracking;
pub mod transactions;
pub mod worker;
