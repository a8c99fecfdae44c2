//! Decides which decimal texts are integers: only those that formatting an integer would produce.

/// Parses a whole decimal integer: optional `-`, no `+`, no leading zero, no whitespace. Returns
/// `None` if the bytes are anything else or out of range. This function decides which strings are
/// stored as integers, so "007" and "+7" stay strings. O(length).
#[inline]
#[must_use]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits fit in 64 bits without overflow.
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Returns the length of the decimal form of `number` in bytes.
#[inline]
#[must_use]
pub fn decimal_len(number: i64) -> usize {
    let magnitude = number.unsigned_abs();
    let digits = magnitude.checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_decimals_are_integers() {
        for (text, want) in [
            ("0", Some(0)),
            ("-0", None),
            ("7", Some(7)),
            ("-7", Some(-7)),
            ("+7", None),
            ("007", None),
            ("", None),
            ("-", None),
            (" 1", None),
            ("1 ", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn decimal_length_agrees_with_the_digits() {
        for number in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN] {
            assert_eq!(decimal_len(number), number.to_string().len(), "{number}");
        }
    }
}
