//! Requests as the server receives them: RESP arrays of bulk strings, and inline lines. [`encode`]
//! writes them, as clients and replication streams do.
//!
//! The caller holds a connection's unread bytes in one slice whose first byte is a request's first
//! byte, and calls [`RequestDecoder::decode`] until it says [`Step::Incomplete`]. Arguments come
//! out as [`Span`]s of that slice; nothing is copied, except inline arguments with quotes, whose
//! unescaped form is kept in [`Spans`] beside the list.
//!
//! ```text
//!  *2\r\n $3\r\nGET\r\n $3\r\nkey\r\n  *1\r\n $4\r\nPI
//!  |           \_/           \_/     |               |
//!  input       spans 0, 1            input of the    Incomplete { need_hint: 4 }
//!  of call 1                         next call
//! ```
//!
//! Rules, as a Redis server applies them
//!  1. Lengths are canonical integers: no plus, no leading zero, no spaces.
//!     `*0` and `*-n` are empty requests.
//!  2. The byte after a header's `\r` and the two after an argument are skipped, whatever they are.
//!  3. A header's end is the first `\r`, a line's the first `\n`; a NUL byte hides everything after
//!     it, so such a line never ends and runs into limit 4.
//!  4. The end must stand among the first `inline_bytes_max + 1` bytes. Redis applies this per
//!     network read, so whether a longer line that arrives at once passes depends on timing there;
//!     here the answer is always the one given when bytes arrive singly.
//!
//! The answer never depends on how the bytes were cut into reads. An incomplete request is not
//! parsed again from its start: its place and spans are kept in the decoder (a small one is parsed
//! again, see `REPARSE_BYTES_MAX`), so the whole is O(bytes) however it arrives.
//!
//! Memory: spans are recorded only for arguments whose bytes are there, 16 bytes for at least 6
//! bytes of input; hence what bounds the caller's input buffer bounds this too.

mod encode;
mod inline;
#[cfg(test)]
mod tests;

pub use encode::{encode, is_encoded};

use memchr::memchr2;

use crate::error::ProtocolError;
use crate::number::canonical_i64;

/// Spans of an incomplete request that memory is reserved for at a time, at least.
const FOUND_MIN: usize = 16;
/// Room for so many spans is kept from one incomplete request to the next.
const FOUND_KEPT_MAX: usize = 64;

/// Arguments a client may send before it has authenticated.
const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;
/// Bytes per argument a client may send before it has authenticated.
const UNAUTHENTICATED_BULK_BYTES_MAX: u64 = 16 * 1024;
/// An incomplete request not longer than this leaves no state behind and is parsed again when more
/// arrives. Most requests cut by the end of a read are this short, and state costs an allocation.
const REPARSE_BYTES_MAX: usize = 256;
/// Headers with more digits than this leave the fast path. Nine digits cannot overflow.
const SHORT_DIGITS_MAX: usize = 9;
/// The least value `Limits::inline_bytes_max` can have: any header of the fast path passes.
const INLINE_BYTES_MAX_LEAST: usize = 16;
/// The fewest bytes an argument takes on the wire: `$0\r\n\r\n`.
const ARGUMENT_BYTES_MIN: usize = 6;

const _: () = assert!(SHORT_DIGITS_MAX + 1 < INLINE_BYTES_MAX_LEAST && SHORT_DIGITS_MAX <= 9);

/// The words of a line that is written as inline requests are, with the same quotes; `None` if
/// quotes do not close or text follows a closing quote. O(line).
#[must_use]
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut spans = Spans::new();
    inline::split(line, &mut spans).ok()?;
    Some(spans.as_slice().iter().map(|span| spans.bytes(line, *span).to_vec()).collect())
}

/// What a connection may send at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest argument in bytes (`proto-max-bulk-len`); `u64::MAX` for the link to a primary.
    pub bulk_bytes_max: u64,
    /// Most arguments of one request. Redis 7: `i32::MAX`; before 7: 1,048,576.
    pub multibulk_max: i64,
    /// Longest inline request and longest header, in bytes; at least 16. Redis: 64 KiB.
    pub inline_bytes_max: usize,
    /// False while the connection still has to authenticate:
    /// at most 10 arguments of at most 16 KiB.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: 512 * 1024 * 1024,
            multibulk_max: i64::from(i32::MAX),
            inline_bytes_max: 64 * 1024,
            authenticated: true,
        }
    }
}

impl Limits {
    /// The longest argument that passes now.
    #[inline]
    fn bulk_bytes_now(&self) -> u64 {
        if self.authenticated {
            self.bulk_bytes_max
        } else {
            self.bulk_bytes_max.min(UNAUTHENTICATED_BULK_BYTES_MAX)
        }
    }

    /// The most arguments that pass now.
    #[inline]
    fn arguments_now(&self) -> i64 {
        if self.authenticated {
            self.multibulk_max
        } else {
            self.multibulk_max.min(UNAUTHENTICATED_ARGUMENTS_MAX)
        }
    }
}

/// Where an argument's bytes are; [`Spans::bytes`] fetches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset in the input, or in the unescaped bytes if `UNESCAPED` is set.
    start: usize,
    len: usize,
}

/// Set in `Span::start` when the span refers to `Spans::unescaped`. Slices never reach this length.
const UNESCAPED: usize = 1 << (usize::BITS - 1);

impl Span {
    /// Length of the argument in bytes.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a span is a place, not a container")]
    pub fn len(self) -> usize {
        self.len
    }

    /// Offset from the request's first byte; `None` if the argument was unescaped and is no slice
    /// of the input.
    #[inline]
    #[must_use]
    pub fn offset(self) -> Option<usize> {
        (self.start & UNESCAPED == 0).then_some(self.start)
    }
}

/// Arguments of the requests decoded since the last [`clear`](Self::clear),
/// one request after the other.
#[derive(Debug, Default)]
pub struct Spans {
    list: Vec<Span>,
    /// Inline arguments that had quotes, unescaped.
    unescaped: Vec<u8>,
}

impl Spans {
    /// An empty list; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new(), unescaped: Vec::new() }
    }

    /// Forgets all arguments, keeping the memory. Call once per batch of requests.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.unescaped.clear();
    }

    /// Gives back memory beyond `arguments_max` arguments (and as many unescaped bytes), so that
    /// one huge request does not stay paid for.
    #[inline]
    pub fn shrink(&mut self, arguments_max: usize) {
        if self.list.capacity() > arguments_max || self.unescaped.capacity() > arguments_max {
            self.list.shrink_to(arguments_max);
            self.unescaped.shrink_to(arguments_max);
        }
    }

    /// All arguments in order of arrival.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Span] {
        &self.list
    }

    /// Number of arguments.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is no argument.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds an argument of `len` bytes that begins at byte `start` of the input, for requests that
    /// are put together rather than decoded.
    pub fn push(&mut self, start: usize, len: usize) {
        self.list.push(Span { start: start & !UNESCAPED, len });
    }

    /// The bytes of an argument. `input` starts where it started in the `decode` call that gave the
    /// span; a span that does not belong to it gives an empty or a wrong slice, never a panic.
    /// O(1).
    #[inline]
    #[must_use]
    pub fn bytes<'a>(&'a self, input: &'a [u8], span: Span) -> &'a [u8] {
        let (from, start) = if span.start & UNESCAPED == 0 {
            (input, span.start)
        } else {
            (self.unescaped.as_slice(), span.start & !UNESCAPED)
        };
        from.get(start..start.wrapping_add(span.len)).unwrap_or_default()
    }
}

/// What one call of [`RequestDecoder::decode`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A whole request: its `argc` spans (at least one) were appended,
    /// and it took `consumed` bytes.
    Request {
        /// Bytes of the request.
        consumed: usize,
        /// Number of arguments, the command's name included.
        argc: usize,
    },
    /// The request does not end here; nothing was appended and nothing is consumed. Call again with
    /// the same bytes and more behind them.
    Incomplete {
        /// At least this many bytes are missing. A client can claim as much as the limits allow: a
        /// hint for reserving, to be capped.
        need_hint: usize,
    },
    /// `*0`, `*-1` or a blank line: nothing to run, nothing to answer.
    Empty {
        /// Bytes to skip.
        consumed: usize,
    },
}

/// Cuts requests out of one connection's bytes. Holds state only within an incomplete request.
#[derive(Debug, Default)]
pub struct RequestDecoder {
    /// Bytes of the current request already understood; 0 if nothing is kept.
    at: usize,
    /// Bytes behind `at` known to hold no line end.
    searched: usize,
    /// Arguments still to come, if the count has been read.
    remaining: usize,
    /// Length of the argument whose body is awaited at `at`.
    body: Option<usize>,
    /// Arguments found so far.
    found: Vec<Span>,
}

/// The end of a header or line, or why there is none.
enum Line {
    /// The end mark is at this offset.
    EndsAt(usize),
    Open,
    TooLong,
}

impl RequestDecoder {
    /// A decoder at a request's start; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { at: 0, searched: 0, remaining: 0, body: None, found: Vec::new() }
    }

    /// How many bytes of an incomplete request are understood: its arguments so far, with their
    /// headers and that of the next. 0 if it is short enough to be read again.
    #[must_use]
    pub const fn understood(&self) -> usize {
        self.at
    }

    /// Bytes of memory it takes besides itself: those of an incomplete request's spans. O(1).
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.found.capacity() * size_of::<Span>()
    }

    /// Forgets an incomplete request, for use with another connection.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Reads the request that starts at `input[0]` and appends its arguments to `args`.
    ///
    /// While it answers `Incomplete`, each call must give the same bytes again, with or without
    /// more behind them. O(new bytes) amortised; a complete request with plain headers costs a few
    /// comparisons per argument.
    ///
    /// # Errors
    /// The bytes are no request or exceed `limits`; there is no way to find the next request, so
    /// the connection has to be closed. `args` is as before, the decoder as new.
    // Always, since a call costs a short request a few percent of all that is done for it.
    #[inline(always)]
    pub fn decode(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        if self.at == 0
            && self.searched == 0
            && let Some((count, rest)) = short_header::<b'*'>(input)
            && count > 0
            && count as u64 <= limits.arguments_now().max(0) as u64
        {
            return self.decode_plain(input, rest, count, limits, args);
        }
        self.decode_any(input, limits, args)
    }

    /// The hot path: all arguments are there and have short canonical headers. Hands over to
    /// `decode_any` at the first argument of which that is not so.
    #[inline(always)]
    fn decode_plain(
        &mut self,
        input: &[u8],
        mut rest: &[u8],
        count: usize,
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        let mark = args.list.len();
        let bulk_bytes_max = limits.bulk_bytes_now();
        args.list.reserve(count.min(rest.len() / ARGUMENT_BYTES_MIN));
        let mut remaining = count;
        while let Some((len, body)) = short_header::<b'$'>(rest) {
            if len as u64 > bulk_bytes_max {
                break;
            }
            let Some(after) = body.get(len + 2..) else { break };
            args.list.push(Span { start: input.len() - body.len(), len });
            rest = after;
            remaining -= 1;
            if remaining == 0 {
                return Ok(Step::Request { consumed: input.len() - rest.len(), argc: count });
            }
        }
        self.at = input.len() - rest.len();
        self.remaining = remaining;
        self.hand_over(input, limits, args, mark)
    }

    #[cold]
    #[inline(never)]
    fn hand_over(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
        mark: usize,
    ) -> Result<Step, ProtocolError> {
        self.found.extend_from_slice(&args.list[mark..]);
        args.list.truncate(mark);
        self.decode_any(input, limits, args)
    }

    /// Everything else: resumed, odd or inline requests.
    #[inline(never)]
    fn decode_any(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        if input.len() < self.at + self.searched {
            // Not the same bytes as before: the contract is broken,
            // so start over rather than panic.
            self.reset();
        }
        let step = match input.first() {
            None => Ok(Step::Incomplete { need_hint: 1 }),
            Some(b'*') => self.multibulk(input, limits, args),
            Some(_) => self.inline(input, limits, args),
        };
        let keeps = matches!(step, Ok(Step::Incomplete { .. })) && input.len() > REPARSE_BYTES_MAX;
        if !keeps {
            self.reset();
        }
        step
    }

    fn multibulk(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        if self.at == 0 {
            let end = match self.line_end(b'\r', input, limits) {
                Line::EndsAt(end) if end + 2 <= input.len() => end,
                Line::TooLong => return Err(ProtocolError::TooBigMultibulkCount),
                _ => return Ok(Step::Incomplete { need_hint: 1 }),
            };
            self.remaining = argument_count(&input[1..end], limits)?;
            self.pass(end + 2);
            if self.remaining == 0 {
                return Ok(Step::Empty { consumed: end + 2 });
            }
        }
        while self.remaining > 0 {
            let len = match self.body {
                Some(len) => len,
                None => {
                    let end = match self.line_end(b'\r', input, limits) {
                        Line::EndsAt(end) if end + 2 <= input.len() => end,
                        Line::TooLong => return Err(ProtocolError::TooBigBulkCount),
                        _ => return Ok(Step::Incomplete { need_hint: 1 }),
                    };
                    let len = bulk_len(&input[self.at..end], limits)?;
                    self.pass(end + 2);
                    self.body = Some(len);
                    len
                }
            };
            // At most usize::MAX, as `bulk_len` has seen to: the sum may only saturate.
            let missing = len.saturating_add(2).saturating_sub(input.len() - self.at);
            if missing > 0 {
                return Ok(Step::Incomplete { need_hint: missing });
            }
            if self.found.len() == self.found.capacity() {
                // A quarter more, not twice as much: who sends the rest of it
                // late holds this memory.
                self.found.reserve_exact((self.found.len() / 4).max(FOUND_MIN));
            }
            self.found.push(Span { start: self.at, len });
            self.pass(self.at + len + 2);
            self.body = None;
            self.remaining -= 1;
        }
        let argc = self.found.len();
        args.list.append(&mut self.found);
        if self.found.capacity() > FOUND_KEPT_MAX {
            self.found = Vec::new();
        }
        Ok(Step::Request { consumed: self.at, argc })
    }

    fn inline(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        let end = match self.line_end(b'\n', input, limits) {
            Line::EndsAt(end) => end,
            Line::Open => return Ok(Step::Incomplete { need_hint: 1 }),
            Line::TooLong => return Err(ProtocolError::TooBigInline),
        };
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let argc = inline::split(line, args)?;
        let consumed = end + 1;
        Ok(if argc == 0 { Step::Empty { consumed } } else { Step::Request { consumed, argc } })
    }

    /// Everything before `at` is understood.
    fn pass(&mut self, at: usize) {
        self.at = at;
        self.searched = 0;
    }

    /// Looks for the end of the line at `self.at`, by rules 3 and 4 of the file head.
    fn line_end(&mut self, mark: u8, input: &[u8], limits: &Limits) -> Line {
        let bytes_max = limits.inline_bytes_max.max(INLINE_BYTES_MAX_LEAST);
        let line = &input[self.at..];
        let unseen = &line[self.searched..];
        let stop = memchr2(mark, 0, unseen).map(|found| self.searched + found);
        match stop {
            Some(stop) if line[stop] == mark && stop <= bytes_max => {
                return Line::EndsAt(self.at + stop);
            }
            // A NUL is found again at once by the next call.
            Some(stop) => self.searched = stop,
            None => self.searched = line.len(),
        }
        if line.len() > bytes_max { Line::TooLong } else { Line::Open }
    }
}

/// The count after `*`, with "nothing to run" as 0.
fn argument_count(digits: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let count = canonical_i64(digits)
        .filter(|&count| count <= limits.multibulk_max)
        .ok_or(ProtocolError::InvalidMultibulkLength)?;
    if count > limits.arguments_now() {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidMultibulkLength)
}

/// The length in an argument's header, given without its line end.
fn bulk_len(header: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let digits = match header {
        [b'$', digits @ ..] => digits,
        [other, ..] => return Err(ProtocolError::ExpectedBulk(*other)),
        [] => return Err(ProtocolError::ExpectedBulk(b'\r')),
    };
    let len = canonical_i64(digits)
        .and_then(|len| u64::try_from(len).ok())
        .filter(|&len| len <= limits.bulk_bytes_max)
        .ok_or(ProtocolError::InvalidBulkLength)?;
    if len > limits.bulk_bytes_now() {
        return Err(ProtocolError::UnauthenticatedBulkLength);
    }
    usize::try_from(len).map_err(|_| ProtocolError::InvalidBulkLength)
}

/// Reads `<MARK>digits\r?` if it is all there and has at most `SHORT_DIGITS_MAX` digits; gives the
/// number and what follows. `None` means "not plain", not "wrong".
#[inline(always)]
fn short_header<const MARK: u8>(input: &[u8]) -> Option<(usize, &[u8])> {
    let [mark, first, second, _, rest @ ..] = input else { return None };
    let value = usize::from(first.wrapping_sub(b'0'));
    if *mark != MARK || value > 9 {
        return None;
    }
    if *second == b'\r' {
        return Some((value, rest));
    }
    // A leading zero is for the slow path to refuse.
    if value == 0 { None } else { longer_header(value, &input[2..]) }
}

/// The rest of a header of two digits or more.
#[inline]
fn longer_header(mut value: usize, input: &[u8]) -> Option<(usize, &[u8])> {
    for (at, &byte) in input.iter().enumerate().take(SHORT_DIGITS_MAX) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return if byte == b'\r' { Some((value, input.get(at + 2..)?)) } else { None };
        }
        value = value * 10 + usize::from(digit);
    }
    None
}
