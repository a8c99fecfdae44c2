//! The topology document: which nodes exist, which shard owns which slots, and which node is the primary of each shard.
//!
//! | file | about |
//! |---|---|
//! | here | the document's types, JSON |
//! | `check` | the rules of a document by itself, and compared with the document in force |
//! | `coordination` | the facts that a node has from its coordinator |
//! | `report` | the values that nodes publish in addition to the document: registrations and status reports |
//!
//! The document is the only source of truth about the cluster. A coordinator stores it under one key; every change
//! replaces it as a whole. A change preserves fields that this version does not know.

mod check;
mod coordination;
mod report;

pub use check::{DocumentError, InstallError, check, check_installation};
pub use coordination::{CoordinatorReport, UNASSIGNED_MAX, UnassignedNode};
pub use report::{Dataset, NodeContents, NodeRole, NodeStatus, REPORT_BYTES_MAX, Registration};

use crate::id::{ChangeId, Epoch, MigrationId, NodeId, NodeRun, ShardId, Term};
use crate::slots::SlotRanges;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format that this version reads and writes.
pub const FORMAT: u64 = 1;
/// Maximum bytes of a document. etcd accepts requests of up to 1.5 MiB by default, and base64 in its JSON gateway adds
/// a third.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of nodes of a cluster, which is the maximum recommended for Redis Cluster.
pub const MEMBERS_MAX: usize = 1_000;
/// Maximum number of migrations that the document keeps, including finished ones.
pub const MIGRATIONS_MAX: usize = 256;
/// Maximum number of IDs of removed nodes that the document keeps.
pub const REMOVED_MAX: usize = 1_000;
/// Maximum bytes of an address or a host name: the longest name that DNS allows.
pub const HOST_BYTES_MAX: usize = 255;
/// Maximum bytes of a zone, of a node's name and of the cluster's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum TTL of a lease, in seconds. A node does not request more.
pub const TTL_SECONDS_MAX: u64 = 3_600;
/// Maximum bytes of a reason.
pub const REASON_BYTES_MAX: usize = 256;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// See [`FORMAT`].
    pub format: u64,
    /// `cluster-name`. A document without a name matches every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub epoch: Epoch,
    /// The change that made this version.
    pub change: ChangeId,
    #[serde(default)]
    pub members: BTreeMap<NodeId, Member>,
    #[serde(default)]
    pub shards: Vec<Shard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<Migration>,
    /// Nodes that were removed, each with the Unix time of its removal in seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<NodeId, u64>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Where clients and other nodes reach a member, where it runs, and how long its lease lives.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Member {
    pub ip: String,
    /// The port without TLS; 0 if there is none.
    #[serde(default)]
    pub port: u16,
    /// The port with TLS; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls: u16,
    /// `cluster-announce-bus-port`; if it is 0, clients are shown the port plus 10,000.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bus: u16,
    /// `cluster-announce-hostname`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// `cluster-zone`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// `cluster-announce-human-nodename`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The TTL of its lease in seconds, from its `cluster-node-timeout`; 0 if it is unknown. A member serves as a
    /// primary only while the document in force has its TTL or a longer one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ttl: u64,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// A primary, its replicas and their slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shard {
    pub id: ShardId,
    #[serde(default)]
    pub slots: SlotRanges,
    /// The term of the primary. Within a term the primary does not change.
    pub term: Term,
    pub primary: NodeId,
    /// The runs that are in sync, including the primary's. A primary whose run is missing was restarted and may not
    /// serve. With [`Durability::Async`], the primary's run is the only one.
    #[serde(default)]
    pub isr: Vec<NodeRun>,
    #[serde(default)]
    pub replicas: Vec<NodeId>,
    #[serde(default)]
    pub durability: Durability,
    /// How the primary became the primary of this term.
    #[serde(default)]
    pub cause: TermCause,
    /// The cause in words, for operators.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The longest TTL, in seconds, of the nodes that CLUSTER FORGET has removed from this shard since its primary last
    /// served; 0 if there are none. A removed node may be an earlier primary whose lease is still valid.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub former_ttl: u64,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Once the primary has executed the write.
    #[default]
    Async,
    /// Once every run of the in-sync set has received the write.
    Sync,
}

/// How a node became the primary of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TermCause {
    /// The node founded the shard.
    #[default]
    Founded,
    /// The lease of the previous primary ended.
    Failover,
    /// The previous primary handed over.
    Planned,
    /// An operator forced the change, with FORCE or TAKEOVER. The lease of the previous primary may still be valid.
    Forced,
    /// The node was the primary and was restarted, and no other node could take over.
    Resumed,
}

/// The migration of slots from one shard to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    pub id: MigrationId,
    pub slots: SlotRanges,
    /// The shard that owns the slots until the migration is committed.
    pub src: ShardId,
    pub dst: ShardId,
    /// The terms of both shards at the beginning of the migration. A new term of either shard aborts it.
    pub src_term: Term,
    pub dst_term: Term,
    pub state: MigrationState,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MigrationState {
    Prepare,
    Streaming,
    Committed,
    Done,
    Aborted,
}

impl MigrationState {
    /// True while the migration may still be committed or aborted.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, MigrationState::Prepare | MigrationState::Streaming)
    }
}

/// The epoch that a document states, even if the document is otherwise not valid. O(bytes).
#[must_use]
pub fn stated_epoch(json: &[u8]) -> Option<Epoch> {
    let document: Value = serde_json::from_slice(json).ok()?;
    document.get("epoch")?.as_u64().map(Epoch)
}

impl Topology {
    /// The document before the first change: no nodes, epoch 0.
    #[must_use]
    pub fn empty(name: &str, change: ChangeId) -> Topology {
        Topology {
            format: FORMAT,
            name: Some(name.to_owned()),
            epoch: Epoch::default(),
            change,
            members: BTreeMap::new(),
            shards: Vec::new(),
            migrations: Vec::new(),
            removed: BTreeMap::new(),
            other: Map::new(),
        }
    }

    /// Reads a document and checks the rules that apply to every document. O(bytes).
    pub fn parse(json: &[u8]) -> Result<Topology, DocumentError> {
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge(json.len()));
        }
        let format = serde_json::from_slice::<FormatOnly>(json);
        let format = format.map_err(|error| DocumentError::Syntax(error.to_string()))?.format;
        if format != FORMAT {
            return Err(DocumentError::Format(format));
        }
        let topology: Topology = serde_json::from_slice(json)
            .map_err(|error| DocumentError::Syntax(error.to_string()))?;
        check(&topology)?;
        Ok(topology)
    }

    /// The document as JSON. O(size).
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        let json =
            serde_json::to_vec(self).map_err(|error| DocumentError::Syntax(error.to_string()))?;
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge(json.len()));
        }
        Ok(json)
    }

    /// The shard with this id. O(shards).
    #[must_use]
    pub fn shard(&self, id: ShardId) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.id == id)
    }

    /// The shard that a node belongs to, as its primary or a replica. O(nodes).
    #[must_use]
    pub fn shard_of(&self, node: NodeId) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.has(node))
    }

    /// A node as log lines name it: its ID, and its address if it is a member.
    #[must_use]
    pub fn label(&self, node: NodeId) -> String {
        self.members.get(&node).map_or_else(|| node.to_string(), |member| member.label(node))
    }

    /// The number of slots that have an owner. O(ranges).
    #[must_use]
    pub fn slots_assigned(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.count()).sum()
    }
}

/// The format of a document. It is read before the rest, because a newer format may look different.
#[derive(Deserialize)]
struct FormatOnly {
    format: u64,
}

impl Shard {
    /// A new shard without replicas, with `primary` in its first term.
    #[must_use]
    pub fn founded(id: ShardId, primary: NodeRun) -> Shard {
        Shard {
            id,
            slots: SlotRanges::default(),
            term: Term::FIRST,
            primary: primary.node,
            isr: vec![primary],
            replicas: Vec::new(),
            durability: Durability::default(),
            cause: TermCause::Founded,
            why: String::new(),
            former_ttl: 0,
            other: Map::new(),
        }
    }

    /// True if the node is the primary or a replica.
    #[must_use]
    pub fn has(&self, node: NodeId) -> bool {
        self.primary == node || self.replicas.contains(&node)
    }

    /// True if a node other than the primary may have been the primary before: there are replicas, or CLUSTER FORGET
    /// has removed one since the primary last served.
    #[must_use]
    pub const fn has_or_had_replicas(&self) -> bool {
        !self.replicas.is_empty() || self.former_ttl > 0
    }

    /// The primary and the replicas.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.primary).chain(self.replicas.iter().copied())
    }

    /// The run of the primary that may serve; `None` if the in-sync set contains no run of the primary.
    #[must_use]
    pub fn primary_run(&self) -> Option<NodeRun> {
        self.isr.iter().copied().find(|run| run.node == self.primary)
    }
}

impl Member {
    /// The address for log lines: that of the port without TLS if there is one.
    #[must_use]
    pub fn address(&self) -> String {
        let port = if self.port == 0 { self.tls } else { self.port };
        if self.ip.contains(':') {
            format!("[{}]:{port}", self.ip)
        } else {
            format!("{}:{port}", self.ip)
        }
    }

    /// The node `id` at this address, as log lines name it.
    #[must_use]
    pub fn label(&self, id: NodeId) -> String {
        format!("{id} ({})", self.address())
    }

    /// The port that CLUSTER NODES shows after `@`. 0 if the default would exceed the highest port number.
    #[must_use]
    pub fn bus_port(&self) -> u16 {
        /// Redis's offset from the port of a node to the port of its bus.
        const BUS_OFFSET: u16 = 10_000;
        let port = if self.port == 0 { self.tls } else { self.port };
        if self.bus == 0 { port.checked_add(BUS_OFFSET).unwrap_or(0) } else { self.bus }
    }

    /// True if both members have the same address, zone and names. The TTL does not count.
    #[must_use]
    pub fn is_same_place(&self, other: &Member) -> bool {
        let ports = |member: &Member| (member.port, member.tls, member.bus);
        let names = [
            (&self.ip, &other.ip),
            (&self.host, &other.host),
            (&self.zone, &other.zone),
            (&self.name, &other.name),
        ];
        ports(self) == ports(other) && names.iter().all(|(own, other)| own == other)
    }
}

#[cfg(test)]
pub(crate) mod tests;
