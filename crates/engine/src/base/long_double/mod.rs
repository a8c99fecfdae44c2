//! The 80-bit floating point numbers that INCRBYFLOAT and HINCRBYFLOAT compute with.
//!
//! Redis uses C's `long double`, which is the x87 extended format on x86-64: a 64-bit significand
//! and 15 bits of exponent, rounded to nearest, ties to even. This module computes the same with
//! integers, so that sums and their decimal form agree to the last digit on every machine.
//!
//! A number is `significand * 2^exponent`. Parsing accepts what C's `strtold` accepts (decimal,
//! hexadecimal, infinity), except blanks, NaN, and numbers whose value would be infinity or zero
//! because of their size. Formatting is `%.17Lf` without trailing zeros.

use std::cmp::Ordering;

/// Length of the longest text that is parsed.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Exponent of the last bit of the smallest number.
const EXPONENT_MIN: i32 = -16_445;
/// Exponent of the last bit of the largest number.
const EXPONENT_MAX: i32 = 16_320;
/// Maximum number of digits after the decimal point.
const FRACTION_DIGITS: usize = 17;

/// An 80-bit floating point number. There is no NaN, and zero has no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongDouble {
    Finite {
        negative: bool,
        significand: u64,
        exponent: i32,
    },
    /// Infinity of either sign. No sum with it is finite.
    Infinite,
}

impl LongDouble {
    pub const ZERO: LongDouble =
        LongDouble::Finite { negative: false, significand: 0, exponent: 0 };

    /// Parses a number; `None` if the text is not a number. O(length^2) for long texts.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble::Infinite);
        }
        let number = match text {
            [b'0', b'x' | b'X', rest @ ..] => Literal::read(rest, 16)?,
            _ => Literal::read(text, 10)?,
        };
        number.value(negative)
    }

    /// The sum, rounded to nearest; `None` if it is not finite.
    pub fn plus(self, other: LongDouble) -> Option<LongDouble> {
        let (Some(a), Some(b)) = (self.normal()?, other.normal()?) else {
            // One of them is zero.
            return Some(if self == LongDouble::ZERO { other } else { self });
        };
        let (large, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) {
            (a, b)
        } else {
            (b, a)
        };
        // 64 significant bits, 63 more below for the bits that are shifted out, one above for the
        // carry.
        const BELOW: u32 = 63;
        let distance = (large.exponent - small.exponent).unsigned_abs();
        let first = u128::from(large.significand) << BELOW;
        let whole = u128::from(small.significand) << BELOW;
        let shifted = whole.checked_shr(distance).unwrap_or(0);
        let lost = shifted.checked_shl(distance).unwrap_or(0) != whole;
        // A lost bit is far below the rounding position, so a one in the last position represents
        // it.
        let second = shifted | u128::from(lost);
        let sum = if large.negative == small.negative { first + second } else { first - second };
        if sum == 0 {
            return Some(LongDouble::ZERO);
        }
        match round(large.negative, sum, large.exponent - BELOW as i32, false) {
            LongDouble::Infinite => None,
            finite => Some(finite),
        }
    }

    /// A thousand times the number (rounded as a product of long doubles), rounded up to an
    /// integer: seconds as milliseconds. `None` if the result does not fit into 64 bits.
    pub fn thousandfold_ceil(self) -> Option<i64> {
        let LongDouble::Finite { negative, significand, exponent } = self else { return None };
        if significand == 0 {
            return Some(0);
        }
        let product = round(negative, u128::from(significand) * 1000, exponent, false);
        let LongDouble::Finite { significand, exponent, .. } = product else { return None };
        let wide = u128::from(significand);
        let whole = if exponent >= 0 {
            // 64 bits shifted by more than 63 do not fit.
            if exponent > 63 { return None } else { wide << exponent }
        } else {
            let bits = exponent.unsigned_abs();
            let floor = wide.checked_shr(bits).unwrap_or(0);
            let exact = floor.checked_shl(bits).unwrap_or(0) == wide;
            // For a negative number, up means toward zero.
            if exact || negative { floor } else { floor + 1 }
        };
        let whole = i64::try_from(whole).ok()?;
        Some(if negative { -whole } else { whole })
    }

    /// The parts with the significand's first bit set: `None` for infinity, `Some(None)` for zero.
    #[expect(clippy::option_option, reason = "infinity and zero end a sum in different ways")]
    fn normal(self) -> Option<Option<Normal>> {
        let LongDouble::Finite { negative, significand, exponent } = self else { return None };
        if significand == 0 {
            return Some(None);
        }
        let zeros = significand.leading_zeros();
        let exponent = exponent - zeros as i32;
        Some(Some(Normal { negative, significand: significand << zeros, exponent }))
    }

    /// The decimal form: up to 17 digits after the decimal point, without trailing zeros.
    pub fn to_text(self) -> String {
        let LongDouble::Finite { negative, significand, exponent } = self else {
            return "inf".to_owned();
        };
        let (whole, fraction) = if exponent >= 0 {
            let mut whole = Natural::from(u128::from(significand));
            whole.shift_left(exponent as usize);
            (whole.into_decimal(), String::new())
        } else {
            let scaled = scaled_fraction(significand, exponent.unsigned_abs());
            let unit = 10u128.pow(FRACTION_DIGITS as u32);
            let fraction = format!("{:0FRACTION_DIGITS$}", scaled % unit);
            ((scaled / unit).to_string(), fraction)
        };
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let zero = whole == "0" && fraction.is_empty();
        let sign = if negative && !zero { "-" } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    }
}

/// A finite number other than zero whose significand's first bit is set.
struct Normal {
    negative: bool,
    significand: u64,
    exponent: i32,
}

/// `significand * 2^-bits` in units of 10^-17, to the nearest integer, ties to even.
fn scaled_fraction(significand: u64, bits: u32) -> u128 {
    // The product of 64 bits and 57 bits has at most 121 bits.
    let scaled = u128::from(significand) * 10u128.pow(FRACTION_DIGITS as u32);
    let whole = scaled.checked_shr(bits).unwrap_or(0);
    let rest = scaled - whole.checked_shl(bits).unwrap_or(0);
    // Half of 2^122 or more exceeds every possible remainder.
    let half = 1u128 << (bits - 1).min(127);
    whole + u128::from(rest > half || (rest == half && whole % 2 == 1))
}

/// The number nearest to `significand * 2^exponent`, or to a value just above it if `more` is set.
/// `more` needs at least 66 significant bits.
fn round(negative: bool, significand: u128, exponent: i32, more: bool) -> LongDouble {
    let bits = (128 - significand.leading_zeros()) as i32;
    let mut last = (exponent + bits - 64).max(EXPONENT_MIN);
    let drop = last - exponent;
    let mut kept = if drop <= 0 {
        debug_assert!(!more);
        significand << -drop
    } else {
        let drop = drop.unsigned_abs();
        let kept = significand.checked_shr(drop).unwrap_or(0);
        let rest = significand - kept.checked_shl(drop).unwrap_or(0);
        let up = match 1u128.checked_shl(drop - 1) {
            Some(half) => rest > half || (rest == half && (more || kept % 2 == 1)),
            None => false,
        };
        kept + u128::from(up)
    };
    if kept >> 64 != 0 {
        (kept, last) = (kept >> 1, last + 1);
    }
    if kept == 0 {
        LongDouble::ZERO
    } else if last > EXPONENT_MAX {
        LongDouble::Infinite
    } else {
        LongDouble::Finite { negative, significand: kept as u64, exponent: last }
    }
}

/// A number as written: its digits, and the exponent of the base (2 for hexadecimal digits) by
/// which they are multiplied.
struct Literal<'a> {
    /// Digits before and after the point.
    digits: [&'a [u8]; 2],
    base: u32,
    exponent: i64,
}

/// Larger than any exponent that a number needs, but small enough to add to it without overflow.
const WRITTEN_EXPONENT_MAX: i64 = 1 << 40;

impl<'a> Literal<'a> {
    fn read(text: &'a [u8], base: u32) -> Option<Literal<'a>> {
        let digits_of = |text: &'a [u8]| {
            let len = text.iter().take_while(|byte| char::from(**byte).is_digit(base)).count();
            text.split_at(len)
        };
        let (whole, rest) = digits_of(text);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits_of(rest),
            _ => (&b""[..], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let marks: &[u8] = if base == 16 { b"pP" } else { b"eE" };
        let written = match rest {
            [] => 0,
            [mark, rest @ ..] if marks.contains(mark) => written_exponent(rest)?,
            _ => return None,
        };
        let per_digit = if base == 16 { 4 } else { 1 };
        let exponent = written - per_digit * fraction.len() as i64;
        Some(Literal { digits: [whole, fraction], base, exponent })
    }

    /// The number nearest to the literal. `None` if that is infinity, or if it is zero although the
    /// literal is not.
    fn value(&self, negative: bool) -> Option<LongDouble> {
        let digits = self.digits.iter().copied().flatten();
        let digits = digits.map(|byte| char::from(*byte).to_digit(self.base).unwrap_or(0));
        let mut significant = digits.skip_while(|digit| *digit == 0).peekable();
        if significant.peek().is_none() {
            return Some(LongDouble::ZERO);
        }
        let mut count = 0i64;
        let mut number = Natural::default();
        for digit in significant {
            count += 1;
            number.multiply_add(self.base, digit);
        }
        let value = if self.base == 16 {
            let exponent = self.exponent.clamp(-100_000, 100_000) as i32;
            quotient(negative, number, Natural::from(1), exponent)
        } else {
            match count + self.exponent {
                // The largest number is 1.2e4932, the smallest 3.6e-4951.
                -4960..=4940 => decimal(negative, number, self.exponent as i32),
                _ => return None,
            }
        };
        (value != LongDouble::ZERO && value != LongDouble::Infinite).then_some(value)
    }
}

fn written_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits
        .iter()
        .fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(WRITTEN_EXPONENT_MAX));
    Some(if negative { -magnitude } else { magnitude })
}

/// The number nearest to `number * 10^exponent`.
fn decimal(negative: bool, mut number: Natural, exponent: i32) -> LongDouble {
    const EXACT: u32 = 18;
    let power = exponent.unsigned_abs();
    if let Some(small) = number.small()
        && power <= EXACT
    {
        let scale = 10u128.pow(power);
        if exponent >= 0 {
            return round(negative, u128::from(small) * scale, 0, false);
        }
        // With 128 bits above and less than 60 below, the quotient has more than 66 bits.
        let zeros = u128::from(small).leading_zeros();
        let dividend = u128::from(small) << zeros;
        return round(negative, dividend / scale, -(zeros as i32), dividend % scale != 0);
    }
    let mut divisor = Natural::from(1);
    let scaled = if exponent >= 0 { &mut number } else { &mut divisor };
    for _ in 0..power / 9 {
        scaled.multiply_add(1_000_000_000, 0);
    }
    scaled.multiply_add(10u32.pow(power % 9), 0);
    quotient(negative, number, divisor, 0)
}

/// The number nearest to `dividend / divisor * 2^exponent`. Both are nonzero.
fn quotient(
    negative: bool,
    mut dividend: Natural,
    mut divisor: Natural,
    exponent: i32,
) -> LongDouble {
    const BITS: usize = 70;
    // Both are shifted so that the quotient is between 1/2 and 2. Then its bits are computed one by
    // one.
    let (above, below) = (dividend.bits(), divisor.bits());
    dividend.shift_left(below.saturating_sub(above));
    divisor.shift_left(above.saturating_sub(below));
    let mut result = 0u128;
    for _ in 0..BITS {
        result <<= 1;
        if dividend.compare(&divisor) != Ordering::Less {
            dividend.subtract(&divisor);
            result |= 1;
        }
        dividend.shift_left(1);
    }
    let exponent = exponent + above as i32 - below as i32 - (BITS as i32 - 1);
    round(negative, result, exponent, dividend.bits() != 0)
}

/// A natural number of any length: 32-bit limbs, least significant first, without leading zeros.
#[derive(Debug, Clone, Default)]
struct Natural(Vec<u32>);

impl From<u128> for Natural {
    fn from(number: u128) -> Natural {
        let limbs = (0..4).map(|limb| (number >> (32 * limb)) as u32).collect();
        let mut natural = Natural(limbs);
        natural.trim();
        natural
    }
}

impl Natural {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Number of significant bits.
    fn bits(&self) -> usize {
        self.0.last().map_or(0, |top| self.0.len() * 32 - top.leading_zeros() as usize)
    }

    fn small(&self) -> Option<u64> {
        match self.0[..] {
            [] => Some(0),
            [low] => Some(u64::from(low)),
            [low, high] => Some(u64::from(high) << 32 | u64::from(low)),
            _ => None,
        }
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: usize) {
        let (limbs, bits) = (bits / 32, bits % 32);
        if bits != 0 {
            let mut carry = 0;
            for limb in &mut self.0 {
                let shifted = u64::from(*limb) << bits | carry;
                *limb = shifted as u32;
                carry = shifted >> 32;
            }
            if carry != 0 {
                self.0.push(carry as u32);
            }
        }
        if limbs != 0 && !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, limbs));
        }
    }

    fn compare(&self, other: &Natural) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Natural) {
        let mut borrow = false;
        for (at, limb) in self.0.iter_mut().enumerate() {
            let taken = other.0.get(at).copied().unwrap_or(0);
            (*limb, borrow) = limb.borrowing_sub(taken, borrow);
        }
        debug_assert!(!borrow);
        self.trim();
    }

    fn into_decimal(mut self) -> String {
        const CHUNK: u64 = 1_000_000_000;
        let mut chunks = Vec::new();
        while !self.0.is_empty() {
            let mut rest = 0u64;
            for limb in self.0.iter_mut().rev() {
                let part = rest << 32 | u64::from(*limb);
                *limb = (part / CHUNK) as u32;
                rest = part % CHUNK;
            }
            chunks.push(rest);
            self.trim();
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:09}"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
