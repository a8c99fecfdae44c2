//! Requests as a client writes them: what the decoder beside this reads.

use crate::reply::encode::{array, bulk};

/// Appends the request of these words: an array of bulk strings. O(bytes), and nothing that `out`
/// holds already is looked at.
pub fn encode<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    array(out, words.len());
    words.iter().for_each(|word| bulk(out, word.as_ref()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, RequestDecoder, Spans, Step};

    #[test]
    fn words_become_an_array_of_bulk_strings_behind_what_is_there() {
        let mut out = b"before".to_vec();
        encode(&mut out, &["SET", "k", ""]);
        assert_eq!(out, b"before*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }

    #[test]
    fn the_decoder_reads_the_same_words_whatever_they_hold() {
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
