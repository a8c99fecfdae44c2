//! Counts how often each length occurs, in bounded memory. Counts are exact while there are few distinct lengths. When
//! there are more than [`LENGTHS_MAX`], lengths are grouped in steps that double.

use std::collections::BTreeMap;

/// The maximum number of lengths that are distinguished.
pub const LENGTHS_MAX: usize = 256;

/// The counts; see the module documentation.
#[derive(Debug, Clone, Default)]
pub struct Lengths {
    /// Counts by length divided by `1 << shift`.
    counts: BTreeMap<u64, u64>,
    shift: u32,
}

impl Lengths {
    /// Counts a length. O(log [`LENGTHS_MAX`]), and O([`LENGTHS_MAX`]) when the steps double.
    pub fn add(&mut self, length: u64) {
        *self.counts.entry(length >> self.shift).or_default() += 1;
        self.bound();
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Lengths) {
        while self.shift < other.shift {
            self.coarsen();
        }
        for (step, count) in &other.counts {
            *self.counts.entry((step << other.shift) >> self.shift).or_default() += count;
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.counts.len() > LENGTHS_MAX {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.shift += 1;
        let mut coarse = BTreeMap::new();
        for (step, count) in &self.counts {
            *coarse.entry(step >> 1).or_default() += count;
        }
        self.counts = coarse;
    }

    /// Each length with its count. If lengths are grouped, the middle of each step.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let middle = (1u64 << self.shift) / 2;
        self.counts.iter().map(move |(step, count)| ((step << self.shift) + middle, *count))
    }

    /// The reduction of `cost` if all lengths are shorter by `by`.
    pub fn saved_by(&self, by: f64, cost: impl Fn(u64) -> u64) -> f64 {
        let saved = |(length, count): (u64, u64)| {
            let shorter = (length as f64 - by).max(0.0).round() as u64;
            (cost(length) as f64 - cost(shorter) as f64) * count as f64
        };
        self.iter().map(saved).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lengths_are_exact_and_many_are_close() {
        let mut few = Lengths::default();
        for length in [5, 5, 9, 1_000_000] {
            few.add(length);
        }
        assert_eq!(few.iter().collect::<Vec<_>>(), [(5, 2), (9, 1), (1_000_000, 1)]);
        assert_eq!(few.saved_by(2.0, |length| length), 8.0);

        let mut many = Lengths::default();
        for length in 0..100_000 {
            many.add(length);
        }
        assert!(many.iter().count() <= LENGTHS_MAX);
        let sum: u64 = many.iter().map(|(length, count)| length * count).sum();
        let expected = 100_000 * 99_999 / 2;
        assert!(sum.abs_diff(expected) * 100 < expected, "{sum}");
        many.merge(&few);
        assert_eq!(many.iter().map(|(_, count)| count).sum::<u64>(), 100_004);
        assert!(many.iter().count() <= LENGTHS_MAX);
    }
}
