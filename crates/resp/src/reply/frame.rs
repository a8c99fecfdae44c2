//! Finds the end of a reply in bytes that arrive in pieces, without decoding it.
//!
//! A client that has a complete reply in one piece of memory can pass it to its caller, which reads
//! it in place ([`super::read`]). The caller therefore keeps the bytes of the reply until it is
//! complete, and the scanner remembers its position. Each byte is scanned once, however many pieces
//! the bytes arrive in, and the content of strings is not scanned at all.
//!
//! The scanner only counts nested values. The reader checks how deeply they are nested.

use super::decode::{ReplyError, ReplyLimits};
use super::token::{LineSearch, Open, Token, token};

/// The result of [`FrameScanner::scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The reply is complete and has this many bytes.
    Whole(usize),
    /// At least this many bytes are missing. The peer claims this number, so cap it before
    /// reserving memory.
    Incomplete(usize),
}

/// Finds the ends of replies.
#[derive(Debug, Default)]
pub struct FrameScanner {
    limits: ReplyLimits,
    /// Number of bytes of this reply that were scanned.
    at: usize,
    /// Number of values of this reply that are still to come after the current one.
    remaining: u64,
    /// Length of the string that is expected next.
    body: Option<usize>,
    line: LineSearch,
}

impl FrameScanner {
    /// Creates a scanner at the start of a reply; never allocates anything.
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
        self.at == 0 && self.line.is_idle()
    }

    /// Continues scanning. `input` begins with the first byte of the reply in every call. O(new
    /// bytes), and O(1) for a string of any length.
    ///
    /// # Errors
    /// The bytes are not a reply or exceed the limits. The scanner is reset, and the connection
    /// must no longer be used.
    #[inline]
    pub fn scan(&mut self, input: &[u8]) -> Result<Scan, ReplyError> {
        let found = self.look(input);
        if matches!(found, Ok(Scan::Whole(_)) | Err(_)) {
            self.reset();
        }
        found
    }

    #[inline]
    fn look(&mut self, input: &[u8]) -> Result<Scan, ReplyError> {
        loop {
            let rest = input.get(self.at..).unwrap_or_default();
            if let Some(len) = self.body {
                let whole = len.saturating_add(2);
                if rest.len() < whole {
                    return Ok(Scan::Incomplete(whole - rest.len()));
                }
                if &rest[len..whole] != b"\r\n" {
                    return Err(ReplyError::UnterminatedBulk);
                }
                self.body = None;
                self.at += whole;
            } else {
                let Some(end) = self.line.end(rest, &self.limits)? else {
                    return Ok(Scan::Incomplete(1));
                };
                self.at += end + 2;
                match token(&rest[..end], &self.limits)? {
                    Token::Body(_, len) => {
                        self.body = Some(len);
                        continue;
                    }
                    // The described value follows the attributes.
                    Token::Open(Open::Attributes, count) => {
                        self.remaining = self.remaining.saturating_add(count);
                        continue;
                    }
                    Token::Open(_, count) => self.remaining = self.remaining.saturating_add(count),
                    _ => {}
                }
            }
            if self.remaining == 0 {
                return Ok(Scan::Whole(self.at));
            }
            self.remaining -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::decode::{ReplyDecoder, ReplyStep};
    use proptest::prelude::*;

    /// Generates replies of all types, nested, that the decoder accepts.
    fn replies() -> impl Strategy<Value = Vec<u8>> {
        let text = "[a-z ]{0,12}";
        let leaf = prop_oneof![
            text.prop_map(|text| format!("+{text}\r\n").into_bytes()),
            text.prop_map(|text| format!("-ERR {text}\r\n").into_bytes()),
            any::<i64>().prop_map(|value| format!(":{value}\r\n").into_bytes()),
            any::<f32>().prop_map(|value| {
                let text = if value.is_finite() { value.to_string() } else { "inf".to_owned() };
                format!(",{text}\r\n").into_bytes()
            }),
            Just(b"#t\r\n".to_vec()),
            Just(b"$-1\r\n".to_vec()),
            Just(b"*-1\r\n".to_vec()),
            Just(b"_\r\n".to_vec()),
            Just(b"(12345678901234567890\r\n".to_vec()),
            Just(b"=7\r\ntxt:a\r\n\r\n".to_vec()),
            Just(b"!5\r\nERR a\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
                let mut out = format!("${}\r\n", bytes.len()).into_bytes();
                out.extend_from_slice(&bytes);
                out.extend_from_slice(b"\r\n");
                out
            }),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let kinds = prop_oneof![Just('*'), Just('~'), Just('>'), Just('%'), Just('|')];
            (kinds, proptest::collection::vec(inner, 0..6)).prop_map(|(kind, mut values)| {
                let count = match kind {
                    '%' => values.len() / 2,
                    '|' => values.len().saturating_sub(1) / 2,
                    _ => values.len(),
                };
                match kind {
                    '%' => values.truncate(count * 2),
                    '|' if values.is_empty() => values.push(b"+OK\r\n".to_vec()),
                    '|' => values.truncate(count * 2 + 1),
                    _ => {}
                }
                let mut out = format!("{kind}{count}\r\n").into_bytes();
                values.iter().for_each(|value| out.extend_from_slice(value));
                out
            })
        })
    }

    proptest! {
        #[test]
        fn a_reply_ends_where_the_decoder_says_however_it_arrives(
            reply in replies(),
            more in proptest::collection::vec(any::<u8>(), 0..9),
            cuts in proptest::collection::vec(0usize..600, 0..8),
        ) {
            let input = [reply.clone(), more].concat();
            let step = ReplyDecoder::new(ReplyLimits::default()).decode(&input);
            let Ok(ReplyStep::Value { consumed, .. }) = step else { panic!("{step:?}") };
            prop_assert_eq!(consumed, reply.len());
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < consumed).collect();
            cuts.sort_unstable();
            let mut scanner = FrameScanner::default();
            for cut in cuts {
                let found = scanner.scan(&input[..cut]);
                let Ok(Scan::Incomplete(need)) = found else { panic!("{found:?}") };
                prop_assert!(need > 0 && cut + need <= consumed);
            }
            prop_assert_eq!(scanner.scan(&input), Ok(Scan::Whole(consumed)));
            prop_assert!(scanner.is_idle());
        }

        #[test]
        fn scanner_and_decoder_reject_the_same_replies(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let decoded = ReplyDecoder::new(ReplyLimits::default()).decode(&bytes);
            let scanned = FrameScanner::default().scan(&bytes);
            match decoded {
                Ok(ReplyStep::Value { consumed, .. }) => {
                    prop_assert_eq!(scanned, Ok(Scan::Whole(consumed)));
                }
                Ok(ReplyStep::Incomplete { .. }) => {
                    prop_assert!(matches!(scanned, Ok(Scan::Incomplete(_))));
                }
                // The reader checks the format of a verbatim string.
                Err(ReplyError::Malformed(b'=')) => {}
                Err(error) => prop_assert_eq!(scanned, Err(error)),
            }
        }
    }

    #[test]
    fn values_are_counted_and_not_nested_so_that_depth_costs_nothing() {
        let deep = [b"*1\r\n".repeat(100_000), b":1\r\n".to_vec()].concat();
        assert_eq!(FrameScanner::default().scan(&deep), Ok(Scan::Whole(deep.len())));
    }

    #[test]
    fn claims_beyond_the_limits_are_rejected() {
        let limits = ReplyLimits { bulk_bytes_max: 10, elements_max: 10, ..ReplyLimits::default() };
        for (bytes, error) in [
            (&b"$11\r\n"[..], ReplyError::TooLong),
            (b"*11\r\n", ReplyError::TooLong),
            (b"$1\r\nab\r\n", ReplyError::UnterminatedBulk),
            (b"?\r\n", ReplyError::UnknownType(b'?')),
        ] {
            assert_eq!(FrameScanner::new(limits).scan(bytes), Err(error));
        }
    }
}
