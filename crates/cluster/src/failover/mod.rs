//! Failover: the decisions of the controller, and when a node may serve.
//!
//! | file | about |
//! |---|---|
//! | here | inputs and decisions |
//! | `controller` | the state machine: leases that end, the storm guard |
//! | `formation` | which nodes form the first topology |
//! | `candidates` | which replica is promoted, and whether a restarted primary may resume |
//! | `fencing` | when a primary may serve |
//! | `detector` | which members have failed, for the state of the cluster |
//!
//! Safety rests on six rules:
//! - A node serves only until its lease deadline by its own clock.
//! - A renewal counts only once the node has installed the document of the renewal's revision.
//! - A promotion because of an ended lease must not take effect if the holder has registered again and serves. So a
//!   node that registers serves only after its change [`reassert`](crate::change::reassert) was committed.
//! - After a forced promotion, the new primary waits until the lease of the previous primary must have ended. Every
//!   node of the shard records this time, in case the new primary is lost before then.
//! - A primary serves only while the document in force has the TTL of its lease or a longer one. The two waits above
//!   and below are computed from the longest TTL in the shard ([`longest_ttl_ms`]).
//! - A primary may serve without its coordinator for a limited window after it sent the data that every replica has
//!   acknowledged. A promoted replica waits for the window and a margin after the last acknowledgement that it sent.

mod candidates;
mod controller;
mod detector;
mod fencing;
mod formation;
#[cfg(test)]
mod tests;

pub use candidates::why_not_promoted;
pub use controller::{Controller, QUERY_MS_MAX, STORM_TTLS_MAX};
pub use detector::{FailureDetector, SeenNodes, failure_delay_ms};
pub use fencing::{
    CoordinatorLoss, Lease, LeaseHorizon, NewTerm, ReplicaAcks, SeenRegistration, SentAcks,
    ack_window_ms, longest_ttl_ms, margin_ms, may_serve, serves_from_ms,
};

use crate::change::{ChangeError, Edit, Promotion, correct_member, form, promote};
use crate::document::{Dataset, NodeStatus, Registration, Topology};
use crate::id::{ChangeId, NodeId, ShardId};
use std::collections::BTreeMap;

/// The settings of a controller.
#[derive(Debug, Clone, Copy)]
pub struct FailoverSettings {
    /// `cluster-node-timeout`: the time to live of leases, in milliseconds.
    pub ttl_ms: u64,
    /// `cluster-replica-validity-factor`; 0 accepts replicas no matter how old their data is.
    pub validity_factor: u64,
    /// `cluster-init-shards`; 0 forms no cluster.
    pub init_shards: usize,
    /// `cluster-init-replicas`.
    pub init_replicas: usize,
}

/// A status report and when it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedStatus {
    pub status: NodeStatus,
    /// On the controller's clock, in milliseconds.
    pub received_ms: u64,
}

/// The facts known to a controller at one moment. All times are milliseconds on the controller's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'s> {
    pub topology: Option<&'s Topology>,
    /// The nodes with a lease.
    pub registered: &'s BTreeMap<NodeId, Registration>,
    pub statuses: &'s BTreeMap<NodeId, ReceivedStatus>,
    /// When each node last replied to a ping.
    pub pongs: &'s BTreeMap<NodeId, u64>,
    pub now_ms: u64,
}

impl Situation<'_> {
    /// A node as log lines name it: its ID, and its address if it is known.
    fn label(&self, node: NodeId) -> String {
        match (self.registered.get(&node), self.topology) {
            (Some(registration), _) => registration.label(),
            (None, Some(topology)) => topology.label(node),
            (None, None) => node.to_string(),
        }
    }
}

/// The next step of a controller.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Form the cluster from the registered nodes without keys.
    Form { shards: usize, replicas: usize },
    /// A warning: the cluster is formed without this node, because it has keys. `empty` of the `wanted` nodes that are
    /// needed have no keys. Reported once per node.
    LeaveOut { node: NodeId, empty: usize, wanted: usize },
    /// Correct the address of a member.
    Correct(NodeId),
    /// Make a replica the primary. The old primary may register again before this change is committed: it serves only
    /// after a change that confirms its role ([`crate::change::reassert`]), so only one of the two changes succeeds.
    Promote(Promotion),
    /// Let a restarted primary resume, with the dataset that it has.
    Resume { promotion: Promotion, dataset: Dataset },
    /// Request status reports from these nodes, which may succeed the primary of the shard.
    Query { shard: ShardId, nodes: Vec<NodeId> },
    /// Most leases ended at the same time, so suspect the coordinator. Ping these nodes, and promote none before
    /// `until_ms`.
    AwaitStorm { until_ms: u64, ping: Vec<NodeId> },
    /// An alarm: the shard stays down until a node returns or an operator decides. Reported once per cause.
    NoCandidate { shard: ShardId, why: String },
    /// Nothing changes before this time unless an event arrives.
    WaitUntil(u64),
}

impl Decision {
    /// The document after this decision; `None` if the decision does not change the document. O(document).
    pub fn apply(&self, situation: &Situation<'_>, name: &str, change: ChangeId) -> Edit {
        let empty = || Topology::empty(name, change);
        let topology = situation.topology.cloned().unwrap_or_else(empty);
        match self {
            Decision::Form { shards, replicas } => {
                form(&topology, change, &formation::founders(situation), *shards, *replicas)
            }
            Decision::Correct(node) => match situation.registered.get(node) {
                Some(registration) => correct_member(&topology, change, registration),
                None => Err(ChangeError::UnknownNode(node.to_string())),
            },
            Decision::Promote(promotion) | Decision::Resume { promotion, .. } => {
                promote(&topology, change, promotion)
            }
            _ => Ok(None),
        }
    }
}
