//! Handing values over to another server: what MIGRATE asks of whoever has sockets.
//!
//! This crate sees no sockets. It says where to and what ([`Destination`], [`Parcel`]), and the
//! [`Carrier`] of the thread's [`crate::env::Env`] does it, waiting for the other server as long as
//! the destination's timeout allows.

use crate::base::error::CommandError;

/// The server to hand over to, and how to speak to it.
#[derive(Debug, Clone)]
pub struct Destination {
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
pub struct Parcel {
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
pub enum Failure {
    Connecting,
    Writing,
    Reading,
    /// The other server's first error, without the sign before it.
    Refused(Vec<u8>),
}

impl Failure {
    /// What the client is answered.
    pub fn error(&self) -> CommandError {
        match self {
            Failure::Connecting => {
                CommandError::text("IOERR error or timeout connecting to the client")
            }
            Failure::Writing => {
                CommandError::text("IOERR error or timeout writing to target instance")
            }
            Failure::Reading => {
                CommandError::text("IOERR error or timeout reading to target instance")
            }
            Failure::Refused(text) => {
                CommandError::text_with("ERR Target instance replied with error: ", text)
            }
        }
    }
}

/// What came of handing parcels over.
#[derive(Debug, Default)]
pub struct Carried {
    /// The keys that the other server has taken.
    pub taken: Vec<Vec<u8>>,
    pub failure: Option<Failure>,
}

/// Hands parcels over. Takes as long as the other server needs, up to the timeout for each step.
pub type Carrier = fn(&Destination, &mut dyn Iterator<Item = Parcel>) -> Carried;

/// The carrier of a thread without sockets.
pub fn carry_nothing(_: &Destination, _: &mut dyn Iterator<Item = Parcel>) -> Carried {
    Carried { taken: Vec::new(), failure: Some(Failure::Connecting) }
}
