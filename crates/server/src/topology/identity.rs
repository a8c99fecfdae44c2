//! The id of this node, and the address that it announces.

use brisk_cluster::document::{Member, Registration};
use brisk_cluster::id::{Incarnation, NodeId};
use brisk_cluster::view::own_id;
use brisk_config::Config;
use std::io::ErrorKind;

/// The registration of this run of this node. A node without a file gets a new id.
pub(super) fn registration(config: &Config) -> Result<Registration, String> {
    let path = config.path_in_dir(&config.cluster.cluster_config_file);
    let id = match std::fs::read(&path) {
        Ok(bytes) => own_id(&bytes).map_err(|error| format!("{}: {error}", path.display()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => new_id()?,
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    Ok(Registration {
        id,
        incarnation: Incarnation(random()?),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        member: member(config),
        no_failover: config.cluster.cluster_replica_no_failover,
        other: Default::default(),
    })
}

fn new_id() -> Result<NodeId, String> {
    let mut bytes = [0; 20];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random()?.to_le_bytes()[..part.len()]);
    }
    Ok(NodeId::from_bytes(bytes))
}

fn random() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("the system gives no random bytes: {error}"))
}

/// The announced address and names of this node.
fn member(config: &Config) -> Member {
    let (cluster, network) = (&config.cluster, &config.network);
    let ip = &cluster.cluster_announce_ip;
    let port = |announced: i64, own: i64| {
        u16::try_from(if announced > 0 { announced } else { own }).unwrap_or_default()
    };
    Member {
        ip: if ip.is_empty() { "127.0.0.1".to_owned() } else { ip.to_string_lossy().into_owned() },
        port: port(cluster.cluster_announce_port, network.port),
        tls: port(cluster.cluster_announce_tls_port, config.tls.port),
        bus: port(cluster.cluster_announce_bus_port, 0),
        host: cluster.cluster_announce_hostname.to_string_lossy().into_owned(),
        zone: cluster.cluster_zone.to_string_lossy().into_owned(),
        name: cluster.cluster_announce_human_nodename.to_string_lossy().into_owned(),
        other: Default::default(),
    }
}
