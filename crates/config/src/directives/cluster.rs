//! Cluster mode. The settings and their directives.

use crate::choice::EndpointType;
use crate::directive::{Directive, INT_MAX, LONG_MAX, choice, field};
use crate::special;
use crate::value::Text;

/// Cluster mode.
#[derive(Clone, Default, PartialEq)]
pub struct Cluster {
    /// `cluster-enabled`: be a node of a cluster.
    pub cluster_enabled: bool,
    /// `cluster-config-file`: file of the node table, kept by the server.
    pub cluster_config_file: Text,
    /// `cluster-node-timeout`: milliseconds after which a silent node counts as failed.
    pub cluster_node_timeout_ms: i64,
    /// `cluster-port`: port of the cluster bus; 0 is `port` + 10000.
    pub cluster_port: i64,
    /// `cluster-announce-ip`: address told to others.
    pub cluster_announce_ip: Text,
    /// `cluster-announce-hostname`: host name told to others.
    pub cluster_announce_hostname: Text,
    /// `cluster-announce-human-nodename`: name for logs.
    pub cluster_announce_human_nodename: Text,
    /// `cluster-announce-port`: port told to others.
    pub cluster_announce_port: i64,
    /// `cluster-announce-tls-port`: TLS port told to others.
    pub cluster_announce_tls_port: i64,
    /// `cluster-announce-bus-port`: bus port told to others.
    pub cluster_announce_bus_port: i64,
    /// `cluster-preferred-endpoint-type`: how nodes are named to clients.
    pub cluster_preferred_endpoint_type: EndpointType,
    /// `cluster-replica-validity-factor`: node timeouts a replica may lag and still be promoted;
    /// 0 always.
    pub cluster_replica_validity_factor: i64,
    /// `cluster-replica-no-failover`: never promote this replica.
    pub cluster_replica_no_failover: bool,
    /// `cluster-migration-barrier`: replicas a primary keeps before one may move away.
    pub cluster_migration_barrier: i64,
    /// `cluster-allow-replica-migration`: let replicas move to primaries without one.
    pub cluster_allow_replica_migration: bool,
    /// `cluster-require-full-coverage`: refuse commands while a slot has no owner.
    pub cluster_require_full_coverage: bool,
    /// `cluster-allow-reads-when-down`: read while the cluster is down.
    pub cluster_allow_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`: sharded Pub/Sub while the cluster is down.
    pub cluster_allow_pubsubshard_when_down: bool,
    /// `cluster-link-sendbuf-limit`: bytes of unsent bus output; 0 for no limit.
    pub cluster_link_sendbuf_limit: u64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::switch("cluster-enabled", "no", field!(cluster.cluster_enabled))
        .immutable()
        .planned(),
    Directive::text("cluster-config-file", "nodes.conf", field!(cluster.cluster_config_file))
        .immutable()
        .planned(),
    Directive::integer(
        "cluster-node-timeout",
        "15000",
        (0, LONG_MAX),
        field!(cluster.cluster_node_timeout_ms),
    )
    .planned(),
    Directive::integer("cluster-port", "0", (0, 65535), field!(cluster.cluster_port))
        .immutable()
        .planned(),
    Directive::text("cluster-announce-ip", "", field!(cluster.cluster_announce_ip)).planned(),
    Directive::checked_text(
        "cluster-announce-hostname",
        "",
        field!(cluster.cluster_announce_hostname),
        special::host_name,
    )
    .planned(),
    Directive::checked_text(
        "cluster-announce-human-nodename",
        "",
        field!(cluster.cluster_announce_human_nodename),
        special::host_name,
    )
    .planned(),
    Directive::integer(
        "cluster-announce-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_port),
    )
    .planned(),
    Directive::integer(
        "cluster-announce-tls-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_tls_port),
    )
    .planned(),
    Directive::integer(
        "cluster-announce-bus-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_bus_port),
    )
    .planned(),
    Directive::choice(
        "cluster-preferred-endpoint-type",
        "ip",
        choice!(cluster.cluster_preferred_endpoint_type),
    )
    .planned(),
    Directive::integer(
        "cluster-replica-validity-factor",
        "10",
        (0, INT_MAX),
        field!(cluster.cluster_replica_validity_factor),
    )
    .alias("cluster-slave-validity-factor")
    .planned(),
    Directive::switch(
        "cluster-replica-no-failover",
        "no",
        field!(cluster.cluster_replica_no_failover),
    )
    .alias("cluster-slave-no-failover")
    .planned(),
    Directive::integer(
        "cluster-migration-barrier",
        "1",
        (0, INT_MAX),
        field!(cluster.cluster_migration_barrier),
    )
    .planned(),
    Directive::switch(
        "cluster-allow-replica-migration",
        "yes",
        field!(cluster.cluster_allow_replica_migration),
    )
    .planned(),
    Directive::switch(
        "cluster-require-full-coverage",
        "yes",
        field!(cluster.cluster_require_full_coverage),
    )
    .planned(),
    Directive::switch(
        "cluster-allow-reads-when-down",
        "no",
        field!(cluster.cluster_allow_reads_when_down),
    )
    .planned(),
    Directive::switch(
        "cluster-allow-pubsubshard-when-down",
        "yes",
        field!(cluster.cluster_allow_pubsubshard_when_down),
    )
    .planned(),
    Directive::memory(
        "cluster-link-sendbuf-limit",
        "0",
        (0, u64::MAX),
        field!(cluster.cluster_link_sendbuf_limit),
    )
    .planned(),
];
