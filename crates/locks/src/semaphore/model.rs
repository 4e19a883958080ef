//! The model of a semaphore.

use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::{FOREVER, MISSING, View};

const TRY_SET: usize = 0;
const ACQUIRE: usize = 1;
const RELEASE: usize = 2;
const ADD: usize = 3;
const DRAIN: usize = 4;
const RELEASE_IF_EXISTS: usize = 5;
const TRY_SET_FOR: usize = 6;
const SET: usize = 7;
const REDUCE: usize = 8;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(roles::TRY_SET)),
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried(),
    Operation::new("release", Sends::Script(roles::RELEASE)).retried(),
    Operation::new("add", Sends::Script(roles::ADD)),
    Operation::new("drain", Sends::Script(roles::DRAIN)),
    Operation::new("release_if_exists", Sends::Script(roles::RELEASE_IF_EXISTS)).retried(),
    Operation::new("try_set_for", Sends::Script(roles::TRY_SET_FOR)),
    Operation::new("set", Sends::Script(roles::SET)),
    Operation::new("reduce", Sends::Script(roles::REDUCE)),
];

/// A semaphore.
#[derive(Clone)]
pub struct Semaphore {
    names: Names,
    before: Option<i64>,
    before_ttl_ms: i64,
}

impl Default for Semaphore {
    fn default() -> Semaphore {
        Semaphore { names: Names::new("my:semaphore", "redisson_sc"), before: None, before_ttl_ms: MISSING }
    }
}

impl Model for Semaphore {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        matches!(call.operation, ACQUIRE | RELEASE_IF_EXISTS) && reply == Reply::Int(0)
    }

    fn form(&self) -> Form {
        Form::Any
    }

    fn reset(&mut self) {}

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        call.count = match call.operation {
            TRY_SET | TRY_SET_FOR | SET => i64::from(choice % 4),
            ADD if choice >= 4 => -i64::from(choice % 4) - 1,
            _ => i64::from(choice % 3) + 1,
        };
        call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = view.number(self.names.lock.as_bytes());
        self.before_ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let (before, after) = (self.before, view.number(self.names.lock.as_bytes()));
        let had = before.unwrap_or(0);
        let enough = before.is_some() && had >= call.count;
        let (expected, reply) = match call.operation {
            TRY_SET | TRY_SET_FOR => (before.or(Some(call.count)), Some(Reply::Int(before.is_none() as i64))),
            ACQUIRE => {
                (if enough { Some(had - call.count) } else { before }, Some(Reply::Int(enough as i64)))
            }
            SET => (before.or(Some(call.count)), None),
            REDUCE => (Some(had - call.count), None),
            DRAIN => (before.map(|_| 0), None),
            RELEASE_IF_EXISTS => {
                (before.map(|had| had + call.count), Some(Reply::Int(before.is_some() as i64)))
            }
            _ => (Some(had + call.count), None),
        };
        verdict
            .expect(Q1, after == expected, || format!("{before:?} became {after:?} instead of {expected:?}"));
        if call.operation == DRAIN {
            verdict.expect(Q1, out.reply.int() == Some(had), || {
                format!("drained {had}, answered {}", out.reply)
            });
        }
        verdict.expect(A2, reply.is_none_or(|reply| reply == out.reply), || {
            format!("answered {} instead of {reply:?}", out.reply)
        });
        let more = matches!(call.operation, RELEASE | ADD) && call.count > 0
            || call.operation == RELEASE_IF_EXISTS && before.is_some()
            || matches!(call.operation, TRY_SET | TRY_SET_FOR | SET) && before.is_none();
        let told = |message: &Message| message.channel == self.names.channel.as_bytes();
        verdict.expect(Q2, !more || out.messages.iter().any(told), || {
            format!("{before:?} became {after:?} and nobody was told")
        });
        let negative = out.messages.iter().find_map(|message| message.number().filter(|number| *number < 0));
        verdict.expect(Q3, negative.is_none(), || format!("waiters were told {}", negative.unwrap_or(0)));
        // The client lets as many of its waiters ask again as the message says.
        let right = |message: &Message| !told(message) || message.number() == after;
        verdict.expect(Q4, out.messages.iter().all(right), || {
            format!("{after:?} permits are free, waiters were told {:?}", out.messages[0].number())
        });
        let ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        let expected_ms = match (call.operation, before) {
            (TRY_SET_FOR, None) => call.lease_ms,
            (_, None) => FOREVER,
            (_, Some(_)) => self.before_ttl_ms,
        };
        verdict.expect(Q5, after.is_none() || ttl_ms == expected_ms, || {
            format!("the semaphore lives for {ttl_ms} ms instead of {expected_ms} ms (-1: for ever)")
        });
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes()
    }
}
