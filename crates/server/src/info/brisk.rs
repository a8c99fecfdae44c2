//! INFO brisk: how the workers spend their time, and their system calls (S4).

use super::View;
use super::cluster;
use super::server::backend;
use brisk_node::replication::comparison::{Finding, ReplicaComparison};
use brisk_observe::stats::{Count, WorkerStats};
use brisk_observe::text::Text;
use std::sync::atomic::Ordering;

/// A field of one worker: its name and its counter.
type WorkerField = (&'static str, fn(&WorkerStats) -> &Count);

/// Times, which are measured in ns and shown in microseconds.
const TIMES: &[WorkerField] = &[
    ("accept", |stats| &stats.accept_ns),
    ("read", |stats| &stats.read_ns),
    ("parse", |stats| &stats.parse_ns),
    ("execute", |stats| &stats.execute_ns),
    ("write", |stats| &stats.write_ns),
    ("background", |stats| &stats.background_ns),
    ("wait", |stats| &stats.wait_ns),
];

const SYSTEM_CALLS: &[WorkerField] = &[
    ("wait", |stats| &stats.wait_calls),
    ("sleep", |stats| &stats.sleep_calls),
    ("ctl", |stats| &stats.ctl_calls),
    ("accept", |stats| &stats.accept_calls),
    ("receive", |stats| &stats.receive_calls),
    ("send", |stats| &stats.send_calls),
    ("close", |stats| &stats.close_calls),
];

const COUNTS: &[WorkerField] = &[
    ("rounds", |stats| &stats.rounds),
    ("batches", |stats| &stats.batches),
    ("batched_requests", |stats| &stats.batched_requests),
    ("slot_conflicts", |stats| &stats.slot_conflicts),
    ("starved_requests", |stats| &stats.starved_requests),
    ("output_stalls", |stats| &stats.output_stalls),
];

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.word("io_backend", backend(view));
    text.word("allocator", brisk_node::core::memory::ALLOCATOR);
    text.number("workers", view.shared.serving_workers() as u64);
    for (name, of) in TIMES {
        text.begin_line("time_us_", name);
        text.push_number(view.sum(*of) / 1000);
        text.end();
    }
    for (name, of) in SYSTEM_CALLS {
        text.begin_line("syscalls_", name);
        text.push_number(view.sum(*of));
        text.end();
    }
    for (name, of) in COUNTS {
        text.number(name, view.sum(*of));
    }
    let (batches, requests) =
        (view.sum(|stats| &stats.batches), view.sum(|stats| &stats.batched_requests));
    text.ratio("requests_per_batch_mean", requests as f64 / batches.max(1) as f64);
    let max = view.shared.observe.stats.iter().map(|stats| stats.batch_max.get()).max();
    text.number("requests_per_batch_max", max.unwrap_or(0));
    let congestions = view.shared.observe.metrics.congestions.load(Ordering::Relaxed);
    text.number("pubsub_congestions", congestions);
    text.number("repl_stream_on_disk", view.shared.replication.stream.spilled_bytes());
    text.number("clients_output_bytes", view.shared.observe.output_bytes());
    if let Some(durable) = view.shared.persistence.aof.durable() {
        // Read the end after the durable position, so that the end is not less.
        let end = view.shared.keyspace.journal().end();
        text.number("aof_unsynced_bytes", end.0.saturating_sub(durable.0));
    }
    text.number("mem_clients_input", view.shared.clients.input_weights.total());
    let closed =
        view.shared.observe.metrics.input_total_limit_disconnections.load(Ordering::Relaxed);
    text.number("client_input_total_limit_disconnections", closed);
    cluster::write_state(view, text);
    let snapshots = &view.shared.persistence.snapshots;
    let underway = snapshots.underway().or_else(|| view.shared.replication.snapshots.underway());
    text.number("snapshot_bytes", underway.map_or(0, |now| now.bytes));
    text.number("snapshot_quiesced_us", snapshots.last_quiesced_us());
    replication(view, text);
    text.number("leftover_watches", view.shared.keyspace.ended_watches() as u64);
    comparisons(view, text);
    for (id, stats) in view.shared.observe.stats.iter().enumerate() {
        if id < view.shared.serving_workers() {
            text.push("worker");
            text.push_number(id as u64);
        } else {
            text.push("admin_worker");
        }
        worker(text, stats);
    }
}

/// Writes the lag of this server's replicas, and its own lag as a replica: the age of the oldest
/// missing change. -1 means unknown.
fn replication(view: &View<'_>, text: &mut Text) {
    let (shared, now_ms) = (view.shared, view.now_ms);
    let replication = &shared.replication;
    let seconds = |ms: Option<u64>| ms.map_or(-1, |ms| (ms / 1000).cast_signed());
    if shared.conditions.is_replica() {
        let primary = &shared.replication.upstream;
        let since = if primary.is_up() {
            primary.stream.oldest_ms().or(Some(now_ms))
        } else {
            primary.down_since_ms()
        };
        let behind = since.map(|since| now_ms.saturating_sub(since));
        text.signed("behind_primary_seconds", seconds(behind));
    }
    for (number, replica) in replication.replicas.list().iter().enumerate() {
        let ip = replica.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let behind = seconds(replication.stream.behind_ms(replica, now_ms));
        text.word(
            &format!("replica{number}"),
            &format!("ip={ip},port={},behind_seconds={behind}", replica.port),
        );
    }
}

/// Writes the results of comparisons with replicas.
fn comparisons(view: &View<'_>, text: &mut Text) {
    let comparison = &view.shared.replication.comparison;
    text.number("comparisons", comparison.ended());
    text.number("comparison_in_progress", u64::from(comparison.is_requested()));
    comparison.with_last(|last| last_comparison(last, text));
}

fn last_comparison(last: &Finding, text: &mut Text) {
    text.number("last_comparison_time", last.ended_ms / 1000);
    text.number("last_comparison_replicas", last.replicas.len() as u64);
    let offset = last.replicas.values().filter_map(|found| found.offset).max();
    text.number("last_comparison_offset", offset.unwrap_or(0));
    text.number("last_comparison_slots", last.sum(|found| found.compared));
    text.number("last_comparison_skipped_slots", last.sum(|found| found.skipped));
    text.number("last_comparison_differing_slots", last.sum(ReplicaComparison::differed_count));
    text.number("last_comparison_healed_slots", last.sum(|found| found.repaired().count() as u64));
}

/// Writes one worker's fields, which are the rest of its line.
fn worker(text: &mut Text, stats: &WorkerStats) {
    text.push(":commands=");
    text.push_number(stats.commands_processed.get());
    for (name, of) in TIMES {
        text.push(",us_");
        text.push(name);
        text.push("=");
        text.push_number(of(stats).get() / 1000);
    }
    for (name, of) in SYSTEM_CALLS {
        text.push(",syscalls_");
        text.push(name);
        text.push("=");
        text.push_number(of(stats).get());
    }
    for (name, of) in COUNTS {
        text.push(",");
        text.push(name);
        text.push("=");
        text.push_number(of(stats).get());
    }
    text.push(",requests_per_batch_max=");
    text.push_number(stats.batch_max.get());
    text.end();
}
