//! Finds an element by its text.
//!
//! A walk from entry to entry waits for one byte of each: the one that determines the entry's
//! length. The comparison must not add to that wait. If a text has the same length as the wanted
//! one, its last eight bytes are therefore compared first, since texts with equal beginnings are
//! more common than texts with equal ends.
//!
//! If several consecutive entries have the same length, the search assumes that the next one has
//! the same length too. The CPU then continues at the assumed position speculatively, before it has
//! read the real length. If lengths vary, these guesses would cost more than waiting, so they begin
//! only after several guesses in a row would have been right.

use super::codec::{END, SHORT, SHORT_MAX};
use super::{Item, ListPack, Pos, offset, pos};

/// After this many consecutive entries of one length, the search expects more of them.
const RUN_MIN: u32 = 4;

/// The end of a text, which is compared before the rest.
#[derive(Clone, Copy)]
struct Tail {
    word: u64,
    mask: u64,
}

impl Tail {
    fn of(text: &[u8]) -> Tail {
        let kept = text.len().min(8);
        let mut bytes = [0; 8];
        bytes[8 - kept..].copy_from_slice(&text[text.len() - kept..]);
        let mask = if kept == 0 { 0 } else { u64::MAX << (64 - 8 * kept) };
        Tail { word: u64::from_le_bytes(bytes), mask }
    }

    /// Returns true if the text that ends before `end` has this tail. The header precedes the first
    /// text, so eight bytes always exist.
    #[inline(always)]
    fn ends(self, bytes: &[u8], end: usize) -> bool {
        let last = bytes[..end].last_chunk::<8>();
        last.is_none_or(|last| u64::from_le_bytes(*last) & self.mask == self.word)
    }
}

impl ListPack {
    /// Returns the first entry at or after `from` whose text is `text`. Only every `skip + 1`th
    /// entry is compared: with 1, fields are searched and values are skipped.
    #[inline]
    #[must_use]
    pub fn find(&self, from: Pos, text: &[u8], skip: usize) -> Option<Pos> {
        self.find_counted(from, text, skip).map(|(at, _)| at)
    }

    /// Like [`ListPack::find`], and also returns how many entries were compared before that one.
    #[must_use]
    pub fn find_counted(&self, from: Pos, text: &[u8], skip: usize) -> Option<(Pos, usize)> {
        let wanted = Item::of(text);
        // The first byte of a matching short entry, or the end byte, with which no entry begins.
        let small = match wanted {
            Item::Int(number @ 0..=0x7f) => number as u8,
            _ => END,
        };
        let short = if text.len() < SHORT_MAX { SHORT | text.len() as u8 } else { END };
        let tail = Tail::of(text);
        let entries = &self.bytes[..self.end()];
        // A listpack that another server wrote may store integers as strings.
        let is_short = |at: usize, end: usize| {
            tail.ends(entries, end) && (text.len() <= 8 || entries[at + 1..end] == *text)
        };
        let (mut at, mut passed) = (offset(from), 0);
        let (mut last, mut run) = (END, 0);
        while let Some(&first) = entries.get(at) {
            run = if first == last { run + 1 } else { 0 };
            last = first;
            if run >= RUN_MIN && skip == 0 && (SHORT..0xc0).contains(&first) {
                let stride = usize::from(first & 0x3f) + 2;
                while entries.get(at) == Some(&first) {
                    if first == short && is_short(at, at + stride - 1) {
                        return Some((pos(at), passed));
                    }
                    passed += 1;
                    at += stride;
                }
                run = 0;
                continue;
            }
            let (is_wanted, next) = match first {
                0..SHORT => (first == small, at + 2),
                SHORT..0xc0 => {
                    let end = at + 1 + usize::from(first & 0x3f);
                    (first == short && is_short(at, end), end + 1)
                }
                _ => (self.is_other(at, wanted, text), self.after_other(at)),
            };
            if is_wanted {
                return Some((pos(at), passed));
            }
            passed += 1;
            at = next;
            for _ in 0..skip {
                if at < entries.len() {
                    at = self.after(at);
                }
            }
        }
        None
    }

    /// Returns true if the entry at `at`, which has a longer encoding, has the text `text`.
    /// `wanted` is the element for `text`.
    fn is_other(&self, at: usize, wanted: Item<'_>, text: &[u8]) -> bool {
        match (self.item_at(at), wanted) {
            (Item::Str(own), _) => own == text,
            (Item::Int(own), Item::Int(number)) => own == number,
            // A text that is not canonical decimal is never stored as an integer.
            (Item::Int(_), Item::Str(_)) => false,
        }
    }
}
