//! INFO persistence: saving, loading, and the append-only file.

use super::View;
use brisk_node::persistence::bgsave;
use brisk_node::persistence::state::Loading;
use brisk_observe::text::Text;
use brisk_reactor::unix_ms;
use std::sync::atomic::Ordering;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let shared = view.shared;
    let saved = &shared.persistence.snapshots;
    text.number("loading", u64::from(shared.conditions.is_loading()));
    text.number("async_loading", u64::from(shared.conditions.is_loading_async()));
    // As in Redis, a snapshot for replicas also counts.
    let underway = saved.underway().or_else(|| shared.replication.snapshots.underway());
    let now = underway.unwrap_or_default();
    // Brisk has no copy-on-write pages. These fields show the memory that a snapshot takes in addition to the dataset.
    let peak = saved.underway().map_or(now.bytes, |_| saved.last_peak_bytes());
    text.number("current_cow_peak", peak);
    text.number("current_cow_size", now.bytes);
    text.number("current_cow_size_age", 0);
    text.ratio("current_fork_perc", now.keys_written as f64 * 100.0 / now.keys.max(1) as f64);
    text.number("current_save_keys_processed", now.keys_written);
    text.number("current_save_keys_total", now.keys);
    text.number("rdb_changes_since_last_save", saved.changes_since(shared.observe.changes()));
    text.number("rdb_bgsave_in_progress", u64::from(underway.is_some()));
    text.number("rdb_last_save_time", saved.last_save_s());
    text.word("rdb_last_bgsave_status", if saved.is_ok() { "ok" } else { "err" });
    text.signed("rdb_last_bgsave_time_sec", saved.last_seconds());
    text.signed(
        "rdb_current_bgsave_time_sec",
        underway.map_or(-1, |now| now.seconds.cast_signed()),
    );
    text.number("rdb_saves", shared.observe.metrics.saves.load(Ordering::Relaxed));
    text.number("rdb_last_cow_size", saved.last_peak_bytes());
    let (loaded, expired) = saved.last_load();
    text.number("rdb_last_load_keys_expired", expired);
    text.number("rdb_last_load_keys_loaded", loaded);
    write_aof(view, text);
    text.number("module_fork_in_progress", 0);
    text.number("module_fork_last_cow_size", 0);
    write_aof_file(view, text);
    if shared.conditions.is_loading() || shared.conditions.is_loading_async() {
        write_loading(&saved.loading, text);
    }
}

fn write_aof(view: &View<'_>, text: &mut Text) {
    let report = view.shared.persistence.aof.report();
    let status = |failed: bool| if failed { "err" } else { "ok" };
    let is_wanted = view.shared.config().persistence.appendonly;
    // After the file is enabled, a rewrite begins, but only after a snapshot in progress has ended.
    let begins = is_wanted && !report.is_complete;
    let waits = bgsave::is_saving(view.shared);
    let is_scheduled = if begins { waits } else { report.rewrite_is_scheduled };
    text.number("aof_enabled", u64::from(is_wanted));
    text.number("aof_rewrite_in_progress", u64::from(report.rewrite_runs || (begins && !waits)));
    text.number("aof_rewrite_scheduled", u64::from(is_scheduled));
    text.signed("aof_last_rewrite_time_sec", report.last_rewrite_s);
    text.signed("aof_current_rewrite_time_sec", report.rewrite_s);
    text.word("aof_last_bgrewrite_status", status(report.rewrite_failed));
    text.number("aof_rewrites", report.rewrites);
    text.number("aof_rewrites_consecutive_failures", report.rewrite_failures);
    text.word("aof_last_write_status", status(report.write_failed));
    text.number("aof_last_cow_size", 0);
}

/// Writes the fields that exist only while there is a file.
fn write_aof_file(view: &View<'_>, text: &mut Text) {
    if !view.shared.persistence.aof.is_on() {
        return;
    }
    let report = view.shared.persistence.aof.report();
    text.number("aof_current_size", report.size);
    text.number("aof_base_size", report.base_size);
    text.number("aof_pending_rewrite", u64::from(report.rewrite_is_scheduled));
    text.number("aof_buffer_length", report.pending_bytes);
    text.number("aof_pending_bio_fsync", u64::from(report.is_syncing));
    text.number("aof_delayed_fsync", report.delayed);
}

fn write_loading(loading: &Loading, text: &mut Text) {
    let (total, loaded) = (loading.total_bytes(), loading.loaded_bytes());
    let elapsed_s = (unix_ms() / 1000).saturating_sub(loading.began_s());
    let eta_s = match elapsed_s {
        // There is not enough data for a ratio.
        0 => 1,
        elapsed_s => elapsed_s.saturating_mul(total.saturating_sub(loaded)) / (loaded + 1),
    };
    text.number("loading_start_time", loading.began_s());
    text.number("loading_total_bytes", total);
    text.number("loading_rdb_used_mem", loading.used_memory());
    text.number("loading_loaded_bytes", loaded);
    text.ratio("loading_loaded_perc", loaded as f64 * 100.0 / total.max(1) as f64);
    text.number("loading_eta_seconds", eta_s);
}
