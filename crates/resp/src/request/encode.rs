//! Encodes requests as a client does. The decoder in this directory reads them.

use super::Span;
use crate::reply::encode::{array, bulk};

/// Appends the request with these arguments: an array of bulk strings. O(bytes). The previous
/// content of `out` is not read.
pub fn encode<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    encode_words(out, words.iter().map(AsRef::as_ref));
}

/// Like [`encode`], for any source of arguments.
#[inline]
pub fn encode_words<'w>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    array(out, words.len());
    words.for_each(|word| bulk(out, word));
}

/// Returns true if `bytes` are exactly the request that [`encode`] writes. `words` are the
/// arguments that the decoder found in them; the decoder also accepts other forms. O(arguments).
#[must_use]
pub fn is_encoded<'w>(bytes: &[u8], words: impl ExactSizeIterator<Item = &'w [u8]>) -> bool {
    let Some(mut rest) = after_header(bytes, b'*', words.len()) else { return false };
    for word in words {
        let after = after_header(rest, b'$', word.len()).and_then(|rest| rest.get(word.len()..));
        let Some(after) = after.and_then(|after| after.strip_prefix(b"\r\n")) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

/// Returns the bytes of a decoded request if they are exactly what [`encode`] writes. `input` is the one that was
/// decoded, and `spans` are all arguments of the request. The decoder accepts only canonical numbers, but skips line
/// ends without checking them, so only these are checked here. Arguments that were not decoded from a request begin at
/// offset 0, and the result is `None`. O(arguments).
#[inline]
#[must_use]
pub fn encoded_bytes<'i>(input: &'i [u8], spans: &[Span]) -> Option<&'i [u8]> {
    let last = spans.last()?;
    let bytes = input.get(..last.offset()?.checked_add(last.len())?.checked_add(2)?)?;
    let header = 2 + digits(spans.len());
    let mut is_plain = bytes[0] == b'*' && bytes.get(header) == Some(&b'\n');
    for span in spans {
        // An argument that was unescaped has an offset beyond every slice.
        let end = span.start.checked_add(span.len())?;
        let before = span.start.checked_sub(1).and_then(|at| bytes.get(at));
        is_plain &= before == Some(&b'\n') && bytes.get(end..)?.starts_with(b"\r\n");
    }
    debug_assert!(
        !is_plain || is_encoded(bytes, spans.iter().map(|at| &input[at.start..at.start + at.len])),
        "headers that the decoder rejects"
    );
    is_plain.then_some(bytes)
}

/// Number of decimal digits.
#[inline]
fn digits(number: usize) -> usize {
    if number < 10 { 1 } else { 1 + number.ilog10() as usize }
}

/// Returns the bytes after a header of this type and number, if `bytes` begin with that header.
fn after_header(bytes: &[u8], kind: u8, number: usize) -> Option<&[u8]> {
    let digits = bytes.strip_prefix(&[kind])?;
    digits.strip_prefix(itoa::Buffer::new().format(number).as_bytes())?.strip_prefix(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, RequestDecoder, Spans, Step};

    #[test]
    fn only_what_is_written_here_counts_as_encoded() {
        let long = "x".repeat(100);
        let words: Vec<&[u8]> = vec![b"SET", b"", long.as_bytes()];
        let mut whole = Vec::new();
        encode(&mut whole, &words);
        assert!(is_encoded(&whole, words.iter().copied()));
        let other: [&[u8]; 6] = [
            b"SET key value\r\n",
            b"\r\n*1\r\n$4\r\nPING\r\n",
            b"*0\r\n*1\r\n$4\r\nPING\r\n",
            b"*1\rx$4\r\nPING\r\n",
            b"*1\r\n$4\r\nPINGxx",
            b"*1\r\n$4\r\nPING\r\n\r\n",
        ];
        for bytes in other {
            assert!(!is_encoded(bytes, [&b"PING"[..]].into_iter()), "{bytes:?}");
        }
        assert!(!is_encoded(&whole[..whole.len() - 1], words.iter().copied()));
        assert!(is_encoded(b"*1\r\n$4\r\nPING\r\n", [&b"PING"[..]].into_iter()));
    }

    #[test]
    fn requests_with_exact_line_ends_are_returned_as_they_are() {
        let found = |input: &[u8]| {
            let mut spans = Spans::new();
            let step = RequestDecoder::new().decode(input, &Limits::default(), &mut spans);
            assert!(matches!(step, Ok(Step::Request { .. })), "{step:?}");
            encoded_bytes(input, spans.as_slice()).map(<[u8]>::to_vec)
        };
        let mut many = Vec::new();
        encode(&mut many, &vec!["argument"; 1_234]);
        let plain: [&[u8]; 4] = [
            b"*1\r\n$4\r\nPING\r\n",
            b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\n\r\nab\r\ncd\r\n\r\n\r\n",
            b"*10\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n\
              $1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n",
            &many,
        ];
        for bytes in plain {
            assert_eq!(found(bytes).as_deref(), Some(bytes));
            assert_eq!(found(&[bytes, b"*1\r\n$4\r\nPING\r\n"].concat()).as_deref(), Some(bytes));
        }
        for bytes in [
            &b"SET key value\r\n"[..],
            b"SET key \"\\r\\n\"\r\n",
            b"*1\rx$4\r\nPING\r\n",
            b"*1\r\n$4\rxPING\r\n",
            b"*1\r\n$4\r\nPINGxx",
            b"*2\r\n$3\r\nGETxx$1\r\na\r\n",
        ] {
            assert_eq!(found(bytes), None, "{bytes:?}");
        }
        let mut spans = Spans::new();
        spans.push(0, 3);
        assert_eq!(encoded_bytes(b"GET", spans.as_slice()), None);
        assert_eq!(encoded_bytes(b"", &[]), None);
    }

    #[test]
    fn arguments_are_appended_as_an_array_of_bulk_strings() {
        let mut out = b"before".to_vec();
        encode(&mut out, &["SET", "k", ""]);
        assert_eq!(out, b"before*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }

    #[test]
    fn the_decoder_reads_back_arguments_of_any_bytes() {
        let words: [&[u8]; 4] = [b"SET", b"a\r\nb\0c", b"", &[b'x'; 70_000]];
        let mut out = Vec::new();
        encode(&mut out, &words);
        let mut spans = Spans::new();
        let step = RequestDecoder::new().decode(&out, &Limits::default(), &mut spans);
        assert!(matches!(step, Ok(Step::Request { .. })), "{step:?}");
        let read: Vec<&[u8]> = spans.as_slice().iter().map(|s| spans.bytes(&out, *s)).collect();
        assert_eq!(read, words);
    }
}
