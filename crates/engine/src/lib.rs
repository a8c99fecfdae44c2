//! The data store: keyspace, types, command specifications and data commands.
//!
//! Deterministic: the same calls with the same times and the same random seed give the same
//! replies. Nothing here waits, reads a clock or sees a socket.
#![forbid(unsafe_code)]

pub mod command;
