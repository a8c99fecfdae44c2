//! The state that all workers share: one value for each feature.

use super::changes::ChangeDispatcher;
use super::debug_switches::DebugSwitches;
use super::mailbox::{Mailbox, Message};
use super::pause::{Hold, Pause, Paused};
use super::process::Process;
use super::quiesce::Quiesce;
use super::settings::Settings;
use crate::clients::Clients;
use crate::clients::accounts::Accounts;
use crate::core::call::ServerHandler;
use crate::core::shutdown::Shutdown;
use crate::monitor::Monitors;
use crate::persistence::aof::state::Aof;
use crate::persistence::state::Snapshots;
use crate::pubsub::Registry;
use crate::replication::upstream::state::{Upstream, UpstreamPhase};
use crate::replication::{Replication, needs_good};
use crate::script::slow::SlowScript;
use crate::tracking::Prefixes;
use brisk_acl::Vocabulary;
use brisk_config::Config;
use brisk_config::directives::replication::Replication as ReplicationSettings;
use brisk_engine::table::CommandTable;
use brisk_engine::{Keyspace, PrimaryWords};
use brisk_net::listeners::OpenListeners;
use brisk_net::tls::TlsSettings;
use brisk_observe::errors::ErrorCounts;
use brisk_observe::figures::Figures;
use brisk_observe::latency::Latency;
use brisk_observe::log::{Log, Role};
use brisk_observe::slowlog::Slowlog;
use brisk_observe::stats::{Count, WorkerStats};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bits of [`Shared::armed`]: checks and duties that apply to all sessions.
pub mod armed {
    /// `maxmemory` is set.
    pub const MAXMEMORY: u32 = 1;
    /// CLIENT PAUSE is in force, or the server holds writes back.
    pub const PAUSE: u32 = 1 << 1;
    /// A client runs MONITOR.
    pub const MONITOR: u32 = 1 << 2;
    /// A worker has too many undelivered published messages.
    pub const CONGESTION: u32 = 1 << 8;
    /// A slow script is running.
    pub const BUSY: u32 = 1 << 12;
    /// The last snapshot failed, or the append-only file cannot be written.
    pub const DISK_ERROR: u32 = 1 << 13;
    /// The dataset is being loaded.
    pub const LOADING: u32 = 1 << 14;
    /// Too much data waits to be written to the append-only file.
    pub const LOG_CONGESTION: u32 = 1 << 15;
    /// This server is a replica.
    pub const REPLICA: u32 = 1 << 16;
    /// There are fewer replicas than writes require (`min-replicas-to-write`).
    pub const FEW_REPLICAS: u32 = 1 << 17;
    /// This server is a replica that rejects reads of its data, since its link to the primary is
    /// down.
    pub const STALE: u32 = 1 << 18;
    /// This server is a replica, and some client can be redirected to its primary.
    pub const REDIRECT: u32 = 1 << 19;
    /// Another dataset of the same history is being loaded and will replace the present one, which
    /// is served meanwhile.
    pub const ASYNC_LOADING: u32 = 1 << 20;
    /// All bits that any command checks at the gate.
    pub const AT_THE_GATE: u32 = MAXMEMORY
        | PAUSE
        | MONITOR
        | CONGESTION
        | BUSY
        | DISK_ERROR
        | LOADING
        | ASYNC_LOADING
        | LOG_CONGESTION
        | STALE
        | REDIRECT;
    /// The bits that only commands that may write check there: reads must not cost more on a
    /// replica.
    pub const BEFORE_WRITES: u32 = REPLICA | FEW_REPLICAS;
}

/// The state of the server that all of its threads share.
pub struct Shared {
    pub log: Arc<Log>,
    pub keyspace: Keyspace,
    pub table: &'static CommandTable,
    /// The functions of its commands that need the session or the server.
    pub handlers: &'static [ServerHandler],
    pub process: Process,
    pub settings: Settings,
    pub quiesce: Quiesce,
    /// The connected clients, and the memory of each.
    pub clients: Clients,
    pub accounts: Accounts,
    pub mailboxes: Box<[Mailbox]>,
    /// Bits of [`armed`].
    pub armed: AtomicU32,
    /// The part of [`brisk_engine::Env::hooks`] that is the same for all workers.
    pub hooks_for_all: Arc<AtomicU32>,
    pub observe: Observe,
    pub monitors: Monitors,
    pub pubsub: Registry,
    /// Key prefixes whose changes clients track.
    pub tracking: Prefixes,
    pub replication: Replication,
    changes: ChangeDispatcher,
    pub snapshots: Snapshots,
    /// The append-only file.
    pub aof: Aof,
    pub scripts: crate::script::cache::Scripts,
    pub libraries: crate::script::libraries::Libraries,
    pub running_scripts: crate::script::slow::Scripting,
    pub pause: Pause,
    /// Commands that other threads compute.
    pub long: crate::core::long::LongWork,
    /// Large values that another thread frees.
    pub background: crate::core::background::Background,
    /// The TLS settings for new connections.
    pub tls: TlsSettings,
    /// The listeners of the workers, closed when the server shuts down.
    pub listeners: OpenListeners,
    /// The shutdown of the server, requested once.
    pub shutdown: Shutdown,
    pub debug: DebugSwitches,
}

/// The statistics and logs of the server.
#[derive(Debug)]
pub struct Observe {
    /// The counters of each worker.
    pub stats: Box<[WorkerStats]>,
    pub figures: Figures,
    pub errors: ErrorCounts,
    pub slowlog: Slowlog,
    pub latency: Latency,
}

impl Observe {
    fn new(workers: usize, commands: usize) -> Observe {
        Observe {
            stats: (0..workers).map(|_| WorkerStats::new(commands)).collect(),
            figures: Figures::default(),
            errors: ErrorCounts::default(),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
        }
    }

    /// The sum of a counter over all workers.
    pub fn sum(&self, of: fn(&WorkerStats) -> &Count) -> u64 {
        self.stats.iter().map(|stats| of(stats).get()).fold(0, u64::wrapping_add)
    }

    /// Number of changes to the data since the start.
    pub fn changes(&self) -> u64 {
        self.sum(|stats| &stats.changes)
    }
}

impl Shared {
    /// Creates the shared state. The parts that need a decision are arguments; the rest starts
    /// empty.
    pub fn new(
        log: Arc<Log>,
        settings: Settings,
        (table, handlers): (&'static CommandTable, &'static [ServerHandler]),
        keyspace: Keyspace,
        workers: usize,
        process: Process,
        replication_id: String,
    ) -> Shared {
        let config = settings.current();
        let channels = config.security.acl_pubsub_default;
        let dialect = config.process.dialect;
        let snapshots = Snapshots::new(process.started_unix_ms / 1000);
        let replication = Replication::new(workers, replication_id);
        replication.adopt(&config);
        Shared {
            accounts: Accounts::new(Vocabulary { table, channels }),
            log,
            keyspace,
            table,
            handlers,
            process,
            settings,
            quiesce: Quiesce::new(workers),
            clients: Clients::new(workers),
            mailboxes: (0..workers).map(|_| Mailbox::default()).collect(),
            armed: AtomicU32::new(0),
            hooks_for_all: Arc::default(),
            observe: Observe::new(workers, table.id_count()),
            monitors: Monitors::new(workers),
            pubsub: Registry::new(workers),
            tracking: Prefixes::new(workers),
            replication,
            changes: ChangeDispatcher::default(),
            snapshots,
            aof: Aof::new(workers),
            scripts: Default::default(),
            libraries: Default::default(),
            running_scripts: crate::script::slow::Scripting::new(workers, dialect),
            pause: Pause::default(),
            long: Default::default(),
            background: Default::default(),
            tls: TlsSettings::default(),
            listeners: OpenListeners::default(),
            shutdown: Shutdown::default(),
            debug: DebugSwitches::default(),
        }
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<Config> {
        self.settings.current()
    }

    /// The log's term for the server that a replica follows.
    pub fn primary_words(&self) -> PrimaryWords {
        self.config().process.dialect.primary_words()
    }

    /// Puts new settings in force: each worker takes them before its next batch.
    pub fn publish_config(&self, config: Config) {
        self.arm_settings(&config);
        self.replication.adopt(&config);
        self.arm_few_replicas(&config.replication);
        self.settings.replace(config);
        self.arm_stale();
        self.announce_settings();
    }

    /// Applies the settings to the checks and to the log.
    pub fn arm_settings(&self, config: &Config) {
        let replication = &config.replication;
        let is_replica = replication.replicaof.is_some();
        let is_limited = !(is_replica && replication.replica_ignore_maxmemory);
        self.arm(armed::MAXMEMORY, is_limited && config.memory.maxmemory > 0);
        self.arm(armed::REPLICA, is_replica);
        let redirects = is_replica && self.clients.had_redirected.load(Ordering::SeqCst);
        self.arm(armed::REDIRECT, redirects);
        self.log.set_role(if is_replica { Role::Replica } else { Role::Primary });
        // The log has the reason. CONFIG SET has checked it before.
        let _ = self.process.oom_score.apply(config, &self.log);
    }

    /// Notes that a client can be redirected to the primary, if this server is a replica.
    pub fn note_redirected(&self) {
        self.clients.had_redirected.store(true, Ordering::SeqCst);
        if self.is_replica() {
            self.arm(armed::REDIRECT, true);
        }
    }

    /// Sets the phase of an upstream if the present generation is still `generation`. Returns true
    /// if so.
    pub fn enter_phase(
        &self,
        upstream: &Upstream,
        generation: u64,
        phase: UpstreamPhase,
        now_ms: u64,
    ) -> bool {
        let is_wanted = upstream.set_phase(generation, phase, now_ms);
        self.arm_stale();
        is_wanted
    }

    /// Updates whether a replica rejects reads of its data. This depends on the settings and on the
    /// link to the primary: call it when one of them has changed.
    pub fn arm_stale(&self) {
        let is_stale = || {
            let config = self.config();
            let replication = &config.replication;
            replication.replicaof.is_some()
                && !replication.replica_serve_stale_data
                && !self.replication.upstream.is_up()
        };
        let mut stale = is_stale();
        self.arm(armed::STALE, stale);
        // Another thread may have changed one of them after this thread read it.
        while is_stale() != stale {
            stale = !stale;
            self.arm(armed::STALE, stale);
        }
    }

    /// List elements of at least `bytes` get nodes of their own; 0 leaves it to the limits.
    pub fn set_list_plain_min(&self, bytes: usize) {
        self.debug.list_plain_min.store(bytes, Ordering::Relaxed);
        self.announce_settings();
    }

    /// Sets whether payloads and snapshots are read regardless of their checksums.
    pub fn set_skips_checksums(&self, on: bool) {
        self.debug.skips_checksums.store(on, Ordering::Relaxed);
        self.announce_settings();
    }

    fn announce_settings(&self) {
        self.settings.announce();
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

    /// Reports whether the dataset is being loaded: startup is not complete, no client reads or
    /// changes a key, and no change could be lost.
    pub fn is_loading(&self) -> bool {
        self.armed.load(Ordering::Relaxed) & armed::LOADING != 0
    }

    /// Reports whether another dataset is being loaded while the present one is served.
    pub fn is_loading_beside(&self) -> bool {
        self.armed.load(Ordering::Relaxed) & armed::ASYNC_LOADING != 0
    }

    /// Reports whether this server is a replica.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.armed.load(Ordering::Relaxed) & armed::REPLICA != 0
    }

    /// Reports whether a slow script is running, so quiescence is not possible.
    pub fn is_busy(&self) -> bool {
        self.armed.load(Ordering::Relaxed) & armed::BUSY != 0
    }

    /// Updates whether writes are rejected for lack of replicas; this depends on the number of good
    /// replicas. The timers call it again, since a replica can fall too far behind just by time
    /// passing.
    pub fn arm_few_replicas(&self, settings: &ReplicationSettings) {
        let few = needs_good(settings)
            && !self.is_replica()
            && self.replication.has_few_good(settings, brisk_reactor::unix_ms());
        if few != (self.armed.load(Ordering::Relaxed) & armed::FEW_REPLICAS != 0) {
            self.arm(armed::FEW_REPLICAS, few);
        }
    }

    /// Updates whether writes are rejected; this depends on the last result of a disk write.
    pub fn arm_disk_error(&self) {
        let is_well = self.snapshots.is_ok() && self.aof.failure().is_none();
        self.arm(armed::DISK_ERROR, !is_well);
    }

    /// CLIENT PAUSE: sets the commands that are paused, and until when.
    pub fn begin_pause(&self, what: Paused, until_ms: u64, now_ms: u64) {
        self.pause.begin(what, until_ms, now_ms, || self.arm(armed::PAUSE, true));
    }

    /// CLIENT UNPAUSE: waiting commands continue at once.
    pub fn end_pause(&self) {
        self.pause.end(|| self.arm(armed::PAUSE, false));
        for mailbox in &self.mailboxes {
            mailbox.send(Message::Unpause);
        }
    }

    /// Holds back all writes until [`Shared::release_writes`] for the same purpose.
    pub fn hold_writes(&self, purpose: Hold) {
        self.pause.hold(purpose, || self.arm(armed::PAUSE, true));
    }

    /// Ends that hold: commands that waited continue at once, unless they are paused for another reason
    /// too.
    pub fn release_writes(&self, purpose: Hold) {
        self.pause.release(purpose);
        for mailbox in &self.mailboxes {
            mailbox.send(Message::Unpause);
        }
    }

    /// The pause in force at `now_ms`, if any; one that is over is disarmed.
    pub fn pause_in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        self.pause.in_force_or(now_ms, || self.arm(armed::PAUSE, false))
    }

    /// Counts a session of this worker that begins to get a line for each command.
    pub fn add_monitor(&self, worker: usize) {
        self.monitors.add(worker, || self.arm(armed::MONITOR, true));
    }

    /// Counts a session of this worker that gets no more lines.
    pub fn remove_monitor(&self, worker: usize) {
        self.monitors.remove(worker, || self.arm(armed::MONITOR, false));
    }

    /// Counts inboxes that became too full, or full ones that were emptied. While there is one,
    /// commands wait.
    pub fn note_full_inboxes(&self, filled: usize, emptied: usize) {
        self.observe.figures.congestions.fetch_add(filled as u64, Ordering::Relaxed);
        self.pubsub.note_full(filled, emptied, |on| self.arm(armed::CONGESTION, on));
    }

    /// Number of workers, including that of the admin lane.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// Number of workers that serve ordinary clients; they have the first ids.
    pub fn serving_workers(&self) -> usize {
        self.workers() - usize::from(self.process.has_admin_lane)
    }

    /// Bytes queued for all clients that the kernel has not taken. O(workers).
    pub fn output_bytes(&self) -> u64 {
        let stats = self.observe.stats.iter();
        let sum: i64 = stats.map(|own| own.output_bytes.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// The present meaning of rules about permissions.
    pub fn vocabulary(&self) -> Vocabulary<'static> {
        let channels = self.config().security.acl_pubsub_default;
        Vocabulary { table: self.table, channels }
    }

    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Registers a script that has become slow. The caller ensures that no worker is in the middle
    /// of a command that the script affects.
    pub fn begin_slow(&self, script: SlowScript) {
        self.running_scripts.add_slow(script, || self.arm(armed::BUSY, true));
        self.quiesce.refuse();
    }

    /// A slow script may now touch anything. The caller ensures the same as for
    /// [`Shared::begin_slow`].
    pub fn claim_all_keys(&self, worker: usize) {
        self.running_scripts.claim_all_keys(worker);
    }

    /// A slow script has ended: commands that it blocked may continue.
    pub fn end_slow(&self, worker: usize) {
        self.running_scripts.remove_slow(worker, || self.arm(armed::BUSY, false));
        self.quiesce.admit();
        for mailbox in &self.mailboxes {
            mailbox.send(Message::Unpause);
        }
    }

    /// Hands the changes of all workers from the journal to the append-only file and the replicas. `worker` is
    /// the calling worker.
    pub fn dispatch_changes(&self, worker: usize) {
        let journal = self.keyspace.journal();
        if !journal.has_untaken() {
            return;
        }
        // The calling worker checks its own replicas right after this.
        let wake = |other: usize| {
            if other != worker {
                self.mailboxes[other].wake();
            }
        };
        self.changes.dispatch(journal, &self.aof, &self.replication, wake);
        if self.aof.is_congested() {
            self.arm(armed::LOG_CONGESTION, true);
        }
    }
}
