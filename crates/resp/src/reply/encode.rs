//! Encodes replies: free functions that append to an output buffer.
//!
//! Where the two protocol versions differ, the function takes the [`Protocol`] and writes the right
//! form for both. Callers therefore express what they mean (a map, a null) and never check the
//! version. An aggregate is a header followed by its elements, which the caller writes.

use memchr::memchr2;

use super::{Protocol, format_double};

/// `+OK`
pub const OK: &[u8] = b"+OK\r\n";
/// `+PONG`
pub const PONG: &[u8] = b"+PONG\r\n";
/// `+QUEUED`
pub const QUEUED: &[u8] = b"+QUEUED\r\n";

/// Room for any header: type, 20 characters, line end; also for a bulk string's own line end.
const HEADER_BYTES_MAX: usize = 25;

/// The kinds of aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// `n` elements, in order.
    Array,
    /// `n` pairs, so `2n` elements follow; an array of `2n` in RESP2.
    Map,
    /// `n` elements without an order; an array in RESP2.
    Set,
    /// `n` elements that are not the reply to a request; an array in RESP2.
    Push,
}

/// `+text`. Line ends inside the text become spaces.
pub fn simple(out: &mut Vec<u8>, text: &[u8]) {
    line(out, b'+', text);
}

/// `+text`, for a text that is known to contain no line end.
#[inline]
pub fn word(out: &mut Vec<u8>, text: &'static str) {
    debug_assert!(memchr2(b'\r', b'\n', text.as_bytes()).is_none());
    out.reserve(text.len() + 3);
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// `-text`; `text` starts with its code (`ERR …`). Line ends inside the text become spaces.
pub fn error(out: &mut Vec<u8>, text: &[u8]) {
    line(out, b'-', text);
}

/// `:value`
#[inline]
pub fn integer(out: &mut Vec<u8>, value: i64) {
    match u64::try_from(value) {
        Ok(small) if small < 1000 => number(out, b':', small),
        _ => {
            out.reserve(HEADER_BYTES_MAX);
            out.push(b':');
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A string of any bytes: `$length`, the bytes, a line end.
#[inline(always)]
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    if let 1..=SHORT_MAX = bytes.len() { short_bulk(out, bytes) } else { other_bulk(out, bytes) }
}

fn other_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + HEADER_BYTES_MAX);
    number(out, b'$', bytes.len() as u64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Maximum length of a text that is written with copies of constant length.
const SHORT_MAX: usize = 32;
/// Room for a text of that length, with some bytes to spare.
const SHORT_ROOM: usize = 40;

/// The headers of short texts, padded with zeros.
const HEADERS: [[u8; 8]; SHORT_MAX + 1] = {
    let mut headers = [[0; 8]; SHORT_MAX + 1];
    let mut len = 0;
    while len <= SHORT_MAX {
        let (tens, ones) = (b'0' + len as u8 / 10, b'0' + len as u8 % 10);
        headers[len] = match len {
            0..10 => [b'$', ones, b'\r', b'\n', 0, 0, 0, 0],
            _ => [b'$', tens, ones, b'\r', b'\n', 0, 0, 0],
        };
        len += 1;
    }
    headers
};

/// Most strings are so short that reserving room and computing copy lengths for each part costs
/// more than the bytes. This function therefore reserves once, and writes the text with two copies
/// of constant length, of which the second overlaps the first.
fn short_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    let (start, len) = (out.len(), bytes.len());
    out.extend_from_slice(&[0; SHORT_ROOM]);
    let Some(room) = out.last_chunk_mut::<SHORT_ROOM>() else { return };
    room[..8].copy_from_slice(&HEADERS[len]);
    let text = if len < 10 { 4 } else { 5 };
    let rest = &mut room[text..];
    match len {
        16.. => twice::<16>(rest, bytes),
        8.. => twice::<8>(rest, bytes),
        4.. => twice::<4>(rest, bytes),
        2.. => twice::<2>(rest, bytes),
        _ => twice::<1>(rest, bytes),
    }
    rest[len..len + 2].copy_from_slice(b"\r\n");
    out.truncate(start + text + len + 2);
}

/// Copies N to 2N bytes.
#[inline]
fn twice<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        room[..N].copy_from_slice(first);
        room[bytes.len() - N..bytes.len()].copy_from_slice(last);
    }
}

/// An integer as a bulk string, for example the reply of GET for a counter.
#[inline]
pub fn bulk_integer(out: &mut Vec<u8>, value: i64) {
    bulk(out, itoa::Buffer::new().format(value).as_bytes());
}

/// A null for a missing value: `$-1`, or `_` in RESP3.
#[inline]
pub fn null(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// A null for a missing list: `*-1`, or `_` in RESP3.
#[inline]
pub fn null_array(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"*-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// The header of an array of `count` elements.
#[inline]
pub fn array(out: &mut Vec<u8>, count: usize) {
    number(out, b'*', count as u64);
}

/// The header of a map; `pairs` keys and values follow alternately.
#[inline]
pub fn map(out: &mut Vec<u8>, protocol: Protocol, pairs: usize) {
    aggregate(out, protocol, Aggregate::Map, pairs);
}

/// The header of a set of `count` elements.
#[inline]
pub fn set(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    aggregate(out, protocol, Aggregate::Set, count);
}

/// The header of a push message of `count` elements.
#[inline]
pub fn push(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    aggregate(out, protocol, Aggregate::Push, count);
}

/// The header of any aggregate.
#[inline]
pub fn aggregate(out: &mut Vec<u8>, protocol: Protocol, kind: Aggregate, count: usize) {
    let count = count as u64;
    match (kind, protocol) {
        (Aggregate::Map, Protocol::Resp2) => number(out, b'*', count.saturating_mul(2)),
        (Aggregate::Map, Protocol::Resp3) => number(out, b'%', count),
        (Aggregate::Set, Protocol::Resp3) => number(out, b'~', count),
        (Aggregate::Push, Protocol::Resp3) => number(out, b'>', count),
        _ => number(out, b'*', count),
    }
}

/// Inserts an aggregate's header before the elements that were written since `at`, for a count that
/// is known only afterwards. O(bytes written since). An `at` beyond the end counts as the end.
pub fn insert_aggregate(
    out: &mut Vec<u8>,
    at: usize,
    protocol: Protocol,
    kind: Aggregate,
    count: usize,
) {
    let end = out.len();
    aggregate(out, protocol, kind, count);
    let header = out.len() - end;
    out[at.min(end)..].rotate_right(header);
}

/// The header of attributes: `pairs` pairs follow, then the reply that they describe. RESP2 has no
/// attributes: nothing is written, and the result is `false`. The caller must then leave out the
/// pairs.
#[must_use]
pub fn attribute(out: &mut Vec<u8>, protocol: Protocol, pairs: usize) -> bool {
    let known = protocol == Protocol::Resp3;
    if known {
        number(out, b'|', pairs as u64);
    }
    known
}

/// A double with 17 significant digits (as in Redis 7.0): `,text`, or a bulk string in RESP2.
pub fn double(out: &mut Vec<u8>, protocol: Protocol, value: f64) {
    match protocol {
        Protocol::Resp2 => {
            // A double's text has at most 24 bytes, so its length has one or two digits.
            let at = out.len();
            format_double::append(out, value);
            let len = out.len() - at;
            number(out, b'$', len as u64);
            let header = out.len() - at - len;
            out[at..].rotate_right(header);
        }
        Protocol::Resp3 => {
            out.push(b',');
            format_double::append(out, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The text of a double alone: 17 significant digits, as Redis 7.0 writes it everywhere.
pub fn double_text(out: &mut Vec<u8>, value: f64) {
    format_double::append(out, value);
}

/// `#t` or `#f`, or `:1` or `:0` in RESP2.
#[inline]
pub fn boolean(out: &mut Vec<u8>, protocol: Protocol, value: bool) {
    out.extend_from_slice(match (protocol, value) {
        (Protocol::Resp2, false) => b":0\r\n",
        (Protocol::Resp2, true) => b":1\r\n",
        (Protocol::Resp3, false) => b"#f\r\n",
        (Protocol::Resp3, true) => b"#t\r\n",
    });
}

/// An integer of any size, given as its digits: `(digits`, or a bulk string in RESP2.
pub fn big_number(out: &mut Vec<u8>, protocol: Protocol, digits: &[u8]) {
    match protocol {
        Protocol::Resp2 => bulk(out, digits),
        Protocol::Resp3 => line(out, b'(', digits),
    }
}

/// Text for humans, with a three-letter format (`txt`, `mkd`); a bulk string in RESP2.
pub fn verbatim(out: &mut Vec<u8>, protocol: Protocol, format: [u8; 3], text: &[u8]) {
    if protocol == Protocol::Resp2 {
        return bulk(out, text);
    }
    out.reserve(text.len() + HEADER_BYTES_MAX + 4);
    number(out, b'=', text.len() as u64 + 4);
    out.extend_from_slice(&format);
    out.push(b':');
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// `<type>value\r\n`. Lengths and counts are nearly always short, so numbers of up to three digits
/// are written as arrays of constant size, which compile to one or two stores.
#[inline]
fn number(out: &mut Vec<u8>, kind: u8, value: u64) {
    let digit = |unit: u64| b'0' + (value / unit % 10) as u8;
    match value {
        0..10 => out.extend_from_slice(&[kind, digit(1), b'\r', b'\n']),
        10..100 => out.extend_from_slice(&[kind, digit(10), digit(1), b'\r', b'\n']),
        100..1000 => {
            out.extend_from_slice(&[kind, digit(100), digit(10), digit(1), b'\r', b'\n']);
        }
        _ => {
            out.push(kind);
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.reserve(text.len() + 3);
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(text);
    // A line end inside would end the reply, and the rest would be read as another one.
    if memchr2(b'\r', b'\n', text).is_some() {
        for byte in &mut out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"<".to_vec();
        write(&mut out);
        out[1..].escape_ascii().to_string().replace("\\r\\n", "|")
    }

    #[test]
    fn headers_of_every_length_are_plain_decimals() {
        for value in [0i64, 7, 10, 42, 99, 100, 999, 1000, i64::MAX, -1, -1000, i64::MIN] {
            assert_eq!(written(|out| integer(out, value)), format!(":{value}|"));
        }
        for len in (0..70).chain([99, 100, 999, 1000, 70_000]) {
            let text = &"a-text-whose-parts-differ-".repeat(len / 26 + 1)[..len];
            assert_eq!(written(|out| bulk(out, text.as_bytes())), format!("${len}|{text}|"));
        }
    }

    #[test]
    fn each_protocol_gets_its_own_form() {
        use Protocol::{Resp2, Resp3};
        type Write = fn(&mut Vec<u8>, Protocol);
        let rows: [(Write, &str, &str); 13] = [
            (null, "$-1|", "_|"),
            (null_array, "*-1|", "_|"),
            (|out, p| map(out, p, 3), "*6|", "%3|"),
            (|out, p| set(out, p, 3), "*3|", "~3|"),
            (|out, p| push(out, p, 2), "*2|", ">2|"),
            (|out, _| array(out, 10), "*10|", "*10|"),
            (|out, p| assert_eq!(attribute(out, p, 1), p == Resp3), "", "|1|"),
            (|out, p| double(out, p, 1.5), "$3|1.5|", ",1.5|"),
            (|out, p| double(out, p, 3.1), "$18|3.1000000000000001|", ",3.1000000000000001|"),
            (|out, p| boolean(out, p, true), ":1|", "#t|"),
            (
                |out, p| big_number(out, p, b"12345678901234567890"),
                "$20|12345678901234567890|",
                "(12345678901234567890|",
            ),
            (|out, p| verbatim(out, p, *b"txt", b"a b"), "$3|a b|", "=7|txt:a b|"),
            (
                |out, p| {
                    let at = out.len();
                    bulk(out, b"k");
                    bulk(out, b"v");
                    insert_aggregate(out, at, p, Aggregate::Map, 1);
                },
                "*2|$1|k|$1|v|",
                "%1|$1|k|$1|v|",
            ),
        ];
        for (write, resp2, resp3) in rows {
            assert_eq!(written(|out| write(out, Resp2)), resp2);
            assert_eq!(written(|out| write(out, Resp3)), resp3);
        }
    }

    #[test]
    fn line_ends_in_errors_cannot_end_the_reply() {
        assert_eq!(written(|out| error(out, b"ERR a\r\nb")), "-ERR a  b|");
        assert_eq!(written(|out| simple(out, b"a\nb")), "+a b|");
    }
}
