//! Compares the timing wheel with a sorted map.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};

use redlatch_core::wheel::{TimerId, Wheel};

#[derive(Arbitrary, Debug)]
enum Op {
    /// Arms a timer that is due in this many ms.
    Arm(u32),
    ArmFar(u64),
    /// Moves a timer that was armed before, whether it is live or not, to this many ms from now.
    Move(u8, u32),
    Cancel(u8),
    Advance(u16),
    AdvanceFar(u64),
    Clear,
}

/// Fails if timers do not fire at their deadlines or, with equal deadlines, not in the order armed.
pub fn wheel(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut wheel = Wheel::new(0);
    // Maps the deadline and the order of arming to the timer's name.
    let mut model: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut ids: Vec<(TimerId, u64)> = Vec::new();
    let (mut now_ms, mut order, mut names) = (0u64, 0, 0);
    // Empty input would produce operations without end.
    while !input.is_empty() {
        let Ok(op) = Op::arbitrary(&mut input) else { break };
        order += 1;
        let known = |index: u8| ids.get(index as usize % ids.len().max(1)).copied();
        match op {
            Op::Arm(_) | Op::ArmFar(_) => {
                let ms = match op {
                    Op::Arm(ms) => ms.into(),
                    Op::ArmFar(ms) => ms,
                    _ => 0,
                };
                let deadline_ms = now_ms.saturating_add(ms);
                names += 1;
                ids.push((wheel.arm(deadline_ms, names), names));
                model.insert((deadline_ms, order), names);
            }
            Op::Move(index, ms) => {
                if let Some((id, name)) = known(index) {
                    let deadline_ms = now_ms.saturating_add(ms.into());
                    let old = model.iter().find(|(_, known)| **known == name).map(|(key, _)| *key);
                    assert_eq!(wheel.rearm(id, deadline_ms), old.is_some());
                    if let Some(old) = old {
                        model.remove(&old);
                        model.insert((deadline_ms, order), name);
                    }
                }
            }
            Op::Cancel(index) => {
                if let Some((id, name)) = known(index) {
                    let old = model.iter().find(|(_, known)| **known == name).map(|(key, _)| *key);
                    assert_eq!(wheel.cancel(id), old.map(|_| name));
                    old.and_then(|old| model.remove(&old));
                }
            }
            Op::Advance(_) | Op::AdvanceFar(_) => {
                let ms = match op {
                    Op::Advance(ms) => ms.into(),
                    Op::AdvanceFar(ms) => ms,
                    _ => 0,
                };
                now_ms = now_ms.saturating_add(ms);
                while let Some((deadline_ms, name)) = wheel.pop_due(now_ms) {
                    let Some((key, expected)) = model.pop_first() else { panic!("{name} is not set") };
                    assert_eq!((deadline_ms, name), (key.0, expected));
                    assert!(deadline_ms <= now_ms);
                }
                assert!(model.keys().all(|(deadline_ms, _)| *deadline_ms > now_ms));
            }
            Op::Clear => {
                wheel.clear();
                model.clear();
            }
        }
        let next_ms = model.keys().next().map(|(deadline_ms, _)| *deadline_ms);
        assert_eq!((wheel.len(), wheel.next_deadline_ms()), (model.len(), next_ms));
        assert!(wheel.next_wakeup_ms().is_none_or(|at| next_ms.is_some_and(|next_ms| at <= next_ms)));
    }
}
