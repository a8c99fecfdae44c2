//! Estimates the count from the registers, with the estimator of Otmar Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches" (2017), which needs no table of corrections.

use super::{REGISTERS, TAIL_BITS};

/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Returns the estimate if `histogram[v]` registers have the value `v`.
pub(super) fn estimate(histogram: &[u32; 64]) -> u64 {
    let m = REGISTERS as f64;
    let full = f64::from(histogram[TAIL_BITS as usize + 1]);
    let mut z = m * tau((m - full) / m);
    for &registers in histogram[1..=TAIL_BITS as usize].iter().rev() {
        z += f64::from(registers);
        z *= 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

/// The correction for registers that are zero: x + sum of `x^(2^k) * 2^(k-1)`.
fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (x, 1.0, x);
    loop {
        power *= power;
        let before = sum;
        sum += power * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// The correction for registers that are full.
fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut root, mut factor, mut sum) = (x, 1.0, 1.0 - x);
    loop {
        root = root.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - root).powi(2) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}
