//! File formats as event streams: what stands in the files that outlive a server.
//!
//! - [`rdb`]: snapshots and DUMP payloads, read from every version and written as servers of
//!   version 7.0 read them.
//! - [`crc64`]: the checksum behind both.
//! - [`error`]: what can be wrong with those bytes.
//!
//! This crate knows bytes, not the keyspace: values come out as neutral types, compact encodings as
//! the validated structures that the engine keeps. Nothing here panics on any input, and no length
//! that has been read is trusted before the bytes behind it have come.
#![forbid(unsafe_code)]

pub mod crc64;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod rdb;

pub use error::LoadError;
