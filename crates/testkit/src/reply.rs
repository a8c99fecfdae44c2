//! Replies as the tests see them: framing, parsed trees, and the text that `redis-cli` prints.
//!
//! This decoder is deliberately independent of `brisk-resp`: a decoder that shares bugs with the server under test
//! could not find them. It is written for simplicity rather than speed, except [`frame_len`], which the differential
//! runner calls for every reply.

use crate::words::quoted;
use std::fmt;

/// Deeper nesting is treated as a corrupt stream. The deepest real reply is COMMAND DOCS (11).
const DEPTH_MAX: usize = 64;

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// All three spellings: `$-1`, `*-1` and `_`.
    Null,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
    /// The digits as sent, because tests compare them.
    Double(Vec<u8>),
    Bool(bool),
    BigNumber(Vec<u8>),
    Verbatim(Vec<u8>),
}

impl Reply {
    /// Parses the reply at the start of `bytes`. Returns the reply and its length, `None` if more bytes are needed, or
    /// an error text if the bytes are not valid RESP.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
        match frame_len(bytes)? {
            None => Ok(None),
            Some(len) => {
                let mut at = 0;
                Ok(Some((parse_at(&bytes[..len], &mut at)?, len)))
            }
        }
    }

    /// Reports whether this is an error reply.
    pub const fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// The elements of an array, set or push, or the alternating keys and values of a map. Empty for other replies.
    pub fn elements(&self) -> Vec<&Reply> {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items.iter().collect(),
            Reply::Map(pairs) => pairs.iter().flat_map(|(k, v)| [k, v]).collect(),
            _ => Vec::new(),
        }
    }

    /// The text of a string-like reply (without `txt:` if it is verbatim), or the decimal digits of an integer. Empty
    /// for other replies.
    pub fn text(&self) -> String {
        match self {
            Reply::Status(b)
            | Reply::Error(b)
            | Reply::Bulk(b)
            | Reply::Double(b)
            | Reply::BigNumber(b) => String::from_utf8_lossy(b).into_owned(),
            Reply::Verbatim(b) => {
                String::from_utf8_lossy(b.get(4..).unwrap_or_default()).into_owned()
            }
            Reply::Integer(n) => n.to_string(),
            _ => String::new(),
        }
    }

    /// The value under `key` in a map, or in a flat array of keys and values as RESP2 sends it.
    pub fn field(&self, key: &str) -> Option<&Reply> {
        let items = self.elements();
        items.chunks_exact(2).find(|pair| pair[0].text() == key).map(|pair| pair[1])
    }

    /// The number in an integer reply.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(n) => *n,
            other => panic!("not an integer: {other}"),
        }
    }
}

/// Length of the reply at the start of `bytes`; `None` if it is incomplete.
pub fn frame_len(bytes: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    let mut open = 1usize; // values still to come
    while open > 0 {
        let Some(end) = line_end(bytes, at) else { return Ok(None) };
        let kind = bytes[at];
        let body = &bytes[at + 1..end];
        at = end + 2;
        open -= 1;
        match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {}
            b'$' | b'=' | b'!' => {
                let len = count(body)?;
                if len >= 0 {
                    at += len as usize + 2;
                    if at > bytes.len() {
                        return Ok(None);
                    }
                    if &bytes[at - 2..at] != b"\r\n" {
                        return Err("a bulk string does not end in CRLF".to_owned());
                    }
                }
            }
            b'*' | b'~' | b'>' => open += count(body)?.max(0) as usize,
            b'%' => open += 2 * count(body)?.max(0) as usize,
            b'|' => open += 2 * count(body)?.max(0) as usize + 1, // an attribute and what it adorns
            other => return Err(format!("{:?} does not open a reply", char::from(other))),
        }
    }
    Ok(Some(at))
}

fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let found = bytes.get(from..)?.iter().position(|&b| b == b'\r')?;
    let end = from + found;
    (bytes.get(end + 1) == Some(&b'\n')).then_some(end)
}

fn count(digits: &[u8]) -> Result<i64, String> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{} is no length", quoted(digits)))
}

fn parse_at(bytes: &[u8], at: &mut usize) -> Result<Reply, String> {
    parse_deep(bytes, at, 0)
}

fn parse_deep(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Reply, String> {
    if depth > DEPTH_MAX {
        return Err("a reply nests too deep".to_owned());
    }
    let end = line_end(bytes, *at).ok_or("a line does not end")?;
    let kind = bytes[*at];
    let body = &bytes[*at + 1..end];
    *at = end + 2;
    let many = |at: &mut usize, n: i64| -> Result<Vec<Reply>, String> {
        (0..n).map(|_| parse_deep(bytes, at, depth + 1)).collect()
    };
    let pairs = |at: &mut usize, n: i64| -> Result<Vec<(Reply, Reply)>, String> {
        let mut one = || parse_deep(bytes, at, depth + 1);
        (0..n).map(|_| Ok((one()?, one()?))).collect()
    };
    Ok(match kind {
        b'+' => Reply::Status(body.to_vec()),
        b'-' => Reply::Error(body.to_vec()),
        b':' => Reply::Integer(count(body)?),
        b'_' => Reply::Null,
        b',' => Reply::Double(body.to_vec()),
        b'#' => Reply::Bool(body == b"t"),
        b'(' => Reply::BigNumber(body.to_vec()),
        b'$' | b'=' | b'!' => match count(body)? {
            len if len < 0 => Reply::Null,
            len => {
                let start = *at;
                *at += len as usize + 2;
                let content = bytes[start..start + len as usize].to_vec();
                match kind {
                    b'$' => Reply::Bulk(content),
                    b'!' => Reply::Error(content),
                    _ => Reply::Verbatim(content),
                }
            }
        },
        b'*' => match count(body)? {
            n if n < 0 => Reply::Null,
            n => Reply::Array(many(at, n)?),
        },
        b'~' => Reply::Set(many(at, count(body)?)?),
        b'>' => Reply::Push(many(at, count(body)?)?),
        b'%' => Reply::Map(pairs(at, count(body)?)?),
        b'|' => {
            pairs(at, count(body)?)?;
            parse_deep(bytes, at, depth)?
        }
        other => return Err(format!("{:?} does not open a reply", char::from(other))),
    })
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self, 0))
    }
}

/// The text of `reply`; lines after the first are indented by `indent` blanks.
fn shown(reply: &Reply, indent: usize) -> String {
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match reply {
        Reply::Status(b) => plain(b),
        Reply::Error(b) => format!("(error) {}", plain(b)),
        Reply::Integer(n) => format!("(integer) {n}"),
        Reply::Bulk(b) => quoted(b),
        Reply::Null => "(nil)".to_owned(),
        Reply::Double(b) => format!("(double) {}", plain(b)),
        Reply::Bool(b) => format!("({b})"),
        Reply::BigNumber(b) => plain(b),
        Reply::Verbatim(b) => plain(b.get(4..).unwrap_or_default()),
        Reply::Array(items) | Reply::Push(items) => listed(items, ") ", "(empty array)", indent),
        Reply::Set(items) => listed(items, "~ ", "(empty set)", indent),
        Reply::Map(pairs) if pairs.is_empty() => "(empty hash)".to_owned(),
        Reply::Map(pairs) => numbered(pairs.len(), "# ", indent, |i, deeper| {
            let (key, value) = &pairs[i];
            format!("{} => {}", shown(key, deeper), shown(value, deeper))
        }),
    }
}

fn listed(items: &[Reply], mark: &str, empty: &str, indent: usize) -> String {
    if items.is_empty() {
        return empty.to_owned();
    }
    numbered(items.len(), mark, indent, |i, deeper| shown(&items[i], deeper))
}

fn numbered(n: usize, mark: &str, indent: usize, item: impl Fn(usize, usize) -> String) -> String {
    let width = n.to_string().len();
    let deeper = indent + width + mark.len();
    let lines = (0..n).map(|i| format!("{:>width$}{mark}{}", i + 1, item(i, deeper)));
    lines.collect::<Vec<_>>().join(&format!("\n{:indent$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let (reply, len) = Reply::parse(bytes).unwrap().unwrap();
        assert_eq!(len, bytes.len());
        reply.to_string()
    }

    #[test]
    fn replies_are_shown_as_redis_cli_shows_them() {
        assert_eq!(text(b"+OK\r\n"), "OK");
        assert_eq!(text(b"-ERR no\r\n"), "(error) ERR no");
        assert_eq!(text(b"$4\r\na\"\r\n\r\n"), r#""a\"\r\n""#);
        assert_eq!(text(b"*-1\r\n"), "(nil)");
        assert_eq!(
            text(b"*2\r\n:1\r\n*2\r\n:2\r\n:3\r\n"),
            "1) (integer) 1\n2) 1) (integer) 2\n   2) (integer) 3"
        );
        assert_eq!(text(b"%1\r\n$1\r\nk\r\n,1.5\r\n"), "1# \"k\" => (double) 1.5");
        assert_eq!(text(b"~0\r\n"), "(empty set)");
    }

    #[test]
    fn a_reply_cut_anywhere_is_incomplete_not_wrong() {
        let whole = b"*3\r\n$3\r\na\r\n\r\n%1\r\n+k\r\n:1\r\n_\r\n";
        for cut in 0..whole.len() {
            assert_eq!(frame_len(&whole[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(frame_len(whole), Ok(Some(whole.len())));
    }
}
