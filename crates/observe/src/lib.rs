//! What the server notes of its own work, as far as it needs no session and no worker.
//!
//! | file | about |
//! |---|---|
//! | `log` | the log |
//! | `figures` | peaks, rates, usage of the process |
//! | `memory` | what the process takes |
//! | `stats` | what a worker counts |
//! | `slowlog` | commands that took long |
//! | `errors` | error replies by code word |
//! | `latency` | spikes by kind of event |
//! | `text` | the buffer that INFO is written into |
//! | `version` | the versions that clients are told |
#![forbid(unsafe_code)]

pub mod errors;
pub mod figures;
pub mod latency;
pub mod log;
pub mod memory;
pub mod slowlog;
pub mod stats;
pub mod text;
pub mod version;
