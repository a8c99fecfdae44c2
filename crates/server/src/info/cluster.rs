//! INFO cluster, and the facts about cluster mode that CLUSTER INFO, INFO brisk and the metrics share.

use super::View;
use brisk_cluster::document::UnassignedNode;
use brisk_cluster::id::NodeId;
use brisk_cluster::map::{EndpointKind, client_port};
use brisk_cluster::view::{ClusterView, NodeState};
use brisk_config::Config;
use brisk_node::cluster::{ClusterState, InForce, endpoint_kind, route_state};
use brisk_node::core::shared::Shared;
use brisk_observe::text::Text;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// This node's view of the cluster, with the values that [`ClusterView`] borrows.
pub(crate) struct NodeView<'s> {
    state: &'s ClusterState,
    in_force: Arc<InForce>,
    node_states: BTreeMap<NodeId, NodeState>,
    endpoint: EndpointKind,
    is_tls: bool,
    is_down: bool,
}

impl<'s> NodeView<'s> {
    /// The view for one client; `None` if cluster mode is off. `is_tls` is true if the client uses TLS. O(nodes).
    pub(crate) fn new(shared: &'s Shared, config: &Config, is_tls: bool) -> Option<NodeView<'s>> {
        let state = shared.cluster.state()?;
        let in_force = state.in_force();
        let mut node_states = (*state.node_states()).clone();
        let own = own_state(shared, config);
        node_states.insert(in_force.own.id, own);
        let is_down = in_force.map.is_down(&route_state(config, state.is_fenced()));
        let endpoint = endpoint_kind(config);
        Some(NodeView { state, in_force, node_states, endpoint, is_tls, is_down })
    }

    /// The view from which the contents of replies are computed.
    pub(crate) fn contents(&self) -> ClusterView<'_> {
        ClusterView {
            topology: self.in_force.topology.as_deref(),
            own: &self.in_force.own,
            node_states: &self.node_states,
            failed: &self.in_force.failed,
            last_epochs: self.in_force.last_epochs,
            endpoint: self.endpoint,
            is_tls: self.is_tls,
        }
    }

    /// The fields of CLUSTER INFO: first Redis's fields, then Brisk's own.
    pub(crate) fn lines(&self, config: &Config) -> Vec<(&'static str, String)> {
        let info = self.contents().info(self.is_down);
        let mut lines = info.lines();
        // Show only the kind, without address or path, because clients split each line at its colons.
        let coordinator = config.cluster.cluster_coordinator.to_string_lossy();
        let kind = coordinator.split(':').next().unwrap_or_default().to_owned();
        let lease = self.state.lease_left_ms().map_or(-1, u64::cast_signed);
        let own_ttl_ms = self.in_force.own.member.ttl.saturating_mul(1000);
        let ttl_ms = if self.state.is_static() { 0 } else { own_ttl_ms };
        let contact = self.state.coordinator_contact_age_ms().map_or(-1, u64::cast_signed);
        let controller = self.state.controller();
        let registered = self.node_states.values().filter(|node| node.is_alive).count();
        let coordinator_state = self.state.coordinator().word().to_owned();
        lines.extend([
            ("cluster_coordinator", kind),
            ("cluster_coordinator_state", coordinator_state),
            ("cluster_coordinator_last_contact_ms", contact.to_string()),
            ("cluster_document_epoch", info.current_epoch.to_string()),
            ("cluster_shard_term", info.my_epoch.to_string()),
            ("cluster_lease_left_ms", lease.to_string()),
            ("cluster_lease_ttl_ms", ttl_ms.to_string()),
            (
                "cluster_primary_run",
                info.primary_run.map(|run| run.to_string()).unwrap_or_default(),
            ),
            ("cluster_fenced", u8::from(self.state.is_fenced()).to_string()),
            ("cluster_migrations", info.migrations.to_string()),
            ("cluster_name", config.cluster.cluster_name.to_string_lossy().into_owned()),
            ("cluster_controller", controller.map(|id| id.to_string()).unwrap_or_default()),
            ("cluster_registered_nodes", registered.to_string()),
        ]);
        lines
    }
}

/// The facts about this node itself.
fn own_state(shared: &Shared, config: &Config) -> NodeState {
    let (replication, journal) = (&shared.replication, shared.keyspace.journal());
    let is_replica = shared.conditions.is_replica();
    let is_syncing = is_replica && !replication.upstream.is_up();
    NodeState {
        is_alive: true,
        no_failover: config.cluster.cluster_replica_no_failover,
        is_loading: shared.conditions.is_loading() || is_syncing,
        offset: if is_replica { replication.applied(journal) } else { replication.offset(journal) },
        last_report_ms: brisk_reactor::unix_ms(),
    }
}

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.number("cluster_enabled", u64::from(view.shared.cluster.state().is_some()));
}

/// Writes the fields of CLUSTER INFO, and fields that only INFO has.
pub(super) fn write_state(view: &View<'_>, text: &mut Text) {
    let Some(node) = NodeView::new(view.shared, view.config, false) else { return };
    for (name, value) in node.lines(view.config) {
        text.word(name, &value);
    }
    if let Some(state) = view.shared.cluster.state() {
        for (at, UnassignedNode { id, member, contents }) in state.unassigned().iter().enumerate() {
            let (ip, port, contents) = (&member.ip, client_port(member, false), contents.word());
            let value = format!("id={id},ip={ip},port={port},contents={contents}");
            text.word(&format!("cluster_outside{at}"), &value);
        }
    }
    let refused = &view.shared.observe.metrics.cluster_documents_refused;
    text.number("cluster_documents_refused", refused.load(Ordering::Relaxed));
    if let Some(state) = view.shared.cluster.state() {
        text.number("cluster_messages_forwarded", state.forward.sent());
        text.number("cluster_messages_dropped", state.forward.dropped());
    }
}
