//! Replication: the stream of changes, the replicas that follow it, and the primary that this server follows.
//!
//! | file | purpose |
//! |---|---|
//! | `history` | the replication ids and offsets of the stream |
//! | `stream` | the changes of all workers in one order, kept for replicas |
//! | `replicas` | the replicas of this server, and their acknowledgements |
//! | `snapshots` | the snapshot for replicas that is being written |
//! | `backlog` | the latest part of the stream, held once for all replicas |
//! | `marks` | the times at which parts of the stream were appended |
//! | `spill`, `spilling` | the oldest part of the stream, in a file |
//! | `replica` | the state of a session that is a replica |
//! | `transfer`, `pipe` | a snapshot for replicas; a snapshot that is sent while it is being written |
//! | `acks` | WAIT, WAITAOF and CLIENT DURABILITY |
//! | `follow` | makes sessions start and stop following the stream |
//! | `full_sync` | begins and writes snapshots for replicas |
//! | `environment` | the operating system functions that the upstream thread uses |
//! | `role` | changes between primary and replica |
//! | `upstream` | the primary that this server follows: the thread, and the stream that the first worker executes |
//! | `failover`, `handover` | FAILOVER: its state, and its actions |
//! | `comparison` | comparisons with replicas: their messages and results |
//! | `compare` | comparisons with replicas: their actions |
//! | `migration` | MIGRATE's connections to other servers |

pub mod migration;

pub mod acks;
pub mod backlog;
pub mod compare;
pub mod comparison;
pub mod environment;
pub mod failover;
pub mod follow;
pub mod full_sync;
pub mod handover;
pub mod history;
mod marks;
pub mod pipe;
pub mod replica;
pub mod replicas;
pub mod role;
pub mod snapshots;
pub mod spill;
pub mod spilling;
pub mod stream;
pub mod transfer;
pub mod upstream;

use self::comparison::Comparison;
use self::comparison::observed::Observed;
use self::environment::{Environment, SystemEnvironment};
use self::failover::Failover;
use self::history::History;
use self::replica::ReplicaStage;
use self::replica::{ReplicaFilter, ReplicaSession};
use self::replicas::{ReplicaHandle, Replicas, has_catching_up};
use self::snapshots::ReplicaSnapshots;
use self::spill::Move;
use self::spill::memory_bytes_max;
use self::stream::ReplicationStream;
use self::transfer::SnapshotTransfer;
use self::upstream::state::Upstream;
use crate::clients::ClientRecord;
use brisk_config::Config;
use brisk_config::directives::replication::Replication as Settings;
use brisk_config::value::ClientClass;
use brisk_engine::Keyspace;
use brisk_engine::keyspace::{Journal, Ticket};
use brisk_structures::poison::EvenPoisoned;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock};

/// The state of replication that all workers share.
pub struct Replication {
    /// The changes of all workers in one order.
    pub stream: ReplicationStream,
    /// The servers that follow this one.
    pub replicas: Replicas,
    /// Snapshots for replicas.
    pub snapshots: ReplicaSnapshots,
    /// The replication ids and offsets of the stream.
    pub history: History,
    /// The primary that this server follows.
    pub upstream: Arc<Upstream>,
    pub failover: Failover,
    /// Comparisons of this primary with its replicas.
    pub comparison: Comparison,
    /// Results of the comparison on this replica so far.
    pub observed: Mutex<Observed>,
    /// The environment of a simulation. Unset outside of one.
    environment: OnceLock<Box<dyn Environment>>,
}

/// True if the settings require a minimum number of replicas with a small lag.
pub fn needs_good(settings: &Settings) -> bool {
    settings.min_replicas_to_write > 0 && settings.min_replicas_max_lag_s > 0
}

impl Replication {
    /// The state without replicas, for this number of workers.
    pub fn new(workers: usize, id: String) -> Replication {
        Replication {
            stream: ReplicationStream::default(),
            replicas: Replicas::new(workers),
            snapshots: ReplicaSnapshots::default(),
            history: History::new(id),
            upstream: Arc::default(),
            failover: Failover::default(),
            comparison: Comparison::default(),
            observed: Mutex::default(),
            environment: OnceLock::new(),
        }
    }

    /// Applies changed settings.
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

    /// The id of the history and this server's offset.
    pub fn position(&self, keyspace: &Keyspace) -> (String, u64) {
        (self.history.ids().id, self.history.offset(keyspace.journal().end()))
    }

    /// The offset up to which this replica has executed its primary's stream. The executed part is in its own
    /// stream, for its own replicas.
    pub fn applied(&self, journal: &Journal) -> u64 {
        self.history.offset(journal.end())
    }

    /// Notes the number of bytes that wait to be sent to a replica. These bytes do not count toward `maxmemory`.
    pub fn note_held(&self, replica: &mut ReplicaSession, bytes: u64) {
        let before = std::mem::replace(&mut replica.held, bytes);
        if bytes != before {
            self.replicas.note_held(bytes.cast_signed() - before.cast_signed());
        }
    }

    /// The bytes of a replica's output that count toward `client-output-buffer-limit`. `unsent` bytes are in its
    /// output, and `deferred` bytes of messages wait. The part of the stream that the replica has not been sent counts,
    /// wherever that part is stored. The size of the snapshot does not count.
    pub fn counted_output(&self, replica: &mut ReplicaSession, unsent: u64, deferred: u64) -> u64 {
        replica.note_unsent(unsent);
        let unsent = unsent - replica.stream_unsent();
        self.note_held(replica, unsent + deferred);
        let lag = replica.progress().map_or(0, |one| self.stream.counted_behind(one));
        unsent - replica.snapshot.unsent() + lag + deferred
    }

    /// The current offset of the history; 0 if no replica ever followed this server.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.stream.had_backlog() { self.history.offset(journal.end()) } else { 0 }
    }

    /// True if fewer replicas have a small lag than writes require (`min-replicas-to-write`). O(replicas), or
    /// O(1) if none are required.
    pub fn has_few_good(&self, settings: &Settings, now_ms: u64) -> bool {
        let needed = settings.min_replicas_to_write;
        needs_good(settings) && self.count_good(settings, now_ms) < needed.cast_unsigned()
    }

    /// The number of replicas that acknowledged within `min-replicas-max-lag`. O(replicas).
    pub fn count_good(&self, settings: &Settings, now_ms: u64) -> u64 {
        let lag_max = settings.min_replicas_max_lag_s.cast_unsigned();
        let is_good = |one: &ReplicaHandle| {
            one.is_online() && one.filter.is_none() && one.lag_s(now_ms) <= lag_max
        };
        self.replicas.count(is_good)
    }

    /// Drops the results of a comparison that will not be completed, and stops its thread.
    pub fn forget_observed(&self) {
        *self.observed.lock().even_poisoned() = Observed::default();
    }

    /// Keeps the stream from this position on and drops all earlier bytes. Workers disconnect replicas that have not
    /// taken all of the dropped bytes. The position is the end of the journal after
    /// [`crate::core::shared::Shared::dispatch_changes`]. All other workers are quiesced.
    pub fn begin_backlog(&self, place: Ticket, now_ms: u64) {
        let list = self.replicas.lock();
        self.replicas.note_alone(now_ms);
        self.stream.begin(place, &list);
        self.replicas.announce(&list, |_| {});
    }

    /// Drops the stream and keeps none. The caller renames the history before the dataset changes. All other
    /// workers are quiesced.
    pub fn forget_backlog(&self) {
        self.stream.forget(&self.replicas.lock());
        self.replicas.end_ack_epoch();
    }

    /// Appends the next part of the stream, which begins at `from`. `wake` is called for each worker whose
    /// replicas have something to take.
    pub(crate) fn append(&self, from: Ticket, bytes: &[u8], now_ms: u64, wake: impl FnMut(usize)) {
        let list = self.replicas.lock();
        self.stream.append(from, bytes, now_ms, &list);
        self.replicas.announce(&list, wake);
    }

    /// Adds a replica that has everything before this position. Returns the number of bytes that the replica lacks. If
    /// the stream no longer has all of them, returns `None` and does not add the replica.
    fn resume(&self, mut replica: ReplicaHandle, place: Ticket) -> Option<u64> {
        let mut list = self.replicas.lock();
        let lacking = self.stream.resume(&replica.progress, place)?;
        replica.progress.set_stage(ReplicaStage::Online);
        replica.acked_place = Some(place);
        self.replicas.add_online(&mut list, replica);
        Some(lacking)
    }

    /// Attaches the replicas that wait for the contents of this snapshot. They follow the stream from its current end.
    /// The caller has dispatched the journal, and all other workers are quiesced.
    fn join(
        &self,
        (transfer, filter): (&Arc<SnapshotTransfer>, Option<ReplicaFilter>),
        journal: &Journal,
        now_ms: u64,
    ) {
        debug_assert!(!journal.has_untaken(), "they must not get earlier changes");
        if !self.stream.has_backlog() {
            self.begin_backlog(journal.end(), now_ms);
        }
        self.stream.allow_spilling();
        let list = self.replicas.lock();
        journal.name_database();
        for replica in list.iter().filter(|replica| replica.waits_for(filter)) {
            replica.progress.join(transfer, replica.client.worker);
        }
        self.replicas.update_counts(&list);
    }

    /// Removes the replica of this client and returns its handle.
    fn detach(&self, client: &ClientRecord, now_ms: u64) -> Option<ReplicaHandle> {
        let replica = self.replicas.remove(client, now_ms);
        self.stream.trim(&self.replicas.lock());
        replica
    }

    /// Notes an acknowledgement of a replica: an offset, its position, and the offset up to which its append-only
    /// file is durable, if it has one.
    pub fn acknowledge(
        &self,
        client: &ClientRecord,
        (offset, place): (u64, Option<Ticket>),
        durable: Option<u64>,
        now_ms: u64,
    ) {
        let end = self.stream.end();
        self.replicas.acknowledge(client, (offset, place), durable, (end, now_ms));
    }

    /// Drops the part of the stream that all replicas have received by now.
    pub fn trim_stream(&self) {
        if self.stream.excess() > 0 || self.stream.spilled_bytes() > 0 {
            self.stream.trim(&self.replicas.lock());
        }
    }

    /// Bytes of memory that are held because replicas have not received them. Bytes of the stream count only beyond
    /// `repl-backlog-size`. O(1).
    pub fn buffered(&self) -> u64 {
        self.replicas.held_bytes() + self.stream.excess()
    }

    /// Bytes of memory that wait to be sent to replicas, or to be written for them.
    pub(crate) fn passing_bytes(&self) -> u64 {
        let snapshot = self.snapshots.underway().map_or(0, |now| now.bytes);
        self.buffered().saturating_add(snapshot)
    }

    /// Returns true if the caller has to move the oldest part of the stream to a file.
    fn begin_spilling(&self) -> bool {
        self.replicas.following() > 0
            && self.stream.begin_spilling(|| has_catching_up(&self.replicas.lock()))
    }

    /// As [`ReplicationStream::next_move`].
    fn next_move(&self) -> Option<Option<Move>> {
        self.stream.next_move(&self.replicas.lock())
    }

    /// As [`ReplicationStream::end_move`].
    fn end_move(&self, moved: &Move, file: Arc<File>) {
        self.stream.end_move(moved, file, &self.replicas.lock());
    }
}

#[cfg(test)]
mod tests;
