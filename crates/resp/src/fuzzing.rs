//! Fuzz targets as plain functions: each takes arbitrary bytes and panics if an invariant is
//! violated. `fuzz/` calls them with a fuzzer's input, the test below with random and mutated
//! inputs.

use crate::error::ProtocolError;
use crate::reply::decode::{ReplyDecoder, ReplyError, ReplyLimits, ReplyStep};
use crate::reply::frame::{FrameScanner, Scan};
use crate::reply::read::ReplyReader;
use crate::reply::value::Value;
use crate::request::{Limits, RequestDecoder, Spans, Step};

type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);
type Replies = (Vec<Value>, Option<ReplyError>);

/// Requests are decoded in one piece, in pieces whose sizes come from the end of the input, and
/// byte by byte. The results must be the same.
pub fn request(data: &[u8]) {
    let limits = Limits {
        inline_bytes_max: 300,
        authenticated: data.last().is_none_or(|byte| byte & 1 == 0),
        ..Limits::default()
    };
    let whole = requests(data, [].into_iter(), &limits);
    assert_eq!(requests(data, cuts(data), &limits), whole);
    assert_eq!(requests(data, 1..data.len(), &limits), whole);
}

/// Replies are decoded in one piece, in pieces whose sizes come from the end of the input, and byte
/// by byte. The results must be the same. It must be possible to display every reply. Scanning for
/// the ends of replies and reading replies in place must give the same result.
pub fn reply(data: &[u8]) {
    let whole = replies(data, [].into_iter());
    assert_eq!(replies(data, cuts(data)), whole);
    assert_eq!(replies(data, 1..data.len()), whole);
    for value in &whole.0 {
        assert!(!value.to_string().is_empty() || value.as_bytes() == Some(b""));
    }
    let (frames, error) = frames(data, [].into_iter());
    assert_eq!(self::frames(data, cuts(data)), (frames.clone(), error));
    assert_eq!(self::frames(data, 1..data.len()), (frames.clone(), error));
    if whole.1.is_none() {
        assert_eq!((frames.len(), error), (whole.0.len(), None));
    }
    for (frame, value) in frames.iter().zip(&whole.0) {
        let mut reader = ReplyReader::new(frame);
        assert_eq!(reader.skip(), Ok(()));
        assert!(reader.is_at_end());
        assert_eq!(ReplyReader::new(frame).value().as_ref(), Ok(value));
    }
    for frame in &frames {
        let mut reader = ReplyReader::new(frame);
        while !reader.is_at_end() && reader.part().is_ok() {}
    }
}

/// Ascending offsets, taken from the data so that a fuzzer controls them.
fn cuts(data: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let step = data.last().map_or(1, |&byte| usize::from(byte) % 61 + 2);
    (step..data.len()).step_by(step)
}

fn requests(data: &[u8], cuts: impl Iterator<Item = usize>, limits: &Limits) -> Requests {
    let mut decoder = RequestDecoder::new();
    let mut spans = Spans::new();
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.chain([data.len()]) {
        loop {
            spans.clear();
            let input = &data[start..end];
            let consumed = match decoder.decode(input, limits, &mut spans) {
                Ok(Step::Request { consumed, argc }) => {
                    assert!(argc > 0 && argc == spans.len());
                    let args = spans.as_slice().iter();
                    found.push(args.map(|&span| spans.bytes(input, span).to_vec()).collect());
                    consumed
                }
                Ok(Step::Empty { consumed }) => consumed,
                Ok(Step::Incomplete { need_hint }) => {
                    assert!(need_hint > 0 && spans.is_empty());
                    break;
                }
                Err(error) => {
                    assert!(spans.is_empty());
                    return (found, Some(error));
                }
            };
            assert!(consumed > 0 && consumed <= input.len());
            start += consumed;
        }
    }
    (found, None)
}

fn replies(data: &[u8], cuts: impl Iterator<Item = usize>) -> Replies {
    let limits = ReplyLimits { depth_max: 8, line_bytes_max: 300, ..ReplyLimits::default() };
    let mut decoder = ReplyDecoder::new(limits);
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.chain([data.len()]) {
        loop {
            let input = &data[start..end];
            match decoder.decode(input) {
                Ok(ReplyStep::Value { consumed, value }) => {
                    assert!(consumed > 0 && consumed <= input.len() && decoder.is_idle());
                    start += consumed;
                    found.push(value);
                }
                Ok(ReplyStep::Incomplete { consumed, need_hint }) => {
                    assert!(need_hint > 0 && consumed <= input.len());
                    start += consumed;
                    break;
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

/// Returns the bytes of each reply.
fn frames(data: &[u8], cuts: impl Iterator<Item = usize>) -> (Vec<Vec<u8>>, Option<ReplyError>) {
    let limits = ReplyLimits { line_bytes_max: 300, ..ReplyLimits::default() };
    let mut scanner = FrameScanner::new(limits);
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.chain([data.len()]) {
        loop {
            let input = &data[start..end];
            match scanner.scan(input) {
                Ok(Scan::Whole(len)) => {
                    assert!(len > 0 && len <= input.len() && scanner.is_idle());
                    found.push(input[..len].to_vec());
                    start += len;
                }
                Ok(Scan::Incomplete(need)) => {
                    assert!(need > 0);
                    break;
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

#[cfg(test)]
mod tests {
    //! A fixed-seed smoke run of the targets on stable Rust.

    const RUNS: usize = 200_000;

    /// SplitMix64: good enough to choose among inputs, and the same on every machine.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) % bound as u64) as usize
        }
    }

    /// Joins some of `words`, then changes, removes or adds a few bytes, or none.
    fn mutated(random: &mut Random, words: &[&[u8]]) -> Vec<u8> {
        let mut data = Vec::new();
        for _ in 0..random.below(12) {
            data.extend_from_slice(words[random.below(words.len())]);
        }
        for _ in 0..random.below(4) {
            let at = random.below(data.len() + 1);
            match random.below(3) {
                0 => data.insert(at, random.below(256) as u8),
                _ if at == data.len() => {}
                1 => data[at] = random.below(256) as u8,
                _ => _ = data.remove(at),
            }
        }
        data
    }

    #[test]
    fn mutated_requests_are_the_same_in_any_pieces() {
        const WORDS: &[&[u8]] = &[
            b"*1\r\n",
            b"*2\r\n",
            b"*3\r\n",
            b"*11\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"$3\r\nabc\r\n",
            b"$0\r\n\r\n",
            b"$12\r\n0123456789ab\r\n",
            b"$300\r\n",
            &[b'v'; 302],
            b"$-1\r\n",
            b"PING\r\n",
            b"ECHO \"a\\x41\\n\" 'b\\'' c\"d\"\r\n",
            b"'",
            b"\"",
            b"\\",
            b"\r\n",
            b"\0",
        ];
        let mut random = Random(1);
        for _ in 0..RUNS {
            super::request(&mutated(&mut random, WORDS));
        }
    }

    #[test]
    fn mutated_replies_are_the_same_in_any_pieces() {
        const WORDS: &[&[u8]] = &[
            b"+OK\r\n",
            b"-ERR x\r\n",
            b":12\r\n",
            b":-7\r\n",
            b"$3\r\nabc\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n",
            b"*3\r\n",
            b"%1\r\n",
            b"%0\r\n",
            b"~2\r\n",
            b">1\r\n",
            b"|1\r\n",
            b"|0\r\n",
            b"_\r\n",
            b"#t\r\n",
            b"#f\r\n",
            b",3.1\r\n",
            b",nan\r\n",
            b",-inf\r\n",
            b"(123456789012345678901\r\n",
            b"!5\r\nERR x\r\n",
            b"=7\r\ntxt:abc\r\n",
            b"$500\r\n",
            b"\r",
        ];
        let mut random = Random(2);
        for _ in 0..RUNS {
            super::reply(&mutated(&mut random, WORDS));
        }
    }
}
