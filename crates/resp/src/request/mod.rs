//! Requests as the server receives them: RESP arrays of bulk strings, and inline lines. [`encode`]
//! writes them, as clients and replication streams do.
//!
//! The caller keeps a connection's unread bytes in one slice that begins with a request, and calls
//! [`RequestDecoder::decode`] until it returns [`Step::Incomplete`]. Arguments are returned as
//! [`Span`]s of that slice. Nothing is copied, except inline arguments with quotes, whose unescaped
//! form is stored in [`Spans`].
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
//!  2. The byte after a header's `\r` and the two bytes after an argument are skipped without a
//!     check.
//!  3. A header ends at the first `\r`, an inline line at the first `\n`. A NUL byte hides
//!     everything after it, so a line with a NUL byte never ends and exceeds the limit of rule 4.
//!  4. The end of a header or line must be among its first `inline_bytes_max + 1` bytes. Redis
//!     applies this per network
//!     read, so it may accept a longer line that arrives in one read, depending on timing. Here the
//!     result is always the same as if the bytes had arrived one by one.
//!
//! The result never depends on the sizes of the reads. An incomplete request is not parsed again
//! from its start: the decoder keeps its position and spans (a small request is parsed again, see
//! `REPARSE_BYTES_MAX`). The total work is therefore O(bytes), however the bytes arrive.
//!
//! Memory: spans are recorded only for arguments that have arrived: 16 bytes for at least 6 bytes
//! of input. The bound of the caller's input buffer therefore bounds the spans too.

mod encode;
mod inline;
#[cfg(test)]
mod tests;

pub use encode::{encode, encode_words, encoded_bytes, is_encoded};

use memchr::memchr2;

use crate::error::ProtocolError;
use crate::number::canonical_i64;

/// Minimum number of spans of an incomplete request for which memory is reserved at a time.
const FOUND_MIN: usize = 16;
/// Capacity for spans that is kept from one incomplete request to the next.
const FOUND_KEPT_MAX: usize = 64;

/// Maximum number of arguments before a client has authenticated.
const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;
/// Maximum size of an argument in bytes before a client has authenticated.
const UNAUTHENTICATED_BULK_BYTES_MAX: u64 = 16 * 1024;
/// An incomplete request of up to this length leaves no state and is parsed again when more
/// arrives. Most requests that are cut by the end of a read are this short, and state costs an
/// allocation.
const REPARSE_BYTES_MAX: usize = 256;
/// Headers with more digits than this use the slow path. Nine digits cannot overflow.
const SHORT_DIGITS_MAX: usize = 9;
/// Minimum value of `Limits::inline_bytes_max`. It is large enough for any header of the fast path.
const INLINE_BYTES_MAX_LEAST: usize = 16;
/// Minimum size of an argument on the wire: `$0\r\n\r\n`.
const ARGUMENT_BYTES_MIN: usize = 6;

const _: () = assert!(SHORT_DIGITS_MAX + 1 < INLINE_BYTES_MAX_LEAST && SHORT_DIGITS_MAX <= 9);

/// Splits a line into arguments with the quoting rules of inline requests. Returns `None` if a
/// quote is not closed or text follows a closing quote. O(line).
#[must_use]
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut spans = Spans::new();
    inline::split(line, &mut spans).ok()?;
    Some(spans.as_slice().iter().map(|span| spans.bytes(line, *span).to_vec()).collect())
}

/// The limits of a connection's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an argument in bytes (`proto-max-bulk-len`); `u64::MAX` for the link to a
    /// primary.
    pub bulk_bytes_max: u64,
    /// Maximum number of arguments of a request. Redis 7: `i32::MAX`; before 7: 1,048,576.
    pub multibulk_max: i64,
    /// Maximum length of an inline request or header in bytes; at least 16. Redis: 64 KiB.
    pub inline_bytes_max: usize,
    /// False while the connection has not authenticated yet. Requests may then have at most 10
    /// arguments of at most 16 KiB each.
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
    /// Returns the current maximum length of an argument.
    #[inline]
    fn bulk_bytes_now(&self) -> u64 {
        if self.authenticated {
            self.bulk_bytes_max
        } else {
            self.bulk_bytes_max.min(UNAUTHENTICATED_BULK_BYTES_MAX)
        }
    }

    /// Returns the current maximum number of arguments.
    #[inline]
    fn arguments_now(&self) -> i64 {
        if self.authenticated {
            self.multibulk_max
        } else {
            self.multibulk_max.min(UNAUTHENTICATED_ARGUMENTS_MAX)
        }
    }
}

/// The position of an argument's bytes; [`Spans::bytes`] returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset in the input, or in the unescaped bytes if `UNESCAPED` is set.
    start: usize,
    len: usize,
}

/// Set in `Span::start` if the span refers to `Spans::unescaped`. No slice is this long.
const UNESCAPED: usize = 1 << (usize::BITS - 1);

impl Span {
    /// Returns the length of the argument in bytes.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a span is a place, not a container")]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the offset from the request's first byte; `None` if the argument was unescaped and
    /// is not a slice of the input.
    #[inline]
    #[must_use]
    pub fn offset(self) -> Option<usize> {
        (self.start & UNESCAPED == 0).then_some(self.start)
    }
}

/// The arguments of the requests decoded since the last [`clear`](Self::clear), one request after
/// another.
#[derive(Debug, Default)]
pub struct Spans {
    list: Vec<Span>,
    /// Inline arguments that had quotes, unescaped.
    unescaped: Vec<u8>,
}

impl Spans {
    /// Creates an empty list; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new(), unescaped: Vec::new() }
    }

    /// Removes all arguments and keeps the memory. Call it once per batch of requests.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.unescaped.clear();
    }

    /// Frees memory beyond `arguments_max` arguments (and as many unescaped bytes), so that one
    /// huge request does not keep its memory.
    #[inline]
    pub fn shrink(&mut self, arguments_max: usize) {
        if self.list.capacity() > arguments_max || self.unescaped.capacity() > arguments_max {
            self.list.shrink_to(arguments_max);
            self.unescaped.shrink_to(arguments_max);
        }
    }

    /// Returns all arguments in order of arrival.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Span] {
        &self.list
    }

    /// Returns the number of arguments.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there are no arguments.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds an argument of `len` bytes that begins at byte `start` of the input, for requests that
    /// are not decoded from a connection.
    pub fn push(&mut self, start: usize, len: usize) {
        self.list.push(Span { start: start & !UNESCAPED, len });
    }

    /// Returns the bytes of an argument. `input` must start where it started in the `decode` call
    /// that returned the span. A span that does not belong to `input` results in an empty or a
    /// wrong slice, never in a panic. O(1).
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

/// The result of one call of [`RequestDecoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A complete request: its `argc` spans (at least one) were appended, and it has `consumed`
    /// bytes.
    Request {
        /// Number of bytes of the request.
        consumed: usize,
        /// Number of arguments, including the command's name.
        argc: usize,
    },
    /// The request is incomplete; nothing was appended and nothing is consumed. Call again with the
    /// same bytes and more after them.
    Incomplete {
        /// At least this many bytes are missing. A client can claim as much as the limits allow, so
        /// cap this number before reserving memory.
        need_hint: usize,
    },
    /// `*0`, `*-1` or a blank line: nothing to run, and no reply.
    Empty {
        /// Number of bytes to skip.
        consumed: usize,
    },
}

/// Decodes the requests of one connection. Holds state only within an incomplete request.
#[derive(Debug, Default)]
pub struct RequestDecoder {
    /// Number of bytes of the current request that are already parsed; 0 if there is no state.
    at: usize,
    /// Number of bytes after `at` that are known to contain no line end.
    searched: usize,
    /// Number of arguments still to come, if the count has been read.
    remaining: usize,
    /// Length of the argument whose body is expected at `at`.
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
    /// Creates a decoder at the start of a request; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { at: 0, searched: 0, remaining: 0, body: None, found: Vec::new() }
    }

    /// Returns how many bytes of an incomplete request are parsed: its arguments so far with their
    /// headers, and the header of the next argument. 0 if the request is short enough to be parsed
    /// again.
    #[must_use]
    pub const fn understood(&self) -> usize {
        self.at
    }

    /// Returns the memory of an incomplete request's spans in bytes. O(1).
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.found.capacity() * size_of::<Span>()
    }

    /// Discards an incomplete request, so that the decoder can be used for another connection.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Decodes the request at the start of `input`, and appends its arguments to `args`.
    ///
    /// After [`Step::Incomplete`], the next call must pass the same bytes again, with or without
    /// more after them. Amortized O(new bytes). A complete request with plain headers costs a few
    /// comparisons per argument.
    ///
    /// # Errors
    /// The bytes are not a request or exceed `limits`. The start of the next request is unknown, so
    /// the connection must be closed. `args` is unchanged, and the decoder is reset.
    // Always inlined: a call costs a short request a few percent of its total time.
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

    /// The fast path: all arguments have arrived and have short canonical headers. Continues in
    /// `decode_any` at the first argument for which this is not so.
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

    /// Everything else: resumed, unusual or inline requests.
    #[inline(never)]
    fn decode_any(
        &mut self,
        input: &[u8],
        limits: &Limits,
        args: &mut Spans,
    ) -> Result<Step, ProtocolError> {
        if input.len() < self.at + self.searched {
            // Not the same bytes as before: the caller violated the contract, so start over instead
            // of panicking.
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
            // At most usize::MAX, as `bulk_len` has checked; only the sum may saturate.
            let missing = len.saturating_add(2).saturating_sub(input.len() - self.at);
            if missing > 0 {
                return Ok(Step::Incomplete { need_hint: missing });
            }
            if self.found.len() == self.found.capacity() {
                // Grow by a quarter instead of doubling: a client that sends the rest late keeps
                // this memory in use.
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

    /// Marks everything before `at` as parsed.
    fn pass(&mut self, at: usize) {
        self.at = at;
        self.searched = 0;
    }

    /// Searches for the end of the line at `self.at`, by rules 3 and 4 of the module's
    /// documentation.
    fn line_end(&mut self, mark: u8, input: &[u8], limits: &Limits) -> Line {
        let bytes_max = limits.inline_bytes_max.max(INLINE_BYTES_MAX_LEAST);
        let line = &input[self.at..];
        let unseen = &line[self.searched..];
        let stop = memchr2(mark, 0, unseen).map(|found| self.searched + found);
        match stop {
            Some(stop) if line[stop] == mark && stop <= bytes_max => {
                return Line::EndsAt(self.at + stop);
            }
            // The next call finds the NUL again immediately.
            Some(stop) => self.searched = stop,
            None => self.searched = line.len(),
        }
        if line.len() > bytes_max { Line::TooLong } else { Line::Open }
    }
}

/// Parses the count after `*`. Returns 0 if there is nothing to run.
fn argument_count(digits: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let count = canonical_i64(digits)
        .filter(|&count| count <= limits.multibulk_max)
        .ok_or(ProtocolError::InvalidMultibulkLength)?;
    if count > limits.arguments_now() {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidMultibulkLength)
}

/// Parses the length in an argument's header, given without its line end.
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

/// Parses `<MARK>digits\r?` if it is complete and has at most `SHORT_DIGITS_MAX` digits, and
/// returns the number and the rest. `None` means "not in this simple form", not "invalid".
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
    // The slow path rejects a leading zero.
    if value == 0 { None } else { longer_header(value, &input[2..]) }
}

/// Parses the rest of a header of two digits or more.
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
