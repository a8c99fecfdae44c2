//! The status report of this node, and the state of all nodes.

use super::identity::node_id;
use super::role;
use super::watcher::TopologyWatcher;
use brisk_cluster::document::{
    Dataset, NodeContents, NodeRole, NodeStatus, Registration, UNASSIGNED_MAX, UnassignedNode,
};
use brisk_cluster::id::{NodeId, ShardId, Term};
use brisk_cluster::map::MapRole;
use brisk_cluster::view::NodeState;
use brisk_coordinate::error::CoordinatorError;
use brisk_node::cluster::{StatusReporter, boot_ms};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeMap;

/// The last contact of this process with the primary of a shard, on the clock of [`boot_ms`].
#[derive(Debug, Clone, Copy)]
pub(super) struct LastContact {
    shard: ShardId,
    /// The term of the primary whose stream this node has received last.
    term: Term,
    at_ms: u64,
}

impl StatusReporter for TopologyWatcher {
    fn status(&self) -> Vec<u8> {
        // A report has a fixed form and always fits.
        self.node_status().to_json().unwrap_or_default()
    }

    fn coordinator_report(&self) -> Vec<u8> {
        // The number of nodes is bounded, so the report always fits.
        self.build_coordinator_report().to_json().unwrap_or_default()
    }

    fn has_full_copy(&self) -> bool {
        self.node_status().full_copy
    }
}

impl TopologyWatcher {
    /// The current report of this node.
    pub(super) fn node_status(&self) -> NodeStatus {
        let shared = self.shared;
        self.note_contact();
        let in_force = self.state.in_force();
        let own = in_force.map.own_shard();
        let is_replica = shared.conditions.is_replica();
        let upstream = &shared.replication.upstream;
        let is_copying = upstream.is_copying();
        let contact = *self.contact.lock().even_poisoned();
        let contact =
            contact.filter(|contact| own.is_some_and(|(shard, _)| shard == contact.shard));
        let (replid, offset) = shared.replication.position(&shared.keyspace);
        let has_data = contact.is_some() || shared.keyspace.has_keys();
        let at_start = *self.shard_at_start.lock().even_poisoned();
        let is_same_shard = own.is_some_and(|(shard, _)| Some(shard) == at_start);
        // A replica that has not reached the primary of a new term lacks the writes of that term.
        let received = contact.filter(|_| is_replica).map(|contact| contact.term);
        // A copy that is still being received does not count, but the dataset that it will replace does.
        let is_whole = !role::is_loading(shared) && !upstream.is_partial();
        NodeStatus {
            incarnation: self.state.run().incarnation,
            role: if is_replica { NodeRole::Replica } else { NodeRole::Primary },
            term: received.or(own.map(|(_, term)| term)).unwrap_or_default(),
            replid,
            offset,
            loading: role::is_loading(shared) || (is_replica && is_copying),
            last_contact_ms: contact.map(|contact| boot_ms().saturating_sub(contact.at_ms)),
            dataset: if has_data { Dataset::Disk } else { Dataset::Empty },
            full_copy: is_whole && (contact.is_some() || (is_same_shard && has_data)),
            other: Default::default(),
        }
    }

    /// Notes when the last byte from the primary arrived. It counts only for the current shard, because data of another
    /// shard is no reason to promote this node.
    pub(super) fn note_contact(&self) {
        let shared = self.shared;
        let upstream = &shared.replication.upstream;
        let in_force = self.state.in_force();
        let Some((shard, term)) = in_force.map.own_shard() else { return };
        // A node that returns to a shard first has to follow the shard's primary.
        let mut contact = self.contact.lock().even_poisoned();
        *contact = contact.filter(|contact| contact.shard == shard);
        if let Some(contact) = contact.as_mut().filter(|_| in_force.map.role() == MapRole::Primary)
        {
            contact.term = term;
        }
        drop(contact);
        let is_following =
            in_force.map.role() == MapRole::Replica && !role::differs(shared, self.state);
        if !is_following || !upstream.has_been_up() {
            return;
        }
        let age_ms = unix_ms().saturating_sub(upstream.last_io_ms());
        let at_ms = boot_ms().saturating_sub(age_ms);
        let mut contact = self.contact.lock().even_poisoned();
        let before = contact.filter(|contact| contact.shard == shard);
        let at_ms = before.map_or(at_ms, |before| before.at_ms.max(at_ms));
        let term = before.filter(|_| !upstream.is_up()).map_or(term, |before| before.term);
        *contact = Some(LastContact { shard, term, at_ms });
    }

    /// Reads the reports of all nodes.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    pub(super) fn read_statuses(&self) -> Result<BTreeMap<NodeId, NodeStatus>, CoordinatorError> {
        let statuses = self.coordinator.statuses()?;
        let parsed = statuses.iter().filter_map(|found| {
            Some((node_id(found.node)?, NodeStatus::parse(&found.status).ok()?))
        });
        Ok(parsed.collect())
    }

    /// Publishes the state of the nodes for CLUSTER NODES and similar commands. `statuses` are the last reports, each
    /// with its arrival time in Unix ms.
    pub(super) fn publish_node_states(&self, statuses: &BTreeMap<NodeId, (NodeStatus, u64)>) {
        if self.is_static() {
            return self.set_all_alive();
        }
        let node_state = |(id, node): (&NodeId, &Registration)| {
            let report =
                statuses.get(id).filter(|(status, _)| status.incarnation == node.incarnation);
            let (is_loading, offset, last_report_ms) = match report {
                Some((status, at_ms)) => (status.loading, status.offset, *at_ms),
                None => (false, 0, 0),
            };
            let no_failover = node.no_failover;
            (*id, NodeState { is_alive: true, no_failover, is_loading, offset, last_report_ms })
        };
        let registered = self.registered();
        self.state.set_node_states(registered.iter().map(node_state).collect());
        let in_force = self.state.in_force();
        let is_member = |id: &NodeId| {
            in_force.topology.as_deref().is_some_and(|topology| topology.members.contains_key(id))
        };
        let unassigned = registered.iter().filter(|(id, _)| !is_member(id)).take(UNASSIGNED_MAX);
        let unassigned = unassigned.map(|(id, node)| UnassignedNode {
            id: *id,
            member: node.member.clone(),
            contents: NodeContents::reported(statuses.get(id).map(|(status, _)| status), node),
        });
        self.state.set_unassigned(unassigned.collect());
    }
}
