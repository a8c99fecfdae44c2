//! File formats as streams of events: the files that a server writes and loads.
//!
//! - [`rdb`]: snapshots and DUMP payloads. Every version can be read. Redis since 7.0 can read
//!   everything that this crate writes, except TTLs of hash fields.
//! - [`aof`]: the append-only file: its manifest and its commands, for reading and writing.
//! - [`crc64`]: the checksum of snapshots and payloads.
//! - [`error`]: the errors of snapshots and payloads.
//!
//! This crate knows bytes, not the keyspace. Values are returned as neutral types, and compact
//! encodings as the validated structures that the engine uses. Nothing here panics on any input. No
//! length is trusted before the bytes that it announces have arrived.
#![forbid(unsafe_code)]

pub mod aof;
pub mod crc64;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod rdb;

pub use error::LoadError;
