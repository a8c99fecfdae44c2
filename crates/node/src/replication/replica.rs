//! The state of a session that is a replica: the part for its own worker, and the part for all threads.

use super::pipe::PipeRead;
use super::transfer::SnapshotTransfer;
use brisk_reactor::Token;
use brisk_structures::poison::EvenPoisoned;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The options that a session has announced with REPLCONF, and its progress as a replica. Used only by its own worker.
#[derive(Default)]
pub struct ReplicaSession {
    options: ReplicaOptions,
    /// `None` for a session that has only announced itself.
    progress: Option<Arc<ReplicaProgress>>,
    /// True if the replica attached with PSYNC. It then acknowledges its offset about once a second.
    acknowledges: bool,
    /// True if the output contains the reply after which the stream follows. The replica gets no other reply.
    has_reply: bool,
    /// How much of its snapshot the replica was sent.
    pub snapshot: SnapshotSending,
    /// Bytes of the stream in the replica's output, after the bytes of the snapshot. The backlog holds these bytes.
    stream_unsent: u64,
    /// Bytes that are held for the replica in addition to the stream, as last added to the total in `Replicas::held`.
    pub(super) held: u64,
}

/// The options that a replica has announced with REPLCONF.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplicaOptions {
    pub port: u16,
    pub ip: Option<IpAddr>,
    /// `capa psync2`: the replica wants the id of the history with which it continues.
    pub wants_id: bool,
    /// `capa eof`.
    pub takes_unknown_length: bool,
    /// True if the replica supports comparisons.
    pub compares: bool,
    /// The parts of the dataset that the replica requested. `None` if it requested everything.
    pub filter: Option<ReplicaFilter>,
}

/// How much of its snapshot a replica was sent.
#[derive(Default)]
pub struct SnapshotSending {
    /// True if the replica has received the position at which the snapshot ends.
    has_position: bool,
    /// Bytes of the snapshot that are in the replica's output or were sent. `None` before the first byte.
    sent: Option<u64>,
    /// Bytes of the snapshot in the replica's output. They count toward no limit.
    unsent: u64,
    /// For a snapshot that is sent while it is being written: the number of bytes that the kernel has taken, and the
    /// time in Unix ms at which this number last changed.
    taken: (u64, u64),
}

impl SnapshotSending {
    /// Notes that the replica receives the position at which the snapshot ends. Returns false if it has received the
    /// position before.
    pub fn begin_position(&mut self) -> bool {
        !std::mem::replace(&mut self.has_position, true)
    }

    /// Notes that the snapshot is about to be sent.
    pub fn begin(&mut self, now_ms: u64) {
        self.sent = Some(0);
        self.taken = (0, now_ms);
    }

    /// Bytes of the snapshot that are in the replica's output or were sent. `None` before the first byte.
    pub fn sent(&self) -> Option<u64> {
        self.sent
    }

    /// Counts bytes of the snapshot that were added to the replica's output.
    pub fn count_sent(&mut self, bytes: usize) {
        self.sent = Some(self.sent.unwrap_or(0) + bytes as u64);
        self.unsent += bytes as u64;
    }

    /// Bytes of the snapshot in the replica's output.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Notes that at most `unsent` bytes of the replica's output belong to the snapshot.
    pub fn bound_unsent(&mut self, unsent: u64) {
        self.unsent = self.unsent.min(unsent);
    }

    /// Returns how long, in ms, the kernel has taken nothing although output was available. `unsent` is the number of
    /// bytes in the output. Returns `None` before the first byte of the snapshot.
    pub fn stuck_ms(&mut self, unsent: u64, now_ms: u64) -> Option<u64> {
        let taken = self.sent? - self.unsent.min(unsent);
        if unsent == 0 || self.taken.0 != taken {
            self.taken = (taken, now_ms);
        }
        Some(now_ms.saturating_sub(self.taken.1))
    }
}

/// The parts of the dataset that a replica wants (`REPLCONF rdb-filter-only`). They never include keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaFilter {
    /// The libraries of functions.
    pub functions: bool,
}

impl ReplicaFilter {
    /// All filters.
    pub const ALL: [ReplicaFilter; 2] =
        [ReplicaFilter { functions: false }, ReplicaFilter { functions: true }];
}

impl ReplicaSession {
    /// The options that the session has announced.
    pub fn options(&self) -> &ReplicaOptions {
        &self.options
    }

    /// The options, for REPLCONF.
    pub fn options_mut(&mut self) -> &mut ReplicaOptions {
        &mut self.options
    }

    /// Makes the session a replica.
    pub(super) fn begin(&mut self, progress: Arc<ReplicaProgress>, acknowledges: bool) {
        self.progress = Some(progress);
        self.acknowledges = acknowledges;
    }

    /// Notes that the session is no longer a replica. Returns its progress.
    pub(super) fn end(&mut self) -> Option<Arc<ReplicaProgress>> {
        self.progress.take()
    }

    /// The replica's progress. `None` for a session that has only announced itself.
    #[inline]
    pub fn progress(&self) -> Option<&Arc<ReplicaProgress>> {
        self.progress.as_ref()
    }

    /// True if the session has requested the stream.
    pub fn follows(&self) -> bool {
        self.progress.is_some()
    }

    /// True if the replica acknowledges its offset, because it attached with PSYNC.
    pub fn acknowledges(&self) -> bool {
        self.acknowledges
    }

    /// Sets whether the session's output contains the reply after which the stream follows.
    pub fn set_has_reply(&mut self, has_reply: bool) {
        self.has_reply = has_reply;
    }

    /// Returns whether the current reply is the one after which the stream follows, and clears the flag.
    pub fn take_has_reply(&mut self) -> bool {
        std::mem::take(&mut self.has_reply)
    }

    /// Bytes of the stream in the replica's output.
    #[inline]
    pub fn stream_unsent(&self) -> u64 {
        self.stream_unsent
    }

    /// Counts bytes of the stream that were added to the replica's output.
    pub fn count_stream(&mut self, bytes: u64) {
        self.stream_unsent += bytes;
    }

    /// Notes the number of bytes of the replica's output that the kernel has not taken.
    pub fn note_unsent(&mut self, unsent: u64) {
        self.stream_unsent = self.stream_unsent.min(unsent);
        self.snapshot.bound_unsent(unsent - self.stream_unsent);
        if let Some(progress) = &self.progress
            && let Some(handed) = progress.handed()
        {
            progress.sent.store(handed - self.stream_unsent, Ordering::Relaxed);
        }
    }

    /// True if the replica is considered lost after it has sent nothing for a long time.
    pub fn must_acknowledge(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| {
            let is_online = progress.stage() == ReplicaStage::Online;
            is_online && (self.acknowledges || progress.awaits_ack())
        })
    }
}

/// The stage of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReplicaStage {
    /// The replica's snapshot has not begun or is not complete.
    Waits,
    /// The replica's snapshot is being sent.
    GetsSnapshot,
    /// The replica has the snapshot, or needs none, and receives the stream.
    Online,
}

impl ReplicaStage {
    /// The name of the stage in INFO and in the log.
    pub fn word(self) -> &'static str {
        match self {
            ReplicaStage::Waits => "wait_bgsave",
            ReplicaStage::GetsSnapshot => "send_bulk",
            ReplicaStage::Online => "online",
        }
    }
}

/// The progress of a replica, shared by its worker, the stream, and the thread that writes snapshots.
pub struct ReplicaProgress {
    stage: AtomicU8,
    /// The position up to which the stream was added to the replica's output; [`NOT_YET`] before the replica's snapshot
    /// has begun.
    handed: AtomicU64,
    /// The position up to which the kernel has taken the stream, or [`NOT_YET`]. The backlog or the file keeps later
    /// bytes.
    sent: AtomicU64,
    /// True if the stream must not follow before the replica has acknowledged its snapshot, which ended with a mark.
    awaits_ack: AtomicBool,
    /// True if the replica has not caught up since its full synchronization began, or since it resumed in the spill
    /// file. Its missing bytes count toward no limit as long as they may spill to a file.
    catches_up: AtomicBool,
    /// The replica's snapshot, and the replica's number among all replicas that receive this snapshot.
    transfer: Mutex<Option<(Arc<SnapshotTransfer>, u64)>>,
}

const NOT_YET: u64 = u64::MAX;

impl Default for ReplicaProgress {
    fn default() -> ReplicaProgress {
        ReplicaProgress {
            stage: AtomicU8::new(ReplicaStage::Waits as u8),
            handed: AtomicU64::new(NOT_YET),
            sent: AtomicU64::new(NOT_YET),
            awaits_ack: AtomicBool::new(false),
            catches_up: AtomicBool::new(false),
            transfer: Mutex::default(),
        }
    }
}

impl ReplicaProgress {
    /// True if the replica has a position in the stream: its snapshot has begun, or it needs none.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.handed().is_some()
    }

    /// The position up to which the stream was added to the output, if the replica has a position.
    #[inline]
    pub fn handed(&self) -> Option<u64> {
        Some(self.handed.load(Ordering::Relaxed)).filter(|place| *place != NOT_YET)
    }

    /// The position up to which the replica was sent the stream, as far as its worker knows.
    #[inline]
    pub fn sent(&self) -> Option<u64> {
        Some(self.sent.load(Ordering::Relaxed)).filter(|place| *place != NOT_YET)
    }

    /// Sets the position up to which the stream was added to the replica's output. Called only by the replica's worker.
    pub(super) fn hand(&self, place: u64) {
        self.handed.store(place, Ordering::Relaxed);
    }

    /// Sets the replica's first position. It has all earlier changes, or receives them in its snapshot.
    pub(super) fn begin_at(&self, place: u64) {
        self.sent.store(place, Ordering::Relaxed);
        self.handed.store(place, Ordering::Relaxed);
    }

    pub fn stage(&self) -> ReplicaStage {
        match self.stage.load(Ordering::Relaxed) {
            stage if stage == ReplicaStage::Waits as u8 => ReplicaStage::Waits,
            stage if stage == ReplicaStage::GetsSnapshot as u8 => ReplicaStage::GetsSnapshot,
            _ => ReplicaStage::Online,
        }
    }

    pub fn set_stage(&self, stage: ReplicaStage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// The snapshot that the replica is being sent, if any.
    pub fn transfer(&self) -> Option<Arc<SnapshotTransfer>> {
        self.transfer.lock().even_poisoned().as_ref().map(|(transfer, _)| Arc::clone(transfer))
    }

    /// The next block of a snapshot that is sent while it is being written.
    pub fn next_block(&self) -> PipeRead {
        let transfer = self.transfer.lock().even_poisoned();
        transfer.as_ref().map_or(PipeRead::End, |(transfer, number)| transfer.next(*number))
    }

    /// True if the stream has to wait until the replica has acknowledged its snapshot.
    #[inline]
    pub fn awaits_ack(&self) -> bool {
        self.awaits_ack.load(Ordering::Relaxed)
    }

    /// True if the replica has not caught up with the part of the stream that is or may be in the spill file.
    pub(super) fn catches_up(&self) -> bool {
        self.catches_up.load(Ordering::Relaxed)
    }

    pub(super) fn set_catches_up(&self, on: bool) {
        self.catches_up.store(on, Ordering::Relaxed);
    }

    pub(super) fn set_awaits_ack(&self, on: bool) -> bool {
        self.awaits_ack.swap(on, Ordering::Relaxed)
    }

    /// Joins the replica, which is on this worker, to this snapshot. All workers are quiesced.
    pub(super) fn join(&self, transfer: &Arc<SnapshotTransfer>, worker: usize) {
        let number = transfer.join(worker);
        *self.transfer.lock().even_poisoned() = Some((Arc::clone(transfer), number));
        self.set_catches_up(true);
        self.begin_at(transfer.from);
    }

    /// Detaches the replica from its snapshot: it has received the snapshot or has disconnected.
    pub(super) fn leave(&self) {
        if let Some((transfer, number)) = self.transfer.lock().even_poisoned().take() {
            transfer.leave(number);
        }
    }
}

/// A session of a worker that is a replica.
struct WorkerReplica {
    token: Token,
    progress: Arc<ReplicaProgress>,
}

/// The sessions of one worker that are replicas.
#[derive(Default)]
pub struct WorkerReplicas(Vec<WorkerReplica>);

impl WorkerReplicas {
    /// Adds a session that has become a replica.
    pub(super) fn add(&mut self, token: Token, progress: &Arc<ReplicaProgress>) {
        self.0.push(WorkerReplica { token, progress: Arc::clone(progress) });
    }

    /// Removes a session that is no longer a replica.
    pub(super) fn remove(&mut self, token: Token) {
        self.0.retain(|replica| replica.token != token);
    }

    /// The replica with this number, from 0, and its stage.
    pub fn at(&self, number: usize) -> Option<(Token, ReplicaStage)> {
        self.0.get(number).map(|replica| (replica.token, replica.progress.stage()))
    }

    /// The replicas that do not have their snapshot yet.
    pub fn waiting(&self) -> Vec<Token> {
        let waits = |one: &&WorkerReplica| one.progress.stage() != ReplicaStage::Online;
        self.0.iter().filter(waits).map(|one| one.token).collect()
    }
}
