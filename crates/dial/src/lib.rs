//! Connects the tools to a server: addresses, the TLS options that all tools share, and a blocking stream. Each tool
//! implements its own protocol on the stream.
//!
//! | module | about |
//! |---|---|
//! | [`address`] | a host with a port, or the path of a socket |
//! | [`tls`] | the options that begin with `--tls`, `--cert` and the like, and the sessions created from them |
//! | [`stream`] | a blocking connection of either kind |
#![forbid(unsafe_code)]

pub mod address;
pub mod stream;
pub mod tls;

pub use address::Address;
pub use stream::Stream;
pub use tls::{TlsClient, TlsOptions};
