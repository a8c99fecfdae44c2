//! Counts replies in received bytes without decoding them.
//!
//! A generator only needs to know where replies end and which ones are errors. The scanner keeps the number of values
//! that the current reply still lacks: a scalar reduces it by one; an aggregate of `n` elements reduces it by one and
//! adds `n`. Nothing is copied, except a line that continues after the end of the bytes.
//!
//! ```text
//!  *3\r\n :1\r\n *2\r\n $1\r\nx\r\n $1\r\ny\r\n $1\r\nz\r\n          lacking: 1
//!  lacking 3 ─┘  2 ─┘   3 ─┘         2 ─┘        1 ─┘        0: a whole reply
//! ```
//!
//! Replies to a command are mostly equal (`+OK`, a value of fixed size), so the last short scalar is kept as a number.
//! Each equal scalar is then skipped with one comparison.

use memchr::memchr;

/// Maximum length of a line whose end has not arrived, and so of an error.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of elements of an aggregate, and of values that a reply may lack.
const VALUES_MAX: u64 = 1 << 32;
/// Maximum length of a scalar that is recognized by its bytes.
const SAME_BYTES_MAX: usize = 16;

/// The bytes are not replies, so the connection is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// No reply starts with this byte.
    #[error("Protocol error, got \"{}\" as reply type byte", .0.escape_ascii())]
    Type(u8),
    /// A length is invalid or too large.
    #[error("Protocol error, bad length in a reply")]
    Length,
    /// A line does not end.
    #[error("Protocol error, a line of a reply is too long")]
    Line,
}

/// Counts the replies of one connection.
#[derive(Clone, Debug)]
pub struct Scanner {
    /// Values that the current reply still lacks; 1 between two replies.
    lacking: u64,
    /// True if the next value is part of an aggregate.
    inside: bool,
    /// True if the current value is a push message, which is not a reply.
    push: bool,
    /// Bytes of a bulk string's body and line end that have not arrived.
    body: u64,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    same: Same,
}

/// A scalar recognized by its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Same {
    bytes: u128,
    mask: u128,
    len: usize,
}

/// The meaning of a line.
enum Line {
    Scalar,
    Error,
    Body(u64),
    BulkError(u64),
    Values(u64),
    Push(u64),
    Attributes(u64),
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner {
            lacking: 1,
            inside: false,
            push: false,
            body: 0,
            line: Vec::new(),
            same: Same::default(),
        }
    }
}

impl Scanner {
    /// Scans the next bytes, and returns how many replies end in them. Error replies are counted and passed to
    /// `on_error`, without `-` and line end. O(bytes).
    ///
    /// # Errors
    /// If the bytes are not replies.
    pub fn scan(
        &mut self,
        mut bytes: &[u8],
        on_error: &mut impl FnMut(&[u8]),
    ) -> Result<usize, ScanError> {
        let mut replies = 0;
        while !bytes.is_empty() {
            if self.body > 0 {
                let passed = self.body.min(bytes.len() as u64);
                self.body -= passed;
                #[expect(clippy::cast_possible_truncation, reason = "at most the bytes' length")]
                {
                    bytes = &bytes[passed as usize..];
                }
                if self.body > 0 {
                    break;
                }
                replies += self.value();
                continue;
            }
            if self.line.is_empty()
                && let Some(rest) = self.same.strip(bytes)
            {
                bytes = rest;
                replies += self.value();
                continue;
            }
            let Some(end) = memchr(b'\n', bytes) else {
                if self.line.len() + bytes.len() > LINE_BYTES_MAX {
                    return Err(ScanError::Line);
                }
                self.line.extend_from_slice(bytes);
                break;
            };
            let (line, rest) = bytes.split_at(end + 1);
            let said = if self.line.is_empty() {
                self.read(line, rest, on_error)?
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.read(&whole, &[], on_error)?
            };
            replies += self.take(&said)?;
            self.learn(&said, bytes, end + 1);
            bytes = rest;
        }
        Ok(replies)
    }

    /// Called when a value is complete. Returns 1 if a reply is now complete, otherwise 0.
    #[inline]
    fn value(&mut self) -> usize {
        self.lacking -= 1;
        if self.lacking > 0 {
            return 0;
        }
        self.lacking = 1;
        self.inside = false;
        usize::from(!std::mem::take(&mut self.push))
    }

    fn take(&mut self, line: &Line) -> Result<usize, ScanError> {
        match *line {
            Line::Scalar | Line::Error => return Ok(self.value()),
            Line::Body(len) | Line::BulkError(len) => self.body = len + 2,
            // The value that the attributes belong to follows them. It is the reply if the attributes are outermost.
            Line::Attributes(values) => {
                self.lacking += values;
                self.inside = true;
            }
            Line::Values(0) => return Ok(self.value()),
            Line::Values(values) => {
                self.lacking += values - 1;
                self.inside = true;
            }
            Line::Push(values) => {
                self.push |= !self.inside;
                if values == 0 {
                    return Ok(self.value());
                }
                self.lacking += values - 1;
                self.inside = true;
            }
        }
        if self.lacking > VALUES_MAX { Err(ScanError::Length) } else { Ok(0) }
    }

    /// Parses a complete line. `rest` is the bytes after it.
    fn read(
        &self,
        line: &[u8],
        rest: &[u8],
        on_error: &mut impl FnMut(&[u8]),
    ) -> Result<Line, ScanError> {
        let text = line.strip_suffix(b"\r\n").ok_or(ScanError::Line)?;
        let Some((&kind, text)) = text.split_first() else { return Err(ScanError::Type(b'\r')) };
        // An error inside a reply (of EXEC, for example) is part of the reply's value.
        let outermost = !self.inside;
        Ok(match kind {
            b'+' | b':' | b',' | b'#' | b'_' | b'(' => Line::Scalar,
            b'-' => {
                if outermost {
                    on_error(text);
                }
                Line::Error
            }
            b'$' | b'*' if text == b"-1" => Line::Scalar,
            b'$' | b'=' => Line::Body(length(text)?),
            b'!' => {
                let len = length(text)?;
                if outermost {
                    let shown = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
                    on_error(&rest[..shown]);
                }
                Line::BulkError(len)
            }
            b'*' | b'~' => Line::Values(length(text)?),
            b'%' => Line::Values(length(text)? * 2),
            b'>' => Line::Push(length(text)?),
            b'|' => Line::Attributes(length(text)? * 2),
            _ => return Err(ScanError::Type(kind)),
        })
    }

    /// Stores the scalar at the start of `bytes`, if it is short and complete.
    #[inline]
    fn learn(&mut self, line: &Line, bytes: &[u8], line_len: usize) {
        let len = match line {
            Line::Scalar => line_len,
            Line::Body(len) if *len <= SAME_BYTES_MAX as u64 => {
                line_len + usize::try_from(*len).unwrap_or(SAME_BYTES_MAX) + 2
            }
            _ => return,
        };
        // If the line began in earlier bytes, this part of it is not complete.
        let begins = bytes.first().is_some_and(|kind| b"+:,#_($*=".contains(kind));
        if begins && len <= SAME_BYTES_MAX && len <= bytes.len() {
            self.same = Same::new(&bytes[..len]);
        }
    }
}

impl Same {
    fn new(scalar: &[u8]) -> Same {
        let mut bytes = [0; SAME_BYTES_MAX];
        bytes[..scalar.len()].copy_from_slice(scalar);
        let mask = u128::MAX >> (8 * (SAME_BYTES_MAX - scalar.len()));
        Same { bytes: u128::from_le_bytes(bytes), mask, len: scalar.len() }
    }

    /// The rest of `bytes` after the scalar, if they begin with it and are long enough for a single load.
    #[inline]
    fn strip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let word = u128::from_le_bytes(*bytes.first_chunk::<SAME_BYTES_MAX>()?);
        (self.len > 0 && word & self.mask == self.bytes).then(|| &bytes[self.len..])
    }
}

fn length(digits: &[u8]) -> Result<u64, ScanError> {
    if digits.is_empty() || digits.len() > 10 {
        return Err(ScanError::Length);
    }
    let mut length = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(ScanError::Length);
        }
        length = length * 10 + u64::from(digit - b'0');
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_resp::{ReplyDecoder, ReplyLimits, ReplyStep, Value};

    /// The number of replies, and the error texts, when the bytes arrive in two parts.
    fn scanned(bytes: &[u8], cut: usize) -> Result<(usize, Vec<String>), ScanError> {
        let (mut scanner, mut replies, mut errors) = (Scanner::default(), 0, Vec::new());
        for piece in bytes.chunks(cut) {
            replies += scanner.scan(piece, &mut |text: &[u8]| {
                errors.push(String::from_utf8_lossy(text).into_owned());
            })?;
        }
        Ok((replies, errors))
    }

    fn check(text: &str, replies: usize, errors: &[&str]) {
        let bytes = text.replace('|', "\r\n").replace('!', "|");
        for cut in [1, 2, 3, 7, 16, 1000] {
            let got = scanned(bytes.as_bytes(), cut);
            let errors = errors.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(got, Ok((replies, errors)), "{text:?} cut at {cut}");
        }
    }

    #[test]
    fn replies_of_all_types_are_counted() {
        check("+OK|", 1, &[]);
        check("+OK|+OK|+OK|+OK|+OK|+PONG|+OK|", 7, &[]);
        check(":1|:22|:333|", 3, &[]);
        check("$3|xxx|$3|xxx|$-1|$0||$3|xxx|", 5, &[]);
        check("$14|with|in|side|+OK|", 2, &[]);
        check("*3|:1|*2|$1|x|$1|y|$1|z|+OK|", 2, &[]);
        check("*0|*-1|*1|*0|_|#t|,1.5|(123|", 7, &[]);
        check("%2|+a|:1|+b|*1|:2|~2|:1|:2|=5|txt:x|", 3, &[]);
        check("*100|", 0, &[]);
    }

    #[test]
    fn top_level_errors_are_reported_and_nested_ones_are_not() {
        check("-ERR no|+OK|-MOVED 1 a|", 3, &["ERR no", "MOVED 1 a"]);
        check("*2|-ERR inner|:1|*1|-ERR inner|", 2, &[]);
    }

    #[test]
    fn pushes_and_attributes_are_not_replies() {
        check(">2|+invalidate|*1|+key|+OK|", 1, &[]);
        check("+OK|>0|+OK|", 2, &[]);
        check("!1|+ttl|:3|+OK|", 1, &[]);
        check("*2|!1|+ttl|:3|:1|:2|", 1, &[]);
    }

    #[test]
    fn nonsense_is_an_error() {
        for (text, wanted) in [
            ("hello\r\n", ScanError::Type(b'h')),
            ("$x\r\n", ScanError::Length),
            ("$99999999999\r\n", ScanError::Length),
            ("*-2\r\n", ScanError::Length),
            ("+OK\n", ScanError::Line),
            ("\r\n", ScanError::Type(b'\r')),
        ] {
            assert_eq!(scanned(text.as_bytes(), 1000), Err(wanted), "{text:?}");
        }
        let endless = vec![b'+'; 2 * LINE_BYTES_MAX];
        assert_eq!(scanned(&endless, 1000), Err(ScanError::Line));
    }

    #[test]
    fn the_scanner_counts_what_the_decoder_decodes() {
        let mut random = crate::load::random::Random::new(5);
        for _ in 0..200 {
            let mut bytes = Vec::new();
            for _ in 0..20 {
                write_value(&mut bytes, &mut random, 3);
            }
            let (mut decoder, mut decoded) = (ReplyDecoder::new(ReplyLimits::default()), 0);
            let mut rest = bytes.as_slice();
            while let ReplyStep::Value { consumed, value } = decoder.decode(rest).unwrap() {
                rest = &rest[consumed..];
                decoded += usize::from(!matches!(value, Value::Push(_)));
                if rest.is_empty() {
                    break;
                }
            }
            let cut = 1 + random.below(40) as usize;
            assert_eq!(scanned(&bytes, cut).unwrap().0, decoded);
        }
    }

    fn write_value(out: &mut Vec<u8>, random: &mut crate::load::random::Random, depth: u32) {
        let kinds = if depth == 0 { 4 } else { 8 };
        let some = random.below(4);
        let text = match random.below(kinds) {
            0 => "+OK\r\n".to_owned(),
            1 => format!(":{some}\r\n"),
            2 => format!("${}\r\n{}\r\n", some * 5, "abcde".repeat(some as usize)),
            3 => "$-1\r\n".to_owned(),
            4 => format!("*{some}\r\n"),
            5 => format!("~{some}\r\n"),
            6 => format!("%{some}\r\n"),
            _ => format!(">{}\r\n+message\r\n", some + 1),
        };
        out.extend_from_slice(text.as_bytes());
        let children = match text.as_bytes()[0] {
            b'*' | b'~' | b'>' => some,
            b'%' => 2 * some,
            _ => 0,
        };
        (0..children).for_each(|_| write_value(out, random, depth - 1));
    }
}
