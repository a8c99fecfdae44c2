//! Primary and replica. The settings and their directives.

use crate::choice::{DisklessLoad, PropagationError};
use crate::directive::{Directive, INT_MAX, Kind, LONG_MAX, SIZE_MAX, choice, field};
use crate::special;
use crate::value::{PrimaryAddress, Text};

/// Primary and replica.
#[derive(Clone, Default, PartialEq)]
pub struct Replication {
    /// `replicaof`.
    pub replicaof: Option<PrimaryAddress>,
    /// `masteruser`.
    pub masteruser: Text,
    /// `masterauth`.
    pub masterauth: Text,
    /// `repl-timeout`.
    pub repl_timeout_s: i64,
    /// `repl-ping-replica-period`.
    pub repl_ping_replica_period_s: i64,
    /// `repl-backlog-size`.
    pub repl_backlog_size: u64,
    /// `repl-backlog-ttl`.
    pub repl_backlog_ttl_s: i64,
    /// `repl-disable-tcp-nodelay`.
    pub repl_disable_tcp_nodelay: bool,
    /// `repl-diskless-sync`.
    pub repl_diskless_sync: bool,
    /// `repl-diskless-sync-delay`.
    pub repl_diskless_sync_delay_s: i64,
    /// `repl-diskless-sync-max-replicas`.
    pub repl_diskless_sync_max_replicas: i64,
    /// `repl-diskless-load`.
    pub repl_diskless_load: DisklessLoad,
    /// `replica-announce-ip`.
    pub replica_announce_ip: Text,
    /// `replica-announce-port`.
    pub replica_announce_port: i64,
    /// `replica-announced`.
    pub replica_announced: bool,
    /// `replica-priority`.
    pub replica_priority: i64,
    /// `replica-read-only`.
    pub replica_read_only: bool,
    /// `replica-serve-stale-data`.
    pub replica_serve_stale_data: bool,
    /// `replica-ignore-maxmemory`.
    pub replica_ignore_maxmemory: bool,
    /// `dual-channel-replication-enabled`.
    pub dual_channel_replication_enabled: bool,
    /// `replica-lazy-flush`.
    pub replica_lazy_flush: bool,
    /// `replica-ignore-disk-write-errors`.
    pub replica_ignore_disk_write_errors: bool,
    /// `min-replicas-to-write`.
    pub min_replicas_to_write: i64,
    /// `min-replicas-max-lag`.
    pub min_replicas_max_lag_s: i64,
    /// `replica-compare-period`.
    pub replica_compare_period_s: i64,
    /// `replica-compare-heal`.
    pub replica_compare_heal: bool,
    /// `propagation-error-behavior`.
    pub propagation_error_behavior: PropagationError,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::new("replicaof", "", Kind::Many(special::REPLICAOF))
        .about(
            "Host and port of the primary that this server replicates; without it, this \
             server is a primary.",
        )
        .alias("slaveof")
        .immutable(),
    Directive::text("masteruser", "", field!(replication.masteruser))
        .about(
            "User name for authentication to the primary and to other nodes of the cluster; empty \
             is the default user.",
        )
        .alias("primaryuser")
        .sensitive(),
    Directive::text("masterauth", "", field!(replication.masterauth))
        .about(
            "Password for authentication to the primary and to other nodes of the cluster; empty \
             does not authenticate.",
        )
        .alias("primaryauth")
        .sensitive()
        .binary(),
    Directive::integer("repl-timeout", "60", (1, INT_MAX), field!(replication.repl_timeout_s))
        .about("Seconds without data or pings after which a replication link is closed."),
    Directive::integer(
        "repl-ping-replica-period",
        "10",
        (1, INT_MAX),
        field!(replication.repl_ping_replica_period_s),
    )
    .about("Seconds between pings from a primary to its replicas.")
    .alias("repl-ping-slave-period"),
    Directive::memory(
        "repl-backlog-size",
        "1mb",
        (1, SIZE_MAX),
        field!(replication.repl_backlog_size),
    )
    .about(
        "Size of the replication backlog, from which a replica that reconnects receives what \
             it missed. Values below 16 KiB are raised to 16 KiB.",
    ),
    Directive::integer(
        "repl-backlog-ttl",
        "3600",
        (0, LONG_MAX),
        field!(replication.repl_backlog_ttl_s),
    )
    .about("Seconds for which the backlog is kept without any replica; 0 keeps it forever."),
    Directive::switch(
        "repl-disable-tcp-nodelay",
        "no",
        field!(replication.repl_disable_tcp_nodelay),
    )
    .about("Send data to replicas in fewer packets, with more delay."),
    Directive::switch("repl-diskless-sync", "yes", field!(replication.repl_diskless_sync))
        .about("Send full copies to replicas without writing a file."),
    Directive::integer(
        "repl-diskless-sync-delay",
        "5",
        (0, INT_MAX),
        field!(replication.repl_diskless_sync_delay_s),
    )
    .about("Seconds to wait for more replicas before a full copy is sent to all of them."),
    Directive::integer(
        "repl-diskless-sync-max-replicas",
        "0",
        (0, INT_MAX),
        field!(replication.repl_diskless_sync_max_replicas),
    )
    .about("Number of replicas at which a full copy does not wait for more; 0 always waits."),
    Directive::choice("repl-diskless-load", "disabled", choice!(replication.repl_diskless_load))
        .about(
            "How a replica loads a full copy: from a file (disabled), directly if it has no \
             data (on-empty-db), or directly next to the old data, which it serves during this \
             time if both have the same history (swapdb).",
        )
        .settled_while_loading(),
    Directive::text("replica-announce-ip", "", field!(replication.replica_announce_ip))
        .about("Address that a replica reports to its primary; empty reports the real address.")
        .alias("slave-announce-ip"),
    Directive::integer(
        "replica-announce-port",
        "0",
        (0, 65535),
        field!(replication.replica_announce_port),
    )
    .about("Port that a replica reports to its primary; 0 reports the real port.")
    .alias("slave-announce-port"),
    Directive::switch("replica-announced", "yes", field!(replication.replica_announced))
        .about("Make this replica visible to Sentinel."),
    Directive::integer(
        "replica-priority",
        "100",
        (0, INT_MAX),
        field!(replication.replica_priority),
    )
    .about(
        "Priority of this replica for promotion; the lowest number comes first, 0 is \
             never promoted.",
    )
    .alias("slave-priority"),
    Directive::switch("replica-read-only", "yes", field!(replication.replica_read_only))
        .about("Reject writes from clients while this server is a replica.")
        .alias("slave-read-only"),
    Directive::switch(
        "replica-serve-stale-data",
        "yes",
        field!(replication.replica_serve_stale_data),
    )
    .about("Serve old data while the link to the primary is down; no rejects most commands.")
    .alias("slave-serve-stale-data"),
    Directive::switch(
        "replica-ignore-maxmemory",
        "yes",
        field!(replication.replica_ignore_maxmemory),
    )
    .about("Leave eviction to the primary.")
    .alias("slave-ignore-maxmemory"),
    // From Valkey. If this is not offered, Valkey's replicas receive the dataset and the stream
    // over one connection.
    Directive::switch(
        "dual-channel-replication-enabled",
        "no",
        field!(replication.dual_channel_replication_enabled),
    )
    .about(
        "Send full copies over a separate connection, in parallel with the replication \
             stream.",
    )
    .planned("Full copies and the stream share one connection."),
    Directive::switch("replica-lazy-flush", "no", field!(replication.replica_lazy_flush))
        .about("Free the old data in the background before a full copy is loaded.")
        .alias("slave-lazy-flush"),
    Directive::switch(
        "replica-ignore-disk-write-errors",
        "no",
        field!(replication.replica_ignore_disk_write_errors),
    )
    .about("Let a replica continue if it cannot write data from its primary to its disk."),
    Directive::integer(
        "min-replicas-to-write",
        "0",
        (0, INT_MAX),
        field!(replication.min_replicas_to_write),
    )
    .about("Number of good replicas below which a primary rejects writes; 0 requires none.")
    .alias("min-slaves-to-write"),
    Directive::integer(
        "min-replicas-max-lag",
        "10",
        (0, INT_MAX),
        field!(replication.min_replicas_max_lag_s),
    )
    .about(
        "Maximum number of seconds since the last acknowledgement of a replica that counts as \
         good.",
    )
    .alias("min-slaves-max-lag"),
    Directive::integer(
        "replica-compare-period",
        "3600",
        (0, INT_MAX),
        field!(replication.replica_compare_period_s),
    )
    .about(
        "Seconds between comparisons of the data of replicas with the data of this \
             server; 0 disables them.",
    ),
    Directive::switch("replica-compare-heal", "no", field!(replication.replica_compare_heal))
        .about("Send the differing data to replicas if a comparison finds differences."),
    Directive::choice(
        "propagation-error-behavior",
        "ignore",
        choice!(replication.propagation_error_behavior),
    )
    .about("Action of a replica if a command from its primary fails."),
];
