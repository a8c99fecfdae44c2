//! The command line: redis-benchmark's options with the same meaning, and additional options.
//!
//! Options come first. The first argument that is not an option begins a command, and all following arguments belong to
//! it. After `compare`, arguments that are not options are servers. `experiments`, `delay-proxy` and `plot` have their
//! own command lines.

mod build;
pub mod experiments;
pub mod help;
mod parse;

pub use build::{Case, Cases};
pub use parse::parse;

use crate::delay::DelayPlan;
use crate::engine::plan::{Arrivals, OnError};
use crate::load::keys::KeyChoice;
use crate::load::sizes::ValueSizes;
use brisk_dial::tls::TlsOptions;
use experiments::ExperimentOptions;
use std::path::PathBuf;
use std::time::Duration;

/// The request of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Measure one server.
    Run(Box<Options>),
    /// Compare servers.
    Compare(Box<Options>),
    /// Run experiments.
    Experiments(Box<ExperimentOptions>),
    /// Run the delay proxy.
    DelayProxy(DelayPlan),
    /// Plot the results of a comparison.
    Plot(PlotFiles),
}

/// The files of `plot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotFiles {
    /// The JSON of a comparison.
    pub results: PathBuf,
    /// The SVG file to write.
    pub svg: PathBuf,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The format of redis-benchmark; for a comparison, an aligned table.
    #[default]
    Long,
    /// `-q`
    Quiet,
    /// `--csv`
    Csv,
    /// `--json`
    Json,
    /// A Markdown table, for comparisons.
    Markdown,
}

/// The sender of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sender {
    /// This program's own engine.
    #[default]
    Engine,
    /// The client library, with connections that all callers share.
    Library,
    /// The client library, with a pool of connections.
    LibraryPool,
}

/// All options.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Options {
    /// `-h`
    pub host: String,
    /// `-p`
    pub port: u16,
    /// `-s`
    pub socket: Option<PathBuf>,
    /// `--user`
    pub user: Option<String>,
    /// `-a`
    pub password: Option<String>,
    /// `--dbnum`
    pub database: u32,
    /// `-3`
    pub resp3: bool,
    /// `--enable-tracking`
    pub tracking: bool,
    /// `--cluster`
    pub cluster: bool,
    /// `--tls` and related options.
    pub tls: Option<TlsOptions>,
    /// `-c`
    pub clients: usize,
    /// `-n`
    pub requests: u64,
    /// `--duration`
    pub duration: Option<Duration>,
    /// `--warmup`
    pub warmup: Duration,
    /// `--rate`
    pub rate: Option<f64>,
    /// `--arrivals`
    pub arrivals: Arrivals,
    /// `-P`; at least one.
    pub pipelines: Vec<usize>,
    /// `-k`
    pub keep_alive: bool,
    /// `--client`
    pub sender: Sender,
    /// `--threads`; 0, as in redis-benchmark, if the option is missing.
    pub threads: usize,
    /// `-I`
    pub idle: bool,
    /// `-l`
    pub again: bool,
    /// `-t`
    pub tests: Option<String>,
    /// The arguments of the user's command.
    pub own: Vec<String>,
    /// `-x`
    pub last_from_stdin: bool,
    /// `--command` with `--weight`
    pub commands: Vec<(String, u64)>,
    /// `--mix`
    pub mix: Option<String>,
    /// `-r`
    pub keyspace: Option<u64>,
    /// `--keys`
    pub keys: KeyChoice,
    /// `-d`
    pub sizes: ValueSizes,
    /// `--fill`
    pub fill: bool,
    /// `--seed`
    pub seed: u64,
    /// `--verify`
    pub verify: bool,
    /// `--count-errors`
    pub on_error: OnError,
    /// `-q`, `--csv`, `--json`, `--format`
    pub format: Format,
    /// `--precision`
    pub precision: u8,
    /// `--pin`, the part before the slash.
    pub server_cpus: Vec<usize>,
    /// `--pin`, the part after the slash.
    pub load_cpus: Vec<usize>,
    /// All arguments of `compare`, unchanged.
    pub arguments: Vec<String>,
    /// The servers of `compare`.
    pub servers: Vec<String>,
    /// `--rounds`
    pub rounds: usize,
    /// `--baseline`
    pub baseline: Option<String>,
    /// `--save`
    pub save: Vec<PathBuf>,
    /// `--html` of `compare`.
    pub html: Option<PathBuf>,
    /// `--public`
    pub public: bool,
    /// `--syscalls`
    pub syscalls: bool,
    /// Warnings for the user, for standard error.
    pub warnings: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            host: "127.0.0.1".to_owned(),
            port: brisk_dial::address::PORT_DEFAULT,
            socket: None,
            user: None,
            password: None,
            database: 0,
            resp3: false,
            tracking: false,
            cluster: false,
            tls: None,
            clients: 50,
            requests: 100_000,
            duration: None,
            warmup: Duration::ZERO,
            rate: None,
            arrivals: Arrivals::Even,
            pipelines: vec![1],
            keep_alive: true,
            sender: Sender::Engine,
            threads: 0,
            idle: false,
            again: false,
            tests: None,
            own: Vec::new(),
            last_from_stdin: false,
            commands: Vec::new(),
            mix: None,
            keyspace: None,
            keys: KeyChoice::Uniform,
            sizes: ValueSizes::Fixed(3),
            fill: false,
            seed: 1,
            verify: false,
            on_error: OnError::Stop,
            format: Format::Long,
            precision: 3,
            server_cpus: Vec::new(),
            load_cpus: Vec::new(),
            arguments: Vec::new(),
            servers: Vec::new(),
            rounds: 5,
            baseline: None,
            save: Vec::new(),
            html: None,
            public: false,
            syscalls: false,
            warnings: Vec::new(),
        }
    }
}
