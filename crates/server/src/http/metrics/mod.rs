//! `/metrics`: the contents of INFO as metric families. O(workers x commands), as for INFO.
//!
//! Metrics are read from INFO's text, so that both have the same source and always agree. INFO lacks three kinds of
//! data, which are read from their own sources: the latency buckets, the slow log, and the spikes of LATENCY.
//!
//! | file | about |
//! |---|---|
//! | `fields` | fields of INFO that correspond to one metric each |
//! | `labeled` | all other metrics |
//! | `families` | the two formats |

mod families;
mod fields;
mod labeled;

use self::families::Families;
pub(super) use self::families::Format;
use self::labeled::Labeled;
use crate::info;
use brisk_config::Config;
use brisk_node::core::shared::Shared;
use brisk_observe::stats::{BUCKETS, upper_bound};
use std::collections::HashMap;

/// Bounds of latency buckets: powers of two in ns, from 1 µs to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=34;
/// Databases that are shown even if they are empty, so that their series have no gaps.
const DATABASES_SHOWN: i64 = 16;

/// Returns the text of `/metrics`.
pub(super) fn text(shared: &Shared, config: &Config, format: Format) -> String {
    let info = info::text(shared, config, [b"everything".as_slice()].into_iter());
    let info = Info::of(&info);
    let mut out = Families::default();
    out.add(labeled::UP.family, &[], 1);
    out.add(labeled::START_TIME.family, &[], shared.process.started_unix_ms / 1000);
    instance(&info, &mut out);
    for row in fields::all() {
        match info.get(row.field) {
            Some(value) if row.divisor == 1.0 => out.add(row.family, &[], number(value)),
            Some(value) => out.add(row.family, &[], scaled(value, row.divisor)),
            None => {}
        }
    }
    commands(&info, &mut out);
    latencies(shared, &mut out);
    databases(&info, config, &mut out);
    replication(&info, &mut out);
    for (word, value) in info.lines_of("errorstat_") {
        let count = pairs(value).next().map_or("0", |(_, count)| count);
        sample(&mut out, &labeled::ERRORS, &[word], count);
    }
    logs(shared, &mut out);
    workers(&info, &mut out);
    out.text(format)
}

/// INFO's text, line by line.
struct Info<'t> {
    lines: Vec<(&'t str, &'t str)>,
    by_name: HashMap<&'t str, &'t str>,
}

impl<'t> Info<'t> {
    fn of(text: &'t str) -> Info<'t> {
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(':')).collect();
        Info { by_name: lines.iter().copied().collect(), lines }
    }

    fn get(&self, name: &str) -> Option<&'t str> {
        self.by_name.get(name).copied()
    }

    fn word(&self, name: &str) -> &'t str {
        self.get(name).unwrap_or_default()
    }

    /// Returns the lines whose names begin with `prefix`, with the prefix removed.
    fn lines_of(&self, prefix: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.lines
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
    }

    /// Like [`Info::lines_of`], for names whose rest is a number.
    fn numbered(&self, prefix: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        self.lines_of(prefix).filter(move |(rest, _)| is_number(rest))
    }
}

/// Splits `a=1,b=2` into pairs.
fn pairs(value: &str) -> impl Iterator<Item = (&str, &str)> {
    value.split(',').filter_map(|pair| pair.split_once('='))
}

/// Returns the value of the part with this name.
fn part<'v>(value: &'v str, name: &str) -> &'v str {
    pairs(value).find(|(found, _)| *found == name).map_or("", |(_, part)| part)
}

/// Returns a value of INFO as a number.
fn number(value: &str) -> &str {
    match value {
        "ok" | "stale" => "1",
        "err" | "fail" | "frozen" | "unreachable" => "0",
        number => number,
    }
}

/// Converts a number to a larger unit.
fn scaled(value: &str, by: f64) -> f64 {
    value.parse::<f64>().unwrap_or(0.0) / by
}

/// Adds a sample with these label values.
fn sample(out: &mut Families, row: &Labeled, labels: &[&str], value: impl std::fmt::Display) {
    sample_of_part(out, row, "", labels, value);
}

/// Adds a sample for a part of a histogram or summary, which may lack the last label.
fn sample_of_part(
    out: &mut Families,
    row: &Labeled,
    part: &str,
    labels: &[&str],
    value: impl std::fmt::Display,
) {
    let labels: Vec<(&str, &str)> =
        row.labels.iter().copied().zip(labels.iter().copied()).collect();
    out.add_part(row.family, part, &labels, value);
}

/// Adds the metrics whose labels identify this server.
fn instance(info: &Info<'_>, out: &mut Families) {
    for row in [&labeled::INSTANCE, &labeled::BUILD] {
        let values: Vec<&str> = row.labels.iter().map(|name| info.word(name)).collect();
        sample(out, row, &values, 1);
    }
}

fn commands(info: &Info<'_>, out: &mut Families) {
    for (name, value) in info.lines_of("cmdstat_") {
        let of = |name| part(value, name);
        sample(out, &labeled::CALLS, &[name], of("calls"));
        sample(out, &labeled::DURATION, &[name], scaled(of("usec"), 1e6));
        sample(out, &labeled::REJECTED_CALLS, &[name], of("rejected_calls"));
        sample(out, &labeled::FAILED_CALLS, &[name], of("failed_calls"));
    }
    let row = &labeled::PERCENTILES;
    for (name, value) in info.lines_of("latency_percentiles_usec_") {
        for (percentile, us) in pairs(value) {
            let percentile = percentile.trim_start_matches('p').parse::<f64>().unwrap_or(0.0);
            let quantile = format!("{:.8}", percentile / 100.0);
            let quantile = quantile.trim_end_matches('0').trim_end_matches('.');
            sample(out, row, &[name, quantile], us);
        }
        let stat = info.get(&format!("cmdstat_{name}")).unwrap_or_default();
        sample_of_part(out, row, "_sum", &[name], part(stat, "usec"));
        sample_of_part(out, row, "_count", &[name], part(stat, "calls"));
    }
}

/// Adds the buckets from which INFO's latency percentiles are computed.
fn latencies(shared: &Shared, out: &mut Families) {
    let family = &labeled::LATENCIES;
    for row in shared.table.all() {
        let (mut counts, mut ns, mut any) = ([0; BUCKETS], 0, false);
        for stats in &shared.observe.stats {
            let own = &stats.commands[row.id];
            any |= own.latency.add_to(&mut counts);
            ns += own.time_ns.get();
        }
        let total: u64 = counts.iter().sum();
        if !any || total == 0 {
            continue;
        }
        let cmd = row.full_name();
        let (mut seen, mut at) = (0, 0);
        for exponent in BOUNDS {
            let bound_ns = 1u64 << exponent;
            while at < BUCKETS && upper_bound(at) < bound_ns {
                seen += counts[at];
                at += 1;
            }
            let bound = (bound_ns as f64 / 1000.0).to_string();
            sample_of_part(out, family, "_bucket", &[cmd, &bound], seen);
        }
        sample_of_part(out, family, "_bucket", &[cmd, "+Inf"], total);
        sample_of_part(out, family, "_sum", &[cmd], ns as f64 / 1000.0);
        sample_of_part(out, family, "_count", &[cmd], total);
    }
}

fn databases(info: &Info<'_>, config: &Config, out: &mut Families) {
    let mut add = |db: &str, keys: &str, expiring: &str| {
        let name = format!("db{db}");
        sample(out, &labeled::DB_KEYS, &[&name], keys);
        sample(out, &labeled::DB_KEYS_EXPIRING, &[&name], expiring);
    };
    for db in 0..config.process.databases.min(DATABASES_SHOWN) {
        if info.get(&format!("db{db}")).is_none() {
            add(&db.to_string(), "0", "0");
        }
    }
    for (db, value) in info.numbered("db") {
        add(db, part(value, "keys"), part(value, "expires"));
    }
    for (db, value) in info.numbered("db") {
        let ttl = scaled(part(value, "avg_ttl"), 1e3);
        sample(out, &labeled::DB_TTL, &[&format!("db{db}")], ttl);
    }
}

fn replication(info: &Info<'_>, out: &mut Families) {
    for (_, value) in info.numbered("slave") {
        let labels = [part(value, "ip"), part(value, "port"), part(value, "state")];
        sample(out, &labeled::REPLICA_OFFSET, &labels, part(value, "offset"));
        sample(out, &labeled::REPLICA_LAG, &labels, part(value, "lag"));
    }
    for (_, value) in info.numbered("replica") {
        let labels = [part(value, "ip"), part(value, "port")];
        sample(out, &labeled::REPLICA_BEHIND, &labels, part(value, "behind_seconds"));
    }
    let (Some(host), Some(port)) = (info.get("master_host"), info.get("master_port")) else {
        return;
    };
    let up = u8::from(info.word("master_link_status") == "up");
    sample(out, &labeled::LINK_UP, &[host, port], up);
    sample(out, &labeled::REPLICA_INFO, &[host, port, info.word("slave_read_only")], 1);
    for (field, row) in labeled::OF_LINK {
        if let Some(value) = info.get(field) {
            sample(out, row, &[host, port], value);
        }
    }
}

/// Adds metrics of the slow log and of the spikes of LATENCY.
fn logs(shared: &Shared, out: &mut Families) {
    let slowlog = &shared.observe.slowlog;
    sample(out, &labeled::SLOWLOG_LENGTH, &[], slowlog.len());
    if let Some(last) = slowlog.latest(1).first() {
        sample(out, &labeled::SLOWLOG_LAST_ID, &[], last.id);
        sample(out, &labeled::SLOWLOG_LAST_DURATION, &[], last.duration_us as f64 / 1e6);
    }
    for (event, series) in &shared.observe.latency.all() {
        let (second, ms) = series.samples.back().copied().unwrap_or_default();
        sample(out, &labeled::SPIKE_TIME, &[event], second);
        sample(out, &labeled::SPIKE_DURATION, &[event], ms as f64 / 1e3);
    }
}

/// Adds metrics for each worker: its load, how it spends its time, and its system calls.
fn workers(info: &Info<'_>, out: &mut Families) {
    let own = info.numbered("worker");
    let admin = info.get("admin_worker").map(|value| ("admin", value));
    for (worker, value) in own.chain(admin) {
        for (name, count) in pairs(value) {
            if let Some(activity) = name.strip_prefix("us_") {
                sample(out, &labeled::WORKER_TIME, &[worker, activity], scaled(count, 1e6));
            } else if let Some(call) = name.strip_prefix("syscalls_") {
                sample(out, &labeled::WORKER_CALLS, &[worker, call], count);
            } else if let Some((_, row)) = labeled::OF_WORKER.iter().find(|(own, _)| *own == name) {
                sample(out, row, &[worker], count);
            }
        }
    }
}

/// A metric of `/metrics`, for the reference documentation.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    /// The type as in the OpenMetrics format.
    pub kind: &'static str,
    pub help: &'static str,
    pub labels: &'static [&'static str],
    /// The field of INFO that has the same value, perhaps in another unit.
    pub field: Option<&'static str>,
}

/// Returns all metrics. A response omits those for which the server has no data.
pub fn all() -> impl Iterator<Item = Metric> {
    let of_fields = fields::all().map(|row| metric(row.family, &[], Some(row.field)));
    let labeled = labeled::all().map(|row| metric(row.family, row.labels, None));
    labeled.chain(of_fields)
}

fn metric(
    (name, kind, help): (&'static str, families::Kind, &'static str),
    labels: &'static [&'static str],
    field: Option<&'static str>,
) -> Metric {
    Metric { name, kind: kind.word(), help, labels, field }
}
