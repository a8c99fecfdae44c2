//! IDs as clients write them.

use crate::base::error::{CommandError, Result};
use crate::types::stream::StreamId;

pub(super) const INVALID: &str = "ERR Invalid stream ID specified as stream command argument";

/// An ID as written. The sequence number may be missing or `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParsedId {
    pub(super) ms: u64,
    pub(super) seq: Seq,
}

/// The part after the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seq {
    Given(u64),
    Missing,
    /// `*`: the server chooses it.
    Auto,
}

fn invalid() -> CommandError {
    CommandError::text(INVALID)
}

/// Length of the longest argument that is parsed, as in Redis.
const LEN_MAX: usize = 127;

/// Parses `ms`, `ms-seq` or `ms-*`.
pub(super) fn parse_written(word: &[u8]) -> Result<ParsedId> {
    if word.len() > LEN_MAX {
        return Err(invalid());
    }
    // Redis parses the argument as a C string.
    let word = word.split(|byte| *byte == 0).next().unwrap_or_default();
    if matches!(word, b"-" | b"+") {
        return Err(invalid());
    }
    let (ms, seq) = match word.iter().position(|byte| *byte == b'-') {
        None => (word, Seq::Missing),
        Some(at) if &word[at + 1..] == b"*" => (&word[..at], Seq::Auto),
        Some(at) => (&word[..at], Seq::Given(parse_u64(&word[at + 1..]).ok_or_else(invalid)?)),
    };
    Ok(ParsedId { ms: parse_u64(ms).ok_or_else(invalid)?, seq })
}

/// Parses an ID. A missing sequence number is `missing`.
pub(super) fn parse(word: &[u8], missing: u64) -> Result<StreamId> {
    let ParsedId { ms, seq } = parse_written(word)?;
    match seq {
        Seq::Given(seq) => Ok(StreamId { ms, seq }),
        Seq::Missing => Ok(StreamId { ms, seq: missing }),
        Seq::Auto => Err(invalid()),
    }
}

/// Parses an ID, `-` for the lowest or `+` for the highest.
pub(super) fn parse_or_edge(word: &[u8], missing: u64) -> Result<StreamId> {
    match word {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse(word, missing),
    }
}

/// Parses the start of a range; `(` excludes the ID itself.
pub(super) fn parse_start(word: &[u8]) -> Result<StreamId> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => parse(id, 0)?
            .next()
            .ok_or_else(|| CommandError::text("ERR invalid start ID for the interval")),
        _ => parse_or_edge(word, 0),
    }
}

/// Parses the end of a range.
pub(super) fn parse_end(word: &[u8]) -> Result<StreamId> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => parse(id, u64::MAX)?
            .prev()
            .ok_or_else(|| CommandError::text("ERR invalid end ID for the interval")),
        _ => parse_or_edge(word, u64::MAX),
    }
}

/// Parses a number as `strtoull` does. Blanks and a sign may come first, and a negative number
/// wraps around. As an exception, a plain negative integer is rejected.
fn parse_u64(word: &[u8]) -> Option<u64> {
    if let Some(number) = crate::base::number::parse_i64(word) {
        return u64::try_from(number).ok();
    }
    let blanks = word.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (negative, digits) = match &word[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for byte in digits {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if negative { number.wrapping_neg() } else { number })
}

/// Writes an ID without allocating.
pub(super) fn write(id: StreamId, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(id.ms).as_bytes());
    out.push(b'-');
    out.extend_from_slice(digits.format(id.seq).as_bytes());
}

/// An ID as an argument.
pub(super) fn word(id: StreamId) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    write(id, &mut out);
    out
}
