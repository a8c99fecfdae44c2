//! Sending values to another server for MIGRATE.
//!
//! This crate has no sockets. It provides the destination ([`TransferTarget`]) and the keys
//! ([`TransferKey`]). The [`TransferFn`] of the thread's [`crate::env::Env`] sends them, and waits
//! for the other server up to the destination's timeout.

use crate::base::error::CommandError;

/// The destination server, and how to connect to it.
#[derive(Debug, Clone)]
pub struct TransferTarget {
    pub host: Vec<u8>,
    pub port: Vec<u8>,
    pub db: i64,
    /// Timeout for connecting, for each write and for each reply.
    pub timeout_ms: u64,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
}

/// One key to send.
#[derive(Debug)]
pub struct TransferKey {
    pub key: Vec<u8>,
    /// The expiry time in Unix milliseconds.
    pub deadline: Option<u64>,
    /// The value as DUMP serializes it.
    pub payload: Vec<u8>,
    /// True if an existing key on the destination is replaced.
    pub replace: bool,
}

/// Why some keys were not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    Connecting,
    Writing,
    Reading,
    /// The other server's first error, without the leading `-`.
    Refused(Vec<u8>),
}

impl TransferError {
    /// The error reply for the client.
    pub fn error(&self) -> CommandError {
        match self {
            TransferError::Connecting => {
                CommandError::text("IOERR error or timeout connecting to the client")
            }
            TransferError::Writing => {
                CommandError::text("IOERR error or timeout writing to target instance")
            }
            TransferError::Reading => {
                CommandError::text("IOERR error or timeout reading to target instance")
            }
            TransferError::Refused(text) => {
                CommandError::text_with("ERR Target instance replied with error: ", text)
            }
        }
    }
}

/// The result of sending keys.
#[derive(Debug, Default)]
pub struct TransferResult {
    /// The keys that the other server has stored.
    pub taken: Vec<Vec<u8>>,
    pub failure: Option<TransferError>,
}

/// Sends keys. Takes as long as the other server needs, up to the timeout for each step.
pub type TransferFn = fn(&TransferTarget, &mut dyn Iterator<Item = TransferKey>) -> TransferResult;

/// The transfer function of a thread without sockets.
pub fn no_transfer(_: &TransferTarget, _: &mut dyn Iterator<Item = TransferKey>) -> TransferResult {
    TransferResult { taken: Vec::new(), failure: Some(TransferError::Connecting) }
}
