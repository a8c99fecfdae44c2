//! The command line: its options ([`Options`]), and its parser.
//!
//! | file | contents |
//! |---|---|
//! | `table` | the options, each with its name, its text, and its effect |
//! | `parse.rs`, `uri.rs` | parsing the command line and addresses |

mod parse;
pub(crate) mod table;
mod uri;

pub(crate) use parse::parse;

use crate::format::{Delimiters, Output};
use brisk_dial::TlsOptions;
use std::path::PathBuf;
use std::time::Duration;

/// The task of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Runs the command after the options, or a session if there is none.
    #[default]
    Command,
    /// `--eval`
    Eval,
    /// `--pipe`
    Pipe,
    /// `--rdb`, `--functions-rdb`
    Rdb,
    /// `--replica`
    Replica,
    /// `--scan`
    Scan,
    /// `--bigkeys`
    BigKeys,
    /// `--memkeys`
    MemKeys,
    /// `--hotkeys`
    HotKeys,
    /// `--stat`
    Stat,
    /// `--latency`, `--latency-history`
    Latency,
    /// `--latency-dist`
    LatencyDist,
    /// `--lru-test`
    LruTest,
    /// `--intrinsic-latency`
    IntrinsicLatency,
    /// `--cluster`
    Cluster,
    /// `analyze`
    Analyze,
    /// `top`
    Top,
    /// `peek`
    Peek,
    /// `doctor`
    Doctor,
    /// `migrate`
    Migrate,
}

/// The tables of `top`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TopTable {
    #[default]
    Commands,
    Clients,
    SlowLog,
    Keys,
    Workers,
}

/// The options of `migrate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MigrateOptions {
    /// Switch over without a question.
    pub(crate) switches: bool,
    /// Make the old server a replica of the new one.
    pub(crate) goes_back: bool,
}

/// The protocol at the beginning of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The server's default, without HELLO.
    #[default]
    Unsaid,
    /// `-2`
    Resp2,
    /// `-3`. It was requested explicitly, so a failure is an error.
    Resp3,
    /// The default of `--json`: RESP3 if the server supports it.
    Resp3IfKnown,
}

/// `--ldb`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debugging {
    /// In a fork of the server, whose changes are discarded.
    Forked,
    /// In the server itself, which is blocked during the session.
    Synchronous,
}

/// The options of `--cluster start-local` and `stop-local`; `None` if an option is not given.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalOptions {
    /// Number of primaries, as the user wrote it.
    pub(crate) nodes: Option<String>,
    /// Number of replicas of each primary, as the user wrote it.
    pub(crate) replicas: Option<String>,
    /// The port of the first node, as the user wrote it.
    pub(crate) port: Option<String>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) server: Option<PathBuf>,
}

/// The options of `--cluster`.
#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    pub(crate) command: Vec<u8>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) replicas: usize,
    pub(crate) master_id: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) from_user: Option<Vec<u8>>,
    pub(crate) from_password: Option<Vec<u8>>,
    pub(crate) asks_from_password: bool,
    pub(crate) to: Option<String>,
    pub(crate) weights: Vec<String>,
    pub(crate) slots: usize,
    pub(crate) timeout_ms: i64,
    pub(crate) pipeline: usize,
    pub(crate) threshold: f64,
    pub(crate) yes: bool,
    pub(crate) simulate: bool,
    pub(crate) replace: bool,
    pub(crate) copy: bool,
    pub(crate) as_replica: bool,
    pub(crate) use_empty_masters: bool,
    pub(crate) search_multiple_owners: bool,
    pub(crate) fix_with_unreachable_masters: bool,
    pub(crate) only_masters: bool,
    pub(crate) only_replicas: bool,
    pub(crate) local: LocalOptions,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            arguments: Vec::new(),
            replicas: 0,
            master_id: None,
            from: None,
            from_user: None,
            from_password: None,
            asks_from_password: false,
            to: None,
            weights: Vec::new(),
            slots: 0,
            timeout_ms: 60_000,
            pipeline: 10,
            threshold: 2.0,
            yes: false,
            simulate: false,
            replace: false,
            copy: false,
            as_replica: false,
            use_empty_masters: false,
            search_multiple_owners: false,
            fix_with_unreachable_masters: false,
            only_masters: false,
            only_replicas: false,
            local: LocalOptions::default(),
        }
    }
}

/// The options, the command and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) host: String,
    pub(crate) port: i64,
    pub(crate) socket: Option<PathBuf>,
    /// How long connecting may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Option<Vec<u8>>,
    pub(crate) asks_password: bool,
    /// True if the password may be on the command line.
    shows_password: bool,
    pub(crate) warns_of_password: bool,
    pub(crate) database: i64,
    pub(crate) protocol: Protocol,
    /// True if both protocol versions were requested.
    contradicts: bool,
    pub(crate) tls: bool,
    /// The files for TLS. Naming a file does not enable TLS.
    pub(crate) tls_files: TlsOptions,
    pub(crate) repeat: i64,
    pub(crate) interval_us: u64,
    pub(crate) last_from_stdin: bool,
    pub(crate) tag_from_stdin: Option<Vec<u8>>,
    pub(crate) output: Output,
    pub(crate) delimiters: Delimiters,
    pub(crate) shows_pushes: bool,
    pub(crate) quoted_input: bool,
    pub(crate) fails_on_error: bool,
    pub(crate) cluster_mode: bool,
    pub(crate) verbose: bool,
    pub(crate) mode: Mode,
    pub(crate) script: Option<PathBuf>,
    pub(crate) debugging: Option<Debugging>,
    pub(crate) rdb_file: Vec<u8>,
    pub(crate) functions_only: bool,
    pub(crate) pipe_timeout_s: u64,
    pub(crate) pattern: Option<Vec<u8>>,
    pub(crate) count: i64,
    /// `--count`, if it is given.
    pub(crate) rounds: Option<u64>,
    /// Dangerous commands at the prompt, and the switch of `migrate`, need no confirmation.
    pub(crate) yes: bool,
    pub(crate) top_table: TopTable,
    /// `peek` shows everything.
    pub(crate) all: bool,
    pub(crate) migrate: MigrateOptions,
    pub(crate) memory_samples: i64,
    pub(crate) latency_history: bool,
    pub(crate) monochrome: bool,
    pub(crate) lru_keys: i64,
    pub(crate) intrinsic_seconds: u64,
    pub(crate) cluster: ClusterOptions,
    /// The command and its arguments.
    pub(crate) words: Vec<Vec<u8>>,
    /// Warnings that are printed before anything else is done.
    pub(crate) warnings: Vec<String>,
}

impl Options {
    /// The default options, depending on whether output is for people.
    pub(crate) fn new(for_people: bool) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            timeout: None,
            user: None,
            password: None,
            asks_password: false,
            shows_password: false,
            warns_of_password: true,
            database: 0,
            protocol: Protocol::Unsaid,
            contradicts: false,
            tls: false,
            tls_files: TlsOptions::default(),
            repeat: 1,
            interval_us: 0,
            last_from_stdin: false,
            tag_from_stdin: None,
            output: if for_people { Output::Standard } else { Output::Raw },
            delimiters: Delimiters::default(),
            shows_pushes: for_people,
            quoted_input: false,
            fails_on_error: false,
            cluster_mode: false,
            verbose: false,
            mode: Mode::Command,
            script: None,
            debugging: None,
            rdb_file: Vec::new(),
            functions_only: false,
            pipe_timeout_s: 30,
            pattern: None,
            count: 10,
            rounds: None,
            yes: false,
            top_table: TopTable::default(),
            all: false,
            migrate: MigrateOptions::default(),
            memory_samples: 0,
            latency_history: false,
            monochrome: false,
            lru_keys: 0,
            intrinsic_seconds: 0,
            cluster: ClusterOptions::default(),
            words: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Options {
    /// These options for the server at an address. The server, the user and the database of these options do not
    /// apply to it.
    ///
    /// # Errors
    /// A text that says why the address is invalid.
    pub(crate) fn at_uri(&self, uri: &str) -> Result<Options, String> {
        let defaults = Options::new(false);
        let mut options = Options {
            host: defaults.host,
            port: defaults.port,
            socket: None,
            user: None,
            password: None,
            database: 0,
            tls: false,
            protocol: Protocol::Unsaid,
            cluster_mode: false,
            ..self.clone()
        };
        uri::apply(&mut options, uri)?;
        Ok(options)
    }
}

/// A shell for which completions can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// The shell with this name.
    pub(super) fn of(name: &str) -> Option<Shell> {
        match name {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }
}

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum Request {
    /// Run a command, a session or a mode.
    Run(Box<Options>),
    /// Print the text of `--help`.
    Help,
    /// Print the version.
    Version,
    /// Print the manual page.
    Manual,
    /// Print the completions for a shell.
    Completions(Shell),
}

/// The reason why a command line is invalid.
#[derive(Debug)]
pub(crate) enum ArgsError {
    /// One or more lines for standard error.
    Because(String),
    /// The text of `--help` is printed to standard error.
    Usage,
}
