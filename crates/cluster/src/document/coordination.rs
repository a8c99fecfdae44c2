//! The facts that a node has from its coordinator. `brisk-cli --cluster status` reads them to show nodes that are in no
//! shard.

use super::{DOCUMENT_BYTES_MAX, DocumentError, Member, NodeContents};
use crate::id::NodeId;
use serde::{Deserialize, Serialize};

/// Maximum number of nodes that [`CoordinatorReport::unassigned`] and INFO show.
pub const UNASSIGNED_MAX: usize = 100;

/// The facts that a node has from its coordinator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CoordinatorReport {
    /// `cluster-name`.
    pub cluster: String,
    /// `cluster-coordinator`.
    pub coordinator: String,
    /// The node that decides about failovers.
    pub controller: Option<NodeId>,
    /// Number of nodes that are registered.
    pub registered: usize,
    /// Number of nodes that this node waits for before a cluster is formed. 0: no cluster is formed automatically.
    pub forms_with: u64,
    /// There is a topology.
    pub has_topology: bool,
    /// The topology contains this node.
    pub is_member: bool,
    /// Registered nodes that the topology does not contain, at most [`UNASSIGNED_MAX`].
    #[serde(default, rename = "outside")]
    pub unassigned: Vec<UnassignedNode>,
    /// A registered member.
    pub contact: Option<Member>,
    /// The coordinator had a topology and has lost it.
    pub is_lost: bool,
    /// Why this node has rejected the newest topology.
    pub rejection: Option<String>,
}

/// A registered node that is in no shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnassignedNode {
    pub id: NodeId,
    pub member: Member,
    pub contents: NodeContents,
}

impl CoordinatorReport {
    /// Reads a report. O(bytes).
    pub fn parse(json: &[u8]) -> Result<CoordinatorReport, DocumentError> {
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge(json.len()));
        }
        serde_json::from_slice(json).map_err(|error| DocumentError::Syntax(error.to_string()))
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        serde_json::to_vec(self).map_err(|error| DocumentError::Syntax(error.to_string()))
    }
}
