//! Replies as a real server sends them and `redis-cli` shows them, limits, and invalid replies.

use super::*;
use crate::notation::plain;

fn decode(input: &[u8]) -> Result<ReplyStep, ReplyError> {
    ReplyDecoder::default().decode(input)
}

fn value(input: &[u8]) -> Value {
    match decode(input) {
        Ok(ReplyStep::Value { consumed, value }) if consumed == input.len() => value,
        other => panic!("{}: {other:?}", input.escape_ascii()),
    }
}

#[test]
fn replies_are_shown_as_redis_cli_shows_them() {
    let rows = include_str!("reference.txt").lines().filter(|line| !line.starts_with('#'));
    let mut seen = 0;
    for row in rows {
        let (sent, shown) = row.split_once('\t').expect("two columns");
        let shown = String::from_utf8(plain(shown)).unwrap();
        assert_eq!(value(&plain(sent)).to_string(), shown, "{row}");
        seen += 1;
    }
    assert!(seen > 60);
}

#[test]
fn every_resp3_type_is_read() {
    assert_eq!(value(b"!5\r\nERR x\r\n"), Value::Error(b"ERR x".to_vec()));
    assert_eq!(
        value(b"(-12345678901234567890\r\n"),
        Value::BigNumber(b"-12345678901234567890".to_vec())
    );
    assert_eq!(value(b">1\r\n:1\r\n"), Value::Push(vec![Value::Integer(1)]));
    let Value::Double(double) = value(b",-1.5e-7\r\n") else { panic!("no double") };
    assert_eq!(double.value, -1.5e-7);
    let Value::Double(double) = value(b",-nan\r\n") else { panic!("no double") };
    assert!(double.value.is_nan());
}

#[test]
fn attributes_stay_with_the_value_that_follows() {
    let pair = (Value::Simple(b"ttl".to_vec()), Value::Integer(9));
    let attributed = |attributes, value| Value::Attributed { attributes, value: Box::new(value) };
    let whole = value(b"*2\r\n|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n|0\r\n*0\r\n");
    let first = attributed(vec![pair], Value::Bulk(b"a".to_vec()));
    assert_eq!(whole, Value::Array(vec![first, attributed(vec![], Value::Array(vec![]))]));
    assert_eq!(whole.to_string(), "1) \"a\"\n2) (empty array)");
    assert_eq!(whole.as_slice().unwrap()[0].as_bytes(), Some(&b"a"[..]));
}

#[test]
fn malformed_replies_are_rejected() {
    use ReplyError::*;
    for (input, error) in [
        (&b"\r\n"[..], UnknownType(b'\r')),
        (b"PONG\r\n", UnknownType(b'P')),
        (b":+1\r\n", Malformed(b':')),
        (b":\r\n", Malformed(b':')),
        (b"$-2\r\n", Malformed(b'$')),
        (b"$?\r\n", Malformed(b'$')),
        (b"%-1\r\n", Malformed(b'%')),
        (b"*9999999999\r\n", TooLong),
        (b"$99999999999\r\n", TooLong),
        (b"#x\r\n", Malformed(b'#')),
        (b"_x\r\n", Malformed(b'_')),
        (b",infinity\r\n", Malformed(b',')),
        (b",\r\n", Malformed(b',')),
        (b"(1x\r\n", Malformed(b'(')),
        (b"=3\r\ntxt\r\n", Malformed(b'=')),
        (b"$1\r\naXX", UnterminatedBulk),
    ] {
        assert_eq!(decode(input), Err(error), "{}", input.escape_ascii());
    }
}

#[test]
fn nesting_and_lines_are_limited() {
    let limits = ReplyLimits { depth_max: 3, line_bytes_max: 10, ..ReplyLimits::default() };
    let decode = |input: &[u8]| ReplyDecoder::new(limits).decode(input);
    assert!(matches!(decode(b"*1\r\n*1\r\n*1\r\n:1\r\n"), Ok(ReplyStep::Value { .. })));
    assert_eq!(decode(b"*1\r\n*1\r\n*1\r\n*1\r\n"), Err(ReplyError::TooDeep));
    assert_eq!(decode(b"|0\r\n|0\r\n|0\r\n|0\r\n"), Err(ReplyError::TooDeep));
    assert!(matches!(decode(b"+123456789\r\n"), Ok(ReplyStep::Value { .. })));
    assert_eq!(decode(b"+1234567890\r\n"), Err(ReplyError::TooLongLine));
    assert_eq!(decode(b"+1234567890"), Err(ReplyError::TooLongLine));
}

#[test]
fn a_claimed_count_or_length_allocates_nothing() {
    let mut decoder = ReplyDecoder::default();
    let step = decoder.decode(b"*2147483647\r\n:1\r\n$4294967296\r\nab");
    assert_eq!(step, Ok(ReplyStep::Incomplete { consumed: 30, need_hint: 4_294_967_296 }));
    assert!(decoder.stack[0].values.capacity() <= 4);
}
