//! Pseudorandom numbers (SplitMix64). A seed gives the same numbers on every machine.

/// A generator. A clone produces the same numbers as the original.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator for `seed`.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The generator for part number `part` of a run with this seed.
    pub fn derived(seed: u64, part: u64) -> Random {
        let mut outer = Random(seed);
        Random(outer.bits() ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0. The bias is below 2^-32 for the bounds in use.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, which must not be empty.
    #[inline]
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
