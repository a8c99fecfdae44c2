//! The facts that this node has from its coordinator, for `brisk-cli --cluster status`.

use super::watcher::TopologyWatcher;
use brisk_cluster::document::{CoordinatorReport, InstallError, Registration};

impl TopologyWatcher {
    /// The report. O(nodes).
    pub(super) fn build_coordinator_report(&self) -> CoordinatorReport {
        let config = self.shared.config();
        let cluster = &config.cluster;
        let count = |number: i64| number.max(0).unsigned_abs();
        let (shards, replicas) =
            (count(cluster.cluster_init_shards), count(cluster.cluster_init_replicas));
        let in_force = self.state.in_force();
        let topology = in_force.topology.as_deref();
        let is_member = |node: &&Registration| {
            topology.is_some_and(|topology| topology.members.contains_key(&node.id))
        };
        let registered = self.registered();
        let rejection = self.document.rejection();
        CoordinatorReport {
            cluster: self.name().to_owned(),
            coordinator: cluster.cluster_coordinator.to_string_lossy().into_owned(),
            controller: self.state.controller(),
            registered: registered.len(),
            forms_with: shards.saturating_mul(replicas.saturating_add(1)),
            has_topology: topology.is_some_and(|topology| !topology.members.is_empty()),
            is_member: is_member(&&in_force.own),
            unassigned: (*self.state.unassigned()).clone(),
            contact: registered.values().find(is_member).map(|node| node.member.clone()),
            is_lost: matches!(rejection, Some(InstallError::Disappeared(_))),
            rejection: rejection.map(|error| error.to_string()),
        }
    }
}
