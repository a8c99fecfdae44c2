//! Errors that end a run.

use crate::scan::ScanError;
use brisk_dial::address::Address;
use std::io;

/// The reason why a run has no outcome. The texts are those of redis-benchmark if it has one for the error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Connecting failed.
    #[error("Could not connect to Redis at {address}: {source}")]
    Connect {
        /// The address of the server.
        address: Address,
        /// The system error.
        source: io::Error,
    },
    /// The server closed a connection that was in use.
    #[error("Error: Server closed the connection")]
    Closed,
    /// A socket failed.
    #[error("Error: {0}")]
    Socket(io::Error),
    /// The server sent an error reply, and errors end the run.
    #[error("Error from server: {0}")]
    Reply(String),
    /// A cluster node redirected a request whose key has no hash tag that could be changed.
    #[error("Error from server: {0}: in cluster mode a key must contain {{tag}}")]
    Untagged(String),
    /// An error on one cluster node.
    #[error("{source} (node {address})")]
    AtNode {
        /// The address of the node.
        address: Address,
        /// The error.
        source: Box<RunError>,
    },
    /// The received bytes are not RESP.
    #[error("Error: {0}")]
    Protocol(#[from] ScanError),
    /// The server sent more replies than it received requests.
    #[error("Error: the server sent more replies than there were requests")]
    Surplus,
    /// The client library gave up.
    #[error("Error: {0}")]
    Library(brisk::Error),
    /// TLS failed.
    #[error("Could not negotiate a TLS connection: {0}")]
    Tls(String),
    /// A request received no reply.
    #[error("Error: no reply from the server for {seconds} s")]
    Silent {
        /// How long the run waited for it.
        seconds: u64,
    },
    /// The last replies did not arrive.
    #[error(
        "Error: {missing} requests received no reply within {seconds} s after the last request"
    )]
    Unanswered {
        /// Number of requests without a reply.
        missing: u64,
        /// How long the run waited for it.
        seconds: u64,
    },
    /// The system denied a resource of the generator: descriptors, threads, a CPU.
    #[error("{what}: {source}")]
    Machine {
        /// The attempted operation.
        what: &'static str,
        /// The system error.
        source: io::Error,
    },
    /// The requested run is impossible.
    #[error("{0}")]
    Plan(String),
}

impl RunError {
    /// Reports whether the error happened on a connection that its text does not name.
    pub(crate) fn is_of_a_connection(&self) -> bool {
        match self {
            RunError::Closed
            | RunError::Socket(_)
            | RunError::Reply(_)
            | RunError::Protocol(_)
            | RunError::Surplus
            | RunError::Tls(_)
            | RunError::Silent { .. }
            | RunError::Untagged(_) => true,
            RunError::Connect { .. }
            | RunError::AtNode { .. }
            | RunError::Library(_)
            | RunError::Unanswered { .. }
            | RunError::Machine { .. }
            | RunError::Plan(_) => false,
        }
    }

    /// The error of a failed system call.
    pub fn machine<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> RunError {
        move |source| RunError::Machine { what, source: source.into() }
    }
}
