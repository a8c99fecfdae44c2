//! The Redis protocol without I/O: RESP2, RESP3 and inline requests as pure
//! functions over byte slices.
//!
//! - [`request`]: cuts a connection's bytes into requests (server side), resumable, without
//!   copying; writes requests (clients, replication).
//! - [`reply`]: writes replies (server side) and reads them (clients, tests).
//! - [`slot`]: the hash slot of a key, as the cluster protocol defines it.
//! - [`error`]: what can be wrong with those bytes, in the words clients know.
//!
//! Nothing here panics on any input, and nothing is allocated by a length that has not been checked
//! against the bytes that are really there.
#![forbid(unsafe_code)]

pub mod error;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod notation;
mod number;
pub mod reply;
pub mod request;
pub mod slot;

pub use error::ProtocolError;
pub use reply::Protocol;
pub use reply::decode::{ReplyDecoder, ReplyError, ReplyLimits, ReplyStep};
pub use reply::value::{Double, Value};
pub use request::{Limits, RequestDecoder, Span, Spans, Step};
