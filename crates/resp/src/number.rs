//! Lengths in protocol headers: the strict integer form that Redis accepts.

/// Parses a decimal `i64` in its canonical form: no sign except a minus, no leading zero, no `-0`,
/// no spaces, nothing after it. O(length), and reads at most 20 bytes.
pub(crate) fn canonical_i64(digits: &[u8]) -> Option<i64> {
    let (negative, magnitude) = match digits {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    match magnitude {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if magnitude.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0;
    for &byte in magnitude {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits stay below 10^19, which a u64 holds.
        value = value * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

#[cfg(test)]
mod tests {
    use super::canonical_i64;

    #[test]
    fn only_the_canonical_form_is_read() {
        for (text, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("18446744073709551616", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
        ] {
            assert_eq!(canonical_i64(text.as_bytes()), value, "{text:?}");
        }
    }
}
