//! The stream on its way out: from the journal to who reads it.
//!
//! ```text
//!  transactions of all workers ── journal ── pump ─┬─ append-only file
//!                                                  ├─ outbox of worker 0 ─ its replicas
//!                                                  └─ outbox of worker 1 ─ its replicas
//! ```
//!
//! The journal is in order and has no gaps, so whoever pumps takes what all have appended. A worker does
//! it after its commands. Nothing is appended while nobody reads:
//! [`brisk_engine::effect::Hooks::PROPAGATE`] is armed with the first reader, while all workers stand
//! still, and disarmed some time after the last is gone.

use super::replica::Attachment;
use super::transfer::Transfer;
use crate::clients::ClientRecord;
use crate::core::shared::Shared;
use crate::persistence::aof::state::Aof;
use brisk_engine::keyspace::Journal;
use brisk_structures::poison::EvenPoisoned;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of the stream that a worker has not fetched yet, at most; beyond it its replicas are
/// dropped, since they could not be served.
const OUTBOX_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A session that follows the stream, or waits for a snapshot to begin with.
#[derive(Clone)]
pub struct Member {
    pub client: Arc<ClientRecord>,
    pub attachment: Arc<Attachment>,
    pub ip: Option<IpAddr>,
    /// What it says it listens on; 0 if it said nothing.
    pub port: u16,
    /// The offset it acknowledged last, and when, in Unix ms; 0 before. It begins to count as heard of
    /// when its snapshot was sent.
    pub acked: u64,
    pub acked_ms: u64,
    /// The offset up to which it said that its own append-only file is on its disk.
    pub acked_durable: Option<u64>,
}

/// The stream of the server.
pub struct Feed {
    state: Mutex<State>,
    outboxes: Box<[Outbox]>,
    /// Sessions that the stream is for by now, and those that wait for a snapshot to be begun.
    replicas: AtomicUsize,
    waiting: AtomicUsize,
    /// How often a replica asked for a snapshot.
    synchronisations: AtomicU64,
    /// Bytes that the workers hold for replicas.
    held: AtomicI64,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Emptied; what is about to leave.
    bytes: Vec<u8>,
}

impl State {
    fn find(&mut self, client: &ClientRecord) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.client.id == client.id)
    }
}

/// What a worker's replicas have still to get.
#[derive(Default)]
struct Outbox {
    pending: Mutex<Pending>,
    /// Bytes in it; also says whether it is worth a look.
    len: AtomicUsize,
}

#[derive(Default)]
struct Pending {
    /// The stream's offset of the first byte.
    from: u64,
    bytes: Vec<u8>,
    overflow: bool,
}

/// A part of the stream for one worker's replicas.
pub struct Part {
    /// The stream's offset of the first byte.
    pub from: u64,
    pub bytes: Vec<u8>,
    /// Bytes were lost: its replicas cannot go on.
    pub overflow: bool,
}

impl Feed {
    /// A stream without replicas for `workers` workers.
    pub fn new(workers: usize) -> Feed {
        Feed {
            state: Mutex::default(),
            outboxes: (0..workers).map(|_| Outbox::default()).collect(),
            replicas: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            synchronisations: AtomicU64::new(0),
            held: AtomicI64::new(0),
        }
    }

    /// The place in the stream that replicas go by; 0 before the first.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.synchronisations() == 0 { 0 } else { journal.end().0 }
    }

    /// How many sessions the stream is for.
    pub fn replica_count(&self) -> usize {
        self.replicas.load(Ordering::Relaxed)
    }

    /// Whether a session waits for a snapshot to be begun.
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// How often a replica asked for a snapshot.
    pub fn synchronisations(&self) -> u64 {
        self.synchronisations.load(Ordering::Relaxed)
    }

    /// Workers hold so many bytes more for their replicas.
    pub(super) fn note_held(&self, change: i64) {
        self.held.fetch_add(change, Ordering::Relaxed);
    }

    /// Bytes of memory that wait to be sent to replicas. O(workers).
    pub fn buffered(&self) -> u64 {
        let waiting = self.outboxes.iter().map(|outbox| outbox.len.load(Ordering::Relaxed) as u64);
        self.held.load(Ordering::Relaxed).max(0).cast_unsigned() + waiting.sum::<u64>()
    }

    /// A session asks for a snapshot and for what follows it.
    pub fn attach(&self, member: Member) {
        let mut state = lock(&self.state);
        state.members.push(member);
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
        self.count_members(&state);
    }

    /// The sessions that wait get this snapshot, and follow from here on. Only while all other workers
    /// stand still, and behind [`Feed::pump`].
    pub(super) fn join(&self, transfer: &Arc<Transfer>, journal: &Journal) {
        let state = lock(&self.state);
        debug_assert!(!journal.has_news(), "what was before is not for them");
        journal.name_database();
        for member in state.members.iter().filter(|member| member.attachment.from().is_none()) {
            member.attachment.join(transfer);
        }
        self.count_members(&state);
    }

    /// A session is gone.
    pub fn detach(&self, client: &ClientRecord) {
        let mut state = lock(&self.state);
        state.members.retain(|member| member.client.id != client.id);
        self.count_members(&state);
    }

    fn count_members(&self, state: &State) {
        let follows = |member: &&Member| member.attachment.from().is_some();
        let replicas = state.members.iter().filter(follows).count();
        self.replicas.store(replicas, Ordering::Relaxed);
        self.waiting.store(state.members.len() - replicas, Ordering::Relaxed);
    }

    /// A session has its snapshot.
    pub(super) fn note_online(&self, client: &ClientRecord, now_ms: u64) {
        let mut state = lock(&self.state);
        if let Some(member) = state.find(client) {
            member.acked_ms = now_ms;
        }
    }

    /// A session tells how far it has come, and how far its append-only file if it has one.
    pub fn acknowledge(
        &self,
        client: &ClientRecord,
        offset: u64,
        durable: Option<u64>,
        now_ms: u64,
    ) {
        let mut state = lock(&self.state);
        if let Some(member) = state.find(client) {
            (member.acked, member.acked_ms) = (offset, now_ms);
            member.acked_durable = durable.or(member.acked_durable);
        }
    }

    /// How many of the sessions that follow are such. O(their number).
    pub fn count(&self, is_such: impl Fn(&Member) -> bool) -> u64 {
        lock(&self.state).members.iter().filter(|member| is_such(member)).count() as u64
    }

    /// The sessions that follow. O(their number).
    pub fn members(&self) -> Vec<Member> {
        lock(&self.state).members.clone()
    }

    /// Hands what is new in the journal to who reads the stream; `wake` is called for each worker with
    /// something to fetch.
    pub fn pump(&self, journal: &Journal, aof: &Aof, mut wake: impl FnMut(usize)) {
        let mut state = self.state.lock().even_poisoned();
        let State { members, bytes } = &mut *state;
        if self.replica_count() == 0 {
            aof.take_from(journal);
            return;
        }
        let from = journal.take(bytes).0;
        if bytes.is_empty() {
            return;
        }
        aof.push(bytes);
        for (worker, outbox) in self.outboxes.iter().enumerate() {
            let is_for =
                |one: &Member| one.client.worker == worker && one.attachment.from().is_some();
            if !members.iter().any(is_for) {
                continue;
            }
            let mut pending = outbox.pending.lock().even_poisoned();
            if pending.bytes.is_empty() {
                pending.from = from;
            }
            if pending.bytes.len() + bytes.len() > OUTBOX_BYTES_MAX {
                pending.overflow = true;
            } else {
                pending.bytes.extend_from_slice(bytes);
            }
            if outbox.len.swap(pending.bytes.len().max(1), Ordering::Release) == 0 {
                wake(worker);
            }
        }
        bytes.clear();
        bytes.shrink_to(BUFFER_KEPT_MAX);
    }

    /// Whether a worker has something to fetch.
    #[inline]
    pub fn is_waiting(&self, worker: usize) -> bool {
        self.outboxes[worker].len.load(Ordering::Relaxed) != 0
    }

    /// Everything for a worker's replicas.
    pub fn fetch(&self, worker: usize) -> Part {
        let outbox = &self.outboxes[worker];
        let mut pending = lock(&outbox.pending);
        outbox.len.store(0, Ordering::Relaxed);
        let Pending { from, bytes, overflow } = std::mem::take(&mut *pending);
        Part { from, bytes, overflow }
    }
}

impl Feed {
    pub fn disconnect_all(&self, _: &Shared) {}
    pub fn has_backlog(&self) -> bool {
        false
    }
    pub fn begin_backlog(&self, _: brisk_engine::keyspace::Ticket, _: u64) {}
    pub fn forget_backlog(&self) {}
}

/// A buffer for more is given back.
const BUFFER_KEPT_MAX: usize = 64 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::testing::record;
    use brisk_engine::Keyspace;
    use brisk_engine::keyspace::{CutOptions, KeyHasher};

    fn member(worker: usize) -> Member {
        Member {
            client: record(worker as u64, worker),
            attachment: Arc::default(),
            ip: None,
            port: 0,
            acked: 0,
            acked_ms: 0,
            acked_durable: None,
        }
    }

    #[test]
    fn what_is_in_the_journal_goes_to_the_workers_with_replicas_from_their_snapshots_on() {
        let (feed, aof) = (Feed::new(2), Aof::new(2));
        let keyspace = Keyspace::new(1, KeyHasher::seeded(1, 2));
        let journal = Journal::default();
        let pump = |text: &str| -> Vec<usize> {
            let mut woken = Vec::new();
            journal.append_request(text.as_bytes());
            feed.pump(&journal, &aof, |worker| woken.push(worker));
            woken
        };
        assert!(pump("nobody follows").is_empty());
        feed.attach(member(1));
        assert!(pump("one waits").is_empty() && feed.replica_count() == 0 && feed.has_waiting());
        let options = CutOptions { compresses: false, queue_bytes_max: u64::MAX, dataset_bytes: 0 };
        let cut = keyspace.begin_cut(options).expect("no other");
        let transfer = Arc::new(Transfer::new(cut, journal.end().0));
        feed.join(&transfer, &journal);
        assert!(feed.replica_count() == 1 && !feed.has_waiting());
        let attachment = Arc::clone(&feed.members()[0].attachment);
        assert_eq!(attachment.from(), Some(23));
        feed.attach(member(0));
        assert_eq!(pump("one"), [1]);
        assert!(pump("two").is_empty());
        let part = feed.fetch(1);
        assert_eq!((part.from, &part.bytes[..], part.overflow), (23, &b"onetwo"[..], false));
        assert!(!feed.is_waiting(1) && !feed.is_waiting(0));
        feed.detach(&record(1, 1));
        assert!(pump("gone").is_empty() && feed.replica_count() == 0);
        // Nobody writes on for who is gone.
        assert!(!transfer.cut().is_over());
        attachment.leave();
        assert!(transfer.cut().is_over());
    }
}
