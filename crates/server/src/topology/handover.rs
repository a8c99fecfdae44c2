//! Hands over the shard of a primary that shuts down, unless a planned switch has already done so. This happens after
//! SHUTDOWN NOW, and if no replica had received every write within `shutdown-timeout`.
//!
//! A planned switch needs workers that hold commands back, and a replica that has every write. Here, the workers have
//! already ended, and the replica that has received most of the stream is promoted. Otherwise the controller would do
//! the same after the lease has ended. But the new primary would then have to wait until its acknowledgements have
//! expired, because it could not know that this node no longer serves.

use super::query;
use super::watcher::TopologyWatcher;
use brisk_cluster::change::{Promotion, promote};
use brisk_cluster::document::{Durability, Member, Shard, TermCause};
use brisk_cluster::id::{NodeId, NodeRun};
use brisk_cluster::map::MapRole;
use brisk_node::cluster::{ChangeBasis, CoordinatorState};
use std::time::Duration;

/// The time limit for the change. If it passes, the controller promotes a replica after the lease has ended.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

impl TopologyWatcher {
    /// Makes a replica the primary of the shard that this node serves. The workers have ended.
    pub(super) fn hand_over(&self) {
        let state = self.state;
        let in_force = state.in_force();
        // A primary that waits after its promotion is fenced, because an earlier primary may still serve.
        let serves = in_force.map.role() == MapRole::Primary && !state.is_fenced();
        let is_reached = state.coordinator() == CoordinatorState::Ok;
        if !self.has_expiring_leases() || !serves || !is_reached {
            return;
        }
        let topology = in_force.topology.as_deref();
        let Some(shard) = topology.and_then(|topology| topology.shard_of(in_force.map.own()))
        else {
            return;
        };
        let Some((to, offset)) = self.successor(shard) else { return };
        let promotion = Promotion {
            shard: shard.id,
            expected_term: shard.term,
            to,
            cause: TermCause::Planned,
            why: format!("{} was shut down; offset {offset}", in_force.own.label()),
        };
        let edit = |basis: &ChangeBasis<'_>| promote(basis.topology, basis.change, &promotion);
        let (log, node) = (&self.shared.log, in_force.label(to.node));
        match self.commit_within(HAND_OVER_MAX, &edit) {
            Ok(()) => {
                log.notice(format_args!("Cluster: handing over shard {} to {node}", shard.id))
            }
            Err(error) => log.warning(format_args!(
                "Cluster: shard {} was not handed over to {node}: {error}",
                shard.id
            )),
        }
    }

    /// The replica that has received most of this node's stream, and its offset.
    fn successor(&self, shard: &Shard) -> Option<(NodeRun, u64)> {
        let (shared, registered) = (self.shared, self.registered());
        let is_fit = |run: NodeRun, no_failover: bool| {
            !no_failover && (shard.durability != Durability::Sync || shard.isr.contains(&run))
        };
        let nodes = shard.replicas.iter().filter_map(|id| registered.get(id));
        let nodes = nodes.filter(|node| is_fit(node.run(), node.no_failover));
        let addresses: Vec<(NodeId, Member)> =
            nodes.map(|node| (node.id, node.member.clone())).collect();
        let (replid, _) = shared.replication.position(&shared.keyspace);
        let found = query::statuses(&shared.config(), &addresses).into_iter();
        let found = found.filter(|(id, status)| {
            let is_registered =
                registered.get(id).is_some_and(|node| node.incarnation == status.incarnation);
            is_registered && !status.loading && status.replid == replid
        });
        let (id, status) = found.max_by_key(|(_, status)| status.offset)?;
        Some((NodeRun { node: id, incarnation: status.incarnation }, status.offset))
    }
}
