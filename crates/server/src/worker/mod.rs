//! A worker: one thread, one event loop, its sessions.
//!
//! ```text
//!  received ─ cut a batch ─ prefetch ─ dispatch each ─ replies ─ one send
//!      └ input that is not executed yet stays in the session
//! ```
//!
//! | file | about |
//! |---|---|
//! | `events` | handlers for events of the event loop |
//! | `turn` | executing a session's input |
//! | `staging` | executing small requests of many sessions together |
//! | `delivery` | delivering published messages to subscribers |
//! | `notices` | delivering invalidation messages of client-side caching |
//! | `waiting` | sessions whose commands block on keys |
//! | `followers` | sending the replication stream to replicas |
//! | `synchronising` | sending the snapshots that replicas begin with |
//! | `logging` | writing the append-only file at the end of a round, and output that waited for it |
//! | `cron` | periodic tasks: expiry, idle clients, sampled metrics |
//! | `listening` | replacing listeners after a setting has changed |
//! | `long` | sessions whose commands are computed by other threads |
//! | `script` | slow scripts |
//! | `encrypted`, `monitors` | TLS sessions; MONITOR sessions |

pub mod cron;
mod delivery;
mod encrypted;
mod events;
mod followers;
pub mod listening;
mod logging;
mod long;
mod monitors;
mod notices;
mod script;
mod staging;
mod synchronising;
mod turn;
mod waiting;

use self::staging::Staged;
pub use self::turn::append;
use crate::worker::cron::Cron;
use brisk_engine::ReplyBuffer;
use brisk_net::listeners::Purpose;
use brisk_node::core::Core;
use brisk_node::core::long::Outcome;
use brisk_node::core::mailbox::Message;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::loading::steps::{LoadingProgress, WorkerLoading};
use brisk_node::pubsub::Mail;
use brisk_node::pubsub::publish;
use brisk_node::replication::upstream::applying::{Applier, ApplyProgress};
use brisk_node::replication::upstream::state::Upstream;
use brisk_node::run::batch::Batch;
use brisk_node::transactions::execute;
use brisk_reactor::unix_ms;
use brisk_reactor::{Control, Token};
use brisk_structures::reclaim::Participant;
use brisk_structures::wheel::Wheel;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long a closing connection waits for its client to read the last replies.
const LINGER: Duration = Duration::from_secs(10);

/// Number of finished watches that are removed from the queues of their keys between two rounds,
/// which takes about 0.1 ms.
const LEFTOVERS_PER_ROUND: usize = 128;

/// A worker.
pub struct Worker {
    pub core: Core,
    pub cron: Box<Cron>,
    batch: Box<Batch>,
    /// Small requests of this round that are executed together.
    staged: Staged,
    replies: ReplyBuffer,
    sessions: Vec<Option<Box<Session>>>,
    /// Sessions to continue in the next round.
    again: VecDeque<Token>,
    /// Sessions that wait for the end of CLIENT PAUSE.
    paused: Vec<Token>,
    /// Sessions that wait until slots are no longer frozen.
    frozen: Vec<Token>,
    /// Computed results that may not be stored during CLIENT PAUSE. There are at most as many as
    /// commands that wait for one.
    held_back: Vec<Outcome>,
    /// Sessions whose WAIT or WAITAOF waits.
    awaits_acks: Vec<Token>,
    /// When replicas began to wait until more of the stream is in the append-only file, in the
    /// worker's nanoseconds; `None` if none waits.
    stream_waits_since: Option<u64>,
    /// Timeouts of the blocked sessions of this worker.
    wait_timers: Wheel<Token>,
    monitors: HashSet<Token>,
    /// A spare empty queue, swapped with that of the inbox.
    messages: VecDeque<Mail>,
    /// When the current round began, in ticks.
    round_began: u64,
    /// When the last wait for events ended, and how many commands had been processed by then.
    resumed_at: u64,
    commands_before: u64,
    /// The buffer for decrypted input; empty between two calls.
    plain: Vec<u8>,
    pub participant: Participant,
    pub listeners: Vec<Purpose>,
    /// The generation of the configuration whose settings the loop has.
    loop_generation: Option<u64>,
    /// This worker's part in loading the dataset, until it is loaded.
    pub loading: Option<WorkerLoading>,
    /// The primary of this server.
    upstream: Arc<Upstream>,
    /// Executes the stream of the primary. Only the first worker has one, after a part of the
    /// stream has arrived.
    applier: Option<Box<Applier>>,
    /// Messages that change the listeners. Only the loop around the worker can apply them.
    pub listening: Vec<Message>,
}

impl Worker {
    pub fn new(core: Core, participant: Participant, listeners: Vec<Purpose>) -> Worker {
        let sweepers = core.shared.serving_workers();
        Worker {
            cron: Box::new(Cron::new(core.id, sweepers)),
            upstream: Arc::clone(&core.shared.replication.upstream),
            core,
            batch: Box::default(),
            staged: Staged::default(),
            replies: ReplyBuffer::new(),
            sessions: Vec::new(),
            again: VecDeque::new(),
            paused: Vec::new(),
            frozen: Vec::new(),
            held_back: Vec::new(),
            awaits_acks: Vec::new(),
            stream_waits_since: None,
            wait_timers: Wheel::new(unix_ms()),
            monitors: HashSet::new(),
            messages: VecDeque::new(),
            round_began: 0,
            resumed_at: brisk_reactor::clock().ticks(),
            commands_before: 0,
            plain: Vec::new(),
            participant,
            listeners,
            loop_generation: None,
            loading: None,
            applier: None,
            listening: Vec::new(),
        }
    }

    /// Applies settings to the loop, and accept limits to the listeners: at startup, for new
    /// listeners, and after the configuration has changed.
    #[cold]
    pub fn configure_loop(&mut self, io: &mut Control) {
        self.loop_generation = Some(self.core.config_generation());
        let network = &self.core.config.network;
        io.coalesce_wakes(Duration::from_micros(network.wake_coalescing_us.unsigned_abs()));
        for (index, purpose) in self.listeners.iter().enumerate() {
            let limit = match purpose {
                Purpose::Tcp | Purpose::Unix | Purpose::AdminTcp | Purpose::AdminUnix => {
                    network.max_new_connections_per_cycle
                }
                Purpose::Tls => network.max_new_tls_connections_per_cycle,
            };
            io.limit_accepts(index, usize::try_from(limit).unwrap_or(1));
        }
    }

    /// Runs between two rounds: timers, and sessions that had to wait. Returns how long the loop
    /// may wait for events.
    pub fn between_rounds(&mut self, io: &mut Control) -> Duration {
        self.core.refresh_config();
        if self.loop_generation != Some(self.core.config_generation()) {
            self.configure_loop(io);
        }
        self.core.read_clocks();
        self.round_began = self.core.last_ticks;
        // Sessions that are not reached stay at the front. Otherwise, a round with thousands of
        // sessions would make each of them wait for all others.
        for _ in 0..self.again.len() {
            let Some(token) = self.again.pop_front() else { break };
            self.go_on(io, token, Stall::NextRound);
            if self.round_is_long() {
                break;
            }
        }
        self.go_on_with_script(io);
        let loads = self.loading.is_some() && self.go_on_loading() == LoadingProgress::More;
        let applied = self.go_on_applying();
        if !self.core.ended_watches.is_empty() {
            self.go_on_with_leftovers();
        }
        self.end_late_waits(io);
        if self.core.env.has_ready() {
            // The expiry cycle, or the end of a pause, may have left waiters to serve.
            brisk_node::run::waiting::serve_waiters(&mut self.core);
        }
        self.deliver_all(io);
        let wait = self.run_cron(io);
        if publish::has_messages(&self.core) {
            self.deliver_messages(io, None);
        }
        self.end_of_turns(io);
        self.commit(io);
        let wait = wait.min(self.logging_wait()).min(applied.wait());
        let wait = self.next_wait_ms().map_or(wait, |ms| wait.min(Duration::from_millis(ms)));
        let idle = self.again.is_empty()
            && self.core.scripts.parked.is_none()
            && !loads
            && self.core.ended_watches.is_empty();
        if idle { wait } else { Duration::ZERO }
    }

    /// Executes the stream from the primary for a limited time.
    #[inline]
    fn go_on_applying(&mut self) -> ApplyProgress {
        if self.core.id != 0 || !self.upstream.stream.is_ready() {
            return ApplyProgress::Nothing;
        }
        let new = || Box::new(Applier::new(&self.core, Arc::clone(&self.upstream)));
        let mut applier = self.applier.take().unwrap_or_else(new);
        let progress = applier.execute(&mut self.core, &self.participant);
        self.applier = Some(applier);
        progress
    }

    /// Does this worker's part in loading the dataset for a limited time.
    #[cold]
    pub fn go_on_loading(&mut self) -> LoadingProgress {
        let Some(loading) = &mut self.loading else { return LoadingProgress::Over };
        let progress = loading.go_on(&mut self.core, &self.participant);
        if progress == LoadingProgress::Over {
            self.loading = None;
        }
        progress
    }

    /// Removes some of the finished watches from the queues of their keys.
    #[cold]
    fn go_on_with_leftovers(&mut self) {
        let clock = self.core.clock;
        let begin = clock.ticks();
        execute::remove_ended_watches(&mut self.core, LEFTOVERS_PER_ROUND);
        let ns = clock.ns(clock.ticks().wrapping_sub(begin));
        self.core.stats().background_ns.add(ns);
    }

    fn run_cron(&mut self, io: &mut Control) -> Duration {
        if !self.has_paused()
            && let Some(wait) = self.cron.nothing_due(
                self.core.clock.ns(self.core.last_ticks),
                self.core.shared.keyspace.is_emitting(),
                self.core.shared.replication.comparison.is_asked(),
            )
        {
            return wait;
        }
        let mut cron = std::mem::take(&mut self.cron);
        let wait = cron.run(self, io);
        self.cron = cron;
        wait
    }

    /// Records the metrics of a completed round.
    #[inline]
    fn note_round(&mut self) {
        let stats = self.core.stats();
        let clock = self.core.clock;
        let ns = clock.ns(clock.ticks().wrapping_sub(self.resumed_at));
        stats.rounds.add(1);
        stats.round_ns.add(ns);
        stats.round_ns_max.raise(ns);
        let commands = stats.commands_processed.get();
        stats.round_commands_max.raise(commands.saturating_sub(self.commands_before));
        self.commands_before = commands;
    }

    /// Returns the number of session slots, for the timers.
    pub fn session_slots(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the session with this index.
    pub fn session_at(&mut self, index: usize) -> Option<&mut Session> {
        self.sessions.get_mut(index)?.as_deref_mut()
    }

    /// Returns the worker's core, and the session with this index.
    pub fn core_and_session(&mut self, index: usize) -> (&Core, Option<&mut Session>) {
        (&self.core, self.sessions.get_mut(index).and_then(Option::as_deref_mut))
    }

    /// Returns the buffer of the replies that are being made.
    pub fn replies_mut(&mut self) -> &mut ReplyBuffer {
        &mut self.replies
    }

    /// Resumes sessions that CLIENT PAUSE holds, if it is over.
    pub fn resume_paused(&mut self, io: &mut Control) {
        self.core.read_clocks();
        self.take_held_back(io);
        for token in std::mem::take(&mut self.paused) {
            self.go_on(io, token, Stall::Paused);
        }
    }

    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty() || !self.held_back.is_empty()
    }

    /// Returns how long CLIENT PAUSE stays in force; 0 if it is not in force.
    pub fn pause_left_ns(&self) -> u64 {
        let now = unix_ms();
        let until = self.core.shared.pause.in_force(now).map_or(now, |(_, until)| until);
        (until - now).saturating_mul(1_000_000)
    }

    fn take(&mut self, token: Token) -> Option<Box<Session>> {
        let slot = self.sessions.get_mut(token.index())?;
        if slot.as_ref()?.token == token { slot.take() } else { None }
    }

    fn put(&mut self, session: Box<Session>) {
        let index = session.token.index();
        self.sessions[index] = Some(session);
    }

    /// Resumes a session whose stall is over.
    fn go_on(&mut self, io: &mut Control, token: Token, stall: Stall) {
        let Some(mut session) = self.take(token) else { return };
        if session.stall() == stall {
            self.unstall(&mut session);
            if self.write_on(io, &mut session) {
                self.stall_if_unread(io, &mut session, io.unsent(token));
                if session.stall() == Stall::None {
                    self.execute_input(io, &mut session);
                }
            }
            if session.stall() == Stall::None {
                io.resume_reading(token);
                if session.connection.is_finished() {
                    // Only after the replies of this turn, which are not encrypted yet.
                    session.close_after_reply();
                }
            }
            self.after_turn(io, &mut session);
        }
        self.put(session);
        self.close_connections(io);
    }
}
