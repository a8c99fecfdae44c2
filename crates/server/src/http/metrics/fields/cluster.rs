//! Fields of INFO about cluster mode. If cluster mode is off, INFO has only the first of these fields, so there are no
//! metrics for the other fields.

use super::{Row, row, row_of_ms};
use crate::http::metrics::families::Kind::{Counter, Gauge};

pub(super) const CLUSTER: &[Row] = &[
    row(Gauge, "cluster_enabled", "redis_cluster_enabled", "1: this is a node of a cluster."),
    row(Gauge, "cluster_state", "redis_cluster_state", "1: CLUSTER INFO shows cluster_state:ok."),
    row(Gauge, "cluster_slots_assigned", "redis_cluster_slots_assigned", "Slots with an owner."),
    row(Gauge, "cluster_slots_ok", "redis_cluster_slots_ok", "Slots whose primary is alive."),
    row(
        Gauge,
        "cluster_slots_pfail",
        "redis_cluster_slots_pfail",
        "Slots whose primary is suspected to have failed.",
    ),
    row(Gauge, "cluster_slots_fail", "redis_cluster_slots_fail", "Slots whose primary has failed."),
    row(Gauge, "cluster_known_nodes", "redis_cluster_known_nodes", "Members of the cluster."),
    row(Gauge, "cluster_size", "redis_cluster_size", "Shards that own slots."),
    row(
        Gauge,
        "cluster_current_epoch",
        "redis_cluster_current_epoch",
        "Epoch of the topology that this node uses.",
    ),
    row(Gauge, "cluster_my_epoch", "redis_cluster_my_epoch", "Term of the shard of this node."),
    row(
        Gauge,
        "cluster_coordinator_state",
        "brisk_cluster_coordinator_up",
        "1: the coordinator was reached within the TTL of the lease, and accepts changes.",
    ),
    row_of_ms(
        Gauge,
        "cluster_coordinator_last_contact_ms",
        "brisk_cluster_coordinator_last_contact_seconds",
        "Time since the coordinator was reached; negative if it never was.",
    ),
    row(
        Counter,
        "cluster_documents_refused",
        "brisk_cluster_documents_refused_total",
        "Topologies from the coordinator that this node rejected.",
    ),
    row_of_ms(
        Gauge,
        "cluster_lease_left_ms",
        "brisk_cluster_lease_left_seconds",
        "Time until this node stops serving unless it renews its lease; negative without a lease.",
    ),
    row(
        Gauge,
        "cluster_fenced",
        "brisk_cluster_fenced",
        "1: this node serves no keys, because its lease may have ended or another primary may serve.",
    ),
    row(Gauge, "cluster_migrations", "brisk_cluster_migrations", "Slot migrations in progress."),
];
