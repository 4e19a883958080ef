//! The estimate of the number of elements, from how many registers have each rank. Algorithm 6 of Otmar Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches", arXiv:1702.01284.

use super::{RANK_BITS, REGISTERS};

/// The ranks that six bits can hold. Valid registers have a rank of at most `RANK_BITS` + 1.
pub(super) const RANKS: usize = 64;

/// 1 / (2 ln 2), with the digits of Redis.
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Returns the estimate, given the number of registers of each rank.
pub(super) fn cardinality(histogram: &[u32; RANKS]) -> u64 {
    let m = REGISTERS as f64;
    let highest = RANK_BITS as usize;
    let mut z = m * tau((m - f64::from(histogram[highest + 1])) / m);
    for &registers in histogram[1..=highest].iter().rev() {
        z = (z + f64::from(registers)) * 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    let estimate = (ALPHA * m * m / z).round();
    // With registers that are too high the estimate is infinite, which C converts to the lowest number.
    if estimate < i64::MAX as f64 { estimate as u64 } else { i64::MIN as u64 }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}
