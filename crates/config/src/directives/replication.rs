//! Primary and replica. The settings and their directives.

use crate::choice::{DisklessLoad, PropagationError};
use crate::directive::{Directive, INT_MAX, Kind, LONG_MAX, SIZE_MAX, choice, field};
use crate::special;
use crate::value::{PrimaryAddress, Text};

/// Primary and replica.
#[derive(Clone, Default, PartialEq)]
pub struct Replication {
    /// `replicaof`: the primary of this server.
    pub replicaof: Option<PrimaryAddress>,
    /// `masteruser`: user to log in with at the primary.
    pub masteruser: Text,
    /// `masterauth`: password to log in with at the primary.
    pub masterauth: Text,
    /// `repl-timeout`: seconds without a sign of life after which a link is dropped.
    pub repl_timeout_s: i64,
    /// `repl-ping-replica-period`: seconds between pings to replicas.
    pub repl_ping_replica_period_s: i64,
    /// `repl-backlog-size`: bytes kept for partial resynchronisation, at least 16 KiB.
    pub repl_backlog_size: u64,
    /// `repl-backlog-ttl`: seconds the backlog is kept without replicas; 0 for ever.
    pub repl_backlog_ttl_s: i64,
    /// `repl-disable-tcp-nodelay`: send to replicas in fewer, later packets.
    pub repl_disable_tcp_nodelay: bool,
    /// `repl-diskless-sync`: send full copies without a file.
    pub repl_diskless_sync: bool,
    /// `repl-diskless-sync-delay`: seconds to wait for more replicas before a full copy.
    pub repl_diskless_sync_delay_s: i64,
    /// `repl-diskless-sync-max-replicas`: replicas for which a full copy no longer waits;
    /// 0 always waits.
    pub repl_diskless_sync_max_replicas: i64,
    /// `repl-diskless-load`: how a replica takes a full copy.
    pub repl_diskless_load: DisklessLoad,
    /// `replica-announce-ip`: address told to the primary; empty for the real one.
    pub replica_announce_ip: Text,
    /// `replica-announce-port`: port told to the primary; 0 for the real one.
    pub replica_announce_port: i64,
    /// `replica-announced`: let Sentinel know of this replica.
    pub replica_announced: bool,
    /// `replica-priority`: rank for promotion, lower first; 0 never.
    pub replica_priority: i64,
    /// `replica-read-only`: refuse writes of clients while a replica.
    pub replica_read_only: bool,
    /// `replica-serve-stale-data`: answer while the link to the primary is down.
    pub replica_serve_stale_data: bool,
    /// `replica-ignore-maxmemory`: leave eviction to the primary.
    pub replica_ignore_maxmemory: bool,
    /// `dual-channel-replication-enabled`: send a full copy beside the stream.
    pub dual_channel_replication_enabled: bool,
    /// `replica-lazy-flush`: free old data in the background before a full copy.
    pub replica_lazy_flush: bool,
    /// `replica-ignore-disk-write-errors`: go on when the primary's commands cannot
    /// be written to disk.
    pub replica_ignore_disk_write_errors: bool,
    /// `min-replicas-to-write`: good replicas below which writes are refused; 0 for none.
    pub min_replicas_to_write: i64,
    /// `min-replicas-max-lag`: seconds of lag up to which a replica is good.
    pub min_replicas_max_lag_s: i64,
    /// `replica-compare-period`: seconds between comparisons with replicas; 0 for none.
    pub replica_compare_period_s: i64,
    /// `replica-compare-heal`: have those comparisons heal what differs.
    pub replica_compare_heal: bool,
    /// `propagation-error-behavior`: what a replica does when a command of its primary fails.
    pub propagation_error_behavior: PropagationError,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::new("replicaof", "", Kind::Many(special::REPLICAOF)).alias("slaveof").immutable(),
    Directive::text("masteruser", "", field!(replication.masteruser))
        .alias("primaryuser")
        .sensitive(),
    Directive::text("masterauth", "", field!(replication.masterauth))
        .alias("primaryauth")
        .sensitive()
        .binary(),
    Directive::integer("repl-timeout", "60", (1, INT_MAX), field!(replication.repl_timeout_s)),
    Directive::integer(
        "repl-ping-replica-period",
        "10",
        (1, INT_MAX),
        field!(replication.repl_ping_replica_period_s),
    )
    .alias("repl-ping-slave-period"),
    Directive::memory(
        "repl-backlog-size",
        "1mb",
        (1, SIZE_MAX),
        field!(replication.repl_backlog_size),
    ),
    Directive::integer(
        "repl-backlog-ttl",
        "3600",
        (0, LONG_MAX),
        field!(replication.repl_backlog_ttl_s),
    ),
    Directive::switch(
        "repl-disable-tcp-nodelay",
        "no",
        field!(replication.repl_disable_tcp_nodelay),
    ),
    Directive::switch("repl-diskless-sync", "yes", field!(replication.repl_diskless_sync)),
    Directive::integer(
        "repl-diskless-sync-delay",
        "5",
        (0, INT_MAX),
        field!(replication.repl_diskless_sync_delay_s),
    ),
    Directive::integer(
        "repl-diskless-sync-max-replicas",
        "0",
        (0, INT_MAX),
        field!(replication.repl_diskless_sync_max_replicas),
    ),
    Directive::choice("repl-diskless-load", "disabled", choice!(replication.repl_diskless_load))
        .settled_while_loading(),
    Directive::text("replica-announce-ip", "", field!(replication.replica_announce_ip))
        .alias("slave-announce-ip"),
    Directive::integer(
        "replica-announce-port",
        "0",
        (0, 65535),
        field!(replication.replica_announce_port),
    )
    .alias("slave-announce-port"),
    Directive::switch("replica-announced", "yes", field!(replication.replica_announced)),
    Directive::integer(
        "replica-priority",
        "100",
        (0, INT_MAX),
        field!(replication.replica_priority),
    )
    .alias("slave-priority"),
    Directive::switch("replica-read-only", "yes", field!(replication.replica_read_only))
        .alias("slave-read-only"),
    Directive::switch(
        "replica-serve-stale-data",
        "yes",
        field!(replication.replica_serve_stale_data),
    )
    .alias("slave-serve-stale-data"),
    Directive::switch(
        "replica-ignore-maxmemory",
        "yes",
        field!(replication.replica_ignore_maxmemory),
    )
    .alias("slave-ignore-maxmemory"),
    // Valkey's, whose replicas take a dataset and the stream by one connection if it is not offered.
    Directive::switch(
        "dual-channel-replication-enabled",
        "no",
        field!(replication.dual_channel_replication_enabled),
    )
    .planned(),
    Directive::switch("replica-lazy-flush", "no", field!(replication.replica_lazy_flush))
        .alias("slave-lazy-flush"),
    Directive::switch(
        "replica-ignore-disk-write-errors",
        "no",
        field!(replication.replica_ignore_disk_write_errors),
    ),
    Directive::integer(
        "min-replicas-to-write",
        "0",
        (0, INT_MAX),
        field!(replication.min_replicas_to_write),
    )
    .alias("min-slaves-to-write"),
    Directive::integer(
        "min-replicas-max-lag",
        "10",
        (0, INT_MAX),
        field!(replication.min_replicas_max_lag_s),
    )
    .alias("min-slaves-max-lag"),
    Directive::integer(
        "replica-compare-period",
        "3600",
        (0, INT_MAX),
        field!(replication.replica_compare_period_s),
    ),
    Directive::switch("replica-compare-heal", "no", field!(replication.replica_compare_heal)),
    Directive::choice(
        "propagation-error-behavior",
        "ignore",
        choice!(replication.propagation_error_behavior),
    ),
];
