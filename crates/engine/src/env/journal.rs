//! The stream of changes: what write transactions leave to be repeated elsewhere, in their order.
//!
//! ```text
//!  transaction: encodes its effects ── slots held ── append ─┐
//!  transaction: …                                            ├─► bytes ─► take: file, replicas
//! ```
//!
//! A transaction appends while it still holds its slots, all of it at once, so the order of the stream is
//! one in which the changes can have happened, there are no gaps, and a [`Ticket`] is nothing but
//! the place in the stream behind the transaction. The lock is held for a copy of some hundred bytes.

use super::effect::Effects;
use crate::base::place::{DbIndex, Ticket};
use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A buffer for more is given back when it was taken.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The stream of a keyspace.
#[derive(Debug, Default)]
pub struct Journal {
    state: Mutex<State>,
    place: Place,
    /// The stream is another server's: what transactions of this one leave is not part of it. Changes only
    /// while all other threads stand still.
    is_relayed: AtomicBool,
}

/// Read by all threads with every reply, and written with every transaction: on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    /// Bytes of the stream so far.
    end: AtomicU64,
    /// Those that were taken.
    taken: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// What was not taken yet.
    bytes: Vec<u8>,
    /// The database of the last command; `None` if who reads on from here does not know it.
    db: Option<DbIndex>,
}

impl Journal {
    /// Appends a transaction. Its slots are held.
    pub(crate) fn append(&self, effects: &Effects) -> Ticket {
        let mut state = self.state.lock().even_poisoned();
        let State { bytes, db } = &mut *state;
        if self.is_relayed() {
            return self.end();
        }
        let before = bytes.len();
        effects.write(bytes, db);
        self.advance(bytes.len() - before)
    }

    /// Appends a command that changes nothing, such as a PING for replicas; not to the stream of another
    /// server.
    pub fn append_request(&self, request: &[u8]) {
        let mut state = self.state.lock().even_poisoned();
        if !self.is_relayed() {
            state.bytes.extend_from_slice(request);
            self.advance(request.len());
        }
    }

    /// Appends a part of the stream of another server, as it came; `None`, and nothing, if the stream is
    /// this server's own by now.
    pub fn relay(&self, part: &[u8]) -> Option<Ticket> {
        let mut state = self.state.lock().even_poisoned();
        self.is_relayed().then(|| {
            state.bytes.extend_from_slice(part);
            self.advance(part.len())
        })
    }

    /// From now on the stream is another server's, or this one's again. Only while all other threads
    /// stand still.
    pub fn set_relayed(&self, is_relayed: bool) {
        let mut state = self.state.lock().even_poisoned();
        self.is_relayed.store(is_relayed, Ordering::Relaxed);
        state.db = None;
    }

    /// Whether the stream is another server's.
    #[inline]
    pub(crate) fn is_relayed(&self) -> bool {
        self.is_relayed.load(Ordering::Relaxed)
    }

    /// The database that the stream has come to, if it is this server's own and has named one.
    pub fn database(&self) -> Option<DbIndex> {
        self.state.lock().even_poisoned().db
    }

    /// The lock is held.
    fn advance(&self, bytes: usize) -> Ticket {
        let end = self.place.end.load(Ordering::Relaxed) + bytes as u64;
        self.place.end.store(end, Ordering::Release);
        Ticket(end)
    }

    /// The place behind the latest transaction.
    #[inline]
    pub fn end(&self) -> Ticket {
        Ticket(self.place.end.load(Ordering::Acquire))
    }

    /// Whether there is something to take.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.place.taken.load(Ordering::Relaxed) < self.place.end.load(Ordering::Relaxed)
    }

    /// Puts what was not taken yet behind what is in `into`; where it begins in the stream.
    pub fn take(&self, into: &mut Vec<u8>) -> Ticket {
        let mut state = self.state.lock().even_poisoned();
        let end = self.place.end.load(Ordering::Relaxed);
        let from = end - state.bytes.len() as u64;
        if into.is_empty() {
            std::mem::swap(into, &mut state.bytes);
        } else {
            into.extend_from_slice(&state.bytes);
            state.bytes.clear();
        }
        state.bytes.shrink_to(KEPT_BYTES_MAX);
        self.place.taken.store(end, Ordering::Relaxed);
        Ticket(from)
    }

    /// The next command names its database: somebody reads on from here who does not know it.
    pub fn name_database(&self) {
        self.state.lock().even_poisoned().db = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(commands: &[(u32, &str)]) -> Effects {
        let mut effects = Effects::default();
        for (db, line) in commands {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            effects.push(DbIndex::of(*db), words.into_iter());
        }
        effects
    }

    /// The requests, one in a line.
    fn lines(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let words = |request: &str| {
            let words: Vec<&str> = request.split("\r\n").skip(2).step_by(2).collect();
            words.join(" ").trim_end().to_owned()
        };
        text.split('*').skip(1).map(words).collect()
    }

    #[test]
    fn the_stream_of_another_server_is_kept_as_it_came() {
        let journal = Journal::default();
        journal.append(&effects(&[(3, "DEL a")]));
        journal.set_relayed(true);
        let before = journal.end();
        assert_eq!(journal.append(&effects(&[(0, "SET own 1")])), before);
        journal.append_request(b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(journal.relay(b"as it came"), Some(Ticket(before.0 + 10)));
        journal.set_relayed(false);
        assert_eq!(journal.relay(b"too late"), None);
        journal.append(&effects(&[(3, "DEL b")]));
        let mut bytes = Vec::new();
        journal.take(&mut bytes);
        let text = String::from_utf8_lossy(&bytes[before.0 as usize..]).into_owned();
        assert!(text.starts_with("as it came*2\r\n$6\r\nSELECT"), "{text}");
    }

    #[test]
    fn transactions_follow_one_another_framed_and_with_their_databases() {
        let journal = Journal::default();
        assert!(!journal.has_news());
        let first = journal.append(&effects(&[(3, "DEL a"), (0, "DEL b")]));
        let second = journal.append(&effects(&[(0, "SET b 2")]));
        assert!(journal.has_news() && first < second && journal.end() == second);
        let mut bytes = Vec::new();
        assert_eq!(journal.take(&mut bytes), Ticket(0));
        assert_eq!(
            lines(&bytes),
            ["MULTI", "SELECT 3", "DEL a", "SELECT 0", "DEL b", "EXEC", "SET b 2"]
        );
        assert_eq!(bytes.len() as u64, second.0);
        assert!(!journal.has_news());
        journal.name_database();
        journal.append(&effects(&[(0, "SET b 3")]));
        let mut bytes = b"before ".to_vec();
        assert_eq!(journal.take(&mut bytes), second);
        assert_eq!(lines(&bytes), ["SELECT 0", "SET b 3"]);
        assert!(bytes.starts_with(b"before *"));
    }
}
