//! The stream of changes: the effects of write transactions in order, for replicas and the append-only
//! file.
//!
//! ```text
//!  transaction: encodes its effects ── slots held ── append ─┐
//!  transaction: …                                            ├─► bytes ─► take: file, replicas
//! ```
//!
//! A transaction appends all its effects in one step while it still holds its slots. The order of the stream is
//! therefore an order in which the changes can have happened, and there are no gaps. A [`Ticket`] is the offset in the
//! stream after the transaction. The lock is held while a few hundred bytes are copied.

use super::effect::{Effects, select};
use super::tap::{TapId, TapOverflow, Taps};
use crate::base::place::{DbIndex, SlotId, Ticket};
use crate::base::slot_set::SlotSet;
use brisk_structures::poison::EvenPoisoned;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Capacity in bytes above which a buffer is not kept after it was taken.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The stream of a keyspace.
#[derive(Debug, Default)]
pub struct Journal {
    state: Mutex<JournalState>,
    place: StreamEnd,
    /// True if the stream belongs to another server, so that transactions of this server are not
    /// part of it. Changes only during quiescence.
    is_relayed: AtomicBool,
}

/// The end of the stream. All threads read it with every reply, and every transaction writes it, so it has its own
/// cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct StreamEnd {
    /// The length of the stream in bytes.
    end: AtomicU64,
    /// The offset up to which the stream was taken.
    taken: AtomicU64,
}

#[derive(Debug, Default)]
struct JournalState {
    /// The bytes that have not been taken yet.
    bytes: Vec<u8>,
    /// The parts that differ in the append-only file.
    edits: Vec<AofEdit>,
    /// The database of the last command; `None` if a reader that starts here does not know it.
    db: Option<DbIndex>,
    taps: Taps,
}

/// A part of the stream that differs in the append-only file. The file contains only executed commands, in the
/// one form that its readers accept. The stream of another server keeps every byte, because offsets count them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AofEdit {
    /// First byte and length, within the bytes taken from the stream.
    pub at: usize,
    pub len: usize,
    /// The replacement in the file; empty if the file omits the part.
    pub instead: Vec<u8>,
}

impl AofEdit {
    /// Appends `part` to `out` in the form of the file. O(bytes).
    pub fn apply(edits: &[AofEdit], part: &[u8], out: &mut Vec<u8>) {
        let mut from = 0;
        for edit in edits {
            out.extend_from_slice(&part[from..edit.at]);
            out.extend_from_slice(&edit.instead);
            from = edit.at + edit.len;
        }
        out.extend_from_slice(&part[from..]);
    }
}

impl Journal {
    /// Appends a transaction. Its slots are held. `slots` contains all slots that it changed, and may contain slots
    /// that it only read.
    pub(crate) fn append(
        &self,
        effects: &Effects,
        slots: impl Iterator<Item = SlotId> + Clone,
    ) -> Ticket {
        let mut state = self.state.lock().even_poisoned();
        let JournalState { bytes, db, taps, .. } = &mut *state;
        if self.is_relayed() {
            return self.end();
        }
        let before = bytes.len();
        effects.write(bytes, db);
        if !taps.is_empty() {
            taps.note(effects, slots);
        }
        self.advance(bytes.len() - before)
    }

    /// Like [`Journal::append`], for a transaction of one command, which `encode` appends. Returns `None` and appends
    /// nothing if the transaction has to be copied for other readers.
    #[inline]
    pub(crate) fn append_command(
        &self,
        own: DbIndex,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Ticket> {
        let mut state = self.state.lock().even_poisoned();
        let JournalState { bytes, db, taps, .. } = &mut *state;
        if self.is_relayed() {
            return Some(self.end());
        }
        if !taps.is_empty() {
            return None;
        }
        let before = bytes.len();
        select(bytes, db, own);
        encode(bytes);
        Some(self.advance(bytes.len() - before))
    }

    /// Appends a command that changes nothing, such as a PING for replicas. A stream of another
    /// server is not changed. Returns the offsets at which the command begins and ends. Both are
    /// the end of the stream if nothing was appended.
    pub fn append_request(&self, request: &[u8]) -> Range<Ticket> {
        let mut state = self.state.lock().even_poisoned();
        let begin = self.end();
        if self.is_relayed() {
            return begin..begin;
        }
        state.bytes.extend_from_slice(request);
        begin..self.advance(request.len())
    }

    /// Appends a part of another server's stream unchanged. Returns `None` and appends nothing if
    /// the stream already belongs to this server. The append-only file gets the same bytes, or
    /// `instead`.
    pub fn relay(&self, part: &[u8], instead: Option<&[u8]>) -> Option<Ticket> {
        let mut state = self.state.lock().even_poisoned();
        self.is_relayed().then(|| {
            let JournalState { bytes, edits, .. } = &mut *state;
            if let Some(instead) = instead {
                match edits.last_mut().filter(|last| last.at + last.len == bytes.len()) {
                    Some(last) => {
                        last.len += part.len();
                        last.instead.extend_from_slice(instead);
                    }
                    None => edits.push(AofEdit {
                        at: bytes.len(),
                        len: part.len(),
                        instead: instead.to_vec(),
                    }),
                }
            }
            bytes.extend_from_slice(part);
            self.advance(part.len())
        })
    }

    /// Sets whether the stream belongs to another server. Call it only during quiescence.
    pub fn set_relayed(&self, is_relayed: bool) {
        let mut state = self.state.lock().even_poisoned();
        self.is_relayed.store(is_relayed, Ordering::Relaxed);
        state.db = None;
    }

    /// Reports whether the stream belongs to another server.
    #[inline]
    pub(crate) fn is_relayed(&self) -> bool {
        self.is_relayed.load(Ordering::Relaxed)
    }

    /// The database of the last command, if the stream is this server's own and has named one.
    pub fn database(&self) -> Option<DbIndex> {
        self.state.lock().even_poisoned().db
    }

    /// Advances the end of the stream by `bytes`, and returns the new end. The caller holds the lock.
    fn advance(&self, bytes: usize) -> Ticket {
        let end = self.place.end.load(Ordering::Relaxed) + bytes as u64;
        self.place.end.store(end, Ordering::Release);
        Ticket(end)
    }

    /// The offset after the latest transaction.
    #[inline]
    pub fn end(&self) -> Ticket {
        Ticket(self.place.end.load(Ordering::Acquire))
    }

    /// Reports whether there are bytes that have not been taken.
    #[inline]
    pub fn has_untaken(&self) -> bool {
        self.place.taken.load(Ordering::Relaxed) < self.place.end.load(Ordering::Relaxed)
    }

    /// Appends the bytes not taken yet to `into`, and their edits for the append-only file to `edits`.
    /// Returns the offset in the stream at which these bytes begin.
    pub fn take(&self, into: &mut Vec<u8>, edits: &mut Vec<AofEdit>) -> Ticket {
        let mut state = self.state.lock().even_poisoned();
        let end = self.place.end.load(Ordering::Relaxed);
        let from = end - state.bytes.len() as u64;
        if !state.edits.is_empty() {
            let before = into.len();
            let moved = |edit: AofEdit| AofEdit { at: edit.at + before, ..edit };
            edits.extend(std::mem::take(&mut state.edits).into_iter().map(moved));
        }
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

    /// From now on, copies each transaction that changes one of `slots` for a separate reader. At most `bytes_max`
    /// bytes may wait for the reader. The stream of another server is not copied. O(1).
    pub fn begin_tap(&self, slots: SlotSet, bytes_max: usize) -> TapId {
        self.state.lock().even_poisoned().taps.begin(slots, bytes_max)
    }

    /// Appends the bytes of a tap to `into`: whole transactions, in their order.
    ///
    /// # Errors
    /// The tap has dropped transactions because the reader was too slow.
    pub fn take_tapped(&self, tap: TapId, into: &mut Vec<u8>) -> Result<(), TapOverflow> {
        self.state.lock().even_poisoned().taps.take(tap, into)
    }

    /// Ends a tap and drops the bytes that have not been taken.
    pub fn end_tap(&self, tap: TapId) {
        self.state.lock().even_poisoned().taps.end(tap);
    }

    /// Makes the next command name its database, because a new reader starts here.
    pub fn name_database(&self) {
        self.state.lock().even_poisoned().db = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_resp::request;

    fn effects(commands: &[(u32, &str)]) -> Effects {
        let mut effects = Effects::default();
        for (db, line) in commands {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            effects.push(DbIndex::of(*db), words.into_iter());
        }
        effects
    }

    fn append(journal: &Journal, commands: &[(u32, &str)]) -> Ticket {
        journal.append(&effects(commands), std::iter::empty())
    }

    /// The requests, one per line.
    fn lines(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let words = |request: &str| {
            let words: Vec<&str> = request.split("\r\n").skip(2).step_by(2).collect();
            words.join(" ").trim_end().to_owned()
        };
        text.split('*').skip(1).map(words).collect()
    }

    #[test]
    fn the_stream_of_another_server_is_kept_unchanged() {
        let journal = Journal::default();
        append(&journal, &[(3, "DEL a")]);
        journal.set_relayed(true);
        let before = journal.end();
        assert_eq!(append(&journal, &[(0, "SET own 1")]), before);
        assert_eq!(journal.append_request(b"*1\r\n$4\r\nPING\r\n"), before..before);
        assert_eq!(journal.relay(b"as it came", None), Some(Ticket(before.0 + 10)));
        journal.set_relayed(false);
        assert_eq!(journal.relay(b"too late", None), None);
        append(&journal, &[(3, "DEL b")]);
        let mut bytes = Vec::new();
        journal.take(&mut bytes, &mut Vec::new());
        let text = String::from_utf8_lossy(&bytes[before.0 as usize..]).into_owned();
        assert!(text.starts_with("as it came*2\r\n$6\r\nSELECT"), "{text}");
    }

    #[test]
    fn the_file_can_get_another_form_and_the_stream_gets_every_byte() {
        let journal = Journal::default();
        journal.set_relayed(true);
        for (part, instead) in [
            (&b"one "[..], None),
            (b"not executed ", Some(&b""[..])),
            (b"nor this ", Some(b"")),
            (b"inline ", Some(b"array ")),
            (b"two ", None),
            (b"last", Some(b"")),
        ] {
            journal.relay(part, instead);
        }
        let (mut bytes, mut edits) = (b"before ".to_vec(), Vec::new());
        journal.take(&mut bytes, &mut edits);
        assert_eq!(bytes, b"before one not executed nor this inline two last");
        assert_eq!(edits.len(), 2);
        let mut file = Vec::new();
        AofEdit::apply(&edits, &bytes, &mut file);
        assert_eq!(file, b"before one array two ");
        journal.relay(b"next", None);
        edits.clear();
        journal.take(&mut bytes, &mut edits);
        assert!(edits.is_empty() && bytes.ends_with(b"lastnext"));
    }

    #[test]
    fn transactions_follow_one_another_framed_and_with_their_databases() {
        let journal = Journal::default();
        assert!(!journal.has_untaken());
        let first = append(&journal, &[(3, "DEL a"), (0, "DEL b")]);
        let second = append(&journal, &[(0, "SET b 2")]);
        assert!(journal.has_untaken() && first < second && journal.end() == second);
        let mut bytes = Vec::new();
        assert_eq!(journal.take(&mut bytes, &mut Vec::new()), Ticket(0));
        assert_eq!(
            lines(&bytes),
            ["MULTI", "SELECT 3", "DEL a", "SELECT 0", "DEL b", "EXEC", "SET b 2"]
        );
        assert_eq!(bytes.len() as u64, second.0);
        assert!(!journal.has_untaken());
        journal.name_database();
        append(&journal, &[(0, "SET b 3")]);
        let mut bytes = b"before ".to_vec();
        assert_eq!(journal.take(&mut bytes, &mut Vec::new()), second);
        assert_eq!(lines(&bytes), ["SELECT 0", "SET b 3"]);
        assert!(bytes.starts_with(b"before *"));
    }

    #[test]
    fn a_single_command_is_appended_like_its_effects_unless_a_tap_needs_them() {
        let (one, other) = (Journal::default(), Journal::default());
        for (db, line) in [(3, "SET a 1"), (3, "DEL a"), (0, "INCR b")] {
            let expected = append(&one, &[(db, line)]);
            let words: Vec<&str> = line.split(' ').collect();
            let ticket = other.append_command(DbIndex::of(db), |out| request::encode(out, &words));
            assert_eq!(ticket, Some(expected));
        }
        let taken = |journal: &Journal| {
            let mut bytes = Vec::new();
            journal.take(&mut bytes, &mut Vec::new());
            bytes
        };
        assert_eq!(taken(&other), taken(&one));
        let append_ping =
            || other.append_command(DbIndex::FIRST, |out| request::encode(out, &["PING"]));
        let (end, tap) = (other.end(), other.begin_tap(std::iter::empty().collect(), 1000));
        assert_eq!(append_ping(), None);
        other.end_tap(tap);
        other.set_relayed(true);
        assert_eq!(append_ping(), Some(end));
        assert!(!other.has_untaken() && taken(&other).is_empty());
    }

    #[test]
    fn a_tap_has_the_transactions_that_changed_one_of_its_slots() {
        let journal = Journal::default();
        let slots = |slots: &[u16]| -> Vec<SlotId> {
            slots.iter().map(|slot| SlotId::new(*slot)).collect()
        };
        let append = |commands: &[(u32, &str)], changed: &[u16]| {
            journal.append(&effects(commands), slots(changed).into_iter())
        };
        let taken = |tap| {
            let mut bytes = Vec::new();
            journal.take_tapped(tap, &mut bytes).map(|()| lines(&bytes))
        };
        append(&[(0, "SET before 1")], &[1]);
        let low = journal.begin_tap(slots(&[1, 2]).into_iter().collect(), 1000);
        let high = journal.begin_tap(slots(&[9]).into_iter().collect(), 60);
        append(&[(0, "SET a 1")], &[1]);
        append(&[(3, "SET b 1")], &[5]);
        append(&[(0, "SET c 1"), (0, "SET d 1")], &[2, 9]);
        append(&[(0, "PUBLISH c m")], &[]);
        assert_eq!(
            taken(low).unwrap(),
            ["SELECT 0", "SET a 1", "MULTI", "SET c 1", "SET d 1", "EXEC"]
        );
        assert_eq!(taken(low).unwrap(), [""; 0]);
        assert_eq!(taken(high), Err(TapOverflow));
        append(&[(0, "DEL c")], &[9, 2]);
        assert_eq!(
            (taken(high), taken(low).unwrap()),
            (Err(TapOverflow), vec!["DEL c".to_owned()])
        );
        journal.end_tap(low);
        append(&[(0, "DEL a")], &[1]);
        assert_eq!(taken(low).unwrap(), [""; 0]);
    }
}
