//! The process: threads, files, signals, scheduling, log. The settings and their directives.

use crate::Config;
use crate::choice::{LogLevel, OomScoreAdjust, ShutdownMode, Supervised, SyslogFacility};
use crate::directive::{
    BAD_DIRECTIVE, Directive, INT_MAX, Kind, LONG_MAX, LineJudge, choice, field,
};
use crate::special;
use crate::value::{Refusal, Text, Threads};
use brisk_engine::Dialect;

/// The process: threads, files, signals, scheduling, log.
#[derive(Clone, Default, PartialEq)]
pub struct Process {
    /// `threads`: worker threads; 0 for one per core available.
    pub threads: Threads,
    /// `io-threads-do-reads`: kept for old files.
    pub io_threads_do_reads: bool,
    /// `databases`: number of databases.
    pub databases: i64,
    /// `dir`: directory of data files, absolute.
    pub dir: Text,
    /// `dialect`: whose words and rules are followed where Redis 7 and Valkey 8 differ.
    pub dialect: Dialect,
    /// `daemonize`: go to the background at start.
    pub daemonize: bool,
    /// `supervised`: service manager to notify.
    pub supervised: Supervised,
    /// `pidfile`: file that holds the process id; empty for none.
    pub pidfile: Text,
    /// `loglevel`: least important lines that are logged.
    pub loglevel: LogLevel,
    /// `logfile`: log file; empty for standard output.
    pub logfile: Text,
    /// `always-show-logo`: kept for old files; there is no banner.
    pub always_show_logo: bool,
    /// `syslog-enabled`: kept for old files.
    pub syslog_enabled: bool,
    /// `syslog-ident`: kept for old files.
    pub syslog_ident: Text,
    /// `syslog-facility`: kept for old files.
    pub syslog_facility: SyslogFacility,
    /// `hide-user-data-from-log`: keep keys and values out of the log.
    pub hide_user_data_from_log: bool,
    /// `crash-log-enabled`: log a report when the process crashes.
    pub crash_log_enabled: bool,
    /// `crash-memcheck-enabled`: kept for old files.
    pub crash_memcheck_enabled: bool,
    /// `use-exit-on-panic`: kept for old files.
    pub use_exit_on_panic: bool,
    /// `watchdog-period`: kept for old files.
    pub watchdog_period: i64,
    /// `set-proc-title`: show `proc-title-template` in the process list.
    pub set_proc_title: bool,
    /// `proc-title-template`: text of the process title.
    pub proc_title_template: Text,
    /// `locale-collate`: locale of SORT ALPHA.
    pub locale_collate: Text,
    /// `ignore-warnings`: kept for old files; no start-up warning stops the server.
    pub ignore_warnings: Text,
    /// `hz`: background rounds per second, kept within 1 to 500.
    pub hz: i64,
    /// `dynamic-hz`: kept for old files; each worker does its share in `hz` rounds, however many
    /// clients there are.
    pub dynamic_hz: bool,
    /// `busy-reply-threshold`: milliseconds after which a script answers others with BUSY; 0 never.
    pub busy_reply_threshold_ms: i64,
    /// `shutdown-on-sigint`: what SIGINT does.
    pub shutdown_on_sigint: ShutdownMode,
    /// `shutdown-on-sigterm`: what SIGTERM does.
    pub shutdown_on_sigterm: ShutdownMode,
    /// `shutdown-timeout`: seconds a shutdown waits for replicas.
    pub shutdown_timeout_s: i64,
    /// `oom-score-adj`: whether the kernel's out-of-memory score is set.
    pub oom_score_adj: OomScoreAdjust,
    /// `oom-score-adj-values`: scores of a primary, a replica and a background child.
    pub oom_score_adj_values: [i64; 3],
    /// `disable-thp`: do without transparent huge pages. They cost those who fork; this server does
    /// not, and has a rule of its own for them (`memory.rs`).
    pub disable_thp: bool,
    /// `jemalloc-bg-thread`: let the allocator purge in a thread of its own.
    pub jemalloc_bg_thread: bool,
    /// `server-cpulist`: processors of the workers.
    pub server_cpulist: Text,
    /// `bio-cpulist`: processors of background threads.
    pub bio_cpulist: Text,
    /// `aof-rewrite-cpulist`: processors of the AOF rewrite.
    pub aof_rewrite_cpulist: Text,
    /// `bgsave-cpulist`: processors of the snapshot writer.
    pub bgsave_cpulist: Text,
    /// The words of each `loadmodule` line, without `loadmodule`.
    pub modules: Vec<Vec<Text>>,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::new("threads", "0", Kind::One(special::THREADS)).alias("io-threads").fixed(),
    Directive::switch("io-threads-do-reads", "no", field!(process.io_threads_do_reads))
        .immutable()
        .ignored(),
    Directive::integer("databases", "16", (1, INT_MAX), field!(process.databases)).immutable(),
    Directive::new("dir", ".", Kind::One(special::DIR)).protected().settled_while_loading(),
    Directive::choice("dialect", "redis", choice!(process.dialect)).fixed(),
    Directive::switch("daemonize", "no", field!(process.daemonize)).immutable(),
    Directive::choice("supervised", "no", choice!(process.supervised)).immutable(),
    Directive::text("pidfile", "", field!(process.pidfile)).immutable(),
    Directive::choice("loglevel", "notice", choice!(process.loglevel)),
    Directive::text("logfile", "", field!(process.logfile)).immutable(),
    Directive::switch("always-show-logo", "no", field!(process.always_show_logo))
        .immutable()
        .ignored(),
    Directive::switch("syslog-enabled", "no", field!(process.syslog_enabled)).immutable().ignored(),
    Directive::text("syslog-ident", "redis", field!(process.syslog_ident)).immutable().ignored(),
    Directive::choice("syslog-facility", "local0", choice!(process.syslog_facility))
        .immutable()
        .ignored(),
    Directive::switch("hide-user-data-from-log", "no", field!(process.hide_user_data_from_log))
        .planned(),
    Directive::switch("crash-log-enabled", "yes", field!(process.crash_log_enabled)),
    Directive::switch("crash-memcheck-enabled", "yes", field!(process.crash_memcheck_enabled))
        .ignored(),
    Directive::switch("use-exit-on-panic", "no", field!(process.use_exit_on_panic))
        .hidden()
        .ignored(),
    Directive::integer("watchdog-period", "0", (0, INT_MAX), field!(process.watchdog_period))
        .hidden()
        .ignored(),
    Directive::switch("set-proc-title", "yes", field!(process.set_proc_title))
        .immutable()
        .planned(),
    Directive::checked_text(
        "proc-title-template",
        "{title} {listen-addr} {server-mode}",
        field!(process.proc_title_template),
        special::title_template,
    )
    .planned(),
    Directive::text("locale-collate", "", field!(process.locale_collate)).planned(),
    Directive::text("ignore-warnings", "", field!(process.ignore_warnings)).ignored(),
    Directive::integer("hz", "10", (0, INT_MAX), field!(process.hz)),
    Directive::switch("dynamic-hz", "yes", field!(process.dynamic_hz)).ignored(),
    Directive::integer(
        "busy-reply-threshold",
        "5000",
        (0, LONG_MAX),
        field!(process.busy_reply_threshold_ms),
    )
    .alias("lua-time-limit"),
    Directive::new("shutdown-on-sigint", "default", Kind::Many(special::SHUTDOWN_ON_SIGINT)),
    Directive::new("shutdown-on-sigterm", "default", Kind::Many(special::SHUTDOWN_ON_SIGTERM)),
    Directive::integer("shutdown-timeout", "10", (0, INT_MAX), field!(process.shutdown_timeout_s))
        .planned(),
    Directive::choice("oom-score-adj", "no", choice!(process.oom_score_adj)).planned(),
    Directive::new("oom-score-adj-values", "0 200 800", Kind::Many(special::OOM_SCORES)).planned(),
    Directive::switch("disable-thp", "yes", field!(process.disable_thp)).immutable().ignored(),
    Directive::switch("jemalloc-bg-thread", "yes", field!(process.jemalloc_bg_thread)),
    Directive::text("server-cpulist", "", field!(process.server_cpulist))
        .alias("server_cpulist")
        .immutable()
        .planned(),
    Directive::text("bio-cpulist", "", field!(process.bio_cpulist))
        .alias("bio_cpulist")
        .immutable()
        .planned(),
    Directive::text("aof-rewrite-cpulist", "", field!(process.aof_rewrite_cpulist))
        .alias("aof_rewrite_cpulist")
        .immutable()
        .planned(),
    Directive::text("bgsave-cpulist", "", field!(process.bgsave_cpulist))
        .alias("bgsave_cpulist")
        .immutable()
        .planned(),
    Directive::file_only("loadmodule", load_module).immutable().planned(),
    Directive::new("include", "", Kind::Include).immutable(),
    // Steered things that are gone; one argument is taken and forgotten.
    Directive::file_only("list-max-ziplist-entries", forget).immutable().ignored(),
    Directive::file_only("list-max-ziplist-value", forget).immutable().ignored(),
    Directive::file_only("lua-replicate-commands", forget).immutable().ignored(),
    Directive::file_only("sentinel", |_, _, _| {
        Err("sentinel directive while not in sentinel mode".into())
    })
    .immutable(),
];

fn load_module(config: &mut Config, words: &[Vec<u8>], _: &dyn LineJudge) -> Result<(), Refusal> {
    if words.is_empty() {
        return Err(BAD_DIRECTIVE.into());
    }
    special::keep_line(&field!(process.modules), config, words);
    Ok(())
}

fn forget(_: &mut Config, words: &[Vec<u8>], _: &dyn LineJudge) -> Result<(), Refusal> {
    if words.len() == 1 { Ok(()) } else { Err(BAD_DIRECTIVE.into()) }
}
