//! Cluster mode. The settings and their directives.

use crate::choice::{CoordinatorLoss, EndpointType};
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
    /// `cluster-ping-interval`.
    pub cluster_ping_interval_ms: i64,
    /// `cluster-coordinator`.
    pub cluster_coordinator: Text,
    /// `cluster-coordinator-user`.
    pub cluster_coordinator_user: Text,
    /// `cluster-coordinator-password`.
    pub cluster_coordinator_password: Text,
    /// `cluster-coordinator-ca-file`.
    pub cluster_coordinator_ca_file: Text,
    /// `cluster-name`.
    pub cluster_name: Text,
    /// `cluster-zone`.
    pub cluster_zone: Text,
    /// `cluster-controller`.
    pub cluster_controller: bool,
    /// `cluster-init-shards`.
    pub cluster_init_shards: i64,
    /// `cluster-init-replicas`.
    pub cluster_init_replicas: i64,
    /// `cluster-etcd-loss`.
    pub cluster_etcd_loss: CoordinatorLoss,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::switch("cluster-enabled", "no", field!(cluster.cluster_enabled))
        .about("Be a node of a cluster.")
        .immutable(),
    Directive::text("cluster-config-file", "nodes.conf", field!(cluster.cluster_config_file))
        .about("File in dir that keeps the id of this node. Each node needs its own.")
        .immutable(),
    Directive::integer(
        "cluster-node-timeout",
        "5000",
        (0, LONG_MAX),
        field!(cluster.cluster_node_timeout_ms),
    )
    .about(
        "Milliseconds after which a node that does not renew its lease counts as failed; rounded up \
         to seconds, at least 2.",
    )
    .immutable(),
    Directive::text("cluster-coordinator", "local:cluster", field!(cluster.cluster_coordinator))
        .about(
            "Where the topology is kept: etcd://host:port,..., etcds:// with TLS, local:DIR for the \
             nodes of one machine, or static:FILE for a topology without failover.",
        )
        .immutable(),
    Directive::text("cluster-coordinator-user", "", field!(cluster.cluster_coordinator_user))
        .about("User of etcd; empty does not log in.")
        .immutable()
        .sensitive(),
    Directive::text(
        "cluster-coordinator-password",
        "",
        field!(cluster.cluster_coordinator_password),
    )
    .about("Password of this user.")
    .immutable()
    .sensitive(),
    Directive::text("cluster-coordinator-ca-file", "", field!(cluster.cluster_coordinator_ca_file))
        .about("Certificates that etcds:// trusts; empty is those of the system.")
        .immutable(),
    Directive::text("cluster-name", "brisk", field!(cluster.cluster_name))
        .about("Name of the cluster. Several clusters may use one coordinator.")
        .immutable(),
    Directive::text("cluster-zone", "", field!(cluster.cluster_zone))
        .about("Availability zone of this node. A replica of another zone is promoted first.")
        .immutable(),
    Directive::switch("cluster-controller", "yes", field!(cluster.cluster_controller))
        .about("May be elected to decide about failovers.")
        .immutable(),
    Directive::integer(
        "cluster-init-shards",
        "0",
        (0, 1000),
        field!(cluster.cluster_init_shards),
    )
    .about("Form a cluster of this many shards once enough nodes are registered; 0 forms none.")
    .immutable(),
    Directive::integer(
        "cluster-init-replicas",
        "0",
        (0, 100),
        field!(cluster.cluster_init_replicas),
    )
    .about("Replicas of each of these shards.")
    .immutable(),
    Directive::choice(
        "cluster-etcd-loss",
        "availability",
        choice!(cluster.cluster_etcd_loss),
    )
    .about(
        "What a primary does when it cannot renew its lease: with availability it serves while all \
         of its replicas acknowledge, with safe it stops.",
    ),
    Directive::integer("cluster-port", "0", (0, 65535), field!(cluster.cluster_port))
        .about("Port of Redis's cluster bus. There is no bus: it is only shown.")
        .immutable()
        .ignored(),
    Directive::text("cluster-announce-ip", "", field!(cluster.cluster_announce_ip))
        .about("Address for other nodes and clients; empty is the address that this node binds or uses."),
    Directive::checked_text(
        "cluster-announce-hostname",
        "",
        field!(cluster.cluster_announce_hostname),
        special::host_name,
    )
    .about("Host name for clients."),
    Directive::checked_text(
        "cluster-announce-human-nodename",
        "",
        field!(cluster.cluster_announce_human_nodename),
        special::host_name,
    )
    .about("Name of the node in logs."),
    Directive::integer(
        "cluster-announce-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_port),
    )
    .about("Port for other nodes and clients; 0 is the one that this node listens on."),
    Directive::integer(
        "cluster-announce-tls-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_tls_port),
    )
    .about("TLS port for other nodes and clients; 0 is the one that this node listens on."),
    Directive::integer(
        "cluster-announce-bus-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_bus_port),
    )
    .about("Port that CLUSTER NODES shows after @; 0 is the port plus 10000."),
    Directive::choice(
        "cluster-preferred-endpoint-type",
        "ip",
        choice!(cluster.cluster_preferred_endpoint_type),
    )
    .about("How nodes are named to clients."),
    Directive::integer(
        "cluster-replica-validity-factor",
        "10",
        (0, INT_MAX),
        field!(cluster.cluster_replica_validity_factor),
    )
    .about("Node timeouts for which a replica may lag and still be promoted; 0 always.")
    .alias("cluster-slave-validity-factor"),
    Directive::switch(
        "cluster-replica-no-failover",
        "no",
        field!(cluster.cluster_replica_no_failover),
    )
    .about("Never promote this replica.")
    .alias("cluster-slave-no-failover"),
    Directive::integer(
        "cluster-migration-barrier",
        "1",
        (0, INT_MAX),
        field!(cluster.cluster_migration_barrier),
    )
    .about("Accepted without effect: replicas do not move to other primaries by themselves.")
    .ignored(),
    Directive::switch(
        "cluster-allow-replica-migration",
        "yes",
        field!(cluster.cluster_allow_replica_migration),
    )
    .about("Accepted without effect: replicas do not move to other primaries by themselves.")
    .ignored(),
    Directive::switch(
        "cluster-require-full-coverage",
        "yes",
        field!(cluster.cluster_require_full_coverage),
    )
    .about("Reject commands on keys while a slot has no owner, or its owner has failed."),
    Directive::switch(
        "cluster-allow-reads-when-down",
        "no",
        field!(cluster.cluster_allow_reads_when_down),
    )
    .about("Allow reads while the cluster is down."),
    Directive::switch(
        "cluster-allow-pubsubshard-when-down",
        "yes",
        field!(cluster.cluster_allow_pubsubshard_when_down),
    )
    .about("Allow sharded Pub/Sub while the cluster is down."),
    Directive::memory(
        "cluster-link-sendbuf-limit",
        "0",
        (0, u64::MAX),
        field!(cluster.cluster_link_sendbuf_limit),
    )
    .about("Accepted without effect: there is no cluster bus.")
    .ignored(),
    Directive::integer(
        "cluster-ping-interval",
        "1000",
        (0, INT_MAX),
        field!(cluster.cluster_ping_interval_ms),
    )
    .about("Milliseconds between the pings of Valkey's cluster bus. There is no bus.")
    .hidden()
    .ignored(),
];
