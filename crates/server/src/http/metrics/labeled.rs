//! The metrics that do not correspond to one field of INFO each: metrics with labels and metrics from other sources.

use super::families::Kind::{self, Counter, Gauge, Histogram, Summary};

/// A family of metrics.
pub(super) struct Labeled {
    /// Name, type and help.
    pub(super) family: (&'static str, Kind, &'static str),
    /// The names of the labels.
    pub(super) labels: &'static [&'static str],
}

const fn of(
    kind: Kind,
    labels: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Labeled {
    Labeled { family: (name, kind, help), labels }
}

pub(super) const UP: Labeled = of(Gauge, &[], "redis_up", "1: the server responds.");
pub(super) const START_TIME: Labeled =
    of(Gauge, &[], "redis_start_time_seconds", "When the server was started.");

/// The labels of [`INSTANCE`] are fields of INFO, as are those of [`BUILD`].
pub(super) const INSTANCE: Labeled = of(
    Gauge,
    &[
        "role",
        "redis_version",
        "redis_build_id",
        "redis_mode",
        "os",
        "maxmemory_policy",
        "tcp_port",
        "run_id",
        "process_id",
        "master_replid",
    ],
    "redis_instance_info",
    "Information about this server; always 1.",
);
pub(super) const BUILD: Labeled = of(
    Gauge,
    &["brisk_version", "io_backend", "allocator"],
    "brisk_build_info",
    "Version and build; always 1.",
);

pub(super) const CALLS: Labeled =
    of(Counter, CMD, "redis_commands_total", "Calls of each command.");
pub(super) const DURATION: Labeled =
    of(Counter, CMD, "redis_commands_duration_seconds_total", "Seconds spent on each command.");
pub(super) const REJECTED_CALLS: Labeled = of(
    Counter,
    CMD,
    "redis_commands_rejected_calls_total",
    "Calls that were rejected before execution.",
);
pub(super) const FAILED_CALLS: Labeled =
    of(Counter, CMD, "redis_commands_failed_calls_total", "Calls that failed.");
pub(super) const PERCENTILES: Labeled = of(
    Summary,
    &["cmd", "quantile"],
    "redis_latency_percentiles_usec",
    "Percentiles of the duration of each command, in microseconds.",
);
pub(super) const LATENCIES: Labeled = of(
    Histogram,
    &["cmd", "le"],
    "redis_commands_latencies_usec",
    "Duration of each command in microseconds.",
);
const CMD: &[&str] = &["cmd"];

pub(super) const DB_KEYS: Labeled = of(Gauge, DB, "redis_db_keys", "Keys of each database.");
pub(super) const DB_KEYS_EXPIRING: Labeled =
    of(Gauge, DB, "redis_db_keys_expiring", "Keys of each database that have a TTL.");
pub(super) const DB_TTL: Labeled = of(Gauge, DB, "redis_db_avg_ttl_seconds", "Mean TTL of keys.");
const DB: &[&str] = &["db"];

pub(super) const REPLICA_OFFSET: Labeled = of(
    Gauge,
    REPLICA,
    "redis_connected_slave_offset_bytes",
    "Offset that each replica has acknowledged.",
);
pub(super) const REPLICA_LAG: Labeled = of(
    Gauge,
    REPLICA,
    "redis_connected_slave_lag_seconds",
    "Seconds since the last acknowledgement of each replica.",
);
const REPLICA: &[&str] = &["slave_ip", "slave_port", "slave_state"];
pub(super) const REPLICA_BEHIND: Labeled = of(
    Gauge,
    &["ip", "port"],
    "brisk_replica_behind_seconds",
    "Age of the oldest change that each replica has not acknowledged; -1 is unknown.",
);

pub(super) const LINK_UP: Labeled =
    of(Gauge, PRIMARY, "redis_master_link_up", "1 if the link to the primary is up.");
pub(super) const REPLICA_INFO: Labeled = of(
    Gauge,
    &["master_host", "master_port", "read_only"],
    "redis_slave_info",
    "Information about this replica; always 1.",
);
/// Metrics of the link to the primary, each with its field of INFO.
pub(super) const OF_LINK: &[(&str, Labeled)] = &[
    (
        "master_sync_in_progress",
        of(Gauge, PRIMARY, "redis_master_sync_in_progress", "1 during a full copy."),
    ),
    (
        "master_last_io_seconds_ago",
        of(
            Gauge,
            PRIMARY,
            "redis_master_last_io_seconds_ago",
            "Seconds since the last data from the primary; -1 without a link.",
        ),
    ),
    (
        "slave_repl_offset",
        of(Gauge, PRIMARY, "redis_slave_repl_offset", "Offset that this replica has executed."),
    ),
];
const PRIMARY: &[&str] = &["master_host", "master_port"];

pub(super) const ERRORS: Labeled =
    of(Counter, &["err"], "redis_errors_total", "Errors by error code.");

pub(super) const SLOWLOG_LENGTH: Labeled =
    of(Gauge, &[], "redis_slowlog_length", "Entries of the slow log.");
pub(super) const SLOWLOG_LAST_ID: Labeled =
    of(Gauge, &[], "redis_slowlog_last_id", "ID of the latest slow command.");
pub(super) const SLOWLOG_LAST_DURATION: Labeled = of(
    Gauge,
    &[],
    "redis_last_slow_execution_duration_seconds",
    "Duration of the latest slow command.",
);
pub(super) const SPIKE_TIME: Labeled = of(
    Gauge,
    &["event_name"],
    "redis_latency_spike_last",
    "Time of the latest spike of each event.",
);
pub(super) const SPIKE_DURATION: Labeled = of(
    Gauge,
    &["event_name"],
    "redis_latency_spike_duration_seconds",
    "Duration of the latest spike of each event.",
);

pub(super) const WORKER_TIME: Labeled = of(
    Counter,
    &["worker", "activity"],
    "brisk_worker_time_seconds_total",
    "Seconds of each worker by activity.",
);
pub(super) const WORKER_CALLS: Labeled = of(
    Counter,
    &["worker", "call"],
    "brisk_worker_system_calls_total",
    "System calls of each worker.",
);
/// Metrics of a worker, each with its name in the worker's line of INFO.
pub(super) const OF_WORKER: &[(&str, Labeled)] = &[
    (
        "commands",
        of(
            Counter,
            WORKER,
            "brisk_worker_commands_total",
            "Commands that each worker has executed.",
        ),
    ),
    (
        "rounds",
        of(Counter, WORKER, "brisk_worker_rounds_total", "Iterations of each worker's event loop."),
    ),
    ("batches", of(Counter, WORKER, "brisk_worker_batches_total", "Batches of requests.")),
    (
        "batched_requests",
        of(Counter, WORKER, "brisk_worker_batched_requests_total", "Requests in batches."),
    ),
    (
        "slot_conflicts",
        of(
            Counter,
            WORKER,
            "brisk_worker_slot_conflicts_total",
            "Commands postponed because their slot was locked.",
        ),
    ),
    (
        "starved_requests",
        of(
            Counter,
            WORKER,
            "brisk_worker_starved_requests_total",
            "Requests for which all other workers were stopped.",
        ),
    ),
    (
        "output_stalls",
        of(
            Counter,
            WORKER,
            "brisk_worker_output_stalls_total",
            "Number of times that a connection was paused because its client did not read.",
        ),
    ),
    (
        "requests_per_batch_max",
        of(
            Gauge,
            WORKER,
            "brisk_worker_batch_requests_max",
            "Maximum number of requests in a batch.",
        ),
    ),
];
const WORKER: &[&str] = &["worker"];

/// Returns all labeled metrics, by subject.
pub(super) fn all() -> impl Iterator<Item = &'static Labeled> {
    const SERVER: &[&Labeled] = &[&UP, &START_TIME, &INSTANCE, &BUILD];
    const COMMANDS: &[&Labeled] =
        &[&CALLS, &DURATION, &REJECTED_CALLS, &FAILED_CALLS, &PERCENTILES, &LATENCIES, &ERRORS];
    const DATABASES: &[&Labeled] = &[&DB_KEYS, &DB_KEYS_EXPIRING, &DB_TTL];
    const REPLICATION: &[&Labeled] =
        &[&REPLICA_OFFSET, &REPLICA_LAG, &REPLICA_BEHIND, &LINK_UP, &REPLICA_INFO];
    const LOGS: &[&Labeled] =
        &[&SLOWLOG_LENGTH, &SLOWLOG_LAST_ID, &SLOWLOG_LAST_DURATION, &SPIKE_TIME, &SPIKE_DURATION];
    const WORKERS: &[&Labeled] = &[&WORKER_TIME, &WORKER_CALLS];
    let of_link = OF_LINK.iter().map(|(_, labeled)| labeled);
    let of_worker = OF_WORKER.iter().map(|(_, labeled)| labeled);
    let before = [SERVER, COMMANDS, DATABASES, REPLICATION].into_iter().flatten().copied();
    let after = [LOGS, WORKERS].into_iter().flatten().copied();
    before.chain(of_link).chain(after).chain(of_worker)
}
