//! The process: threads, files, signals, scheduling, log. The settings and their directives.

use crate::choice::{LogLevel, OomScoreAdjust, ShutdownMode, Supervised, SyslogFacility};
use crate::config::Config;
use crate::directive::{
    BAD_DIRECTIVE, Directive, INT_MAX, Kind, LONG_MAX, LineJudge, choice, field,
};
use crate::special;
use crate::value::{SettingRejection, Text, Threads};
use brisk_engine::Dialect;

/// The process: threads, files, signals, scheduling, log.
#[derive(Clone, Default, PartialEq)]
pub struct Process {
    /// `threads`.
    pub threads: Threads,
    /// `io-threads-do-reads`.
    pub io_threads_do_reads: bool,
    /// `databases`.
    pub databases: i64,
    /// `dir`.
    pub dir: Text,
    /// `dialect`.
    pub dialect: Dialect,
    /// `daemonize`.
    pub daemonize: bool,
    /// `supervised`.
    pub supervised: Supervised,
    /// `pidfile`.
    pub pidfile: Text,
    /// `loglevel`.
    pub loglevel: LogLevel,
    /// `logfile`.
    pub logfile: Text,
    /// `always-show-logo`.
    pub always_show_logo: bool,
    /// `syslog-enabled`.
    pub syslog_enabled: bool,
    /// `syslog-ident`.
    pub syslog_ident: Text,
    /// `syslog-facility`.
    pub syslog_facility: SyslogFacility,
    /// `hide-user-data-from-log`.
    pub hide_user_data_from_log: bool,
    /// `crash-log-enabled`.
    pub crash_log_enabled: bool,
    /// `crash-memcheck-enabled`.
    pub crash_memcheck_enabled: bool,
    /// `enable-debug-assert`.
    pub enable_debug_assert: bool,
    /// `use-exit-on-panic`.
    pub use_exit_on_panic: bool,
    /// `watchdog-period`.
    pub watchdog_period: i64,
    /// `set-proc-title`.
    pub set_proc_title: bool,
    /// `proc-title-template`.
    pub proc_title_template: Text,
    /// `locale-collate`.
    pub locale_collate: Text,
    /// `ignore-warnings`.
    pub ignore_warnings: Text,
    /// `hz`.
    pub hz: i64,
    /// `dynamic-hz`.
    pub dynamic_hz: bool,
    /// `busy-reply-threshold`.
    pub busy_reply_threshold_ms: i64,
    /// `shutdown-on-sigint`.
    pub shutdown_on_sigint: ShutdownMode,
    /// `shutdown-on-sigterm`.
    pub shutdown_on_sigterm: ShutdownMode,
    /// `shutdown-timeout`.
    pub shutdown_timeout_s: i64,
    /// `oom-score-adj`.
    pub oom_score_adj: OomScoreAdjust,
    /// `oom-score-adj-values`.
    pub oom_score_adj_values: [i64; 3],
    /// `disable-thp`.
    pub disable_thp: bool,
    /// `jemalloc-bg-thread`.
    pub jemalloc_bg_thread: bool,
    /// `server-cpulist`.
    pub server_cpulist: Text,
    /// `bio-cpulist`.
    pub bio_cpulist: Text,
    /// `aof-rewrite-cpulist`.
    pub aof_rewrite_cpulist: Text,
    /// `bgsave-cpulist`.
    pub bgsave_cpulist: Text,
    /// The arguments of each `loadmodule` line, without `loadmodule`.
    pub modules: Vec<Vec<Text>>,
}

pub(super) const THREADS: &[Directive] = &[
    Directive::new("threads", "0", Kind::One(special::THREADS))
        .about(
            "Number of worker threads, each with its own connections; 0 starts one for each \
             CPU that the process may use.",
        )
        .alias("io-threads")
        .fixed(),
    Directive::switch("io-threads-do-reads", "no", field!(process.io_threads_do_reads))
        .about("Let I/O threads read from connections.")
        .immutable()
        .ignored("Workers always read from their own connections."),
    Directive::text("server-cpulist", "", field!(process.server_cpulist))
        .about("CPUs for the workers.")
        .alias("server_cpulist")
        .immutable()
        .planned("CPU affinity of individual threads is not supported. taskset or a service manager can set it for the process."),
    Directive::text("bio-cpulist", "", field!(process.bio_cpulist))
        .about("CPUs for background threads.")
        .alias("bio_cpulist")
        .immutable()
        .planned("CPU affinity of individual threads is not supported. taskset or a service manager can set it for the process."),
    Directive::text("aof-rewrite-cpulist", "", field!(process.aof_rewrite_cpulist))
        .about("CPUs for rewrites of the append-only file.")
        .alias("aof_rewrite_cpulist")
        .immutable()
        .planned("CPU affinity of individual threads is not supported. taskset or a service manager can set it for the process."),
    Directive::text("bgsave-cpulist", "", field!(process.bgsave_cpulist))
        .about("CPUs for background saves.")
        .alias("bgsave_cpulist")
        .immutable()
        .planned("CPU affinity of individual threads is not supported. taskset or a service manager can set it for the process."),
    Directive::switch("jemalloc-bg-thread", "yes", field!(process.jemalloc_bg_thread))
        .about("Return freed memory to the system in a background thread."),
    Directive::switch("disable-thp", "yes", field!(process.disable_thp))
        .about("Disable transparent huge pages for the process.")
        .immutable()
        .ignored("Huge pages slow down servers that fork. Brisk does not fork."),
];

pub(super) const SERVICE: &[Directive] = &[
    Directive::new("dir", ".", Kind::One(special::DIR))
        .about("Directory of the data files. Relative file names are resolved against it.")
        .protected()
        .settled_while_loading(),
    Directive::integer("databases", "16", (1, INT_MAX), field!(process.databases))
        .about("Number of databases that SELECT can choose from.")
        .immutable(),
    Directive::choice("dialect", "redis", choice!(process.dialect))
        .about("Server to follow where the replies and rules of Redis 7 and Valkey 8 differ.")
        .fixed(),
    Directive::switch("daemonize", "no", field!(process.daemonize))
        .about("Run in the background.")
        .immutable(),
    Directive::choice("supervised", "no", choice!(process.supervised))
        .about(
            "Service manager to notify when the server is ready; auto detects it from the \
             environment.",
        )
        .immutable(),
    Directive::text("pidfile", "", field!(process.pidfile))
        .about(
            "File for the process ID. If it is empty, no file is written, except \
             /var/run/redis.pid with daemonize.",
        )
        .immutable(),
    Directive::switch("set-proc-title", "yes", field!(process.set_proc_title))
        .about("Show proc-title-template in the list of processes.")
        .immutable()
        .planned("Changing the process title is not supported."),
    Directive::checked_text(
        "proc-title-template",
        "{title} {listen-addr} {server-mode}",
        field!(process.proc_title_template),
        special::title_template,
    )
    .about("Template of the process title, with variables in braces.")
    .planned("Changing the process title is not supported."),
    Directive::new("shutdown-on-sigint", "default", Kind::Many(special::SHUTDOWN_ON_SIGINT)).about(
        "Action on SIGINT. default saves a snapshot if save points are configured; save, \
             nosave, now and force can be combined as in SHUTDOWN.",
    ),
    Directive::new("shutdown-on-sigterm", "default", Kind::Many(special::SHUTDOWN_ON_SIGTERM))
        .about("Action on SIGTERM. The values are those of shutdown-on-sigint."),
    Directive::integer("shutdown-timeout", "10", (0, INT_MAX), field!(process.shutdown_timeout_s))
        .about("Seconds that a clean shutdown waits for lagging replicas; 0 does not wait."),
    Directive::choice("oom-score-adj", "no", choice!(process.oom_score_adj)).about(
        "Adjust the OOM score of the process, which the kernel uses to choose a process to \
             kill when memory runs out. yes and relative add to the score that the process had \
             at startup, absolute replaces it, no restores it.",
    ),
    Directive::new("oom-score-adj-values", "0 200 800", Kind::Many(special::OOM_SCORES)).about(
        "Values of oom-score-adj for a primary, a replica and a background process. The \
             third value is unused because there is no background process.",
    ),
    Directive::new("include", "", Kind::Include)
        .about("Another configuration file, which is read at this position. May be repeated.")
        .immutable(),
    Directive::file_only("loadmodule", load_module)
        .about("Load a module. May be repeated.")
        .immutable()
        .planned("Modules are not supported. The line is read, but no module is loaded."),
];

pub(super) const LOG: &[Directive] = &[
    Directive::choice("loglevel", "notice", choice!(process.loglevel))
        .about("Minimum level of the messages that are logged."),
    Directive::text("logfile", "", field!(process.logfile))
        .about("Log file; empty logs to standard output.")
        .immutable(),
    Directive::switch("hide-user-data-from-log", "no", field!(process.hide_user_data_from_log))
        .about("Keep keys and values out of the log.")
        .planned("Not implemented."),
    Directive::switch("crash-log-enabled", "yes", field!(process.crash_log_enabled))
        .about("Log a report when the process crashes."),
    Directive::switch("crash-memcheck-enabled", "yes", field!(process.crash_memcheck_enabled))
        .about("Test the memory after a crash.")
        .ignored("The memory test is not supported."),
    Directive::switch("always-show-logo", "no", field!(process.always_show_logo))
        .about("Show a banner at startup.")
        .immutable()
        .ignored("Brisk has no banner."),
    Directive::switch("syslog-enabled", "no", field!(process.syslog_enabled))
        .about("Log to syslog.")
        .immutable()
        .ignored(
            "Logging to syslog is not supported. A service manager can forward standard output.",
        ),
    Directive::text("syslog-ident", "redis", field!(process.syslog_ident))
        .about("Program name in syslog messages.")
        .immutable()
        .ignored(
            "Logging to syslog is not supported. A service manager can forward standard output.",
        ),
    Directive::choice("syslog-facility", "local0", choice!(process.syslog_facility))
        .about("Facility of syslog messages.")
        .immutable()
        .ignored(
            "Logging to syslog is not supported. A service manager can forward standard output.",
        ),
    Directive::text("ignore-warnings", "", field!(process.ignore_warnings))
        .about("Warnings to ignore at startup.")
        .ignored("No warning prevents the server from starting."),
];

pub(super) const ADVANCED: &[Directive] = &[
    Directive::integer("hz", "10", (0, INT_MAX), field!(process.hz)).about(
        "Rounds of background work per second: expiry, idle clients, sampled metrics. \
             Values outside 1 to 500 are clamped.",
    ),
    Directive::switch("dynamic-hz", "yes", field!(process.dynamic_hz))
        .about("Adapt hz to the number of clients.")
        .ignored("Workers always run hz rounds per second."),
    Directive::integer(
        "busy-reply-threshold",
        "5000",
        (0, LONG_MAX),
        field!(process.busy_reply_threshold_ms),
    )
    .about(
        "Milliseconds after which a running script makes the server reply BUSY to other clients, \
         except to commands on keys that the script does not use, so that they can stop the \
         script; 0 disables this.",
    )
    .alias("lua-time-limit"),
    Directive::text("locale-collate", "", field!(process.locale_collate))
        .about(
            "Locale that defines the order of SORT ALPHA; empty uses the locale of the \
             environment.",
        )
        .planned("Not implemented."),
    Directive::switch("enable-debug-assert", "no", field!(process.enable_debug_assert))
        .about("Run expensive checks of Valkey's data structures.")
        .immutable()
        .hidden()
        .ignored("Brisk does not have these data structures."),
    Directive::switch("use-exit-on-panic", "no", field!(process.use_exit_on_panic))
        .about("How the process exits after a failed assertion.")
        .hidden()
        .ignored("Brisk's exit after a failed assertion is fixed."),
    Directive::integer("watchdog-period", "0", (0, INT_MAX), field!(process.watchdog_period))
        .about("Milliseconds after which a watchdog logs what the server is busy with.")
        .hidden()
        .ignored("The watchdog is not supported."),
    // Directives of removed features; one argument is accepted and ignored.
    Directive::file_only("list-max-ziplist-entries", forget)
        .about("Maximum length of lists in an old encoding.")
        .immutable()
        .ignored("Obsolete: replaced by list-max-listpack-size."),
    Directive::file_only("list-max-ziplist-value", forget)
        .about("Maximum size of elements of lists in an old encoding.")
        .immutable()
        .ignored("Obsolete: replaced by list-max-listpack-size."),
    Directive::file_only("lua-replicate-commands", forget)
        .about("Replicate the changes that scripts make instead of the scripts.")
        .immutable()
        .ignored("Obsolete: these changes are always replicated."),
    Directive::file_only("sentinel", |_, _, _| {
        Err("sentinel directive while not in sentinel mode".into())
    })
    .about("Rejected: Sentinel is not part of this server.")
    .immutable(),
];

fn load_module(
    config: &mut Config,
    words: &[Vec<u8>],
    _: &dyn LineJudge,
) -> Result<(), SettingRejection> {
    if words.is_empty() {
        return Err(BAD_DIRECTIVE.into());
    }
    special::keep_line(&field!(process.modules), config, words);
    Ok(())
}

fn forget(_: &mut Config, words: &[Vec<u8>], _: &dyn LineJudge) -> Result<(), SettingRejection> {
    if words.len() == 1 { Ok(()) } else { Err(BAD_DIRECTIVE.into()) }
}
