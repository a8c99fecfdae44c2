//! Cluster mode. The settings and their directives.

use crate::config::choice::EndpointType;
use crate::config::directive::{Directive, INT_MAX, LONG_MAX, choice, field};
use crate::config::special;
use crate::config::value::Text;

/// Cluster mode.
#[derive(Clone, Debug, Default, PartialEq)]
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
