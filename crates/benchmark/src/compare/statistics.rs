//! Medians, ratios of medians, and their confidence intervals.

use crate::load::random::Random;
use serde::{Deserialize, Serialize};

/// The number of bootstrap resamples for an interval.
const RESAMPLES: usize = 2000;
/// The minimum number of rounds for an interval. With fewer rounds, their spread is unknown.
const ROUNDS_MIN: usize = 3;

/// A ratio with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median divided by the median of the baseline.
    pub value: f64,
    /// Lower end of the interval; `None` with fewer than three rounds.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// The middle value, or the mean of the two middle values. NaN if there are no values. O(n log n).
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The ratio of two medians. The interval is computed by bootstrapping: rounds are drawn with replacement. The values
/// of both servers in a round are drawn together, because a disturbance in a round affects both.
#[must_use]
pub fn ratio(values: &[f64], base: &[f64]) -> Option<Ratio> {
    let rounds = values.len().min(base.len());
    let divided = |values: &[f64], base: &[f64]| {
        let (above, below) = (median(values), median(base));
        (below != 0.0).then(|| above / below).filter(|ratio| ratio.is_finite())
    };
    let value = divided(values, base)?;
    if rounds < ROUNDS_MIN {
        return Some(Ratio { value, low: None, high: None });
    }
    let mut random = Random::new(1);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    let (mut above, mut below) = (vec![0.0; rounds], vec![0.0; rounds]);
    for _ in 0..RESAMPLES {
        for i in 0..rounds {
            let round = random.below(rounds as u64) as usize;
            (above[i], below[i]) = (values[round], base[round]);
        }
        ratios.extend(divided(&above, &below));
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let index = (ratios.len() as f64 * part) as usize;
        ratios.get(index.min(ratios.len().saturating_sub(1))).copied()
    };
    Some(Ratio { value, low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn an_interval_is_as_wide_as_the_rounds_differ() {
        let base = [10.0, 10.0, 10.0, 10.0, 10.0];
        let sure = ratio(&[20.0, 20.0, 20.0, 20.0, 20.0], &base).unwrap();
        assert_eq!((sure.value, sure.low, sure.high), (2.0, Some(2.0), Some(2.0)));
        let unsure = ratio(&[10.0, 15.0, 20.0, 25.0, 30.0], &base).unwrap();
        let (low, high) = (unsure.low.unwrap(), unsure.high.unwrap());
        assert!(low < unsure.value && unsure.value < high, "{unsure:?}");
        assert!(low >= 1.0 && high <= 3.0, "{unsure:?}");
    }

    #[test]
    fn noise_that_affects_both_servers_does_not_widen_the_interval() {
        let base = [10.0, 20.0, 30.0];
        let twice = [20.0, 40.0, 60.0];
        let paired = ratio(&twice, &base).unwrap();
        assert_eq!((paired.low, paired.high), (Some(2.0), Some(2.0)));
    }

    #[test]
    fn two_rounds_have_no_interval_and_nothing_is_divided_by_nothing() {
        let two = ratio(&[2.0, 2.0], &[1.0, 1.0]).unwrap();
        assert_eq!(two, Ratio { value: 2.0, low: None, high: None });
        assert_eq!(ratio(&[1.0], &[0.0]), None);
        assert_eq!(ratio(&[], &[]), None);
    }
}
