//! Parsing doubles as C's `strtod` does, which determines what Redis accepts as a number.

/// Parses an argument that is a double: the whole text, in decimal or hexadecimal, or an infinity.
/// `None` for anything else, including blanks and NaN, and for values that are too large or too
/// small.
#[must_use]
#[inline]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    match small_natural(text) {
        Some(number) => Some(number),
        None => parse_other(text),
    }
}

/// Parses up to 15 decimal digits. Most scores are small integers, which doubles represent exactly.
#[inline]
fn small_natural(text: &[u8]) -> Option<f64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    let mut number = 0i64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(number as f64)
}

#[inline(never)]
fn parse_other(text: &[u8]) -> Option<f64> {
    let (value, exact_end) = read(text)?;
    exact_end.then_some(value)
}

/// Parses the bound of a range as Redis does. The text ends at a NUL, and may start with blanks. An
/// empty text is 0, and a value that is too large is infinite. `None` for anything else and for
/// NaN.
#[must_use]
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    if end == 0 {
        return Some(0.0);
    }
    read(after_blanks(&text[..end])).map(|(value, _)| value)
}

/// Parses a weight for SORT. Unlike [`parse_bound`], it also rejects a value that is too large and
/// a decimal that is so small that it loses digits.
#[must_use]
pub fn parse_weight(text: &[u8]) -> Option<f64> {
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    if end == 0 {
        return Some(0.0);
    }
    let text = after_blanks(&text[..end]);
    let is_exact =
        |value: &f64| !value.is_subnormal() || text.contains(&b'x') || text.contains(&b'X');
    parse_f64(text).filter(is_exact)
}

/// The text after the blanks that C skips.
fn after_blanks(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    &text[start..]
}

/// The number that makes up the whole text, and whether it is in the range of doubles.
fn read(text: &[u8]) -> Option<(f64, bool)> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (value, in_range) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => read_hexadecimal(rest)?,
        [b'0'..=b'9' | b'.', ..] => read_decimal(digits)?,
        _ if digits.eq_ignore_ascii_case(b"inf") => (f64::INFINITY, true),
        _ if digits.eq_ignore_ascii_case(b"infinity") => (f64::INFINITY, true),
        _ => return None,
    };
    Some((if negative { -value } else { value }, in_range))
}

fn read_decimal(text: &[u8]) -> Option<(f64, bool)> {
    if let Some(number) = small_natural(text) {
        return Some((number, true));
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let significand = text.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let is_zero = significand.iter().all(|byte| matches!(byte, b'0' | b'.'));
    Some((value, value.is_finite() && (value != 0.0 || is_zero)))
}

fn read_hexadecimal(text: &[u8]) -> Option<(f64, bool)> {
    let end = text.iter().position(|byte| matches!(byte, b'p' | b'P')).unwrap_or(text.len());
    let mut significand = 0u64;
    let mut exponent = 0i64;
    let (mut digits, mut after_point) = (0usize, false);
    for &byte in &text[..end] {
        if byte == b'.' && !after_point {
            after_point = true;
            continue;
        }
        let digit = u64::from((byte as char).to_digit(16)?);
        digits += 1;
        if significand >> 60 == 0 {
            significand = significand << 4 | digit;
            exponent -= if after_point { 4 } else { 0 };
        } else {
            // The remaining digits matter only for the rounding direction.
            significand |= u64::from(digit != 0);
            exponent += if after_point { 0 } else { 4 };
        }
    }
    if digits == 0 {
        return None;
    }
    if end < text.len() {
        let power = &text[end + 1..];
        let plain = power.strip_prefix(b"+").unwrap_or(power);
        let bare = plain.strip_prefix(b"-").unwrap_or(plain);
        if bare.is_empty() || !bare.iter().all(u8::is_ascii_digit) || plain.len() + 1 < power.len()
        {
            return None;
        }
        let power: i64 = std::str::from_utf8(plain).ok()?.parse().unwrap_or(i64::MAX / 4);
        exponent = exponent.saturating_add(power);
    }
    let exponent = exponent.clamp(-5_000, 5_000) as i32;
    // The scaling takes two steps, because the powers themselves must not overflow.
    let half = exponent / 2;
    let value = significand as f64 * 2f64.powi(half) * 2f64.powi(exponent - half);
    Some((value, value.is_finite() && (value != 0.0 || significand == 0)))
}

#[cfg(test)]
mod tests {
    use super::{parse_bound, parse_f64};

    #[test]
    fn arguments_are_read_as_redis_reads_them() {
        for (text, want) in [
            ("1", Some(1.0)),
            ("+1", Some(1.0)),
            ("-1.5e3", Some(-1500.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e-999", Some(0.0)),
            ("1e400", None),
            ("1e-400", None),
            ("nan", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            (".", None),
            ("0x", None),
            ("1e", None),
            ("+-1", None),
            ("infinit", None),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn bounds_may_be_empty_blank_before_and_out_of_range() {
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b"  2"), Some(2.0));
        assert_eq!(parse_bound(b"1e400"), Some(f64::INFINITY));
        assert_eq!(parse_bound(b"3\x00x"), Some(3.0));
        assert_eq!(parse_bound(b" "), None);
        assert_eq!(parse_bound(b"nan"), None);
        assert_eq!(parse_bound(b"1 "), None);
    }
}
