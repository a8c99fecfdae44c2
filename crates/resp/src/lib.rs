//! The Redis protocol without I/O: RESP2, RESP3 and inline requests as pure functions over byte slices.
//!
//! - [`request`]: cuts a connection's bytes into requests (server side); resumable, copies nothing.
//! - [`error`]: what can be wrong with those bytes, in the words clients know.
//!
//! Nothing here panics on any input, and nothing is allocated by a length that has not been checked
//! against the bytes that are really there.
#![forbid(unsafe_code)]

pub mod error;
mod number;
pub mod request;

pub use error::ProtocolError;
pub use request::{Limits, RequestDecoder, Span, Spans, Step};
