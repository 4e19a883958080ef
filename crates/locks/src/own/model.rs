//! The model of a lock that a file describes.

use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::{FOREVER, View};

const ACQUIRE: usize = 0;

const OPERATIONS: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining(),
    Operation::new("release", Sends::Script(roles::RELEASE)),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    exists: bool,
    ttl_ms: i64,
}

/// A lock that a file describes.
#[derive(Clone)]
pub struct OwnLock {
    names: Names,
    before: State,
    until_ms: [i64; OWNERS],
}

impl Default for OwnLock {
    fn default() -> OwnLock {
        OwnLock {
            names: Names::new("my:lock", "my:channel"),
            before: State::default(),
            until_ms: [0; OWNERS],
        }
    }
}

impl OwnLock {
    fn state(&self, view: View) -> State {
        let lock = self.names.lock.as_bytes();
        State { exists: view.exists(lock), ttl_ms: view.ttl_ms(lock) }
    }
}

impl Model for OwnLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn form(&self) -> Form {
        Form::Any
    }

    fn has_key(&self, _: &[u8]) -> bool {
        true
    }

    fn reset(&mut self) {
        self.until_ms = [0; OWNERS];
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.state(view);
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        let Call { owner, now_ms, lease_ms, .. } = *call;
        let (before, after) = (self.before, self.state(view));
        let succeeded = matches!(out.reply, Reply::Int(1) | Reply::Text(b"OK"));
        // The key lives until the end of the millisecond in which the lease ends.
        let holds = self.until_ms[owner] >= now_ms;
        if call.operation == ACQUIRE {
            verdict.expect(A2, succeeded || before.exists, || "refused, but it is free".to_owned());
            if !succeeded {
                verdict.expect(A1, before == after, || {
                    format!("a refused acquire verdictd {before:?} to {after:?}")
                });
                return;
            }
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let left = self.until_ms[other] - now_ms;
                verdict.expect(M1, left <= 0, || {
                    format!("granted while {} has a lease for {left} ms more", owner_name(other))
                });
            }
            verdict.expect(G7, after.ttl_ms != FOREVER, || "the lock has no end".to_owned());
            verdict.expect(T1, after.ttl_ms == lease_ms, || {
                format!("asked for {lease_ms} ms, the key lives for {} ms", after.ttl_ms)
            });
            self.until_ms[owner] = now_ms + lease_ms;
        } else if holds {
            verdict.expect(U2, succeeded, || format!("the owner's release answered {}", out.reply));
            verdict.expect(A1, !after.exists, || "the lock is still held".to_owned());
            self.until_ms[owner] = 0;
        } else {
            verdict
                .expect(U1, !succeeded, || format!("answered {} to who does not hold the lock", out.reply));
            verdict.expect(U1, before == after, || format!("{before:?} became {after:?}"));
        }
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        into.extend(self.until_ms.iter().filter(|until_ms| **until_ms > 0));
    }

    fn closing(&self) -> &'static [usize] {
        &[ACQUIRE]
    }
}
