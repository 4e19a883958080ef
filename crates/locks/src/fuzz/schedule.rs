//! Schedules: who does what, and when.
//!
//! A schedule is a vector of small numbers, and it determines everything that happens in a run. So it can be shrunk
//! without knowledge of its meaning, and printed as one token.

use crate::model::Operation;
use redlatch_core::rng::Rng;

/// The actions that every object has in addition to its operations. They have the lowest numbers of [`Step::action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Common {
    /// Time passes.
    Advance,
    /// The reply was lost: the client repeats its last request.
    Again,
    /// A companion key is lost.
    Lose,
    /// `SCRIPT FLUSH`.
    Forget,
    /// The owner's clock becomes wrong.
    Skew,
}

pub const COMMON: [Common; 5] = [Common::Advance, Common::Again, Common::Lose, Common::Forget, Common::Skew];

/// One step of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// First the actions in [`COMMON`], then the operations of the object.
    pub action: u8,
    pub owner: u8,
    /// Selects the lease, the time that passes, or the key that is lost.
    pub choice: u8,
}

impl Step {
    /// Returns the common action, or `None` for an operation of the object.
    pub fn common(self) -> Option<Common> {
        COMMON.get(self.action as usize).copied()
    }

    /// Returns the index of the object's operation, or `None` for a common action.
    pub fn operation(self) -> Option<usize> {
        (self.action as usize).checked_sub(COMMON.len())
    }
}

/// The number of choices of a step; models take the remainder that they need.
pub const CHOICES: usize = 8;

/// Returns the schedule token: three digits for each step.
pub fn encode(steps: &[Step]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 36).unwrap_or('0');
    steps.iter().flat_map(|step| [digit(step.action), digit(step.owner), digit(step.choice)]).collect()
}

/// Parses a schedule token, or returns `None` if it is not one.
pub fn decode(token: &str) -> Option<Vec<Step>> {
    let digits: Option<Vec<u8>> = token.chars().map(|c| c.to_digit(36).map(|n| n as u8)).collect();
    let steps = digits?;
    (steps.len() % 3 == 0).then(|| {
        steps.chunks_exact(3).map(|step| Step { action: step[0], owner: step[1], choice: step[2] }).collect()
    })
}

/// Returns the shape of a schedule: who does what. Leases and times do not count.
pub fn shape(steps: &[Step]) -> Vec<(u8, u8)> {
    steps.iter().map(|step| (step.action, step.owner)).collect()
}

/// Returns the random numbers from which a schedule is made: each schedule of a search has a number.
pub fn numbers(seed: u64, number: u64) -> Rng {
    Rng::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Fills `into` with a random schedule of the operations that the release `has`. Each schedule has its own weights, so
/// that some never advance the clock, others never lose a key, and every other one leaves out some of the operations.
pub fn random(
    rng: &mut Rng,
    operations: &[Operation],
    has: impl Fn(usize) -> bool,
    (owners, faults): (usize, bool),
    into: &mut Vec<Step>,
) {
    let leaves_out = rng.below(2) == 0;
    let mut weights = [0u32; 64];
    let actions = (COMMON.len() + operations.len()).min(weights.len());
    for (action, weight) in weights[..actions].iter_mut().enumerate() {
        *weight = match COMMON.get(action) {
            Some(Common::Advance) => [2, 4, 8, 1][rng.below(4)],
            Some(_) if !faults => 0,
            Some(Common::Again) => [0, 1, 3, 0][rng.below(4)],
            Some(Common::Lose) => [0, 0, 0, 1][rng.below(4)],
            Some(Common::Forget) => [0, 0, 0, 0, 0, 0, 0, 1][rng.below(8)],
            Some(Common::Skew) => [0, 0, 0, 0, 0, 0, 0, 1][rng.below(8)],
            None if operations[action - COMMON.len()].is_fault() => {
                [0, 0, 0, 1][rng.below(4)] * u32::from(faults)
            }
            None if !has(action - COMMON.len()) => 0,
            // Without these nothing happens.
            None if operations[action - COMMON.len()].is_defining => [1, 2, 4, 4][rng.below(4)],
            None if leaves_out => [0, 1, 2, 4][rng.below(4)],
            None => [1, 2, 4, 4][rng.below(4)],
        };
    }
    let total: u32 = weights[..actions].iter().sum();
    let len = 4 + rng.below(20);
    into.clear();
    for _ in 0..len {
        let mut draw = rng.below(total as usize) as u32;
        let action = weights[..actions].iter().position(|weight| {
            let hit = draw < *weight;
            draw = draw.saturating_sub(*weight);
            hit
        });
        into.push(Step {
            action: action.unwrap_or(0) as u8,
            owner: rng.below(owners) as u8,
            choice: rng.below(CHOICES) as u8,
        });
    }
}

/// The most points at which the priorities of owners change.
const CHANGES: usize = 3;

/// Lets the owners of a schedule act by random priorities: the first one acts until a random point, at which it becomes the last. So
/// an owner does several things in a row before another one comes in between, as threads do.
pub fn prioritise(rng: &mut Rng, owners: usize, steps: &mut [Step]) {
    let mut order: Vec<u8> = (0..owners as u8).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last + 1));
    }
    let changes: Vec<usize> = (0..1 + rng.below(CHANGES)).map(|_| rng.below(steps.len())).collect();
    for (at, step) in steps.iter_mut().enumerate() {
        for _ in changes.iter().filter(|change| **change == at) {
            order.rotate_left(1);
        }
        step.owner = order[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_repeats_a_schedule() {
        let mut rng = Rng::new(7);
        let operations = [Operation::new("anything", crate::model::Sends::Pexpire); 9];
        let mut steps = Vec::new();
        for _ in 0..100 {
            random(&mut rng, &operations, |_| true, (3, true), &mut steps);
            assert_eq!(decode(&encode(&steps)).as_ref(), Some(&steps));
        }
        assert_eq!(decode("50"), None);
        assert_eq!(decode("5!0"), None);
    }

    #[test]
    fn owners_with_priorities_take_turns_a_few_times() {
        for seed in 0..100 {
            let mut steps = [Step::default(); 20];
            prioritise(&mut Rng::new(seed), 3, &mut steps);
            let turns = steps.windows(2).filter(|pair| pair[0].owner != pair[1].owner).count();
            assert!(turns <= CHANGES, "{steps:?}");
        }
        prioritise(&mut Rng::new(0), 1, &mut []);
    }
}
