//! Reads a complete reply in place: a cursor that returns its parts one after another, borrowed.
//!
//! The caller knows which replies to expect, so no values are built: an array of a thousand strings
//! is one [`Part::Array`] and then a thousand [`Part::Bulk`], each a slice of the input.

use super::decode::{ReplyDecoder, ReplyError, ReplyLimits, ReplyStep};
use super::token::{Blob, LineSearch, Open, Token, token, verbatim};
use super::value::Value;

/// One part of a reply: a scalar, or the head of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// `+text`
    Simple(&'a [u8]),
    /// `-text` or `!length`: the whole text, code first.
    Error(&'a [u8]),
    /// `:n`
    Integer(i64),
    /// `$length`
    Bulk(&'a [u8]),
    /// Any of the null types.
    Null,
    /// `,text`
    Double(f64),
    /// `#t`, `#f`
    Boolean(bool),
    /// `(digits`
    BigNumber(&'a [u8]),
    /// `=length`
    Verbatim {
        /// Three bytes, `txt` or `mkd`.
        format: [u8; 3],
        /// The text without the format.
        text: &'a [u8],
    },
    /// This many values follow.
    Array(u64),
    /// This many pairs follow, key before value.
    Map(u64),
    /// This many values follow.
    Set(u64),
    /// This many values follow.
    Push(u64),
}

impl<'a> Part<'a> {
    /// Returns the bytes of a string of any type; `None` for other parts and errors.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Part::Simple(text) | Part::Bulk(text) | Part::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the number of values that follow; keys and values of a map count separately. 0 for
    /// scalars.
    #[must_use]
    pub fn len_within(&self) -> u64 {
        match *self {
            Part::Array(count) | Part::Set(count) | Part::Push(count) => count,
            Part::Map(pairs) => pairs.saturating_mul(2),
            _ => 0,
        }
    }
}

/// A cursor over the bytes of complete replies.
#[derive(Clone, Debug)]
pub struct ReplyReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The bytes have already been scanned, and the limits were checked then.
const NO_LIMITS: ReplyLimits = ReplyLimits {
    depth_max: usize::MAX,
    line_bytes_max: usize::MAX,
    bulk_bytes_max: u64::MAX,
    elements_max: u64::MAX,
};

/// The bytes end within a reply. This cannot happen if they were scanned.
const CUT_OFF: ReplyError = ReplyError::UnterminatedBulk;

impl<'a> ReplyReader<'a> {
    /// Creates a cursor at the first reply.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns true if nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns the unread bytes.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns the next part; attributes are skipped. O(bytes of its line).
    ///
    /// # Errors
    /// The bytes are not a reply, or end within one.
    #[inline]
    pub fn part(&mut self) -> Result<Part<'a>, ReplyError> {
        loop {
            let rest = self.rest();
            let end = LineSearch::default().end(rest, &NO_LIMITS)?.ok_or(CUT_OFF)?;
            self.at += end + 2;
            return Ok(match token(&rest[..end], &NO_LIMITS)? {
                Token::Simple(text) => Part::Simple(text),
                Token::Error(text) => Part::Error(text),
                Token::Integer(value) => Part::Integer(value),
                Token::Double(value, _) => Part::Double(value),
                Token::Boolean(value) => Part::Boolean(value),
                Token::BigNumber(digits) => Part::BigNumber(digits),
                Token::Null | Token::NullArray => Part::Null,
                Token::Body(blob, len) => {
                    let body = rest[end + 2..].get(..len).ok_or(CUT_OFF)?;
                    self.at += len + 2;
                    match blob {
                        Blob::Bulk => Part::Bulk(body),
                        Blob::Error => Part::Error(body),
                        Blob::Verbatim => {
                            let (format, text) = verbatim(body)?;
                            Part::Verbatim { format, text }
                        }
                    }
                }
                Token::Open(open, count) => match open {
                    Open::Array => Part::Array(count),
                    Open::Map => Part::Map(count / 2),
                    Open::Set => Part::Set(count),
                    Open::Push => Part::Push(count),
                    Open::Attributes => {
                        self.skip_values(count)?;
                        continue;
                    }
                },
            });
        }
    }

    /// Returns the next part without consuming it.
    ///
    /// # Errors
    /// Those of [`ReplyReader::part`].
    pub fn peek(&self) -> Result<Part<'a>, ReplyError> {
        self.clone().part()
    }

    /// Skips one value with everything it contains. O(its parts).
    ///
    /// # Errors
    /// Those of [`ReplyReader::part`].
    pub fn skip(&mut self) -> Result<(), ReplyError> {
        self.skip_values(1)
    }

    fn skip_values(&mut self, count: u64) -> Result<(), ReplyError> {
        let mut remaining = count;
        while remaining > 0 {
            // A loop instead of recursion: the peer may nest values to any depth.
            remaining = (remaining - 1).saturating_add(self.token_within()?);
        }
        Ok(())
    }

    /// Skips one line and its string, and returns how many more values to skip for it.
    fn token_within(&mut self) -> Result<u64, ReplyError> {
        let rest = self.rest();
        let end = LineSearch::default().end(rest, &NO_LIMITS)?.ok_or(CUT_OFF)?;
        self.at += end + 2;
        Ok(match token(&rest[..end], &NO_LIMITS)? {
            Token::Body(_, len) => {
                self.at = self.at.saturating_add(len).saturating_add(2);
                if self.at > self.bytes.len() {
                    return Err(CUT_OFF);
                }
                0
            }
            Token::Open(Open::Attributes, count) => count.saturating_add(1),
            Token::Open(_, count) => count,
            _ => 0,
        })
    }

    /// Decodes the next value with everything it contains. O(bytes).
    ///
    /// # Errors
    /// Those of [`ReplyReader::part`], and an error for values that are nested deeper than the
    /// default [`ReplyLimits`] allow.
    pub fn value(&mut self) -> Result<Value, ReplyError> {
        match ReplyDecoder::new(ReplyLimits::default()).decode(self.rest())? {
            ReplyStep::Value { consumed, value } => {
                self.at += consumed;
                Ok(value)
            }
            ReplyStep::Incomplete { .. } => Err(CUT_OFF),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_the_order_of_the_bytes_and_borrow_them() {
        let bytes =
            b"|1\r\n+ttl\r\n*1\r\n:3\r\n*3\r\n$1\r\na\r\n%1\r\n+k\r\n,1.5\r\n_\r\n-ERR no\r\n";
        let mut reader = ReplyReader::new(bytes);
        let parts = [
            Part::Array(3),
            Part::Bulk(b"a"),
            Part::Map(1),
            Part::Simple(b"k"),
            Part::Double(1.5),
            Part::Null,
            Part::Error(b"ERR no"),
        ];
        for part in parts {
            assert_eq!(reader.peek(), Ok(part));
            assert_eq!(reader.part(), Ok(part));
        }
        assert!(reader.is_at_end());
        assert!(reader.part().is_err());
    }

    #[test]
    fn a_value_is_skipped_with_everything_it_contains() {
        let deep =
            [b"*1\r\n".repeat(100_000), b"|1\r\n+a\r\n+b\r\n:1\r\n+next\r\n".to_vec()].concat();
        let mut reader = ReplyReader::new(&deep);
        reader.skip().unwrap();
        assert_eq!(reader.part(), Ok(Part::Simple(b"next")));
        assert_eq!(ReplyReader::new(&deep).value(), Err(ReplyError::TooDeep));
    }

    #[test]
    fn a_truncated_reply_is_an_error_and_not_a_panic() {
        let whole = b"*2\r\n$3\r\nabc\r\n=7\r\ntxt:abc\r\n";
        for cut in 0..whole.len() {
            let mut reader = ReplyReader::new(&whole[..cut]);
            assert!(reader.skip().is_err(), "cut at {cut}");
            let mut reader = ReplyReader::new(&whole[..cut]);
            while reader.part().is_ok() {}
        }
    }
}
