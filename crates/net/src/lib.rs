//! Where the server listens, and what lies between a socket and a session: TLS.
#![forbid(unsafe_code)]

pub mod listeners;
pub mod tls;
