//! The server's observations of its own work, except those that need a session or a worker.
//!
//! | file | about |
//! |---|---|
//! | `log` | the log |
//! | `metrics` | peaks, rates, resource usage of the process |
//! | `memory` | memory of the process |
//! | `stats` | counters of a worker |
//! | `slowlog` | slow commands |
//! | `errors` | error replies by code |
//! | `latency` | latency spikes by kind of event |
//! | `text` | the buffer for the text of INFO |
//! | `version` | the versions that the server reports to clients |
#![forbid(unsafe_code)]

pub mod errors;
pub mod latency;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod slowlog;
pub mod stats;
pub mod text;
pub mod version;
