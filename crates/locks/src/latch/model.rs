//! The model of a count-down latch.

use super::names::names;
use super::roles;
use crate::binding::MESSAGE;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::script_set::ScriptSet;
use crate::view::{FOREVER, View};

const TRY_SET: usize = 0;
const COUNT_DOWN: usize = 1;
const DELETE: usize = 2;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(roles::TRY_SET)),
    Operation::new("count_down", Sends::Script(roles::COUNT_DOWN)).defining().retried(),
    Operation::new("delete", Sends::Script(roles::DELETE)),
];

/// The messages that open the latch of a client, and that close it. It ignores others.
const OPEN: i64 = 0;
const CLOSE: i64 = 1;

/// A count-down latch.
#[derive(Clone)]
pub struct CountDownLatch {
    names: Names,
    /// The message that clients send when they delete the latch.
    delete_message: i64,
    before: Option<i64>,
}

impl CountDownLatch {
    /// Creates a model for the scripts of a release.
    pub fn new(scripts: &ScriptSet) -> CountDownLatch {
        let delete = scripts.script(roles::DELETE);
        let closes = delete.is_some_and(|script| {
            script.uses.iter().any(|used| matches!(&used[..], "NEW_COUNT_MESSAGE" | "newCountMessage"))
        });
        CountDownLatch { names: names(), delete_message: if closes { CLOSE } else { OPEN }, before: None }
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
            MESSAGE if call.operation == TRY_SET => out.int(CLOSE),
            MESSAGE if call.operation == DELETE => out.int(self.delete_message),
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
        let ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        verdict.expect(C1, ttl_ms <= FOREVER, || format!("the count ends in {ttl_ms} ms"));
        let told = |number| {
            let to_channel = |message: &&Message| message.channel == self.names.channel.as_bytes();
            out.messages.iter().filter(to_channel).filter(|message| message.number() == Some(number)).count()
        };
        let opened = before.is_some() && expected.is_none();
        verdict.expect(C2, !opened || told(OPEN) + told(CLOSE) == 1, || {
            format!("the latch opened and {} messages were sent", out.messages.len())
        });
        verdict.expect(C5, !opened || told(OPEN) == 1, || {
            "the latch opened, and the message closes it for those who wait".to_owned()
        });
        verdict.expect(C2, call.operation != COUNT_DOWN || opened || out.messages.is_empty(), || {
            "the latch did not open, and yet a message was sent".to_owned()
        });
        let closed = call.operation == TRY_SET && before.is_none();
        verdict.expect(C4, !closed || told(CLOSE) == 1, || {
            format!("the count is {after:?}, and {} messages closed the latch", told(CLOSE))
        });
        let did = match call.operation {
            TRY_SET => Some(before.is_none()),
            DELETE => Some(before.is_some()),
            _ => None,
        };
        verdict.expect(C3, did.is_none_or(|did| out.reply == Reply::Int(did.into())), || {
            format!("answered {}, the count was {before:?}", out.reply)
        });
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes()
    }
}
