//! Which history of the dataset the stream belongs to, and what others may go on from.
//!
//! A history has a name of 40 hexadecimal digits, and a place in it is an *offset*: so many bytes of its
//! stream. A replica's offsets are its primary's, so that what it knows is of use with every server that
//! follows the same one. Within the server places are tickets, which only grow, whatever history it goes
//! over to; both differ by a number that changes when it does.

use brisk_engine::keyspace::Ticket;
use brisk_engine::random::Random;
use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Digits of a name.
pub const ID_LEN: usize = 40;

/// What the stream is called.
pub struct History {
    ids: Mutex<Ids>,
    /// Offset less ticket, wrapping.
    shift: AtomicU64,
}

/// The names that this server answers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    pub id: String,
    /// What it was called before, and up to where both are the same.
    pub former: Option<Former>,
}

/// A history that this one began as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    pub id: String,
    /// The offset behind the last byte that they share.
    pub end: u64,
}

/// A name that nobody has.
pub fn new_id(random: &mut Random) -> String {
    let mut digits = String::with_capacity(ID_LEN);
    while digits.len() < ID_LEN {
        digits.push_str(&format!("{:08x}", random.below(1 << 32)));
    }
    digits
}

/// Whether a word can be the name of a history.
pub fn is_id(word: &[u8]) -> bool {
    word.len() == ID_LEN && word.iter().all(u8::is_ascii_hexdigit)
}

impl History {
    /// A new one.
    pub fn new(id: String) -> History {
        History { ids: Mutex::new(Ids { id, former: None }), shift: AtomicU64::new(0) }
    }

    pub fn ids(&self) -> Ids {
        self.ids.lock().even_poisoned().clone()
    }

    /// The offset of a place in the stream.
    #[inline]
    pub fn offset(&self, place: Ticket) -> u64 {
        place.0.wrapping_add(self.shift.load(Ordering::Relaxed))
    }

    /// The place in the stream of an offset. Offsets of before this server's start have none, which
    /// shows in that it lies far behind any other.
    #[inline]
    pub fn place(&self, offset: u64) -> Ticket {
        Ticket(offset.wrapping_sub(self.shift.load(Ordering::Relaxed)))
    }

    /// Whether who has the first `offset` bytes of the history `id` has the same as this server had
    /// there.
    pub fn shares(&self, id: &[u8], offset: u64) -> bool {
        let ids = self.ids.lock().even_poisoned();
        let is_former =
            |former: &Former| former.id.as_bytes().eq_ignore_ascii_case(id) && offset <= former.end;
        ids.id.as_bytes().eq_ignore_ascii_case(id) || ids.former.as_ref().is_some_and(is_former)
    }

    /// What was kept of the stream is gone, so nobody may go on from before: it gets a name that nobody
    /// knows. Only while all other workers stand still.
    pub fn begin_anew(&self, id: String) {
        *self.ids.lock().even_poisoned() = Ids { id, former: None };
    }

    /// From the offset `end` on it is called `id`: this server is a primary now, or its primary has
    /// become one. Only while all other workers stand still.
    pub fn rename(&self, id: String, end: u64) {
        let mut ids = self.ids.lock().even_poisoned();
        let former = std::mem::replace(&mut ids.id, id);
        ids.former = Some(Former { id: former, end });
    }

    /// It is another one now, which has come to `offset` where this server's stream is at `place`. Only
    /// while all other workers stand still.
    pub fn adopt(&self, ids: Ids, offset: u64, place: Ticket) {
        *self.ids.lock().even_poisoned() = ids;
        self.shift.store(offset.wrapping_sub(place.0), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_shared_up_to_where_it_got_another_name() {
        let history = History::new("a".repeat(ID_LEN));
        history.adopt(Ids { id: "b".repeat(ID_LEN), former: None }, 1_000_000, Ticket(70));
        assert_eq!(history.offset(Ticket(75)), 1_000_005);
        assert_eq!(history.place(1_000_005), Ticket(75));
        history.rename("c".repeat(ID_LEN), 1_000_010);
        let shares = |id: &str, offset| history.shares(id.repeat(ID_LEN).as_bytes(), offset);
        assert!(shares("b", 1_000_010) && !shares("b", 1_000_011));
        assert!(shares("c", 1_000_011) && !shares("a", 0));
        history.begin_anew("d".repeat(ID_LEN));
        assert!(!shares("c", 0) && !shares("b", 0) && shares("d", 0));
    }

    #[test]
    fn names_are_forty_digits() {
        let id = new_id(&mut Random::seeded(7));
        assert!(is_id(id.as_bytes()) && id != new_id(&mut Random::seeded(8)));
        assert!(!is_id(b"?") && !is_id("g".repeat(ID_LEN).as_bytes()));
    }
}
