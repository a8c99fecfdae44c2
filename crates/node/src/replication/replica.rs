//! What is known of a session that is a replica: by its own worker, and by all others.

use super::pipe::Next;
use super::transfer::Transfer;
use brisk_reactor::Token;
use brisk_structures::poison::EvenPoisoned;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What a session said of itself by REPLCONF, and how far it has come as a replica.
#[derive(Default)]
pub struct Replica {
    pub port: u16,
    pub ip: Option<IpAddr>,
    /// `None` for a session that has only told of itself.
    pub progress: Option<Arc<ReplicaProgress>>,
    /// It tells how far it has come, about once a second: it asked by PSYNC.
    pub acknowledges: bool,
    /// Among its replies is the one that the stream follows. Nothing else is answered to it.
    pub is_answered: bool,
    /// It was told where in the stream its snapshot ends.
    pub told_place: bool,
    /// Bytes of the snapshot that are in its output or were sent; `None` before the first.
    pub snapshot_sent: Option<u64>,
    /// Bytes of its output that are the snapshot's: no limit counts them.
    pub snapshot_unsent: u64,
    /// Bytes of its output that are the stream's, behind those: the backlog holds them.
    pub stream_unsent: u64,
    /// Bytes of a snapshot that is sent while it is written that the kernel had taken, and since when it
    /// has taken no more, in Unix ms.
    pub taken: (u64, u64),
    /// It said `capa psync2`: it wants to know the name of the history that it goes on with.
    pub wants_id: bool,
    /// It said `capa eof`.
    pub takes_unknown_length: bool,
    /// It said that it understands comparisons.
    pub compares: bool,
    /// The parts of the dataset that it requested.
    pub filter: Option<ReplicaFilter>,
    /// Bytes that are held for it besides the stream, as all replicas' sum has them.
    pub(super) held: u64,
}

/// The parts of the dataset that a replica wants (`REPLCONF rdb-filter-only`). Keys are not among them.
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

impl Replica {
    /// Whether it asked for the stream.
    pub fn follows(&self) -> bool {
        self.progress.is_some()
    }

    /// So many bytes of its output have not been taken by the kernel.
    pub fn note_unsent(&mut self, unsent: u64) {
        self.stream_unsent = self.stream_unsent.min(unsent);
        self.snapshot_unsent = self.snapshot_unsent.min(unsent - self.stream_unsent);
        if let Some(progress) = &self.progress
            && let Some(handed) = progress.handed()
        {
            progress.sent.store(handed - self.stream_unsent, Ordering::Relaxed);
        }
    }

    /// Whether its silence for long means that it is gone.
    pub fn is_to_be_heard(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| {
            let is_online = progress.stage() == ReplicaStage::Online;
            is_online && (self.acknowledges || progress.awaits_ack())
        })
    }
}

/// How far a replica has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReplicaStage {
    /// Its snapshot is not begun, or not written to its end.
    Waits,
    /// Its snapshot is being sent.
    GetsSnapshot,
    /// It has the snapshot, or will, and the stream goes on to it.
    Online,
}

impl ReplicaStage {
    /// As INFO and the log name it.
    pub fn word(self) -> &'static str {
        match self {
            ReplicaStage::Waits => "wait_bgsave",
            ReplicaStage::GetsSnapshot => "send_bulk",
            ReplicaStage::Online => "online",
        }
    }
}

/// A replica's part in the stream, for its worker and for who makes snapshots.
pub struct ReplicaProgress {
    stage: AtomicU8,
    /// The place up to which its output was handed the stream; [`NOT_YET`] before its snapshot is begun.
    handed: AtomicU64,
    /// The place up to which the kernel has taken that: what is behind it is kept. Likewise.
    sent: AtomicU64,
    /// The stream does not follow before it has acknowledged its snapshot, of whose end it knows only by a
    /// mark.
    awaits_ack: AtomicBool,
    /// It has not caught up since its full synchronisation began, or since it came back and lacked what was in
    /// the file: what it was not sent is in no limit, as long as it may go into a file.
    catches_up: AtomicBool,
    /// And its number among the replicas of that.
    transfer: Mutex<Option<(Arc<Transfer>, u64)>>,
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
    /// Whether it has a place in the stream: its snapshot is begun, or it needs none.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.handed().is_some()
    }

    /// The place up to which its output was handed the stream, if it has one.
    #[inline]
    pub fn handed(&self) -> Option<u64> {
        Some(self.handed.load(Ordering::Relaxed)).filter(|place| *place != NOT_YET)
    }

    /// The place up to which it was sent the stream, as far as its worker knows.
    #[inline]
    pub fn sent(&self) -> Option<u64> {
        Some(self.sent.load(Ordering::Relaxed)).filter(|place| *place != NOT_YET)
    }

    /// Its output has the stream up to this place. Only its worker says so.
    pub(super) fn hand(&self, place: u64) {
        self.handed.store(place, Ordering::Relaxed);
    }

    /// It has, or gets by its snapshot, what stands before this place.
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

    /// Its snapshot, from its beginning until it was sent.
    pub fn transfer(&self) -> Option<Arc<Transfer>> {
        self.transfer.lock().even_poisoned().as_ref().map(|(transfer, _)| Arc::clone(transfer))
    }

    /// What there is of a snapshot that is sent while it is written.
    pub fn next_block(&self) -> Next {
        let transfer = self.transfer.lock().even_poisoned();
        transfer.as_ref().map_or(Next::End, |(transfer, number)| transfer.next(*number))
    }

    /// Whether the stream has to wait until the replica has acknowledged its snapshot.
    #[inline]
    pub fn awaits_ack(&self) -> bool {
        self.awaits_ack.load(Ordering::Relaxed)
    }

    /// Whether it has not caught up with what is, or may be, in the file.
    pub(super) fn catches_up(&self) -> bool {
        self.catches_up.load(Ordering::Relaxed)
    }

    pub(super) fn set_catches_up(&self, on: bool) {
        self.catches_up.store(on, Ordering::Relaxed);
    }

    pub(super) fn set_awaits_ack(&self, on: bool) -> bool {
        self.awaits_ack.swap(on, Ordering::Relaxed)
    }

    /// This is its snapshot, and it is of that worker. Only while all workers stand still.
    pub(super) fn join(&self, transfer: &Arc<Transfer>, worker: usize) {
        let number = transfer.join(worker);
        *self.transfer.lock().even_poisoned() = Some((Arc::clone(transfer), number));
        self.set_catches_up(true);
        self.begin_at(transfer.from);
    }

    /// It has its snapshot, or is gone.
    pub(super) fn leave(&self) {
        if let Some((transfer, number)) = self.transfer.lock().even_poisoned().take() {
            transfer.leave(number);
        }
    }
}

/// A session of a worker that is a replica.
#[derive(Clone)]
pub struct Follower {
    pub token: Token,
    pub progress: Arc<ReplicaProgress>,
}
