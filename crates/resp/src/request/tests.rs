//! Compares decoded requests with a real server's replies, and with the same requests cut into
//! pieces.

use super::*;
use crate::notation::plain;

type Requests = Vec<Vec<Vec<u8>>>;

/// Decodes everything in `stream` with one decoder, in pieces that end at `cuts` and at the end.
fn decode_in_pieces(
    stream: &[u8],
    cuts: &[usize],
    limits: &Limits,
) -> (Requests, Option<ProtocolError>) {
    let mut decoder = RequestDecoder::new();
    let mut spans = Spans::new();
    let mut requests = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        loop {
            spans.clear();
            let input = &stream[start..end];
            match decoder.decode(input, limits, &mut spans) {
                Ok(Step::Request { consumed, argc }) => {
                    assert_eq!(argc, spans.len());
                    assert!(argc > 0 && consumed > 0 && consumed <= input.len());
                    let args = spans.as_slice().iter().map(|&at| spans.bytes(input, at).to_vec());
                    requests.push(args.collect());
                    start += consumed;
                }
                Ok(Step::Empty { consumed }) => {
                    assert!(consumed > 0 && consumed <= input.len());
                    start += consumed;
                }
                Ok(Step::Incomplete { need_hint }) => {
                    assert!(need_hint > 0 && spans.is_empty());
                    break;
                }
                Err(error) => {
                    assert!(spans.is_empty());
                    return (requests, Some(error));
                }
            }
        }
    }
    (requests, None)
}

/// The part of a server that the reference needs: PING, ECHO, and the errors for anything else.
fn write_reply(request: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut bulk = |bytes: &[u8]| {
        out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
    };
    match (request[0].to_ascii_lowercase().as_slice(), &request[1..]) {
        (b"ping", []) => out.extend_from_slice(b"+PONG\r\n"),
        (b"ping", [text]) | (b"echo", [text]) => bulk(text),
        (b"echo", _) => {
            out.extend_from_slice(b"-ERR wrong number of arguments for 'echo' command\r\n");
        }
        (_, args) => {
            let mut text = b"-ERR unknown command '".to_vec();
            text.extend(request[0].iter().take(128));
            text.extend_from_slice(b"', with args beginning with: ");
            for arg in args {
                text.push(b'\'');
                text.extend_from_slice(arg);
                text.extend_from_slice(b"' ");
            }
            text.iter_mut().skip(1).filter(|b| b"\r\n".contains(b)).for_each(|b| *b = b' ');
            out.extend_from_slice(&text);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn limits_named(name: &str) -> Limits {
    match name {
        "plain" => Limits::default(),
        "unauthenticated" => Limits { authenticated: false, ..Limits::default() },
        "bulk-1m" => Limits { bulk_bytes_max: 1024 * 1024, ..Limits::default() },
        other => panic!("unknown limits {other}"),
    }
}

#[test]
fn replies_and_closes_as_redis_does() {
    let rows = include_str!("reference.txt").lines().filter(|line| !line.starts_with('#'));
    let mut seen = 0;
    for row in rows {
        let [limits, sent, received, end] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {row}");
        };
        let sent = plain(sent);
        let limits = limits_named(limits);
        let singly: Vec<usize> = (0..sent.len()).collect();
        for cuts in [&[][..], &singly] {
            let (requests, error) = decode_in_pieces(&sent, cuts, &limits);
            let mut reply = Vec::new();
            requests.iter().for_each(|request| write_reply(request, &mut reply));
            if let Some(error) = error {
                error.encode(&mut reply);
            }
            assert_eq!(
                (reply.escape_ascii().to_string(), error.is_some()),
                (plain(received).escape_ascii().to_string(), end == "closes"),
                "{row}"
            );
        }
        seen += 1;
    }
    assert!(seen > 120);
}

#[test]
fn a_line_that_ends_beyond_the_limit_is_rejected_however_it_arrives() {
    let limits = Limits { inline_bytes_max: 100, ..Limits::default() };
    for (stream, error) in [
        ([&b"a".repeat(101)[..], b"\n"].concat(), ProtocolError::TooBigInline),
        ([b"*", &b"1".repeat(100)[..], b"\r\n"].concat(), ProtocolError::TooBigMultibulkCount),
        ([b"*1\r\n$", &b"1".repeat(100)[..], b"\r\n"].concat(), ProtocolError::TooBigBulkCount),
    ] {
        let singly: Vec<usize> = (0..stream.len()).collect();
        assert_eq!(decode_in_pieces(&stream, &[], &limits).1, Some(error));
        assert_eq!(decode_in_pieces(&stream, &singly, &limits).1, Some(error));
    }
}

#[test]
fn a_million_arguments_in_small_reads_take_one_pass() {
    const COUNT: usize = 1_000_000;
    let mut stream = format!("*{COUNT}\r\n").into_bytes();
    for _ in 0..COUNT {
        stream.extend_from_slice(b"$1\r\nx\r\n");
    }
    let cuts: Vec<usize> = (0..stream.len()).step_by(16 * 1024).collect();
    let (requests, error) = decode_in_pieces(&stream, &cuts, &Limits::default());
    assert_eq!((requests.len(), requests[0].len(), error), (1, COUNT, None));
}

#[test]
fn an_incomplete_argument_says_how_much_is_missing() {
    let mut decoder = RequestDecoder::new();
    let step = decoder.decode(b"*1\r\n$1000\r\nabc", &Limits::default(), &mut Spans::new());
    assert_eq!(step, Ok(Step::Incomplete { need_hint: 999 }));
}

#[test]
fn a_claimed_count_or_length_allocates_nothing() {
    let mut spans = Spans::new();
    let mut decoder = RequestDecoder::new();
    for claim in [&b"*2147483647\r\n$536870912\r\n"[..], b"*999999999\r\n$1\r\na\r\n"] {
        decoder.reset();
        let step = decoder.decode(claim, &Limits::default(), &mut spans);
        assert!(matches!(step, Ok(Step::Incomplete { .. })));
        assert!(spans.list.capacity() <= 8 && decoder.found.capacity() <= 8);
    }
}

#[test]
fn an_argument_as_long_as_the_link_to_a_primary_allows_does_not_overflow() {
    let limits = Limits { bulk_bytes_max: u64::MAX, ..Limits::default() };
    let input = b"*1\r\n$9223372036854775807\r\nabc";
    let step = RequestDecoder::new().decode(input, &limits, &mut Spans::new());
    assert!(matches!(step, Ok(Step::Incomplete { .. })));
}

#[test]
fn different_bytes_than_before_make_the_decoder_start_over() {
    let mut decoder = RequestDecoder::new();
    let mut spans = Spans::new();
    let long = [&b"*2\r\n$300\r\n"[..], &b"v".repeat(300), b"\r\n"].concat();
    let step = decoder.decode(&long, &Limits::default(), &mut spans);
    assert_eq!(step, Ok(Step::Incomplete { need_hint: 1 }));
    let step = decoder.decode(b"*1\r\n$4\r\nPING\r\n", &Limits::default(), &mut spans);
    assert_eq!(step, Ok(Step::Request { consumed: 14, argc: 1 }));
}

#[test]
fn requests_of_one_batch_share_the_span_list() {
    let mut decoder = RequestDecoder::new();
    let mut spans = Spans::new();
    let input = b"SET 'a b' \"\\x41\"\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    let limits = Limits::default();
    let Ok(Step::Request { consumed, argc: 3 }) = decoder.decode(input, &limits, &mut spans) else {
        panic!("no request of three");
    };
    let second = &input[consumed..];
    let step = decoder.decode(second, &limits, &mut spans);
    assert_eq!(step, Ok(Step::Request { consumed: second.len(), argc: 2 }));
    let all = spans.as_slice();
    assert_eq!(spans.bytes(input, all[1]), b"a b");
    assert_eq!(spans.bytes(input, all[2]), b"A");
    assert_eq!((all[0].offset(), all[1].offset(), all[1].len()), (Some(0), None, 3));
    assert_eq!(spans.bytes(second, all[4]), b"k");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        const WORDS: &[&[u8]] = &[
            b"*1\r\n",
            b"*2\r\n",
            b"*03\r\n",
            b"*-1\r\n",
            b"$3\r\nabc\r\n",
            b"$12\r\n0123456789ab\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"$400\r\n",
            b"ECHO 'a b' \"\\x00\\q\" c\r\n",
            b"'",
            b"\r\n",
            b"\n",
            b"\0",
        ];
        let words = proptest::sample::select(WORDS).prop_map(<[u8]>::to_vec);
        prop_oneof![
            8 => words,
            1 => proptest::collection::vec(any::<u8>(), 0..40),
            1 => Just(b"$300\r\n".iter().copied().chain([b'v'; 302]).collect()),
        ]
    }

    proptest! {
        #[test]
        fn reads_of_any_size_give_the_same_requests(
            pieces in proptest::collection::vec(piece(), 0..24),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
            authenticated in any::<bool>(),
        ) {
            let stream = pieces.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.sort_unstable();
            let limits = Limits { inline_bytes_max: 200, authenticated, ..Limits::default() };
            let whole = decode_in_pieces(&stream, &[], &limits);
            prop_assert_eq!(&decode_in_pieces(&stream, &cuts, &limits), &whole);
            let singly: Vec<usize> = (0..stream.len()).collect();
            prop_assert_eq!(&decode_in_pieces(&stream, &singly, &limits), &whole);
        }
    }
}
