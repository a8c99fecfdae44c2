//! One token of a reply: the meaning of a line, before a value is built. All readers in this
//! directory use this file to parse lines.

use super::decode::{ReplyError, ReplyLimits};
use crate::number::canonical_i64;
use memchr::memchr;

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Double(f64, &'a [u8]),
    Boolean(bool),
    BigNumber(&'a [u8]),
    Null,
    NullArray,
    /// This many bytes and a line end follow.
    Body(Blob, usize),
    /// This many values follow; for maps and attributes these are keys and values.
    Open(Open, u64),
}

/// A string whose length comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blob {
    Bulk,
    Error,
    Verbatim,
}

/// An aggregate, whose number of values comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    Array,
    Map,
    Set,
    Push,
    /// Pairs that describe the following value.
    Attributes,
}

/// Parses a line without its end. O(bytes).
///
/// # Errors
/// [`ReplyError`] for a line that is not valid, or that exceeds the limits.
#[inline]
pub(super) fn token<'a>(line: &'a [u8], limits: &ReplyLimits) -> Result<Token<'a>, ReplyError> {
    // An empty line is reported with its first byte, '\r'.
    let (&kind, text) = line.split_first().ok_or(ReplyError::UnknownType(b'\r'))?;
    let malformed = ReplyError::Malformed(kind);
    Ok(match (kind, text) {
        (b'$', b"-1") | (b'_', b"") => Token::Null,
        (b'$', _) => Token::Body(Blob::Bulk, body(kind, text, limits)?),
        (b'+', _) => Token::Simple(text),
        (b':', _) => Token::Integer(canonical_i64(text).ok_or(malformed)?),
        (b'-', _) => Token::Error(text),
        (b'*', b"-1") => Token::NullArray,
        (b'*', _) => Token::Open(Open::Array, count(kind, text, limits)?),
        (b'%', _) => Token::Open(Open::Map, count(kind, text, limits)?.saturating_mul(2)),
        (b'~', _) => Token::Open(Open::Set, count(kind, text, limits)?),
        (b'>', _) => Token::Open(Open::Push, count(kind, text, limits)?),
        (b'|', _) => Token::Open(Open::Attributes, count(kind, text, limits)?.saturating_mul(2)),
        (b'!', _) => Token::Body(Blob::Error, body(kind, text, limits)?),
        (b'=', _) => Token::Body(Blob::Verbatim, body(kind, text, limits)?),
        (b',', _) => Token::Double(double(text).ok_or(malformed)?, text),
        (b'#', b"t") => Token::Boolean(true),
        (b'#', b"f") => Token::Boolean(false),
        (b'(', _) if is_integer(text) => Token::BigNumber(text),
        (b'_' | b'#' | b'(', _) => return Err(malformed),
        _ => return Err(ReplyError::UnknownType(kind)),
    })
}

fn body(kind: u8, digits: &[u8], limits: &ReplyLimits) -> Result<usize, ReplyError> {
    let len = length(kind, digits, limits.bulk_bytes_max)?;
    usize::try_from(len).map_err(|_| ReplyError::TooLong)
}

fn count(kind: u8, digits: &[u8], limits: &ReplyLimits) -> Result<u64, ReplyError> {
    length(kind, digits, limits.elements_max)
}

fn length(kind: u8, digits: &[u8], max: u64) -> Result<u64, ReplyError> {
    let len = canonical_i64(digits)
        .and_then(|len| u64::try_from(len).ok())
        .ok_or(ReplyError::Malformed(kind))?;
    if len > max { Err(ReplyError::TooLong) } else { Ok(len) }
}

/// Returns the format and the text of a verbatim string.
pub(super) fn verbatim(bytes: &[u8]) -> Result<([u8; 3], &[u8]), ReplyError> {
    match bytes {
        &[a, b, c, b':', ref text @ ..] => Ok(([a, b, c], text)),
        _ => Err(ReplyError::Malformed(b'=')),
    }
}

/// Parses a decimal with optional fraction and exponent, `inf`, `-inf`, `nan` or `-nan`.
fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        b"nan" | b"-nan" => Some(f64::NAN),
        // Rust would also accept "infinity" and the like.
        _ if text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) =>
        {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        _ => None,
    }
}

fn is_integer(text: &[u8]) -> bool {
    let digits = match text {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Searches for the end of a line that arrives in pieces, without searching any byte twice.
#[derive(Debug, Default)]
pub(super) struct LineSearch {
    /// Number of bytes of the unread line that are known to contain no line end.
    searched: usize,
}

impl LineSearch {
    /// Returns true if no incomplete line was searched so far.
    pub(super) fn is_idle(&self) -> bool {
        self.searched == 0
    }

    /// Returns the offset of the `\r\n` of the line at the start of `input`, if it has arrived.
    #[inline]
    pub(super) fn end(
        &mut self,
        input: &[u8],
        limits: &ReplyLimits,
    ) -> Result<Option<usize>, ReplyError> {
        // If a caller passes fewer bytes than before, the search starts over.
        let mut from = if self.searched <= input.len() { self.searched } else { 0 };
        while let Some(found) = memchr(b'\r', &input[from..]) {
            from += found;
            if from > limits.line_bytes_max {
                return Err(ReplyError::TooLongLine);
            }
            match input.get(from + 1) {
                Some(b'\n') => {
                    self.searched = 0;
                    return Ok(Some(from));
                }
                Some(_) => from += 1,
                None => {
                    self.searched = from;
                    return Ok(None);
                }
            }
        }
        if input.len() > limits.line_bytes_max {
            return Err(ReplyError::TooLongLine);
        }
        self.searched = input.len();
        Ok(None)
    }
}
