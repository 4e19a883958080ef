//! Shrinks a schedule to the shortest one that still violates the same invariant.

use super::schedule::Step;

/// Removes and simplifies steps as long as `breaks` says that the schedule still violates the invariant.
pub fn shrink(steps: &[Step], mut breaks: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut best = steps.to_vec();
    loop {
        let before = best.clone();
        remove_spans(&mut best, &mut breaks);
        simplify(&mut best, &mut breaks);
        if best == before {
            return best;
        }
    }
}

/// Removes spans of decreasing length, down to single steps.
fn remove_spans(best: &mut Vec<Step>, breaks: &mut impl FnMut(&[Step]) -> bool) {
    let mut span = best.len() / 2;
    while span > 0 {
        let mut at = 0;
        while at + span <= best.len() {
            let mut candidate = best.clone();
            candidate.drain(at..at + span);
            if breaks(&candidate) {
                *best = candidate;
            } else {
                at += 1;
            }
        }
        span /= 2;
    }
    // Some steps can only be removed in pairs, or only if another step changes its choice.
    for first in (0..best.len()).rev() {
        for second in (0..best.len()).rev().filter(|second| *second != first) {
            let mut candidate = best.clone();
            candidate.remove(first);
            let second = if second > first { second - 1 } else { second };
            for choice in 0..=best[second].choice {
                candidate[second].choice = choice;
                if breaks(&candidate) {
                    *best = candidate;
                    return;
                }
            }
            candidate.remove(second);
            if breaks(&candidate) {
                *best = candidate;
                return;
            }
        }
    }
}

/// Lowers the numbers in steps: owner A before B, the first lease before others.
fn simplify(best: &mut [Step], breaks: &mut impl FnMut(&[Step]) -> bool) {
    let mut attempt = |best: &mut [Step], change: &dyn Fn(&mut [Step])| {
        let mut candidate = best.to_vec();
        change(&mut candidate);
        if candidate.as_slice() < &*best && breaks(&candidate) {
            best.copy_from_slice(&candidate);
        }
    };
    // Owners are interchangeable: they are named in the order in which they appear.
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        attempt(best, &|steps| {
            for step in steps {
                step.owner = match step.owner {
                    owner if owner == one => other,
                    owner if owner == other => one,
                    owner => owner,
                };
            }
        });
    }
    for at in 0..best.len() {
        for owner in 0..best[at].owner {
            attempt(best, &|steps| steps[at].owner = owner);
        }
        for choice in 0..best[at].choice {
            attempt(best, &|steps| steps[at].choice = choice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(action: u8, owner: u8) -> Step {
        Step { action, owner, choice: 7 }
    }

    #[test]
    fn what_matters_stays() {
        let steps: Vec<Step> = (0..20).map(|n| step(n % 7, n % 3)).collect();
        let breaks = |steps: &[Step]| {
            let first = steps.iter().position(|step| step.action == 5);
            first.is_some_and(|first| {
                steps[first..].iter().any(|step| step.action == 2 && step.owner == steps[first].owner)
            })
        };
        let shortest = shrink(&steps, breaks);
        assert_eq!(
            shortest,
            [Step { action: 5, owner: 0, choice: 0 }, Step { action: 2, owner: 0, choice: 0 }]
        );
    }
}
