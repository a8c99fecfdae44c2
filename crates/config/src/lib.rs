//! Configuration: the directives, their settings, files, command line, CONFIG GET, SET and REWRITE.
//!
//! ```text
//!  command line ── args ──┐
//!  file, stdin ── file ───┼─> Directive::set ──> Config (plain data) ──> Arc<Config> for readers
//!  CONFIG SET ─── store ──┘        │ one row per directive: name, type, default, flags, field
//!  CONFIG GET <── Directive::show ─┤
//!  CONFIG REWRITE <── Directive::lines
//! ```
//!
//! A directive is a row in `directives/<theme>.rs`, next to the struct whose field it sets;
//! everything else is derived from the row. Invariants:
//!  1. A `Config` that is visible to others has passed every row's checks. It is built by
//!     `Config::default`, and changed only on a copy, which replaces the old one after all values
//!     were accepted.
//!  2. `Directive::set` reads the output of `Directive::lines` back as the same value.
//!
//! There are no sockets and no threads here. The hook of `Store::set` applies a change elsewhere
//! (rebinding a port, raising a limit). Start-up checks of the host are in `system`.
#![forbid(unsafe_code)]

pub mod args;
pub mod choice;
pub mod directive;
pub mod directives;
mod error;
mod file;
pub mod glob;
mod include;
pub mod notify;
mod rewrite;
mod special;
mod store;
pub mod system;
mod template;
pub mod value;
mod words;

pub use directive::LineJudge;
pub use error::{ConfigError, FileError, Rejection, RewriteError};
pub use file::{DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, load};
pub use rewrite::replace as replace_file;
pub use rewrite::{Added, Replacement};
pub use special::{BIND_ADDRESSES_MAX, PERCENTILES_MAX, SAVE_RULES_MAX, THREADS_MAX};
pub use special::{os_reason, plain_or_quoted};
pub use store::{Caller, Store};
pub use template::template;

pub use words::{is_blank, quote, split as split_words};

use std::fmt;

use directive::Write;
use directives::{
    clients::Clients, cluster::Cluster, encoding::Encoding, memory::Memory, network::Network,
    observe::Observe, persistence::Persistence, process::Process, replication::Replication,
    security::Security, tls::Tls,
};

/// All settings. Plain data: share it as `Arc<Config>` and read the fields.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Listening addresses and socket options.
    pub network: Network,
    /// Limits of clients.
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

/// Minimum and maximum of background rounds per second. Values of `hz` outside are clamped, as in
/// Redis.
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

/// Directives whose value may be absent are absent by default: there is no text for "none".
fn has_default(row: &directive::Directive) -> bool {
    !(row.default.is_empty() && matches!(row.kind, directive::Kind::Many(_)))
}

impl Config {
    /// Clamps values to the range that the server can use, where Redis does so without an error.
    fn normalise(&mut self) {
        self.process.hz = self.process.hz.clamp(HZ_RANGE.0, HZ_RANGE.1);
        let backlog = &mut self.replication.repl_backlog_size;
        *backlog = (*backlog).max(REPL_BACKLOG_BYTES_MIN);
    }

    /// Returns the path of a file named in the configuration. Relative names are inside `dir`.
    pub fn path_in_dir(&self, name: &value::Text) -> std::path::PathBuf {
        self.process.dir.as_path().join(name.as_path())
    }
}

#[doc(hidden)]
pub mod fuzzing {
    //! The entry point for the fuzzer.

    use super::choice::PubsubDefault;
    use super::directive::LineJudge;
    use super::value::Refusal;

    /// Accepts every line.
    #[derive(Debug)]
    pub struct Lenient;

    impl LineJudge for Lenient {
        fn renamed_commands(&self, _: &[(String, String)]) -> Result<(), Refusal> {
            Ok(())
        }

        fn user(&self, _: &[&[u8]], _: PubsubDefault) -> Result<(), Refusal> {
            Ok(())
        }
    }

    /// Loads `data` as a configuration file, without reading other files. Checks that accepted
    /// settings can be written and read back unchanged.
    pub fn config_file(data: &[u8]) {
        if let Ok(config) = super::file::parse_alone(data, &Lenient) {
            let text = super::rewrite::merge(
                &[],
                &config,
                &super::file::Included::default(),
                &[],
                super::Added::Changed,
            );
            let again = super::file::parse_alone(&text, &Lenient);
            assert_eq!(
                again.map(|again| super::rewrite::shown(&again)).ok(),
                Some(super::rewrite::shown(&config))
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
