//! The topology of cluster mode: where it comes from, and how this process follows it.
//!
//! | file | about |
//! |---|---|
//! | here | the start |
//! | `fixed` | the run of this node in a document that never changes |
//! | `identity` | the id of this node, and the address that it announces |

mod fixed;
mod identity;

use brisk_cluster::document::{Topology, check_installation};
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
    let mut own = identity::registration(config)?;
    shared.log.notice(format_args!("Node configuration loaded, I'm {}", own.id));
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
    let topology = read.document.map(|document| Topology::parse(&document)).transpose();
    let topology = topology.map_err(|error| error.to_string())?;
    if let (CoordinatorSetting::Static(_), Some(topology)) = (&setting, &topology) {
        fixed::adopt_run(&mut own, topology);
    }
    shared.cluster.enable(own.clone());
    let (Some(state), Some(topology)) = (shared.cluster.state(), topology) else { return Ok(()) };
    check_installation(name.as_str(), None, Some(&topology)).map_err(|error| error.to_string())?;
    state.install(own, Some(Arc::new(topology)));
    state.set_deadline(u64::MAX);
    Ok(())
}
