//! Determines which members have failed, and so whether the cluster is down for this node.

use super::coord::QUIESCE_MAX;
use super::watcher::TopologyWatcher;
use brisk_cluster::document::Topology;
use brisk_cluster::failover::SeenNodes;
use brisk_cluster::id::NodeId;
use brisk_node::cluster::boot_ms;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl TopologyWatcher {
    /// Looks for members that have failed or come back, and puts the changed set in force. Called several times per
    /// [`failure_delay_ms`](brisk_cluster::failover::failure_delay_ms).
    pub(super) fn note_failures(&self) {
        // In a fixed topology, no node has a lease.
        if self.is_static() {
            return;
        }
        if self.failed_members() == *self.state.in_force().failed {
            return;
        }
        // If another thread is installing a document or a slow script is running, the next call tries again.
        let until = Some(Instant::now() + QUIESCE_MAX);
        let Some(document) = self.document.take(until) else { return };
        let (before, failed) = (self.state.in_force(), self.failed_members());
        let (state, new) = (self.state, failed.clone());
        let is_done =
            self.when_quiesced_within(until, false, move |_| state.set_failed(new.clone()));
        drop(document);
        if is_done {
            self.announce_failures(&before.failed, &failed);
        }
    }

    /// The members that have failed from this node's current point of view.
    fn failed_members(&self) -> BTreeSet<NodeId> {
        let (in_force, now_ms) = (self.state.in_force(), boot_ms());
        let contact_age_ms = self.state.coordinator_contact_age_ms();
        let contact_age_ms = contact_age_ms.filter(|_| self.is_watch_sound.load(Ordering::SeqCst));
        let registered = self.registered.lock().even_poisoned();
        let seen = SeenNodes {
            topology: in_force.topology.as_deref(),
            own: in_force.own.id,
            registered: &registered.nodes,
            renewed_ms: contact_age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
            now_ms,
        };
        self.failures.lock().even_poisoned().observe(&seen).clone()
    }

    /// Wakes the workers and logs the change.
    fn announce_failures(&self, before: &BTreeSet<NodeId>, failed: &BTreeSet<NodeId>) {
        // Wake idle workers so that they end blocked commands if the cluster is down.
        self.shared.mailboxes.wake_all();
        let (log, in_force) = (&self.shared.log, self.state.in_force());
        let Some(topology) = in_force.topology.as_deref() else { return };
        for node in failed.difference(before) {
            let lost = match slots_of(topology, *node) {
                0 => String::new(),
                slots => format!("; {slots} slots are not served"),
            };
            let node = topology.label(*node);
            log.warning(format_args!("Cluster: node {node} has failed: it has no lease{lost}"));
        }
        let is_member = |node: &&NodeId| topology.members.contains_key(node);
        for node in before.difference(failed).filter(is_member) {
            let node = topology.label(*node);
            log.notice(format_args!("Cluster: node {node} has a lease again"));
        }
    }
}

/// The number of slots of a primary.
fn slots_of(topology: &Topology, node: NodeId) -> usize {
    let shard = topology.shard_of(node).filter(|shard| shard.primary == node);
    shard.map_or(0, |shard| shard.slots.count())
}
