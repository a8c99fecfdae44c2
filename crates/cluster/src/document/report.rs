//! The values that nodes publish in addition to the document.

use super::{DocumentError, Member};
use crate::id::{Incarnation, NodeId, NodeRun, Term};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Maximum bytes of a registration or a status report.
pub const REPORT_BYTES_MAX: usize = 16 << 10;

/// The value stored with a node's lease: the node is running, and this is its address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    pub id: NodeId,
    #[serde(serialize_with = "write_incarnation", deserialize_with = "read_incarnation")]
    pub incarnation: Incarnation,
    pub version: String,
    pub member: Member,
    /// `cluster-replica-no-failover`.
    #[serde(default)]
    pub no_failover: bool,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The report that a node publishes about itself every few seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    #[serde(serialize_with = "write_incarnation", deserialize_with = "read_incarnation")]
    pub incarnation: Incarnation,
    pub role: NodeRole,
    /// The term of this primary, or of the primary whose stream this replica has received last.
    pub term: Term,
    /// The id of the replication history; empty before the first.
    pub replid: String,
    /// The offset in that history, in bytes.
    pub offset: u64,
    /// True while a dataset is being loaded or a full synchronization is running.
    #[serde(default)]
    pub loading: bool,
    /// Milliseconds between the last contact of a replica with its primary and the report; `None` if this process has
    /// had no contact.
    #[serde(default)]
    pub last_contact_ms: Option<u64>,
    /// Where the dataset of this process came from. [`Dataset::Empty`] means that the node has no keys.
    #[serde(default)]
    pub dataset: Dataset,
    /// True if CLUSTER FAILOVER FORCE can promote this replica, since it has a full copy of its shard's dataset.
    /// Older versions do not report it.
    #[serde(default)]
    pub full_copy: bool,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The role in which a node acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    Primary,
    #[default]
    Replica,
}

/// Where the dataset of a process came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dataset {
    /// There was no dataset.
    #[default]
    Empty,
    /// Loaded from the snapshot or the append-only file, or received from another node since then.
    Disk,
}

/// The state of a registered node's dataset, according to its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeContents {
    /// The process has not reported yet, or is still loading.
    Loading,
    Empty,
    Keys,
}

impl NodeContents {
    /// The contents of a node according to its last report, which may be that of an earlier process.
    #[must_use]
    pub fn reported(status: Option<&NodeStatus>, node: &Registration) -> NodeContents {
        match status.filter(|status| status.incarnation == node.incarnation) {
            None | Some(NodeStatus { loading: true, .. }) => NodeContents::Loading,
            Some(NodeStatus { dataset: Dataset::Empty, .. }) => NodeContents::Empty,
            Some(NodeStatus { dataset: Dataset::Disk, .. }) => NodeContents::Keys,
        }
    }

    /// The contents in one word, as INFO shows them.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            NodeContents::Loading => "loading",
            NodeContents::Empty => "empty",
            NodeContents::Keys => "keys",
        }
    }
}

impl Registration {
    /// This node as log lines name it.
    #[must_use]
    pub fn label(&self) -> String {
        self.member.label(self.id)
    }

    /// The run that is registered.
    #[must_use]
    pub fn run(&self) -> NodeRun {
        NodeRun { node: self.id, incarnation: self.incarnation }
    }

    /// Reads a registration. O(bytes).
    pub fn parse(json: &[u8]) -> Result<Registration, DocumentError> {
        parse(json)
    }

    /// The registration as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        write(self)
    }
}

impl NodeStatus {
    /// Reads a report. O(bytes).
    pub fn parse(json: &[u8]) -> Result<NodeStatus, DocumentError> {
        parse(json)
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        write(self)
    }
}

fn parse<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Result<T, DocumentError> {
    if json.len() > REPORT_BYTES_MAX {
        return Err(DocumentError::TooLarge(json.len()));
    }
    serde_json::from_slice(json).map_err(|error| DocumentError::Syntax(error.to_string()))
}

fn write<T: Serialize>(report: &T) -> Result<Vec<u8>, DocumentError> {
    serde_json::to_vec(report).map_err(|error| DocumentError::Syntax(error.to_string()))
}

fn write_incarnation<S: Serializer>(run: &Incarnation, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(run)
}

fn read_incarnation<'j, D: Deserializer<'j>>(from: D) -> Result<Incarnation, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}
