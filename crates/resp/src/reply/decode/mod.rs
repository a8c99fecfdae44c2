//! Decodes replies: a resumable decoder for clients and tests.
//!
//! The caller keeps the unread bytes in one slice. It drops the bytes that each call has consumed,
//! even if the reply is incomplete: the decoder keeps nested values, and only the incomplete token
//! (a line, or a bulk string with its line end) stays in the caller's buffer. Every byte is
//! therefore parsed once, however many pieces the bytes arrive in.
//!
//! ```text
//!  *3\r\n :1\r\n *2\r\n $1\r\nx\r\n $5\r\nab           stack: Array, 2 to come, [1]
//!  \_ consumed, kept as values ___/ \_ stays (body = 5)        Array, 1 to come, ["x"]
//! ```
//!
//! No memory is allocated for a claimed length: lists grow as elements arrive, and a string is
//! copied when it is complete. Depth, line length, bulk length and count are limited, because the
//! peer is not trusted. Streamed RESP3 types (`$?`, `*?`) are rejected; no server sends them.

#[cfg(test)]
mod tests;

use super::token::{Blob, LineSearch, Open, Token as Line, token, verbatim};
use super::value::{Double, Value};

/// The limits of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Maximum nesting of aggregates, including attributes. Values are displayed and dropped
    /// recursively, so keep this limit in the hundreds.
    pub depth_max: usize,
    /// Maximum length of a line (simple strings, errors, numbers, headers) in bytes.
    pub line_bytes_max: usize,
    /// Maximum length of a bulk string in bytes.
    pub bulk_bytes_max: u64,
    /// Maximum number of elements of one aggregate, or of pairs of a map.
    pub elements_max: u64,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            depth_max: 128,
            line_bytes_max: 1024 * 1024,
            bulk_bytes_max: 4 * 1024 * 1024 * 1024,
            elements_max: i32::MAX as u64,
        }
    }
}

/// Why bytes are not a reply. The rest of the stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// No reply begins with this byte.
    #[error("unknown reply type byte '{}'", .0.escape_ascii())]
    UnknownType(u8),
    /// A number, boolean or length that cannot be parsed.
    #[error("malformed '{}' reply", .0.escape_ascii())]
    Malformed(u8),
    /// A bulk string is not followed by a line end.
    #[error("bulk string without line end")]
    UnterminatedBulk,
    /// Aggregates are nested more deeply than [`ReplyLimits`] allow.
    #[error("reply nested too deeply")]
    TooDeep,
    /// A line is longer than [`ReplyLimits`] allow.
    #[error("reply line too long")]
    TooLongLine,
    /// A bulk string or an aggregate is longer than [`ReplyLimits`] allow.
    #[error("bulk string or aggregate too long")]
    TooLong,
}

/// The result of one call of [`ReplyDecoder::decode`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyStep {
    /// A complete reply.
    Value {
        /// Number of bytes to drop.
        consumed: usize,
        /// The reply.
        value: Value,
    },
    /// More bytes are needed; drop `consumed` bytes anyway.
    Incomplete {
        /// Number of bytes to drop.
        consumed: usize,
        /// At least this many bytes are missing. The peer claims this number, so cap it before
        /// reserving memory.
        need_hint: usize,
    },
}

/// Decodes the replies of one connection.
#[derive(Debug, Default)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    /// Open aggregates, outermost first.
    stack: Vec<Frame>,
    /// Type and length of the bulk string whose body is expected next.
    body: Option<(Blob, usize)>,
    line: LineSearch,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Number of values still to come; at least 1.
    remaining: u64,
    values: Vec<Value>,
}

#[derive(Debug)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    /// The pairs of `|n`.
    Attributes,
    /// The value after those pairs.
    Attributed(Vec<(Value, Value)>),
}

/// The meaning of one token.
enum Token {
    Value(Value),
    Open(Kind, u64),
    Body(Blob, usize),
}

impl ReplyDecoder {
    /// Creates a decoder at the start of a reply; allocates nothing.
    #[must_use]
    pub fn new(limits: ReplyLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Drops an incomplete reply.
    pub fn reset(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns true between two replies.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stack.is_empty() && self.body.is_none() && self.line.is_idle()
    }

    /// Continues decoding. `input` begins where the last call stopped consuming. O(bytes consumed).
    ///
    /// # Errors
    /// The bytes are not a reply or exceed the limits. The decoder is reset, and the connection
    /// must no longer be used.
    pub fn decode(&mut self, input: &[u8]) -> Result<ReplyStep, ReplyError> {
        let step = self.read(input);
        if step.is_err() {
            self.reset();
        }
        step
    }

    fn read(&mut self, input: &[u8]) -> Result<ReplyStep, ReplyError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let token = match self.body {
                Some((kind, len)) => {
                    let need_hint = len.saturating_add(2).saturating_sub(rest.len());
                    if need_hint > 0 {
                        return Ok(ReplyStep::Incomplete { consumed, need_hint });
                    }
                    if &rest[len..len + 2] != b"\r\n" {
                        return Err(ReplyError::UnterminatedBulk);
                    }
                    self.body = None;
                    consumed += len + 2;
                    Token::Value(string(kind, &rest[..len])?)
                }
                None => {
                    let Some(end) = self.line.end(rest, &self.limits)? else {
                        return Ok(ReplyStep::Incomplete { consumed, need_hint: 1 });
                    };
                    consumed += end + 2;
                    read_line(&rest[..end], &self.limits)?
                }
            };
            let done = match token {
                Token::Value(value) => self.complete(value),
                Token::Open(kind, count) => self.open(kind, count)?,
                Token::Body(kind, len) => {
                    self.body = Some((kind, len));
                    None
                }
            };
            if let Some(value) = done {
                return Ok(ReplyStep::Value { consumed, value });
            }
        }
    }

    fn open(&mut self, kind: Kind, remaining: u64) -> Result<Option<Value>, ReplyError> {
        // Attributes add a frame even if there are none.
        if self.stack.len() >= self.limits.depth_max {
            return Err(ReplyError::TooDeep);
        }
        if remaining == 0 {
            return Ok(match build(kind, Vec::new()) {
                Built::Value(value) => self.complete(value),
                Built::Attributes(pairs) => {
                    self.await_attributed(pairs);
                    None
                }
            });
        }
        self.stack.push(Frame { kind, remaining, values: Vec::new() });
        Ok(None)
    }

    fn await_attributed(&mut self, pairs: Vec<(Value, Value)>) {
        self.stack.push(Frame {
            kind: Kind::Attributed(pairs),
            remaining: 1,
            values: Vec::with_capacity(1),
        });
    }

    /// Adds a complete value to its aggregate; returns it if it is the whole reply.
    fn complete(&mut self, mut value: Value) -> Option<Value> {
        while let Some(frame) = self.stack.last_mut() {
            frame.values.push(value);
            frame.remaining -= 1;
            if frame.remaining > 0 {
                return None;
            }
            let frame = self.stack.pop()?;
            match build(frame.kind, frame.values) {
                Built::Value(built) => value = built,
                Built::Attributes(pairs) => {
                    self.await_attributed(pairs);
                    return None;
                }
            }
        }
        Some(value)
    }
}

enum Built {
    Value(Value),
    Attributes(Vec<(Value, Value)>),
}

/// Builds an aggregate from its values.
fn build(kind: Kind, mut values: Vec<Value>) -> Built {
    Built::Value(match kind {
        Kind::Array => Value::Array(values),
        Kind::Set => Value::Set(values),
        Kind::Push => Value::Push(values),
        Kind::Map => Value::Map(pairs(values)),
        Kind::Attributes => return Built::Attributes(pairs(values)),
        Kind::Attributed(attributes) => {
            let value = Box::new(values.pop().unwrap_or(Value::Null));
            Value::Attributed { attributes, value }
        }
    })
}

fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn read_line(line: &[u8], limits: &ReplyLimits) -> Result<Token, ReplyError> {
    Ok(Token::Value(match token(line, limits)? {
        Line::Simple(text) => Value::Simple(text.to_vec()),
        Line::Error(text) => Value::Error(text.to_vec()),
        Line::Integer(value) => Value::Integer(value),
        Line::Double(value, text) => Value::Double(Double { value, text: text.to_vec() }),
        Line::Boolean(value) => Value::Boolean(value),
        Line::BigNumber(digits) => Value::BigNumber(digits.to_vec()),
        Line::Null => Value::Null,
        Line::NullArray => Value::NullArray,
        Line::Body(blob, len) => return Ok(Token::Body(blob, len)),
        Line::Open(open, count) => {
            let kind = match open {
                Open::Array => Kind::Array,
                Open::Map => Kind::Map,
                Open::Set => Kind::Set,
                Open::Push => Kind::Push,
                Open::Attributes => Kind::Attributes,
            };
            return Ok(Token::Open(kind, count));
        }
    }))
}

fn string(blob: Blob, bytes: &[u8]) -> Result<Value, ReplyError> {
    Ok(match blob {
        Blob::Bulk => Value::Bulk(bytes.to_vec()),
        Blob::Error => Value::Error(bytes.to_vec()),
        Blob::Verbatim => {
            let (format, text) = verbatim(bytes)?;
            Value::Verbatim { format, text: text.to_vec() }
        }
    })
}
