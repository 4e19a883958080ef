//! Compares the timing wheel with a sorted map under random operations.

use std::collections::BTreeMap;

use proptest::prelude::*;
use redlatch_core::wheel::{TimerId, Wheel};

/// The model: timers by deadline, then by the number of the operation that set them.
#[derive(Default)]
struct Model {
    timers: BTreeMap<(u64, u64), u32>,
    sequence: u64,
}

impl Model {
    fn arm(&mut self, deadline_ms: u64, payload: u32) -> (u64, u64) {
        self.sequence += 1;
        self.timers.insert((deadline_ms, self.sequence), payload);
        (deadline_ms, self.sequence)
    }

    fn pop_due(&mut self, now_ms: u64) -> Option<(u64, u32)> {
        let entry = self.timers.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        let deadline_ms = entry.key().0;
        Some((deadline_ms, entry.remove()))
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Sets a timer; the deadline is relative to now.
    Arm(i64),
    /// Moves one of all timers ever set, stale ones included; the deadline is relative to now.
    Rearm(usize, i64),
    Cancel(usize),
    /// Advances by this many ms and pops all due timers; negative values turn the clock back.
    Advance(i64),
    /// Pops one due timer and leaves the others.
    PopOne(i64),
    Clear,
}

/// Generates distances in time, from 0 to very long.
fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..4i64,
        4 => 0..200i64,
        2 => -100..0i64,
        2 => 0..30_000i64,
        1 => 0..3_600_000i64,
        1 => 0..1_000_000_000_000i64,
        1 => Just(i64::MAX),
    ]
}

fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => Just(0i64),
        6 => 0..70i64,
        4 => 0..5_000i64,
        2 => 0..3_600_000i64,
        1 => -500..0i64,
        1 => 0..1_000_000_000_000i64,
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => distance().prop_map(Op::Arm),
        20 => (any::<usize>(), distance()).prop_map(|(id, distance)| Op::Rearm(id, distance)),
        10 => any::<usize>().prop_map(Op::Cancel),
        15 => step().prop_map(Op::Advance),
        10 => step().prop_map(Op::PopOne),
        1 => Just(Op::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn behaves_as_a_sorted_map(start_ms in prop_oneof![Just(0), 0..u64::MAX / 4], ops in prop::collection::vec(op(), 1..300)) {
        let mut now_ms: u64 = start_ms;
        let mut wheel = Wheel::new(now_ms);
        let mut model = Model::default();
        let mut ids: Vec<(TimerId, (u64, u64))> = vec![(TimerId::NONE, (0, 0))];
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Arm(distance) => {
                    let deadline_ms = now_ms.saturating_add_signed(distance);
                    ids.push((wheel.arm(deadline_ms, number as u32), model.arm(deadline_ms, number as u32)));
                }
                Op::Rearm(which, distance) => {
                    let deadline_ms = now_ms.saturating_add_signed(distance);
                    let count = ids.len();
                    let (id, key) = &mut ids[which % count];
                    let payload = model.timers.remove(key);
                    prop_assert_eq!(wheel.rearm(*id, deadline_ms), payload.is_some());
                    if let Some(payload) = payload {
                        *key = model.arm(deadline_ms, payload);
                        prop_assert_eq!(wheel.deadline_ms(*id), Some(deadline_ms));
                    }
                }
                Op::Cancel(which) => {
                    let (id, key) = ids[which % ids.len()];
                    prop_assert_eq!(wheel.cancel(id), model.timers.remove(&key));
                    prop_assert_eq!(wheel.deadline_ms(id), None);
                }
                Op::Advance(step) => {
                    now_ms = now_ms.saturating_add_signed(step);
                    while let Some(due) = model.pop_due(now_ms) {
                        prop_assert_eq!(wheel.pop_due(now_ms), Some(due));
                    }
                    prop_assert_eq!(wheel.pop_due(now_ms), None);
                }
                Op::PopOne(step) => {
                    now_ms = now_ms.saturating_add_signed(step);
                    prop_assert_eq!(wheel.pop_due(now_ms), model.pop_due(now_ms));
                }
                Op::Clear => {
                    wheel.clear();
                    model.timers.clear();
                }
            }
            let earliest_ms = model.timers.keys().next().map(|key| key.0);
            prop_assert_eq!(wheel.next_deadline_ms(), earliest_ms);
            prop_assert!(wheel.next_wakeup_ms() <= earliest_ms);
            prop_assert_eq!(wheel.next_wakeup_ms().is_some(), earliest_ms.is_some());
            prop_assert_eq!(wheel.len(), model.timers.len());
        }
        let mut left: Vec<_> = wheel.iter().collect();
        let mut expected: Vec<_> = model.timers.iter().map(|(key, &payload)| (key.0, payload)).collect();
        left.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(left, expected);
    }
}

#[test]
fn a_sleeper_on_wakeups_reaches_a_far_deadline_in_a_handful_of_steps() {
    let mut wheel = Wheel::new(1_700_000_000_000);
    wheel.arm(2_700_000_000_123, ());
    let mut steps = 0;
    while let Some(wakeup_ms) = wheel.next_wakeup_ms() {
        steps += 1;
        if let Some((deadline_ms, ())) = wheel.pop_due(wakeup_ms) {
            assert_eq!((deadline_ms, wakeup_ms), (2_700_000_000_123, 2_700_000_000_123));
        }
    }
    assert!(steps <= 11, "{steps} steps");
}
