//! The stream: transactions come from workers in any order and leave in the order of their tickets.
//!
//! ```text
//!  worker 0 ─ sealed 7, 9 ─┐                                  ┌─ outbox of worker 0 ─ its replicas
//!  worker 1 ─ sealed 8 ────┴─ by ticket: 7 8 9 ─ as requests ─┴─ outbox of worker 1 ─ its replicas
//! ```
//!
//! Tickets are dense and taken while the slots are held, so a gap is a transaction whose worker is
//! between giving its slots free and its next look here: what follows waits for it. A transaction
//! of several commands is framed by MULTI and EXEC, and SELECT goes before a command in another
//! database than the one before.
//!
//! Without replicas nothing is collected: [`brisk_engine::effect::Hooks::PROPAGATE`] is armed with
//! the first, while all workers stand still, and disarmed some time after the last is gone.

use brisk_engine::effect::{Effect, Sealed};
use brisk_engine::keyspace::{DbIndex, Ticket};
use brisk_reactor::Token;
use brisk_resp::request;
use brisk_structures::poison::EvenPoisoned;
use std::collections::BTreeMap;
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
}

/// The stream of the server.
pub struct Feed {
    state: Mutex<State>,
    outboxes: Box<[Outbox]>,
    /// Bytes of the stream so far.
    offset: AtomicU64,
    replicas: AtomicUsize,
    /// How often a replica was sent a snapshot.
    synchronisations: AtomicU64,
    /// Bytes of snapshots in memory.
    snapshots: AtomicI64,
}

#[derive(Default)]
struct State {
    /// The ticket that comes next.
    next: u64,
    /// Transactions whose turn has not come. At most what workers seal between two looks, since who
    /// waits hands in before.
    early: BTreeMap<u64, Vec<Effect>>,
    /// The database of the last command.
    db: Option<DbIndex>,
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
            offset: AtomicU64::new(0),
            replicas: AtomicUsize::new(0),
            synchronisations: AtomicU64::new(0),
            snapshots: AtomicI64::new(0),
        }
    }

    /// How many bytes have left so far.
    pub fn offset(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
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

    /// A session follows from here on; the stream's offset. Only while all other workers stand
    /// still, with what they sealed handed in; `last` is the latest ticket.
    pub fn attach(&self, member: Member, last: Ticket) -> u64 {
        let mut state = lock(&self.state);
        if state.members.is_empty() {
            state.early.clear();
            state.next = last.0 + 1;
        }
        debug_assert!(state.early.is_empty() && state.next == last.0 + 1, "a ticket not handed in");
        // Whoever comes now does not know the database.
        state.db = None;
        state.members.push(member);
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
        self.replicas.store(state.members.len(), Ordering::Relaxed);
        self.offset()
    }

    /// A session is gone.
    pub fn detach(&self, token: Token, worker: usize) {
        let mut state = lock(&self.state);
        state.members.retain(|member| (member.token, member.worker) != (token, worker));
        self.replicas.store(state.members.len(), Ordering::Relaxed);
        if state.members.is_empty() {
            *state = State::default();
        }
    }

    /// A session tells how far it has come.
    pub fn acknowledge(&self, token: Token, worker: usize, offset: u64, now_ms: u64) {
        let mut state = lock(&self.state);
        let is_it = |member: &&mut Member| (member.token, member.worker) == (token, worker);
        if let Some(member) = state.members.iter_mut().find(is_it) {
            (member.acked, member.acked_ms) = (offset, now_ms);
        }
    }

    /// The sessions that follow. O(their number).
    pub fn members(&self) -> Vec<Member> {
        lock(&self.state).members.clone()
    }

    /// Takes transactions over; `wake` is called for each worker with something to fetch.
    pub fn submit(&self, sealed: impl Iterator<Item = Sealed>, wake: impl FnMut(usize)) {
        let mut state = lock(&self.state);
        for Sealed { ticket, effects } in sealed {
            // Those of the time before the first replica are of no use.
            if !state.members.is_empty() && ticket.0 >= state.next {
                state.early.insert(ticket.0, effects);
            }
        }
        let State { next, early, db, bytes, .. } = &mut *state;
        while let Some(effects) = early.remove(next) {
            write_transaction(bytes, db, &effects);
            *next += 1;
        }
        self.send(&mut state, wake);
    }

    /// Puts a PING into the stream, so that replicas know that it lives.
    pub fn ping(&self, wake: impl FnMut(usize)) {
        let mut state = lock(&self.state);
        if !state.members.is_empty() {
            request::encode(&mut state.bytes, &["PING"]);
            self.send(&mut state, wake);
        }
    }

    /// Puts what has collected into the outboxes.
    fn send(&self, state: &mut State, mut wake: impl FnMut(usize)) {
        if state.bytes.is_empty() {
            return;
        }
        let from = self.offset();
        self.offset.store(from + state.bytes.len() as u64, Ordering::Relaxed);
        for (worker, outbox) in self.outboxes.iter().enumerate() {
            if state.members.iter().all(|member| member.worker != worker) {
                continue;
            }
            let mut pending = lock(&outbox.pending);
            if pending.bytes.is_empty() {
                pending.from = from;
            }
            if pending.bytes.len() + state.bytes.len() > OUTBOX_BYTES_MAX {
                pending.overflow = true;
            } else {
                pending.bytes.extend_from_slice(&state.bytes);
            }
            if outbox.len.swap(pending.bytes.len().max(1), Ordering::Release) == 0 {
                wake(worker);
            }
        }
        state.bytes.clear();
        state.bytes.shrink_to(BUFFER_KEPT_MAX);
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

/// One transaction as requests.
fn write_transaction(out: &mut Vec<u8>, db: &mut Option<DbIndex>, effects: &[Effect]) {
    let framed = effects.len() > 1;
    if framed {
        request::encode(out, &["MULTI"]);
    }
    for effect in effects {
        if db.replace(effect.db) != Some(effect.db) {
            request::encode(out, &["SELECT", &effect.db.0.to_string()]);
        }
        request::encode(out, &effect.words);
    }
    if framed {
        request::encode(out, &["EXEC"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(ticket: u64, commands: &[(u32, &str)]) -> Sealed {
        let effect = |(db, line): &(u32, &str)| Effect {
            db: DbIndex(*db),
            words: line.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
        };
        Sealed { ticket: Ticket(ticket), effects: commands.iter().map(effect).collect() }
    }

    fn member(worker: usize) -> Member {
        let token = Token::from_u64(worker as u64);
        Member { worker, token, ip: None, port: 0, acked: 0, acked_ms: 0 }
    }

    /// The stream's requests, one in a line.
    fn lines(part: &Part) -> Vec<String> {
        let text = String::from_utf8_lossy(&part.bytes).into_owned();
        let requests = text.split('*').skip(1);
        requests
            .map(|request| {
                let words: Vec<&str> = request.split("\r\n").skip(2).step_by(2).collect();
                words.join(" ").trim_end().to_owned()
            })
            .collect()
    }

    #[test]
    fn transactions_leave_in_the_order_of_their_tickets() {
        let feed = Feed::new(2);
        assert_eq!(feed.attach(member(1), Ticket(6)), 0);
        let mut woken = Vec::new();
        feed.submit([sealed(8, &[(0, "SET b 2")])].into_iter(), |worker| woken.push(worker));
        assert!(!feed.is_waiting(1) && woken.is_empty());
        // One from before the replica came is not its business.
        let late = [sealed(6, &[(0, "SET z 0")]), sealed(7, &[(3, "DEL a"), (0, "DEL b")])];
        feed.submit(late.into_iter(), |worker| woken.push(worker));
        assert_eq!(woken, [1]);
        let part = feed.fetch(1);
        assert_eq!(
            lines(&part),
            ["MULTI", "SELECT 3", "DEL a", "SELECT 0", "DEL b", "EXEC", "SET b 2"]
        );
        assert_eq!((part.from, feed.offset()), (0, part.bytes.len() as u64));
        assert!(!feed.is_waiting(1) && !feed.is_waiting(0));
    }

    #[test]
    fn a_new_replica_is_told_the_database() {
        let feed = Feed::new(1);
        feed.attach(member(0), Ticket(0));
        feed.submit([sealed(1, &[(2, "SET a 1")])].into_iter(), |_| {});
        let seen = feed.fetch(0).bytes.len() as u64;
        let second = Member { token: Token::from_u64(9), ..member(0) };
        assert_eq!(feed.attach(second, Ticket(1)), seen);
        feed.submit([sealed(2, &[(2, "SET a 2")])].into_iter(), |_| {});
        feed.ping(|_| {});
        let part = feed.fetch(0);
        assert_eq!(
            (part.from, lines(&part)),
            (seen, vec!["SELECT 2".to_owned(), "SET a 2".to_owned(), "PING".to_owned()])
        );
    }

    #[test]
    fn without_replicas_nothing_is_kept() {
        let feed = Feed::new(1);
        feed.submit([sealed(5, &[(0, "SET a 1")])].into_iter(), |_| panic!("nobody follows"));
        feed.attach(member(0), Ticket(5));
        feed.detach(Token::from_u64(0), 0);
        feed.submit([sealed(6, &[(0, "SET a 1")])].into_iter(), |_| panic!("nobody follows"));
        feed.ping(|_| panic!("nobody follows"));
        assert_eq!((feed.offset(), feed.replica_count()), (0, 0));
    }
}
