//! The history of the dataset to which the stream belongs. It determines which replicas may resume.
//!
//! A history has an id of 40 hexadecimal digits. A position in it is an *offset*, a number of bytes of its stream. A
//! replica uses the offsets of its primary, so its offset is valid with every server that follows the same primary.
//! Within the server, positions are tickets, which only grow, even if the history changes. The difference between
//! offsets and tickets changes when the history changes.

use brisk_engine::keyspace::Ticket;
use brisk_engine::random::Random;
use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// A replication offset received from another server or read from a file. Servers exchange offsets as signed
/// 64-bit integers. The constructors reject values above half of that range, so adding to an offset cannot
/// overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(u64);

impl Offset {
    /// The largest offset that is accepted.
    pub const MAX: u64 = 1 << 62;

    /// The offset with this number, unless it is too large.
    pub fn checked(number: u64) -> Option<Offset> {
        (number <= Offset::MAX).then_some(Offset(number))
    }

    /// Parses an offset from decimal digits.
    pub fn read(text: &[u8]) -> Option<Offset> {
        std::str::from_utf8(text).ok()?.parse().ok().and_then(Offset::checked)
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// The offset after `bytes` more bytes. This server has counted them itself, so the result may exceed `MAX`.
    #[must_use]
    pub fn after(self, bytes: u64) -> Offset {
        Offset(self.0.saturating_add(bytes).min(i64::MAX.cast_unsigned()))
    }
}

/// Number of digits of an id.
pub const ID_LEN: usize = 40;

/// The ids of the history, and the offset of its stream.
pub struct History {
    ids: Mutex<ReplicationIds>,
    /// Offset minus ticket. Both stay far below their maximum, so sums cannot overflow.
    shift: AtomicI64,
}

/// The ids with which replicas can resume on this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationIds {
    pub id: String,
    /// The history that this one continues.
    pub former: Option<FormerHistory>,
}

/// An earlier history whose beginning the current history shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerHistory {
    pub id: String,
    /// The offset after the last byte that both histories have in common.
    pub end: u64,
}

/// A new random id.
pub fn new_id(random: &mut Random) -> String {
    let mut digits = String::with_capacity(ID_LEN);
    while digits.len() < ID_LEN {
        digits.push_str(&format!("{:08x}", random.below(1 << 32)));
    }
    digits
}

/// True if `word` has the form of an id.
pub fn is_id(word: &[u8]) -> bool {
    word.len() == ID_LEN && word.iter().all(u8::is_ascii_hexdigit)
}

impl History {
    /// A new history.
    pub fn new(id: String) -> History {
        History { ids: Mutex::new(ReplicationIds { id, former: None }), shift: AtomicI64::new(0) }
    }

    pub fn ids(&self) -> ReplicationIds {
        self.ids.lock().even_poisoned().clone()
    }

    /// The offset of a position in the stream.
    #[inline]
    pub fn offset(&self, place: Ticket) -> u64 {
        place.0.saturating_add_signed(self.shift.load(Ordering::Relaxed))
    }

    /// The position of an offset in the stream. `None` for offsets before this server's start.
    #[inline]
    pub fn place(&self, offset: u64) -> Option<Ticket> {
        let place = i128::from(offset) - i128::from(self.shift.load(Ordering::Relaxed));
        u64::try_from(place).ok().map(Ticket)
    }

    /// True if a server with the first `offset` bytes of the history `id` has the dataset that this server had at that
    /// offset.
    pub fn shares(&self, id: &[u8], offset: u64) -> bool {
        let ids = self.ids.lock().even_poisoned();
        let is_former = |former: &FormerHistory| {
            former.id.as_bytes().eq_ignore_ascii_case(id) && offset <= former.end
        };
        ids.id.as_bytes().eq_ignore_ascii_case(id) || ids.former.as_ref().is_some_and(is_former)
    }

    /// Begins a history with a new id after the stream was dropped. No replica can resume. All other workers are
    /// quiesced.
    pub fn restart(&self, id: String) {
        *self.ids.lock().even_poisoned() = ReplicationIds { id, former: None };
    }

    /// Changes the id at the offset `end`, because this server has become a primary or its primary has just become one.
    /// All other workers are quiesced.
    pub fn rename(&self, id: String, end: u64) {
        let mut ids = self.ids.lock().even_poisoned();
        let former = std::mem::replace(&mut ids.id, id);
        ids.former = Some(FormerHistory { id: former, end });
    }

    /// Adopts another history. Its `offset` is at `place` in this server's stream. All other workers are quiesced.
    pub fn adopt(&self, ids: ReplicationIds, offset: Offset, place: Ticket) {
        *self.ids.lock().even_poisoned() = ids;
        let shift = offset.get().cast_signed().saturating_sub_unsigned(place.0);
        self.shift.store(shift, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_shared_up_to_the_offset_of_its_new_id() {
        let history = History::new("a".repeat(ID_LEN));
        let offset = Offset::checked(1_000_000).unwrap();
        history.adopt(ReplicationIds { id: "b".repeat(ID_LEN), former: None }, offset, Ticket(70));
        assert_eq!(history.offset(Ticket(75)), 1_000_005);
        assert_eq!(history.place(1_000_005), Some(Ticket(75)));
        assert_eq!((history.place(999_929), history.place(999_930)), (None, Some(Ticket(0))));
        history.rename("c".repeat(ID_LEN), 1_000_010);
        let shares = |id: &str, offset| history.shares(id.repeat(ID_LEN).as_bytes(), offset);
        assert!(shares("b", 1_000_010) && !shares("b", 1_000_011));
        assert!(shares("c", 1_000_011) && !shares("a", 0));
        history.restart("d".repeat(ID_LEN));
        assert!(!shares("c", 0) && !shares("b", 0) && shares("d", 0));
    }

    #[test]
    fn an_accepted_offset_leaves_room_for_further_bytes() {
        for (text, number) in [("0", 0), ("17", 17), ("4611686018427387904", Offset::MAX)] {
            assert_eq!(Offset::read(text.as_bytes()).map(Offset::get), Some(number));
        }
        let history = History::new("a".repeat(ID_LEN));
        for bad in [
            "4611686018427387905",
            "9223372036854775806",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "-1",
            "",
            "x",
        ] {
            assert_eq!(Offset::read(bad.as_bytes()), None, "{bad}");
        }
        let largest = Offset::checked(Offset::MAX).unwrap();
        history.adopt(ReplicationIds { id: "b".repeat(ID_LEN), former: None }, largest, Ticket(9));
        assert_eq!(history.offset(Ticket(10)), Offset::MAX + 1);
        // Replicas may request any offset.
        assert_eq!(history.place(Offset::MAX + 1), Some(Ticket(10)));
        assert_eq!(history.place(0), None);
        assert!(history.place(u64::MAX).is_some_and(|place| place > Ticket(Offset::MAX)));
        assert_eq!(largest.after(u64::MAX).get(), i64::MAX.cast_unsigned());
    }

    #[test]
    fn ids_are_forty_digits() {
        let id = new_id(&mut Random::seeded(7));
        assert!(is_id(id.as_bytes()) && id != new_id(&mut Random::seeded(8)));
        assert!(!is_id(b"?") && !is_id("g".repeat(ID_LEN).as_bytes()));
    }
}
