//! The guarantees of a rate limiter: no more requests than the rate, and no fewer.

use super::answer::Answer;
use super::lock::{Limit, Lock, Window};
use super::model::{ACQUIRE, Turn};
use crate::invariant::Invariant::*;
use crate::model::Verdict;

/// What clients have been granted.
#[derive(Clone, Debug, Default)]
pub struct Limiter {
    /// When, and how many at once.
    grants: Vec<(i64, i64)>,
    /// Where the interval may have begun, and how many requests it has had: the last millisecond of an interval may be
    /// the first of the next.
    intervals: Vec<(i64, i64)>,
    /// The tokens at the time of the last grant, in parts of `per_ms`.
    level: Option<(i64, i64)>,
}

impl Limiter {
    /// Compares a request with the guarantees.
    pub fn judge(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let Some(limit) = turn.lock.limit else { return };
        if turn.call.operation != ACQUIRE {
            *self = Limiter::default();
            return;
        }
        if turn.is_skewed {
            return;
        }
        let (now_ms, count) = (turn.call.now_ms, turn.call.count);
        let is_granted = turn.answer == Answer::Granted;
        let needed_ms = self.needed_ms(limit, now_ms, count);
        match limit.window {
            Window::Sliding => self.sliding(limit, (now_ms, count), is_granted, verdict),
            Window::Bucket => self.bucket(limit, (now_ms, count), is_granted, verdict),
            Window::Fixed | Window::Clock => self.intervals(limit, (now_ms, count), is_granted, verdict),
        }
        if let Some(wait_ms) = turn.numbers.wait_ms {
            // From nothing to as many as were asked for.
            let most_ms = match limit.window {
                Window::Bucket => count * limit.per_ms / limit.limit,
                _ => limit.per_ms,
            };
            let slack_ms = if turn.numbers.is_rounded { 1_000 } else { 1 };
            verdict.expect(L3, wait_ms <= most_ms + slack_ms, || {
                format!("told to wait {wait_ms} ms, where {most_ms} ms are always enough")
            });
            verdict.expect(L3, is_granted || wait_ms + slack_ms >= needed_ms, || {
                format!(
                    "told to wait {wait_ms} ms, and will be refused again before {needed_ms} ms have passed"
                )
            });
        }
    }

    /// Returns the time that has to pass before a request can be granted, or less.
    fn needed_ms(&self, limit: Limit, now_ms: i64, count: i64) -> i64 {
        let end_ms = match limit.window {
            Window::Bucket => {
                let missing = self.level.map_or(0, |(at_ms, level)| {
                    count * limit.per_ms - level - (now_ms - at_ms) * limit.limit
                });
                return missing.max(0) / limit.limit;
            }
            // The oldest request that has to be out of sight.
            Window::Sliding => {
                let mut free = limit.limit - count;
                let newest = self.grants.iter().rev().find(|(_, count)| {
                    free -= count;
                    free < 0
                });
                newest.map(|(at_ms, _)| at_ms + limit.per_ms)
            }
            _ => self.intervals.iter().map(|(start_ms, _)| start_ms + limit.per_ms).min(),
        };
        end_ms.map_or(0, |end_ms| (end_ms - now_ms).max(0))
    }

    fn sliding(
        &mut self,
        limit: Limit,
        (now_ms, count): (i64, i64),
        is_granted: bool,
        verdict: &mut Verdict,
    ) {
        let sum = |from_ms: i64| -> i64 {
            self.grants.iter().filter(|(at_ms, _)| *at_ms >= from_ms).map(|(_, count)| count).sum()
        };
        let start_ms = now_ms - limit.per_ms;
        let (certain, possible) = (sum(start_ms + 1), sum(start_ms));
        judged(limit, (certain, possible, count), is_granted, verdict);
        if is_granted {
            self.grants.push((now_ms, count));
        }
    }

    fn bucket(&mut self, limit: Limit, (now_ms, count): (i64, i64), is_granted: bool, verdict: &mut Verdict) {
        // In parts of `per_ms`, so that all is exact.
        let full = limit.burst * limit.per_ms;
        let level =
            self.level.map_or(full, |(at_ms, level)| full.min(level + (now_ms - at_ms) * limit.limit));
        let asked = count * limit.per_ms;
        let tokens = level / limit.per_ms;
        verdict.expect(L1, !is_granted || level >= asked, || {
            format!("granted {count}, and the bucket has {tokens} tokens")
        });
        // Scripts round.
        verdict.expect(A2, is_granted || level < asked + limit.per_ms, || {
            format!("refused {count}, and the bucket has {tokens} tokens")
        });
        self.level = Some((now_ms, if is_granted { (level - asked).max(0) } else { level }));
    }

    fn intervals(
        &mut self,
        limit: Limit,
        (now_ms, count): (i64, i64),
        is_granted: bool,
        verdict: &mut Verdict,
    ) {
        let mut next = Vec::new();
        let known: Vec<(i64, i64)> = match self.intervals.is_empty() {
            true => vec![(i64::MIN, 0)],
            false => self.intervals.clone(),
        };
        for &(start_ms, used) in &known {
            let end_ms = start_ms.saturating_add(limit.per_ms);
            let begins_ms = match limit.window {
                Window::Clock => now_ms - now_ms.rem_euclid(limit.per_ms),
                _ => now_ms,
            };
            let same = (now_ms <= end_ms && limit.window == Window::Fixed
                || start_ms == begins_ms && limit.window == Window::Clock)
                .then_some((start_ms, used));
            let new = (now_ms >= end_ms).then_some((begins_ms, 0));
            for (start_ms, used) in same.into_iter().chain(new) {
                if is_granted && used + count <= limit.limit {
                    next.push((start_ms, used + count));
                } else if !is_granted && used + count > limit.limit {
                    next.push((start_ms, used));
                }
            }
        }
        let used = known.iter().map(|(_, used)| *used).max().unwrap_or(0);
        verdict.expect(L1, !is_granted || !next.is_empty(), || {
            format!("granted {count} after {used} of {} in one interval", limit.limit)
        });
        verdict.expect(A2, is_granted || !next.is_empty(), || {
            format!("refused {count}, and there were fewer than {} in the interval", limit.limit)
        });
        if !next.is_empty() {
            next.sort_unstable();
            next.dedup();
            self.intervals = next;
        }
    }

    pub fn deadlines(&self, lock: &Lock, into: &mut Vec<i64>) {
        let Some(limit) = lock.limit else { return };
        into.extend(self.grants.iter().map(|(at_ms, _)| at_ms + limit.per_ms));
        into.extend(self.intervals.iter().map(|(start_ms, _)| start_ms.saturating_add(limit.per_ms)));
        into.extend(self.level.map(|(at_ms, level)| {
            let missing = limit.per_ms - level % limit.per_ms;
            at_ms + (missing + limit.limit - 1) / limit.limit
        }));
    }
}

fn judged(
    limit: Limit,
    (certain, possible, count): (i64, i64, i64),
    is_granted: bool,
    verdict: &mut Verdict,
) {
    verdict.expect(L1, !is_granted || certain + count <= limit.limit, || {
        format!("granted {count} after {certain} of {} in {} ms", limit.limit, limit.per_ms)
    });
    verdict.expect(A2, is_granted || possible + count > limit.limit, || {
        format!("refused {count} after {possible} of {} in {} ms", limit.limit, limit.per_ms)
    });
}
