//! A worker's periodic tasks: expiry, idle clients, sampled metrics.
//!
//! The tasks run `hz` times a second on each worker. Worker 0 also samples the server-wide metrics. Between rounds,
//! expiry continues in slices of [`EXPIRE_SLICE_NS`] as long as it has work. It takes at most a quarter of the worker's
//! time (more with a higher `active-expire-effort`).

use crate::worker::Worker;
use brisk_engine::keyspace::expire::{SweepOutcome, Sweeper};
use brisk_engine::keyspace::{ClockWalker, SnapshotWalker, WalkOutcome};
use brisk_net::tls::HANDSHAKE_MS_MAX;
use brisk_node::clients::flag;
use brisk_node::core::memory_limit;
use brisk_node::core::pause::Hold;
use brisk_node::core::session::Stall;
use brisk_node::persistence::aof::rewrite;
use brisk_node::persistence::{bgsave, ending};
use brisk_node::replication::compare::{Compared, Comparer};
use brisk_node::replication::handover;
use brisk_node::replication::{follow, full_sync, spilling};
use brisk_node::script::run;
use brisk_observe::stats::WorkerStats;
use brisk_reactor::unix_ms;
use brisk_reactor::{Close, Control, ReactorCounters, Token};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The length of one expiry slice, which bounds the time for which expiry delays clients.
const EXPIRE_SLICE_NS: u64 = 400_000;
/// Pause between two slices at the default effort, so that expiry takes at most a quarter of the
/// time.
const EXPIRE_PAUSE_NS: u64 = 1_200_000;
/// On a replica, the number of keys created by its own clients that one cycle checks. Checking them takes well below a
/// millisecond.
const OWN_KEYS_PER_CYCLE: usize = 1000;
/// The interval between the starts of two cycles over all slots.
const EXPIRE_PERIOD_NS: u64 = 100_000_000;
/// The length of one slice of the walk for a snapshot.
const WALK_SLICE_NS: u64 = 100_000;
/// The pause between two slices is the sum of this and of the time that the worker has spent on anything else since the
/// previous slice, but at most [`WALK_PAUSE_MAX_NS`]. The system's timers add up to 50 µs. So a worker without commands
/// spends at least two fifths of its time on the walk, and leaves the CPU to other threads and processes in between. A
/// worker without idle time spends 5 % of it. On kernels without `epoll_pwait2`, a pause is at least 1 ms, and a worker
/// spends at most a tenth of its time on the walk.
const WALK_PAUSE_NS: u64 = 100_000;
const WALK_PAUSE_MAX_NS: u64 = 1_900_000;
/// The length of one slice of a comparison, or of the restart of access clocks.
const SLICE_NS: u64 = 200_000;
/// Pause between two slices of a comparison on a worker that has commands to execute. A worker without commands
/// continues immediately.
const COMPARE_PAUSE_NS: u64 = 1_200_000;
/// Pause between two slices of the restart of access clocks, so that it takes at most a third of
/// the time.
const CLOCK_PAUSE_NS: u64 = 400_000;
/// Delay before the next attempt if other workers have to act first.
const WALK_WAIT_NS: u64 = 5_000_000;
/// Time between two newlines for a replica that waits for its snapshot.
const NEWLINE_PERIOD_NS: u64 = 1_000_000_000;
/// Number of samples over which a rate is averaged.
const RATE_SAMPLES: usize = 16;
/// Time between two samples.
const SAMPLE_PERIOD_NS: u64 = 100_000_000;

/// A worker's timers.
#[derive(Default)]
pub struct Cron {
    /// True for worker 0, which samples for the whole server.
    samples_server: bool,
    next_tick: u64,
    next_expire: u64,
    next_sample: u64,
    /// When replicas were last sent a PING.
    pinged: u64,
    /// When replicas that wait for a snapshot are next sent a newline, which shows that the server is alive.
    next_newline: u64,
    sweeper: Option<Sweeper>,
    /// When the walk for the snapshot in progress continues; `None` if there is none.
    next_walk: Option<u64>,
    walker: SnapshotWalker,
    /// The worker's time spent in rounds before the last slice of the walk, plus the duration of that slice.
    worked_ns: u64,
    /// When the restart of access clocks continues; `None` if there is none in progress.
    next_clocks: Option<u64>,
    clock_walker: ClockWalker,
    /// When the comparison with replicas continues; `None` if there is none in progress.
    next_compare: Option<u64>,
    comparer: Comparer,
    /// The number of commands that had been executed before the last slice of the comparison.
    commands_compared: u64,
    /// The number of tracked keys to forget at the next tick if the table exceeds its limit.
    trim_step: usize,
    /// The position of the walk over sessions.
    session_cursor: usize,
    /// The event loop's counters that were last published for INFO.
    published: ReactorCounters,
    commands: Rate,
    input: Rate,
    output: Rate,
    repl_input: Rate,
    repl_output: Rate,
    rounds: Rate,
    /// The rate of time spent in rounds.
    rounds_ns: Rate,
}

/// A rate averaged over the latest samples.
#[derive(Debug, Default)]
struct Rate {
    last: u64,
    last_ns: u64,
    samples: [u64; RATE_SAMPLES],
    next: usize,
}

impl Rate {
    /// Takes the counter's value and returns the average change per second.
    fn sample(&mut self, value: u64, now_ns: u64) -> u64 {
        let elapsed = now_ns.saturating_sub(self.last_ns).max(1);
        let change = value.saturating_sub(self.last);
        if self.last_ns != 0 {
            let per_second = u128::from(change) * 1_000_000_000 / u128::from(elapsed);
            self.samples[self.next] = per_second as u64;
            self.next = (self.next + 1) % RATE_SAMPLES;
        }
        (self.last, self.last_ns) = (value, now_ns);
        self.samples.iter().sum::<u64>() / RATE_SAMPLES as u64
    }
}

impl Cron {
    /// Creates the timers of worker `id`. The first `workers` workers share the work of expiry.
    pub fn new(id: usize, workers: usize) -> Cron {
        Cron {
            samples_server: id == 0,
            sweeper: (id < workers).then(|| Sweeper::new(id, workers)),
            ..Cron::default()
        }
    }

    /// Returns the time until something is due, or `None` if something is due now.
    #[inline]
    pub fn nothing_due(&self, now: u64, snapshot: bool, compares: bool) -> Option<Duration> {
        let begins = compares && self.samples_server && self.next_compare.is_none();
        if begins || snapshot && self.next_walk.is_none() {
            return None;
        }
        let wait = self.next().checked_sub(now)?;
        (wait > 0).then(|| Duration::from_nanos(wait))
    }

    fn next(&self) -> u64 {
        let timers = self.next_tick.min(self.next_expire).min(self.next_sample);
        let walk = self.next_walk.unwrap_or(u64::MAX);
        let clocks = self.next_clocks.unwrap_or(u64::MAX);
        timers.min(walk).min(clocks).min(self.next_compare.unwrap_or(u64::MAX))
    }

    /// Runs the tasks that are due. Returns the time until the next one is due.
    pub fn run(&mut self, worker: &mut Worker, io: &mut Control) -> Duration {
        let clock = worker.core.clock;
        let begin = clock.ticks();
        let now = clock.ns(begin);
        if worker.stalled.has_paused() && worker.pause_left_ns() == 0 {
            worker.resume_paused(io);
        }
        if worker.core.shared.settings.debug.is_cron_paused() {
            return Duration::from_nanos(SAMPLE_PERIOD_NS);
        }
        if self.samples_server {
            // A shutdown may be waiting for a slow script or for replicas.
            ending::advance_shutdown(&worker.core);
        }
        if worker.core.shared.keyspace.is_emitting() && self.next_walk.is_none() {
            self.next_walk = Some(now);
        }
        if self.next_walk.is_some_and(|at| now >= at) {
            self.walk(worker, now);
        }
        if self.samples_server {
            self.compare(worker, now);
            self.restart_clocks(worker, now);
        }
        if now >= self.next_expire {
            self.expire(worker, now);
        }
        if now >= self.next_tick {
            let period = 1_000_000_000 / worker.core.config.process.hz.clamp(1, 500) as u64;
            self.next_tick = next_multiple(now, period);
            self.sessions(worker, io);
            // Memory may exceed the limit after CONFIG SET maxmemory, or because clients' buffers
            // grew.
            memory_limit::make_room(&mut worker.core);
            self.trim_tracking(worker);
        }
        if now >= self.next_sample {
            self.next_sample = next_multiple(now, SAMPLE_PERIOD_NS);
            self.publish_traffic(worker.core.stats(), io.counters());
            publish_loop_metrics(worker, io, &mut self.published);
            run::forget_flushed(&mut worker.core);
            self.continue_full_syncs(worker, io, now);
            if self.samples_server {
                handover::check(&mut worker.core);
                rewrite::begin_if_due(&worker.core);
                bgsave::begin_if_due(&worker.core);
                // This comes last, because clients that request one snapshot after another would otherwise starve the
                // other tasks.
                full_sync::begin_if_due(&worker.core);
                self.sample(worker, now);
                // Getting huge pages takes long, so a separate thread does it, after loading.
                if !worker.core.shared.conditions.is_loading() {
                    brisk_observe::memory::take_huge_pages_if_worth(
                        brisk_node::core::long::yield_to_workers,
                    );
                }
                self.keep_replicas(worker, now);
                self.comparer.request_if_due(&worker.core, unix_ms());
            }
        }
        let end = clock.ns(clock.ticks());
        worker.core.stats().background_ns.add(end - now);
        let mut wait = self.next();
        if worker.stalled.has_paused() {
            wait = wait.min(end.saturating_add(worker.pause_left_ns()));
        }
        Duration::from_nanos(wait.saturating_sub(end))
    }

    /// Publishes the traffic since the last call for INFO. Called after each round, so that a
    /// client finds its own requests counted.
    #[inline]
    pub fn publish_traffic(&mut self, stats: &WorkerStats, now: &ReactorCounters) {
        let last = &mut self.published;
        stats.bytes_in.add(now.bytes_in - last.bytes_in);
        stats.bytes_out.add(now.bytes_out - last.bytes_out);
        stats.reads.add(now.receives - last.receives);
        stats.writes.add(now.sends - last.sends);
        stats.receive_calls.add(now.receives - last.receives);
        stats.send_calls.add(now.sends - last.sends);
        (last.bytes_in, last.bytes_out) = (now.bytes_in, now.bytes_out);
        (last.receives, last.sends) = (now.receives, now.sends);
    }

    /// Continues to send snapshots to replicas that have none yet, and shows these replicas once a second that the
    /// server is alive.
    fn continue_full_syncs(&mut self, worker: &mut Worker, io: &mut Control, now: u64) {
        worker.continue_full_syncs(io);
        if now >= self.next_newline {
            self.next_newline = now + NEWLINE_PERIOD_NS;
            worker.ping_waiting_replicas(io);
        }
    }

    /// Sends replicas a PING, and stops recording the stream if the replicas are gone.
    fn keep_replicas(&mut self, worker: &mut Worker, now: u64) {
        let shared = worker.core.shared;
        shared.replication.trim_stream();
        spilling::begin_if_due(shared);
        shared.update_few_replicas(&worker.core.config.replication);
        follow::disarm_propagation(&mut worker.core);
        let period_s = worker.core.config.replication.repl_ping_replica_period_s.max(1) as u64;
        // Computed on each call, because the setting may have been lowered. A replica that takes over must have all of
        // the stream, so the stream must not grow until then.
        let is_due = now.saturating_sub(self.pinged) >= period_s * 1_000_000_000
            && !shared.conditions.is_held(Hold::Failover);
        if is_due && shared.replication.replicas.following() > 0 {
            if self.pinged != 0 {
                let mut ping = Vec::new();
                brisk_resp::request::encode(&mut ping, &["PING"]);
                shared.keyspace.journal().append_request(&ping);
                shared.dispatch_changes(worker.core.id);
            }
            self.pinged = now;
        }
    }

    fn expire(&mut self, worker: &mut Worker, now: u64) {
        let core = &worker.core;
        // A replica receives the deletions of expired keys from its primary.
        let held_back = core.data_must_not_change()
            || core.shared.conditions.is_replica()
            || core.is_congested();
        let is_off = !core.shared.settings.debug.expires_actively();
        if self.samples_server && !is_off && !core.data_must_not_change() {
            if core.shared.conditions.is_replica() {
                core.shared.keyspace.expire_replica_keys(&core.env, OWN_KEYS_PER_CYCLE);
                core.free_garbage();
            } else {
                core.shared.keyspace.forget_replica_expires();
            }
        }
        if is_off || held_back {
            self.next_expire = next_multiple(now, EXPIRE_PERIOD_NS);
            return;
        }
        let Some(sweeper) = &mut self.sweeper else {
            self.next_expire = now + EXPIRE_PERIOD_NS;
            return;
        };
        let clock = core.clock;
        let begin = clock.ticks();
        let more = || clock.ns(clock.ticks().wrapping_sub(begin)) < EXPIRE_SLICE_NS;
        let swept = sweeper.cycle(&core.shared.keyspace, &core.env, more);
        core.free_expired();
        let ns = clock.ns(clock.ticks().wrapping_sub(begin));
        core.stats().expire_ns.add(ns);
        core.note_latency("expire-cycle", ns);
        let effort = core.config.memory.active_expire_effort.clamp(1, 10) as u64;
        self.next_expire = match swept {
            SweepOutcome::All => next_multiple(now, EXPIRE_PERIOD_NS),
            SweepOutcome::Part => now + ns + EXPIRE_PAUSE_NS / effort,
        };
    }

    /// Emits a part of the snapshot in progress.
    fn walk(&mut self, worker: &mut Worker, now: u64) {
        let core = &worker.core;
        let clock = core.clock;
        let begin = clock.ticks();
        // The admin lane only delivers the records that its own commands have emitted.
        let is_admin_lane = self.sweeper.is_none();
        let slice_ns = if is_admin_lane { 0 } else { WALK_SLICE_NS };
        let more = || clock.ns(clock.ticks().wrapping_sub(begin)) < slice_ns;
        let walked = self.walker.walk(&core.shared.keyspace, &core.env, more);
        core.free_garbage();
        let ns = clock.ns(clock.ticks().wrapping_sub(begin));
        let worked = core.stats().round_ns.get();
        let worked_since =
            worked.saturating_sub(std::mem::replace(&mut self.worked_ns, worked + ns));
        let end = now + ns;
        self.next_walk = match walked {
            WalkOutcome::Part if is_admin_lane => Some(end + WALK_WAIT_NS),
            WalkOutcome::Part => Some(end + (WALK_PAUSE_NS + worked_since).min(WALK_PAUSE_MAX_NS)),
            WalkOutcome::Waits => Some(end + WALK_WAIT_NS),
            WalkOutcome::Nothing => None,
        };
    }

    /// Restarts some of the access clocks if the eviction policy now uses another kind of clock.
    fn restart_clocks(&mut self, worker: &Worker, now: u64) {
        let core = &worker.core;
        if !core.shared.keyspace.restarts_clocks() || self.next_clocks.is_some_and(|at| now < at) {
            return;
        }
        let clock = core.clock;
        let begin = clock.ticks();
        let more = || clock.ns(clock.ticks().wrapping_sub(begin)) < SLICE_NS;
        let is_complete = self.clock_walker.walk(&core.shared.keyspace, &core.env, more);
        let end = now + clock.ns(clock.ticks().wrapping_sub(begin));
        self.next_clocks = (!is_complete).then_some(end + CLOCK_PAUSE_NS);
    }

    /// If a comparison was requested, compares a part of this server's data with its replicas.
    fn compare(&mut self, worker: &mut Worker, now: u64) {
        let core = &worker.core;
        if self.next_compare.is_none() && core.shared.replication.comparison.is_requested() {
            self.next_compare = Some(now);
        }
        if self.next_compare.is_none_or(|at| now < at) {
            return;
        }
        let clock = core.clock;
        let begin = clock.ticks();
        let more = || clock.ns(clock.ticks().wrapping_sub(begin)) < SLICE_NS;
        let compared = self.comparer.advance(core, more);
        let commands = core.stats().commands_processed.get();
        let is_busy = commands != std::mem::replace(&mut self.commands_compared, commands);
        let end = now + clock.ns(clock.ticks().wrapping_sub(begin));
        self.next_compare = match compared {
            Compared::Part if !is_busy => Some(end),
            Compared::Part => Some(end + COMPARE_PAUSE_NS),
            Compared::Waits => Some(end + WALK_WAIT_NS),
            Compared::Nothing => None,
        };
    }

    /// Forgets tracked keys above the limit. If one tick does not suffice, the number of keys doubles for the next
    /// tick.
    fn trim_tracking(&mut self, worker: &Worker) {
        const STEP_MIN: usize = 128;
        const STEP_MAX: usize = 16 * 1024;
        let (env, tracking) = (&worker.core.env, worker.core.shared.keyspace.tracking());
        let step = self.trim_step.clamp(STEP_MIN, STEP_MAX);
        self.trim_step = if tracking.trim(env, step) { 0 } else { step * 2 };
    }

    /// Checks some of the sessions, so that all sessions are checked once a second. Closes idle sessions, and sessions
    /// that take too long for their handshake.
    fn sessions(&mut self, worker: &mut Worker, io: &mut Control) {
        let slots = worker.sessions.len();
        if slots == 0 {
            return;
        }
        let hz = worker.core.config.process.hz.clamp(1, 500) as usize;
        let share = slots.div_ceil(hz).max(5).min(slots);
        let now = unix_ms();
        let timeout_ms = worker.core.config.clients.timeout.max(0) as u64 * 1000;
        let repl_timeout_ms = worker
            .core
            .config
            .replication
            .repl_timeout_s
            .max(0)
            .cast_unsigned()
            .saturating_mul(1000);
        for _ in 0..share {
            self.session_cursor = (self.session_cursor + 1) % slots;
            let cursor = self.session_cursor;
            worker.look_at(io, cursor, now);
            let Some(session) = worker.sessions.at(cursor) else { continue };
            let token: Token = session.token;
            let (input, output) =
                (session.accounting.published_input(), session.accounting.counted_output());
            let idle = now.saturating_sub(session.record.last_active_ms.load(Ordering::Relaxed));
            let spared =
                flag::MONITOR | flag::REPLICA | flag::PRIMARY | flag::BLOCKED | flag::PUBSUB;
            let exempt = session.record.has(spared) || session.stall() == Stall::Elsewhere;
            let shaking = session.connection.tls().is_some_and(|stream| stream.is_handshaking());
            let late = shaking && now.saturating_sub(session.record.created_ms) > HANDSHAKE_MS_MAX;
            let replica =
                session.replication.replica().is_some_and(|replica| replica.must_acknowledge());
            let lost = replica && idle > repl_timeout_ms;
            if late || lost || (timeout_ms > 0 && idle > timeout_ms && !exempt) {
                io.close(token, Close::Now);
            }
            if input > 0 || output > 0 {
                worker.core.note_buffers(input as u64, output as u64, now / 1000);
            }
        }
    }

    fn sample(&mut self, worker: &Worker, now: u64) {
        let shared = &worker.core.shared;
        let metrics = &shared.observe.metrics;
        let sum = |of: fn(&WorkerStats) -> u64| shared.observe.stats.iter().map(of).sum();
        let commands = self.commands.sample(sum(|s| s.commands_processed.get()), now);
        metrics.ops_per_second.store(commands, Ordering::Relaxed);
        let from_primary = metrics.repl_input_bytes.load(Ordering::Relaxed);
        let input = self.input.sample(sum(|s| s.bytes_in.get()) + from_primary, now);
        metrics.input_bytes_per_second.store(input, Ordering::Relaxed);
        let output = self.output.sample(sum(|s| s.bytes_out.get()), now);
        metrics.output_bytes_per_second.store(output, Ordering::Relaxed);
        let input = self.repl_input.sample(from_primary, now);
        metrics.repl_input_bytes_per_second.store(input, Ordering::Relaxed);
        let to_replicas = metrics.repl_output_bytes.load(Ordering::Relaxed);
        let output = self.repl_output.sample(to_replicas, now);
        metrics.repl_output_bytes_per_second.store(output, Ordering::Relaxed);
        let rounds = self.rounds.sample(sum(|s| s.rounds.get()), now);
        let rounds_ns = self.rounds_ns.sample(sum(|s| s.round_ns.get()), now);
        metrics.rounds_per_second.store(rounds / shared.workers() as u64, Ordering::Relaxed);
        metrics.round_us.store(rounds_ns / rounds.max(1) / 1000, Ordering::Relaxed);
        let used = brisk_observe::memory::used();
        metrics.peak_memory.fetch_max(used, Ordering::Relaxed);
        let max = memory_limit::in_force(&worker.core);
        metrics.sample_limit(max > 0 && used > max, unix_ms());
        metrics.sample_process();
    }
}

/// Returns the next multiple of the period, so that timers with the same period wake the worker
/// together.
fn next_multiple(now: u64, period: u64) -> u64 {
    (now / period + 1) * period
}

/// Publishes for INFO the numbers that the event loop has counted since `last`.
fn publish_loop_metrics(worker: &Worker, io: &Control, last: &mut ReactorCounters) {
    let (stats, clock, now) = (worker.core.stats(), worker.core.clock, *io.counters());
    let ns = |of: fn(&ReactorCounters) -> u64| clock.ns(of(&now)) - clock.ns(of(last));
    stats.accept_ns.add(ns(|counters| counters.ticks_accept));
    stats.read_ns.add(ns(|counters| counters.ticks_receive));
    stats.write_ns.add(ns(|counters| counters.ticks_send));
    stats.wait_ns.add(ns(|counters| counters.ticks_wait));
    stats.wait_calls.add(now.waits - last.waits);
    stats.sleep_calls.add(now.sleeps - last.sleeps);
    stats.ctl_calls.add(now.registrations - last.registrations);
    stats.accept_calls.add(now.accepts - last.accepts);
    stats.close_calls.add(now.closes - last.closes);
    *last = now;
}
