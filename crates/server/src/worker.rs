//! A worker: one thread, one event loop, its sessions.
//!
//! ```text
//!  received ─ cut a batch ─ prefetch ─ dispatch each ─ replies ─ one send
//!      └ what is not executed yet stays in the session's input
//! ```
//!
//! A session that may not go on is stalled (see [`Stall`]) and its socket is not read meanwhile.
//! Fairness: one receive per connection and round, and a session that took longer than
//! [`TURN_NS_MAX`] waits for the next round.

mod encrypted;

use crate::batch::{Batch, Look, REQUESTS_MAX, Stop};
use crate::clients::{ClientRecord, flag};
use crate::config::Config;
use crate::cron::Cron;
use crate::dispatch::Flow;
use crate::gate;
use crate::mailbox::Message;
use crate::pause::Paused;
use crate::session::{Session, Stall};
use crate::shared::{Shared, armed};
use crate::staging::Staged;
use crate::stats::WorkerStats;
use crate::table::{Row, Run};
use brisk_engine::env::EvictionPolicy;
use brisk_engine::keyspace::evict::Evictor;
use brisk_engine::random::Random;
use brisk_engine::{Args, Env, ReplyBuffer, Settings, UnixMs};
use brisk_reactor::{Accept, Clock, Close, CloseReason, Control, Handler, Token};
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long one session may execute before the others have their turn.
const TURN_NS_MAX: u64 = 2_000_000;
/// The same once the round has taken longer than [`ROUND_NS_MAX`]: with thousands of busy pipelines
/// each would else wait for the long turns of all others.
const SHORT_TURN_NS_MAX: u64 = 50_000;
const ROUND_NS_MAX: u64 = 4_000_000;
/// Replies are moved to the connection's output at this size, so that the buffer they are made in
/// stays in the cache, and small.
const FLUSH_BYTES: usize = 64 * 1024;
/// How long a closing connection waits for its client to take the last replies.
const LINGER: Duration = Duration::from_secs(10);
/// While all clients together hold more unsent output than the global limit allows, each may
/// only hold this much.
const TIGHT_SOFT_LIMIT: usize = 16 * 1024;
/// Room reserved ahead for a long request, at most; the rest comes with the bytes.
const RESERVE_MAX: usize = 1024 * 1024;
/// An input buffer above this is given back when it is empty.
const INPUT_KEPT_MAX: usize = 32 * 1024;

const TOO_MANY_CLIENTS: &str = "-ERR max number of clients reached\r\n";

/// What listens on a listener's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Tcp,
    Unix,
    Tls,
}

/// A worker's belongings besides its sessions: what commands may use.
pub struct Core {
    pub shared: &'static Shared,
    pub id: usize,
    pub env: Env,
    pub config: Arc<Config>,
    pub clock: &'static Clock,
    /// When the last command ended.
    pub last_ticks: u64,
    /// A command that takes this long is looked at by the slow log and the latency monitor.
    pub slow_ns: u64,
    pub latency_tracking: bool,
    /// Sessions to close after the present command, by token.
    pub doomed: Vec<Token>,
    /// Words of the present server command that nobody may see: passwords.
    pub redacted: Vec<usize>,
    pub evictor: Evictor,
    /// Commands that ran since the batch's figures were noted, and the last one's row.
    pub ran: u64,
    pub last_row: u32,
    config_generation: u64,
    soft_limit: usize,
    total_limit: u64,
    limits: Limits,
}

/// A batch that was cut: how many bytes it takes, and why it ends.
pub(crate) struct Cut {
    pub(crate) len: usize,
    pub(crate) stop: Stop,
}

/// A worker.
pub struct Worker {
    pub core: Core,
    pub cron: Cron,
    pub(crate) batch: Batch,
    /// Small requests of this round that are executed together.
    pub(crate) staged: Staged,
    replies: ReplyBuffer,
    pub(crate) sessions: Vec<Option<Box<Session>>>,
    /// Sessions to go on with in the next round.
    again: Vec<Token>,
    /// Sessions that wait for the end of CLIENT PAUSE.
    paused: Vec<Token>,
    monitors: HashSet<Token>,
    /// When the present round began, in ticks.
    round_began: u64,
    /// Where input is decrypted to; empty between two calls.
    plain: Vec<u8>,
    pub participant: Participant,
    pub listeners: Vec<Purpose>,
    /// Messages that change the listeners, which only the loop around the worker can do.
    pub listening: Vec<Message>,
}

/// The wall clock.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// The wall clock in microseconds.
pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
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
            slow_ns: u64::MAX,
            latency_tracking: true,
            doomed: Vec::new(),
            redacted: Vec::new(),
            evictor: Evictor::default(),
            ran: 0,
            last_row: u32::MAX,
            config_generation: 0,
            soft_limit: usize::MAX,
            total_limit: u64::MAX,
            limits: Limits {
                bulk_bytes_max: 0,
                multibulk_max: i64::from(i32::MAX),
                inline_bytes_max: 64 * 1024,
                authenticated: true,
            },
            shared,
        };
        core.take_config();
        core
    }

    #[inline]
    pub fn stats(&self) -> &'static WorkerStats {
        &self.shared.stats[self.id]
    }

    /// Takes over settings that were changed.
    #[inline]
    pub fn refresh_config(&mut self) {
        if self.config_generation != self.shared.config_generation() {
            self.take_config();
        }
    }

    #[cold]
    fn take_config(&mut self) {
        self.config_generation = self.shared.config_generation();
        self.config = self.shared.config();
        let config = Arc::clone(&self.config);
        self.env.settings = engine_settings(&config);
        self.limits.bulk_bytes_max = config.clients.proto_max_bulk_len;
        self.soft_limit = config.clients.output_soft_limit.max(1) as usize;
        self.total_limit = match config.clients.output_total_limit {
            0 => crate::memory::total_system() / 4,
            limit => limit,
        };
        self.latency_tracking = config.observe.latency_tracking;
        let slow_us = config.observe.slowlog_log_slower_than_us;
        let slowlog_ns = u64::try_from(slow_us).map_or(u64::MAX, |us| us.saturating_mul(1000));
        let monitor_ms = config.observe.latency_monitor_threshold_ms;
        let monitor_ns = if monitor_ms > 0 { monitor_ms as u64 * 1_000_000 } else { u64::MAX };
        self.slow_ns = slowlog_ns.min(monitor_ns);
    }

    /// Reads the clocks at the beginning of a batch.
    #[inline]
    pub fn read_clocks(&mut self) {
        self.env.set_now(UnixMs(unix_ms()));
        self.last_ticks = self.clock.ticks();
    }

    /// What CLIENT PAUSE holds back at the moment.
    pub fn pause_in_force(&self) -> Option<Paused> {
        if self.shared.armed.load(Ordering::Relaxed) & armed::PAUSE == 0 {
            return None;
        }
        self.shared.pause_in_force(self.env.now().0).map(|(what, _)| what)
    }

    /// Whether the data is to stay as it is, but for commands that may write.
    pub fn is_paused(&self) -> bool {
        self.pause_in_force().is_some()
    }

    /// Evicts until memory is within `maxmemory`. False if that is not possible.
    pub fn make_room(&mut self) -> bool {
        let max = self.config.memory.maxmemory;
        if max == 0 || crate::memory::used() <= max {
            return true;
        }
        let begin = self.clock.ticks();
        let budget_ns = eviction_budget_ns(self.config.memory.maxmemory_eviction_tenacity);
        let mut fits = false;
        loop {
            if !self.evictor.evict_one(&self.shared.keyspace, &self.env) {
                break;
            }
            self.free_garbage();
            fits = crate::memory::used() <= max;
            if fits {
                break;
            }
            if self.clock.ns(self.clock.ticks().wrapping_sub(begin)) > budget_ns {
                // More is evicted before the next command; until then writing is let through,
                // since room is being made.
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

    /// Hands what was unlinked to the thread that frees it.
    #[inline]
    pub fn free_garbage(&self) {
        let mut garbage = self.env.garbage.borrow_mut();
        if !garbage.is_empty() {
            self.shared.background.free(std::mem::take(&mut *garbage));
        }
    }

    /// Notes a spike for the latency monitor if it is above the threshold.
    pub fn note_latency(&self, event: &'static str, ns: u64) {
        let threshold_ms = self.config.observe.latency_monitor_threshold_ms;
        let ms = ns / 1_000_000;
        if threshold_ms > 0 && ms >= threshold_ms as u64 {
            self.shared.latency.add(event, unix_ms() / 1000, ms);
        }
    }

    /// A command that took long: slow log, latency monitor, and the time moves on.
    #[cold]
    pub fn account_slow(
        &mut self,
        session: &Session,
        row: &'static Row,
        ns: u64,
        words: &Args<'_>,
    ) {
        use brisk_engine::command::Flags;
        let fast = row.has(Flags::FAST);
        self.note_latency(if fast { "fast-command" } else { "command" }, ns);
        let threshold_us = self.config.observe.slowlog_log_slower_than_us;
        let len_max = self.config.observe.slowlog_max_len;
        let us = ns / 1000;
        if threshold_us >= 0 && us >= threshold_us as u64 && !row.has(Flags::SKIP_SLOWLOG) {
            let entry = crate::slowlog::Entry {
                id: 0,
                unix_seconds: unix_ms() / 1000,
                duration_us: us,
                words: crate::slowlog::cut_words(self.shown_words(row, words).into_iter()),
                client: session.record.addr.clone(),
                client_name: session.record.texts().name,
            };
            self.shared.slowlog.add(entry, usize::try_from(len_max).unwrap_or(0));
        }
        self.env.set_now(UnixMs(unix_ms()));
    }

    /// The words of the command that just ran, without its secrets.
    fn shown_words<'w>(&self, row: &Row, words: &Args<'w>) -> Vec<&'w [u8]> {
        let mut shown: Vec<&[u8]> = words.words().collect();
        if matches!(row.run, Run::Server(_)) {
            for &at in &self.redacted {
                shown[at] = b"(redacted)";
            }
        }
        shown
    }

    /// Sends the line for the command that just ran to all monitors.
    #[cold]
    pub fn tell_monitors(&mut self, session: &Session, row: &Row, words: &Args<'_>) {
        let record = &session.record;
        let client = if record.has(flag::UNIX_SOCKET) {
            format!("unix:{}", self.config.network.unixsocket.to_string_lossy())
        } else {
            record.addr.clone()
        };
        let shown = self.shown_words(row, words).into_iter();
        let line: Arc<[u8]> = crate::monitor::line(unix_us(), session.db.0, &client, shown).into();
        for (worker, mailbox) in self.shared.mailboxes.iter().enumerate() {
            if self.shared.monitors.at(worker) {
                mailbox.send(Message::MonitorLine(Arc::clone(&line)));
            }
        }
        // The next command does not pay for this.
        self.last_ticks = self.clock.ticks();
    }

    fn publish_output(&self, unsent: usize, session: &mut Session) {
        let output = unsent as i64;
        if output != session.counted_output {
            let change = output - session.counted_output;
            self.stats().output_bytes.fetch_add(change, Ordering::Relaxed);
            session.counted_output = output;
            session.record.output_bytes.store(output as u64, Ordering::Relaxed);
            self.note_buffers(0, output as u64, self.env.now().0 / 1000);
        }
    }

    /// Unsent output a client may have before its pipeline stops. (P4)
    fn soft_limit(&self) -> usize {
        if self.shared.output_bytes() > self.total_limit {
            self.soft_limit.min(TIGHT_SOFT_LIMIT)
        } else {
            self.soft_limit
        }
    }
}

/// Time one eviction may take by `maxmemory-eviction-tenacity`: 0-10 linear up to 500 us, above
/// growing by 15 % each, 100 without limit.
fn eviction_budget_ns(tenacity: i64) -> u64 {
    match tenacity {
        ..=10 => 50_000 * tenacity.max(0) as u64,
        11..100 => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

fn engine_settings(config: &Config) -> Settings {
    use crate::config::choice::EvictionPolicy as Chosen;
    let memory = &config.memory;
    Settings {
        string_bytes_max: config.clients.proto_max_bulk_len,
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
        lazy_user_del: memory.lazyfree_lazy_user_del,
        lazy_user_flush: memory.lazyfree_lazy_user_flush,
        ..Settings::default()
    }
}

impl Worker {
    pub fn new(core: Core, participant: Participant, listeners: Vec<Purpose>) -> Worker {
        let workers = core.shared.workers();
        Worker {
            cron: Cron::new(core.id, workers),
            core,
            batch: Batch::new(),
            staged: Staged::default(),
            replies: ReplyBuffer::new(),
            sessions: Vec::new(),
            again: Vec::new(),
            paused: Vec::new(),
            monitors: HashSet::new(),
            round_began: 0,
            plain: Vec::new(),
            participant,
            listeners,
            listening: Vec::new(),
        }
    }

    /// Between two rounds: timers, and sessions that had to wait. Returns how long the loop may
    /// wait for events.
    pub fn between_rounds(&mut self, io: &mut Control) -> Duration {
        self.core.refresh_config();
        self.core.read_clocks();
        self.round_began = self.core.last_ticks;
        for token in std::mem::take(&mut self.again) {
            self.go_on(io, token, Stall::NextRound);
        }
        let wait = self.run_cron(io);
        if self.again.is_empty() { wait } else { Duration::ZERO }
    }

    fn run_cron(&mut self, io: &mut Control) -> Duration {
        let mut cron = std::mem::take(&mut self.cron);
        let wait = cron.run(self, io);
        self.cron = cron;
        wait
    }

    /// All sessions, for the timers.
    pub fn session_slots(&self) -> usize {
        self.sessions.len()
    }

    /// The session with this index.
    pub fn session_at(&mut self, index: usize) -> Option<&mut Session> {
        self.sessions.get_mut(index)?.as_deref_mut()
    }

    /// Resumes sessions that CLIENT PAUSE holds, if it is over.
    pub fn resume_paused(&mut self, io: &mut Control) {
        self.core.read_clocks();
        for token in std::mem::take(&mut self.paused) {
            self.go_on(io, token, Stall::Paused);
        }
    }

    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// How long CLIENT PAUSE is still in force; 0 if it is not.
    pub fn pause_left_ns(&self) -> u64 {
        let now = unix_ms();
        let until = self.core.shared.pause.in_force(now).map_or(now, |(_, until)| until);
        (until - now).saturating_mul(1_000_000)
    }

    pub(crate) fn take(&mut self, token: Token) -> Option<Box<Session>> {
        let slot = self.sessions.get_mut(token.index())?;
        if slot.as_ref()?.token == token { slot.take() } else { None }
    }

    pub(crate) fn put(&mut self, session: Box<Session>) {
        let index = session.token.index();
        self.sessions[index] = Some(session);
    }

    /// Lets a session go on whose stall is over.
    fn go_on(&mut self, io: &mut Control, token: Token, stall: Stall) {
        let Some(mut session) = self.take(token) else { return };
        if session.stall == stall {
            self.unstall(&mut session);
            self.execute_input(io, &mut session);
            if session.stall == Stall::None {
                io.resume_reading(token);
                if session.finished {
                    close_flushed(io, &mut session);
                }
            }
            self.after_turn(io, &mut session);
        }
        self.put(session);
        self.close_doomed(io);
    }

    /// Executes requests that arrived, and keeps what cannot be executed yet.
    #[inline]
    fn take_input(&mut self, io: &mut Control, session: &mut Session, bytes: &[u8]) {
        if session.stall != Stall::None {
            session.input.extend_from_slice(bytes);
        } else if session.input.is_empty() {
            let used = self.execute(io, session, bytes);
            if used < bytes.len() {
                session.input.extend_from_slice(&bytes[used..]);
            }
        } else {
            session.input.extend_from_slice(bytes);
            self.execute_input(io, session);
        }
    }

    /// Executes what the session holds of its input.
    fn execute_input(&mut self, io: &mut Control, session: &mut Session) {
        if session.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut session.input);
        let used = self.execute(io, session, &input);
        if used >= input.len() {
            if input.capacity() <= INPUT_KEPT_MAX {
                input.clear();
                session.input = input;
            }
        } else {
            input.drain(..used);
            session.input = input;
        }
    }

    /// Executes the whole requests at the beginning of `data`, as far as the session may go, and
    /// returns how many bytes they took.
    fn execute(&mut self, io: &mut Control, session: &mut Session, data: &[u8]) -> usize {
        let cut = self.cut(session, data);
        self.execute_from(io, session, data, cut)
    }

    /// Cuts a batch out of `data`.
    pub(crate) fn cut(&mut self, session: &mut Session, data: &[u8]) -> Cut {
        let shared = self.core.shared;
        let authenticated = !gate::must_authenticate(&self.core, session);
        let limits = Limits { authenticated, ..self.core.limits };
        // Before authentication the next request's limits depend on this one.
        let max = if authenticated { REQUESTS_MAX } else { 1 };
        let look = Look {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db),
            participant: &self.participant,
        };
        let (len, stop) = self.batch.fill(data, max, &mut session.decoder, &limits, &look);
        let parsed = self.core.clock.ticks();
        let ticks = parsed.wrapping_sub(self.core.last_ticks);
        self.core.stats().parse_ns.add(self.core.clock.ns(ticks));
        self.core.last_ticks = parsed;
        Cut { len, stop }
    }

    /// Like [`Worker::execute`], with the first batch cut already.
    pub(crate) fn execute_from(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
        mut cut: Cut,
    ) -> usize {
        let begin = self.core.last_ticks;
        self.core.env.touch.set(!session.no_touch);
        let mut at = 0;
        loop {
            let before = self.core.last_ticks;
            let stopped = self.run_batch(io, session, &data[at..]);
            self.note_batch(session, before);
            if let Some(rest) = stopped {
                session.decoder.reset();
                return at + rest;
            }
            at += cut.len;
            match cut.stop {
                Stop::Full => {}
                Stop::NeedMore(missing) => {
                    session.input.reserve(missing.min(RESERVE_MAX));
                    return at;
                }
                Stop::Broken(error) => {
                    error.encode(self.replies.bytes_mut());
                    self.core.stats().error_replies.add(1);
                    self.core.shared.count_error("ERR");
                    session.close_after_reply();
                    return data.len();
                }
            }
            let turn = self.core.last_ticks.wrapping_sub(begin);
            if self.core.clock.ns(turn) > self.turn_ns_max() {
                self.stall(session, Stall::NextRound);
                return at;
            }
            cut = self.cut(session, &data[at..]);
        }
    }

    /// Before sessions execute: settings, time, and what was prefetched before is forgotten.
    pub(crate) fn begin_turn(&mut self) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.participant.quiescent();
    }

    /// How long a session's turn may be in this round.
    fn turn_ns_max(&self) -> u64 {
        let round = self.core.last_ticks.wrapping_sub(self.round_began);
        if self.core.clock.ns(round) > ROUND_NS_MAX { SHORT_TURN_NS_MAX } else { TURN_NS_MAX }
    }

    /// Runs the requests of the batch. `Some(n)` if the session must stop behind `n` bytes.
    #[inline]
    fn run_batch(&mut self, io: &mut Control, session: &mut Session, data: &[u8]) -> Option<usize> {
        let soft_limit = self.core.soft_limit();
        let flush_at = soft_limit.min(FLUSH_BYTES);
        for at in 0..self.batch.len() {
            let request = *self.batch.request(at);
            self.core.shared.quiesce.checkpoint(self.core.id);
            let flow = self.core.dispatch(session, &self.batch, &request, data, &mut self.replies);
            if let Flow::Later(stall) = flow {
                self.stall(session, stall);
                return Some(request.start);
            }
            if session.is_closing() {
                return Some(data.len());
            }
            if self.replies.len() >= flush_at {
                self.flush(io, session);
                if io.unsent(session.token) >= soft_limit {
                    self.core.stats().output_stalls.add(1);
                    self.stall(session, Stall::Output);
                    io.when_drained(session.token, soft_limit / 2);
                    return Some(request.end);
                }
            }
        }
        None
    }

    fn stall(&mut self, session: &mut Session, stall: Stall) {
        session.stall = stall;
        session.record.set(flag::STALLED, true);
        match stall {
            Stall::None | Stall::Output => {}
            Stall::NextRound => self.again.push(session.token),
            Stall::Paused => {
                self.core.shared.clients.set_blocked(&session.record, true);
                // Sessions closed meanwhile left their tokens: at most one for each that is open.
                if self.paused.len() > 2 * self.sessions.len() {
                    let sessions = &self.sessions;
                    self.paused.retain(|token| {
                        let session = sessions.get(token.index());
                        session.and_then(Option::as_ref).is_some_and(|s| s.token == *token)
                    });
                }
                self.paused.push(session.token);
            }
        }
    }

    fn unstall(&mut self, session: &mut Session) {
        if session.stall == Stall::Paused {
            self.core.shared.clients.set_blocked(&session.record, false);
        }
        session.stall = Stall::None;
        session.record.set(flag::STALLED, false);
    }

    #[inline]
    fn note_batch(&mut self, session: &Session, began: u64) {
        let ran = std::mem::take(&mut self.core.ran);
        if ran > 0 {
            session.record.last_command.store(self.core.last_row, Ordering::Relaxed);
        }
        let clock = self.core.clock;
        let stats = self.core.stats();
        stats.execute_ns.add(clock.ns(self.core.last_ticks.wrapping_sub(began)));
        stats.batches.add(1);
        stats.batched_requests.add(self.batch.len() as u64);
        stats.commands_processed.add(ran);
        stats.batch_max.raise(self.batch.len() as u64);
        self.core.free_garbage();
    }

    /// Moves replies to the connection's output.
    fn flush(&mut self, io: &mut Control, session: &mut Session) {
        if self.replies.is_empty() {
            return;
        }
        let output = io.output(session.token);
        if let Some(stream) = &mut session.tls {
            encrypted::flush(&mut self.replies, stream, output);
        } else if self.replies.has_shared() {
            let output = std::cell::RefCell::new(output);
            self.replies.drain(
                |bytes| output.borrow_mut().extend_from_slice(bytes),
                |data| {
                    let len = data.len();
                    output.borrow_mut().push_shared(data, 0..len);
                },
            );
        } else {
            output.extend_from_slice(self.replies.bytes());
            self.replies.clear();
        }
        io.send(session.token);
    }

    /// After a session has had its turn: replies go out, figures are published, it may be closed.
    pub(crate) fn after_turn(&mut self, io: &mut Control, session: &mut Session) {
        let token = session.token;
        // What the kernel has not taken by now; the replies of this turn it has not been offered.
        let mut unsent = io.unsent(token);
        self.flush(io, session);
        if session.is_closing() {
            if session.record.has(flag::CLOSE_ASAP) {
                io.close(token, Close::Now);
            } else {
                close_flushed(io, session);
            }
        } else if session.stall != Stall::None {
            io.pause_reading(token);
            unsent = io.unsent(token);
        } else if session.input.len() as u64 > self.core.config.clients.client_query_buffer_limit {
            let figures = &self.core.shared.figures;
            figures.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            io.close(token, Close::Now);
        }
        self.publish(unsent, session);
    }

    /// Publishes again how much output of a session the kernel has not taken.
    pub fn refresh_output(&mut self, io: &Control, index: usize) {
        let Some(session) = self.sessions.get_mut(index).and_then(Option::as_deref_mut) else {
            return;
        };
        self.core.publish_output(io.unsent(session.token), session);
    }

    /// Publishes what CLIENT LIST and INFO show of a session.
    fn publish(&self, unsent: usize, session: &mut Session) {
        let stats = self.core.stats();
        self.core.publish_output(unsent, session);
        let input = session.input.len() as i64;
        if input != session.counted_input {
            stats.input_bytes.fetch_add(input - session.counted_input, Ordering::Relaxed);
            session.counted_input = input;
            session.record.query_bytes.store(input as u64, Ordering::Relaxed);
            self.core.note_buffers(input as u64, 0, self.core.env.now().0 / 1000);
        }
        session.record.query_capacity.store(session.input.capacity() as u64, Ordering::Relaxed);
        session.record.last_active_ms.store(self.core.env.now().0, Ordering::Relaxed);
    }

    pub(crate) fn close_doomed(&mut self, io: &mut Control) {
        while let Some(token) = self.core.doomed.pop() {
            io.close(token, Close::Now);
        }
    }

    /// Adds a session to those that get a line for each command.
    pub fn add_monitor(&mut self, token: Token) {
        self.monitors.insert(token);
    }

    fn deliver_monitor_line(&mut self, io: &mut Control, line: &[u8]) {
        let limit = match self.core.config.clients.output_limits[0].hard_bytes {
            0 => self.core.total_limit,
            limit => limit,
        };
        let sessions = &mut self.sessions;
        // A session that was reset does not monitor any more.
        self.monitors.retain(|&token| {
            let slot = sessions.get_mut(token.index());
            let Some(Some(session)) = slot else { return false };
            let monitors = session.token == token && session.record.has(flag::MONITOR);
            if monitors {
                append(io, session, line);
                if io.unsent(token) as u64 > limit {
                    io.close(token, Close::Now);
                }
            }
            monitors
        });
    }

    /// Closes all monitors: lines for them were lost.
    fn drop_monitors(&mut self, io: &mut Control) {
        for token in self.monitors.drain() {
            io.close(token, Close::Now);
        }
    }
}

/// Sends bytes to a client outside of its turn.
fn append(io: &mut Control, session: &mut Session, bytes: &[u8]) {
    let output = io.output(session.token);
    match &mut session.tls {
        Some(stream) => stream.send(bytes, output),
        None => output.extend_from_slice(bytes),
    }
    io.send(session.token);
}

/// Closes a connection when its client has taken what is queued for it.
fn close_flushed(io: &mut Control, session: &mut Session) {
    if let Some(stream) = &mut session.tls {
        stream.close(io.output(session.token));
        io.send(session.token);
    }
    io.close(session.token, Close::Flush { linger: LINGER });
}

impl Handler for Worker {
    fn accepted(&mut self, io: &mut Control, token: Token, listener: usize) -> Accept {
        self.core.refresh_config();
        let purpose = self.listeners.get(listener).copied().unwrap_or(Purpose::Tcp);
        let shared = &self.core.shared;
        let config = &self.core.config;
        let figures = &shared.figures;
        if !shared.clients.admit(config.clients.maxclients as u64) {
            figures.rejected_connections.fetch_add(1, Ordering::Relaxed);
            // Before a handshake nothing can be said that the client would understand.
            let why = if purpose == Purpose::Tls { "" } else { TOO_MANY_CLIENTS };
            return Accept::Refuse(why.as_bytes().into());
        }
        let no_password = config.security.requirepass.is_empty();
        let peer = io.peer_addr(token);
        if purpose != Purpose::Tls && self.is_stranger(&peer) {
            shared.clients.retract();
            figures.rejected_connections.fetch_add(1, Ordering::Relaxed);
            return Accept::Refuse(crate::session::PROTECTED_MODE.as_bytes().into());
        }
        let mut tls = None;
        if purpose == Purpose::Tls {
            tls = self.new_stream();
            if tls.is_none() {
                shared.clients.retract();
                return Accept::Refuse(b"".as_slice().into());
            }
        }
        let unix = purpose == Purpose::Unix;
        let (addr, laddr) = if unix {
            let path = config.network.unixsocket.to_string_lossy();
            (format!("{path}:0"), format!("{path}:0"))
        } else {
            (peer.to_string(), io.accepted_at(token, listener).to_string())
        };
        let now = unix_ms();
        let record = Arc::new(ClientRecord {
            id: shared.clients.next_id(),
            worker: self.core.id,
            token,
            fd: io.fd(token).map_or(-1, |fd| std::os::fd::AsRawFd::as_raw_fd(&fd)),
            addr,
            laddr,
            created_ms: now,
            flags: AtomicU32::new(if unix { flag::UNIX_SOCKET } else { 0 }),
            last_active_ms: AtomicU64::new(now),
            db: AtomicU32::new(0),
            resp: AtomicU8::new(2),
            last_command: AtomicU32::new(u32::MAX),
            query_bytes: AtomicU64::new(0),
            query_capacity: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            killed: AtomicBool::new(false),
            texts: std::sync::Mutex::default(),
        });
        shared.clients.add(Arc::clone(&record));
        self.core.stats().connections_received.add(1);
        let index = token.index();
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        let mut session = Box::new(Session::new(record, no_password));
        session.tls = tls;
        self.sessions[index] = Some(session);
        Accept::Keep
    }

    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        if self.stage(token, bytes) {
            if self.staged.is_full() {
                self.run_staged(io);
            }
            return;
        }
        self.run_staged(io);
        let Some(mut session) = self.take(token) else { return };
        self.begin_turn();
        if session.tls.is_some() {
            self.receive_encrypted(io, &mut session, bytes);
        } else {
            self.take_input(io, &mut session, bytes);
        }
        self.after_turn(io, &mut session);
        self.put(session);
        self.close_doomed(io);
    }

    fn finished(&mut self, io: &mut Control, token: Token) {
        self.run_staged(io);
        let Some(session) = self.session_at(token.index()) else { return };
        session.finished = true;
        if session.stall == Stall::None {
            close_flushed(io, session);
        }
    }

    fn closed(&mut self, io: &mut Control, token: Token, _: CloseReason) {
        let _ = io;
        let Some(session) = self.take(token) else { return };
        let stats = self.core.stats();
        stats.output_bytes.fetch_sub(session.counted_output, Ordering::Relaxed);
        stats.input_bytes.fetch_sub(session.counted_input, Ordering::Relaxed);
        if session.record.has(flag::MONITOR) {
            self.core.shared.remove_monitor(self.core.id);
        }
        self.monitors.remove(&token);
        self.core.shared.clients.set_blocked(&session.record, false);
        self.core.shared.clients.remove(self.core.id, session.id());
    }

    fn hung_up(&mut self, io: &mut Control, token: Token) {
        // As in Redis, what a client left unexecuted during a pause goes with it.
        let Some(session) = self.session_at(token.index()) else { return };
        if session.stall == Stall::Paused {
            io.close(token, Close::Now);
        }
    }

    fn drained(&mut self, io: &mut Control, token: Token) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.go_on(io, token, Stall::Output);
    }

    fn woken(&mut self, io: &mut Control) {
        self.core.refresh_config();
        let shared = self.core.shared;
        let mailbox = &shared.mailboxes[self.core.id];
        if mailbox.take_overflow() {
            self.drop_monitors(io);
        }
        for message in mailbox.take() {
            match message {
                Message::Kill { token, id } => {
                    let is_it = |session: &mut Session| session.id() == id;
                    if self.session_at(token.index()).is_some_and(is_it) {
                        io.close(token, Close::Now);
                    }
                }
                Message::MonitorLine(line) => self.deliver_monitor_line(io, &line),
                Message::Monitor(token) => self.add_monitor(token),
                Message::Listen(_) | Message::Keepalive(_) => self.listening.push(message),
                Message::Unpause => self.resume_paused(io),
            }
        }
    }

    fn waiting(&mut self) {
        self.participant.offline();
        self.core.shared.quiesce.leave(self.core.id);
    }

    fn resumed(&mut self) {
        self.core.shared.quiesce.enter(self.core.id);
        self.participant.online();
        self.round_began = self.core.clock.ticks();
    }

    fn round_end(&mut self, io: &mut Control) {
        self.run_staged(io);
        self.cron.publish_traffic(self.core.stats(), io.counters());
        self.participant.quiescent();
    }
}
