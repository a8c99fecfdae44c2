//! Maps fields of INFO to metrics. If the most common exporter (oliver006/redis_exporter) has a metric with the same
//! meaning, its name is used, so that dashboards for that exporter work. All other metrics are named `brisk_...`. Names
//! that `promtool check metrics` rejects are changed: the unit is written out and is a base unit.
//!
//! | file | sections of INFO |
//! |---|---|
//! | `process` | server, clients, memory, cpu |
//! | `data` | persistence, stats, replication, brisk |
//! | `cluster` | cluster, and the state of cluster mode in brisk |
//!
//! If INFO omits a field, there is no metric for it either. An example is a field about replication from a primary.

mod cluster;
mod data;
mod process;

use super::families::Kind;

/// A field of INFO as a metric.
pub(super) struct Row {
    pub(super) field: &'static str,
    /// Name, type and help.
    pub(super) family: (&'static str, Kind, &'static str),
    /// The field's value is divided by this. Metrics are in base units, as Prometheus requires.
    pub(super) divisor: f64,
}

const fn row(kind: Kind, field: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { field, family: (name, kind, help), divisor: 1.0 }
}

/// A row for a field in milliseconds, whose metric is in seconds.
const fn row_of_ms(kind: Kind, field: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { field, family: (name, kind, help), divisor: 1000.0 }
}

/// Returns all rows.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    [process::SERVER, process::CLIENTS, process::MEMORY, data::PERSISTENCE, data::STATS]
        .into_iter()
        .chain([data::REPLICATION, process::CPU, data::BRISK, cluster::CLUSTER])
        .flatten()
}
