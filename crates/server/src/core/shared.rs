//! What all workers share.

use crate::clients::Clients;
use crate::clients::accounts::Accounts;
use crate::clients::weights::Weights;
use crate::core::mailbox::{Mailbox, Message};
use crate::core::pause::{Pause, Paused};
use crate::core::quiesce::Quiesce;
use crate::monitor::Monitors;
use crate::pubsub::Registry;
use crate::replication::feed::Feed;
use crate::run::call::ServerHandler;
use crate::tracking::Prefixes;
use arc_swap::ArcSwap;
use brisk_acl::Vocabulary;
use brisk_config::{Config, Store};
use brisk_engine::Keyspace;
use brisk_engine::table::CommandTable;
use brisk_observe::latency::Latency;
use brisk_observe::log::Log;
use brisk_observe::slowlog::Slowlog;
use brisk_observe::stats::WorkerStats;
use brisk_tls::TlsSettings;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Bits of [`Shared::armed`]: checks and duties that apply to all sessions.
pub mod armed {
    /// `maxmemory` is set.
    pub const MAXMEMORY: u32 = 1;
    /// CLIENT PAUSE is in force.
    pub const PAUSE: u32 = 1 << 1;
    /// Somebody runs MONITOR.
    pub const MONITOR: u32 = 1 << 2;
    /// A worker has too many published messages before it.
    pub const CONGESTION: u32 = 1 << 8;
    /// A script takes long.
    pub const BUSY: u32 = 1 << 12;
}

/// Code words of errors that do not come from scripts.
const OWN_ERRORS: &[&str] = &[
    "ERR",
    "WRONGTYPE",
    "OOM",
    "NOAUTH",
    "NOPERM",
    "WRONGPASS",
    "NOSCRIPT",
    "NOTBUSY",
    "BUSY",
    "UNKILLABLE",
    "EXECABORT",
    "UNBLOCKED",
    "NOGROUP",
    "BUSYGROUP",
    "BUSYKEY",
    "NOPROTO",
    "DENIED",
    "INVALIDOBJ",
    "LOADING",
    "MISCONF",
    "READONLY",
    "NOREPLICAS",
    "MASTERDOWN",
    "NOMASTERLINK",
    "CROSSSLOT",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "INPROG",
    "NOGOODSLAVE",
    "IOERR",
];

/// The server, as all of its threads see it.
pub struct Shared {
    pub log: Arc<Log>,
    pub keyspace: Keyspace,
    pub table: &'static CommandTable,
    /// The functions of its commands that need the session or the server.
    pub handlers: &'static [ServerHandler],
    /// The settings in force.
    config: ArcSwap<Config>,
    /// Grows with every change of the settings.
    config_generation: AtomicU64,
    /// Where CONFIG works; readers use [`Shared::config`].
    pub store: Mutex<Store>,
    pub quiesce: Quiesce,
    pub clients: Clients,
    pub accounts: Accounts,
    /// The memory that clients take.
    pub weights: Weights,
    pub input_weights: Weights,
    pub mailboxes: Box<[Mailbox]>,
    pub stats: Box<[WorkerStats]>,
    /// Bits of [`armed`].
    pub armed: AtomicU32,
    pub monitors: Monitors,
    pub pubsub: Registry,
    pub feed: Feed,
    /// What [`brisk_engine::Env::armed`] is for all workers alike.
    pub armed_for_all: Arc<AtomicU32>,
    /// Prefixes of keys that clients are told of.
    pub prefixes: Prefixes,
    pub slowlog: Slowlog,
    pub latency: Latency,
    pub pause: Pause,
    /// Error replies by code word.
    pub errors: Mutex<HashMap<String, u64>>,
    pub long: crate::core::long::LongWork,
    pub scripts: crate::script::cache::Scripts,
    pub libraries: crate::script::libraries::Libraries,
    pub scripting: crate::script::slow::Scripting,
    pub background: crate::core::background::Background,
    pub started: Instant,
    pub started_unix_ms: u64,
    pub run_id: String,
    /// Names the history of this data set to replicas.
    pub replication_id: String,
    /// The last worker is that of the admin lane.
    pub has_admin_lane: bool,
    /// A service manager watches the process.
    pub is_supervised: bool,
    /// `epoll` or `io_uring`, as chosen at start.
    pub backend: Mutex<&'static str>,
    pub figures: crate::info::figures::Figures,
    /// The server is to end; set once.
    pub shutdown: crate::boot::shutdown::Shutdown,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// What new TLS connections use.
    pub tls: TlsSettings,
    /// DEBUG PAUSE-CRON: the workers' timers rest.
    pub cron_paused: AtomicBool,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD in bytes, 0 for none.
    pub list_plain_min: AtomicUsize,
}

impl Shared {
    /// The parts that need a decision are arguments; the rest starts empty.
    #[expect(clippy::too_many_arguments, reason = "each is one decision of boot")]
    pub fn new(
        log: Arc<Log>,
        config: Config,
        store: Store,
        (table, handlers): (&'static CommandTable, &'static [ServerHandler]),
        keyspace: Keyspace,
        workers: usize,
        run_id: String,
        started_unix_ms: u64,
    ) -> Shared {
        let channels = config.security.acl_pubsub_default;
        let dialect = config.process.dialect;
        Shared {
            accounts: Accounts::new(Vocabulary { table, channels }),
            log,
            keyspace,
            table,
            handlers,
            config: ArcSwap::from_pointee(config),
            config_generation: AtomicU64::new(1),
            store: Mutex::new(store),
            quiesce: Quiesce::new(workers),
            clients: Clients::new(workers),
            weights: Weights::of_memory(workers),
            input_weights: Weights::of_input(workers),
            mailboxes: (0..workers).map(|_| Mailbox::default()).collect(),
            stats: (0..workers).map(|_| WorkerStats::new(table.id_count())).collect(),
            armed: AtomicU32::new(0),
            monitors: Monitors::new(workers),
            pubsub: Registry::new(workers),
            feed: Feed::new(workers),
            armed_for_all: Arc::default(),
            prefixes: Prefixes::new(workers),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
            pause: Pause::default(),
            errors: Mutex::default(),
            background: crate::core::background::Background::default(),
            long: crate::core::long::LongWork::default(),
            scripts: Default::default(),
            libraries: Default::default(),
            scripting: crate::script::slow::Scripting::new(workers, dialect),
            started: Instant::now(),
            started_unix_ms,
            run_id,
            replication_id: "0".repeat(40),
            has_admin_lane: false,
            is_supervised: false,
            backend: Mutex::new("epoll"),
            figures: crate::info::figures::Figures::default(),
            shutdown: crate::boot::shutdown::Shutdown::default(),
            active_expire: AtomicBool::new(true),
            tls: TlsSettings::default(),
            cron_paused: AtomicBool::new(false),
            list_plain_min: AtomicUsize::new(0),
        }
    }

    /// The settings in force. A worker keeps its own reference and renews it when
    /// [`Shared::config_generation`] has grown.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    #[inline]
    pub fn config_generation(&self) -> u64 {
        self.config_generation.load(Ordering::Acquire)
    }

    /// Puts new settings in force: each worker takes them before its next batch.
    pub fn publish_config(&self, config: Config) {
        self.arm(armed::MAXMEMORY, config.memory.maxmemory > 0);
        self.config.store(Arc::new(config));
        self.announce_settings();
    }

    /// Large elements of lists have nodes of their own from `bytes` on; 0 leaves it to the limits.
    pub fn set_list_plain_min(&self, bytes: usize) {
        self.list_plain_min.store(bytes, Ordering::Relaxed);
        self.announce_settings();
    }

    fn announce_settings(&self) {
        self.config_generation.fetch_add(1, Ordering::Release);
        for mailbox in &self.mailboxes {
            mailbox.wake();
        }
    }

    /// Sets or clears a bit of [`armed`].
    pub fn arm(&self, bit: u32, on: bool) {
        if on {
            self.armed.fetch_or(bit, Ordering::SeqCst);
        } else {
            self.armed.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// CLIENT PAUSE: what is paused, and until when.
    pub fn begin_pause(&self, what: Paused, until_ms: u64, now_ms: u64) {
        self.pause.begin(what, until_ms, now_ms, || self.arm(armed::PAUSE, true));
    }

    /// CLIENT UNPAUSE: what waited goes on at once.
    pub fn end_pause(&self) {
        self.pause.end(|| self.arm(armed::PAUSE, false));
        for mailbox in &self.mailboxes {
            mailbox.send(Message::Unpause);
        }
    }

    /// The pause in force at `now_ms`, if any; one that is over is disarmed.
    pub fn pause_in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        self.pause.in_force_or(now_ms, || self.arm(armed::PAUSE, false))
    }

    /// A session of this worker begins to get a line for each command.
    pub fn add_monitor(&self, worker: usize) {
        self.monitors.add(worker, || self.arm(armed::MONITOR, true));
    }

    /// A session of this worker gets no more lines.
    pub fn remove_monitor(&self, worker: usize) {
        self.monitors.remove(worker, || self.arm(armed::MONITOR, false));
    }

    /// Inboxes became too full, or were emptied that had been. While there is one, commands wait.
    pub fn note_full_inboxes(&self, filled: usize, emptied: usize) {
        self.figures.congestions.fetch_add(filled as u64, Ordering::Relaxed);
        self.pubsub.note_full(filled, emptied, |on| self.arm(armed::CONGESTION, on));
    }

    /// Number of workers, that of the admin lane included.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// Number of workers that serve ordinary clients; theirs are the first ids.
    pub fn serving_workers(&self) -> usize {
        self.workers() - usize::from(self.has_admin_lane)
    }

    /// Bytes queued for all clients and not yet taken by the kernel. O(workers).
    pub fn output_bytes(&self) -> u64 {
        let sum: i64 = self.stats.iter().map(|s| s.output_bytes.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// Counts an error reply by its code word. Words that scripts made up are bounded in number: further
    /// ones are counted together.
    pub fn count_error(&self, text: &str) {
        const WORDS_MAX: usize = 128;
        const FURTHER: &str = "ERRORSTATS_OVERFLOW";
        let mut word = text.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() >= WORDS_MAX && !errors.contains_key(word) && !OWN_ERRORS.contains(&word) {
            word = FURTHER;
        }
        match errors.get_mut(word) {
            Some(count) => *count += 1,
            None => _ = errors.insert(word.to_owned(), 1),
        }
    }
}
