//! The Brisk server: everything that needs a session, a thread, a file or the process.
#![forbid(unsafe_code)]

pub mod config;
pub mod log;
