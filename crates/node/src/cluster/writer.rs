//! The services that the topology thread provides to commands: changes to the topology, and the reports of this node.

use brisk_cluster::change::{ChangeError, Edit};
use brisk_cluster::document::{Registration, Topology};
use brisk_cluster::id::{ChangeId, NodeId};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The facts from which a change is computed. If another change is committed first, the change is computed again from
/// newer facts.
#[derive(Debug, Clone, Copy)]
pub struct ChangeBasis<'b> {
    /// The current document. If there is none, an empty document with the cluster's name.
    pub topology: &'b Topology,
    /// The id that the new document will have.
    pub change: ChangeId,
    pub own: &'b Registration,
    /// The nodes with a lease, including this node.
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
    /// The change may have been committed, or may still be committed later.
    #[error("ERR outcome unknown, see CLUSTER NODES")]
    Unknown,
    /// The coordinator did not accept the change. The text has the reason.
    #[error("ERR {0}")]
    Coordinator(String),
}

/// Commits changes to the topology.
pub trait TopologyWriter: Debug + Send + Sync {
    /// Computes a change with `edit` and commits it. Returns after this node has installed the document with the
    /// change, or immediately if nothing had to change. Blocks for up to ten seconds, so it must be called on a thread
    /// that may wait.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn commit(&self, edit: &dyn Fn(&ChangeBasis<'_>) -> Edit) -> Result<(), CommitError>;

    /// Gives this node, which must not be a member, a new id. Returns after the node has registered with the new id.
    /// Blocks as [`TopologyWriter::commit`] does.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn renew_id(&self) -> Result<(), CommitError>;

    /// Removes all keys, if this node was a replica when it left its shard. Blocks as [`TopologyWriter::commit`] does.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn discard_copy(&self) -> Result<(), CommitError>;

    /// Applies changed settings to the registration of this node. Other nodes see them later. Does not wait.
    fn take_settings(&self);
}

/// Reports the status of this node to other nodes and to tools.
pub trait StatusReporter: Debug + Send + Sync {
    /// The current status as JSON. Does not wait.
    fn status(&self) -> Vec<u8>;

    /// The facts that this node has from its coordinator, as JSON. Does not wait.
    fn coordinator_report(&self) -> Vec<u8>;

    /// Reports whether this replica has a full copy of its shard's dataset. The copy may be old, but it has not been
    /// partly replaced by a later copy. Does not wait.
    fn has_full_copy(&self) -> bool;
}
