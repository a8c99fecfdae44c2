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

use crate::persistence::aof::state::Aof;
use brisk_engine::keyspace::Journal;
use brisk_reactor::Token;
use brisk_structures::poison::EvenPoisoned;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of the stream that a worker has not fetched yet, at most; beyond it its replicas are
/// dropped, since they could not be served.
const OUTBOX_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A session that follows the stream.
#[derive(Debug, Clone)]
pub struct Member {
    pub worker: usize,
    pub token: Token,
    pub ip: Option<IpAddr>,
    /// What it says it listens on; 0 if it said nothing.
    pub port: u16,
    /// The offset it acknowledged last, and when, in Unix ms; 0 before.
    pub acked: u64,
    pub acked_ms: u64,
    /// The offset up to which it said that its own append-only file is on its disk.
    pub acked_durable: Option<u64>,
}

/// The stream of the server.
pub struct Feed {
    state: Mutex<State>,
    outboxes: Box<[Outbox]>,
    replicas: AtomicUsize,
    /// How often a replica was sent a snapshot.
    synchronisations: AtomicU64,
    /// Bytes of snapshots in memory.
    snapshots: AtomicI64,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Emptied; what is about to leave.
    bytes: Vec<u8>,
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
            synchronisations: AtomicU64::new(0),
            snapshots: AtomicI64::new(0),
        }
    }

    /// The place in the stream that replicas go by; 0 before the first.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.synchronisations() == 0 { 0 } else { journal.end().0 }
    }

    /// How many sessions follow.
    pub fn replica_count(&self) -> usize {
        self.replicas.load(Ordering::Relaxed)
    }

    /// How often a replica was sent a snapshot.
    pub fn synchronisations(&self) -> u64 {
        self.synchronisations.load(Ordering::Relaxed)
    }

    /// Snapshots take so many bytes of memory more.
    pub fn note_snapshots(&self, change: i64) {
        self.snapshots.fetch_add(change, Ordering::Relaxed);
    }

    /// Bytes of memory that wait to be sent to replicas. O(workers).
    pub fn buffered(&self) -> u64 {
        let waiting = self.outboxes.iter().map(|outbox| outbox.len.load(Ordering::Relaxed) as u64);
        self.snapshots.load(Ordering::Relaxed).max(0).cast_unsigned() + waiting.sum::<u64>()
    }

    /// A session follows from here on; the place in the stream. Only while all other workers stand
    /// still, and behind [`Feed::pump`].
    pub fn attach(&self, member: Member, journal: &Journal) -> u64 {
        let mut state = self.state.lock().even_poisoned();
        debug_assert!(!journal.has_news(), "what was before is not for it");
        journal.name_database();
        state.members.push(member);
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
        self.replicas.store(state.members.len(), Ordering::Relaxed);
        journal.end().0
    }

    /// A session is gone.
    pub fn detach(&self, token: Token, worker: usize) {
        let mut state = lock(&self.state);
        state.members.retain(|member| (member.token, member.worker) != (token, worker));
        self.replicas.store(state.members.len(), Ordering::Relaxed);
    }

    /// A session tells how far it has come, and how far its append-only file if it has one.
    pub fn acknowledge(
        &self,
        (token, worker): (Token, usize),
        offset: u64,
        durable: Option<u64>,
        now_ms: u64,
    ) {
        let mut state = lock(&self.state);
        let is_it = |member: &&mut Member| (member.token, member.worker) == (token, worker);
        if let Some(member) = state.members.iter_mut().find(is_it) {
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
        if members.is_empty() {
            aof.take_from(journal);
            return;
        }
        let from = journal.take(bytes).0;
        if bytes.is_empty() {
            return;
        }
        aof.push(bytes);
        for (worker, outbox) in self.outboxes.iter().enumerate() {
            if members.iter().all(|member| member.worker != worker) {
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

/// A buffer for more is given back.
const BUFFER_KEPT_MAX: usize = 64 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(worker: usize) -> Member {
        let token = Token::from_u64(worker as u64);
        Member { worker, token, ip: None, port: 0, acked: 0, acked_ms: 0, acked_durable: None }
    }

    #[test]
    fn what_is_in_the_journal_goes_to_the_workers_with_replicas() {
        let (feed, journal, aof) = (Feed::new(2), Journal::default(), Aof::new(2));
        let pump = |text: &str| -> Vec<usize> {
            let mut woken = Vec::new();
            journal.append_request(text.as_bytes());
            feed.pump(&journal, &aof, |worker| woken.push(worker));
            woken
        };
        assert!(pump("nobody follows").is_empty());
        assert_eq!(feed.attach(member(1), &journal), 14);
        assert_eq!(pump("one"), [1]);
        assert!(pump("two").is_empty());
        let part = feed.fetch(1);
        assert_eq!((part.from, &part.bytes[..], part.overflow), (14, &b"onetwo"[..], false));
        assert!(!feed.is_waiting(1) && !feed.is_waiting(0));
        feed.detach(Token::from_u64(1), 1);
        assert!(pump("gone").is_empty() && feed.replica_count() == 0);
    }
}
