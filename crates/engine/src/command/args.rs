//! The arguments of one request, and the keys among them.

use crate::base::error::{CommandError, Result};
use crate::base::long_double::LongDouble;
use crate::base::number::parse_i64;
use crate::base::place::{DbIndex, Key, UnixMs};
use crate::command::cursor::Cursor;
use brisk_resp::{Span, Spans, request};

pub use crate::base::place::PreparedKey;

/// A cursor over a request's arguments. It starts after the command's name (for subcommands after
/// the subcommand's name). Arguments are slices of the connection's input; nothing is copied.
#[derive(Clone)]
pub struct Args<'a> {
    /// The connection's input, starting at this request's first byte.
    input: &'a [u8],
    spans: &'a Spans,
    /// This request's part of `spans`.
    list: &'a [Span],
    prepared: &'a [PreparedKey],
    next: usize,
    next_prepared: usize,
}

impl<'a> Args<'a> {
    /// Creates a cursor over the arguments `list`, which belong to `spans` and `input`. The cursor
    /// starts after the name.
    #[inline]
    pub fn new(
        input: &'a [u8],
        spans: &'a Spans,
        list: &'a [Span],
        prepared: &'a [PreparedKey],
    ) -> Args<'a> {
        Args { input, spans, list, prepared, next: 1, next_prepared: 0 }
    }

    /// Moves the cursor past the subcommand's name.
    pub fn skip_subcommand(&mut self) {
        self.next = 2;
    }

    /// Number of arguments, including the command's name.
    #[inline]
    pub fn argc(&self) -> usize {
        self.list.len()
    }

    /// Argument `index`; 0 is the command's name. Panics if there is no such argument.
    #[inline]
    pub fn argument(&self, index: usize) -> &'a [u8] {
        self.spans.bytes(self.input, self.list[index])
    }

    /// All arguments, starting with the name.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let (input, spans) = (self.input, self.spans);
        self.list.iter().map(move |span| spans.bytes(input, *span))
    }

    /// Appends the request, as it was sent if it has the form that this server writes. O(bytes).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match request::encoded_bytes(self.input, self.list) {
            Some(bytes) => out.extend_from_slice(bytes),
            None => request::encode_words(out, self.arguments()),
        }
    }

    /// The arguments not yet taken.
    pub fn rest(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let (input, spans) = (self.input, self.spans);
        self.list[self.next..].iter().map(move |span| spans.bytes(input, *span))
    }

    /// Number of arguments not yet taken.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.list.len() - self.next
    }

    /// The index of the next argument.
    #[inline]
    pub fn position(&self) -> usize {
        self.next
    }

    /// The next argument, without taking it.
    #[inline]
    pub fn peek(&self) -> Option<&'a [u8]> {
        (self.next < self.list.len()).then(|| self.argument(self.next))
    }

    /// Takes the next argument. Returns a syntax error if there is none.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        self.optional().ok_or(CommandError::Syntax)
    }

    /// Takes the next argument if there is one.
    #[inline]
    pub fn optional(&mut self) -> Option<&'a [u8]> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next argument if it equals `word`, ignoring case.
    #[inline]
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        self.next += usize::from(found);
        found
    }

    /// Takes the next `N` arguments. Returns a syntax error if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[&'a [u8]; N]> {
        let words = self.cursor().take().ok_or(CommandError::Syntax)?;
        self.next += N;
        Ok(words)
    }

    /// Takes the next argument as an integer.
    #[inline]
    pub fn integer(&mut self) -> Result<i64> {
        parse_i64(self.bytes()?).ok_or(CommandError::NotAnInteger)
    }

    /// Takes the next argument as the timeout of a blocking command: seconds with a fraction. The
    /// result is in milliseconds; 0 means no timeout.
    pub fn timeout_ms(&mut self, now: UnixMs) -> Result<u64> {
        let not_a_number = "ERR timeout is not a float or out of range";
        let word = self.bytes()?;
        let seconds = LongDouble::parse(word).ok_or_else(|| CommandError::text(not_a_number))?;
        let out_of_range = "ERR timeout is out of range";
        let ms = match seconds.thousandfold_ceil() {
            Some(ms) => ms,
            None if word.starts_with(b"-") => -1,
            None => return Err(CommandError::text(out_of_range)),
        };
        let ms = u64::try_from(ms).map_err(|_| CommandError::text("ERR timeout is negative"))?;
        if ms > 0 && now.0.saturating_add(ms) > i64::MAX as u64 {
            return Err(CommandError::text(out_of_range));
        }
        Ok(ms)
    }

    /// The last argument as a timeout. The cursor does not move.
    pub fn last_timeout_ms(&self, now: UnixMs) -> Result<u64> {
        let mut last = self.clone();
        last.next = self.list.len().saturating_sub(1).max(self.next);
        last.timeout_ms(now)
    }

    /// Takes the next argument as a 32-bit integer.
    pub fn int(&mut self) -> Result<i32> {
        i32::try_from(self.integer()?).map_err(|_| CommandError::IntOutOfRange)
    }

    /// Takes the next argument as the index of one of `count` databases.
    pub fn db(&mut self, count: u32) -> Result<DbIndex> {
        DbIndex::checked(self.int()?, count).ok_or(CommandError::DbOutOfRange)
    }

    /// The arguments not yet taken, for a parser that is also used to find the keys.
    pub fn cursor(&self) -> Cursor<impl Fn(usize) -> &'a [u8] + use<'a>> {
        let (input, spans, list) = (self.input, self.spans, self.list);
        Cursor::new(move |at| spans.bytes(input, list[at]), list.len(), self.next)
    }

    /// Continues at argument `index`, up to which a parser has moved its cursor.
    pub fn skip_to(&mut self, index: usize) {
        self.next = index.min(self.list.len());
    }

    /// Takes the next argument as a key.
    ///
    /// # Errors
    /// A syntax error if there is none; [`CommandError::UndeclaredKey`] if the search for keys did
    /// not find it.
    #[inline(always)]
    pub fn key(&mut self) -> Result<Key<'a>> {
        let index = self.next;
        if index >= self.list.len() {
            return Err(CommandError::Syntax);
        }
        let bytes = self.argument(index);
        self.next += 1;
        if let Some(prepared) = self.prepared.get(self.next_prepared)
            && prepared.index as usize == index
        {
            self.next_prepared += 1;
            return Ok(Key::prepared(bytes, prepared));
        }
        self.key_out_of_order(index)
    }

    #[cold]
    #[inline(never)]
    fn key_out_of_order(&mut self, index: usize) -> Result<Key<'a>> {
        let at = self.prepared.iter().position(|key| key.index as usize == index);
        let at = at.ok_or_else(CommandError::undeclared_key)?;
        self.next_prepared = at + 1;
        Ok(Key::prepared(self.argument(index), &self.prepared[at]))
    }

    /// Argument `index` as a key; the cursor does not move.
    ///
    /// # Errors
    /// [`CommandError::UndeclaredKey`] if the search for keys did not find it.
    pub fn key_at(&self, index: usize) -> Result<Key<'a>> {
        let prepared = self.prepared.iter().find(|key| key.index as usize == index);
        let prepared = prepared.ok_or_else(CommandError::undeclared_key)?;
        Ok(Key::prepared(self.argument(index), prepared))
    }

    /// The keys of the command, as its key specifications found them.
    pub fn keys(&self) -> impl Iterator<Item = Key<'a>> + Clone + use<'a> {
        let this = self.clone();
        self.prepared.iter().map(move |key| Key::prepared(this.argument(key.index as usize), key))
    }

    /// Calls `visit` with the keys of the command, as its key specifications found them.
    #[inline]
    pub fn each_key(&self, mut visit: impl FnMut(Key<'a>)) {
        for prepared in self.prepared {
            visit(Key::prepared(self.argument(prepared.index as usize), prepared));
        }
    }

    /// Returns an error if arguments are left.
    #[inline]
    pub fn end(&self) -> Result<()> {
        if self.next == self.list.len() { Ok(()) } else { Err(CommandError::Syntax) }
    }
}
