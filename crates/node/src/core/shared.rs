//! The state that all workers share: one value for each feature.

use super::conditions::{Condition, Conditions};
use super::debug_switches::DebugSwitches;
use super::mailbox::{Mailboxes, Message};
use super::network::Network;
use super::pause::Hold;
use super::persistence::Persistence;
use super::process::Process;
use super::quiesce::Quiesce;
use super::settings::Settings;
use super::threads::HelperThreads;
use crate::clients::Clients;
use crate::clients::accounts::Accounts;
use crate::cluster::Cluster;
use crate::core::call::ServerHandler;
use crate::pubsub::SubscriptionRegistry;
use crate::replication::upstream::state::{Upstream, UpstreamPhase};
use crate::replication::{Replication, needs_good};
use crate::script::shared::Scripting;
use crate::script::slow::SlowScript;
use crate::tracking::Prefixes;
use brisk_acl::Vocabulary;
use brisk_config::Config;
use brisk_config::directives::replication::Replication as ReplicationSettings;
use brisk_engine::table::CommandTable;
use brisk_engine::{Keyspace, PrimaryWords};
use brisk_observe::errors::ErrorCounts;
use brisk_observe::latency::Latency;
use brisk_observe::log::{Log, Role};
use brisk_observe::metrics::ServerMetrics;
use brisk_observe::slowlog::Slowlog;
use brisk_observe::stats::{Count, WorkerStats};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The state of the server that all of its threads share.
pub struct Shared {
    pub log: Arc<Log>,
    pub keyspace: Keyspace,
    pub table: &'static CommandTable,
    /// The functions of those commands in `table` that need the session or the server.
    pub handlers: &'static [ServerHandler],
    pub process: Process,
    pub settings: Settings,
    pub quiesce: Quiesce,
    /// The connected clients, and the memory of each client.
    pub clients: Clients,
    pub accounts: Accounts,
    pub mailboxes: Mailboxes,
    /// The conditions that commands check.
    pub conditions: Conditions,
    pub observe: Observe,
    pub pubsub: SubscriptionRegistry,
    /// Key prefixes whose changes clients track.
    pub tracking: Prefixes,
    pub replication: Replication,
    pub persistence: Persistence,
    pub scripting: Scripting,
    /// The threads to which workers delegate work.
    pub threads: HelperThreads,
    pub network: Network,
    /// Cluster mode, if it is on.
    pub cluster: Cluster,
}

/// The statistics and logs of the server.
#[derive(Debug)]
pub struct Observe {
    /// The counters of each worker.
    pub stats: Box<[WorkerStats]>,
    pub metrics: ServerMetrics,
    pub errors: ErrorCounts,
    pub slowlog: Slowlog,
    pub latency: Latency,
}

impl Observe {
    fn new(workers: usize, commands: usize) -> Observe {
        Observe {
            stats: (0..workers).map(|_| WorkerStats::new(commands)).collect(),
            metrics: ServerMetrics::default(),
            errors: ErrorCounts::default(),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
        }
    }

    /// The sum of a counter over all workers.
    pub fn sum(&self, of: fn(&WorkerStats) -> &Count) -> u64 {
        self.stats.iter().map(|stats| of(stats).get()).fold(0, u64::wrapping_add)
    }

    /// Unsent output bytes of all clients. O(workers).
    pub fn output_bytes(&self) -> u64 {
        let stats = self.stats.iter();
        let sum: i64 = stats.map(|own| own.output_bytes.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// Number of changes to the data since startup.
    pub fn changes(&self) -> u64 {
        self.sum(|stats| &stats.changes)
    }
}

impl Shared {
    /// Creates the shared state. Parts that the caller has to choose are arguments; the rest starts empty.
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
        let persistence = Persistence::new(workers, process.started_unix_ms / 1000);
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
            mailboxes: Mailboxes::new(workers),
            conditions: Conditions::new(workers),
            observe: Observe::new(workers, table.id_count()),
            pubsub: SubscriptionRegistry::new(workers),
            tracking: Prefixes::new(workers),
            replication,
            persistence,
            scripting: Scripting::new(workers, dialect),
            threads: HelperThreads::default(),
            network: Network::default(),
            cluster: Cluster::default(),
        }
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<Config> {
        self.settings.current()
    }

    /// The terms with which the log refers to the server that a replica follows.
    pub fn primary_words(&self) -> PrimaryWords {
        self.config().process.dialect.primary_words()
    }

    /// Puts new settings in force. Each worker loads them before its next batch.
    pub fn publish_config(&self, config: Config) {
        self.apply_settings(&config);
        self.replication.adopt(&config);
        self.update_few_replicas(&config.replication);
        self.settings.replace(config);
        self.update_stale();
        self.announce_settings();
    }

    /// Applies the settings to the conditions, to the log, and to the kernel's view of the process.
    pub fn apply_settings(&self, config: &Config) {
        let replication = &config.replication;
        let is_replica = replication.replicaof.is_some();
        let is_limited = !(is_replica && replication.replica_ignore_maxmemory);
        self.conditions.set(Condition::MemoryLimit, is_limited && config.memory.maxmemory > 0);
        self.conditions.set(Condition::Replica, is_replica);
        let redirects = is_replica && self.clients.had_redirected.load(Ordering::SeqCst);
        self.conditions.set(Condition::Redirect, redirects);
        self.log.set_role(if is_replica { Role::Replica } else { Role::Primary });
        // If this fails, the log has the reason. CONFIG SET has already checked it.
        let _ = self.process.oom_score.apply(config, &self.log);
    }

    /// Notes that a client can be redirected to the primary, if this server is a replica.
    pub fn note_redirected(&self) {
        self.clients.had_redirected.store(true, Ordering::SeqCst);
        if self.conditions.is_replica() {
            self.conditions.set(Condition::Redirect, true);
        }
    }

    /// Sets the phase of an upstream if the current generation is still `generation`. Returns true
    /// if so.
    pub fn enter_phase(
        &self,
        upstream: &Upstream,
        generation: u64,
        phase: UpstreamPhase,
        now_ms: u64,
    ) -> bool {
        let is_wanted = upstream.set_phase(generation, phase, now_ms);
        self.update_stale();
        is_wanted
    }

    /// Updates whether a replica rejects reads of its data. This depends on the settings and on the link to the
    /// primary. Must be called when one of them has changed.
    pub fn update_stale(&self) {
        let is_stale = || {
            let config = self.config();
            let replication = &config.replication;
            replication.replicaof.is_some()
                && !replication.replica_serve_stale_data
                && !self.replication.upstream.is_up()
        };
        self.conditions.settle(Condition::Stale, is_stale);
    }

    /// Changes DEBUG's switches. Each worker loads them before its next batch.
    pub fn set_debug(&self, change: impl FnOnce(&DebugSwitches)) {
        change(&self.settings.debug);
        self.announce_settings();
    }

    fn announce_settings(&self) {
        self.settings.announce();
        self.mailboxes.wake_all();
    }

    /// Updates whether writes are rejected because too few replicas have a small lag. The timers call this repeatedly,
    /// because the lag of a replica grows as time passes.
    pub fn update_few_replicas(&self, settings: &ReplicationSettings) {
        let few = needs_good(settings)
            && !self.conditions.is_replica()
            && self.replication.has_few_good(settings, brisk_reactor::unix_ms());
        if few != self.conditions.has(Condition::FewReplicas) {
            self.conditions.set(Condition::FewReplicas, few);
        }
    }

    /// Updates whether writes are rejected because of disk errors. This depends on the result of the last disk write.
    pub fn update_disk_error(&self) {
        self.conditions.set(Condition::DiskError, !self.persistence.is_well());
    }

    /// CLIENT UNPAUSE: waiting commands continue immediately.
    pub fn end_pause(&self) {
        self.conditions.end_pause();
        self.mailboxes.send_to_all(|| Message::Unpause);
    }

    /// Ends a hold of writes for this purpose. Waiting commands continue immediately, unless they are also paused for
    /// another reason.
    pub fn release_writes(&self, purpose: Hold) {
        self.conditions.release_writes(purpose);
        self.check_paused_again();
    }

    /// Makes waiting commands repeat their checks. A command that this node no longer serves gets an error.
    pub fn check_paused_again(&self) {
        self.mailboxes.send_to_all(|| Message::Unpause);
    }

    /// Counts inboxes that became too full, and full inboxes that were emptied. While any inbox is too full, commands
    /// wait.
    pub fn note_full_inboxes(&self, filled: usize, emptied: usize) {
        self.observe.metrics.congestions.fetch_add(filled as u64, Ordering::Relaxed);
        self.pubsub.note_full(filled, emptied, |on| self.conditions.set(Condition::Congestion, on));
    }

    /// Number of workers, including the worker of the admin lane.
    pub fn workers(&self) -> usize {
        self.mailboxes.count()
    }

    /// Number of workers that serve ordinary clients. These workers have the lowest ids.
    pub fn serving_workers(&self) -> usize {
        self.workers() - usize::from(self.process.has_admin_lane)
    }

    /// Bytes of memory that will be freed without eviction: garbage, data that waits for replicas, and data that waits
    /// to be written to a snapshot or the append-only file. Eviction would only add to it.
    pub fn passing_bytes(&self) -> u64 {
        let garbage = self.threads.freeing.pending_bytes();
        let garbage = garbage.saturating_add(self.keyspace.ended_watch_bytes() as u64);
        let unwritten = self.persistence.passing_bytes();
        garbage.saturating_add(self.replication.passing_bytes()).saturating_add(unwritten)
    }

    /// The data that determines the meaning of ACL rules.
    pub fn vocabulary(&self) -> Vocabulary<'static> {
        let channels = self.config().security.acl_pubsub_default;
        Vocabulary { table: self.table, channels }
    }

    /// Registers a script that has become slow. The caller ensures that no worker is in the middle
    /// of a command that the script affects.
    pub fn begin_slow(&self, script: SlowScript) {
        self.scripting.running.add_slow(script, || self.conditions.set(Condition::Busy, true));
        self.quiesce.refuse();
    }

    /// Called when a slow script has ended. Commands that it blocked may continue.
    pub fn end_slow(&self, worker: usize) {
        self.scripting.running.remove_slow(worker, || self.conditions.set(Condition::Busy, false));
        self.quiesce.admit();
        self.mailboxes.send_to_all(|| Message::Unpause);
    }

    /// Passes the changes of all workers from the journal to the append-only file and the replicas. `worker` is the
    /// calling worker.
    pub fn dispatch_changes(&self, worker: usize) {
        let journal = self.keyspace.journal();
        if !journal.has_untaken() {
            return;
        }
        // The calling worker checks its own replicas right after this.
        let wake = |other: usize| {
            if other != worker {
                self.mailboxes.wake(other);
            }
        };
        self.persistence.dispatch(journal, &self.replication, wake);
        if self.persistence.aof.is_congested() {
            self.conditions.set(Condition::LogCongestion, true);
        }
    }
}
