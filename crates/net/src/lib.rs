//! Listening sockets, and TLS between a socket and its session.
#![forbid(unsafe_code)]

pub mod listeners;
pub mod tls;
