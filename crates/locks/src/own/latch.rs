//! The guarantees of a latch: the count goes down to nought once, and then waiters are told.

use super::answer::Answer;
use super::model::{COUNT_DOWN, GET, Turn};
use crate::invariant::Invariant::*;
use crate::model::Verdict;

/// What clients have been told of a latch.
#[derive(Clone, Debug, Default)]
pub struct Latch {
    /// 0 if the latch is open.
    count: i64,
}

impl Latch {
    /// Compares a request with the guarantees.
    pub fn judge(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let before = self.count;
        match turn.call.operation {
            COUNT_DOWN => self.counted(turn, verdict),
            GET => {
                let told = turn.numbers.left.unwrap_or(0);
                verdict
                    .expect(V1, told == before, || format!("answered {}, the count is {before}", turn.reply));
            }
            _ => {
                let is_refused = turn.answer == Answer::Refused;
                verdict.expect(C3, !turn.part.has(Answer::Refused) || is_refused == (before > 0), || {
                    format!("answered {}, the count was {before}", turn.reply)
                });
                if !is_refused {
                    self.count = turn.call.count;
                }
            }
        }
        if let Some(stored) = turn.view.number(turn.key) {
            verdict.expect(C1, stored == self.count, || {
                format!("the count is {stored} instead of {}", self.count)
            });
        }
    }

    fn counted(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let before = self.count;
        self.count = (before - turn.call.count).max(0);
        let opens = before > 0 && self.count == 0;
        if turn.part.has(Answer::Opened) {
            verdict.expect(C3, (turn.answer == Answer::Opened) == opens || before == 0, || {
                format!("answered {}, the count was {before}", turn.reply)
            });
        }
        if let Some(left) = turn.numbers.left {
            verdict
                .expect(C1, left == self.count, || format!("answered {left}, the count is {}", self.count));
        }
        if turn.lock.channel.is_some() {
            verdict.expect(C2, turn.messages == usize::from(opens), || {
                format!("the count was {before}, and {} messages were sent", turn.messages)
            });
        }
    }
}
