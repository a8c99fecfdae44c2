//! INFO stats: event counters since startup or the last CONFIG RESETSTAT.

use super::View;
use brisk_node::pubsub::Space;
use brisk_observe::text::Text;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let metrics = &view.shared.observe.metrics;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let kib = |counter: &AtomicU64| load(counter) as f64 / 1024.0;
    text.number("total_connections_received", view.sum(|stats| &stats.connections_received));
    text.number("total_commands_processed", view.sum(|stats| &stats.commands_processed));
    text.number("instantaneous_ops_per_sec", load(&metrics.ops_per_second));
    let from_clients = view.sum(|stats| &stats.bytes_in);
    text.number("total_net_input_bytes", from_clients + load(&metrics.repl_input_bytes));
    text.number("total_net_output_bytes", view.sum(|stats| &stats.bytes_out));
    text.number("total_net_repl_input_bytes", load(&metrics.repl_input_bytes));
    text.number("total_net_repl_output_bytes", load(&metrics.repl_output_bytes));
    text.ratio("instantaneous_input_kbps", kib(&metrics.input_bytes_per_second));
    text.ratio("instantaneous_output_kbps", kib(&metrics.output_bytes_per_second));
    text.ratio("instantaneous_input_repl_kbps", kib(&metrics.repl_input_bytes_per_second));
    text.ratio("instantaneous_output_repl_kbps", kib(&metrics.repl_output_bytes_per_second));
    text.number("rejected_connections", load(&metrics.rejected_connections));
    let syncs = |of: &AtomicU64| of.load(Ordering::Relaxed);
    text.number("sync_full", syncs(&view.shared.observe.metrics.full_syncs));
    text.number("sync_partial_ok", syncs(&view.shared.observe.metrics.partial_syncs));
    text.number("sync_partial_err", syncs(&view.shared.observe.metrics.refused_partial_syncs));
    keys(view, text);
    let names = |space| view.shared.pubsub.size(space) as u64;
    text.number("pubsub_channels", names(Space::Channel));
    text.number("pubsub_patterns", names(Space::Pattern));
    text.number("pubsubshard_channels", names(Space::ShardChannel));
    absent(text);
    let tracking = view.shared.keyspace.tracking();
    text.number("tracking_total_keys", tracking.key_count() as u64);
    text.number("tracking_total_items", tracking.item_count() as u64);
    text.number("tracking_total_prefixes", view.shared.tracking.len() as u64);
    text.number("unexpected_error_replies", load(&metrics.unexpected_errors));
    text.number("total_error_replies", view.sum(|stats| &stats.error_replies));
    text.number("dump_payload_sanitizations", 0);
    text.number("total_reads_processed", view.sum(|stats| &stats.reads));
    text.number("total_writes_processed", view.sum(|stats| &stats.writes));
    text.number("io_threaded_reads_processed", 0);
    text.number("io_threaded_writes_processed", 0);
    text.number("reply_buffer_shrinks", 0);
    text.number("reply_buffer_expands", 0);
    // Fields of Redis 7.2.
    let by_input = load(&metrics.query_limit_disconnections);
    text.number("client_query_buffer_limit_disconnections", by_input);
    let by_output = load(&metrics.output_limit_disconnections);
    text.number("client_output_buffer_limit_disconnections", by_output);
    let us = |ns: u64| ns / 1000;
    text.number("eventloop_cycles", view.sum(|stats| &stats.rounds));
    text.number("eventloop_duration_sum", us(view.sum(|stats| &stats.round_ns)));
    text.number("eventloop_duration_cmd_sum", us(view.sum(|stats| &stats.execute_ns)));
    text.number("instantaneous_eventloop_cycles_per_sec", load(&metrics.rounds_per_second));
    text.number("instantaneous_eventloop_duration_usec", load(&metrics.round_us));
    text.number("acl_access_denied_auth", load(&metrics.denied_by_auth));
    text.number("acl_access_denied_cmd", load(&metrics.denied_by_command));
    text.number("acl_access_denied_key", load(&metrics.denied_by_key));
    text.number("acl_access_denied_channel", load(&metrics.denied_by_channel));
}

/// Writes counts of expired and evicted keys, and of lookups.
fn keys(view: &View<'_>, text: &mut Text) {
    let (metrics, totals) = (&view.shared.observe.metrics, &view.totals);
    let since = metrics.over_limit_since_ms.load(Ordering::Relaxed);
    let over_now = if since == 0 { 0 } else { view.now_ms.saturating_sub(since) };
    text.number("expired_subkeys", totals.expired_fields);
    text.number("expired_keys", totals.expired);
    // Expired keys are found by their expiry times, not by sampling, so none of them remains for long.
    text.ratio("expired_stale_perc", 0.0);
    text.number("expired_time_cap_reached_count", totals.expire_time_cap_reached);
    let expire_ms = view.sum(|stats| &stats.expire_ns) / 1_000_000;
    text.number("expire_cycle_cpu_milliseconds", expire_ms);
    text.number("evicted_keys", totals.evicted);
    text.number("evicted_scripts", view.shared.scripting.scripts.metrics().2);
    text.number("evicted_clients", metrics.evicted_clients.load(Ordering::Relaxed));
    let over_before = metrics.over_limit_ms.load(Ordering::Relaxed);
    text.number("total_eviction_exceeded_time", over_before + over_now);
    text.number("current_eviction_exceeded_time", over_now);
    text.number("keyspace_hits", totals.hits);
    text.number("keyspace_misses", totals.misses);
}

/// Writes the fields for forks, migration, and defragmentation, which Brisk does not have.
fn absent(text: &mut Text) {
    for name in [
        "latest_fork_usec",
        "total_forks",
        "migrate_cached_sockets",
        "slave_expires_tracked_keys",
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
    ] {
        text.number(name, 0);
    }
}
