//! `/metrics`: the content of INFO as families of metrics. O(workers x commands), as for INFO.
//!
//! Metrics are read from INFO's text, so that each has one source and both always agree. Three
//! kinds of data that INFO lacks are read from their own sources: the latency buckets, the slow
//! log, and the spikes of LATENCY.
//!
//! | file | about |
//! |---|---|
//! | `fields` | fields of INFO that are metrics by themselves |
//! | `families` | the two formats |

mod families;
mod fields;

use self::families::Families;
pub(super) use self::families::Format;
use self::families::Kind::{Counter, Gauge, Histogram, Summary};
use crate::info;
use brisk_config::Config;
use brisk_node::core::shared::Shared;
use brisk_observe::stats::{BUCKETS, upper_bound};
use std::collections::HashMap;

/// Bounds of latency buckets: powers of two in ns, from 1 us to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=34;
/// Databases that are shown even if they are empty, so that their series have no gaps.
const DATABASES_SHOWN: i64 = 16;

/// Returns the text of `/metrics`.
pub(super) fn text(shared: &Shared, config: &Config, format: Format) -> String {
    let info = info::text(shared, config, [b"everything".as_slice()].into_iter());
    let info = Info::of(&info);
    let mut out = Families::default();
    out.add(("redis_up", Gauge, "1: the server answers."), &[], 1);
    let start = shared.process.started_unix_ms / 1000;
    out.add(("redis_start_time_seconds", Gauge, "When the server was started."), &[], start);
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
        out.add(("redis_errors_total", Counter, "Errors by error code."), &[("err", word)], count);
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

/// Returns the value of a part by its name.
fn part<'v>(value: &'v str, name: &str) -> &'v str {
    pairs(value).find(|(found, _)| *found == name).map_or("", |(_, part)| part)
}

/// Returns a value of INFO as a number.
fn number(value: &str) -> &str {
    match value {
        "ok" => "1",
        "err" | "fail" | "unreachable" => "0",
        number => number,
    }
}

/// Converts a number to a larger unit.
fn scaled(value: &str, by: f64) -> f64 {
    value.parse::<f64>().unwrap_or(0.0) / by
}

/// Adds the metrics whose labels identify this server.
fn instance(info: &Info<'_>, out: &mut Families) {
    let label = |name| (name, info.word(name));
    let family = ("redis_instance_info", Gauge, "Information about this server; always 1.");
    let labels = [
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
    ];
    out.add(family, &labels.map(label), 1);
    let family = ("brisk_build_info", Gauge, "Version and build; always 1.");
    out.add(family, &["brisk_version", "io_backend", "allocator"].map(label), 1);
}

fn commands(info: &Info<'_>, out: &mut Families) {
    for (name, value) in info.lines_of("cmdstat_") {
        let cmd = &[("cmd", name)];
        let of = |name| part(value, name);
        out.add(("redis_commands_total", Counter, "Calls of each command."), cmd, of("calls"));
        let help = "Seconds spent on each command.";
        let family = ("redis_commands_duration_seconds_total", Counter, help);
        out.add(family, cmd, scaled(of("usec"), 1e6));
        let help = "Calls that were rejected before execution.";
        let family = ("redis_commands_rejected_calls_total", Counter, help);
        out.add(family, cmd, of("rejected_calls"));
        let family = ("redis_commands_failed_calls_total", Counter, "Calls that failed.");
        out.add(family, cmd, of("failed_calls"));
    }
    let help = "Percentiles of the duration of each command, in microseconds.";
    let family = ("redis_latency_percentiles_usec", Summary, help);
    for (name, value) in info.lines_of("latency_percentiles_usec_") {
        for (percentile, us) in pairs(value) {
            let percentile = percentile.trim_start_matches('p').parse::<f64>().unwrap_or(0.0);
            let quantile = format!("{:.8}", percentile / 100.0);
            let quantile = quantile.trim_end_matches('0').trim_end_matches('.');
            out.add(family, &[("cmd", name), ("quantile", quantile)], us);
        }
        let stat = info.get(&format!("cmdstat_{name}")).unwrap_or_default();
        out.add_part(family, "_sum", &[("cmd", name)], part(stat, "usec"));
        out.add_part(family, "_count", &[("cmd", name)], part(stat, "calls"));
    }
}

/// Adds the buckets from which those percentiles are computed.
fn latencies(shared: &Shared, out: &mut Families) {
    let help = "Duration of each command in microseconds.";
    let family = ("redis_commands_latencies_usec", Histogram, help);
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
        let cmd = ("cmd", row.full_name());
        let (mut seen, mut at) = (0, 0);
        for exponent in BOUNDS {
            let bound_ns = 1u64 << exponent;
            while at < BUCKETS && upper_bound(at) < bound_ns {
                seen += counts[at];
                at += 1;
            }
            let bound = (bound_ns as f64 / 1000.0).to_string();
            out.add_part(family, "_bucket", &[cmd, ("le", &bound)], seen);
        }
        out.add_part(family, "_bucket", &[cmd, ("le", "+Inf")], total);
        out.add_part(family, "_sum", &[cmd], ns as f64 / 1000.0);
        out.add_part(family, "_count", &[cmd], total);
    }
}

fn databases(info: &Info<'_>, config: &Config, out: &mut Families) {
    let mut add = |db: &str, keys: &str, expiring: &str| {
        let name = format!("db{db}");
        let label = &[("db", name.as_str())];
        out.add(("redis_db_keys", Gauge, "Keys of each database."), label, keys);
        let help = "Keys of each database that have a TTL.";
        out.add(("redis_db_keys_expiring", Gauge, help), label, expiring);
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
        let name = format!("db{db}");
        let help = "Mean TTL of keys.";
        let family = ("redis_db_avg_ttl_seconds", Gauge, help);
        out.add(family, &[("db", &name)], scaled(part(value, "avg_ttl"), 1e3));
    }
}

fn replication(info: &Info<'_>, out: &mut Families) {
    for (_, value) in info.numbered("slave") {
        let labels = [
            ("slave_ip", part(value, "ip")),
            ("slave_port", part(value, "port")),
            ("slave_state", part(value, "state")),
        ];
        let help = "Offset that each replica has acknowledged.";
        out.add(
            ("redis_connected_slave_offset_bytes", Gauge, help),
            &labels,
            part(value, "offset"),
        );
        let help = "Seconds since the last acknowledgement of each replica.";
        out.add(("redis_connected_slave_lag_seconds", Gauge, help), &labels, part(value, "lag"));
    }
    for (_, value) in info.numbered("replica") {
        let labels = [("ip", part(value, "ip")), ("port", part(value, "port"))];
        let help =
            "Age of the oldest change that each replica has not acknowledged; -1 is unknown.";
        let family = ("brisk_replica_behind_seconds", Gauge, help);
        out.add(family, &labels, part(value, "behind_seconds"));
    }
    let (Some(host), Some(port)) = (info.get("master_host"), info.get("master_port")) else {
        return;
    };
    let primary = [("master_host", host), ("master_port", port)];
    let up = u8::from(info.word("master_link_status") == "up");
    out.add(("redis_master_link_up", Gauge, "1 with a link to the primary."), &primary, up);
    let read_only = ("read_only", info.word("slave_read_only"));
    let labels = [primary[0], primary[1], read_only];
    out.add(("redis_slave_info", Gauge, "Information about this replica; always 1."), &labels, 1);
    for (field, name, help) in [
        ("master_sync_in_progress", "redis_master_sync_in_progress", "1 during a full copy."),
        (
            "master_last_io_seconds_ago",
            "redis_master_last_io_seconds_ago",
            "Seconds since the last data from the primary; -1 without a link.",
        ),
        ("slave_repl_offset", "redis_slave_repl_offset", "Offset that this replica has executed."),
    ] {
        if let Some(value) = info.get(field) {
            out.add((name, Gauge, help), &primary, value);
        }
    }
}

/// Adds metrics of the slow log, and of the spikes of LATENCY.
fn logs(shared: &Shared, out: &mut Families) {
    let slowlog = &shared.observe.slowlog;
    out.add(("redis_slowlog_length", Gauge, "Entries of the slow log."), &[], slowlog.len());
    if let Some(last) = slowlog.latest(1).first() {
        out.add(("redis_slowlog_last_id", Gauge, "Id of the latest slow command."), &[], last.id);
        let help = "Duration of the latest slow command.";
        let family = ("redis_last_slow_execution_duration_seconds", Gauge, help);
        out.add(family, &[], last.duration_us as f64 / 1e6);
    }
    for (event, series) in &shared.observe.latency.all() {
        let (second, ms) = series.samples.back().copied().unwrap_or_default();
        let label = &[("event_name", *event)];
        let help = "Time of the latest spike of each event.";
        out.add(("redis_latency_spike_last", Gauge, help), label, second);
        let help = "Duration of that spike.";
        let family = ("redis_latency_spike_duration_seconds", Gauge, help);
        out.add(family, label, ms as f64 / 1e3);
    }
}

/// Adds metrics of each worker: its load, where its time goes, and its system calls.
fn workers(info: &Info<'_>, out: &mut Families) {
    let own = info.numbered("worker");
    let admin = info.get("admin_worker").map(|value| ("admin", value));
    for (worker, value) in own.chain(admin) {
        let worker = ("worker", worker);
        for (name, count) in pairs(value) {
            if let Some(activity) = name.strip_prefix("us_") {
                let help = "Seconds of each worker by activity.";
                let family = ("brisk_worker_time_seconds_total", Counter, help);
                out.add(family, &[worker, ("activity", activity)], scaled(count, 1e6));
            } else if let Some(call) = name.strip_prefix("syscalls_") {
                let family = ("brisk_worker_system_calls_total", Counter, "System calls.");
                out.add(family, &[worker, ("call", call)], count);
            } else if let Some(family) = worker_family(name) {
                out.add(family, &[worker], count);
            }
        }
    }
}

/// Returns the family of another field of a worker's line.
fn worker_family(name: &str) -> Option<(&'static str, families::Kind, &'static str)> {
    Some(match name {
        "commands" => ("brisk_worker_commands_total", Counter, "Executed commands."),
        "rounds" => ("brisk_worker_rounds_total", Counter, "Iterations of the event loop."),
        "batches" => ("brisk_worker_batches_total", Counter, "Batches of requests."),
        "batched_requests" => {
            ("brisk_worker_batched_requests_total", Counter, "Requests in batches.")
        }
        "slot_conflicts" => (
            "brisk_worker_slot_conflicts_total",
            Counter,
            "Commands postponed because their slot was locked.",
        ),
        "starved_requests" => (
            "brisk_worker_starved_requests_total",
            Counter,
            "Requests for which all other workers were stopped.",
        ),
        "output_stalls" => (
            "brisk_worker_output_stalls_total",
            Counter,
            "Connections paused because their client did not read.",
        ),
        "requests_per_batch_max" => {
            ("brisk_worker_batch_requests_max", Gauge, "Maximum number of requests in a batch.")
        }
        _ => return None,
    })
}
