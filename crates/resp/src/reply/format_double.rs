//! Formats doubles as Redis 7.0 does: C's `%.17g`.

use std::io::Write;

/// Maximum length of the text: sign, 17 digits, point, `e-324`.
const TEXT_BYTES_MAX: usize = 24;
/// Integers below this have at most 17 digits, so `%.17g` shows them without an exponent.
const PLAIN_INTEGER_BOUND: f64 = 1e17;
/// Number of significant digits.
const DIGITS: usize = 17;

/// Appends `value` with 17 significant digits, without trailing zeros; or `inf`, `-inf`, `nan`,
/// `-nan`.
pub(super) fn append(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    let negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && value.abs() < PLAIN_INTEGER_BOUND && !negative_zero {
        return out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    append_scientific(out, value.abs());
}

/// `value` must be finite and not negative.
fn append_scientific(out: &mut Vec<u8>, value: f64) {
    // "d.dddddddddddddddde[-]x": correctly rounded, in a buffer that is always large enough.
    let mut text = [0u8; TEXT_BYTES_MAX + 8];
    let mut unused = &mut text[..];
    let room = unused.len();
    let written = write!(unused, "{value:.16e}").is_ok();
    let len = room - unused.len();
    debug_assert!(written);
    let text = &text[..len];
    let Some(mark) = memchr::memchr(b'e', text) else { return };
    let exponent: i32 =
        std::str::from_utf8(&text[mark + 1..]).ok().and_then(|e| e.parse().ok()).unwrap_or(0);

    let mut digits = [b'0'; DIGITS];
    let significant = text[..mark].iter().filter(|&&byte| byte != b'.');
    for (digit, &byte) in digits.iter_mut().zip(significant) {
        *digit = byte;
    }
    let kept = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..kept];

    match exponent {
        // At most 17 digits before the point.
        0..=16 => {
            let whole = exponent as usize + 1;
            let (before, after) = digits.split_at(whole.min(kept));
            out.extend_from_slice(before);
            out.resize(out.len() + (whole - before.len()), b'0');
            append_fraction(out, after);
        }
        -4..=-1 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend_from_slice(digits);
        }
        _ => {
            out.push(digits[0]);
            append_fraction(out, &digits[1..]);
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.unsigned_abs() < 10 {
                out.push(b'0');
            }
            out.extend_from_slice(itoa::Buffer::new().format(exponent.unsigned_abs()).as_bytes());
        }
    }
}

fn append_fraction(out: &mut Vec<u8>, digits: &[u8]) {
    if !digits.is_empty() {
        out.push(b'.');
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn doubles_look_as_redis_7_0_prints_them() {
        for (value, text) in [
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN.copysign(1.0), "nan"),
            (f64::NAN.copysign(-1.0), "-nan"),
            (0.0, "0"),
            (-0.0, "-0"),
            (3.1, "3.1000000000000001"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (1.5e300, "1.5000000000000001e+300"),
            (0.1, "0.10000000000000001"),
            (100.0, "100"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (12345.678, "12345.678"),
            (1e21, "1e+21"),
            (-2.5, "-2.5"),
        ] {
            let mut out = Vec::new();
            super::append(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
