//! Makes the role of this server follow the document. The server becomes a primary or a replica of its shard's primary.

use brisk_cluster::document::{Registration, TermCause, Topology};
use brisk_cluster::id::{ShardId, Term};
use brisk_cluster::map::{MapRole, SlotMap, client_port};
use brisk_config::value::{PrimaryAddress, Text};
use brisk_node::cluster::{ClusterState, InForce};
use brisk_node::core::Core;
use brisk_node::core::shared::Shared;
use brisk_node::replication::role;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The primary that this server must follow according to the document. `None` if this server is a primary.
fn wanted_primary(in_force: &InForce, uses_tls: bool) -> Option<PrimaryAddress> {
    primary_by(&in_force.map, in_force.topology.as_deref()?, uses_tls)
}

/// The same for a given document and its map.
fn primary_by(map: &SlotMap, topology: &Topology, uses_tls: bool) -> Option<PrimaryAddress> {
    if map.role() != MapRole::Replica {
        return None;
    }
    let shard = topology.shard_of(map.own())?;
    let member = topology.members.get(&shard.primary)?;
    let host = Text::from(member.ip.as_str());
    Some(PrimaryAddress { host, port: client_port(member, uses_tls) })
}

/// True if a document does not change the role and the primary of this server.
pub(super) fn keeps_role(shared: &Shared, topology: &Arc<Topology>, own: &Registration) -> bool {
    let map = SlotMap::new(Some(topology), own.run());
    let config = shared.config();
    primary_by(&map, topology, config.tls.replication) == config.replication.replicaof
}

/// True if the role or the primary of this server differs from the document.
pub(super) fn differs(shared: &Shared, state: &ClusterState) -> bool {
    let config = shared.config();
    let wanted = wanted_primary(&state.in_force(), config.tls.replication);
    wanted != config.replication.replicaof
}

/// True while a dataset is being loaded. During that time, the role cannot change.
pub(super) fn is_loading(shared: &Shared) -> bool {
    shared.conditions.is_loading() || shared.conditions.is_loading_async()
}

/// Sets the role in the document before the workers start. The server follows its primary once its own dataset is
/// loaded.
pub(super) fn prepare(shared: &Shared, state: &ClusterState) {
    let primary = wanted_primary(&state.in_force(), shared.config().tls.replication);
    shared.keyspace.journal().set_relayed(primary.is_some());
    let mut store = shared.settings.store();
    store.adopt(|config| config.replication.replicaof = primary);
    shared.publish_config((*store.current()).clone());
}

/// Adopts the role in the document. If a dataset is being loaded, does nothing, and the caller tries again later. All
/// other workers are quiesced.
pub(super) fn follow_document(core: &mut Core, state: &ClusterState) {
    let shared = core.shared;
    if is_loading(shared) || !differs(shared, state) {
        return;
    }
    match wanted_primary(&state.in_force(), shared.config().tls.replication) {
        None => role::become_primary(core),
        Some(primary) => role::become_replica(core, primary),
    }
}

/// Logs the role of this node if it differs from `before`.
pub(super) fn log_change(
    shared: &Shared,
    state: &ClusterState,
    before: Option<(MapRole, ShardId, Term)>,
) {
    let in_force = state.in_force();
    let (map, log) = (&in_force.map, &shared.log);
    let Some((shard, term)) = map.own_shard() else {
        if before.is_some() {
            log.notice(format_args!("Cluster: this node is no longer a member"));
        }
        return;
    };
    if before == Some((map.role(), shard, term)) {
        return;
    }
    let Some(topology) = in_force.topology.as_deref() else { return };
    let Some(found) = topology.shard(shard) else { return };
    let why = match found.cause {
        _ if !found.why.is_empty() => format!(" ({})", found.why),
        TermCause::Founded => String::new(),
        cause => format!(" ({})", word(cause)),
    };
    match map.role() {
        MapRole::Primary => {
            count_term(shared, found.cause);
            log.notice(format_args!("Cluster: shard {shard} term {term}: this node is now primary{why}"));
        }
        MapRole::RestartedPrimary => log.notice(format_args!(
            "Cluster: shard {shard} term {term}: this node was restarted as its primary and waits for a new term"
        )),
        MapRole::Replica => {
            let primary = topology.label(found.primary);
            log.notice(format_args!(
                "Cluster: shard {shard} term {term}: this node is now a replica of {primary}{why}"
            ));
        }
        MapRole::Outsider => {}
    }
}

/// Counts a term that begins with this node as the primary.
fn count_term(shared: &Shared, cause: TermCause) {
    let metrics = &shared.observe.metrics;
    let has_data = shared.keyspace.has_keys();
    let counter = match cause {
        TermCause::Founded => return,
        TermCause::Failover | TermCause::Planned | TermCause::Forced => &metrics.cluster_failovers,
        TermCause::Resumed if has_data => &metrics.cluster_recovered_from_disk,
        TermCause::Resumed => &metrics.cluster_recovered_empty,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

const fn word(cause: TermCause) -> &'static str {
    match cause {
        TermCause::Founded => "founded",
        TermCause::Failover => "failover",
        TermCause::Planned => "planned switch",
        TermCause::Forced => "forced",
        TermCause::Resumed => "resumed",
    }
}
