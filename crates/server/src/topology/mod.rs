//! The topology of cluster mode: where it comes from, and how this process follows it.
//!
//! | file | about |
//! |---|---|
//! | here | the start |
//! | `identity` | the id of this node, and the address that it announces |

mod identity;

use brisk_cluster::document::{Topology, check_installation};
use brisk_cluster::id::NodeId;
use brisk_cluster::view::NodeLife;
use brisk_config::Config;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::ClusterName;
use brisk_node::core::shared::Shared;
use std::sync::Arc;

/// Turns cluster mode on if the settings say so. Called before the workers start.
pub(crate) fn start(shared: &'static Shared, config: &Config) -> Result<(), String> {
    let cluster = &config.cluster;
    if !cluster.cluster_enabled {
        return Ok(());
    }
    let own = identity::registration(config)?;
    shared.log.notice(format_args!("Node configuration loaded, I'm {}", own.id));
    shared.cluster.enable(own.clone());
    let Some(state) = shared.cluster.state() else { return Ok(()) };
    let setting: CoordinatorSetting = cluster
        .cluster_coordinator
        .to_string_lossy()
        .parse()
        .map_err(|error| format!("cluster-coordinator: {error}"))?;
    let name = ClusterName::parse(&cluster.cluster_name.to_string_lossy())
        .map_err(|error| format!("cluster-name: {error}"))?;
    let options = brisk_coordinate::etcd::EtcdOptions::default();
    let coordinator = brisk_coordinate::open(&setting, &name, &options)
        .map_err(|error| format!("cluster-coordinator: {error}"))?;
    let read = coordinator.read().map_err(|error| error.to_string())?;
    let Some(document) = read.document else { return Ok(()) };
    let mut topology = Topology::parse(&document).map_err(|error| error.to_string())?;
    check_installation(name.as_str(), None, Some(&topology)).map_err(|error| error.to_string())?;
    // The file names no run of this node that the process could know before it starts.
    for shard in topology.shards.iter_mut().filter(|shard| shard.primary == own.id) {
        shard.isr = vec![own.run()];
    }
    // No node reports anything about others, so each counts as alive.
    let life = |id: &NodeId| (*id, NodeLife { is_alive: true, ..NodeLife::default() });
    state.set_lives(topology.members.keys().map(life).collect());
    state.install(own, Some(Arc::new(topology)));
    state.set_deadline(u64::MAX);
    Ok(())
}
