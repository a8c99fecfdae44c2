//! The Redis protocol without I/O: RESP2, RESP3 and inline requests as pure functions on byte
//! slices.
//!
//! - [`request`]: parses the requests of a connection (server side), resumable and without copying;
//!   encodes requests (clients, replication).
//! - [`reply`]: encodes replies (server side) and decodes them (clients, tests).
//! - [`slot`]: the hash slot of a key, as the cluster protocol defines it.
//! - [`error`]: the errors in requests, with the texts that clients know.
//!
//! Nothing here panics on any input. No memory is allocated for a claimed length before the bytes
//! have arrived.
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
