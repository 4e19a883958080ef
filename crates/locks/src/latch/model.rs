//! The model of a count-down latch.

use super::names::names;
use super::roles;
use crate::binding::MESSAGE;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::View;

const TRY_SET: usize = 0;
const COUNT_DOWN: usize = 1;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(roles::TRY_SET)),
    Operation::new("count_down", Sends::Script(roles::COUNT_DOWN)).defining().retried(),
    Operation::new("delete", Sends::Script(roles::DELETE)),
];

/// A count-down latch.
#[derive(Clone)]
pub struct CountDownLatch {
    names: Names,
    before: Option<i64>,
}

impl Default for CountDownLatch {
    fn default() -> CountDownLatch {
        CountDownLatch { names: names(), before: None }
    }
}

impl Model for CountDownLatch {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn form(&self) -> Form {
        Form::Any
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            MESSAGE if call.operation == TRY_SET => out.text("1"),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn reset(&mut self) {}

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        if call.operation == TRY_SET {
            call.count = i64::from(choice % 3) + 1;
        }
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = view.number(self.names.lock.as_bytes());
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let (before, after) = (self.before, view.number(self.names.lock.as_bytes()));
        let expected = match call.operation {
            TRY_SET => before.or(Some(call.count)),
            COUNT_DOWN => before.map(|count| count - 1).filter(|count| *count > 0),
            _ => None,
        };
        verdict
            .expect(C1, after == expected, || format!("{before:?} became {after:?} instead of {expected:?}"));
        let opened = before.is_some() && expected.is_none();
        verdict.expect(C2, !opened || out.messages.len() == 1, || {
            format!("the latch opened and {} messages were sent", out.messages.len())
        });
        verdict.expect(C2, call.operation != COUNT_DOWN || opened || out.messages.is_empty(), || {
            "the latch did not open, and yet a message was sent".to_owned()
        });
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes()
    }
}
