//! All settings as plain data.

use crate::directive::{Directive, Kind, Write};
use crate::directives::{
    clients::Clients, cluster::Cluster, encoding::Encoding, memory::Memory, network::Network,
    observe::Observe, persistence::Persistence, process::Process, replication::Replication,
    security::Security, tls::Tls,
};
use crate::value::Text;
use crate::{directives, special};
use std::fmt;

/// All settings. Plain data: share it as `Arc<Config>` and read the fields.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Listening addresses and socket options.
    pub network: Network,
    /// Client limits.
    pub clients: Clients,
    /// Threads, files, signals, scheduling, log.
    pub process: Process,
    /// The memory limit, eviction, expiry and freeing.
    pub memory: Memory,
    /// The maximum sizes of compact encodings.
    pub encoding: Encoding,
    /// Slow log, latency monitor, notifications.
    pub observe: Observe,
    /// Authentication and permissions.
    pub security: Security,
    /// Snapshots and the append-only file.
    pub persistence: Persistence,
    /// Primary and replica.
    pub replication: Replication,
    /// Cluster mode.
    pub cluster: Cluster,
    /// Encrypted connections.
    pub tls: Tls,
}

/// Minimum and maximum number of background rounds per second. Values of `hz` outside this range
/// are clamped, as in Redis.
pub const HZ_RANGE: (i64, i64) = (1, 500);
/// Minimum size of the replication backlog. Smaller values are raised, as in Redis.
pub const REPL_BACKLOG_BYTES_MIN: u64 = 16 * 1024;

impl Default for Config {
    /// Every directive at its default. `dir` is the working directory, and `threads` depends on the
    /// machine.
    fn default() -> Self {
        let mut config = Self {
            network: Network::default(),
            clients: Clients::default(),
            process: Process { dir: special::working_directory(), ..Process::default() },
            memory: Memory::default(),
            encoding: Encoding::default(),
            observe: Observe::default(),
            security: Security::default(),
            persistence: Persistence::default(),
            replication: Replication::default(),
            cluster: Cluster::default(),
            tls: Tls::default(),
        };
        for row in directives::all().filter(|row| row.is_setting() && has_default(row)) {
            // A default that its own row rejects would leave the blank value; a test rules that
            // out.
            let taken = row.set(&mut config, &[row.default.into()], Write::Replace);
            debug_assert!(taken.is_ok() || row.name == "dir", "{}: {taken:?}", row.name);
        }
        config
    }
}

impl fmt::Debug for Config {
    /// Shows the values that are not at their defaults, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defaults = Self::default();
        let changed = directives::all().filter(|row| row.show(self) != row.show(&defaults));
        f.debug_map()
            .entries(changed.map(|row| {
                let value = if row.sensitive { b"(secret)".to_vec() } else { row.show(self) };
                (row.name, String::from_utf8_lossy(&value).into_owned())
            }))
            .finish()
    }
}

/// Returns true if the directive has a default. Directives whose value may be absent have none,
/// because there is no text for an absent value.
pub(crate) fn has_default(row: &Directive) -> bool {
    !(row.default.is_empty() && matches!(row.kind, Kind::Many(_)))
}

impl Config {
    /// Clamps values to the range that the server can use, if Redis does so without an error.
    pub(crate) fn normalize(&mut self) {
        self.process.hz = self.process.hz.clamp(HZ_RANGE.0, HZ_RANGE.1);
        let backlog = &mut self.replication.repl_backlog_size;
        *backlog = (*backlog).max(REPL_BACKLOG_BYTES_MIN);
    }

    /// Returns the path of a file named in the configuration. Relative names are inside `dir`.
    pub fn path_in_dir(&self, name: &Text) -> std::path::PathBuf {
        self.process.dir.as_path().join(name.as_path())
    }
}
