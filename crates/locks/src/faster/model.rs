//! The model of a group lock.

use super::names::{ALL_MEMBERS, MEMBERS, members};
use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::{FOREVER, MISSING, View};

const ACQUIRE: usize = 0;
const UNLOCK: usize = 1;
const TRY_ACQUIRE: usize = 2;
const RENEW: usize = 3;
const FORCE_UNLOCK: usize = 4;
const IS_HELD: usize = 5;

const OPERATIONS: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried_with_replicas(),
    Operation::new("unlock", Sends::Script(roles::UNLOCK)).retried(),
    Operation::acquire("try_acquire", Sends::Script(roles::TRY_ACQUIRE)).retried_with_replicas(),
    Operation::renewal("renew", Sends::Script(roles::RENEW)),
    Operation::new("force_unlock", Sends::Script(roles::FORCE_UNLOCK)),
    Operation::new("is_held", Sends::Script(roles::IS_HELD)),
    Operation::new("is_locked", Sends::Script(roles::IS_LOCKED)),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Member {
    owner: Option<usize>,
    /// For each owner: the end of its lease, and the number of its holds.
    until_ms: [Option<i64>; OWNERS],
    holds: [i64; OWNERS],
}

impl Member {
    /// Returns the owner whose lease has not ended.
    fn holder(&self, clock_ms: i64) -> Option<usize> {
        self.owner.filter(|owner| self.until_ms[*owner].is_some_and(|end| end > clock_ms))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    members: [Member; MEMBERS.len()],
    ttl_ms: i64,
}

impl State {
    fn chosen(&self, mask: u8) -> impl Iterator<Item = &Member> {
        members(mask).map(|member| &self.members[member])
    }
}

/// Returns the later of the end of a lease, if there is one, and another time.
fn later(end: Option<i64>, other: i64) -> i64 {
    end.map_or(other, |end| end.max(other))
}

/// The fields of one member in the hash.
#[derive(Clone)]
struct Fields {
    until: [String; OWNERS],
    holds: [String; OWNERS],
}

/// A group lock.
#[derive(Clone)]
pub struct FasterMultiLock {
    names: Names,
    fields: [Fields; MEMBERS.len()],
    before: State,
    /// The end of each owner's lease on each member.
    until_ms: [[i64; OWNERS]; MEMBERS.len()],
    /// The members that each owner's watchdog renews, as a bit set.
    renews: [u8; OWNERS],
    /// The members in each owner's last request, as a bit set.
    asked: [u8; OWNERS],
    disturbed: bool,
}

impl Default for FasterMultiLock {
    fn default() -> FasterMultiLock {
        FasterMultiLock {
            names: Names::new("my:group", "redisson_lock__channel"),
            fields: MEMBERS.map(|member| Fields {
                until: OWNER_IDS.map(|owner| format!("{member}:{owner}:expire_time")),
                holds: OWNER_IDS.map(|owner| format!("{member}:{owner}:lock_count")),
            }),
            before: State::default(),
            until_ms: Default::default(),
            renews: [0; OWNERS],
            asked: [0; OWNERS],
            disturbed: false,
        }
    }
}

impl FasterMultiLock {
    fn state(&self, view: View) -> State {
        let mut state = State { ttl_ms: MISSING, ..State::default() };
        let Some(hash) = view.hash(self.names.lock.as_bytes()) else { return state };
        state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        let text = |field: &str| hash.get(field.as_bytes(), view.now().wall_ms());
        for (member, (name, fields)) in state.members.iter_mut().zip(MEMBERS.iter().zip(&self.fields)) {
            let owner = text(name);
            *member = Member {
                owner: owner.and_then(|id| OWNER_IDS.iter().position(|owner| owner.as_bytes() == id)),
                until_ms: std::array::from_fn(|owner| {
                    text(&fields.until[owner]).and_then(redlatch_core::num::parse_i64)
                }),
                holds: std::array::from_fn(|owner| view.count(hash, fields.holds[owner].as_bytes())),
            };
        }
        state
    }

    fn acquired(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, lease_ms, .. } = *call;
        let clock_ms = call.clock_ms();
        let is_other = |member: &Member| member.holder(clock_ms).is_some_and(|holder| holder != owner);
        let may = !before.chosen(self.asked[call.owner]).any(is_other);
        let once = call.operation == TRY_ACQUIRE;
        let granted = out.reply == if once { Reply::Int(1) } else { Reply::Nil };
        change.expect(A2, granted == may, || match granted {
            true => "granted, but a member is held".to_owned(),
            false => "refused, but all members are free or the owner's".to_owned(),
        });
        if !granted {
            change.expect(A2, !once || out.reply == Reply::Int(0), || format!("answered {}", out.reply));
            let others = before.chosen(self.asked[call.owner]).filter(|member| is_other(member));
            let longest = others.filter_map(|member| member.until_ms[member.owner?]).max();
            let left = longest.map(|end| end - clock_ms);
            change.expect(T2, once || out.reply.int() == left, || {
                format!("told {}, held for {left:?} ms more", out.reply)
            });
            change
                .expect(A1, before == after, || format!("a refused acquire changed {before:?} to {after:?}"));
            return;
        }
        for member in members(self.asked[call.owner]) {
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let left = self.until_ms[member][other] - clock_ms;
                change.expect(M1, left <= 0 || self.disturbed, || {
                    let (name, other) = (MEMBERS[member], owner_name(other));
                    format!("{name} granted while {other} has a lease for {left} ms more")
                });
            }
            let (was, is) = (before.members[member], after.members[member]);
            // A hold ends with its lease.
            let held = if was.holder(clock_ms) == Some(owner) { was.holds[owner] } else { 0 };
            change.expect(A1, is.owner == Some(owner) && is.holds[owner] == held + 1, || {
                let (name, holds) = (MEMBERS[member], is.holds[owner]);
                format!("{name} was held {held} times by a lease that runs, and is held {holds} times now")
            });
            let asked = later(was.until_ms[owner], clock_ms + lease_ms);
            change.expect(T1, is.until_ms[owner] == Some(asked), || {
                format!(
                    "the lease of {} ends at {:?} instead of {asked}",
                    MEMBERS[member], is.until_ms[owner]
                )
            });
            self.until_ms[member][owner] = asked;
        }
        if lease_ms == WATCHDOG_MS {
            self.renews[owner] = self.asked[call.owner];
        }
    }

    fn unlocked(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let owner = call.owner;
        let clock_ms = call.clock_ms();
        let is_own = |member: &Member| {
            member.owner == Some(owner) && member.until_ms[owner].is_some_and(|end| end >= clock_ms)
        };
        if !before.chosen(self.asked[call.owner]).all(is_own) {
            members(self.asked[call.owner]).for_each(|member| self.until_ms[member][owner] = 0);
            change.expect(U1, out.reply == Reply::Nil, || {
                format!("answered {} to who does not hold all members", out.reply)
            });
            // The leases have ended without a message; the waiters need not sleep on.
            change.expect(M3, before.ttl_ms != MISSING || is_told(out.messages, &self.names.channel), || {
                "the group is free and nobody was told".to_owned()
            });
            return change.expect(U1, before.members == after.members, || {
                format!("{:?} became {:?}", before.members, after.members)
            });
        }
        let mut left = 0;
        for member in members(self.asked[call.owner]) {
            let (was, is) = (before.members[member], after.members[member]);
            let holds = was.holds[owner] - 1;
            change.expect(A1, is.holds[owner] == holds && is.owner.is_some() == (holds > 0), || {
                format!(
                    "the holds of {} went from {} to {}",
                    MEMBERS[member], was.holds[owner], is.holds[owner]
                )
            });
            let end = match holds {
                0 => None,
                _ => Some(later(was.until_ms[owner], clock_ms + call.lease_ms)),
            };
            change.expect(T1, is.until_ms[owner] == end, || {
                format!(
                    "the lease of {} ends at {:?} instead of {end:?}",
                    MEMBERS[member], is.until_ms[owner]
                )
            });
            self.until_ms[member][owner] = end.unwrap_or(0);
            left += u32::from(holds > 0);
        }
        if left == 0 {
            self.renews[owner] = 0;
        }
        change.expect(U2, out.reply == Reply::Int((left == 0) as i64), || {
            format!("answered {} with {left} members still held", out.reply)
        });
        let gone = left < self.asked[call.owner].count_ones();
        change.expect(M3, !gone || is_told(out.messages, &self.names.channel), || {
            "a member is free and nobody was told".to_owned()
        });
        change.expect(P6, gone || out.messages.is_empty(), || {
            "no member is free, and yet a message was sent".to_owned()
        });
    }

    fn renewed(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let clock_ms = call.clock_ms();
        let own = before.chosen(self.asked[call.owner]).all(|member| member.owner == Some(call.owner));
        change.expect(U2, out.reply == Reply::Int(own as i64), || {
            format!(
                "answered {} to who {} all members",
                out.reply,
                if own { "holds" } else { "does not hold" }
            )
        });
        for (member, (was, is)) in before.members.iter().zip(after.members).enumerate() {
            let others = (0..OWNERS).filter(|&other| other != call.owner);
            let same = others.into_iter().all(|other| was.until_ms[other] == is.until_ms[other]);
            change.expect(M4, same && was.holds == is.holds, || {
                format!("another owner's hold of {} went from {was:?} to {is:?}", MEMBERS[member])
            });
        }
        for member in members(self.asked[call.owner]).filter(|_| own) {
            let end = after.members[member].until_ms[call.owner].unwrap_or(0);
            let asked = later(before.members[member].until_ms[call.owner], clock_ms + call.lease_ms);
            change.expect(T1, end == asked, || {
                format!("the lease of {} ends {} ms from now", MEMBERS[member], end - clock_ms)
            });
            self.until_ms[member][call.owner] = end;
        }
    }
}

impl Model for FasterMultiLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            ALL_MEMBERS => members(self.asked[call.owner]).for_each(|member| out.text(MEMBERS[member])),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn describe(&self, call: &Call, text: &mut String) {
        for member in members(self.asked[call.owner]) {
            text.push(' ');
            text.push_str(MEMBERS[member]);
        }
    }

    fn reset(&mut self) {
        self.until_ms = Default::default();
        self.renews = [0; OWNERS];
        self.disturbed = false;
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let mut asked = [0b001, 0b010, 0b011, 0b001, 0b010, 0b011, 0b110, 0b111][usize::from(choice) % 8];
        call.lease_ms = LEASES_MS[usize::from(choice) / 2 % LEASES_MS.len()];
        if call.operation == RENEW {
            (asked, call.lease_ms) = (self.renews[call.owner], WATCHDOG_MS);
        }
        if asked != 0 {
            self.asked[call.owner] = asked;
        }
        asked != 0
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        match call.operation {
            ACQUIRE => matches!(reply, Reply::Int(_)),
            TRY_ACQUIRE => reply == Reply::Int(0),
            _ => false,
        }
    }

    fn before(&mut self, call: &Call, view: View) {
        self.before = self.state(view);
        if call.operation == FORCE_UNLOCK {
            members(self.asked[call.owner]).for_each(|member| self.until_ms[member] = [0; OWNERS]);
        }
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let (before, after) = (&self.before.clone(), &self.state(view));
        let change = &mut Change { call, out, before, after, verdict };
        let clock_ms = call.clock_ms();
        match call.operation {
            ACQUIRE | TRY_ACQUIRE => self.acquired(change),
            UNLOCK => self.unlocked(change),
            RENEW => self.renewed(change),
            FORCE_UNLOCK => {
                let held =
                    before.chosen(self.asked[call.owner]).filter(|member| member.owner.is_some()).count();
                change.expect(U2, out.reply == Reply::Int(held as i64), || {
                    format!("answered {} for {held} members", out.reply)
                });
                let free = after.chosen(self.asked[call.owner]).all(|member| member.owner.is_none());
                change.expect(A1, free, || "a member is still held".to_owned());
                change.expect(M3, held == 0 || is_told(out.messages, &self.names.channel), || {
                    "a member is free and nobody was told".to_owned()
                });
            }
            question => {
                let holder = |member: &Member| {
                    member.owner.filter(|owner| member.until_ms[*owner].is_some_and(|end| end >= clock_ms))
                };
                let mut chosen = before.chosen(self.asked[call.owner]);
                let yes = match question {
                    IS_HELD => chosen.all(|member| holder(member) == Some(call.owner)),
                    _ => chosen.any(|member| holder(member).is_some()),
                };
                change.expect(V1, out.reply == Reply::Int(yes as i64), || {
                    format!("answered {} instead of {}", out.reply, yes as i64)
                });
            }
        }
        let is_asked = |member: usize| self.asked[call.owner] & 1 << member != 0;
        let strange = (0..MEMBERS.len()).find(|&member| {
            let (was, is) = (before.members[member], after.members[member]);
            !is_asked(member) && was != is && after.ttl_ms != MISSING
        });
        change.expect(A1, strange.is_none(), || {
            format!("{} was not asked for, and has changed", MEMBERS[strange.unwrap_or(0)])
        });
        let most_ms = before.ttl_ms.max(call.lease_ms);
        change.expect(G7, after.ttl_ms <= most_ms && after.ttl_ms != FOREVER, || {
            format!("the key lives for {} ms, for a lease of {} ms", after.ttl_ms, call.lease_ms)
        });
        // Leases end by the clients' clocks, the key by the server's clock.
        let kept = |state: &State| {
            let running =
                state.members.iter().filter_map(|member| member.until_ms[member.holder(clock_ms)?]);
            running.max().is_none_or(|end| state.ttl_ms >= end - clock_ms)
        };
        change.expect(M2, kept(after) || !kept(before) || self.disturbed, || {
            format!("the key lives for {} ms, shorter than a lease in {:?}", after.ttl_ms, after.members)
        });
    }

    fn disturbed(&mut self) {
        self.disturbed = true;
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        into.extend(self.until_ms.iter().flatten().filter(|end| **end > 0));
    }

    fn closing(&self) -> &'static [usize] {
        &[ACQUIRE, UNLOCK]
    }
}
