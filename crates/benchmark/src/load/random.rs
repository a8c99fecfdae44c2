//! Pseudorandom numbers for keys, sizes and arrivals. They are fast and seeded, but not cryptographically secure.

/// A 64-bit state that is advanced by a constant and then mixed (wyrand).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator. The same seed gives the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random { state: seed ^ 0x9E37_79B9_7F4A_7C15 }
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0xA076_1D64_78BD_642F);
        let wide = u128::from(self.state) * u128::from(self.state ^ 0xE703_7ED1_A0B4_28DB);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        {
            (wide >> 64) as u64 ^ wide as u64
        }
    }

    /// A number from `0..bound`; 0 if `bound` is 0. Biased by less than `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }
}
