//! The sizes of values: one size, a range, or sizes with weights.

use super::random::Random;
use std::str::FromStr;

/// Maximum size of a value, as in redis-benchmark.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// How the sizes of values are drawn, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSizes {
    /// All values have this size.
    Fixed(usize),
    /// All sizes from the first to the second are equally frequent.
    Uniform(usize, usize),
    /// Sizes with their weights. The weights are not all 0.
    Weighted(Vec<(usize, u64)>),
}

impl ValueSizes {
    /// The size, if all values have the same size.
    #[must_use]
    pub fn fixed(&self) -> Option<usize> {
        match self {
            ValueSizes::Fixed(size) => Some(*size),
            ValueSizes::Uniform(min, max) if min == max => Some(*min),
            ValueSizes::Weighted(sizes) if sizes.len() == 1 => Some(sizes[0].0),
            _ => None,
        }
    }

    /// The largest size that may be drawn.
    #[must_use]
    pub fn max(&self) -> usize {
        match self {
            ValueSizes::Fixed(size) | ValueSizes::Uniform(_, size) => *size,
            ValueSizes::Weighted(sizes) => sizes.iter().map(|&(size, _)| size).max().unwrap_or(0),
        }
    }

    /// Reports whether this size can be drawn.
    #[must_use]
    pub fn allows(&self, len: usize) -> bool {
        match self {
            ValueSizes::Fixed(size) => len == *size,
            ValueSizes::Uniform(min, max) => (*min..=*max).contains(&len),
            ValueSizes::Weighted(sizes) => sizes.iter().any(|&(size, _)| size == len),
        }
    }

    /// The next size.
    pub fn draw(&self, random: &mut Random) -> usize {
        match self {
            ValueSizes::Fixed(size) => *size,
            ValueSizes::Uniform(min, max) => *min + random.below((max - min) as u64 + 1) as usize,
            ValueSizes::Weighted(sizes) => {
                let total = sizes.iter().map(|&(_, weight)| weight).sum();
                let mut at = random.below(total);
                for &(size, weight) in sizes {
                    if at < weight {
                        return size;
                    }
                    at -= weight;
                }
                self.max()
            }
        }
    }
}

impl FromStr for ValueSizes {
    type Err = String;

    /// Parses `64`, `16-4096`, or `16:90,1024:9,65536:1`.
    fn from_str(text: &str) -> Result<ValueSizes, String> {
        let size = |word: &str| match word.parse() {
            Ok(size) if (1..=VALUE_BYTES_MAX).contains(&size) => Ok(size),
            _ => Err(format!("not a size from 1 to {VALUE_BYTES_MAX}: \"{word}\"")),
        };
        if text.contains(':') {
            let mut sizes = Vec::new();
            for part in text.split(',') {
                let (word, weight) = part.split_once(':').unwrap_or((part, "1"));
                let weight: u32 =
                    weight.parse().map_err(|_| format!("invalid weight: \"{weight}\""))?;
                sizes.push((size(word)?, u64::from(weight)));
            }
            if sizes.iter().all(|&(_, weight)| weight == 0) {
                return Err(format!("all weights are 0: \"{text}\""));
            }
            return Ok(ValueSizes::Weighted(sizes));
        }
        match text.split_once('-') {
            Some((min, max)) => {
                let (min, max) = (size(min)?, size(max)?);
                if min > max {
                    return Err(format!("an empty range: \"{text}\""));
                }
                Ok(ValueSizes::Uniform(min, max))
            }
            None => size(text).map(ValueSizes::Fixed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn drawn(text: &str) -> BTreeMap<usize, u32> {
        let sizes: ValueSizes = text.parse().unwrap();
        let mut random = Random::new(3);
        let mut seen = BTreeMap::new();
        for _ in 0..10_000 {
            let size = sizes.draw(&mut random);
            assert!(sizes.allows(size) && size <= sizes.max());
            *seen.entry(size).or_default() += 1;
        }
        seen
    }

    #[test]
    fn sizes_are_drawn_as_configured() {
        assert_eq!(drawn("64").len(), 1);
        assert_eq!(drawn("10-19").len(), 10);
        let weighted = drawn("16:90,1024:9,65536:1");
        assert!((8_800..9_200).contains(&weighted[&16]), "{weighted:?}");
        assert!((50..160).contains(&weighted[&65536]), "{weighted:?}");
    }

    #[test]
    fn one_size_is_recognized() {
        for text in ["5", "5-5", "5:3"] {
            assert_eq!(text.parse::<ValueSizes>().unwrap().fixed(), Some(5));
        }
        assert_eq!("5-6".parse::<ValueSizes>().unwrap().fixed(), None);
    }

    #[test]
    fn nonsense_is_rejected() {
        for text in ["", "0", "x", "9-3", "3:0", "3:x", "-4", "2000000000"] {
            assert!(text.parse::<ValueSizes>().is_err(), "{text}");
        }
    }
}
