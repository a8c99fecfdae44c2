//! INFO persistence: what was saved and loaded. Nothing is yet saved in the background or in an AOF.

use super::View;
use brisk_observe::text::Text;
use std::sync::atomic::Ordering;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let shared = view.shared;
    let saved = &shared.snapshots;
    text.number("loading", 0);
    text.number("async_loading", 0);
    text.number("current_cow_peak", 0);
    text.number("current_cow_size", 0);
    text.number("current_cow_size_age", 0);
    text.ratio("current_fork_perc", 0.0);
    text.number("current_save_keys_processed", 0);
    text.number("current_save_keys_total", 0);
    text.number("rdb_changes_since_last_save", saved.changes_since(shared.observe.changes()));
    text.number("rdb_bgsave_in_progress", 0);
    text.number("rdb_last_save_time", saved.last_save_s());
    text.word("rdb_last_bgsave_status", "ok");
    text.signed("rdb_last_bgsave_time_sec", -1);
    text.signed("rdb_current_bgsave_time_sec", -1);
    text.number("rdb_saves", shared.observe.figures.saves.load(Ordering::Relaxed));
    text.number("rdb_last_cow_size", 0);
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
