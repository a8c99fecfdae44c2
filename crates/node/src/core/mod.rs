//! The worker state that commands use: settings in force, clocks, statistics, eviction.
//!
//! | part | purpose |
//! |---|---|
//! | `shared`, `settings` | the state that all workers share, including the settings |
//! | `session`, `input` | one client, seen from inside; its bytes that are not executed yet |
//! | `call` | the context in which the function of a server command runs |
//! | `quiesce`, `mailbox` | stopping all other workers; messages to a worker |
//! | `background`, `long` | threads that free memory, and threads that compute long commands |
//! | `pause`, `shutdown` | CLIENT PAUSE; the shutdown of the server |
//! | `memory`, `process`, `client_lines` | data for INFO and similar commands |
//! | `debug_switches` | behaviour that DEBUG switches off, for tests |

pub mod background;
pub mod call;
pub mod changes;
pub mod client_lines;
pub mod debug_switches;
pub mod input;
pub mod long;
pub mod mailbox;
pub mod memory;
pub mod oom;
pub mod pause;
pub mod process;
pub mod quiesce;
pub mod session;
pub mod settings;
pub mod shared;
pub mod shutdown;

use crate::clients::{ClientRecord, flag};
use crate::core::background::Timed;
use crate::core::input::Bytes;
use crate::core::mailbox::{Delivery, Message};
use crate::core::pause::Paused;
use crate::core::quiesce::Quiesced;
use crate::core::session::Session;
use crate::core::shared::{Shared, armed};
use crate::pubsub::{Topics, event_classes};
use crate::replication::replica::Follower;
use crate::script::WorkerScripts;
use crate::tracking::TrackingSessions;
use crate::transactions::Transaction;
use brisk_config::Config;
use brisk_config::value::ClientClass;
use brisk_engine::effect::Hooks;
use brisk_engine::env::EvictionPolicy;
use brisk_engine::keyspace::evict::Evictor;
use brisk_engine::keyspace::{EndedWatches, KeyHasher, Keys};
use brisk_engine::random::Random;
use brisk_engine::table::{Row, Run};
use brisk_engine::types::EncodingLimits;
use brisk_engine::unit::Unit;
use brisk_engine::{Args, CommandError, DbIndex, Dialect, Env, Result, Settings, UnixMs};
use brisk_observe::stats::WorkerStats;
use brisk_reactor::{Clock, Token, unix_ms};
use brisk_resp::Limits;
use brisk_structures::alloc::AsideMeter;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Limit for each client while all clients together hold more unsent output than the global limit
/// allows.
const TIGHT_SOFT_LIMIT: usize = 16 * 1024;

/// How long a reading of the wall clock is valid for batches that begin after it, in nanoseconds.
const WALL_CLOCK_KEPT_NS: u64 = 50_000;

/// How long all workers wait for the last one to stop, for a request that could not lock its slots
/// for a long time.
const STARVED_WAIT_MAX: Duration = Duration::from_millis(1);

/// The state of a worker without its sessions: the part that commands may use.
pub struct Core {
    pub shared: &'static Shared,
    pub id: usize,
    pub env: Env,
    pub config: Arc<Config>,
    pub clock: &'static Clock,
    /// When the last command ended.
    pub last_ticks: u64,
    /// When the wall clock was read last for batches, in ticks.
    wall_read_at: u64,
    /// A command that takes at least this long is checked against the slow log and the latency
    /// monitor.
    pub slow_ns: u64,
    pub latency_tracking: bool,
    /// Sessions to close after the present command, by token.
    pub connections_to_close: Vec<Token>,
    /// Replies for sessions of this worker whose commands waited.
    pub deliveries: VecDeque<Delivery>,
    /// Arguments of the present server command that must not be shown: passwords.
    pub redacted: Vec<usize>,
    /// The subscriptions of sessions of this worker.
    pub topics: Topics,
    /// Sessions of this worker that are replicas.
    pub followers: Vec<Follower>,
    /// Sessions of this worker that track keys.
    pub tracking: TrackingSessions,
    /// True if the session was sent invalidations before its present request, for keys evicted for
    /// it.
    pub invalidations_sent: bool,
    pub evictor: Evictor,
    /// The transaction that EXEC, or a script, is running.
    pub unit: Option<Unit<'static>>,
    /// The worker loads a file: it executes the file's commands while all other workers are
    /// quiesced.
    pub is_loading: bool,
    /// The time that TIME returns within the unit, after the first request for it.
    pub unit_began_us: Option<u64>,
    /// Held while all other workers are quiesced for that transaction or script.
    pub quiesced: Option<Quiesced<'static>>,
    /// Watches of sessions of this worker that have ended.
    pub ended_watches: EndedWatches,
    /// Sessions of this worker with output that waits for the append-only file, or for replicas.
    pub unlogged: RefCell<Vec<Token>>,
    /// Output has begun to wait for replicas in this round, so replicas are requested to
    /// acknowledge.
    pub requests_acks: Cell<bool>,
    /// Memory for the next transaction.
    pub spare_transaction: Option<Box<Transaction>>,
    /// Scripts and functions of this worker.
    pub scripts: WorkerScripts,
    /// Commands that ran since the batch's statistics were noted, and the last one's row.
    pub ran: u64,
    pub last_row: u32,
    config_generation: u64,
    /// Excludes the reply that a command is building from eviction, until the reply is in the output.
    pub reply_meter: Option<AsideMeter>,
    /// `maxmemory-clients` in bytes; 0 for no limit.
    pub client_limit: u64,
    /// Unsent output up to this size is below every limit for subscribers.
    pub pubsub_watch_bytes: usize,
    pub(crate) soft_limit: usize,
    /// Unsent output below this needs no check against soft limits.
    pub output_watch_bytes: usize,
    pub total_limit: u64,
    /// Bytes of memory that all inputs may take together.
    input_limit: u64,
    pub limits: Limits,
}

impl Core {
    pub fn new(shared: &'static Shared, id: usize, seed: u64) -> Core {
        let clock = brisk_reactor::clock();
        let tally = shared.keyspace.tally();
        let mut core = Core {
            id,
            env: Env::new(tally, Random::seeded(seed)),
            config: shared.config(),
            clock,
            last_ticks: clock.ticks(),
            wall_read_at: 0,
            slow_ns: u64::MAX,
            latency_tracking: true,
            connections_to_close: Vec::new(),
            deliveries: VecDeque::new(),
            redacted: Vec::new(),
            topics: Topics::default(),
            followers: Vec::new(),
            tracking: TrackingSessions::default(),
            invalidations_sent: false,
            evictor: Evictor::default(),
            unit: None,
            is_loading: false,
            unit_began_us: None,
            quiesced: None,
            ended_watches: EndedWatches::default(),
            unlogged: RefCell::default(),
            requests_acks: Cell::default(),
            spare_transaction: None,
            scripts: WorkerScripts::new(shared, id),
            ran: 0,
            last_row: u32::MAX,
            config_generation: 0,
            reply_meter: None,
            client_limit: 0,
            pubsub_watch_bytes: 0,
            soft_limit: usize::MAX,
            output_watch_bytes: usize::MAX,
            total_limit: u64::MAX,
            input_limit: u64::MAX,
            limits: Limits {
                bulk_bytes_max: 0,
                multibulk_max: i64::from(i32::MAX),
                inline_bytes_max: 64 * 1024,
                authenticated: true,
            },
            shared,
        };
        core.env.carrier = crate::replication::migration::carry;
        core.env.hooks.share(&shared.hooks_for_all);
        core.take_config();
        core
    }

    #[inline]
    pub fn stats(&self) -> &'static WorkerStats {
        &self.shared.observe.stats[self.id]
    }

    /// Loads settings that were changed.
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
        self.env.settings = settings_in_force(self.shared, &config);
        let classes = event_classes(config.observe.notify);
        self.env.settings.events = classes;
        self.env.hooks.set(Hooks::NOTIFY, !classes.is_empty());
        let tracking = self.shared.keyspace.tracking();
        tracking.set_keys_max(usize::try_from(config.clients.tracking_table_max_keys).unwrap_or(0));
        tracking.trim(&self.env, TRACKED_KEYS_TRIMMED);
        self.limits.bulk_bytes_max = config.clients.proto_max_bulk_len;
        self.soft_limit = config.clients.output_soft_limit.max(1) as usize;
        self.output_watch_bytes = self.soft_limit.min(TIGHT_SOFT_LIMIT);
        self.total_limit = brisk_observe::memory::output_total_limit(&config);
        let limit = config.clients.output_limits[ClientClass::Pubsub as usize];
        let bounds = [limit.hard_bytes, limit.soft_bytes, PUBSUB_WATCH_BYTES];
        let least = bounds.into_iter().filter(|bytes| *bytes > 0).min();
        self.pubsub_watch_bytes = least.map_or(0, |bytes| bytes as usize);
        self.latency_tracking = config.observe.latency_tracking;
        let slow_us = config.observe.slowlog_log_slower_than_us;
        let slowlog_ns = u64::try_from(slow_us).map_or(u64::MAX, |us| us.saturating_mul(1000));
        let monitor_ms = config.observe.latency_monitor_threshold_ms;
        let monitor_ns = if monitor_ms > 0 { monitor_ms as u64 * 1_000_000 } else { u64::MAX };
        self.slow_ns = slowlog_ns.min(monitor_ns);
        let limit = config.clients.maxmemory_clients.limit(config.memory.maxmemory);
        self.client_limit = limit.unwrap_or(0);
        self.input_limit = match config.clients.input_total_limit {
            0 => brisk_observe::memory::total_system() / 4,
            limit => limit,
        };
        self.evict_clients();
        self.bound_inputs();
    }

    /// Reads the clocks at the beginning of a batch.
    #[inline]
    pub fn read_clocks(&mut self) {
        self.last_ticks = self.clock.ticks();
        // A busy worker calls this every few microseconds.
        if self.clock.ns(self.last_ticks.wrapping_sub(self.wall_read_at)) > WALL_CLOCK_KEPT_NS {
            self.wall_read_at = self.last_ticks;
            self.env.set_now(UnixMs(unix_ms()));
        }
        self.pause_in_force();
    }

    /// The commands that CLIENT PAUSE holds back now. This also decides whether expired keys are
    /// hidden or removed from now on. They are hidden during a pause, since the dataset must not
    /// change, and on a replica, since its primary removes them.
    #[inline]
    pub fn pause_in_force(&self) -> Option<Paused> {
        let armed = self.shared.armed.load(Ordering::Relaxed);
        let mut paused = None;
        if armed & armed::PAUSE != 0 {
            paused = self.shared.pause_in_force(self.env.now().0).map(|(what, _)| what);
        }
        self.env.keeps_expired.set(paused.is_some() || armed & armed::REPLICA != 0);
        paused
    }

    /// Following commands come from the primary: no key counts as expired for them.
    /// [`Core::end_applying`] must be called before this worker executes anything else.
    pub fn begin_applying(&mut self) {
        self.last_ticks = self.clock.ticks();
        self.env.begin_applying(UnixMs(unix_ms()));
    }

    /// For following commands, keys past their expiry time count as expired again.
    pub fn end_applying(&mut self) {
        self.env.set_now(UnixMs(unix_ms()));
    }

    /// Reports whether only commands that may write can change the data. This holds during CLIENT
    /// PAUSE, while a slow script runs, and while the data is being loaded.
    pub fn data_must_not_change(&self) -> bool {
        self.pause_in_force().is_some()
            || self.shared.armed.load(Ordering::Relaxed) & (armed::BUSY | armed::LOADING) != 0
    }

    /// Stops all other workers, unless the running transaction has stopped them already.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] while a slow script runs: it cannot be stopped.
    /// [`CommandError::UndeclaredKey`] in a transaction that holds slots.
    pub fn stop_others(&self) -> Result<Option<Quiesced<'static>>> {
        self.check_no_slot_is_held()?;
        if self.unit.is_some() || self.is_loading {
            return Ok(None);
        }
        let quiesced = self.shared.quiesce.stop_others(self.id);
        quiesced.map(Some).ok_or(CommandError::SlotBusy)
    }

    /// The keys of a database, for a command that locks one slot after another.
    ///
    /// # Errors
    /// [`CommandError::UndeclaredKey`] in a transaction that holds slots: this thread would wait
    /// for itself.
    pub fn keys_to_walk(&self, db: DbIndex) -> Result<Keys<'_>> {
        self.check_no_slot_is_held()?;
        Ok(Keys::unlocked(&self.shared.keyspace, &self.env, db))
    }

    /// Checks that the transaction holds no slot. It holds slots only if each of its commands
    /// touches only the keys that it names. A command that fails here has the wrong scope in its
    /// row.
    fn check_no_slot_is_held(&self) -> Result<()> {
        match &self.unit {
            Some(unit) if !unit.is_alone() => Err(CommandError::undeclared_key()),
            _ => Ok(()),
        }
    }

    /// Stops all other workers for a transaction or script of this session that cannot run
    /// concurrently with them. The session may have waited for its slots for a long time.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] as in [`Core::stop_others`] and
    /// [`Core::stop_others_for_starved`].
    pub(crate) fn stop_others_for(&self, session: &Session) -> Result<Option<Quiesced<'static>>> {
        match session.is_starved() {
            true => self.stop_others_for_starved(),
            false => self.stop_others(),
        }
    }

    /// Stops all other workers for a request that could not lock its slots for a long time.
    ///
    /// # Errors
    /// [`CommandError::SlotBusy`] if they do not stop within [`STARVED_WAIT_MAX`].
    #[cold]
    pub(crate) fn stop_others_for_starved(&self) -> Result<Option<Quiesced<'static>>> {
        self.stats().starved_requests.add(1);
        let quiesced = self.shared.quiesce.stop_others_within(self.id, STARVED_WAIT_MAX);
        quiesced.map(Some).ok_or(CommandError::SlotBusy)
    }

    /// Stops all other workers between two slices of a slow script, if one runs. Only for work that
    /// does not touch keys.
    pub fn stop_others_despite_scripts(&self) -> Quiesced<'static> {
        self.shared.quiesce.stop_others_despite_refusal(self.id)
    }

    /// Reports whether a worker has too many undelivered published messages.
    pub fn is_congested(&self) -> bool {
        self.shared.armed.load(Ordering::Relaxed) & armed::CONGESTION != 0
    }

    /// Reports whether at most `max` bytes are used. Data that waits for replicas, or to be written
    /// to a snapshot or to the append-only file, does not count: eviction would only add to it.
    /// Garbage that is about to be freed does not count either.
    pub fn fits_in_memory(&self, max: u64) -> bool {
        self.memory_above(max) == 0
    }

    /// Number of bytes used above `max`. Output that clients have not read is also excluded
    /// ([`brisk_observe::memory::above`]).
    fn memory_above(&self, max: u64) -> u64 {
        let shared = self.shared;
        let ended_watches = shared.keyspace.ended_watch_bytes() as u64;
        let freed = shared.background.pending_bytes().saturating_add(ended_watches);
        let underway =
            shared.snapshots.underway().or_else(|| shared.replication.snapshots.underway());
        let snapshot = underway.map_or(0, |now| now.bytes);
        let waiting = shared.replication.buffered().saturating_add(freed);
        let waiting = waiting.saturating_add(snapshot);
        let waiting = waiting.saturating_add(shared.aof.buffered());
        brisk_observe::memory::above(max.saturating_add(waiting), self.total_limit)
    }

    /// The memory limit of commands in bytes; 0 for no limit. A replica leaves eviction to its
    /// primary, unless the settings say otherwise.
    pub fn memory_limit(&self) -> u64 {
        let ignores = self.config.replication.replica_ignore_maxmemory && self.shared.is_replica();
        if ignores { 0 } else { self.config.memory.maxmemory }
    }

    /// Evicts until memory is within `maxmemory`. False if that is not possible.
    pub fn make_room(&mut self) -> bool {
        let budget_ns = eviction_budget_ns(self.config.memory.maxmemory_eviction_tenacity);
        self.make_room_within(budget_ns)
    }

    /// The same, for at most `budget_ns`. Returns true if the time ran out while memory was being
    /// freed.
    pub fn make_room_within(&mut self, budget_ns: u64) -> bool {
        let max = self.memory_limit();
        if max == 0 || self.fits_in_memory(max) {
            return true;
        }
        // Objects that earlier commands unlinked count as free after they are handed over.
        self.free_garbage();
        let mut excess = self.memory_above(max);
        if excess == 0 {
            return true;
        }
        // The data must not change. During CLIENT PAUSE and loading this takes precedence over the
        // memory limit. During a slow script the limit takes precedence.
        if self.data_must_not_change() {
            return self.pause_in_force().is_some() || self.shared.is_loading();
        }
        let begin = self.clock.ticks();
        let mut fits = false;
        loop {
            let evicted = self.evictor.evict_one(&self.shared.keyspace, &self.env);
            let Some(bytes) = evicted else { break };
            self.free_garbage();
            // Events and invalidations of the evicted keys take memory too, until they are sent.
            // Evicting to make room for them would only create more.
            excess = excess.saturating_sub(bytes);
            fits = excess == 0 || self.fits_in_memory(max);
            if fits {
                break;
            }
            let lasted = self.clock.ns(self.clock.ticks().wrapping_sub(begin));
            // Values that `lazyfree-lazy-eviction` leaves to another thread are freed only later:
            // evicting until the memory shows as free would evict more than needed.
            let ahead = self.env.settings.lazy_eviction
                && self.shared.background.pending() >= LAZY_EVICTIONS_AHEAD_MAX;
            if lasted > budget_ns || ahead {
                // More is evicted before the next command. Until then writes are allowed, since
                // memory is being freed.
                fits = true;
                break;
            }
        }
        let ns = self.clock.ns(self.clock.ticks().wrapping_sub(begin));
        self.stats().eviction_ns.add(ns);
        self.note_latency("eviction-cycle", ns);
        fits
    }

    /// Notes the size of a session's buffers for the maxima that INFO shows.
    pub fn note_buffers(&self, input: u64, output: u64, unix_seconds: u64) {
        let stats = self.stats();
        stats.recent_input.note(unix_seconds, input);
        stats.recent_output.note(unix_seconds, output);
    }

    /// Hands unlinked values to the thread that frees them.
    #[inline]
    pub fn free_garbage(&self) {
        self.free_garbage_timed(|| None);
    }

    /// Like [`Self::free_garbage`], after keys have expired. The latency monitor records how long freeing their
    /// memory took, although no command waited for it: this is the cost of expiry with `lazyfree-lazy-expire no`.
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
            // The number of bytes is only needed when memory is nearly full.
            let max = self.config.memory.maxmemory;
            let counts =
                max != 0 && brisk_observe::memory::above(max / 4 * 3, self.total_limit) > 0;
            self.shared.background.free_timed(std::mem::take(&mut *garbage), counts, timed());
        }
    }

    /// Notes a spike for the latency monitor if it is above the threshold.
    pub fn note_latency(&self, event: &'static str, ns: u64) {
        let threshold_ms = self.config.observe.latency_monitor_threshold_ms;
        let ms = ns / 1_000_000;
        if threshold_ms > 0 && ms >= threshold_ms as u64 {
            self.shared.observe.latency.add(event, unix_ms() / 1000, ms);
        }
    }

    /// Handles a command that took long: slow log and latency monitor; updates the time.
    #[cold]
    pub fn account_slow(
        &mut self,
        client: &ClientRecord,
        row: &'static Row,
        ns: u64,
        words: &Args<'_>,
    ) {
        use brisk_engine::command::Flags;
        if self.is_loading {
            // The worker loads a file, for no client: all its commands see the same time.
            return;
        }
        let fast = row.has(Flags::FAST);
        self.note_latency(if fast { "fast-command" } else { "command" }, ns);
        let threshold_us = self.config.observe.slowlog_log_slower_than_us;
        let len_max = self.config.observe.slowlog_max_len;
        let us = ns / 1000;
        // In Redis, a log of length 0 still takes an entry, and with it an id; in Valkey it is off.
        let is_off = threshold_us < 0 || (len_max == 0 && self.is_valkey());
        if !is_off && us >= threshold_us as u64 && !row.has(Flags::SKIP_SLOWLOG) {
            let entry = brisk_observe::slowlog::Entry {
                id: 0,
                unix_seconds: unix_ms() / 1000,
                duration_us: us,
                words: brisk_observe::slowlog::cut_words(self.shown_words(row, words).into_iter()),
                client: client.addr.to_string(),
                client_name: client.texts().name,
            };
            self.shared.observe.slowlog.add(entry, usize::try_from(len_max).unwrap_or(0));
        }
        // All commands of a transaction see the same time.
        if self.unit.is_none() {
            self.env.advance(UnixMs(unix_ms()));
        }
    }

    /// Reports whether `dialect` is Valkey.
    pub fn is_valkey(&self) -> bool {
        self.config.process.dialect == Dialect::Valkey
    }

    /// The arguments of the command that just ran, without its secrets.
    pub(crate) fn shown_words<'w>(&self, row: &Row, words: &Args<'w>) -> Vec<&'w [u8]> {
        let mut shown: Vec<&[u8]> = words.arguments().collect();
        if matches!(row.run, Run::Server(_)) {
            for &at in &self.redacted {
                if let Some(word) = shown.get_mut(at) {
                    *word = REDACTED;
                }
            }
        }
        if let Some(secrets) = row.spec.secrets {
            for at in secrets(words.argc(), &|at| words.argument(at)) {
                shown[at] = REDACTED;
            }
        }
        shown
    }

    /// Reports whether a client has more output than `client-output-buffer-limit` allows for its
    /// class, either the hard limit or the soft limit for its duration. `unsent` bytes and held
    /// replies count. For a replica, the part of the stream that it was not sent counts, wherever
    /// that part is stored.
    #[inline]
    pub fn exceeds_output_limit(&self, session: &mut Session, unsent: u64) -> bool {
        if !session.replication.is_replica()
            && unsent + session.output.held_len() as u64 <= UNCOUNTED_OUTPUT_BYTES
        {
            session.output.note_within_soft_limit();
            return false;
        }
        self.exceeds_limit_of_class(session, unsent)
    }

    fn exceeds_limit_of_class(&self, session: &mut Session, mut unsent: u64) -> bool {
        let class = class_of(session);
        let mut hard_bytes = self.config.clients.output_limits[class as usize].hard_bytes;
        if let Some(replica) = session.replication.replica_mut().filter(|replica| replica.follows())
        {
            replica.note_unsent(unsent);
            unsent -= replica.stream_unsent();
            let replication = &self.shared.replication;
            replication.note_held(replica, unsent + session.output.held_len() as u64);
            // The size of the snapshot is not limited.
            unsent -= replica.snapshot.unsent();
            let behind = replica.progress().map(|one| replication.stream.counted_behind(one));
            unsent += behind.unwrap_or(0);
            // Otherwise a replica that resumes with the whole backlog would be closed for it.
            if hard_bytes > 0 {
                hard_bytes = hard_bytes.max(self.config.replication.repl_backlog_size);
            }
        }
        unsent += session.output.held_len() as u64;
        if unsent <= UNCOUNTED_OUTPUT_BYTES {
            session.output.note_within_soft_limit();
            return false;
        }
        let limit = self.config.clients.output_limits[class as usize];
        let hard = hard_bytes > 0 && unsent > hard_bytes;
        let soft = limit.soft_bytes > 0 && unsent > limit.soft_bytes;
        let lasting = if soft {
            let now = self.env.now().0;
            let since = session.output.note_over_soft_limit(now);
            now.saturating_sub(since) > limit.soft_seconds.max(0) as u64 * 1000
        } else {
            session.output.note_within_soft_limit();
            false
        };
        if hard || lasting {
            let figures = &self.shared.observe.figures;
            figures.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
        }
        hard || lasting
    }

    /// Updates the memory total of a session if it has changed (`output` is the bytes of its
    /// output). Evicts clients if all together use too much.
    #[inline]
    pub fn weigh(&self, output: usize, session: &mut Session) {
        session.output.set_unread_aside();
        // The stream is counted once for all replicas.
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
            if grows && self.client_limit != 0 {
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

    /// Called before a session executes whole requests in `input` that have arrived in parts. While
    /// they are executed, the arguments also exist as values, so the client uses the most memory
    /// now. As in Redis, a client above the limit is closed before the requests are executed.
    #[cold]
    pub fn weigh_before_execution(&self, output: usize, input: &Bytes, session: &mut Session) {
        let bytes = session.memory(output) + (input.capacity() + input.len()) as u64;
        session.accounting.set_weight(bytes);
        self.shared.clients.weights.weigh(&session.record, bytes);
        self.evict_clients();
    }

    /// Closes the largest clients while all together take more than `maxmemory-clients`.
    #[cold]
    pub fn evict_clients(&self) {
        let shared = self.shared;
        while self.client_limit != 0 && shared.clients.weights.evictable() > self.client_limit {
            let Some((record, bytes)) = shared.clients.weights.take_largest() else { return };
            shared.observe.figures.evicted_clients.fetch_add(1, Ordering::Relaxed);
            shared.log.notice(format_args!(
                "Evicting client {} from {}: it holds {bytes} bytes",
                record.id, record.addr
            ));
            shared.clients.input_weights.weigh_again(&record);
            self.close_at_once(&record);
        }
    }

    /// Closes the clients with the largest inputs while all inputs together take more than
    /// `input-total-limit`: a request that waits for its rest cannot be held back any further.
    fn bound_inputs(&self) {
        let shared = self.shared;
        while shared.clients.input_weights.evictable() > self.input_limit {
            let Some((record, bytes)) = shared.clients.input_weights.take_largest() else { return };
            let figures = &shared.observe.figures;
            figures.input_total_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            shared.log.warning(format_args!(
                "Closing client {} from {}: of all unexecuted requests, which take more than \
                 input-total-limit ({} bytes), it holds {bytes} bytes",
                record.id, record.addr, self.input_limit
            ));
            shared.clients.weights.weigh_again(&record);
            self.close_at_once(&record);
        }
    }

    /// Closes a client that is marked as killed, on whichever worker it is.
    fn close_at_once(&self, record: &ClientRecord) {
        // Its worker executes nothing more for it.
        record.set(flag::CLOSE_ASAP, true);
        let (token, id) = (record.token, record.id);
        self.shared.mailboxes[record.worker].send(Message::Kill { token, id });
    }

    /// Publishes how much output a session has: `unsent` bytes and its held replies.
    #[inline]
    pub fn publish_output(&self, unsent: usize, session: &mut Session) {
        let output = (unsent + session.output.unlogged().len() + session.output.held_len()) as i64;
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

    /// Unread output at which a monitor is closed: the hard limit of ordinary clients, as in Redis, or
    /// that of subscribers if the former is 0.
    pub fn monitor_limit(&self) -> u64 {
        let hard = |class| self.config.clients.output_limits[class as usize].hard_bytes;
        let limits = [hard(ClientClass::Normal), hard(ClientClass::Pubsub)];
        let limit = limits.into_iter().find(|bytes| *bytes > 0);
        limit.unwrap_or(self.total_limit).min(self.total_limit)
    }

    /// Unsent output at which a client's pipeline pauses. (P4)
    pub fn soft_limit(&self) -> usize {
        if self.shared.output_bytes() > self.total_limit {
            self.soft_limit.min(TIGHT_SOFT_LIMIT)
        } else {
            self.soft_limit
        }
    }
}

/// Replaces passwords in output.
const REDACTED: &[u8] = b"(redacted)";

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

/// Output that no limit counts: the size of Redis's static reply buffer, which Redis does not count
/// either.
const UNCOUNTED_OUTPUT_BYTES: u64 = 16 * 1024;

/// Upper bound of the unsent output at which a subscriber is checked with each message.
const PUBSUB_WATCH_BYTES: u64 = 16 * 1024;

/// Keys that are removed at once when `tracking-table-max-keys` is lowered; the rest is removed in
/// steps.
const TRACKED_KEYS_TRIMMED: usize = 128;

/// Maximum number of large values that are evicted and not yet freed. Beyond it eviction waits for
/// the thread that frees them.
const LAZY_EVICTIONS_AHEAD_MAX: u64 = 8;

/// Time limit of one eviction by `maxmemory-eviction-tenacity`: from 0 to 10 linear up to 500 us,
/// above that 15 % more for each step, no limit at 100.
fn eviction_budget_ns(tenacity: i64) -> u64 {
    match tenacity {
        ..=10 => 50_000 * tenacity.max(0) as u64,
        11..100 => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

/// The settings that commands depend on, for a thread that has not loaded any.
pub(crate) fn settings_in_force(shared: &Shared, config: &Config) -> Settings {
    let mut settings = engine_settings(config, shared.keyspace.hasher());
    settings.limits.list_plain_min = shared.debug.list_plain_min.load(Ordering::Relaxed);
    settings.skips_checksums = shared.debug.skips_checksums.load(Ordering::Relaxed);
    settings
}

fn engine_settings(config: &Config, hasher: &KeyHasher) -> Settings {
    use brisk_config::choice::EvictionPolicy as Chosen;
    let memory = &config.memory;
    let encoding = &config.encoding;
    // The directives' ranges exclude negative numbers.
    let limits = EncodingLimits {
        hash_max_listpack_entries: encoding.hash_max_listpack_entries as usize,
        hash_max_listpack_value: encoding.hash_max_listpack_value as usize,
        list_max_listpack_size: encoding.list_max_listpack_size,
        list_compress_depth: encoding.list_compress_depth as usize,
        list_plain_min: 0,
        set_max_intset_entries: encoding.set_max_intset_entries as usize,
        set_max_listpack_entries: encoding.set_max_listpack_entries as usize,
        set_max_listpack_value: encoding.set_max_listpack_value as usize,
        zset_max_listpack_entries: encoding.zset_max_listpack_entries as usize,
        zset_max_listpack_value: encoding.zset_max_listpack_value as usize,
        hll_sparse_max_bytes: encoding.hll_sparse_max_bytes as usize,
        stream_node_max_bytes: encoding.stream_node_max_bytes as usize,
        stream_node_max_entries: encoding.stream_node_max_entries as usize,
        hash_key: hasher.secret(),
    };
    Settings {
        limits,
        string_bytes_max: config.clients.proto_max_bulk_len,
        limited: memory.maxmemory != 0,
        eviction: match memory.maxmemory_policy {
            Chosen::NoEviction => EvictionPolicy::NoEviction,
            Chosen::AllKeysLru => EvictionPolicy::AllKeysLru,
            Chosen::AllKeysLfu => EvictionPolicy::AllKeysLfu,
            Chosen::AllKeysRandom => EvictionPolicy::AllKeysRandom,
            Chosen::VolatileLru => EvictionPolicy::VolatileLru,
            Chosen::VolatileLfu => EvictionPolicy::VolatileLfu,
            Chosen::VolatileRandom => EvictionPolicy::VolatileRandom,
            Chosen::VolatileTtl => EvictionPolicy::VolatileTtl,
        },
        maxmemory_samples: memory.maxmemory_samples as u32,
        lfu_log_factor: memory.lfu_log_factor as u32,
        lfu_decay_minutes: memory.lfu_decay_time_min as u32,
        lazy_expire: memory.lazyfree_lazy_expire,
        lazy_eviction: memory.lazyfree_lazy_eviction,
        lazy_server_del: memory.lazyfree_lazy_server_del,
        lazy_user_del: memory.lazyfree_lazy_user_del,
        lazy_user_flush: memory.lazyfree_lazy_user_flush,
        skips_checksums: false,
        dialect: config.process.dialect,
        ..Settings::default()
    }
}
