//! The services of the topology thread for commands: changes of the topology, and the report of this node.

use brisk_cluster::change::{ChangeError, Edit};
use brisk_cluster::document::{Registration, Topology};
use brisk_cluster::id::{ChangeId, NodeId};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The facts that a change is computed from. If another change comes first, the change is computed again from
/// newer facts.
#[derive(Debug, Clone, Copy)]
pub struct ChangeBasis<'b> {
    /// The document; without one, the empty document of the cluster's name.
    pub topology: &'b Topology,
    /// The id that the new document carries.
    pub change: ChangeId,
    pub own: &'b Registration,
    /// The nodes with a lease, this node among them.
    pub registered: &'b BTreeMap<NodeId, Registration>,
    /// Unix time in seconds.
    pub now_s: u64,
}

/// Why a change was not committed. `Display` is the error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The change is not possible.
    #[error(transparent)]
    Refused(#[from] ChangeError),
    /// It may have been committed, or may still be.
    #[error("ERR outcome unknown, see CLUSTER NODES")]
    Unknown,
    /// The coordinator did not accept it; the text says why.
    #[error("ERR {0}")]
    Coordinator(String),
}

/// Commits changes of the topology.
pub trait TopologyWriter: Debug + Send + Sync {
    /// Computes a change with `edit` and commits it. Returns after this node has installed the document with the
    /// change, or at once if nothing had to change. Blocks for at most ten seconds: call it on a thread that may
    /// wait.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn commit(&self, edit: &dyn Fn(&ChangeBasis<'_>) -> Edit) -> Result<(), CommitError>;

    /// Gives this node, which is no member, a new id. Returns after the node has registered with it. Blocks as
    /// [`TopologyWriter::commit`] does.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn renew_id(&self) -> Result<(), CommitError>;

    /// Takes changed settings into the registration of this node. Other nodes see them later. Does not wait.
    fn take_settings(&self);
}

/// Reports the status of this node to other nodes.
pub trait StatusReporter: Debug + Send + Sync {
    /// The current status as JSON. Does not wait.
    fn status(&self) -> Vec<u8>;

    /// Reports whether the dataset of this replica is a full copy of its shard's, if an old one: no later copy has
    /// replaced a part of it. Does not wait.
    fn has_full_copy(&self) -> bool;
}
