//! The model of RLock and its variants.

use super::names::{TOKEN, names, token};
use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::{FOREVER, MISSING, View};

/// The locks that share this model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    RLock,
    Spin,
    Fenced,
    NonReentrant,
}

const ACQUIRE: usize = 0;
const UNLOCK: usize = 1;
const RENEW: usize = 2;
const FORCE_UNLOCK: usize = 3;
const ACQUIRE_TOKEN: usize = 4;

const RENEWAL: Operation = Operation::renewal("renew", Sends::ScriptOrPexpire(roles::RENEW));

const RLOCK: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried_with_replicas(),
    Operation::new("unlock", Sends::Script(roles::UNLOCK)).retried(),
    RENEWAL,
    Operation::new("force_unlock", Sends::Script(roles::FORCE_UNLOCK)),
];
const SPIN: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::SPIN_ACQUIRE)).defining().retried_with_replicas(),
    Operation::new("unlock", Sends::Script(roles::SPIN_UNLOCK)).retried(),
    RENEWAL,
    Operation::new("force_unlock", Sends::Script(roles::SPIN_FORCE_UNLOCK)),
];
const FENCED: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::FENCED_ACQUIRE)).defining().retried_with_replicas(),
    Operation::new("unlock", Sends::Script(roles::UNLOCK)).retried(),
    RENEWAL,
    Operation::new("force_unlock", Sends::Script(roles::FORCE_UNLOCK)),
    Operation::acquire("acquire_token", Sends::Script(roles::FENCED_ACQUIRE_TOKEN)).retried_with_replicas(),
];
const NON_REENTRANT: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::NONREENTRANT_ACQUIRE))
        .defining()
        .retried_with_replicas(),
    Operation::new("unlock", Sends::Script(roles::UNLOCK)).retried(),
    RENEWAL,
    Operation::new("force_unlock", Sends::Script(roles::FORCE_UNLOCK)),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    exists: bool,
    holds: [i64; OWNERS],
    fields: usize,
    ttl_ms: i64,
    token: i64,
}

/// The lease that an owner was granted.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    until_ms: i64,
    /// The lease in its last acquire, which unlock and renewal request again.
    lease_ms: i64,
}

/// RLock or one of its variants.
#[derive(Clone)]
pub struct RLock {
    variant: Variant,
    names: Names,
    token: String,
    before: State,
    claims: [Claim; OWNERS],
    /// The highest fencing token that was granted.
    highest: i64,
}

/// The owner and the holds of a lock that is a string, as cjson writes it: `{"o":"owner","c":1}`.
fn text_hold(text: &[u8]) -> Option<(&str, i64)> {
    let fields = std::str::from_utf8(text).ok()?.strip_prefix('{')?.strip_suffix('}')?;
    let (mut owner, mut holds) = ("", 0);
    for field in fields.split(',') {
        match field.split_once(':')? {
            ("\"o\"", text) => owner = text.trim_matches('"'),
            ("\"c\"", count) => holds = count.parse().ok()?,
            _ => {}
        }
    }
    Some((owner, holds))
}

impl RLock {
    /// Creates a model of a variant.
    pub fn new(variant: Variant) -> RLock {
        let names = names();
        RLock {
            variant,
            token: token(&names),
            names,
            before: State::default(),
            claims: Default::default(),
            highest: 0,
        }
    }

    fn state(&self, view: View) -> State {
        let mut state = State { ttl_ms: MISSING, ..State::default() };
        if self.variant == Variant::Fenced {
            state.token = view.number(self.token.as_bytes()).unwrap_or(0);
        }
        if let Some(hash) = view.hash(self.names.lock.as_bytes()) {
            state.exists = true;
            state.holds = OWNER_IDS.map(|owner| view.count(hash, owner.as_bytes()));
            state.fields = hash.len();
            state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        } else if let Some(text) = view.text(self.names.lock.as_bytes()) {
            let (holder, holds) = text_hold(&text).unwrap_or_default();
            let count = |owner: &str| if holder == owner { holds } else { 0 };
            state.exists = true;
            state.holds = OWNER_IDS.map(count);
            state.fields = 1;
            state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        }
        state
    }

    fn acquired(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, lease_ms, now_ms, .. } = *call;
        let own = before.holds[owner] > 0;
        let with_token = call.operation == ACQUIRE_TOKEN;
        let granted = if with_token { out.reply.int() == Some(-1) } else { out.reply == Reply::Nil };
        let may = !before.exists || own && self.variant != Variant::NonReentrant;
        if own && self.variant == Variant::NonReentrant {
            change.expect(A2, out.reply.is_error(), || "the owner was granted a second hold".to_owned());
            change
                .expect(A1, before == after, || format!("a refused acquire changed {before:?} to {after:?}"));
            return;
        }
        if granted {
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let until_ms = self.claims[other].until_ms;
                change.expect(M1, until_ms <= now_ms, || {
                    format!(
                        "granted while {} has a lease for {} ms more",
                        owner_name(other),
                        until_ms - now_ms
                    )
                });
            }
        }
        change.expect(A2, granted == may, || match granted {
            true => "granted, but it is held".to_owned(),
            false => "refused, but it is free or the owner's".to_owned(),
        });
        if !granted {
            let told = out.reply.int();
            change.expect(T2, told == Some(before.ttl_ms), || {
                format!("told {told:?}, held for {} ms more", before.ttl_ms)
            });
            change
                .expect(A1, before == after, || format!("a refused acquire changed {before:?} to {after:?}"));
            return;
        }
        let mut holds = before.holds;
        holds[owner] += 1;
        let fields = before.fields + usize::from(!own);
        change.expect(A1, after.holds == holds && after.fields == fields, || {
            format!(
                "holds went from {:?} to {:?} in {} fields",
                shown(&before.holds),
                shown(&after.holds),
                after.fields
            )
        });
        change.expect(T1, after.ttl_ms == lease_ms, || {
            format!("asked for {lease_ms} ms, the key lives for {} ms", after.ttl_ms)
        });
        change.expect(G7, after.ttl_ms != FOREVER, || "the lock has no end".to_owned());
        if change.is_strict() && self.claims[owner].until_ms > now_ms {
            let left = self.claims[owner].until_ms - now_ms;
            change.expect(M2, after.ttl_ms >= left.min(before.ttl_ms), || {
                format!("a lease of {left} ms was cut to {} ms", after.ttl_ms)
            });
        }
        if self.variant == Variant::Fenced {
            change
                .expect(A1, after.token == before.token + 1, || "the token did not go up by one".to_owned());
            if with_token {
                let told = out.reply.element(1);
                change.expect(K3, told == Reply::Int(after.token), || {
                    format!("told token {told}, drew {}", after.token)
                });
            }
            if change.is_strict() {
                change.expect(K1, after.token > self.highest, || {
                    format!("token {} after {}", after.token, self.highest)
                });
                change.expect(K2, !own, || {
                    format!("the owner has token {} and gets {}", before.token, after.token)
                });
            }
            self.highest = self.highest.max(after.token);
        }
        self.claims[owner] = Claim { until_ms: now_ms + lease_ms, lease_ms };
    }

    fn unlocked(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let owner = call.owner;
        if before.holds[owner] == 0 {
            self.claims[owner].until_ms = 0;
            change.expect(U1, out.reply == Reply::Nil, || {
                format!("answered {} to who does not hold the lock", out.reply)
            });
            change.expect(U1, before == after, || format!("{before:?} became {after:?}"));
            return;
        }
        let left = before.holds[owner] - 1;
        let mut holds = before.holds;
        holds[owner] = left;
        change.expect(A1, after.holds == holds && after.exists == (left > 0), || {
            format!("holds went from {:?} to {:?}", shown(&before.holds), shown(&after.holds))
        });
        let reply = Reply::Int((left == 0) as i64);
        change.expect(U2, out.reply == reply, || format!("answered {} with {left} holds left", out.reply));
        if left == 0 {
            self.claims[owner].until_ms = 0;
            self.check_told(change);
        } else {
            self.claims[owner].until_ms = call.now_ms + call.lease_ms;
            change.expect(T1, after.ttl_ms == call.lease_ms, || {
                format!("asked for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
            });
        }
    }

    fn check_told(&self, change: &mut Change<State>) {
        let Change { out, .. } = *change;
        if self.variant != Variant::Spin {
            let one = out.messages.len() == 1 && is_told(out.messages, &self.names.channel);
            change.expect(M3, one, || {
                format!(
                    "the lock is free, and {} messages were sent, none of which waiters act on",
                    out.messages.len()
                )
            });
        }
    }
}

impl Model for RLock {
    fn operations(&self) -> &'static [Operation] {
        match self.variant {
            Variant::RLock => RLOCK,
            Variant::Spin => SPIN,
            Variant::Fenced => FENCED,
            Variant::NonReentrant => NON_REENTRANT,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        match call.operation {
            ACQUIRE if self.variant == Variant::NonReentrant && reply.is_error_with(REACQUIRED) => true,
            ACQUIRE => matches!(reply, Reply::Int(_)),
            ACQUIRE_TOKEN => matches!(reply, Reply::Array(_)) && reply.int() != Some(-1),
            _ => false,
        }
    }

    fn has_key(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes() || self.variant == Variant::Fenced && key == self.token.as_bytes()
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        match self.variant {
            Variant::Fenced => vec![self.token.clone().into_bytes()],
            _ => Vec::new(),
        }
    }

    fn reset(&mut self) {
        self.claims = Default::default();
        self.highest = 0;
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let claim = self.claims[call.owner];
        call.lease_ms = match call.operation {
            ACQUIRE | ACQUIRE_TOKEN => LEASES_MS[choice as usize % LEASES_MS.len()],
            _ if claim.lease_ms > 0 => claim.lease_ms,
            _ => WATCHDOG_MS,
        };
        // A watchdog runs as long as its client believes that it holds the lock, even after the lease was lost.
        call.operation != RENEW || claim.until_ms > 0
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.state(view);
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            TOKEN => out.text(&self.token),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let (before, after) = (self.before, self.state(view));
        let change = &mut Change { call, out, before, after, verdict };
        if call.operation == RENEW {
            expect_renewal_told(change.verdict, out.reply, before.holds[call.owner] > 0);
        }
        match call.operation {
            ACQUIRE | ACQUIRE_TOKEN => self.acquired(change),
            UNLOCK => self.unlocked(change),
            RENEW if before.holds[call.owner] > 0 => {
                change.expect(T1, after.ttl_ms == call.lease_ms, || {
                    format!("renewed for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
                });
                change.expect(A1, after.holds == before.holds, || "a renewal changed the holds".to_owned());
                self.claims[call.owner].until_ms = call.now_ms + call.lease_ms;
            }
            RENEW => {
                change.expect(M4, before == after, || {
                    format!(
                        "who does not hold the lock changed its lease from {} to {} ms",
                        before.ttl_ms, after.ttl_ms
                    )
                });
                self.claims[call.owner].until_ms = 0;
            }
            FORCE_UNLOCK => {
                change.expect(A1, !after.exists, || "the lock is still held".to_owned());
                change.expect(U2, out.reply == Reply::Int(before.exists as i64), || {
                    format!(
                        "answered {} for a lock that was {}",
                        out.reply,
                        if before.exists { "held" } else { "free" }
                    )
                });
                if before.exists {
                    self.check_told(change);
                }
                self.claims.iter_mut().for_each(|claim| claim.until_ms = 0);
            }
            _ => {}
        }
    }

    fn closing(&self) -> &'static [usize] {
        &[ACQUIRE, UNLOCK]
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.token.as_bytes()
    }
}
