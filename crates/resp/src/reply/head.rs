//! The first line of a reply, for callers that consume large replies piece by piece instead of
//! waiting for all of it.

use super::decode::{ReplyError, ReplyLimits};
use super::token::{Blob, LineSearch, Open, Token, token};

/// The meaning of a reply's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// `$length`: this many bytes follow, and a line end.
    Bulk(usize),
    /// `*count`, `~count` or `%pairs`: this many values follow; keys and values of a map count
    /// separately.
    Values(u64),
    /// `|pairs`: this many values follow, and then the reply that they describe.
    Attributes(u64),
    /// `>count`: this many values follow, which are not a reply.
    Push(u64),
    /// Any of the null types.
    Null,
    /// A type that is usually short: read it as a whole ([`super::frame`]).
    Other,
}

/// Returns the head of a reply and the length of its line; `None` if the line is incomplete.
/// O(bytes of the line).
///
/// # Errors
/// Those of [`super::frame::FrameScanner::scan`]. The connection must not be used after an error.
pub fn head(input: &[u8], limits: &ReplyLimits) -> Result<Option<(Head, usize)>, ReplyError> {
    let Some(end) = LineSearch::default().end(input, limits)? else { return Ok(None) };
    let head = match token(&input[..end], limits)? {
        Token::Body(Blob::Bulk, len) => Head::Bulk(len),
        Token::Open(Open::Array | Open::Map | Open::Set, count) => Head::Values(count),
        Token::Open(Open::Attributes, count) => Head::Attributes(count),
        Token::Open(Open::Push, count) => Head::Push(count),
        Token::Null | Token::NullArray => Head::Null,
        _ => Head::Other,
    };
    Ok(Some((head, end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<(Head, usize)>, ReplyError> {
        head(text.as_bytes(), &ReplyLimits::default())
    }

    #[test]
    fn heads_of_all_kinds_are_parsed_with_the_length_of_their_line() {
        for (text, expected, line) in [
            ("$11\r\nhello", Head::Bulk(11), 5),
            ("$0\r\n\r\n", Head::Bulk(0), 4),
            ("*3\r\n:1\r\n", Head::Values(3), 4),
            ("~3\r\n", Head::Values(3), 4),
            ("%3\r\n", Head::Values(6), 4),
            ("|1\r\n", Head::Attributes(2), 4),
            (">2\r\n", Head::Push(2), 4),
            ("$-1\r\n", Head::Null, 5),
            ("*-1\r\n", Head::Null, 5),
            ("_\r\n", Head::Null, 3),
            ("+OK\r\n", Head::Other, 5),
            ("-ERR no\r\n", Head::Other, 9),
            ("=7\r\ntxt:abc\r\n", Head::Other, 4),
        ] {
            assert_eq!(of(text), Ok(Some((expected, line))), "{text}");
        }
    }

    #[test]
    fn an_incomplete_line_waits_and_a_malformed_one_is_an_error() {
        for text in ["", "$", "$11", "$11\r"] {
            assert_eq!(of(text), Ok(None), "{text}");
        }
        for text in ["$x\r\n", "$-2\r\n", "?1\r\n", "*99999999999999999999\r\n"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
