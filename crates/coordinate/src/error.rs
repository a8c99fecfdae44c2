//! The errors of coordinators. Each says what happened, where, and what to do.

use crate::values::{Incarnation, NodeId, NodeRegistration};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Why a call to a coordinator failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CoordinatorError {
    /// Another thread called [`stop`](crate::Coordinator::stop).
    #[error("the coordinator was stopped")]
    Stopped,
    /// No response arrived in time. A request that writes may have been applied.
    #[error("no response from the coordinator within {} ms ({what})", limit.as_millis())]
    TimedOut { what: String, limit: Duration },
    /// No request was sent: no connection could be made.
    #[error("the coordinator is unreachable: {0}")]
    Unreachable(String),
    /// The connection ended before the response arrived. A request that writes may have been
    /// applied.
    #[error("the connection to the coordinator was lost: {0}")]
    ConnectionLost(String),
    /// etcd has no leader, or no quorum. A request that writes may still be applied.
    #[error("etcd has no leader: {0}")]
    NoLeader(String),
    /// The lease has ended, or another process has registered the same node id.
    #[error("the lease has expired")]
    LeaseLost,
    /// A live process with another incarnation has registered this node id. `details` are those of its registration.
    #[error(
        "node {node} is registered by another process (incarnation {incarnation}): \
         give each node its own cluster-config-file"
    )]
    NodeIdTaken { node: NodeId, incarnation: Incarnation, details: Vec<u8> },
    /// The coordinator accepts no changes until an operator frees space. etcd has applied the
    /// request that exceeded its quota, and reports this error for that request too.
    #[error(
        "etcd is frozen by a NOSPACE alarm: compact and defragment it, then run `etcdctl alarm disarm`"
    )]
    NoSpace,
    /// The user, the password or the certificate was rejected, or lacks a permission.
    #[error("etcd rejects the credentials: {0}")]
    Unauthorized(String),
    /// This version of etcd loses data or lacks what Brisk needs.
    #[error("etcd {version} at {endpoint} is not supported: {why}")]
    UnsupportedVersion { endpoint: String, version: String, why: &'static str },
    /// The JSON gateway of etcd is switched off.
    #[error(
        "{endpoint} has no JSON gateway: start etcd with --enable-grpc-gateway=true, \
         and check that the address is one of --listen-client-urls"
    )]
    NoGateway { endpoint: String },
    /// etcd's gateway rejects client certificates that have a common name.
    #[error(
        "etcd's JSON gateway rejects the client certificate because its subject has a common name \
         (CN): use a certificate without one"
    )]
    CommonName,
    /// A response was not understood.
    #[error("a response from {endpoint} was not understood: {why}")]
    InvalidResponse { endpoint: String, why: String },
    /// etcd rejected the request.
    #[error("etcd rejected the request: {0}")]
    Rejected(String),
    /// A file does not have the expected content. Nothing was changed.
    #[error("{} is damaged: {why}. Nothing was changed. {advice}", path.display())]
    Damaged { path: PathBuf, why: String, advice: String },
    /// File locks and renames of a network file system cannot be relied on.
    #[error(
        "{} is on {kind}: local: needs a file system of this machine, since it relies on file locks; \
         use etcd:// for nodes on several machines", path.display()
    )]
    NetworkFileSystem { path: PathBuf, kind: &'static str },
    /// Another process has held the lock of the directory for too long.
    #[error(
        "another process has locked {} for more than {} ms", path.display(), limit.as_millis()
    )]
    Locked { path: PathBuf, limit: Duration },
    /// A file operation failed.
    #[error("cannot {action} {}: {error}", path.display())]
    File { action: &'static str, path: PathBuf, error: Arc<io::Error> },
    /// A value exceeds its size limit.
    #[error("the {what} has {bytes} bytes, {max} are allowed")]
    TooLarge { what: &'static str, bytes: usize, max: usize },
    /// More nodes are registered than a cluster can have.
    #[error("more than {max} nodes are registered")]
    TooManyNodes { max: usize },
    /// A topology from a file cannot be changed.
    #[error("the topology comes from a file (static:) and cannot be changed")]
    ReadOnly,
    /// The files for TLS cannot be used.
    #[error("TLS for etcd: {0}")]
    Tls(String),
}

impl CoordinatorError {
    /// The error of a process whose node ID has this registration of another process.
    pub(crate) fn taken_by(other: NodeRegistration) -> CoordinatorError {
        let NodeRegistration { node, incarnation, details } = other;
        CoordinatorError::NodeIdTaken { node, incarnation, details }
    }

    /// The error of a file operation.
    pub(crate) fn file(action: &'static str, path: &Path, error: io::Error) -> CoordinatorError {
        CoordinatorError::File { action, path: path.to_owned(), error: Arc::new(error) }
    }
}
