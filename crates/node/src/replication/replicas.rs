//! The replicas of this server: the sessions that follow its stream, and their acknowledgements.
//!
//! A thread that needs both the lock of the list and the lock of the stream takes the lock of the list first.

use super::acks::REPLICAS_MAX;
use super::replica::{ReplicaFilter, ReplicaProgress, ReplicaStage};
use crate::clients::ClientRecord;
use brisk_engine::keyspace::Ticket;
use brisk_structures::poison::EvenPoisoned;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A session that follows the stream or waits for its snapshot.
#[derive(Clone)]
pub struct ReplicaHandle {
    pub client: Arc<ClientRecord>,
    pub progress: Arc<ReplicaProgress>,
    pub ip: Option<IpAddr>,
    /// The port that the replica has announced, or 0.
    pub port: u16,
    /// When the replica requested the stream, in Unix ms.
    pub since_ms: u64,
    /// True if the replica accepts a snapshot of unknown length. With `repl-diskless-sync` such a replica waits for
    /// others that share its snapshot, and receives the snapshot while it is being written.
    pub takes_unknown_length: bool,
    /// True if the replica supports comparisons.
    pub compares: bool,
    /// If set, the replica wants only these parts of the dataset, and no keys.
    pub filter: Option<ReplicaFilter>,
    /// The last acknowledged offset; 0 before the first.
    pub acked: u64,
    /// When the replica's last message arrived, in Unix ms. Initially the time at which the replica's snapshot ended.
    pub acked_ms: u64,
    /// The acknowledged offset as a position in the stream, or the position at which the replica resumed. `None` before
    /// the first acknowledgement, and if the offset predates the start of this server.
    pub acked_place: Option<Ticket>,
    /// True if the replica has acknowledged an offset. Until then, `acked` has no meaning, not even if it is 0.
    pub has_acked: bool,
    /// The offset up to which the replica's own append-only file is durable.
    pub acked_durable: Option<u64>,
}

impl ReplicaHandle {
    /// A handle of a replica that has not announced anything.
    pub fn new(
        client: Arc<ClientRecord>,
        progress: Arc<ReplicaProgress>,
        now_ms: u64,
    ) -> ReplicaHandle {
        ReplicaHandle {
            client,
            progress,
            ip: None,
            port: 0,
            since_ms: now_ms,
            takes_unknown_length: false,
            compares: false,
            filter: None,
            acked: 0,
            acked_ms: now_ms,
            acked_place: None,
            has_acked: false,
            acked_durable: None,
        }
    }

    /// The address of the replica, by which reports name it.
    pub fn name(&self) -> String {
        name_of(self.ip, self.port, &self.client)
    }

    /// True if both handles are connections of the same server, according to the address that the server has announced.
    fn is_same_as(&self, other: &ReplicaHandle) -> bool {
        self.port > 0 && (self.ip, self.port) == (other.ip, other.port)
    }

    /// Seconds since the replica's last message.
    pub fn lag_s(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.acked_ms) / 1000
    }

    /// True if the replica waits for a snapshot with these parts.
    pub fn waits_for(&self, filter: Option<ReplicaFilter>) -> bool {
        !self.progress.has_place() && self.filter == filter
    }

    /// True if the replica receives the stream.
    pub fn is_online(&self) -> bool {
        self.progress.stage() == ReplicaStage::Online
    }
}

/// The name of a replica: the address that it has announced, or the address of its connection.
pub fn name_of(ip: Option<IpAddr>, port: u16, client: &ClientRecord) -> String {
    match ip.filter(|_| port > 0) {
        Some(ip) => SocketAddr::new(ip, port).to_string(),
        None => client.addr.to_string(),
    }
}

/// All replicas, and numbers about them that threads read without the mutex.
pub struct Replicas {
    list: Mutex<Vec<ReplicaHandle>>,
    /// Ready flags, one for each worker. A flag is set if replicas of the worker have something to take or need to be
    /// checked.
    ready: Box<[AtomicBool]>,
    /// The number of replicas with a position in the stream.
    following: AtomicUsize,
    /// The number of replicas whose snapshot has not begun.
    waiting: AtomicUsize,
    /// When the last replica left, or when the backlog began without a replica, in Unix ms.
    alone_since_ms: AtomicU64,
    /// Bytes that workers hold for replicas in addition to the stream.
    held: AtomicI64,
    /// The positions that at least one, two, … replicas have acknowledged; 0 if there are fewer replicas.
    acknowledged: [AtomicU64; REPLICAS_MAX],
    /// Incremented when later acknowledgements no longer cover the changes that clients were shown before.
    ack_epoch: AtomicU64,
}

impl Replicas {
    /// An empty list, for this number of workers.
    pub fn new(workers: usize) -> Replicas {
        Replicas {
            list: Mutex::default(),
            ready: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            following: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            alone_since_ms: AtomicU64::new(0),
            held: AtomicI64::new(0),
            acknowledged: std::array::from_fn(|_| AtomicU64::new(0)),
            ack_epoch: AtomicU64::new(0),
        }
    }

    /// The number of replicas with a position in the stream.
    pub fn following(&self) -> usize {
        self.following.load(Ordering::Relaxed)
    }

    /// True if a replica waits for a snapshot that has not begun.
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// True if there is any replica.
    pub fn is_any(&self) -> bool {
        self.following() > 0 || self.has_waiting()
    }

    /// When the last replica left, in Unix ms. `None` if there is a replica.
    pub(super) fn alone_since_ms(&self) -> Option<u64> {
        (!self.is_any()).then(|| self.alone_since_ms.load(Ordering::Relaxed))
    }

    pub(super) fn note_alone(&self, now_ms: u64) {
        self.alone_since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Notes that workers hold more bytes for their replicas, or fewer.
    pub(super) fn note_held(&self, change: i64) {
        self.held.fetch_add(change, Ordering::Relaxed);
    }

    /// Bytes that workers hold for replicas in addition to the stream. O(1).
    pub(super) fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed).max(0).cast_unsigned()
    }

    /// Ends the epoch of acknowledgements. Later acknowledgements do not cover the changes that clients were shown
    /// before, because the stream is no longer kept or is another server's. All other workers are quiesced.
    pub fn end_ack_epoch(&self) {
        self.ack_epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// The current epoch of acknowledgements.
    #[inline]
    pub fn ack_epoch(&self) -> u64 {
        self.ack_epoch.load(Ordering::Relaxed)
    }

    /// The position that at least `count` replicas, 1 to [`REPLICAS_MAX`], have acknowledged. O(1).
    #[inline]
    pub fn acknowledged_by(&self, count: usize) -> Ticket {
        Ticket(self.acknowledged[count - 1].load(Ordering::Acquire))
    }

    /// Adds a replica that waits for a snapshot.
    pub fn attach(&self, replica: ReplicaHandle) {
        let mut list = self.lock();
        list.push(replica);
        self.update_counts(&list);
    }

    /// Adds a replica that has a position in the stream.
    pub(super) fn add_online(&self, list: &mut Vec<ReplicaHandle>, replica: ReplicaHandle) {
        self.set_ready(replica.client.worker);
        list.push(replica);
        self.update_counts(list);
    }

    /// Removes the replica of this client and returns its handle.
    pub(super) fn remove(&self, client: &ClientRecord, now_ms: u64) -> Option<ReplicaHandle> {
        let mut list = self.lock();
        let at = list.iter().position(|replica| replica.client.id == client.id)?;
        let replica = list.remove(at);
        if list.is_empty() {
            self.note_alone(now_ms);
        }
        self.update_counts(&list);
        Some(replica)
    }

    /// Locks the list. The caller must call [`Replicas::update_counts`] if it changes the list.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<ReplicaHandle>> {
        self.list.lock().even_poisoned()
    }

    pub(super) fn update_counts(&self, list: &[ReplicaHandle]) {
        let following = list.iter().filter(|replica| replica.progress.has_place()).count();
        self.following.store(following, Ordering::Relaxed);
        self.waiting.store(list.len() - following, Ordering::Relaxed);
        self.update_acknowledged(list);
    }

    /// Updates `acknowledged` after a change of the list. O(replicas²).
    fn update_acknowledged(&self, list: &[ReplicaHandle]) {
        // A replica may have reconnected while its previous connection still seems to be open. Both connections are
        // only one copy of the data, so only the latest connection counts.
        let is_latest = |(at, one): &(usize, &ReplicaHandle)| {
            !list[at + 1..].iter().any(|other| one.is_same_as(other))
        };
        let latest = list.iter().enumerate().filter(is_latest).map(|(_, one)| one);
        let online = latest.filter(|replica| replica.is_online() && replica.filter.is_none());
        let mut places: Vec<u64> = online.filter_map(|one| Some(one.acked_place?.0)).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        for (at, acknowledged) in self.acknowledged.iter().enumerate() {
            acknowledged.store(places.get(at).copied().unwrap_or(0), Ordering::Release);
        }
    }

    /// Notes that a replica has received its snapshot.
    pub(super) fn note_online(&self, client: &ClientRecord, now_ms: u64) {
        if let Some(replica) = find(&mut self.lock(), client) {
            replica.acked_ms = now_ms;
        }
    }

    /// Notes an acknowledgement: an offset, its position, and the offset up to which the replica's append-only
    /// file is durable, if it has one. `end` is the end of the stream.
    pub(super) fn acknowledge(
        &self,
        client: &ClientRecord,
        (offset, place): (u64, Option<Ticket>),
        durable: Option<u64>,
        (end, now_ms): (Ticket, u64),
    ) {
        let mut list = self.lock();
        if let Some(replica) = find(&mut list, client) {
            (replica.acked, replica.acked_ms) = (offset, now_ms);
            replica.has_acked = true;
            replica.acked_durable = durable.or(replica.acked_durable);
            // Offsets before this server's start have no position. Offsets beyond the stream cannot be correct.
            replica.acked_place = place.filter(|place| *place <= end);
            if replica.progress.set_awaits_ack(false) {
                self.set_ready(client.worker);
            }
            self.update_acknowledged(&list);
        }
    }

    /// The number of replicas for which `is_counted` returns true. O(replicas).
    pub fn count(&self, is_counted: impl Fn(&ReplicaHandle) -> bool) -> u64 {
        self.lock().iter().filter(|replica| is_counted(replica)).count() as u64
    }

    /// All replicas. O(replicas).
    pub fn list(&self) -> Vec<ReplicaHandle> {
        self.lock().clone()
    }

    fn set_ready(&self, worker: usize) {
        self.ready[worker].store(true, Ordering::Release);
    }

    /// Sets the ready flags of all workers with replicas, and calls `wake` for each worker whose flag was not set.
    /// O(replicas).
    pub(super) fn announce(&self, list: &[ReplicaHandle], mut wake: impl FnMut(usize)) {
        for replica in list.iter().filter(|replica| replica.progress.has_place()) {
            let worker = replica.client.worker;
            if !self.ready[worker].swap(true, Ordering::AcqRel) {
                wake(worker);
            }
        }
    }

    /// True if a worker has to check its replicas.
    #[inline]
    pub fn is_ready(&self, worker: usize) -> bool {
        self.ready[worker].load(Ordering::Relaxed)
    }

    /// Clears the ready flag of a worker, which then checks its replicas.
    pub fn clear_ready(&self, worker: usize) {
        self.ready[worker].swap(false, Ordering::AcqRel);
    }
}

fn find<'l>(list: &'l mut [ReplicaHandle], client: &ClientRecord) -> Option<&'l mut ReplicaHandle> {
    list.iter_mut().find(|replica| replica.client.id == client.id)
}

/// True if any replica has not caught up since its full synchronization began, or since it resumed in the spill file.
pub(super) fn has_catching_up(list: &[ReplicaHandle]) -> bool {
    list.iter().any(|replica| replica.progress.catches_up())
}

/// The first position that a replica may still need.
pub(super) fn needed_from(list: &[ReplicaHandle]) -> u64 {
    list.iter().filter_map(|replica| replica.progress.sent()).min().unwrap_or(u64::MAX)
}

/// The first position that a replica has not acknowledged; `None` without replicas.
pub(super) fn acknowledged_from(list: &[ReplicaHandle]) -> Option<u64> {
    list.iter().map(|replica| replica.acked_place.unwrap_or_default().0).min()
}
