//! The model of a rate limiter.

use std::fmt::Write;

use smallvec::SmallVec;

use super::names::*;
use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::permit::names::permit_id;
use crate::role::Role;
use crate::script_set::ScriptSet;
use crate::view::{FOREVER, MISSING, View};

const TRY_SET: usize = 0;
const ACQUIRE: usize = 1;
const RELEASE: usize = 3;
const SET: usize = 4;
const UPDATE: usize = 5;

const OPERATIONS: &[Operation] = &[
    Operation::new("try_set", Sends::Script(roles::TRY_SET)),
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried(),
    Operation::new("available", Sends::Script(roles::AVAILABLE)),
    Operation::new("release", Sends::Script(roles::RELEASE)).retried(),
    Operation::new("set", Sends::Script(roles::SET)),
    Operation::new("update", Sends::Script(roles::UPDATE)),
];

/// The intervals of limiters, in ms.
const INTERVALS: [i64; 2] = [5_000, 2_000];
/// How long an unused limiter lives, if it expires at all, in ms.
const KEEP_ALIVE: i64 = 20_000;

/// The settings of a rate limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limit {
    /// Permits in each interval.
    rate: i64,
    interval_ms: i64,
    /// Whether each client has its own permits.
    per_client: bool,
    /// How long the limiter lives when nobody uses it; 0 means for ever.
    keep_alive_ms: i64,
    /// Whether permits that were already granted still count.
    keeps_taken: bool,
    /// Whether this only replaces an existing limit.
    only_existing: bool,
}

/// Permits that were granted at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    at_ms: i64,
    permits: i64,
}

/// The state of the limiter from one client's point of view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    limit: Option<Limit>,
    left: Option<i64>,
    /// The times to live of the limiter, of the permits left and of the granted ones.
    ttls_ms: [i64; 3],
    taken: SmallVec<[Grant; 8]>,
}

impl State {
    /// Returns the number of permits granted less than an interval ago.
    fn in_use(&self, clock_ms: i64) -> i64 {
        let interval_ms = self.limit.map_or(0, |limit| limit.interval_ms);
        let recent = self.taken.iter().filter(|grant| grant.at_ms > clock_ms - interval_ms);
        recent.map(|grant| grant.permits).sum()
    }

    fn adds_up(&self) -> bool {
        let taken: i64 = self.taken.iter().map(|grant| grant.permits).sum();
        // After a reduction of the rate, more permits may be granted than it allows.
        self.limit.zip(self.left).is_none_or(|(limit, left)| left == (limit.rate - taken).max(0))
    }
}

/// A rate limiter.
#[derive(Clone)]
pub struct RateLimiter {
    names: Names,
    permits: PermitNames,
    /// The settings in each owner's last request.
    asked: [Limit; OWNERS],
    /// Whether the release can expire limiters that nobody uses.
    keeps_alive: bool,
    /// Whether the release stores this lifetime, and renews it when the limiter is used.
    stores_lifetime: bool,
    /// Whether the release records each grant.
    by_grant: bool,
    before: State,
    /// The grants of each owner by its own clock, oldest first.
    granted: [Vec<Grant>; OWNERS],
    /// Whether the limiter expires when nobody uses it.
    ends: bool,
    /// Whether a key was lost or a clock is wrong.
    disturbed: bool,
}

impl RateLimiter {
    /// Creates a model for the scripts of a release.
    pub fn new(scripts: &ScriptSet) -> RateLimiter {
        let takes = |role: Role, parameter: Parameter| {
            scripts.script(role).is_some_and(|script| {
                [&script.binding.keys[..], &script.binding.args].concat().contains(&parameter)
            })
        };
        RateLimiter {
            names: Names::new("my:limiter", ""),
            permits: PermitNames::new("my:limiter"),
            asked: Default::default(),
            keeps_alive: takes(roles::TRY_SET, KEEP_ALIVE_MS),
            stores_lifetime: scripts
                .script(roles::TRY_SET)
                .is_some_and(|script| script.text.contains("'keepAliveTime'")),
            by_grant: takes(roles::ACQUIRE, TAKEN),
            before: State::default(),
            granted: Default::default(),
            ends: false,
            disturbed: false,
        }
    }

    fn state(&self, owner: usize, view: View) -> State {
        let Some(hash) = view.hash(self.names.lock.as_bytes()) else { return State::default() };
        let limit = Limit {
            rate: view.count(hash, b"rate"),
            interval_ms: view.count(hash, b"interval"),
            per_client: view.count(hash, b"type") == 1,
            keep_alive_ms: view.count(hash, b"keepAliveTime"),
            ..Limit::default()
        };
        let (left, taken) = match limit.per_client {
            true => (&self.permits.client_left[owner], &self.permits.client_taken[owner]),
            false => (&self.permits.left, &self.permits.taken),
        };
        let mut state = State {
            limit: Some(limit),
            left: view.number(left.as_bytes()),
            ttls_ms: [&self.names.lock, left, taken].map(|key| view.ttl_ms(key.as_bytes())),
            taken: SmallVec::new(),
        };
        if let Some(set) = view.sorted_set(taken.as_bytes()) {
            let grants = set.iter().filter_map(|(member, score)| {
                // The number of permits is at the end of the member.
                let permits = u32::from_le_bytes(*member.last_chunk()?);
                Some(Grant { at_ms: score as i64, permits: permits.into() })
            });
            state.taken = grants.collect();
        }
        state
    }

    /// Returns the number of permits that clients in the owner's scope were granted less than an interval ago.
    fn granted_lately(&self, owner: usize, limit: Limit, clock_ms: i64) -> i64 {
        let clients = (0..OWNERS).filter(|client| !limit.per_client || *client == owner);
        let grants = clients.flat_map(|client| &self.granted[client]);
        let recent = grants.filter(|grant| grant.at_ms > clock_ms - limit.interval_ms);
        recent.map(|grant| grant.permits).sum()
    }

    fn acquired(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, .. } = *change;
        let clock_ms = call.clock_ms();
        let Some(limit) = before.limit.filter(|limit| limit.rate >= call.count) else {
            return change.expect(A2, out.reply.is_error(), || {
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
        change.expect(L1, !granted || lately <= limit.rate, || {
            format!(
                "{lately} permits were granted within {} ms, {} are allowed",
                limit.interval_ms, limit.rate
            )
        });
        let free = limit.rate - before.in_use(clock_ms);
        let counts = self.by_grant && before.adds_up();
        change.expect(A2, granted == (free >= call.count) || !counts, || {
            format!("{free} permits are free, {} were asked for, answered {}", call.count, out.reply)
        });
        let used = before.in_use(clock_ms) + if granted { call.count } else { 0 };
        let is = change.after.in_use(clock_ms);
        change.expect(L2, is == used || !counts, || {
            format!("{is} permits count as granted in this interval instead of {used}")
        });
        if !granted {
            let told = out.reply.int().unwrap_or(0);
            let first = before
                .taken
                .iter()
                .map(|grant| grant.at_ms)
                .filter(|at| *at > clock_ms - limit.interval_ms)
                .min();
            let least = first.map_or(1, |at_ms| at_ms + limit.interval_ms - clock_ms);
            change.expect(L3, (least..=least + 3).contains(&told) || !counts || first.is_none(), || {
                format!("told to wait {told} ms, the first permit is free in {least} ms")
            });
            // Some releases add a little, so that the interval has surely ended by then.
            change.expect(L3, (1..=limit.interval_ms + 3).contains(&told), || {
                format!("told to wait {told} ms, the interval is {} ms", limit.interval_ms)
            });
        }
    }

    /// Notes that the owner has returned permits of its last grants.
    fn returned(&mut self, owner: usize, mut permits: i64) {
        while let Some(grant) = self.granted[owner].last_mut().filter(|_| permits > 0) {
            let back = grant.permits.min(permits);
            (grant.permits, permits) = (grant.permits - back, permits - back);
            if grant.permits == 0 {
                self.granted[owner].pop();
            }
        }
    }

    /// Expects that the limiter is as a client asked for.
    fn check_set(&self, change: &mut Change<&State>, asked: Limit) {
        let is = change.after.limit.unwrap_or_default();
        let wanted = Limit { keeps_taken: false, only_existing: false, ..asked };
        // Until 3.37 a lifetime was not stored.
        let is = if self.stores_lifetime { is } else { Limit { keep_alive_ms: wanted.keep_alive_ms, ..is } };
        change.expect(L4, is == wanted, || format!("{is:?} instead of {wanted:?}"));
        if wanted.keep_alive_ms > 0 {
            let lives_ms = change.after.ttls_ms[0];
            change.expect(L4, lives_ms == wanted.keep_alive_ms, || {
                format!("lives for {lives_ms} ms instead of {} ms", wanted.keep_alive_ms)
            });
        }
    }

    /// Expects that the use of a limiter makes it live on, and its permits as long as itself.
    fn check_lives(&self, change: &mut Change<&State>) {
        let (Some(limit), [limiter, left, taken]) = (change.after.limit, change.after.ttls_ms) else {
            return;
        };
        let expected = match limit.keep_alive_ms {
            0 if change.before.limit.is_none() => FOREVER,
            0 => change.before.ttls_ms[0],
            keep_alive_ms => keep_alive_ms,
        };
        let same = |ttl_ms: i64| ttl_ms == MISSING || ttl_ms == expected;
        // In its last millisecond a limiter has ended, for all that a client can tell.
        change.expect(L4, expected == 0 || limiter == expected && same(left) && same(taken) || !self.keeps_alive, || {
            format!("the limiter lives for {limiter} ms, its permits for {left} and {taken} ms, instead of {expected} ms")
        });
    }

    fn start_over(&mut self, limit: Limit) {
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

    fn has_key(&self, key: &[u8]) -> bool {
        let PermitNames { left, taken, client_left, client_taken } = &self.permits;
        let of_clients = client_left.iter().chain(client_taken);
        [&self.names.lock, left, taken].into_iter().chain(of_clients).any(|name| name.as_bytes() == key)
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        let keys = [&self.permits.taken, &self.permits.left, &self.permits.client_taken[0]];
        keys.map(|key| key.clone().into_bytes()).into()
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        let asked = &self.asked[call.owner];
        match parameter {
            LEFT => out.text(&self.permits.left),
            TAKEN => out.text(&self.permits.taken),
            CLIENT_LEFT => out.text(&self.permits.client_left[call.owner]),
            CLIENT_TAKEN => out.text(&self.permits.client_taken[call.owner]),
            RATE => out.int(asked.rate),
            INTERVAL_MS => out.int(asked.interval_ms),
            SCOPE => out.int(asked.per_client.into()),
            KEEP_ALIVE_MS => out.int(asked.keep_alive_ms),
            // From so few values that some repeat.
            RANDOM_NUMBER => out.int(call.request as i64 % 4),
            RANDOM => out.text(permit_id(call.request)),
            KEEPS_TAKEN => out.int(asked.keeps_taken.into()),
            ONLY_EXISTING => out.int(asked.only_existing.into()),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn describe(&self, call: &Call, text: &mut String) {
        let Limit { rate, interval_ms, per_client, keep_alive_ms, keeps_taken, only_existing } =
            self.asked[call.owner];
        if rate > 0 {
            let _ = write!(text, " {rate} in {interval_ms} ms");
            text.push_str(if per_client { " for each client" } else { "" });
            text.push_str(if keeps_taken { ", keeping what is taken" } else { "" });
            text.push_str(if only_existing { ", if there is one" } else { "" });
            if keep_alive_ms > 0 {
                let _ = write!(text, ", ends unused after {keep_alive_ms} ms");
            }
        }
    }

    fn reset(&mut self) {
        self.granted.iter_mut().for_each(Vec::clear);
        (self.ends, self.disturbed) = (false, false);
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let mut asked = Limit::default();
        match call.operation {
            TRY_SET | SET | UPDATE => {
                let is_update = call.operation == UPDATE;
                let keep_alive_ms = match choice {
                    7 => KEEP_ALIVE,
                    6 if is_update => KEEP_ALIVE,
                    // The shortest.
                    3 => 1,
                    _ => 0,
                };
                asked = Limit {
                    rate: i64::from(choice % 4) + 1,
                    interval_ms: INTERVALS[usize::from(choice / 2) % INTERVALS.len()],
                    per_client: choice & 4 != 0,
                    keep_alive_ms: if self.keeps_alive { keep_alive_ms } else { 0 },
                    keeps_taken: is_update && choice & 1 == 0,
                    only_existing: is_update && choice & 2 == 0,
                }
            }
            // A client does not return permits that it does not have.
            RELEASE => {
                let granted = self.granted[call.owner].iter().map(|grant| grant.permits).sum();
                call.count = (i64::from(choice % 2) + 1).min(granted);
                if call.count == 0 {
                    return false;
                }
            }
            _ => call.count = [1, 2, 3, 1, 1, 2, 1, 1][usize::from(choice) % 8],
        }
        self.asked[call.owner] = asked;
        true
    }

    fn before(&mut self, call: &Call, view: View) {
        self.before = self.state(call.owner, view);
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let before = &std::mem::take(&mut self.before);
        let after = &self.state(call.owner, view);
        let change = &mut Change { call, out, before, after, verdict };
        let asked = self.asked[call.owner];
        let clock_ms = call.clock_ms();
        let is_too_much =
            before.limit.is_some_and(|limit| call.operation == ACQUIRE && call.count > limit.rate);
        change.expect(A2, !out.reply.is_error() || before.limit.is_none() || is_too_much, || {
            format!("answered {} with {:?} set", out.reply, before.limit)
        });
        match call.operation {
            ACQUIRE => self.acquired(change),
            TRY_SET => {
                change.expect(A2, out.reply == Reply::Int(before.limit.is_none() as i64), || {
                    format!("answered {} with {:?} set", out.reply, before.limit)
                });
                match before.limit {
                    None => {
                        self.check_set(change, asked);
                        self.start_over(asked);
                    }
                    Some(limit) => change.expect(L4, after.limit == Some(limit), || {
                        format!("{limit:?} became {:?}", after.limit)
                    }),
                }
            }
            UPDATE if asked.only_existing && before.limit.is_none() => {
                change.expect(A2, out.reply == Reply::Int(0) && after == before, || {
                    format!("answered {} where there is none, which became {:?}", out.reply, after.limit)
                });
            }
            SET | UPDATE => {
                let set = after.limit.is_some_and(|limit| limit.rate == asked.rate);
                change.expect(A2, set, || format!("{:?} instead of {:?}", after.limit, asked));
                self.check_set(change, asked);
                change.expect(A2, call.operation == SET || out.reply == Reply::Int(1), || {
                    format!("set, and answered {}", out.reply)
                });
                let same = before.limit.is_some_and(|limit| limit.per_client == asked.per_client);
                let keeps_taken = asked.keeps_taken && same;
                let used = State { limit: Some(asked), ..before.clone() }.in_use(clock_ms);
                let left = keeps_taken.then(|| (asked.rate - used).max(0));
                let counts = before.limit.is_some() && self.keeps_alive && !self.disturbed;
                change.expect(L2, after.left == left || !counts, || {
                    format!("{:?} permits are left instead of {left:?}", after.left)
                });
                self.check_lives(change);
                self.start_over(Limit { keeps_taken, ..asked });
            }
            RELEASE => {
                self.returned(call.owner, call.count);
                let left =
                    before.limit.map(|limit| limit.rate.min(before.left.unwrap_or(limit.rate) + call.count));
                change.expect(L5, after.left == left || self.disturbed, || {
                    format!(
                        "{:?} permits were left and {} returned, {:?} are left now",
                        before.left, call.count, after.left
                    )
                });
            }
            _ => {
                let free = before.limit.map(|limit| (limit.rate - before.in_use(clock_ms)).max(0));
                let told = out.reply.int();
                let counts = self.by_grant && before.adds_up() && !self.disturbed;
                change.expect(P5, free.is_none() || told == free || !counts, || {
                    format!("{free:?} permits are available, answered {}", out.reply)
                });
            }
        }
        if matches!(call.operation, ACQUIRE | RELEASE) && before.limit.is_some() && !out.reply.is_error() {
            self.check_lives(change);
        }
        // Reports only the operation that breaks the sum.
        let counts = self.by_grant && before.adds_up() && !self.disturbed;
        change.expect(L2, after.adds_up() || !counts, || {
            let limit = after.limit.map_or(0, |limit| limit.rate);
            format!("{:?} permits are left and {:?} are handed out, of {limit}", after.left, after.taken)
        });
    }

    fn disturbed(&mut self) {
        self.disturbed = true;
    }

    fn deadlines(&self, view: View, into: &mut Vec<i64>) {
        // Returned permits are still recorded among the granted ones.
        let taken = (0..OWNERS).flat_map(|owner| self.state(owner, view).taken);
        let granted = self.granted.iter().flatten().copied();
        let interval_ms = self.before.limit.map_or(INTERVALS[0], |limit| limit.interval_ms);
        into.extend(granted.chain(taken).map(|grant| grant.at_ms + interval_ms));
    }

    fn may_stay(&self, _: &[u8]) -> bool {
        !self.ends
    }
}
