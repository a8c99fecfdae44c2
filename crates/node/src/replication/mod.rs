//! The stream of effects that replicas follow: what transactions of all workers changed, in one
//! order.
//!
//! | file | about |
//! |---|---|
//! | `history` | what the stream is called, and its places to others |
//! | `stream` | transactions come in by ticket, bytes go out in order |
//! | `backlog` | the latest part of the stream, held once for all who read it |
//! | `marks` | when which part of it was made |
//! | `spill`, `spilling` | the oldest part of the stream, in a file |
//! | `replica` | what is known of a session that follows |
//! | `transfer`, `pipe` | the snapshot that replicas begin with; one that is sent while it is written |
//! | `acks` | WAIT and WAITAOF: what is acknowledged |
//! | `follow` | how sessions begin and cease to follow |
//! | `synchronise` | snapshots for replicas are begun and written |
//! | `environment` | the operating system as the way to a primary uses it |
//! | `role` | from primary to replica and back |
//! | `upstream` | the way to a primary: its thread, and the stream that the first worker executes |
//! | `failover`, `handover` | FAILOVER: its state; what is done |
//! | `comparison` | comparisons with replicas: what is said and found |
//! | `compare` | comparisons with replicas: what is done |
//! | `migration` | MIGRATE's connections to other servers |

pub mod migration;

pub mod acks;
pub mod backlog;
pub mod compare;
pub mod comparison;
pub mod environment;
pub mod failover;
pub mod follow;
pub mod handover;
pub mod history;
mod marks;
pub mod pipe;
pub mod replica;
pub mod role;
pub mod spill;
pub mod spilling;
pub mod stream;
pub mod synchronise;
pub mod transfer;
pub mod upstream;

use self::comparison::Comparison;
use self::comparison::observed::Observed;
use self::environment::{Environment, SystemEnvironment};
use self::failover::Failover;
use self::history::History;
use self::replica::Replica;
use self::spill::memory_bytes_max;
use self::stream::{ReplicaHandle, ReplicationStream};
use self::transfer::Transfer;
use self::upstream::state::Upstream;
use crate::persistence::state::Underway;
use brisk_config::Config;
use brisk_config::directives::replication::Replication as Settings;
use brisk_config::value::ClientClass;
use brisk_engine::Keyspace;
use brisk_engine::keyspace::Journal;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The state of replication that all workers share.
pub struct Replication {
    /// The changes of all workers in one order.
    pub stream: ReplicationStream,
    /// What it is called to others.
    pub history: History,
    /// The primary that this server follows.
    pub upstream: Arc<Upstream>,
    pub failover: Failover,
    /// Of a primary: whether its replicas hold the same.
    pub comparison: Comparison,
    /// Of a replica: what it has found of that so far.
    pub observed: Mutex<Observed>,
    /// The environment of a simulation.
    environment: OnceLock<Box<dyn Environment>>,
    /// The snapshot for replicas that is being written.
    writing: Mutex<Option<Arc<Transfer>>>,
    /// For those who look often.
    is_writing: AtomicBool,
    /// The last one that was sent while it was written took too much memory: the next goes by way of a
    /// file.
    streams_badly: AtomicBool,
}

/// Whether the settings ask for replicas that follow closely.
pub fn needs_good(settings: &Settings) -> bool {
    settings.min_replicas_to_write > 0 && settings.min_replicas_max_lag_s > 0
}

impl Replication {
    /// Without a replica, for so many workers.
    pub fn new(workers: usize, id: String) -> Replication {
        let (writing, is_writing) = (Mutex::default(), AtomicBool::new(false));
        Replication {
            stream: ReplicationStream::new(workers),
            history: History::new(id),
            upstream: Arc::default(),
            failover: Failover::default(),
            comparison: Comparison::default(),
            observed: Mutex::default(),
            environment: OnceLock::new(),
            writing,
            is_writing,
            streams_badly: AtomicBool::new(false),
        }
    }

    /// The settings have changed.
    pub fn adopt(&self, config: &Config) {
        self.stream.set_backlog_bytes(config.replication.repl_backlog_size);
        let limit = config.clients.output_limits[ClientClass::Replica as usize];
        self.stream.set_memory_bytes_max(memory_bytes_max(limit.hard_bytes, limit.soft_bytes));
    }

    /// The environment of the thread that follows a primary.
    pub fn environment(&self) -> &dyn Environment {
        self.environment.get().map_or(&SystemEnvironment, |simulated| &**simulated)
    }

    /// Sets the environment of a simulation, before an upstream is started.
    pub fn set_environment(&self, environment: Box<dyn Environment>) {
        assert!(self.environment.set(environment).is_ok(), "the environment is set once");
    }

    /// What this server has of which history: its name, and so many bytes.
    pub fn position(&self, keyspace: &Keyspace) -> (String, u64) {
        (self.history.ids().id, self.history.offset(keyspace.journal().end()))
    }

    /// Of a replica: up to which offset of its primary's stream it has executed. What it has executed is in
    /// its own stream, which its replicas get.
    pub fn applied(&self, journal: &Journal) -> u64 {
        self.history.offset(journal.end())
    }

    /// So many bytes wait to be sent to a replica: they count for no limit of the dataset.
    pub fn note_held(&self, replica: &mut Replica, bytes: u64) {
        let before = std::mem::replace(&mut replica.held, bytes);
        if bytes != before {
            self.stream.note_held(bytes.cast_signed() - before.cast_signed());
        }
    }

    /// The offset that the history has come to; 0 while it was never anybody's but this server's.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.stream.had_backlog() { self.history.offset(journal.end()) } else { 0 }
    }

    /// Whether fewer replicas follow closely than commands that write need
    /// (`min-replicas-to-write`). O(replicas), and nothing if none are needed.
    pub fn has_few_good(&self, settings: &Settings, now_ms: u64) -> bool {
        let needed = settings.min_replicas_to_write;
        needs_good(settings) && self.count_good(settings, now_ms) < needed.cast_unsigned()
    }

    /// How many replicas were heard of within `min-replicas-max-lag`. O(replicas).
    pub fn count_good(&self, settings: &Settings, now_ms: u64) -> u64 {
        let lag_max = settings.min_replicas_max_lag_s.cast_unsigned();
        let is_good = |one: &ReplicaHandle| {
            one.is_online() && one.filter.is_none() && one.lag_s(now_ms) <= lag_max
        };
        self.stream.count(is_good)
    }

    /// What was found of a comparison that does not end any more goes, with the thread that looks at it.
    pub fn forget_observed(&self) {
        *self.observed.lock().even_poisoned() = Observed::default();
    }

    /// Whether a snapshot for replicas is being written.
    #[inline]
    pub fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// What there is to say of that snapshot.
    pub fn underway(&self) -> Option<Underway> {
        if !self.is_writing() {
            return None;
        }
        self.writing.lock().even_poisoned().as_ref().map(|transfer| transfer.underway())
    }

    /// Has that snapshot end, and closes its replicas.
    pub fn give_up(&self, reason: &str) {
        if let Some(cut) = self.writing.lock().even_poisoned().as_ref().and_then(|now| now.cut()) {
            cut.give_up(reason);
        }
    }

    fn begin_writing(&self, transfer: &Arc<Transfer>) {
        let mut writing = self.writing.lock().even_poisoned();
        *writing = Some(Arc::clone(transfer));
        self.is_writing.store(true, Ordering::SeqCst);
    }

    /// Another one may have been begun since its cut has ended.
    fn end_writing(&self, transfer: &Transfer) {
        let mut writing = self.writing.lock().even_poisoned();
        if writing.take_if(|writing| std::ptr::eq(&raw const **writing, transfer)).is_some() {
            self.is_writing.store(false, Ordering::SeqCst);
        }
    }
}
