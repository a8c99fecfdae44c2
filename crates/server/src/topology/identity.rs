//! The identity of this node: its id, its incarnation, and the address that it announces. Also converts between the ids
//! of the document and the ids of the coordinator.

use brisk_cluster::document::{Member, Registration};
use brisk_cluster::id::{Incarnation, NodeId};
use brisk_config::Config;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::{self, LeaseTtl, NodeRegistration, RegisteredNode};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// The registration of this run of the node `id`.
pub(super) fn registration(
    config: &Config,
    id: NodeId,
    routed_ip: Option<IpAddr>,
) -> Result<Registration, String> {
    Ok(Registration {
        id,
        incarnation: Incarnation(random()?),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        member: member(config, routed_ip),
        no_failover: config.cluster.cluster_replica_no_failover,
        other: Default::default(),
    })
}

/// A new random id.
pub(super) fn new_id() -> Result<NodeId, String> {
    let mut bytes = [0; 20];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random()?.to_le_bytes()[..part.len()]);
    }
    Ok(NodeId::from_bytes(bytes))
}

fn random() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("the system gives no random bytes: {error}"))
}

/// The announced address, names and TTL of this node. `routed_ip` is the address from which etcd is reached.
pub(super) fn member(config: &Config, routed_ip: Option<IpAddr>) -> Member {
    let (cluster, network) = (&config.cluster, &config.network);
    let port = |announced: i64, own: i64| {
        u16::try_from(if announced > 0 { announced } else { own }).unwrap_or_default()
    };
    // 0 means the announced port plus 10000. As in Redis, announcing a port does not change the bus port.
    let own_bus = match (cluster.cluster_port, cluster.cluster_announce_port) {
        (0, 0) => 0,
        (0, _) => network.port + 10_000,
        (bus, _) => bus,
    };
    Member {
        ip: own_ip(config, routed_ip),
        port: port(cluster.cluster_announce_port, network.port),
        tls: port(cluster.cluster_announce_tls_port, config.tls.port),
        bus: port(cluster.cluster_announce_bus_port, own_bus),
        host: cluster.cluster_announce_hostname.to_string_lossy().into_owned(),
        zone: cluster.cluster_zone.to_string_lossy().into_owned(),
        name: cluster.cluster_announce_human_nodename.to_string_lossy().into_owned(),
        ttl: lease_ttl(config).seconds(),
        other: Default::default(),
    }
}

/// The TTL that this node requests for its lease.
pub(super) fn lease_ttl(config: &Config) -> LeaseTtl {
    let timeout_ms = config.cluster.cluster_node_timeout_ms.max(0).unsigned_abs();
    LeaseTtl::at_least(Duration::from_millis(timeout_ms))
}

/// The announced address. This is the setting, or else the first address of `bind` that names an interface, or else the
/// address from which etcd is reached.
fn own_ip(config: &Config, routed_ip: Option<IpAddr>) -> String {
    let announced = &config.cluster.cluster_announce_ip;
    if !announced.is_empty() {
        return announced.to_string_lossy().into_owned();
    }
    let specific = |text: &String| {
        let ip: IpAddr = text.strip_prefix('-').unwrap_or(text).parse().ok()?;
        (!ip.is_unspecified()).then_some(ip)
    };
    let bound = config.network.bind.iter().find_map(specific);
    let ip = bound.or(routed_ip).unwrap_or(IpAddr::from([127, 0, 0, 1]));
    ip.to_string()
}

/// The local address of the route to etcd. Connecting a datagram socket does not send any packets.
pub(super) fn route_to(setting: &CoordinatorSetting) -> Option<IpAddr> {
    let CoordinatorSetting::Etcd { endpoints, .. } = setting else { return None };
    endpoints.iter().find_map(|endpoint| {
        let address = (endpoint.host.as_str(), endpoint.port);
        [("0.0.0.0", 0), ("::", 0)].into_iter().find_map(|any| {
            let socket = UdpSocket::bind(any).ok()?;
            socket.connect(address).ok()?;
            Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
        })
    })
}

/// Converts a registration to the coordinator's form.
///
/// # Errors
/// The names of this node are too long.
pub(super) fn to_coordinator(own: &Registration) -> Result<NodeRegistration, String> {
    let node = values::NodeId::parse(&own.id.to_string()).map_err(|error| error.to_string())?;
    let incarnation = values::Incarnation::parse(&own.incarnation.to_string())
        .map_err(|error| error.to_string())?;
    let details = own.to_json().map_err(|error| error.to_string())?;
    Ok(NodeRegistration { node, incarnation, details })
}

/// Converts a node id of the coordinator to a node id of the document. Both have the same text form.
pub(super) fn node_id(id: values::NodeId) -> Option<NodeId> {
    id.as_str().parse().ok()
}

/// The registration of another node; `None` if other software wrote it.
pub(super) fn registration_of(node: &RegisteredNode) -> Option<Registration> {
    let registration = &node.registration;
    let parsed = Registration::parse(&registration.details).ok()?;
    let is_consistent = node_id(registration.node) == Some(parsed.id)
        && registration.incarnation.as_str() == parsed.incarnation.to_string();
    is_consistent.then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(bind: &[&str], announced: &str) -> String {
        let mut config = Config::default();
        config.network.bind = bind.iter().map(|text| (*text).to_owned()).collect();
        config.cluster.cluster_announce_ip = announced.into();
        own_ip(&config, None)
    }

    #[test]
    fn the_announced_address_is_the_setting_or_a_specific_address_of_bind() {
        assert_eq!(ip(&["10.0.0.1"], "10.0.0.9"), "10.0.0.9");
        assert_eq!(ip(&["*", "-::*", "0.0.0.0", "-10.0.0.2", "10.0.0.3"], ""), "10.0.0.2");
        assert_eq!(ip(&["-::1"], ""), "::1");
        assert_eq!(ip(&["*", "::"], ""), "127.0.0.1");
    }
}
