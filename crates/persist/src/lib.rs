//! File formats as event streams: what stands in the files that outlive a server.
//!
//! - [`rdb`]: snapshots and DUMP payloads, read from every version and written as servers of
//!   version 7.0 read them.
//! - [`aof`]: the append-only file: its manifest, its commands, read and written.
//! - [`crc64`]: the checksum of snapshots and payloads.
//! - [`error`]: what can be wrong with snapshots and payloads.
//!
//! This crate knows bytes, not the keyspace: values come out as neutral types, compact encodings as
//! the validated structures that the engine keeps. Nothing here panics on any input, and no length
//! that has been read is trusted before the bytes behind it have come.
#![forbid(unsafe_code)]

pub mod aof;
pub mod crc64;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod rdb;

pub use error::LoadError;
