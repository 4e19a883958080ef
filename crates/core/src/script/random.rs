//! The generator behind `math.random`: the 48-bit linear congruential generator of `drand48`. Redis has its own copy of
//! it, so that scripts draw the same numbers on every platform. Its state carries over from one script to the next.

/// The state: 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Random(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// The low 16 bits of the state after seeding.
const SEED_TAIL: u64 = 0x330E;
/// The state of a server that has just started.
const INITIAL: u64 = 0x1234_ABCD_330E;
/// Redis divides random numbers by this.
const SPAN: u32 = i32::MAX as u32;

impl Default for Random {
    fn default() -> Random {
        Random(INITIAL)
    }
}

impl Random {
    pub fn seed(&mut self, seed: i32) {
        self.0 = (seed as u32 as u64) << 16 | SEED_TAIL;
    }

    /// Draws 31 random bits.
    fn draw(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.0 >> 17) as u32
    }

    /// Draws a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.draw() % SPAN) as f64 / SPAN as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_redis() {
        let mut random = Random::default();
        let drawn: Vec<f64> = (0..3).map(|_| (random.unit() * 100.0).floor() + 1.0).collect();
        assert_eq!(drawn, [40.0, 85.0, 36.0]);
    }
}
