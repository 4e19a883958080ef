//! RFairLock: who waits first is served first.
//!
//! | | |
//! |---|---|
//! | state | a hash as for RLock; a list of waiters; a sorted set, waiter → when it is taken for dead, by the clients' clocks |
//! | every operation | first drops waiters from the head of the list whose deadline has passed |
//! | acquire | free and nobody before: granted, and the waiters behind come that much earlier. Else it queues, and is told when to ask again |
//! | try acquire | the same without queueing |
//! | unlock | as for RLock, and the head of the queue is told on a channel of its own. Of a free lock: 1, by Redisson's design |
//! | give up | the waiter leaves, and those behind come that much earlier |
//!
//! One that is not re-entrant refuses its owner with an error. Until 2.6 a waiter had no deadline in a sorted set but a key of its own that
//! lived for as long.

use smallvec::SmallVec;

use super::binding::Slot;
use super::invariant::Invariant::*;
use super::kit::Kit;
use super::model::*;
use super::role::Role;
use super::view::{MISSING, View};

const ACQUIRE: usize = 0;
const UNLOCK: usize = 1;
const GIVE_UP: usize = 2;
const TRY_ACQUIRE: usize = 3;
const RENEW: usize = 4;
const FORCE_UNLOCK: usize = 5;

const OPERATIONS: &[Operation] = &operations(Role::FairAcquire, Role::FairTryAcquire);
const NON_REENTRANT: &[Operation] =
    &operations(Role::FairNonReentrantAcquire, Role::FairNonReentrantTryAcquire);

const fn operations(acquire: Role, try_acquire: Role) -> [Operation; 6] {
    [
        Operation::new("acquire", Sends::Script(acquire)).retried_with_replicas(),
        Operation::new("unlock", Sends::Script(Role::FairUnlock)).retried(),
        Operation::new("give_up", Sends::ScriptOrNothing(Role::FairAbandon)),
        Operation::new("try_acquire", Sends::Script(try_acquire)),
        Operation::new("renew", Sends::ScriptOrPexpire(Role::RlockRenew)),
        Operation::new("force_unlock", Sends::Script(Role::FairForceUnlock)),
    ]
}

/// How long waiters wait before they are taken for dead.
const WAITS_MS: [i64; 2] = [5_000, 300_000];

/// One lease for all, so that deadlines can be bounded.
const LEASE_MS: i64 = WATCHDOG_MS;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    exists: bool,
    holds: [i64; OWNERS],
    ttl_ms: i64,
    /// Owners, by their number; `OWNERS` for anybody else.
    queue: SmallVec<[usize; 8]>,
    deadlines_ms: [Option<i64>; OWNERS],
    members: usize,
    /// Waiters have keys in place of deadlines: who has none is dead.
    by_key: bool,
}

impl State {
    /// The queue without the dead at its head.
    fn living(&self, now_ms: i64) -> &[usize] {
        let is_dead = |owner: &usize| {
            let deadline = self.deadlines_ms.get(*owner).copied().flatten();
            deadline.map_or(self.by_key, |deadline| deadline <= now_ms)
        };
        let dead = self.queue.iter().take_while(|owner| is_dead(owner)).count();
        &self.queue[dead..]
    }
}

pub struct Fair {
    names: Names,
    is_reentrant: bool,
    by_key: bool,
    before: State,
    /// When the lease that an owner was granted ends.
    until_ms: [i64; OWNERS],
    /// How long an owner waits; 0: it does not.
    waits_ms: [i64; OWNERS],
    /// A key was lost or a clock is wrong.
    disturbed: bool,
    /// The longest lease that was asked for.
    lease_ms: i64,
    /// How far clients' clocks were apart from the server's.
    skew_ms: i64,
}

impl Fair {
    pub fn new(kit: &Kit, is_reentrant: bool) -> Fair {
        let acquire = kit.tool(Role::FairAcquire);
        Fair {
            names: Names::new("my:lock", "redisson_lock__channel"),
            is_reentrant,
            by_key: acquire.is_some_and(|tool| tool.binding.keys.contains(&Slot::Waiter)),
            before: State::default(),
            until_ms: [0; OWNERS],
            waits_ms: [0; OWNERS],
            disturbed: false,
            lease_ms: LEASE_MS,
            skew_ms: 0,
        }
    }

    fn read(&self, view: View) -> State {
        let mut state = State { ttl_ms: MISSING, by_key: self.by_key, ..State::default() };
        if let Some(hash) = view.hash(self.names.lock.as_bytes()) {
            state.exists = true;
            state.holds = OWNER_IDS.map(|owner| view.count(hash, owner.as_bytes()));
            state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        }
        if let Some(list) = view.list(self.names.queue.as_bytes()) {
            let owner =
                |id: &[u8]| OWNER_IDS.iter().position(|owner| owner.as_bytes() == id).unwrap_or(OWNERS);
            state.queue = list.iter().map(owner).collect();
        }
        if let Some(set) = view.sorted_set(self.names.timeouts.as_bytes()) {
            state.deadlines_ms = OWNER_IDS.map(|owner| set.score(owner.as_bytes()).map(|score| score as i64));
            state.members = set.len();
        }
        if self.by_key {
            let now_ms = view.now().wall_ms();
            state.deadlines_ms = std::array::from_fn(|owner| {
                let key = self.names.waiters[owner].as_bytes();
                // A key lives to the end of its last millisecond.
                view.exists(key).then(|| now_ms + view.ttl_ms(key) + 1)
            });
        }
        state
    }

    /// The first waiter whose deadline is later than the lease and the waits up to its own allow.
    fn late(&self, state: &State, now_ms: i64) -> Option<(usize, i64, i64)> {
        // A deadline was set by one clock and is read by another, and a key lives to the end of its last millisecond.
        let mut bound = self.lease_ms + 2 * self.skew_ms + i64::from(self.by_key);
        for &owner in &state.queue {
            let deadline = *state.deadlines_ms.get(owner)?;
            bound += self.waits_ms[owner];
            if let Some(deadline) = deadline
                && deadline - now_ms > bound
            {
                return Some((owner, deadline - now_ms, bound));
            }
        }
        None
    }

    fn acquired(
        &mut self,
        call: &Call,
        out: Outcome,
        before: &State,
        after: &State,
        findings: &mut Findings,
    ) {
        let Call { owner, now_ms, .. } = *call;
        let clock_ms = now_ms + call.skew_ms;
        let own = before.holds[owner] > 0;
        if own && !self.is_reentrant {
            return findings
                .expect(A2, out.reply.is_error(), || "the owner was granted a second hold".to_owned());
        }
        let living = before.living(clock_ms);
        let first = living.first().is_none_or(|head| *head == owner);
        let may = own || !before.exists && first;
        let granted = out.reply == Reply::Nil;
        let waited = before.queue.contains(&owner) && living.contains(&owner);
        if granted {
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let left = self.until_ms[other] - now_ms;
                findings.expect(M1, left <= 0, || {
                    format!("granted while {} has a lease for {left} ms more", owner_name(other))
                });
            }
            findings.expect(F1, own || first, || {
                format!("granted, but {} waits longer", owner_name(living[0].min(OWNERS - 1)))
            });
            let mut holds = before.holds;
            holds[owner] += 1;
            findings.expect(A1, after.holds == holds, || {
                format!("holds went from {:?} to {:?}", before.holds, after.holds)
            });
            findings.expect(T1, after.ttl_ms == call.lease_ms, || {
                format!("asked for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
            });
            findings.expect(F6, own || !after.queue.contains(&owner), || "the owner still waits".to_owned());
            self.until_ms[owner] = now_ms + call.lease_ms;
            if !own {
                self.waits_ms[owner] = 0;
            }
        }
        findings.expect(A2, granted == may || self.disturbed, || match granted {
            true => "granted, but it is held".to_owned(),
            false => "refused, but it is free and nobody is before it".to_owned(),
        });
        if !granted && call.operation == ACQUIRE {
            self.waits_ms[owner] = call.wait_ms;
            let told = out.reply.int().unwrap_or(MISSING);
            if waited && !self.disturbed {
                findings.expect(F4, (0..=before.ttl_ms.max(0) + self.skew_ms).contains(&told), || {
                    format!("told to wait {told} ms, the lock is held for {} ms more", before.ttl_ms)
                });
            }
            if findings.is_strict() {
                findings.expect(F7, told > 0 || before.exists, || {
                    format!("told {told} ms, but others come first: it will ask again and again")
                });
            }
        }
        if !granted && !after.exists {
            let head = after.queue.first().copied();
            let has_deadline =
                head.is_some_and(|head| after.deadlines_ms.get(head).is_some_and(Option::is_some));
            findings.expect(F2, has_deadline, || {
                let who = head.map_or('?', |head| owner_name(head.min(OWNERS - 1)));
                format!(
                    "the lock is free and refused because of {who}, who has no deadline and is never dropped"
                )
            });
        }
    }

    fn unlocked(
        &mut self,
        call: &Call,
        out: Outcome,
        before: &State,
        after: &State,
        findings: &mut Findings,
    ) {
        let owner = call.owner;
        if before.holds[owner] == 0 {
            self.until_ms[owner] = 0;
            if before.exists || findings.is_strict() {
                findings.expect(U1, out.reply == Reply::Nil, || {
                    format!("answered {} to who does not hold the lock", out.reply)
                });
            }
            findings.expect(U1, before.holds == after.holds && before.ttl_ms == after.ttl_ms, || {
                format!("{before:?} became {after:?}")
            });
            return;
        }
        let left = before.holds[owner] - 1;
        findings.expect(A1, after.holds[owner] == left && after.exists == (left > 0), || {
            format!("holds went from {:?} to {:?}", before.holds, after.holds)
        });
        findings.expect(U2, out.reply == Reply::Int((left == 0) as i64), || {
            format!("answered {} with {left} holds left", out.reply)
        });
        self.until_ms[owner] = if left > 0 { call.now_ms + call.lease_ms } else { 0 };
        if left == 0 {
            self.check_told(call, out, before, findings);
        }
    }

    /// The head of the queue has to be told, and nobody else.
    fn check_told(&self, call: &Call, out: Outcome, before: &State, findings: &mut Findings) {
        let living = before.living(call.now_ms + call.skew_ms);
        let Some(&head) = living.first().filter(|head| **head < OWNERS) else { return };
        let told = out.messages.iter().any(|message| message.channel.ends_with(OWNER_IDS[head].as_bytes()));
        findings.expect(M3, told || self.disturbed, || {
            format!("the lock is free and {}, who is next, was not told", owner_name(head))
        });
    }
}

impl Model for Fair {
    fn operations(&self) -> &'static [Operation] {
        if self.is_reentrant { OPERATIONS } else { NON_REENTRANT }
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        let acquires = matches!(call.operation, ACQUIRE | TRY_ACQUIRE);
        acquires && matches!(reply, Reply::Int(_)) || !self.is_reentrant && reply.is_error_with(REACQUIRED)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        vec![self.names.timeouts.clone().into_bytes(), self.names.queue.clone().into_bytes()]
    }

    fn reset(&mut self) {
        self.until_ms = [0; OWNERS];
        self.waits_ms = [0; OWNERS];
        self.disturbed = false;
        self.lease_ms = LEASE_MS;
        self.skew_ms = 0;
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let waits_ms = self.waits_ms[call.owner];
        let holds = self.until_ms[call.owner] > 0;
        call.lease_ms = LEASE_MS;
        // A thread that waits asks with the same patience until it is served or gives up.
        call.wait_ms = if waits_ms > 0 { waits_ms } else { WAITS_MS[choice as usize % WAITS_MS.len()] };
        match call.operation {
            GIVE_UP => waits_ms > 0,
            RENEW => holds,
            ACQUIRE => true,
            TRY_ACQUIRE => waits_ms == 0,
            _ => {
                call.wait_ms = 0;
                true
            }
        }
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.read(view);
    }

    fn after(&mut self, call: &Call, out: Outcome, view: View, findings: &mut Findings) {
        if out.again {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let after = self.read(view);
        let clock_ms = call.now_ms + call.skew_ms;
        self.lease_ms = self.lease_ms.max(call.lease_ms);
        self.skew_ms = self.skew_ms.max(call.skew_ms.abs());
        let late = self.late(&before, clock_ms).is_some();
        match call.operation {
            ACQUIRE | TRY_ACQUIRE => self.acquired(call, out, &before, &after, findings),
            UNLOCK => self.unlocked(call, out, &before, &after, findings),
            GIVE_UP => {
                self.waits_ms[call.owner] = 0;
                let waits = after.queue.contains(&call.owner) || after.deadlines_ms[call.owner].is_some();
                findings.expect(F6, !waits, || format!("{} still waits", owner_name(call.owner)));
            }
            FORCE_UNLOCK => {
                findings.expect(A1, !after.exists, || "the lock is still held".to_owned());
                if before.exists {
                    self.check_told(call, out, &before, findings);
                }
                self.until_ms = [0; OWNERS];
            }
            _ if before.holds[call.owner] > 0 => {
                findings.expect(T1, after.ttl_ms == call.lease_ms, || {
                    format!("renewed for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
                });
                self.until_ms[call.owner] = call.now_ms + call.lease_ms;
            }
            _ => {
                findings.expect(M4, before.ttl_ms == after.ttl_ms, || {
                    "who does not hold the lock changed its lease".to_owned()
                });
                self.until_ms[call.owner] = 0;
            }
        }
        if !self.disturbed && !self.by_key {
            let known = after
                .queue
                .iter()
                .filter(|owner| after.deadlines_ms.get(**owner).is_some_and(Option::is_some));
            let same = known.count() == after.queue.len() && after.members == after.queue.len();
            findings
                .expect(F5, same, || format!("queue {:?}, deadlines {:?}", after.queue, after.deadlines_ms));
            if !late && let Some((owner, left, bound)) = self.late(&after, clock_ms) {
                findings.expect(F3, false, || {
                    format!(
                        "the deadline of {} is in {left} ms; the lease and the waits add up to {bound} ms",
                        owner_name(owner)
                    )
                });
            }
        }
    }

    fn disturbed(&mut self) {
        self.disturbed = true;
    }

    fn deadlines(&self, view: View, into: &mut Vec<i64>) {
        into.extend(self.read(view).deadlines_ms.iter().flatten());
    }

    fn closing(&self) -> &'static [usize] {
        &[TRY_ACQUIRE, UNLOCK]
    }
}
