//! Converts between numbers and text as the C library does, because Lua 5.1 and the libraries call
//! it: `strtod` with its hexadecimal numbers and infinities, `%.14g` with its rounding, and casts
//! as x86 executes them.

use std::io::Write;

/// The significant digits of a number's text in Lua 5.1.
pub(super) const PRECISION: usize = 14;

/// Formats a number as Lua 5.1 does, with `%.14g`.
pub fn format_number(number: f64) -> String {
    let mut text = Vec::new();
    write_number(&mut text, number, PRECISION);
    String::from_utf8(text).unwrap_or_default() // it is ASCII
}

/// Appends a number as `%.<precision>g` writes it, for a precision of 1 to 14 digits.
pub(super) fn write_number(out: &mut Vec<u8>, number: f64, precision: usize) {
    let precision = precision.clamp(1, PRECISION);
    if !number.is_finite() {
        let digits: &[u8] = if number.is_nan() { b"nan" } else { b"inf" };
        out.extend(number.is_sign_negative().then_some(b'-'));
        return out.extend_from_slice(digits);
    }
    let limit = 10f64.powi(precision as i32);
    if number.trunc() == number && number.abs() < limit && number.to_bits() != (-0f64).to_bits() {
        return out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    }
    let mut buffer = [0u8; 32];
    let mut rest = &mut buffer[..];
    // The longest is 23 bytes: sign, 14 digits, point, `e`, sign and three digits.
    let written = write!(rest, "{number:.*e}", precision - 1);
    debug_assert!(written.is_ok());
    let left = rest.len();
    let scientific = &buffer[..buffer.len() - left];
    let (mantissa, exponent) = split_exponent(scientific);
    let (sign, mantissa) = match mantissa.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, mantissa),
    };
    out.extend(sign.then_some(b'-'));
    write_digits(out, mantissa, exponent, precision);
}

/// Splits at the `e`.
fn split_exponent(scientific: &[u8]) -> (&[u8], i32) {
    let at = scientific.iter().position(|&byte| byte == b'e').unwrap_or(scientific.len());
    let exponent = scientific.get(at + 1..).and_then(|text| std::str::from_utf8(text).ok());
    (&scientific[..at], exponent.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Writes a mantissa of the form `d.ddd` without the zeros at its end, with an exponent only where
/// the number would otherwise need many zeros.
fn write_digits(out: &mut Vec<u8>, mantissa: &[u8], exponent: i32, precision: usize) {
    let mut digits: [u8; PRECISION] = [b'0'; PRECISION];
    let mut len = 0;
    for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()).take(PRECISION) {
        digits[len] = byte;
        len += 1;
    }
    while len > 1 && digits[len - 1] == b'0' {
        len -= 1;
    }
    let digits = &digits[..len];
    if exponent < -4 || exponent >= precision as i32 {
        out.push(digits[0]);
        if len > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.unsigned_abs() < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(exponent.unsigned_abs()).as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&digits[..whole.min(len)]);
        out.resize(out.len() + whole.saturating_sub(len), b'0');
        if len > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

/// Parses a string where Lua 5.1 expects a number: the whole string must be a number, apart from
/// spaces.
pub(super) fn parse_number(text: &[u8]) -> Option<f64> {
    let text = c_string(text);
    let (number, len) = strtod(text)?;
    text[len..].iter().all(|&byte| is_space(byte)).then_some(number)
}

/// Returns the bytes before the first NUL, where a string ends in C.
pub(crate) fn c_string(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    &text[..end]
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Parses the number at the start of `text`, after optional spaces. Returns the number and where it
/// ends.
pub(crate) fn strtod(text: &[u8]) -> Option<(f64, usize)> {
    let start = text.iter().position(|&byte| !is_space(byte))?;
    let (negative, signed) = match text[start] {
        b'-' => (true, 1),
        b'+' => (false, 1),
        _ => (false, 0),
    };
    let body = &text[start + signed..];
    let (value, len) = special(body).or_else(|| hexadecimal(body)).or_else(|| decimal(body))?;
    Some((if negative { -value } else { value }, start + signed + len))
}

fn special(text: &[u8]) -> Option<(f64, usize)> {
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
    if starts(b"infinity") {
        return Some((f64::INFINITY, 8));
    }
    if starts(b"inf") {
        return Some((f64::INFINITY, 3));
    }
    if !starts(b"nan") {
        return None;
    }
    // A payload in parentheses belongs to the NaN.
    let payload = text[3..].strip_prefix(b"(").and_then(|inner| {
        let len = inner.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'))?;
        (inner[len] == b')').then_some(len + 2)
    });
    Some((f64::NAN, 3 + payload.unwrap_or(0)))
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of an exponent with this letter at the start of `text`; 0 if there is none.
fn exponent_len(text: &[u8], letter: u8) -> usize {
    if text.first().is_none_or(|first| !first.eq_ignore_ascii_case(&letter)) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match digits(&text[1 + sign..]) {
        0 => 0,
        count => 1 + sign + count,
    }
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text);
    let mut len = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digits(&text[len + 1..]);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if len == 0 {
        return None;
    }
    len += exponent_len(&text[len..], b'e');
    let value = std::str::from_utf8(&text[..len]).ok()?.parse().ok()?;
    Some((value, len))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    if !(text.len() > 2 && text[0] == b'0' && text[1].eq_ignore_ascii_case(&b'x')) {
        return None;
    }
    let (mut mantissa, mut rest_is_zero) = (0u64, true);
    let (mut exponent, mut any, mut point, mut len) = (0i64, false, false, 2);
    while let Some(&byte) = text.get(len) {
        let digit = match (byte as char).to_digit(16) {
            Some(digit) => u64::from(digit),
            None if byte == b'.' && !point => {
                point = true;
                len += 1;
                continue;
            }
            None => break,
        };
        any = true;
        len += 1;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if point { 4 } else { 0 };
        } else {
            rest_is_zero &= digit == 0;
            exponent += if point { 0 } else { 4 };
        }
    }
    if !any {
        return None;
    }
    let suffix = exponent_len(&text[len..], b'p');
    if suffix > 0 {
        exponent = exponent.saturating_add(exponent_value(&text[len + 1..len + suffix]));
    }
    Some((scaled(mantissa, exponent, rest_is_zero), len + suffix))
}

/// Parses a signed decimal integer, which saturates far beyond the exponents of doubles.
fn exponent_value(text: &[u8]) -> i64 {
    let negative = text.first() == Some(&b'-');
    let value = text.iter().filter(|byte| byte.is_ascii_digit()).fold(0i64, |value, byte| {
        value.saturating_mul(10).saturating_add(i64::from(byte - b'0')).min(1 << 40)
    });
    if negative { -value } else { value }
}

/// Returns `mantissa` times two to the power of `exponent`, rounded to the nearest double, ties to
/// even. If `exact` is false, nonzero digits follow the mantissa's last bit.
fn scaled(mantissa: u64, exponent: i64, exact: bool) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let shift = mantissa.leading_zeros();
    let mantissa = u128::from(mantissa << shift);
    // The exponent of the first bit.
    let top = exponent.saturating_add(63 - i64::from(shift));
    if top > 1023 {
        return f64::INFINITY;
    }
    let bits = if top >= -1022 { 53 } else { 53 - (-1022 - top) };
    if bits < 0 {
        return 0.0;
    }
    let drop = 64 - bits as u32;
    let (kept, dropped, half) = (mantissa >> drop, mantissa % (1 << drop), 1u128 << (drop - 1));
    let up = dropped > half || dropped == half && (!exact || kept % 2 == 1);
    let kept = kept as u64 + u64::from(up);
    // A carry correctly increments the exponent's field.
    let field = if top >= -1022 { ((top + 1022) as u64) << 52 } else { 0 };
    f64::from_bits(field + kept)
}

/// Converts a double to a 64-bit integer: rounds toward zero, and returns the smallest integer if
/// it does not fit.
pub(crate) fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Converts a double to an unsigned 64-bit integer, as compilers for x86 do it.
pub(super) fn truncated_unsigned(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if number >= HALF {
        truncated(number - HALF) as u64 ^ 1 << 63
    } else {
        truncated(number) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        // Printed by printf with "%.14g".
        let expected = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333"),
            (99_999_999_999_999.0, "99999999999999"),
            (1e14, "1e+14"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (5e-324, "4.9406564584125e-324"),
            (100.5, "100.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, text) in expected {
            assert_eq!(format_number(number), text);
        }
    }

    #[test]
    fn the_longest_number_has_room_in_every_precision() {
        for (number, end) in [(-1.234_567_890_123_45e-300, "e-300"), (f64::MIN, "e+308")] {
            for precision in 1..=PRECISION {
                let mut out = Vec::new();
                write_number(&mut out, number, precision);
                assert!(out.starts_with(b"-") && out.len() <= precision + 7);
                assert!(out.ends_with(end.as_bytes()));
            }
        }
    }

    #[test]
    fn hexadecimal_numbers_are_rounded_to_the_nearest_even() {
        let read = |text: &str| strtod(text.as_bytes());
        assert_eq!(read("0x10"), Some((16.0, 4)));
        assert_eq!(read("-0x1.8p1"), Some((-3.0, 8)));
        assert_eq!(read("0x"), Some((0.0, 1)));
        assert_eq!(read("0xg"), Some((0.0, 1)));
        assert_eq!(read("0x.8"), Some((0.5, 4)));
        assert_eq!(read("0x1p-1074"), Some((5e-324, 9)));
        assert_eq!(read("0x1p-1075"), Some((0.0, 9)));
        assert_eq!(read("0x1.8p-1075"), Some((5e-324, 11)));
        assert_eq!(read("0x1p1024"), Some((f64::INFINITY, 8)));
        assert_eq!(read("0x20000000000001"), Some((9_007_199_254_740_992.0, 16)));
        assert_eq!(read("0x20000000000003"), Some((9_007_199_254_740_996.0, 16)));
        assert_eq!(read("0x200000000000010000000001"), Some((9.903520314283045e27, 26)));
    }

    #[test]
    fn a_number_ends_where_nothing_more_belongs_to_it() {
        let len = |text: &str| strtod(text.as_bytes()).map(|(_, len)| len);
        assert_eq!(len("1e"), Some(1));
        assert_eq!(len("1e+"), Some(1));
        assert_eq!(len("1.e5x"), Some(4));
        assert_eq!(len(" \t-.5."), Some(5));
        assert_eq!(len("."), None);
        assert_eq!(len("-"), None);
        assert_eq!(len(""), None);
        assert_eq!(len("infinit"), Some(3));
        assert_eq!(len("nan(x1_)"), Some(8));
        assert_eq!(len("nan(x"), Some(3));
    }
}
