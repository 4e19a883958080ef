//! RPermitExpirableSemaphore: permits with a lease.
//!
//! | | |
//! |---|---|
//! | state | a string with the number of free permits; a sorted set, permit held → when it ends, by the clients' clocks |
//! | most operations | first put permits that have ended back |
//! | acquire | enough: one less, and an id. Else nil, or when the next one ends |
//! | release | held: one more, a message, 1. Ended or unknown: 0 |
//! | release all | all or none |
//! | total, held, lease | how many there are, how many are held, how long one still is |
//! | update lease | held: the lease begins anew, 1. Else 0 |
//! | set | so that free and held permits are that many; tells nobody if they are |

use smallvec::SmallVec;

use super::invariant::Invariant::*;
use super::model::*;
use super::role::Role;
use super::view::View;

const TRY_SET: usize = 0;
const ACQUIRE: usize = 1;
const RELEASE: usize = 2;
const RELEASE_ALL: usize = 3;
const AVAILABLE: usize = 4;
const SET: usize = 5;
const ADD: usize = 6;
const EXPIRE: usize = 7;
const TOTAL: usize = 8;
const HELD: usize = 9;
const LEASE: usize = 10;
const UPDATE_LEASE: usize = 11;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(Role::PermitTrySet)),
    Operation::new("acquire", Sends::Script(Role::PermitAcquire)).retried(),
    Operation::new("release", Sends::Script(Role::PermitRelease)).retried(),
    Operation::new("release_all", Sends::Script(Role::PermitReleaseAll)),
    Operation::new("available", Sends::ScriptOrGet(Role::PermitAvailable)),
    Operation::new("set", Sends::Script(Role::PermitSet)),
    Operation::new("add", Sends::Script(Role::PermitAdd)),
    Operation::new("expire", Sends::Pexpire),
    Operation::new("total", Sends::Script(Role::PermitTotal)),
    Operation::new("held", Sends::Script(Role::PermitAcquired)),
    Operation::new("lease", Sends::Script(Role::PermitLease)),
    Operation::new("update_lease", Sends::Script(Role::PermitUpdateLease)),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    free: Option<i64>,
    free_ttl_ms: i64,
    held_ttl_ms: i64,
    /// Permits held, with their ends.
    held: SmallVec<[([u8; 16], i64); 8]>,
}

impl State {
    fn ended(&self, now_ms: i64) -> i64 {
        self.held.iter().filter(|(_, end)| *end <= now_ms).count() as i64
    }

    fn end_of(&self, permit: u64) -> Option<i64> {
        let id = permit_id(permit);
        self.held.iter().find(|(held, _)| *held == id).map(|(_, end)| *end)
    }
}

pub struct PermitSemaphore {
    names: Names,
    before: State,
    /// How many permits there are by what was set and added; `None`: it was not set, or has expired.
    total: Option<i64>,
    /// Permits that were handed out.
    granted: Vec<u64>,
}

impl Default for PermitSemaphore {
    fn default() -> PermitSemaphore {
        let mut names = Names::new("my:semaphore", "redisson_sc");
        names.timeouts = "{my:semaphore}:timeout".to_owned();
        PermitSemaphore { names, before: State::default(), total: None, granted: Vec::new() }
    }
}

impl PermitSemaphore {
    fn read(&self, view: View) -> State {
        let lock = self.names.lock.as_bytes();
        let timeouts = self.names.timeouts.as_bytes();
        let mut state = State {
            free: view.number(lock),
            free_ttl_ms: view.ttl_ms(lock),
            held_ttl_ms: view.ttl_ms(timeouts),
            ..State::default()
        };
        if let Some(set) = view.sorted_set(timeouts) {
            let held = set.iter().filter_map(|(member, score)| Some((member.try_into().ok()?, score as i64)));
            state.held = held.collect();
        }
        state
    }

    /// Whether the permits are as many as were set.
    fn adds_up(&self, state: &State) -> bool {
        match self.total {
            Some(total) => state.free.is_none_or(|free| free + state.held.len() as i64 == total),
            None => state.free.is_none(),
        }
    }

    fn released(
        &mut self,
        call: &Call,
        out: Outcome,
        before: &State,
        after: &State,
        findings: &mut Findings,
    ) {
        let clock_ms = call.now_ms + call.skew_ms;
        self.granted.retain(|permit| *permit != call.permit);
        let end = before.end_of(call.permit);
        match end {
            Some(end) if end <= clock_ms => findings.expect(P3, out.reply != Reply::Int(1), || {
                format!("the permit ended {} ms ago, and its release succeeded", clock_ms - end)
            }),
            Some(_) => findings.expect(U2, out.reply == Reply::Int(1), || {
                format!("a permit that is held was released, and the answer is {}", out.reply)
            }),
            None => {
                findings.expect(U1, out.reply == Reply::Int(0), || {
                    format!("answered {} for a permit that is not held", out.reply)
                });
                findings.expect(U1, before == after, || format!("{before:?} became {after:?}"));
            }
        }
        findings.expect(A1, after.end_of(call.permit).is_none(), || "the permit is still held".to_owned());
        findings.expect(Q2, end.is_none() || !out.messages.is_empty(), || "nobody was told".to_owned());
    }

    fn released_all(
        &mut self,
        call: &Call,
        out: Outcome,
        before: &State,
        after: &State,
        findings: &mut Findings,
    ) {
        let clock_ms = call.now_ms + call.skew_ms;
        let named = if call.repeats { 1 } else { call.count as u64 };
        let permits = || call.permit..call.permit + named;
        let good = |permit: u64| before.end_of(permit).is_some_and(|end| end > clock_ms);
        if permits().all(good) {
            self.granted.retain(|permit| !permits().contains(permit));
            if call.repeats {
                let answered_as_failure = out.reply != Reply::Int(call.count);
                let released = after.end_of(call.permit).is_none();
                return findings.expect(P7, !(released && answered_as_failure), || {
                    format!("the permit is released, and the answer to {} names is {}", call.count, out.reply)
                });
            }
            findings.expect(U2, out.reply == Reply::Int(call.count), || {
                format!("answered {} for {} permits that are held", out.reply, call.count)
            });
            findings.expect(A1, permits().all(|permit| after.end_of(permit).is_none()), || {
                "a permit is still held".to_owned()
            });
        } else {
            let lost = permits().find(|permit| good(*permit) && after.end_of(*permit).is_none());
            findings.expect(P4, lost.is_none(), || {
                "one of the permits is not held, and yet another was released".to_owned()
            });
            findings.expect(P4, out.reply == Reply::Int(0), || {
                format!("answered {}, but one of the permits is not held", out.reply)
            });
        }
    }
}

impl Model for PermitSemaphore {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        let granted = matches!(reply, Reply::Text(text) if !text.starts_with(b":"));
        call.operation == ACQUIRE && !granted && !reply.is_error()
    }

    fn reset(&mut self) {
        self.total = None;
        self.granted.clear();
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        match call.operation {
            TRY_SET | SET => call.count = i64::from(choice % 3) + 1,
            ADD => call.count = if choice >= 4 { -1 } else { 1 },
            ACQUIRE => call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()],
            EXPIRE => {
                call.lease_ms = 3_000;
                return self.total.is_some();
            }
            RELEASE | RELEASE_ALL | LEASE | UPDATE_LEASE => {
                let Some(permit) = self.granted.get(choice as usize % self.granted.len().max(1)) else {
                    return false;
                };
                call.permit = *permit;
                call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
                if call.operation == RELEASE_ALL {
                    (call.count, call.repeats) = match choice {
                        0..=3 => (2, false),
                        4 | 5 => (1, false),
                        _ => (2, true),
                    };
                }
            }
            _ => {}
        }
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.read(view);
        if self.before.free.is_none() {
            self.total = None;
        }
    }

    fn after(&mut self, call: &Call, out: Outcome, view: View, findings: &mut Findings) {
        let before = std::mem::take(&mut self.before);
        let after = self.read(view);
        if out.again {
            return;
        }
        let clock_ms = call.now_ms + call.skew_ms;
        let added_up = self.adds_up(&before);
        let ended = before.ended(clock_ms);
        match call.operation {
            TRY_SET => {
                findings.expect(A2, out.reply == Reply::Int(before.free.is_none() as i64), || {
                    format!("answered {} with {:?} permits", out.reply, before.free)
                });
                if before.free.is_none() {
                    self.total = Some(call.count);
                }
            }
            ACQUIRE => {
                let may = before.free.is_some_and(|free| free + ended.min(call.count) >= call.count);
                let granted = matches!(out.reply, Reply::Text(text) if !text.starts_with(b":"));
                findings.expect(A2, granted == may || before.free.is_none(), || {
                    format!("answered {} with {:?} permits free and {ended} ended", out.reply, before.free)
                });
                if granted {
                    self.granted.push(call.permit);
                    findings.expect(A1, after.end_of(call.permit) == Some(clock_ms + call.lease_ms), || {
                        "the permit does not end when its lease does".to_owned()
                    });
                    findings.expect(
                        P2,
                        after.free_ttl_ms <= 0 || after.held_ttl_ms == after.free_ttl_ms,
                        || {
                            format!(
                                "the semaphore ends in {} ms, its permits in {} ms",
                                after.free_ttl_ms, after.held_ttl_ms
                            )
                        },
                    );
                }
            }
            RELEASE => self.released(call, out, &before, &after, findings),
            RELEASE_ALL => self.released_all(call, out, &before, &after, findings),
            AVAILABLE => {
                let available = before.free.map(|free| free + ended);
                findings.expect(P5, available.is_none() || out.reply.int() == available, || {
                    format!("{available:?} are available, answered {}", out.reply)
                });
            }
            SET => {
                let same = before.free.map(|free| free + before.held.len() as i64) == Some(call.count);
                self.total = Some(call.count);
                findings.expect(P6, !same || out.messages.is_empty(), || {
                    "there are as many permits already, and yet a message was sent".to_owned()
                });
            }
            TOTAL => {
                let total = before.free.map(|free| free + before.held.len() as i64);
                findings.expect(V1, total.is_none() || out.reply.int() == total, || {
                    format!("answered {} of {total:?} permits", out.reply)
                });
            }
            HELD => {
                let held = before.held.len() as i64 - ended;
                findings.expect(V1, out.reply == Reply::Int(held), || {
                    format!("answered {} of {held} permits that are held", out.reply)
                });
            }
            LEASE => {
                let left_ms = match before.end_of(call.permit) {
                    Some(NEVER) => -1,
                    Some(end) => (end - clock_ms).max(0),
                    None => 0,
                };
                findings.expect(V1, out.reply == Reply::Int(left_ms), || {
                    format!("answered {}, the permit is held for {left_ms} ms more", out.reply)
                });
            }
            UPDATE_LEASE => {
                let held = before.end_of(call.permit).is_some_and(|end| end > clock_ms);
                findings.expect(U2, out.reply == Reply::Int(held as i64), || {
                    let held = if held { "held" } else { "not held" };
                    format!("answered {} for a permit that is {held}", out.reply)
                });
                let end = held.then_some(clock_ms + call.lease_ms);
                findings.expect(A1, after.end_of(call.permit) == end, || {
                    format!("the permit ends at {:?} instead of {end:?}", after.end_of(call.permit))
                });
            }
            ADD => self.total = Some(self.total.unwrap_or(0) + call.count),
            _ => {}
        }
        // Only the operation that breaks it is to blame; one that starts from nothing has to leave nothing old behind.
        let from_nothing = before.free.is_none();
        findings.expect(P1, self.adds_up(&after) || !(added_up || from_nothing), || {
            format!("{:?} permits are free and {} held, of {:?}", after.free, after.held.len(), self.total)
        });
    }

    fn deadlines(&self, view: View, into: &mut Vec<i64>) {
        into.extend(self.read(view).held.iter().map(|(_, end)| *end));
    }

    fn closing(&self) -> &'static [usize] {
        &[AVAILABLE]
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes()
    }
}
