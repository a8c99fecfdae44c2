//! A worker: one thread with one event loop and its sessions.
//!
//! ```text
//!  received ─ fill a batch ─ prefetch ─ dispatch each ─ replies ─ one send
//!      └ input that is not executed yet stays in the session
//! ```
//!
//! The state consists of parts with private fields:
//!
//! | part | purpose |
//! |---|---|
//! | `sessions` | the sessions, by the index of their connection |
//! | `stalled` | stalled sessions, which execute nothing until they are resumed |
//! | `wait_timers` | timeouts, acknowledgements, and the append-only file |
//! | `staging` | small requests of many sessions, which are executed together |
//! | `monitors` | MONITOR sessions |
//! | `rounds` | timing of the rounds |
//! | `replay` | commands of the dataset that is being loaded, and of the primary |
//! | `listening` | listeners, and replacing them after settings have changed |
//! | `cron` | periodic tasks: expiry, idle clients, sampled metrics |
//! | `buffers` | buffers that are kept for reuse |
//!
//! The other files contain methods of `Worker` that use several parts:
//!
//! | file | purpose |
//! |---|---|
//! | `events` | handlers for events of the event loop |
//! | `turn` | executing a session's input |
//! | `sending` | moves the output of a session to its connection |
//! | `delivery` | delivering published messages to subscribers |
//! | `invalidations` | delivering invalidation messages of client-side caching |
//! | `blocked` | sessions whose commands block on keys |
//! | `rerouted` | ends blocked commands and subscriptions if other nodes now serve their slots |
//! | `replicas` | sending the replication stream to replicas |
//! | `full_sync` | sending the initial snapshots to replicas |
//! | `durability` | writing the append-only file at the end of a round, and sending output that waited for it |
//! | `long` | commands that other threads compute, and slow scripts |
//! | `encrypted` | TLS sessions |

mod blocked;
mod buffers;
pub mod cron;
mod delivery;
mod durability;
mod encrypted;
mod events;
mod full_sync;
mod invalidations;
pub mod listening;
mod long;
mod monitors;
mod replay;
mod replicas;
mod rerouted;
mod rounds;
mod sending;
mod sessions;
mod staging;
mod stalled;
mod turn;
mod wait_timers;

use self::buffers::SpareBuffers;
use self::listening::WorkerListeners;
use self::monitors::Monitors;
use self::replay::ReplayedInput;
use self::rounds::RoundClock;
use self::sessions::Sessions;
use self::staging::Staged;
use self::stalled::StalledSessions;
use self::wait_timers::PendingWaits;
use crate::worker::cron::Cron;
use brisk_engine::ReplyBuffer;
use brisk_net::listeners::Purpose;
use brisk_node::core::Core;
use brisk_node::core::session::Stall;
use brisk_node::persistence::loading::steps::{LoadingProgress, WorkerLoading};
use brisk_node::pubsub::publish;
use brisk_node::run::batch::Batch;
use brisk_reactor::Control;
use brisk_structures::reclaim::Participant;
use std::sync::Arc;
use std::time::Duration;

/// How long a closing connection waits for its client to read the last replies.
const LINGER: Duration = Duration::from_secs(10);

/// Number of finished watches that are removed from the queues of their keys between two rounds. Removing them takes
/// about 0.1 ms.
const LEFTOVERS_PER_ROUND: usize = 128;

/// A worker.
pub struct Worker {
    pub core: Core,
    cron: Box<Cron>,
    batch: Box<Batch>,
    /// Small requests of this round that are executed together.
    staged: Staged,
    replies: ReplyBuffer,
    sessions: Sessions,
    stalled: StalledSessions,
    wait_timers: PendingWaits,
    monitors: Monitors,
    rounds: RoundClock,
    spare: SpareBuffers,
    participant: Participant,
    pub listeners: WorkerListeners,
    replay: ReplayedInput,
}

impl Worker {
    pub fn new(core: Core, participant: Participant, listeners: Vec<Purpose>) -> Worker {
        let sweepers = core.shared.serving_workers();
        Worker {
            cron: Box::new(Cron::new(core.id, sweepers)),
            replay: ReplayedInput::new(Arc::clone(&core.shared.replication.upstream)),
            core,
            batch: Box::default(),
            staged: Staged::default(),
            replies: ReplyBuffer::new(),
            sessions: Sessions::default(),
            stalled: StalledSessions::default(),
            wait_timers: PendingWaits::new(),
            monitors: Monitors::default(),
            rounds: RoundClock::new(),
            spare: SpareBuffers::default(),
            participant,
            listeners: WorkerListeners::new(listeners),
        }
    }

    /// Begins this worker's part in loading the dataset.
    pub fn begin_loading(&mut self, loading: WorkerLoading) {
        self.replay.begin_loading(loading);
    }

    /// Does this worker's part in loading the dataset for a limited time.
    pub fn advance_loading(&mut self) -> LoadingProgress {
        self.replay.advance_loading(&mut self.core, &self.participant)
    }

    /// Called between two rounds. Runs timers and sessions that had to wait. Returns how long the loop may wait for
    /// events.
    pub fn between_rounds(&mut self, io: &mut Control) -> Duration {
        self.core.refresh_config();
        self.listeners.follow_config(&self.core, io);
        self.core.read_clocks();
        self.rounds.begin(self.core.accounting.last_ticks());
        // Sessions that are not reached in this round stay at the front of the queue. Otherwise, a round with thousands
        // of sessions would make each of them wait for all others.
        for _ in 0..self.stalled.in_next_round() {
            let Some(token) = self.stalled.pop_next_round() else { break };
            self.resume(io, token, Stall::NextRound);
            if self.rounds.is_long(&self.core) {
                break;
            }
        }
        self.run_script_slice(io);
        let loads = self.replay.is_loading() && self.advance_loading() == LoadingProgress::More;
        let applied = self.replay.advance_applying(&mut self.core, &self.participant);
        if self.core.transactions.has_ended_watches() {
            self.remove_leftovers();
        }
        self.end_late_waits(io);
        if self.core.env.has_ready() {
            // The expiry cycle or the end of a pause may have left waiters to serve.
            brisk_node::run::waiting::serve_waiters(&mut self.core);
        }
        self.deliver_all(io);
        let wait = self.run_cron(io);
        if publish::has_messages(&self.core) {
            self.deliver_messages(io, None);
        }
        if self.core.cluster.has_changed() {
            self.end_rerouted(io);
        }
        self.end_of_turns(io);
        self.commit(io);
        let wait = wait.min(self.durability_wait()).min(applied.wait());
        let wait = self
            .wait_timers
            .next_timeout_ms()
            .map_or(wait, |ms| wait.min(Duration::from_millis(ms)));
        let idle = self.stalled.in_next_round() == 0
            && !self.core.scripts.is_parked()
            && !loads
            && !self.core.transactions.has_ended_watches();
        if idle { wait } else { Duration::ZERO }
    }

    /// Removes some of the finished watches from the queues of their keys.
    #[cold]
    fn remove_leftovers(&mut self) {
        let clock = self.core.clock;
        let begin = clock.ticks();
        let keyspace = &self.core.shared.keyspace;
        self.core.transactions.remove_ended_watches(keyspace, LEFTOVERS_PER_ROUND);
        let ns = clock.ns(clock.ticks().wrapping_sub(begin));
        self.core.stats().background_ns.add(ns);
    }

    fn run_cron(&mut self, io: &mut Control) -> Duration {
        if !self.stalled.has_paused()
            && let Some(wait) = self.cron.nothing_due(
                self.core.clock.ns(self.core.accounting.last_ticks()),
                self.core.shared.keyspace.is_emitting(),
                self.core.shared.replication.comparison.is_requested(),
            )
        {
            return wait;
        }
        let mut cron = std::mem::take(&mut self.cron);
        let wait = cron.run(self, io);
        self.cron = cron;
        wait
    }
}
