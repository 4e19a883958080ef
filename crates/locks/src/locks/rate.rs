//! RRateLimiter: so many permits in each interval.
//!
//! | | |
//! |---|---|
//! | state | a hash with rate, interval and scope; a string with the permits left; a sorted set of grants → when, by the clients' clocks |
//! | scope | all clients share the permits, or each has its own, under keys of its own |
//! | set | try set: only where there is none, 1, else 0. Set: all begin anew. Update: what was handed out still counts |
//! | most operations | first put grants back that are an interval old |
//! | acquire | enough: that many less, nil. Else when to ask again |
//! | release | that many more, up to the rate |
//! | available | how many there are |
//!
//! Until 3.13.2 the permits left were a string that ended with the interval, and there were no grants.

use smallvec::SmallVec;

use super::binding::Slot;
use super::invariant::Invariant::*;
use super::kit::Kit;
use super::model::*;
use super::role::Role;
use super::view::View;

const TRY_SET: usize = 0;
const ACQUIRE: usize = 1;
const RELEASE: usize = 3;
const SET: usize = 4;
const UPDATE: usize = 5;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(Role::RateTrySet)),
    Operation::new("acquire", Sends::Script(Role::RateAcquire)).retried(),
    Operation::new("available", Sends::Script(Role::RateAvailable)),
    Operation::new("release", Sends::Script(Role::RateRelease)).retried(),
    Operation::new("set", Sends::Script(Role::RateSet)),
    Operation::new("update", Sends::Script(Role::RateUpdate)),
];

const INTERVAL_MS: i64 = 5_000;
const KEEP_ALIVE_MS: i64 = 20_000;

/// Permits that were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    at_ms: i64,
    permits: i64,
}

/// What a client sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    limit: Option<Limit>,
    left: Option<i64>,
    taken: SmallVec<[Grant; 8]>,
}

impl State {
    /// Permits that were handed out less than an interval ago.
    fn in_use(&self, clock_ms: i64) -> i64 {
        let interval_ms = self.limit.map_or(0, |limit| limit.interval_ms);
        let recent = self.taken.iter().filter(|grant| grant.at_ms > clock_ms - interval_ms);
        recent.map(|grant| grant.permits).sum()
    }

    fn adds_up(&self) -> bool {
        let taken: i64 = self.taken.iter().map(|grant| grant.permits).sum();
        // After the rate was lowered more may be handed out than it allows.
        self.limit.zip(self.left).is_none_or(|(limit, left)| left == (limit.rate - taken).max(0))
    }
}

pub struct RateLimiter {
    names: Names,
    /// The release can end limiters that nobody uses.
    keeps_alive: bool,
    /// The release keeps each grant.
    by_grant: bool,
    before: State,
    /// What the owners were granted by their own clocks, the last one last.
    granted: [Vec<Grant>; OWNERS],
    /// The limiter ends when it is not used.
    ends: bool,
    /// A key was lost or a clock is wrong.
    disturbed: bool,
}

impl RateLimiter {
    pub fn new(kit: &Kit) -> RateLimiter {
        let takes = |role: Role, slot: Slot| {
            kit.tool(role)
                .is_some_and(|tool| [&tool.binding.keys[..], &tool.binding.args].concat().contains(&slot))
        };
        RateLimiter {
            names: Names::new("my:limiter", ""),
            keeps_alive: takes(Role::RateTrySet, Slot::KeepAliveMs),
            by_grant: takes(Role::RateAcquire, Slot::Taken),
            before: State::default(),
            granted: Default::default(),
            ends: false,
            disturbed: false,
        }
    }

    fn read(&self, owner: usize, view: View) -> State {
        let Some(hash) = view.hash(self.names.lock.as_bytes()) else { return State::default() };
        let limit = Limit {
            rate: view.count(hash, b"rate"),
            interval_ms: view.count(hash, b"interval"),
            per_client: view.count(hash, b"type") == 1,
            ..Limit::default()
        };
        let (left, taken) = match limit.per_client {
            true => (&self.names.client_left[owner], &self.names.client_taken[owner]),
            false => (&self.names.left, &self.names.taken),
        };
        let mut state =
            State { limit: Some(limit), left: view.number(left.as_bytes()), taken: SmallVec::new() };
        if let Some(set) = view.sorted_set(taken.as_bytes()) {
            let grants = set.iter().filter_map(|(member, score)| {
                // The member ends with the number of permits.
                let permits = u32::from_le_bytes(*member.last_chunk()?);
                Some(Grant { at_ms: score as i64, permits: permits.into() })
            });
            state.taken = grants.collect();
        }
        state
    }

    /// Permits that clients in the caller's scope were granted less than an interval ago.
    fn granted_lately(&self, owner: usize, limit: Limit, clock_ms: i64) -> i64 {
        let clients = (0..OWNERS).filter(|client| !limit.per_client || *client == owner);
        let grants = clients.flat_map(|client| &self.granted[client]);
        let recent = grants.filter(|grant| grant.at_ms > clock_ms - limit.interval_ms);
        recent.map(|grant| grant.permits).sum()
    }

    fn acquired(&mut self, call: &Call, out: Outcome, before: &State, findings: &mut Findings) {
        let clock_ms = call.now_ms + call.skew_ms;
        let Some(limit) = before.limit.filter(|limit| limit.rate >= call.count) else {
            return findings.expect(A2, out.reply.is_error(), || {
                format!("answered {} to {} permits of {:?}", out.reply, call.count, before.limit)
            });
        };
        let granted = out.reply == Reply::Nil;
        if granted {
            self.granted[call.owner].push(Grant { at_ms: clock_ms, permits: call.count });
        }
        if self.disturbed {
            return;
        }
        let lately = self.granted_lately(call.owner, limit, clock_ms);
        findings.expect(L1, !granted || lately <= limit.rate, || {
            format!(
                "{lately} permits were granted within {} ms, {} are allowed",
                limit.interval_ms, limit.rate
            )
        });
        let free = limit.rate - before.in_use(clock_ms);
        let counts = self.by_grant && before.adds_up();
        findings.expect(A2, granted == (free >= call.count) || !counts, || {
            format!("{free} permits are free, {} were asked for, answered {}", call.count, out.reply)
        });
        if !granted {
            let told = out.reply.int().unwrap_or(0);
            // Some releases add a little, so that it surely has ended by then.
            findings.expect(L3, (1..=limit.interval_ms + 3).contains(&told), || {
                format!("told to wait {told} ms, the interval is {} ms", limit.interval_ms)
            });
        }
    }

    /// The owner gives back what it was granted last.
    fn returned(&mut self, owner: usize, mut permits: i64) {
        while let Some(grant) = self.granted[owner].last_mut().filter(|_| permits > 0) {
            let back = grant.permits.min(permits);
            (grant.permits, permits) = (grant.permits - back, permits - back);
            if grant.permits == 0 {
                self.granted[owner].pop();
            }
        }
    }

    fn begin_anew(&mut self, limit: Limit) {
        self.ends = limit.keep_alive_ms > 0;
        if !limit.keeps_taken {
            self.granted.iter_mut().for_each(Vec::clear);
        }
    }
}

impl Model for RateLimiter {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        call.operation == ACQUIRE && matches!(reply, Reply::Int(_))
            || reply.is_error_with("RateLimiter is not initialized")
            || reply.is_error_with("Requested permits amount")
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        let keys = [&self.names.taken, &self.names.left, &self.names.client_taken[0]];
        keys.map(|key| key.clone().into_bytes()).into()
    }

    fn reset(&mut self) {
        self.granted.iter_mut().for_each(Vec::clear);
        (self.ends, self.disturbed) = (false, false);
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        match call.operation {
            TRY_SET | SET | UPDATE => {
                let is_update = call.operation == UPDATE;
                let ends = choice == 7 || is_update && choice == 6;
                call.limit = Limit {
                    rate: i64::from(choice % 3) + 1,
                    interval_ms: INTERVAL_MS,
                    per_client: choice & 4 != 0,
                    keep_alive_ms: if ends && self.keeps_alive { KEEP_ALIVE_MS } else { 0 },
                    keeps_taken: is_update && choice & 1 == 0,
                    only_existing: is_update && choice & 2 == 0,
                }
            }
            // Nobody gives back what it does not have.
            RELEASE => {
                let granted = self.granted[call.owner].iter().map(|grant| grant.permits).sum();
                call.count = (i64::from(choice % 2) + 1).min(granted);
                return call.count > 0;
            }
            _ => call.count = i64::from(choice % 3) + 1,
        }
        true
    }

    fn before(&mut self, call: &Call, view: View) {
        self.before = self.read(call.owner, view);
    }

    fn after(&mut self, call: &Call, out: Outcome, view: View, findings: &mut Findings) {
        if out.again {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let after = self.read(call.owner, view);
        let clock_ms = call.now_ms + call.skew_ms;
        match call.operation {
            ACQUIRE => self.acquired(call, out, &before, findings),
            TRY_SET => {
                findings.expect(A2, out.reply == Reply::Int(before.limit.is_none() as i64), || {
                    format!("answered {} with {:?} set", out.reply, before.limit)
                });
                if before.limit.is_none() {
                    self.begin_anew(call.limit);
                }
            }
            UPDATE if call.limit.only_existing && before.limit.is_none() => {
                findings.expect(A2, out.reply == Reply::Int(0) && after == before, || {
                    format!("answered {} where there is none, which became {:?}", out.reply, after.limit)
                });
            }
            SET | UPDATE => {
                let set = after.limit.is_some_and(|limit| limit.rate == call.limit.rate);
                findings.expect(A2, set, || format!("{:?} instead of {:?}", after.limit, call.limit));
                let same = before.limit.is_some_and(|limit| limit.per_client == call.limit.per_client);
                let keeps_taken = call.limit.keeps_taken && same;
                self.begin_anew(Limit { keeps_taken, ..call.limit });
            }
            RELEASE => self.returned(call.owner, call.count),
            _ => {
                let free = before.limit.map(|limit| (limit.rate - before.in_use(clock_ms)).max(0));
                let told = out.reply.int();
                let counts = self.by_grant && before.adds_up() && !self.disturbed;
                findings.expect(P5, free.is_none() || told == free || !counts, || {
                    format!("{free:?} permits are available, answered {}", out.reply)
                });
            }
        }
        // Only the operation that breaks it is to blame.
        let counts = self.by_grant && before.adds_up() && !self.disturbed;
        findings.expect(L2, after.adds_up() || !counts, || {
            let limit = after.limit.map_or(0, |limit| limit.rate);
            format!("{:?} permits are left and {:?} are handed out, of {limit}", after.left, after.taken)
        });
    }

    fn disturbed(&mut self) {
        self.disturbed = true;
    }

    fn deadlines(&self, view: View, into: &mut Vec<i64>) {
        // Permits that were given back are still among those that were taken.
        let taken = (0..OWNERS).flat_map(|owner| self.read(owner, view).taken);
        let granted = self.granted.iter().flatten().copied();
        into.extend(granted.chain(taken).map(|grant| grant.at_ms + INTERVAL_MS));
    }

    fn may_stay(&self, _: &[u8]) -> bool {
        !self.ends
    }
}
