//! Snapshots and the append-only file. The settings and their directives.

use crate::choice::AppendFsync;
use crate::directive::{Directive, INT_MAX, Kind, SIZE_MAX, choice, field};
use crate::special;
use crate::value::{Refusal, SaveRule, Text};

/// Snapshots and the append-only file.
#[derive(Clone, Default, PartialEq)]
pub struct Persistence {
    /// `save`: when to snapshot.
    pub save: Vec<SaveRule>,
    /// `dbfilename`: snapshot file in `dir`.
    pub dbfilename: Text,
    /// `rdbcompression`: compress strings in snapshots.
    pub rdbcompression: bool,
    /// `rdbchecksum`: end snapshots with a checksum.
    pub rdbchecksum: bool,
    /// `rdb-del-sync-files`: delete files that were only written for replicas.
    pub rdb_del_sync_files: bool,
    /// `rdb-save-incremental-fsync`: flush snapshots to disk in steps.
    pub rdb_save_incremental_fsync: bool,
    /// `stop-writes-on-bgsave-error`: refuse writes while snapshots fail.
    pub stop_writes_on_bgsave_error: bool,
    /// `rdb-key-save-delay`: microseconds to wait after each saved key, for tests.
    pub rdb_key_save_delay: i64,
    /// `key-load-delay`: microseconds to wait after each loaded key, for tests; negative waits after
    /// one of so many.
    pub key_load_delay: i64,
    /// `loading-process-events-interval-bytes`: bytes loaded between two looks at the clients. Ours
    /// are looked at all the time.
    pub loading_process_events_interval_bytes: i64,
    /// `appendonly`: keep an append-only file.
    pub appendonly: bool,
    /// `appendfilename`: base name of the append-only files.
    pub appendfilename: Text,
    /// `appenddirname`: directory of the append-only files, inside `dir`.
    pub appenddirname: Text,
    /// `appendfsync`: when the append-only file reaches the disk.
    pub appendfsync: AppendFsync,
    /// `no-appendfsync-on-rewrite`: do not flush while a rewrite runs.
    pub no_appendfsync_on_rewrite: bool,
    /// `auto-aof-rewrite-percentage`: percent of growth that starts a rewrite; 0 never.
    pub auto_aof_rewrite_percentage: i64,
    /// `auto-aof-rewrite-min-size`: bytes below which no rewrite starts by itself.
    pub auto_aof_rewrite_min_size: u64,
    /// `aof-rewrite-incremental-fsync`: flush rewritten files in steps.
    pub aof_rewrite_incremental_fsync: bool,
    /// `aof-load-truncated`: load a file whose end is cut off.
    pub aof_load_truncated: bool,
    /// `aof-use-rdb-preamble`: begin rewritten files with a snapshot.
    pub aof_use_rdb_preamble: bool,
    /// `aof-timestamp-enabled`: write the time into the file.
    pub aof_timestamp_enabled: bool,
    /// `aof-disable-auto-gc`: keep files that are no longer needed.
    pub aof_disable_auto_gc: bool,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::new("save", "3600 1 300 100 60 10000", Kind::Many(special::SAVE)),
    Directive::checked_text("dbfilename", "dump.rdb", field!(persistence.dbfilename), |name| {
        special::file_name(name, "dbfilename can't be a path, just a filename")
    })
    .protected(),
    Directive::switch("rdbcompression", "yes", field!(persistence.rdbcompression)),
    Directive::switch("rdbchecksum", "yes", field!(persistence.rdbchecksum)).immutable(),
    Directive::switch("rdb-del-sync-files", "no", field!(persistence.rdb_del_sync_files)).planned(),
    Directive::switch(
        "rdb-save-incremental-fsync",
        "yes",
        field!(persistence.rdb_save_incremental_fsync),
    ),
    Directive::switch(
        "stop-writes-on-bgsave-error",
        "yes",
        field!(persistence.stop_writes_on_bgsave_error),
    ),
    Directive::integer(
        "rdb-key-save-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.rdb_key_save_delay),
    )
    .hidden(),
    Directive::integer(
        "key-load-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.key_load_delay),
    )
    .hidden(),
    Directive::integer(
        "loading-process-events-interval-bytes",
        "2097152",
        (1024, INT_MAX),
        field!(persistence.loading_process_events_interval_bytes),
    )
    .hidden()
    .ignored(),
    Directive::switch("appendonly", "no", field!(persistence.appendonly)).settled_while_loading(),
    Directive::checked_text(
        "appendfilename",
        "appendonly.aof",
        field!(persistence.appendfilename),
        |name| {
            not_empty(name, "appendfilename can't be empty")?;
            special::file_name(name, "appendfilename can't be a path, just a filename")
        },
    )
    .immutable(),
    Directive::checked_text(
        "appenddirname",
        "appendonlydir",
        field!(persistence.appenddirname),
        |name| {
            not_empty(name, "appenddirname can't be empty")?;
            special::file_name(name, "appenddirname can't be a path, just a dirname")
        },
    )
    .immutable(),
    Directive::choice("appendfsync", "everysec", choice!(persistence.appendfsync)),
    Directive::switch(
        "no-appendfsync-on-rewrite",
        "no",
        field!(persistence.no_appendfsync_on_rewrite),
    ),
    Directive::integer(
        "auto-aof-rewrite-percentage",
        "100",
        (0, INT_MAX),
        field!(persistence.auto_aof_rewrite_percentage),
    ),
    Directive::memory(
        "auto-aof-rewrite-min-size",
        "64mb",
        (0, SIZE_MAX),
        field!(persistence.auto_aof_rewrite_min_size),
    ),
    Directive::switch(
        "aof-rewrite-incremental-fsync",
        "yes",
        field!(persistence.aof_rewrite_incremental_fsync),
    ),
    Directive::switch("aof-load-truncated", "yes", field!(persistence.aof_load_truncated)),
    Directive::switch("aof-use-rdb-preamble", "yes", field!(persistence.aof_use_rdb_preamble)),
    Directive::switch("aof-timestamp-enabled", "no", field!(persistence.aof_timestamp_enabled)),
    Directive::switch("aof-disable-auto-gc", "no", field!(persistence.aof_disable_auto_gc)),
];

fn not_empty(name: &[u8], message: &'static str) -> Result<(), Refusal> {
    if name.is_empty() { Err(message.into()) } else { Ok(()) }
}
