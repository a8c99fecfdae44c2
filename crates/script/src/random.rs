//! The random numbers of scripts: the 48-bit generator that POSIX calls `lrand48`, with its initial
//! state. As in Redis 7, the sequence continues from script to script.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// The low bits, which a seed does not set.
const SEED_LOW: u64 = 0x330E;

/// The state of `math.random`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x1234_ABCD_0000 | SEED_LOW)
    }
}

impl Random {
    /// Returns the state for a 32-bit seed.
    pub(crate) fn seeded(seed: i32) -> Random {
        Random(u64::from(seed as u32) << 16 | SEED_LOW)
    }

    /// Returns the next 31-bit number.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.0 >> 17) as u32
    }

    /// Returns a number from 0 to 1, computed as in Redis's `math.random()`.
    pub(crate) fn fraction(&mut self) -> f64 {
        const MAX: u32 = i32::MAX as u32;
        f64::from(self.next() % MAX) / f64::from(MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_first_numbers_are_those_of_redis() {
        // EVAL "return {math.random(100), math.random(100), tostring(math.random())}" 0 of 7.0.15
        // returns 40, 85 and 0.35333609737146.
        let mut random = Random::default();
        let mut below = |n: f64| (random.fraction() * n).floor() as i64 + 1;
        assert_eq!((below(100.0), below(100.0)), (40, 85));
        assert!((random.fraction() - 0.353_336_097_371_46).abs() < 1e-13);
    }
}
