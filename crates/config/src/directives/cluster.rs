//! Cluster mode. The settings and their directives.

use crate::choice::EndpointType;
use crate::directive::{Directive, INT_MAX, LONG_MAX, choice, field};
use crate::special;
use crate::value::Text;

/// Cluster mode.
#[derive(Clone, Default, PartialEq)]
pub struct Cluster {
    /// `cluster-enabled`.
    pub cluster_enabled: bool,
    /// `cluster-config-file`.
    pub cluster_config_file: Text,
    /// `cluster-node-timeout`.
    pub cluster_node_timeout_ms: i64,
    /// `cluster-port`.
    pub cluster_port: i64,
    /// `cluster-announce-ip`.
    pub cluster_announce_ip: Text,
    /// `cluster-announce-hostname`.
    pub cluster_announce_hostname: Text,
    /// `cluster-announce-human-nodename`.
    pub cluster_announce_human_nodename: Text,
    /// `cluster-announce-port`.
    pub cluster_announce_port: i64,
    /// `cluster-announce-tls-port`.
    pub cluster_announce_tls_port: i64,
    /// `cluster-announce-bus-port`.
    pub cluster_announce_bus_port: i64,
    /// `cluster-preferred-endpoint-type`.
    pub cluster_preferred_endpoint_type: EndpointType,
    /// `cluster-replica-validity-factor`.
    pub cluster_replica_validity_factor: i64,
    /// `cluster-replica-no-failover`.
    pub cluster_replica_no_failover: bool,
    /// `cluster-migration-barrier`.
    pub cluster_migration_barrier: i64,
    /// `cluster-allow-replica-migration`.
    pub cluster_allow_replica_migration: bool,
    /// `cluster-require-full-coverage`.
    pub cluster_require_full_coverage: bool,
    /// `cluster-allow-reads-when-down`.
    pub cluster_allow_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`.
    pub cluster_allow_pubsubshard_when_down: bool,
    /// `cluster-link-sendbuf-limit`.
    pub cluster_link_sendbuf_limit: u64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::switch("cluster-enabled", "no", field!(cluster.cluster_enabled))
        .about("Be a node of a cluster.")
        .immutable()
        .planned(),
    Directive::text("cluster-config-file", "nodes.conf", field!(cluster.cluster_config_file))
        .about("File in which the server would keep the table of nodes.")
        .immutable()
        .planned(),
    Directive::integer(
        "cluster-node-timeout",
        "15000",
        (0, LONG_MAX),
        field!(cluster.cluster_node_timeout_ms),
    )
    .about("Milliseconds after which a silent node would count as failed.")
    .planned(),
    Directive::integer("cluster-port", "0", (0, 65535), field!(cluster.cluster_port))
        .about("Port of the cluster bus; 0 is port + 10000.")
        .immutable()
        .planned(),
    Directive::text("cluster-announce-ip", "", field!(cluster.cluster_announce_ip))
        .about("Address told to other nodes and clients.")
        .planned(),
    Directive::checked_text(
        "cluster-announce-hostname",
        "",
        field!(cluster.cluster_announce_hostname),
        special::host_name,
    )
    .about("Host name told to other nodes and clients.")
    .planned(),
    Directive::checked_text(
        "cluster-announce-human-nodename",
        "",
        field!(cluster.cluster_announce_human_nodename),
        special::host_name,
    )
    .about("Name of the node in logs.")
    .planned(),
    Directive::integer(
        "cluster-announce-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_port),
    )
    .about("Port told to other nodes and clients; 0 is the real one.")
    .planned(),
    Directive::integer(
        "cluster-announce-tls-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_tls_port),
    )
    .about("TLS port told to other nodes and clients; 0 is the real one.")
    .planned(),
    Directive::integer(
        "cluster-announce-bus-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_bus_port),
    )
    .about("Port of the cluster bus told to other nodes; 0 is the real one.")
    .planned(),
    Directive::choice(
        "cluster-preferred-endpoint-type",
        "ip",
        choice!(cluster.cluster_preferred_endpoint_type),
    )
    .about("By what nodes are named to clients.")
    .planned(),
    Directive::integer(
        "cluster-replica-validity-factor",
        "10",
        (0, INT_MAX),
        field!(cluster.cluster_replica_validity_factor),
    )
    .about("Node timeouts for which a replica may lag and still be promoted; 0 always.")
    .alias("cluster-slave-validity-factor")
    .planned(),
    Directive::switch(
        "cluster-replica-no-failover",
        "no",
        field!(cluster.cluster_replica_no_failover),
    )
    .about("Never promote this replica.")
    .alias("cluster-slave-no-failover")
    .planned(),
    Directive::integer(
        "cluster-migration-barrier",
        "1",
        (0, INT_MAX),
        field!(cluster.cluster_migration_barrier),
    )
    .about("Replicas a primary keeps before one may move away.")
    .planned(),
    Directive::switch(
        "cluster-allow-replica-migration",
        "yes",
        field!(cluster.cluster_allow_replica_migration),
    )
    .about("Let replicas move to primaries that have none.")
    .planned(),
    Directive::switch(
        "cluster-require-full-coverage",
        "yes",
        field!(cluster.cluster_require_full_coverage),
    )
    .about("Refuse commands while a slot has no owner.")
    .planned(),
    Directive::switch(
        "cluster-allow-reads-when-down",
        "no",
        field!(cluster.cluster_allow_reads_when_down),
    )
    .about("Allow reads while the cluster is down.")
    .planned(),
    Directive::switch(
        "cluster-allow-pubsubshard-when-down",
        "yes",
        field!(cluster.cluster_allow_pubsubshard_when_down),
    )
    .about("Allow sharded Pub/Sub while the cluster is down.")
    .planned(),
    Directive::memory(
        "cluster-link-sendbuf-limit",
        "0",
        (0, u64::MAX),
        field!(cluster.cluster_link_sendbuf_limit),
    )
    .about("Bytes of unsent output of a link of the bus; 0 is no limit.")
    .planned(),
];
