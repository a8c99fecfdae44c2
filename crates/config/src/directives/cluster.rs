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
        .about("Run as a node of a cluster.")
        .immutable(),
    Directive::text("cluster-config-file", "nodes.conf", field!(cluster.cluster_config_file))
        .about("File in dir that stores the ID of this node. Each node needs its own.")
        .immutable(),
    Directive::integer(
        "cluster-node-timeout",
        "5000",
        (0, LONG_MAX),
        field!(cluster.cluster_node_timeout_ms),
    )
    .about(
        "Milliseconds after which the lease of a node ends unless the node renews it; rounded up to \
         seconds, at least 2.",
    )
    .immutable(),
    Directive::text("cluster-coordinator", "local:cluster", field!(cluster.cluster_coordinator))
        .about(
            "Where the topology is stored: etcd://host:port,..., etcds:// with TLS, local:DIR \
             for nodes on one machine, or static:FILE for a topology without failover.",
        )
        .immutable(),
    Directive::text("cluster-coordinator-user", "", field!(cluster.cluster_coordinator_user))
        .about("User name for etcd; empty does not authenticate.")
        .immutable()
        .sensitive(),
    Directive::text(
        "cluster-coordinator-password",
        "",
        field!(cluster.cluster_coordinator_password),
    )
    .about("Password for etcd.")
    .immutable()
    .sensitive(),
    Directive::text("cluster-coordinator-ca-file", "", field!(cluster.cluster_coordinator_ca_file))
        .about(
            "CA certificates that etcds:// trusts; empty uses those of the system.",
        )
        .immutable(),
    Directive::text("cluster-name", "brisk", field!(cluster.cluster_name))
        .about("Name of the cluster. Several clusters may use one coordinator.")
        .immutable(),
    Directive::text("cluster-zone", "", field!(cluster.cluster_zone))
        .about(
            "Availability zone of this node. Among replicas with the same offset, those outside \
             the zone of a failed primary are preferred for promotion.",
        )
        .immutable(),
    Directive::switch("cluster-controller", "yes", field!(cluster.cluster_controller))
        .about("Allow this node to be elected as the controller, which decides about failovers.")
        .immutable(),
    Directive::integer(
        "cluster-init-shards",
        "0",
        (0, 1000),
        field!(cluster.cluster_init_shards),
    )
    .about(
            "Create a cluster of this many shards once enough nodes are registered; 0 creates \
             none.",
        )
    .immutable(),
    Directive::integer(
        "cluster-init-replicas",
        "0",
        (0, 100),
        field!(cluster.cluster_init_replicas),
    )
    .about("Number of replicas of each shard that cluster-init-shards creates.")
    .immutable(),
    Directive::choice(
        "cluster-etcd-loss",
        "availability",
        choice!(cluster.cluster_etcd_loss),
    )
    .about(
            "Behavior of a primary that cannot renew its lease: serve while all its replicas \
             acknowledge (availability), or stop serving (safe).",
        ),
    Directive::integer("cluster-port", "0", (0, 65535), field!(cluster.cluster_port))
        .about("Port of Redis's cluster bus. CONFIG GET shows it.")
        .immutable()
        .ignored("Brisk's nodes do not use a cluster bus."),
    Directive::text("cluster-announce-ip", "", field!(cluster.cluster_announce_ip))
        .about(
            "Address for other nodes and clients; empty announces the address that this node binds \
             or uses.",
        ),
    Directive::checked_text(
        "cluster-announce-hostname",
        "",
        field!(cluster.cluster_announce_hostname),
        special::host_name,
    )
    .about("Host name of this node for clients."),
    Directive::checked_text(
        "cluster-announce-human-nodename",
        "",
        field!(cluster.cluster_announce_human_nodename),
        special::host_name,
    )
    .about("Name of this node in logs."),
    Directive::integer(
        "cluster-announce-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_port),
    )
    .about("Port for other nodes and clients; 0 announces the port that this node listens on."),
    Directive::integer(
        "cluster-announce-tls-port",
        "0",
        (0, 65535),
        field!(cluster.cluster_announce_tls_port),
    )
    .about("TLS port for other nodes and clients; 0 announces the TLS port that this node listens \
            on."),
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
    .about("How nodes are identified to clients."),
    Directive::integer(
        "cluster-replica-validity-factor",
        "10",
        (0, INT_MAX),
        field!(cluster.cluster_replica_validity_factor),
    )
    .about(
            "Maximum lag of a replica that can be promoted, in multiples of \
             cluster-node-timeout; 0 is unlimited.",
        )
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
    .about("Number of replicas that a primary keeps when others move to another primary.")
    .ignored("Replicas do not move to other primaries automatically."),
    Directive::switch(
        "cluster-allow-replica-migration",
        "yes",
        field!(cluster.cluster_allow_replica_migration),
    )
    .about("Let replicas move to a primary that has none.")
    .ignored("Replicas do not move to other primaries automatically."),
    Directive::switch(
        "cluster-require-full-coverage",
        "yes",
        field!(cluster.cluster_require_full_coverage),
    )
    .about("Reject commands with keys while any slot has no owner, or its owner has failed."),
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
    .about("Maximum bytes of unsent messages on a link of the cluster bus.")
    .ignored("Brisk's nodes do not use a cluster bus."),
    Directive::integer(
        "cluster-ping-interval",
        "1000",
        (0, INT_MAX),
        field!(cluster.cluster_ping_interval_ms),
    )
    .about("Milliseconds between the pings of Valkey's cluster bus.")
    .hidden()
    .ignored("Brisk's nodes do not use a cluster bus."),
];
