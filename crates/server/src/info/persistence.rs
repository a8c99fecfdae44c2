//! INFO persistence: a server that was never saved or loaded.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.number("loading", 0);
    text.number("async_loading", 0);
    text.number("current_cow_peak", 0);
    text.number("current_cow_size", 0);
    text.number("current_cow_size_age", 0);
    text.ratio("current_fork_perc", 0.0);
    text.number("current_save_keys_processed", 0);
    text.number("current_save_keys_total", 0);
    text.number("rdb_changes_since_last_save", view.sum(|stats| &stats.changes));
    text.number("rdb_bgsave_in_progress", 0);
    // Redis counts the start as a save.
    text.number("rdb_last_save_time", view.shared.process.started_unix_ms / 1000);
    text.word("rdb_last_bgsave_status", "ok");
    text.signed("rdb_last_bgsave_time_sec", -1);
    text.signed("rdb_current_bgsave_time_sec", -1);
    text.number("rdb_saves", 0);
    text.number("rdb_last_cow_size", 0);
    text.number("rdb_last_load_keys_expired", 0);
    text.number("rdb_last_load_keys_loaded", 0);
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
