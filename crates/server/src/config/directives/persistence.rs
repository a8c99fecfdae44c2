//! Snapshots and the append-only file. The settings and their directives.

use crate::config::choice::AppendFsync;
use crate::config::directive::{Directive, INT_MAX, Kind, SIZE_MAX, choice, field};
use crate::config::special;
use crate::config::value::{Refusal, SaveRule, Text};

/// Snapshots and the append-only file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Persistence {
    /// `save`: when to snapshot.
    pub save: Vec<SaveRule>,
    /// `dbfilename`: snapshot file in `dir`.
    pub dbfilename: Text,
    /// `rdbcompression`.
    pub rdbcompression: bool,
    /// `rdbchecksum`.
    pub rdbchecksum: bool,
    /// `rdb-del-sync-files`.
    pub rdb_del_sync_files: bool,
    /// `rdb-save-incremental-fsync`.
    pub rdb_save_incremental_fsync: bool,
    /// `stop-writes-on-bgsave-error`.
    pub stop_writes_on_bgsave_error: bool,
    /// `rdb-key-save-delay`.
    pub rdb_key_save_delay: i64,
    /// `key-load-delay`.
    pub key_load_delay: i64,
    /// `loading-process-events-interval-bytes`.
    pub loading_process_events_interval_bytes: i64,
    /// `appendonly`: keep an append-only file.
    pub appendonly: bool,
    /// `appendfilename`.
    pub appendfilename: Text,
    /// `appenddirname`.
    pub appenddirname: Text,
    /// `appendfsync`: when the append-only file reaches the disk.
    pub appendfsync: AppendFsync,
    /// `no-appendfsync-on-rewrite`.
    pub no_appendfsync_on_rewrite: bool,
    /// `auto-aof-rewrite-percentage`.
    pub auto_aof_rewrite_percentage: i64,
    /// `auto-aof-rewrite-min-size`.
    pub auto_aof_rewrite_min_size: u64,
    /// `aof-rewrite-incremental-fsync`.
    pub aof_rewrite_incremental_fsync: bool,
    /// `aof-load-truncated`.
    pub aof_load_truncated: bool,
    /// `aof-use-rdb-preamble`.
    pub aof_use_rdb_preamble: bool,
    /// `aof-timestamp-enabled`.
    pub aof_timestamp_enabled: bool,
    /// `aof-disable-auto-gc`.
    pub aof_disable_auto_gc: bool,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::new("save", "3600 1 300 100 60 10000", Kind::Many(special::SAVE)).planned(),
    Directive::checked_text("dbfilename", "dump.rdb", field!(persistence.dbfilename), |name| {
        special::file_name(name, "dbfilename can't be a path, just a filename")
    })
    .protected()
    .planned(),
    Directive::switch("rdbcompression", "yes", field!(persistence.rdbcompression)).planned(),
    Directive::switch("rdbchecksum", "yes", field!(persistence.rdbchecksum)).immutable().planned(),
    Directive::switch("rdb-del-sync-files", "no", field!(persistence.rdb_del_sync_files)).planned(),
    Directive::switch(
        "rdb-save-incremental-fsync",
        "yes",
        field!(persistence.rdb_save_incremental_fsync),
    )
    .planned(),
    Directive::switch(
        "stop-writes-on-bgsave-error",
        "yes",
        field!(persistence.stop_writes_on_bgsave_error),
    )
    .planned(),
    Directive::integer(
        "rdb-key-save-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.rdb_key_save_delay),
    )
    .hidden()
    .planned(),
    Directive::integer(
        "key-load-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.key_load_delay),
    )
    .hidden()
    .planned(),
    Directive::integer(
        "loading-process-events-interval-bytes",
        "2097152",
        (1024, INT_MAX),
        field!(persistence.loading_process_events_interval_bytes),
    )
    .hidden()
    .planned(),
    Directive::switch("appendonly", "no", field!(persistence.appendonly)).planned(),
    Directive::checked_text(
        "appendfilename",
        "appendonly.aof",
        field!(persistence.appendfilename),
        |name| {
            not_empty(name, "appendfilename can't be empty")?;
            special::file_name(name, "appendfilename can't be a path, just a filename")
        },
    )
    .immutable()
    .planned(),
    Directive::checked_text(
        "appenddirname",
        "appendonlydir",
        field!(persistence.appenddirname),
        |name| {
            not_empty(name, "appenddirname can't be empty")?;
            special::file_name(name, "appenddirname can't be a path, just a dirname")
        },
    )
    .immutable()
    .planned(),
    Directive::choice("appendfsync", "everysec", choice!(persistence.appendfsync)).planned(),
    Directive::switch(
        "no-appendfsync-on-rewrite",
        "no",
        field!(persistence.no_appendfsync_on_rewrite),
    )
    .planned(),
    Directive::integer(
        "auto-aof-rewrite-percentage",
        "100",
        (0, INT_MAX),
        field!(persistence.auto_aof_rewrite_percentage),
    )
    .planned(),
    Directive::memory(
        "auto-aof-rewrite-min-size",
        "64mb",
        (0, SIZE_MAX),
        field!(persistence.auto_aof_rewrite_min_size),
    )
    .planned(),
    Directive::switch(
        "aof-rewrite-incremental-fsync",
        "yes",
        field!(persistence.aof_rewrite_incremental_fsync),
    )
    .planned(),
    Directive::switch("aof-load-truncated", "yes", field!(persistence.aof_load_truncated))
        .planned(),
    Directive::switch("aof-use-rdb-preamble", "yes", field!(persistence.aof_use_rdb_preamble))
        .planned(),
    Directive::switch("aof-timestamp-enabled", "no", field!(persistence.aof_timestamp_enabled))
        .planned(),
    Directive::switch("aof-disable-auto-gc", "no", field!(persistence.aof_disable_auto_gc))
        .planned(),
];

fn not_empty(name: &[u8], message: &'static str) -> Result<(), Refusal> {
    if name.is_empty() { Err(message.into()) } else { Ok(()) }
}
