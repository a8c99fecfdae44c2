//! Handing values over to another server: what MIGRATE asks of whoever has sockets.
//!
//! This crate sees no sockets. It says where to and what ([`TransferTarget`], [`TransferKey`]), and the
//! [`TransferFn`] of the thread's [`crate::env::Env`] does it, waiting for the other server as long as
//! the destination's timeout allows.

use crate::base::error::CommandError;

/// The server to hand over to, and how to speak to it.
#[derive(Debug, Clone)]
pub struct TransferTarget {
    pub host: Vec<u8>,
    pub port: Vec<u8>,
    pub db: i64,
    /// How long connecting, each write and each answer may take.
    pub timeout_ms: u64,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
}

/// One key to hand over.
#[derive(Debug)]
pub struct TransferKey {
    pub key: Vec<u8>,
    /// In Unix milliseconds.
    pub deadline: Option<u64>,
    /// What DUMP shows of the value.
    pub payload: Vec<u8>,
    /// A key of this name there is to be replaced.
    pub replace: bool,
}

/// Why not everything was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    Connecting,
    Writing,
    Reading,
    /// The other server's first error, without the sign before it.
    Refused(Vec<u8>),
}

impl TransferError {
    /// What the client is answered.
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

/// What came of handing parcels over.
#[derive(Debug, Default)]
pub struct TransferResult {
    /// The keys that the other server has taken.
    pub taken: Vec<Vec<u8>>,
    pub failure: Option<TransferError>,
}

/// Hands parcels over. Takes as long as the other server needs, up to the timeout for each step.
pub type TransferFn = fn(&TransferTarget, &mut dyn Iterator<Item = TransferKey>) -> TransferResult;

/// The carrier of a thread without sockets.
pub fn no_transfer(_: &TransferTarget, _: &mut dyn Iterator<Item = TransferKey>) -> TransferResult {
    TransferResult { taken: Vec::new(), failure: Some(TransferError::Connecting) }
}
