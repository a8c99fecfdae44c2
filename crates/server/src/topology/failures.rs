//! Which members have failed: this decides whether the cluster is down for this node.

use super::follower::TopologyFollower;
use brisk_cluster::document::Topology;
use brisk_cluster::failover::SeenNodes;
use brisk_cluster::id::NodeId;
use brisk_node::cluster::boot_ms;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeSet;

impl TopologyFollower {
    /// Looks for members that have failed or come back, and puts them in force. Called several times per
    /// [`failure_delay_ms`](brisk_cluster::failover::failure_delay_ms).
    pub(super) fn note_failures(&self) {
        // No node of a fixed topology has a lease.
        if self.is_static() {
            return;
        }
        let (in_force, now_ms) = (self.state.in_force(), boot_ms());
        let contact_age_ms = self.state.coordinator_contact_age_ms();
        let failed = {
            let registered = self.registered.lock().even_poisoned();
            let seen = SeenNodes {
                topology: in_force.topology.as_deref(),
                own: in_force.own.id,
                registered: &registered,
                renewed_ms: contact_age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
                now_ms,
            };
            let mut failures = self.failures.lock().even_poisoned();
            let failed = failures.observe(&seen);
            if *failed == *in_force.failed {
                return;
            }
            failed.clone()
        };
        self.put_failed(&in_force.failed, failed);
    }

    fn put_failed(&self, before: &BTreeSet<NodeId>, failed: BTreeSet<NodeId>) {
        // No document is installed meanwhile.
        let document = self.document.take(None);
        let (state, new) = (self.state, failed.clone());
        let is_done = self.when_quiesced(true, move |_| state.set_failed(new.clone()));
        drop(document);
        if !is_done {
            return;
        }
        // Idle workers end waits of a cluster that is down.
        self.shared.mailboxes.wake_all();
        let (log, in_force) = (&self.shared.log, self.state.in_force());
        let Some(topology) = in_force.topology.as_deref() else { return };
        for node in failed.difference(before) {
            let lost = match slots_of(topology, *node) {
                0 => String::new(),
                slots => format!("; {slots} slots are not served"),
            };
            log.warning(format_args!("Cluster: node {node} has failed: it has no lease{lost}"));
        }
        let is_member = |node: &&NodeId| topology.members.contains_key(node);
        for node in before.difference(&failed).filter(is_member) {
            log.notice(format_args!("Cluster: node {node} has a lease again"));
        }
    }
}

/// The number of slots of a primary.
fn slots_of(topology: &Topology, node: NodeId) -> usize {
    let shard = topology.shard_of(node).filter(|shard| shard.primary == node);
    shard.map_or(0, |shard| shard.slots.count())
}
