//! The Brisk server: everything that needs a session, a thread, a file or the process.
#![forbid(unsafe_code)]

pub mod background;
pub mod batch;
pub mod boot;
pub mod call;
pub mod clients;
pub mod commands;
pub mod config;
pub mod cron;
pub mod dispatch;
pub mod figures;
pub mod gate;
pub mod info;
pub mod latency;
pub mod listeners;
pub mod log;
pub mod long;
pub mod mailbox;
pub mod memory;
pub mod monitor;
pub mod pause;
pub mod pubsub;
pub mod quiesce;
pub mod reconfigure;
pub mod script;
pub mod session;
pub mod shared;
pub mod shutdown;
pub mod slowlog;
mod snapshot;
pub mod stats;
pub mod table;
pub mod tls;
pub mod transaction;
pub mod version;
pub mod worker;
