//! The expected replies, for `--verify`: every reply is decoded and checked.
//!
//! Values are prefixes of one known text. Values of at least twelve bytes begin with the number of their key, so a
//! value that is returned for a different key is detected too.

use super::template::{DIGITS, Values, write_digits};
use brisk_resp::Value;

/// The expected reply of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything but an error.
    Any,
    /// This status.
    Simple(&'static str),
    /// An integer from the first to the second.
    Integer(i64, i64),
    /// A value, or null.
    Value,
    /// The value of the key whose number was drawn, or null.
    ValueOfKey,
    /// At most this number of values.
    Values(usize),
    /// `element:` followed by a number, or null.
    Element,
    /// An empty list, or an element with its score.
    ElementWithScore,
}

impl Expect {
    /// Checks the reply to a command. `number` is the number that was drawn for the command, if any. O(bytes).
    ///
    /// # Errors
    /// If the reply is wrong, a description of the expected reply.
    pub fn check(self, reply: &Value, number: Option<u64>, values: &Values) -> Result<(), String> {
        let fits = match (self, reply) {
            (Expect::Any, _) => true,
            (Expect::Simple(text), Value::Simple(got)) => got == text.as_bytes(),
            (Expect::Integer(min, max), Value::Integer(got)) => (min..=max).contains(got),
            (Expect::Value | Expect::ValueOfKey | Expect::Element, Value::Null) => true,
            (Expect::Value, Value::Bulk(got)) => is_value(got, None, values),
            (Expect::ValueOfKey, Value::Bulk(got)) => is_value(got, number, values),
            (Expect::Values(max), Value::Array(got)) => {
                let is =
                    |value: &Value| matches!(value, Value::Bulk(b) if is_value(b, None, values));
                got.len() <= max && got.iter().all(is)
            }
            (Expect::Element, got) => is_element(got),
            (Expect::ElementWithScore, Value::Array(got)) => match got.as_slice() {
                [] => true,
                [element, Value::Bulk(_) | Value::Double(_)] => is_element(element),
                _ => false,
            },
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.wanted(number)) }
    }

    fn wanted(self, number: Option<u64>) -> String {
        match self {
            Expect::Any => "a reply that is not an error".to_owned(),
            Expect::Simple(text) => format!("the status {text}"),
            Expect::Integer(min, i64::MAX) => format!("a number from {min}"),
            Expect::Integer(min, max) => format!("a number from {min} to {max}"),
            Expect::Value => "a value as written, or none".to_owned(),
            Expect::ValueOfKey => match number {
                Some(number) => format!("the value of the key of number {number}, or none"),
                None => "the value of the key, or none".to_owned(),
            },
            Expect::Values(max) => format!("at most {max} values as written"),
            Expect::Element => "the name of an element, or none".to_owned(),
            Expect::ElementWithScore => "an element with its score, or an empty list".to_owned(),
        }
    }
}

fn is_value(got: &[u8], number: Option<u64>, values: &Values) -> bool {
    if !values.sizes.allows(got.len()) || got.len() > values.data.len() {
        return false;
    }
    let data = &values.data[..got.len()];
    if !values.marked || got.len() < DIGITS {
        return got == data;
    }
    let (mark, rest) = got.split_at(DIGITS);
    let mark_is_right = match number {
        Some(number) => {
            let mut digits = [b'0'; DIGITS];
            write_digits(&mut digits, number, DIGITS / 2);
            mark == digits
        }
        // If a value does not belong to a key with a number (an element of a list, for example), its mark is unknown.
        None => mark == &data[..DIGITS] || mark.iter().all(u8::is_ascii_digit),
    };
    mark_is_right && rest == &data[DIGITS..]
}

fn is_element(got: &Value) -> bool {
    let Value::Bulk(got) = got else { return false };
    match got.strip_prefix(b"element:") {
        Some(b"__rand_int__") => true,
        Some(digits) => digits.len() == DIGITS && digits.iter().all(u8::is_ascii_digit),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::template::value_bytes;
    use super::*;

    fn bulk(text: &[u8]) -> Value {
        Value::Bulk(text.to_vec())
    }

    fn values(len: usize, marked: bool) -> Values {
        Values { data: value_bytes(len), sizes: len.to_string().parse().unwrap(), marked }
    }

    #[test]
    fn a_value_must_be_the_one_written_for_its_key() {
        let values = values(20, true);
        let mut right = values.data.to_vec();
        right[..12].copy_from_slice(b"000000000007");
        let check = |reply: &Value, number| Expect::ValueOfKey.check(reply, number, &values);
        assert_eq!(check(&bulk(&right), Some(7)), Ok(()));
        assert_eq!(check(&Value::Null, Some(7)), Ok(()));
        let error = check(&bulk(&right), Some(8)).unwrap_err();
        assert!(error.contains("number 8"), "{error}");
        let mut torn = right.clone();
        torn[19] ^= 1;
        assert!(check(&bulk(&torn), Some(7)).is_err());
        assert!(check(&bulk(&right[..19]), Some(7)).is_err());
        assert!(check(&Value::Integer(1), Some(7)).is_err());
    }

    #[test]
    fn replies_of_the_suite_are_judged() {
        let values = values(3, false);
        let data = bulk(&values.data);
        let good: &[(Expect, Value)] = &[
            (Expect::Simple("OK"), Value::Simple(b"OK".to_vec())),
            (Expect::Integer(1, i64::MAX), Value::Integer(5)),
            (Expect::Value, data.clone()),
            (Expect::Values(2), Value::Array(vec![data.clone(), data.clone()])),
            (Expect::Values(2), Value::Array(Vec::new())),
            (Expect::Element, bulk(b"element:000000000001")),
            (Expect::Element, bulk(b"element:__rand_int__")),
            (Expect::ElementWithScore, Value::Array(Vec::new())),
            (
                Expect::ElementWithScore,
                Value::Array(vec![bulk(b"element:000000000001"), bulk(b"1")]),
            ),
        ];
        for (expect, reply) in good {
            assert_eq!(expect.check(reply, None, &values), Ok(()), "{expect:?} {reply:?}");
        }
        let bad: &[(Expect, Value)] = &[
            (Expect::Simple("OK"), Value::Simple(b"PONG".to_vec())),
            (Expect::Simple("OK"), bulk(b"OK")),
            (Expect::Integer(0, 1), Value::Integer(2)),
            (Expect::Value, bulk(b"yyy")),
            (Expect::Values(1), Value::Array(vec![data.clone(), data.clone()])),
            (Expect::Values(1), Value::Array(vec![bulk(b"")])),
            (Expect::Element, bulk(b"element:1")),
            (Expect::ElementWithScore, Value::Array(vec![data])),
        ];
        for (expect, reply) in bad {
            assert!(expect.check(reply, None, &values).is_err(), "{expect:?} {reply:?}");
        }
    }
}
