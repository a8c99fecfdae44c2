//! The content of the replies to CLUSTER commands, as values that the server encodes.
//!
//! | file | about |
//! |---|---|
//! | here | CLUSTER SLOTS, SHARDS, INFO, MYSHARDID; what a node sees |
//! | `nodes` | CLUSTER NODES and REPLICAS, `nodes.conf` |
//!
//! A node that is not a member of the document shows only itself: `redis-cli --cluster create`
//! requires this. There is no bus: CLUSTER LINKS is empty and CLUSTER COUNT-FAILURE-REPORTS is 0.

mod nodes;
#[cfg(test)]
mod tests;

pub use nodes::{NODES_FILE_BYTES_MAX, NodesFileError, own_id};

use crate::document::{Member, Registration, Shard, Topology};
use crate::id::{Epoch, NodeId, NodeRun, ShardId, Term};
use crate::map::{EndpointKind, client_port, endpoint};
use crate::slots::{SlotRange, SlotRanges};
use std::collections::{BTreeMap, BTreeSet};

/// Facts about a node that the document does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeState {
    /// The node has a lease.
    pub is_alive: bool,
    pub no_failover: bool,
    /// The node is loading a dataset, or its synchronization with its primary has not finished.
    pub is_loading: bool,
    /// The node's replication offset in bytes.
    pub offset: u64,
    /// The time of the last report from the node, in milliseconds since 1970.
    pub last_report_ms: u64,
}

/// The epochs that a node had as a member. A node that has left the cluster still shows them, as in
/// Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastEpochs {
    pub document: Epoch,
    /// The term of its shard.
    pub term: Term,
}

/// The health of a node, in terms of the flags in CLUSTER NODES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeHealth {
    Alive,
    /// The node has no lease, but has not failed yet: `fail?`.
    Suspected,
    /// `fail`.
    Failed,
}

/// Why a command about another node was rejected. `Display` is the error reply of Redis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("ERR Unknown node {0}")]
    UnknownNode(String),
    #[error("ERR The specified node is not a master")]
    NotPrimary,
}

/// A node's view of the cluster, for one client.
#[derive(Debug, Clone, Copy)]
pub struct ClusterView<'v> {
    pub topology: Option<&'v Topology>,
    pub own: &'v Registration,
    /// The facts about each node. A node that is missing here counts as dead; this node is always
    /// alive.
    pub node_states: &'v BTreeMap<NodeId, NodeState>,
    /// The members that have failed. Other members without a lease are suspected.
    pub failed: &'v BTreeSet<NodeId>,
    pub last_epochs: LastEpochs,
    pub endpoint: EndpointKind,
    /// The client uses TLS.
    pub is_tls: bool,
}

/// An entry of CLUSTER SLOTS: a range, its primary, then its replicas that can serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotsEntry {
    pub range: SlotRange,
    pub nodes: Vec<SlotsNode>,
}

/// A node of CLUSTER SLOTS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotsNode {
    /// `None` is the null reply: the client keeps the address that it used.
    pub endpoint: Option<String>,
    pub port: u16,
    pub id: NodeId,
    /// Names and values of the metadata array.
    pub metadata: Vec<(&'static str, String)>,
}

/// A shard of CLUSTER SHARDS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardsEntry {
    pub slots: SlotRanges,
    pub nodes: Vec<ShardsNode>,
}

/// A node of CLUSTER SHARDS, with its fields in the order of the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardsNode {
    pub id: NodeId,
    /// `port`; left out if `None`.
    pub port: Option<u16>,
    /// `tls-port`; left out if `None`.
    pub tls_port: Option<u16>,
    pub ip: String,
    pub endpoint: String,
    /// `hostname`; left out if `None`.
    pub hostname: Option<String>,
    /// `master` or `replica`.
    pub role: &'static str,
    pub replication_offset: u64,
    /// `online`, `loading` or `fail`.
    pub health: &'static str,
}

/// The fields of CLUSTER INFO that the document determines, in the order of the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterInfo {
    pub is_ok: bool,
    pub slots_assigned: usize,
    /// Slots whose primary is alive.
    pub slots_ok: usize,
    /// Slots whose primary has no lease, but has not failed yet.
    pub slots_pfail: usize,
    /// Slots whose primary has failed.
    pub slots_fail: usize,
    pub known_nodes: usize,
    /// Shards that own slots.
    pub size: usize,
    /// The epoch of the document.
    pub current_epoch: Epoch,
    /// The term of this node's shard.
    pub my_epoch: Term,
    /// The process that may serve as the primary of this node's shard. `None` if the primary was restarted and waits
    /// for a new term.
    pub primary_run: Option<NodeRun>,
    /// Migrations that are neither committed nor aborted.
    pub migrations: usize,
}

impl<'v> ClusterView<'v> {
    /// The document, if this node is a member.
    fn visible(&self) -> Option<&'v Topology> {
        self.topology.filter(|topology| topology.members.contains_key(&self.own.id))
    }

    /// The facts about a node that the document does not contain.
    fn node_state(&self, node: NodeId) -> NodeState {
        let known = self.node_states.get(&node).copied().unwrap_or_default();
        NodeState { is_alive: known.is_alive || node == self.own.id, ..known }
    }

    fn health(&self, node: NodeId) -> NodeHealth {
        if self.failed.contains(&node) {
            NodeHealth::Failed
        } else if self.node_state(node).is_alive {
            NodeHealth::Alive
        } else {
            NodeHealth::Suspected
        }
    }

    /// A member as this node shows it. For the node itself, its own settings apply even before the
    /// document contains them.
    fn member<'t>(&self, topology: &'t Topology, node: NodeId) -> Option<&'t Member>
    where
        'v: 't,
    {
        if node == self.own.id { Some(&self.own.member) } else { topology.members.get(&node) }
    }

    /// CLUSTER SLOTS. O(ranges · replicas).
    #[must_use]
    pub fn slots(&self) -> Vec<SlotsEntry> {
        let Some(topology) = self.visible() else { return Vec::new() };
        let mut entries = Vec::new();
        for shard in &topology.shards {
            let can_serve = |node: &NodeId| {
                let node_state = self.node_state(*node);
                node_state.is_alive && !node_state.is_loading
            };
            let replicas = shard.replicas.iter().copied().filter(can_serve);
            let nodes = std::iter::once(shard.primary).chain(replicas);
            let nodes: Vec<SlotsNode> =
                nodes.filter_map(|node| self.slots_node(topology, node)).collect();
            let of_range = |range: &SlotRange| SlotsEntry { range: *range, nodes: nodes.clone() };
            entries.extend(shard.slots.ranges().iter().map(of_range));
        }
        entries.sort_by_key(|entry| entry.range);
        entries
    }

    fn slots_node(&self, topology: &Topology, id: NodeId) -> Option<SlotsNode> {
        let member = self.member(topology, id)?;
        let is_unknown = self.endpoint == EndpointKind::Unknown;
        let mut metadata = Vec::new();
        if self.endpoint != EndpointKind::Ip {
            metadata.push(("ip", member.ip.clone()));
        }
        if self.endpoint != EndpointKind::Hostname && !member.host.is_empty() {
            metadata.push(("hostname", member.host.clone()));
        }
        let endpoint = (!is_unknown).then(|| endpoint(member, self.endpoint).to_owned());
        Some(SlotsNode { endpoint, port: client_port(member, self.is_tls), id, metadata })
    }

    /// CLUSTER SHARDS. O(nodes + ranges).
    #[must_use]
    pub fn shards(&self) -> Vec<ShardsEntry> {
        let Some(topology) = self.visible() else {
            let alone = self.alone();
            return vec![self.shards_entry(&alone, &alone.shards[0])];
        };
        topology.shards.iter().map(|shard| self.shards_entry(topology, shard)).collect()
    }

    fn shards_entry(&self, topology: &Topology, shard: &Shard) -> ShardsEntry {
        let nodes = shard.nodes().filter_map(|id| {
            let member = self.member(topology, id)?;
            let node_state = self.node_state(id);
            let is_primary = shard.primary == id;
            Some(ShardsNode {
                id,
                port: Some(member.port).filter(|port| *port != 0),
                tls_port: Some(member.tls).filter(|port| *port != 0),
                ip: member.ip.clone(),
                endpoint: endpoint(member, self.endpoint).to_owned(),
                hostname: Some(member.host.clone()).filter(|host| !host.is_empty()),
                role: if is_primary { "master" } else { "replica" },
                replication_offset: node_state.offset,
                health: match self.health(id) {
                    NodeHealth::Failed => "fail",
                    _ if !is_primary && node_state.is_loading => "loading",
                    _ => "online",
                },
            })
        });
        ShardsEntry { slots: shard.slots.clone(), nodes: nodes.collect() }
    }

    /// The document to show for a node that is in no document: the node alone, without slots.
    fn alone(&self) -> Topology {
        let change = crate::id::ChangeId { writer: self.own.run(), number: 0 };
        let mut alone =
            Topology { epoch: self.last_epochs.document, ..Topology::empty("", change) };
        alone.members.insert(self.own.id, self.own.member.clone());
        let mut shard = Shard::founded(self.my_shard_id(), self.own.run());
        shard.term = self.last_epochs.term;
        alone.shards.push(shard);
        alone
    }

    /// CLUSTER MYSHARDID. A node that is not a member has a shard ID that no document will contain.
    #[must_use]
    pub fn my_shard_id(&self) -> ShardId {
        let shard = self.visible().and_then(|topology| topology.shard_of(self.own.id));
        shard.map_or_else(|| ShardId::founded(self.own.id, Epoch(0)), |shard| shard.id)
    }

    /// CLUSTER INFO. `is_down` is the state of the map in force. O(nodes + ranges).
    #[must_use]
    pub fn info(&self, is_down: bool) -> ClusterInfo {
        let alone = self.alone();
        let is_member = self.visible().is_some();
        let topology = self.visible().unwrap_or(&alone);
        let with_slots = || topology.shards.iter().filter(|shard| !shard.slots.is_empty());
        let slots_of = |health| {
            let shards = with_slots().filter(move |shard| self.health(shard.primary) == health);
            shards.map(|shard| shard.slots.count()).sum()
        };
        let slots_assigned = topology.slots_assigned();
        let own = topology.shard_of(self.own.id);
        ClusterInfo {
            is_ok: is_member && !is_down,
            slots_assigned,
            slots_ok: slots_of(NodeHealth::Alive),
            slots_pfail: slots_of(NodeHealth::Suspected),
            slots_fail: slots_of(NodeHealth::Failed),
            known_nodes: topology.members.len(),
            size: with_slots().count(),
            current_epoch: topology.epoch,
            my_epoch: own.map(|shard| shard.term).unwrap_or_default(),
            primary_run: own.filter(|_| is_member).and_then(Shard::primary_run),
            migrations: topology.migrations.iter().filter(|m| m.state.is_open()).count(),
        }
    }

    /// CLUSTER COUNT-FAILURE-REPORTS: 0 for a known node. O(log nodes).
    pub fn failure_reports(&self, node: &str) -> Result<u64, ViewError> {
        let id: Option<NodeId> = node.parse().ok();
        let is_known = id.is_some_and(|id| {
            let is_member = |topology: &Topology| topology.members.contains_key(&id);
            id == self.own.id || self.visible().is_some_and(is_member)
        });
        if is_known { Ok(0) } else { Err(ViewError::UnknownNode(node.to_owned())) }
    }
}

impl ClusterInfo {
    /// The lines of the reply that Redis also has. The counts of bus messages are 0.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("cluster_state", if self.is_ok { "ok" } else { "fail" }.to_owned()),
            ("cluster_slots_assigned", self.slots_assigned.to_string()),
            ("cluster_slots_ok", self.slots_ok.to_string()),
            ("cluster_slots_pfail", self.slots_pfail.to_string()),
            ("cluster_slots_fail", self.slots_fail.to_string()),
            ("cluster_known_nodes", self.known_nodes.to_string()),
            ("cluster_size", self.size.to_string()),
            ("cluster_current_epoch", self.current_epoch.to_string()),
            ("cluster_my_epoch", self.my_epoch.to_string()),
            ("cluster_stats_messages_sent", "0".to_owned()),
            ("cluster_stats_messages_received", "0".to_owned()),
            ("total_cluster_links_buffer_limit_exceeded", "0".to_owned()),
        ]
    }
}
