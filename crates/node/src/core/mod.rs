//! The worker state that commands use: settings in force, clocks, statistics, eviction.
//!
//! | part | purpose |
//! |---|---|
//! | `shared`, `settings` | the state that all workers share, including the settings |
//! | `engine_settings` | the settings that the engine needs |
//! | `session`, `input` | one client, as the server sees it; its bytes that have not been executed yet |
//! | `client_limits` | the limits on the memory that clients may use |
//! | `accounting` | how long each command took, and how commands are shown |
//! | `memory_limit` | `maxmemory`: which memory counts as used, and eviction |
//! | `call` | the context in which the function of a server command runs |
//! | `running_unit` | the transaction that EXEC or a script is running |
//! | `persistence`, `changes` | the dataset on disk, and changes to be written to it |
//! | `pending` | the work that commands leave for their worker |
//! | `quiesce`, `mailbox` | stopping all other workers; messages to a worker |
//! | `threads`, `background`, `long` | threads that free memory, and threads that compute long commands |
//! | `conditions`, `pause` | the conditions that commands check; CLIENT PAUSE |
//! | `network` | the listeners, and the TLS settings |
//! | `shutdown` | the shutdown of the server |
//! | `memory`, `process`, `client_lines` | data for INFO and similar commands |
//! | `oom` | `oom-score-adj`: which process the kernel kills first when memory runs out |
//! | `debug_switches` | behavior that DEBUG switches off, for tests |

pub mod accounting;
pub mod background;
pub mod call;
pub mod changes;
pub mod client_limits;
pub mod client_lines;
pub mod conditions;
pub mod debug_switches;
pub mod engine_settings;
pub mod input;
pub mod long;
pub mod mailbox;
pub mod memory;
pub mod memory_limit;
pub mod network;
pub mod oom;
pub mod pause;
pub mod pending;
pub mod persistence;
pub mod process;
pub mod quiesce;
pub mod running_unit;
pub mod session;
pub mod settings;
pub mod shared;
pub mod shutdown;
pub mod threads;

use crate::clients::{ClientRecord, flag};
use crate::cluster::WorkerCluster;
use crate::core::accounting::CommandAccounting;
use crate::core::background::Timed;
use crate::core::client_limits::ClientLimits;
use crate::core::conditions::Condition;
use crate::core::input::Bytes;
use crate::core::memory_limit::MemoryLimit;
use crate::core::pause::Paused;
use crate::core::pending::PendingWork;
use crate::core::quiesce::Quiesced;
use crate::core::running_unit::RunningUnit;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::pubsub::{self, Topics};
use crate::replication::replica::WorkerReplicas;
use crate::script::WorkerScripts;
use crate::tracking::{self, TrackingSessions};
use crate::transactions::WorkerTransactions;
use brisk_config::Config;
use brisk_config::value::ClientClass;
use brisk_engine::keyspace::Keys;
use brisk_engine::random::Random;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, DbIndex, Dialect, Env, Result, UnixMs};
use brisk_observe::stats::WorkerStats;
use brisk_reactor::{Clock, unix_ms};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long workers that have stopped wait for the last worker to stop, on behalf of a request that has been unable to
/// lock its slots for a long time.
const STARVED_WAIT_MAX: Duration = Duration::from_millis(1);

/// The state of a worker without its sessions. Commands may use this part.
pub struct Core {
    pub shared: &'static Shared,
    pub id: usize,
    pub clock: &'static Clock,
    pub accounting: CommandAccounting,
    pub limits: ClientLimits,
    pub env: Env,
    pub config: Arc<Config>,
    config_generation: u64,
    pub memory: MemoryLimit,
    /// The transaction that EXEC or a script is running.
    pub unit: RunningUnit,
    /// Scripts and functions of this worker.
    pub scripts: WorkerScripts,
    pub transactions: WorkerTransactions,
    pub pending: PendingWork,
    /// The subscriptions of sessions of this worker.
    pub topics: Topics,
    /// Sessions of this worker that track keys.
    pub tracking: TrackingSessions,
    /// Sessions of this worker that are replicas.
    pub replicas: WorkerReplicas,
    /// The topology that this worker currently uses.
    pub cluster: WorkerCluster,
}

impl Core {
    pub fn new(shared: &'static Shared, id: usize, seed: u64) -> Core {
        let clock = brisk_reactor::clock();
        let tally = shared.keyspace.tally();
        let config = shared.config();
        let mut core = Core {
            id,
            env: Env::new(tally, Random::seeded(seed)),
            config: Arc::clone(&config),
            clock,
            accounting: CommandAccounting::new(&config, clock),
            pending: PendingWork::default(),
            topics: Topics::default(),
            replicas: WorkerReplicas::default(),
            tracking: TrackingSessions::default(),
            memory: MemoryLimit::new(&config),
            unit: RunningUnit::default(),
            transactions: WorkerTransactions::default(),
            scripts: WorkerScripts::new(shared, id),
            config_generation: 0,
            cluster: WorkerCluster::new(shared.cluster.state(), &config),
            limits: ClientLimits::new(&config),
            shared,
        };
        core.env.carrier = crate::replication::migration::carry;
        shared.persistence.share_hooks(&mut core.env.hooks);
        core.take_config();
        core
    }

    #[inline]
    pub fn stats(&self) -> &'static WorkerStats {
        &self.shared.observe.stats[self.id]
    }

    /// Loads the settings if they have changed.
    #[inline]
    pub fn refresh_config(&mut self) {
        if self.config_generation != self.shared.settings.generation() {
            self.take_config();
        }
    }

    /// The generation of the configuration that the last [`Core::refresh_config`] loaded.
    pub fn config_generation(&self) -> u64 {
        self.config_generation
    }

    #[cold]
    fn take_config(&mut self) {
        self.config_generation = self.shared.settings.generation();
        self.config = self.shared.config();
        let config = Arc::clone(&self.config);
        self.env.settings = engine_settings::in_force(self.shared, &config);
        pubsub::take_config(&mut self.env, &config);
        tracking::take_config(self.shared.keyspace.tracking(), &self.env, &config);
        self.limits = ClientLimits::new(&config);
        self.accounting.take_config(&config);
        self.memory.take_config(&config);
        self.cluster.take_config(&config);
        self.evict_clients();
        self.bound_inputs();
    }

    /// Reads the clocks at the beginning of a batch.
    #[inline]
    pub fn read_clocks(&mut self) {
        if self.accounting.begin_batch(self.clock) {
            self.env.set_now(UnixMs(unix_ms()));
        }
        self.pause_in_force();
        self.cluster.check_lease();
    }

    /// The commands that CLIENT PAUSE holds back now. This also decides whether expired keys are hidden or removed from
    /// now on. They are hidden during a pause, because the dataset must not change, and on a replica, because its
    /// primary removes them.
    #[inline]
    pub fn pause_in_force(&self) -> Option<Paused> {
        let conditions = self.shared.conditions.now();
        let mut paused = None;
        if conditions.has(Condition::Pause) {
            let pause = self.shared.conditions.pause_in_force(self.env.now().0);
            paused = pause.map(|(what, _)| what);
        }
        self.env.keeps_expired.set(paused.is_some() || conditions.has(Condition::Replica));
        paused
    }

    /// Called before commands from the primary. For these commands, no key counts as expired. [`Core::end_applying`]
    /// must be called before this worker executes anything else.
    pub fn begin_applying(&mut self) {
        self.accounting.charge_from_now(self.clock);
        self.env.begin_applying(UnixMs(unix_ms()));
    }

    /// Called after commands from the primary. From now on, keys past their expiry time count as expired again.
    pub fn end_applying(&mut self) {
        self.env.set_now(UnixMs(unix_ms()));
    }

    /// Reports whether expiry and eviction must leave the data unchanged: during CLIENT PAUSE, while a
    /// slow script runs, and while the data is being loaded.
    pub fn data_must_not_change(&self) -> bool {
        self.pause_in_force().is_some() || self.shared.conditions.is_data_protected()
    }

    /// Stops all other workers, unless the running transaction has already stopped them.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] while a slow script runs, because the script cannot be stopped.
    /// [`CommandError::UndeclaredKey`] in a transaction that holds slots.
    pub fn quiesce_others(&self) -> Result<Option<Quiesced<'static>>> {
        self.check_no_slot_is_held()?;
        if self.unit.has_quiesced_others() {
            return Ok(None);
        }
        let quiesced = self.shared.quiesce.quiesce_others(self.id);
        quiesced.map(Some).ok_or(CommandError::SlotBusy)
    }

    /// The keys of a database, for a command that locks one slot after another.
    ///
    /// # Errors
    /// [`CommandError::UndeclaredKey`] in a transaction that holds slots, because this thread would wait for itself.
    pub fn keys_to_walk(&self, db: DbIndex) -> Result<Keys<'_>> {
        self.check_no_slot_is_held()?;
        Ok(Keys::unlocked(&self.shared.keyspace, &self.env, db))
    }

    /// Checks that the transaction holds no slot. A command that fails here has the wrong scope in the command table.
    fn check_no_slot_is_held(&self) -> Result<()> {
        if self.unit.holds_slots() { Err(CommandError::undeclared_key()) } else { Ok(()) }
    }

    /// Stops all other workers for a transaction or script of this session that cannot run
    /// concurrently with them. The session may have waited for its slots for a long time.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] as in [`Core::quiesce_others`] and
    /// [`Core::quiesce_others_for_starved`].
    pub(crate) fn quiesce_others_for(
        &self,
        session: &Session,
    ) -> Result<Option<Quiesced<'static>>> {
        match session.is_starved() {
            true => self.quiesce_others_for_starved(),
            false => self.quiesce_others(),
        }
    }

    /// Stops all other workers for a request that has been unable to lock its slots for a long time.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] if the other workers do not stop within [`STARVED_WAIT_MAX`].
    #[cold]
    pub(crate) fn quiesce_others_for_starved(&self) -> Result<Option<Quiesced<'static>>> {
        self.stats().starved_requests.add(1);
        let quiesced = self.shared.quiesce.quiesce_others_within(self.id, STARVED_WAIT_MAX);
        quiesced.map(Some).ok_or(CommandError::SlotBusy)
    }

    /// Stops all other workers. If a slow script is running, stops it between two slices. Only for work that does not
    /// touch keys.
    pub fn quiesce_others_despite_scripts(&self) -> Quiesced<'static> {
        self.shared.quiesce.quiesce_others_despite_refusal(self.id)
    }

    /// Reports whether a worker has too many undelivered published messages.
    pub fn is_congested(&self) -> bool {
        self.shared.conditions.has(Condition::Congestion)
    }

    /// Notes the size of a session's buffers for the maxima that INFO shows.
    pub fn note_buffers(&self, input: u64, output: u64, unix_seconds: u64) {
        let stats = self.stats();
        stats.recent_input.note(unix_seconds, input);
        stats.recent_output.note(unix_seconds, output);
    }

    /// Passes unlinked values to the thread that frees them.
    #[inline]
    pub fn free_garbage(&self) {
        self.free_garbage_timed(|| None);
    }

    /// Like [`Self::free_garbage`], after keys have expired. The latency monitor records how long freeing their memory
    /// took, although no command waited for it, because this would be the cost of expiry with `lazyfree-lazy-expire
    /// no`.
    pub fn free_expired(&self) {
        let threshold_ms = self.config.observe.latency_monitor_threshold_ms.unsigned_abs();
        if threshold_ms == 0 || self.config.memory.lazyfree_lazy_expire {
            return self.free_garbage();
        }
        let shared = self.shared;
        self.free_garbage_timed(|| {
            Some(Box::new(move |longest: Duration, all: Duration| {
                for (event, time) in [("expire-del", longest), ("expire-cycle", all)] {
                    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                    if ms >= threshold_ms {
                        shared.observe.latency.add(event, unix_ms() / 1000, ms);
                    }
                }
            }))
        });
    }

    #[inline]
    fn free_garbage_timed(&self, timed: impl FnOnce() -> Option<Timed>) {
        let mut garbage = self.env.garbage.borrow_mut();
        if !garbage.is_empty() {
            // The number of bytes is only needed if memory is nearly full.
            let counts = self.memory.is_near(self.limits.unread_max());
            self.shared.threads.freeing.free_timed(std::mem::take(&mut *garbage), counts, timed());
        }
    }

    /// Notes a latency spike for the latency monitor, if it is above the threshold.
    pub fn note_latency(&self, event: &'static str, ns: u64) {
        let threshold_ms = self.config.observe.latency_monitor_threshold_ms;
        let ms = ns / 1_000_000;
        if threshold_ms > 0 && ms >= threshold_ms as u64 {
            self.shared.observe.latency.add(event, unix_ms() / 1000, ms);
        }
    }

    /// Handles a command that took long: adds it to the slow log and the latency monitor, and updates the time.
    #[cold]
    pub fn account_slow(
        &mut self,
        client: &ClientRecord,
        row: &'static Row,
        ns: u64,
        words: &Args<'_>,
    ) {
        use brisk_engine::command::Flags;
        if self.unit.is_loading() {
            // The worker is loading a file, not serving a client. All commands of the file see the same time.
            return;
        }
        let fast = row.has(Flags::FAST);
        self.note_latency(if fast { "fast-command" } else { "command" }, ns);
        let threshold_us = self.config.observe.slowlog_log_slower_than_us;
        let len_max = self.config.observe.slowlog_max_len;
        let us = ns / 1000;
        // In Redis, a slow log of length 0 still uses up an id for each entry. In Valkey, the log is then off.
        let is_off = threshold_us < 0 || (len_max == 0 && self.is_valkey());
        if !is_off && us >= threshold_us as u64 && !row.has(Flags::SKIP_SLOWLOG) {
            let shown = self.accounting.shown_words(row, words);
            let entry = brisk_observe::slowlog::Entry {
                id: 0,
                unix_seconds: unix_ms() / 1000,
                duration_us: us,
                words: brisk_observe::slowlog::truncate_args(shown.into_iter()),
                client: client.addr.to_string(),
                client_name: client.texts().name,
            };
            self.shared.observe.slowlog.add(entry, usize::try_from(len_max).unwrap_or(0));
        }
        // All commands of a transaction see the same time.
        if !self.unit.is_running() {
            self.env.advance(UnixMs(unix_ms()));
        }
    }

    /// Reports whether `dialect` is Valkey.
    pub fn is_valkey(&self) -> bool {
        self.config.process.dialect == Dialect::Valkey
    }

    /// Reports whether a client has more output than `client-output-buffer-limit` allows for its class, either the hard
    /// limit or the soft limit for its duration. `unsent` includes the client's held replies; its deferred messages are
    /// added here. For a replica, the part of the stream that it has not been sent also counts, wherever that part is
    /// stored.
    #[inline]
    pub fn exceeds_output_limit(&self, session: &mut Session, unsent: u64) -> bool {
        let output = unsent + session.output.deferred_len() as u64;
        if !session.replication.is_replica() && self.limits.admits_any(output) {
            session.output.note_within_soft_limit();
            return false;
        }
        self.exceeds_limit_of_class(session, unsent)
    }

    fn exceeds_limit_of_class(&self, session: &mut Session, unsent: u64) -> bool {
        let deferred = session.output.deferred_len() as u64;
        let counted = match session.replication.replica_mut().filter(|replica| replica.follows()) {
            Some(replica) => self.shared.replication.counted_output(replica, unsent, deferred),
            None => unsent + deferred,
        };
        let class = class_of(session);
        let since = session.output.over_soft_limit_since();
        let exceeds = self.limits.exceeds_class(class, counted, since, self.env.now().0);
        // A session that is being closed has been counted.
        if exceeds && !session.is_closing() {
            let metrics = &self.shared.observe.metrics;
            metrics.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
        }
        exceeds
    }

    /// Updates the memory total of a session if it has changed. `output` is the number of bytes of its output. Evicts
    /// clients if all clients together use too much memory.
    #[inline]
    pub fn weigh(&self, output: usize, session: &mut Session) {
        session.output.set_unread_aside();
        // Exclude the stream, which is counted once for all replicas.
        let stream =
            session.replication.replica().map_or(0, |replica| replica.stream_unsent() as usize);
        let bytes = session.memory(output.saturating_sub(stream));
        let input = session.input_memory() as u64;
        if bytes != session.accounting.weight() || input != session.accounting.input_weight() {
            self.change_weight(session, bytes, input);
        }
    }

    #[cold]
    fn change_weight(&self, session: &mut Session, bytes: u64, input: u64) {
        if bytes != session.accounting.weight() {
            let grows = bytes > session.accounting.weight();
            session.accounting.set_weight(bytes);
            self.shared.clients.weights.weigh(&session.record, bytes);
            if grows && self.limits.bounds_clients() {
                self.evict_clients();
            }
        }
        if input != session.accounting.input_weight() {
            let grows = input > session.accounting.input_weight();
            session.accounting.set_input_weight(input);
            self.shared.clients.input_weights.weigh(&session.record, input);
            if grows {
                self.bound_inputs();
            }
        }
    }

    /// Called before a session executes requests in `input` that arrived in parts and are now complete. While requests
    /// are executed, their arguments also exist as values, so this is when the client uses the most memory. As in
    /// Redis, a client above the limit is closed before its requests are executed.
    #[cold]
    pub fn weigh_before_execution(&self, output: usize, input: &Bytes, session: &mut Session) {
        let bytes = session.memory(output) + (input.capacity() + input.len()) as u64;
        session.accounting.set_weight(bytes);
        self.shared.clients.weights.weigh(&session.record, bytes);
        self.evict_clients();
    }

    /// Closes the largest clients while all clients together use more than `maxmemory-clients`.
    #[cold]
    pub fn evict_clients(&self) {
        let shared = self.shared;
        while self.limits.exceeds_clients(shared.clients.weights.evictable()) {
            let Some((record, bytes)) = shared.clients.weights.take_largest() else { return };
            shared.observe.metrics.evicted_clients.fetch_add(1, Ordering::Relaxed);
            shared.log.notice(format_args!(
                "Evicting client {} from {}: it uses {bytes} bytes",
                record.id, record.addr
            ));
            shared.clients.input_weights.weigh_again(&record);
            self.shared.mailboxes.close(&record);
        }
    }

    /// Closes the clients with the largest inputs while all inputs together take more than `input-total-limit`. An
    /// incomplete request cannot be bounded in any other way.
    fn bound_inputs(&self) {
        let shared = self.shared;
        while self.limits.exceeds_inputs(shared.clients.input_weights.evictable()) {
            let Some((record, bytes)) = shared.clients.input_weights.take_largest() else { return };
            let metrics = &shared.observe.metrics;
            metrics.input_total_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            shared.log.warning(format_args!(
                "Closing client {} from {}: all unexecuted requests exceed input-total-limit \
                 ({} bytes), and this client uses {bytes} bytes",
                record.id,
                record.addr,
                self.limits.inputs_total()
            ));
            shared.clients.weights.weigh_again(&record);
            self.shared.mailboxes.close(&record);
        }
    }

    /// Publishes how much output a session has, which consists of `unsent` bytes, its held replies and
    /// its deferred messages.
    #[inline]
    pub fn publish_output(&self, unsent: usize, session: &mut Session) {
        let output =
            (unsent + session.output.held_replies().len() + session.output.deferred_len()) as i64;
        if output != session.accounting.counted_output() {
            self.change_output(session, output);
        }
    }

    #[cold]
    fn change_output(&self, session: &mut Session, output: i64) {
        let change = session.accounting.replace_counted_output(output);
        self.stats().output_bytes.fetch_add(change, Ordering::Relaxed);
        session.record.output_bytes.store(output as u64, Ordering::Relaxed);
        self.note_buffers(0, output as u64, self.env.now().0 / 1000);
    }

    /// Unsent output at which a client's pipeline pauses.
    pub fn soft_limit(&self) -> usize {
        self.limits.soft(self.shared.observe.output_bytes())
    }
}

/// The class of limits that applies to a session's unsent output. Monitors count as normal clients,
/// as in Redis.
fn class_of(session: &Session) -> ClientClass {
    if session.record.has(flag::REPLICA) {
        ClientClass::Replica
    } else if session.push.listens() {
        ClientClass::Pubsub
    } else {
        ClientClass::Normal
    }
}
