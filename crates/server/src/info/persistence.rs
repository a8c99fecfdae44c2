//! INFO persistence: what was saved and loaded. There is no AOF yet.

use super::View;
use brisk_observe::text::Text;
use std::sync::atomic::Ordering;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let shared = view.shared;
    let saved = &shared.snapshots;
    text.number("loading", 0);
    text.number("async_loading", 0);
    let underway = saved.underway();
    let now = underway.unwrap_or_default();
    // There are no pages that are copied on write: this is what a snapshot takes besides the dataset.
    text.number("current_cow_peak", if underway.is_some() { saved.last_peak_bytes() } else { 0 });
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
    text.number("rdb_saves", shared.observe.figures.saves.load(Ordering::Relaxed));
    text.number("rdb_last_cow_size", saved.last_peak_bytes());
    let (loaded, expired) = saved.last_load();
    text.number("rdb_last_load_keys_expired", expired);
    text.number("rdb_last_load_keys_loaded", loaded);
    text.number("aof_enabled", 0);
    text.number("aof_rewrite_in_progress", 0);
    text.number("aof_rewrite_scheduled", 0);
    text.signed("aof_last_rewrite_time_sec", -1);
    text.signed("aof_current_rewrite_time_sec", -1);
    text.word("aof_last_bgrewrite_status", "ok");
    text.number("aof_rewrites", 0);
    text.number("aof_rewrites_consecutive_failures", 0);
    text.word("aof_last_write_status", "ok");
    text.number("aof_last_cow_size", 0);
    text.number("module_fork_in_progress", 0);
    text.number("module_fork_last_cow_size", 0);
}
