//! Snapshots and the append-only file. The settings and their directives.

use crate::choice::AppendFsync;
use crate::directive::{Directive, INT_MAX, Kind, SIZE_MAX, choice, field};
use crate::special;
use crate::value::{SaveRule, SettingRejection, Text};

/// Snapshots and the append-only file.
#[derive(Clone, Default, PartialEq)]
pub struct Persistence {
    /// `save`.
    pub save: Vec<SaveRule>,
    /// `dbfilename`.
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
    /// `appendonly`.
    pub appendonly: bool,
    /// `appendfilename`.
    pub appendfilename: Text,
    /// `appenddirname`.
    pub appenddirname: Text,
    /// `appendfsync`.
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

pub(super) const SNAPSHOTS: &[Directive] = &[
    Directive::new("save", "3600 1 300 100 60 10000", Kind::Many(special::SAVE)).about(
        "When to take a snapshot automatically: after N seconds if there were at least M \
             changes. Lines accumulate; an empty value disables automatic snapshots.",
    ),
    Directive::checked_text("dbfilename", "dump.rdb", field!(persistence.dbfilename), |name| {
        special::file_name(name, "dbfilename can't be a path, just a filename")
    })
    .about("Name of the snapshot file in dir.")
    .protected(),
    Directive::switch("rdbcompression", "yes", field!(persistence.rdbcompression)).about(
        "Compress strings in snapshots. A snapshot that is sent to replicas without a file is only \
             compressed while the replicas receive it more slowly than it is written.",
    ),
    Directive::switch("rdbchecksum", "yes", field!(persistence.rdbchecksum))
        .about("Write a checksum at the end of snapshots, and verify it when one is loaded.")
        .immutable(),
    Directive::switch("rdb-del-sync-files", "no", field!(persistence.rdb_del_sync_files))
        .about("Delete snapshot files that were written only for replicas.")
        .planned("A full copy for a replica leaves no snapshot file."),
    Directive::switch(
        "rdb-save-incremental-fsync",
        "yes",
        field!(persistence.rdb_save_incremental_fsync),
    )
    .about("Sync a snapshot to disk in steps while it is being written."),
    Directive::switch(
        "stop-writes-on-bgsave-error",
        "yes",
        field!(persistence.stop_writes_on_bgsave_error),
    )
    .about("Reject writes if the last snapshot failed, unless save is empty."),
    Directive::integer(
        "rdb-key-save-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.rdb_key_save_delay),
    )
    .about(
        "Microseconds to wait after each saved key, for tests; a negative value means \
             no wait.",
    )
    .hidden(),
    Directive::integer(
        "key-load-delay",
        "0",
        (i32::MIN as i64, INT_MAX),
        field!(persistence.key_load_delay),
    )
    .about(
        "Microseconds to wait after each loaded key, for tests; -N waits once after every \
             N keys.",
    )
    .hidden(),
    Directive::integer(
        "loading-process-events-interval-bytes",
        "2097152",
        (1024, INT_MAX),
        field!(persistence.loading_process_events_interval_bytes),
    )
    .about("Bytes to load before clients are served.")
    .hidden()
    .ignored("Clients are served continuously while a dataset is being loaded."),
];

pub(super) const APPEND_ONLY: &[Directive] = &[
    Directive::switch("appendonly", "no", field!(persistence.appendonly))
        .about("Write every change to an append-only file.")
        .settled_while_loading(),
    Directive::checked_text(
        "appendfilename",
        "appendonly.aof",
        field!(persistence.appendfilename),
        |name| {
            not_empty(name, "appendfilename can't be empty")?;
            special::file_name(name, "appendfilename can't be a path, just a filename")
        },
    )
    .about("Prefix of the names of the append-only files.")
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
    .about("Directory of the append-only files, inside dir.")
    .immutable(),
    Directive::choice("appendfsync", "everysec", choice!(persistence.appendfsync)).about(
        "When changes are synced to disk: always (before the reply), everysec (once per \
             second), or no (when the operating system decides).",
    ),
    Directive::switch(
        "no-appendfsync-on-rewrite",
        "no",
        field!(persistence.no_appendfsync_on_rewrite),
    )
    .about("Do not sync the append-only file during a rewrite or a snapshot."),
    Directive::integer(
        "auto-aof-rewrite-percentage",
        "100",
        (0, INT_MAX),
        field!(persistence.auto_aof_rewrite_percentage),
    )
    .about(
        "Growth of the append-only file in percent at which it is rewritten \
             automatically; 0 disables this.",
    ),
    Directive::memory(
        "auto-aof-rewrite-min-size",
        "64mb",
        (0, SIZE_MAX),
        field!(persistence.auto_aof_rewrite_min_size),
    )
    .about(
        "Size of the append-only file in bytes below which it is not rewritten \
             automatically.",
    ),
    Directive::switch(
        "aof-rewrite-incremental-fsync",
        "yes",
        field!(persistence.aof_rewrite_incremental_fsync),
    )
    .about("Sync a rewritten file to disk in steps while it is being written."),
    Directive::switch("aof-load-truncated", "yes", field!(persistence.aof_load_truncated))
        .about("Load an append-only file whose end is missing, for example after a crash."),
    Directive::switch("aof-use-rdb-preamble", "yes", field!(persistence.aof_use_rdb_preamble))
        .about("Start rewritten files with a snapshot, which loads faster than commands."),
    Directive::switch("aof-timestamp-enabled", "no", field!(persistence.aof_timestamp_enabled))
        .about(
            "Write timestamps to the append-only file, so that it can be truncated to a point \
             in time.",
        ),
    Directive::switch("aof-disable-auto-gc", "no", field!(persistence.aof_disable_auto_gc))
        .about("Keep append-only files that are no longer needed."),
];

fn not_empty(name: &[u8], message: &'static str) -> Result<(), SettingRejection> {
    if name.is_empty() { Err(message.into()) } else { Ok(()) }
}
