//! Doubles with a fixed number of digits after the decimal point, rounded as C's `printf` does.

use std::ops::Deref;

/// The maximum number of digits after the point. A 53-bit significand times 10^17 fits in 110 bits.
const DECIMALS_MAX: u32 = 17;
/// A sign, 16 digits, the point, and [`DECIMALS_MAX`] digits.
const LEN_MAX: usize = 35;
/// With a shift by more bits than this, every number becomes 0.
const SHIFT_MAX: u32 = 120;

const SIGNIFICAND_BITS: u32 = 52;
const EXPONENT_MASK: u64 = 0x7ff;
/// The exponent of a double minus this value is that of the last bit of its significand.
const EXPONENT_BIAS: u32 = 1075;

/// The text of a double.
pub(crate) struct FixedText {
    text: [u8; LEN_MAX],
    begin: usize,
}

impl FixedText {
    /// Formats `value` as `%.{decimals}f` of C does: the exact value is rounded to the nearest text,
    /// and halfway between two texts to the even one. `None` for numbers of 2^53 or more, for
    /// infinities and NaN, and for more than 17 decimals.
    ///
    /// The standard library gives the same text, but often falls back to arbitrary-precision
    /// arithmetic, which is much slower.
    pub(crate) fn new(value: f64, decimals: u32) -> Option<FixedText> {
        let bits = value.to_bits();
        let exponent = (bits >> SIGNIFICAND_BITS & EXPONENT_MASK) as u32;
        let fraction = bits & ((1 << SIGNIFICAND_BITS) - 1);
        // Subnormal numbers have no implicit bit and the exponent of the smallest normal numbers.
        let (significand, exponent) = if exponent == 0 {
            (fraction, 1)
        } else {
            (fraction | 1 << SIGNIFICAND_BITS, exponent)
        };
        let shift = EXPONENT_BIAS.checked_sub(exponent)?.min(SHIFT_MAX);
        if decimals > DECIMALS_MAX {
            return None;
        }
        let unit = 10u64.pow(decimals);
        let scaled = u128::from(significand) * u128::from(unit);
        let (floor, rest) = (scaled >> shift, scaled & ((1 << shift) - 1));
        let twice = rest << 1;
        let is_up = twice > 1 << shift || (twice == 1 << shift && floor & 1 == 1);
        let rounded = floor + u128::from(is_up);
        let (mut whole, mut part) = match u64::try_from(rounded) {
            Ok(rounded) => (rounded / unit, rounded % unit),
            // The value is less than 2^53, so both parts fit.
            Err(_) => ((rounded / u128::from(unit)) as u64, (rounded % u128::from(unit)) as u64),
        };
        let mut text = FixedText { text: [0; LEN_MAX], begin: LEN_MAX };
        for _ in 0..decimals {
            text.prepend(b'0' + (part % 10) as u8);
            part /= 10;
        }
        if decimals > 0 {
            text.prepend(b'.');
        }
        loop {
            text.prepend(b'0' + (whole % 10) as u8);
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if value.is_sign_negative() {
            text.prepend(b'-');
        }
        Some(text)
    }

    fn prepend(&mut self, byte: u8) {
        self.begin -= 1;
        self.text[self.begin] = byte;
    }
}

impl Deref for FixedText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn text(value: f64, decimals: u32) -> Option<String> {
        let text = FixedText::new(value, decimals)?;
        Some(String::from_utf8(text.to_vec()).expect("digits are ASCII"))
    }

    /// The expected texts are those of `printf`.
    #[test]
    fn numbers_are_rounded_as_printf_does() {
        for (value, decimals, expected) in [
            (0.0, 4, "0.0000"),
            (-0.0, 4, "-0.0000"),
            (166_274.151_6, 4, "166274.1516"),
            (0.000_05, 4, "0.0001"),
            (0.000_049, 4, "0.0000"),
            (-0.000_049, 4, "-0.0000"),
            (0.5, 0, "0"),
            (1.5, 0, "2"),
            (2.5, 0, "2"),
            (0.125, 2, "0.12"),
            (0.375, 2, "0.38"),
            (9.999_99, 4, "10.0000"),
            (13.361_389_338_970_184, 17, "13.36138933897018433"),
            (f64::MIN_POSITIVE, 17, "0.00000000000000000"),
            (5e-324, 4, "0.0000"),
            (9_007_199_254_740_991.0, 17, "9007199254740991.00000000000000000"),
        ] {
            assert_eq!(text(value, decimals).as_deref(), Some(expected));
        }
    }

    #[test]
    fn texts_are_those_of_the_standard_library() {
        let mut random = Random::seeded(1);
        for _ in 0..20_000 {
            let of_any_size = f64::from_bits(random.bits());
            let of_a_distance = random.unit() * 2e7;
            // Many of these numbers are halfway between two texts.
            let half = random.below(1 << 20) as f64 / 64.0;
            for value in [of_any_size, of_a_distance, half, -half] {
                for decimals in [0, 1, 4, 17] {
                    let Some(text) = text(value, decimals) else { continue };
                    assert_eq!(text, format!("{value:.*}", decimals as usize));
                }
            }
        }
    }

    #[test]
    fn other_numbers_have_no_text() {
        for value in [9_007_199_254_740_992.0, 1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(text(value, 4), None, "{value}");
        }
        assert_eq!(text(1.0, DECIMALS_MAX + 1), None);
    }
}
