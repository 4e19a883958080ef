//! RCountDownLatch: opens at nought.
//!
//! | | |
//! |---|---|
//! | state | a string with the count; none when it is open |
//! | try set | only where there is none: 1 and a message; else 0 |
//! | count down | one less; at nought the key goes and a message is sent |

use super::invariant::Invariant::*;
use super::model::*;
use super::role::Role;
use super::view::View;

const TRY_SET: usize = 0;
const COUNT_DOWN: usize = 1;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(Role::LatchTrySet)),
    Operation::new("count_down", Sends::Script(Role::LatchCountDown)).retried(),
    Operation::new("delete", Sends::Script(Role::LatchDelete)),
];

pub struct CountDownLatch {
    names: Names,
    before: Option<i64>,
}

impl Default for CountDownLatch {
    fn default() -> CountDownLatch {
        let mut names = Names::new("my:latch", "");
        names.channel = "redisson_countdownlatch__channel__{my:latch}".to_owned();
        CountDownLatch { names, before: None }
    }
}

impl Model for CountDownLatch {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn reset(&mut self) {}

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        if call.operation == TRY_SET {
            call.count = i64::from(choice % 3) + 1;
        }
        self.names.message = if call.operation == TRY_SET { "1" } else { "0" };
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = view.number(self.names.lock.as_bytes());
    }

    fn after(&mut self, call: &Call, out: Outcome, view: View, findings: &mut Findings) {
        if out.again {
            return;
        }
        let (before, after) = (self.before, view.number(self.names.lock.as_bytes()));
        let expected = match call.operation {
            TRY_SET => before.or(Some(call.count)),
            COUNT_DOWN => before.map(|count| count - 1).filter(|count| *count > 0),
            _ => None,
        };
        findings
            .expect(C1, after == expected, || format!("{before:?} became {after:?} instead of {expected:?}"));
        let opened = before.is_some() && expected.is_none();
        findings.expect(C2, !opened || out.messages.len() == 1, || {
            format!("the latch opened and {} messages were sent", out.messages.len())
        });
        findings.expect(C2, call.operation != COUNT_DOWN || opened || out.messages.is_empty(), || {
            "the latch did not open, and yet a message was sent".to_owned()
        });
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes()
    }
}
