//! The model of a fair lock.

use std::fmt::Write;

use smallvec::SmallVec;

use super::names::{QUEUE, QueueNames, TIMEOUTS, WAIT_DEADLINE, WAIT_MS, WAITER};
use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::rlock;
use crate::role::Role;
use crate::script_set::ScriptSet;
use crate::view::{MISSING, View};

const ACQUIRE: usize = 0;
const UNLOCK: usize = 1;
const GIVE_UP: usize = 2;
const TRY_ACQUIRE: usize = 3;
const RENEW: usize = 4;
const FORCE_UNLOCK: usize = 5;

const OPERATIONS: &[Operation] = &operations(roles::ACQUIRE, roles::TRY_ACQUIRE);
const NON_REENTRANT: &[Operation] = &operations(roles::NONREENTRANT_ACQUIRE, roles::NONREENTRANT_TRY_ACQUIRE);

const fn operations(acquire: Role, try_acquire: Role) -> [Operation; 6] {
    [
        Operation::acquire("acquire", Sends::Script(acquire)).defining().retried_with_replicas(),
        Operation::new("unlock", Sends::Script(roles::UNLOCK)).retried(),
        Operation::new("give_up", Sends::ScriptOrNothing(roles::ABANDON)),
        Operation::acquire("try_acquire", Sends::Script(try_acquire)),
        Operation::renewal("renew", Sends::ScriptOrPexpire(rlock::roles::RENEW)),
        Operation::new("force_unlock", Sends::Script(roles::FORCE_UNLOCK)),
    ]
}

/// How long a waiter may be silent before it counts as dead.
const WAITS_MS: [i64; 2] = [5_000, 300_000];

/// All acquires ask for the same lease, so that deadlines have a bound.
const LEASE_MS: i64 = WATCHDOG_MS;

/// How far two readings of one clock may be apart on a busy machine, in ms.
const APART_MS: i64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    exists: bool,
    holds: [i64; OWNERS],
    ttl_ms: i64,
    /// The waiting owners by number; `OWNERS` means anybody else.
    queue: SmallVec<[usize; 8]>,
    deadlines_ms: [Option<i64>; OWNERS],
    members: usize,
    /// Whether waiters have keys instead of deadlines. A waiter without its key is dead.
    by_key: bool,
}

impl State {
    /// Returns the queue without the dead waiters at its head.
    fn living(&self, now_ms: i64) -> &[usize] {
        let is_dead = |owner: &usize| {
            let deadline = self.deadlines_ms.get(*owner).copied().flatten();
            deadline.map_or(self.by_key, |deadline| deadline <= now_ms)
        };
        let dead = self.queue.iter().take_while(|owner| is_dead(owner)).count();
        &self.queue[dead..]
    }
}

/// A fair lock.
#[derive(Clone)]
pub struct Fair {
    names: Names,
    queue_names: QueueNames,
    is_reentrant: bool,
    by_key: bool,
    before: State,
    /// The end of each owner's lease.
    until_ms: [i64; OWNERS],
    /// How long each owner waits; 0 if it does not wait.
    waits_ms: [i64; OWNERS],
    /// The waiting time in each owner's last request.
    asked_wait_ms: [i64; OWNERS],
    /// Whether a key was lost or a clock is wrong.
    disturbed: bool,
    /// The error of each owner's clock when it last asked, by which its deadline was computed.
    asked_skew_ms: [i64; OWNERS],
    /// The longest lease that was requested.
    lease_ms: i64,
    /// The largest difference between a client's clock and the server's.
    skew_ms: i64,
}

impl Fair {
    /// Creates a model for the scripts of a release.
    pub fn new(scripts: &ScriptSet, is_reentrant: bool) -> Fair {
        let acquire = scripts.script(roles::ACQUIRE);
        Fair {
            names: rlock::names::names(),
            queue_names: QueueNames::new("my:lock"),
            is_reentrant,
            by_key: acquire.is_some_and(|script| script.binding.keys.contains(&WAITER)),
            before: State::default(),
            until_ms: [0; OWNERS],
            waits_ms: [0; OWNERS],
            asked_wait_ms: [0; OWNERS],
            disturbed: false,
            asked_skew_ms: [0; OWNERS],
            lease_ms: LEASE_MS,
            skew_ms: 0,
        }
    }

    fn state(&self, view: View) -> State {
        let mut state = State { ttl_ms: MISSING, by_key: self.by_key, ..State::default() };
        if let Some(hash) = view.hash(self.names.lock.as_bytes()) {
            state.exists = true;
            state.holds = OWNER_IDS.map(|owner| view.count(hash, owner.as_bytes()));
            state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        }
        if let Some(list) = view.list(self.queue_names.queue.as_bytes()) {
            let owner =
                |id: &[u8]| OWNER_IDS.iter().position(|owner| owner.as_bytes() == id).unwrap_or(OWNERS);
            state.queue = list.iter().map(owner).collect();
        }
        if let Some(set) = view.sorted_set(self.queue_names.timeouts.as_bytes()) {
            state.deadlines_ms = OWNER_IDS.map(|owner| set.score(owner.as_bytes()).map(|score| score as i64));
            state.members = set.len();
        }
        if self.by_key {
            let now_ms = view.now().wall_ms();
            state.deadlines_ms = std::array::from_fn(|owner| {
                let key = self.queue_names.waiters[owner].as_bytes();
                // A key lives until the end of its last millisecond.
                view.exists(key).then(|| now_ms + view.ttl_ms(key) + 1)
            });
        }
        state
    }

    /// Returns the first waiter whose deadline is later than the lease and the waits before it permit, with its
    /// deadline and that bound.
    fn late(&self, state: &State, now_ms: i64) -> Option<(usize, i64, i64)> {
        // One clock sets a deadline and another one reads it, and a key lives until the end of its last millisecond.
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

    fn acquired(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, now_ms, .. } = *call;
        let clock_ms = now_ms + call.skew_ms;
        let own = before.holds[owner] > 0;
        if own && !self.is_reentrant {
            return change
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
                change.expect(M1, left <= 0, || {
                    format!("granted while {} has a lease for {left} ms more", owner_name(other))
                });
            }
            change.expect(F1, own || first, || {
                format!("granted, but {} waits longer", owner_name(living[0].min(OWNERS - 1)))
            });
            let mut holds = before.holds;
            holds[owner] += 1;
            change.expect(A1, after.holds == holds, || {
                format!("holds went from {:?} to {:?}", shown(&before.holds), shown(&after.holds))
            });
            change.expect(T1, after.ttl_ms == call.lease_ms, || {
                format!("asked for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
            });
            change.expect(F6, own || !after.queue.contains(&owner), || "the owner still waits".to_owned());
            self.until_ms[owner] = now_ms + call.lease_ms;
            if !own {
                self.waits_ms[owner] = 0;
            }
        }
        change.expect(A2, granted == may || self.disturbed, || match granted {
            true => "granted, but it is held".to_owned(),
            false => "refused, but it is free and nobody is before it".to_owned(),
        });
        if !granted && call.operation == ACQUIRE {
            self.waits(call);
            let told = out.reply.int().unwrap_or(MISSING);
            if waited && !self.disturbed {
                change.expect(F4, (0..=before.ttl_ms.max(0) + self.skew_ms).contains(&told), || {
                    format!("told to wait {told} ms, the lock is held for {} ms more", before.ttl_ms)
                });
            }
            self.check_queued(change, waited, told);
            if change.is_strict() {
                change.expect(F7, told > 0 || before.exists, || {
                    format!("told {told} ms, but others come first: it will ask again and again")
                });
            }
        }
        if !granted && !after.exists {
            let head = after.queue.first().copied();
            let has_deadline =
                head.is_some_and(|head| after.deadlines_ms.get(head).is_some_and(Option::is_some));
            change.expect(F2, has_deadline, || {
                let who = head.map_or('?', |head| owner_name(head.min(OWNERS - 1)));
                format!(
                    "the lock is free and refused because of {who}, who has no deadline and is never dropped"
                )
            });
        }
    }

    /// Notes that the owner waits.
    fn waits(&mut self, call: &Call) {
        self.waits_ms[call.owner] = self.asked_wait_ms[call.owner];
        self.asked_skew_ms[call.owner] = call.skew_ms + call.late_ms;
    }

    /// Compares what a waiter was told, and the deadline that it got, with the lock's lease and the deadlines before it.
    fn check_queued(&self, change: &mut Change<&State>, waited: bool, told: i64) {
        let Change { call, before, after, .. } = *change;
        if self.disturbed || self.by_key || !before.exists {
            return;
        }
        let Call { owner, .. } = *call;
        let clock_ms = call.clock_ms();
        let mut others = before
            .living(clock_ms)
            .iter()
            .filter_map(|&other| before.deadlines_ms.get(other).copied().flatten());
        let last_ms = others.next_back().map_or(before.ttl_ms, |deadline| deadline - clock_ms);
        let (least, most) = (last_ms.min(before.ttl_ms), last_ms.max(before.ttl_ms));
        // Deadlines were set by other readings of the clocks than those of this request.
        let apart_ms = 2 * self.skew_ms;
        let told_range = least - apart_ms..=most + apart_ms;
        change.expect(T2, told_range.contains(&told) || waited && told == before.ttl_ms, || {
            format!("told to wait {told} ms, the lock is held for {} ms more", before.ttl_ms)
        });
        let deadline_ms = after.deadlines_ms[owner].map(|deadline| deadline - clock_ms);
        if waited {
            let moved_ms = match (before.deadlines_ms[owner], after.deadlines_ms[owner]) {
                (Some(was_ms), Some(is_ms)) => (is_ms - was_ms).abs(),
                (was_ms, is_ms) => {
                    if was_ms == is_ms {
                        0
                    } else {
                        i64::MAX
                    }
                }
            };
            return change
                .expect(F8, moved_ms <= apart_ms, || format!("its deadline is in {deadline_ms:?} ms now"));
        }
        let wait_ms = self.waits_ms[owner];
        // Its turn comes after those before it.
        let first_ms = (least + wait_ms).max(last_ms);
        change.expect(F8, deadline_ms.is_some_and(|deadline| deadline >= first_ms - apart_ms), || {
            format!(
                "waits {wait_ms} ms, its turn comes in {least} ms, and its deadline is in {deadline_ms:?} ms"
            )
        });
    }

    /// Expects that the queue has lost only waiters whose time is over and the one that was served or gave up, and that
    /// only the caller was added, at the end. Deadlines of others never come closer than by the wait of who leaves.
    fn check_queue(&self, change: &mut Change<&State>, wait_ms: i64) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, now_ms, .. } = *call;
        // A caller whose clock is only this little ahead has read the same clock at another moment than the server.
        let ahead_ms = if (0..=APART_MS).contains(&call.skew_ms) { call.skew_ms } else { 0 };
        // By its own clock, a waiter is alive until its deadline.
        let lives = |&other: &usize| {
            let deadline = before.deadlines_ms.get(other).copied().flatten();
            let clock_ms = |other: usize| now_ms + ahead_ms + self.asked_skew_ms[other];
            other != owner && deadline.is_some_and(|deadline| deadline > clock_ms(other))
        };
        let dropped = before.queue.iter().copied().filter(lives).find(|other| !after.queue.contains(other));
        change.expect(F9, dropped.is_none(), || {
            let other = owner_name(dropped.unwrap_or(0));
            format!("{other} waits, its deadline has not come, and it is no longer in the queue")
        });
        if self.disturbed || self.by_key {
            return;
        }
        let leaves = match call.operation {
            ACQUIRE | TRY_ACQUIRE => out.reply == Reply::Nil && before.holds[owner] == 0,
            operation => operation == GIVE_UP,
        };
        let joins = call.operation == ACQUIRE && matches!(out.reply, Reply::Int(_));
        let clock_ms = call.clock_ms();
        let living = before.living(clock_ms);
        let dead = &before.queue[..before.queue.len() - living.len()];
        let mut expected: SmallVec<[usize; 8]> = living.into();
        expected.retain(|other| !leaves || *other != owner);
        if joins && !expected.contains(&owner) {
            expected.push(owner);
        }
        // Whether the dead are still in the queue makes no difference.
        let mut now = after.queue.clone();
        now.retain(|other| !dead.contains(other) || joins && *other == owner);
        change.expect(F10, now == expected, || format!("{:?} became {:?}", before.queue, after.queue));
        let is_behind = |other: &&usize| {
            before.queue.iter().position(|o| o == *other) > before.queue.iter().position(|o| *o == owner)
        };
        let mut moved_ms = None;
        for &other in expected.iter().filter(|other| **other != owner && **other < OWNERS) {
            let (Some(was), Some(is)) = (before.deadlines_ms[other], after.deadlines_ms[other]) else {
                continue;
            };
            // Those behind move up, all by the same time.
            let behind = leaves && is_behind(&&other);
            let least_ms = if behind { was - wait_ms } else { was };
            let together = !behind || *moved_ms.get_or_insert(was - is) == was - is;
            change.expect(F8, is >= least_ms && together, || {
                format!("the deadline of {} came closer by {} ms", owner_name(other), was - is)
            });
        }
    }

    fn unlocked(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let owner = call.owner;
        if before.holds[owner] == 0 {
            self.until_ms[owner] = 0;
            if before.exists || change.is_strict() {
                change.expect(U1, out.reply == Reply::Nil, || {
                    format!("answered {} to who does not hold the lock", out.reply)
                });
            }
            change.expect(U1, before.holds == after.holds && before.ttl_ms == after.ttl_ms, || {
                format!("{before:?} became {after:?}")
            });
            // The lease has ended without a message; the next waiter need not sleep on.
            if !before.exists {
                self.check_told(change);
            }
            return;
        }
        let left = before.holds[owner] - 1;
        let mut holds = before.holds;
        holds[owner] = left;
        change.expect(A1, after.holds == holds && after.exists == (left > 0), || {
            format!("holds went from {:?} to {:?}", shown(&before.holds), shown(&after.holds))
        });
        change.expect(U2, out.reply == Reply::Int((left == 0) as i64), || {
            format!("answered {} with {left} holds left", out.reply)
        });
        self.until_ms[owner] = if left > 0 { call.now_ms + call.lease_ms } else { 0 };
        if left == 0 {
            self.check_told(change);
        } else {
            change.expect(T1, after.ttl_ms == call.lease_ms, || {
                format!("asked for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
            });
        }
    }

    /// Expects a notification for the head of the queue.
    fn check_told(&self, change: &mut Change<&State>) {
        let Change { call, out, before, .. } = *change;
        let living = before.living(call.clock_ms());
        let Some(&head) = living.first().filter(|head| **head < OWNERS) else { return };
        let told = is_told(out.messages, &format!("{}:{}", self.names.channel, OWNER_IDS[head]));
        change.expect(M3, told || self.disturbed, || {
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

    fn has_key(&self, key: &[u8]) -> bool {
        let QueueNames { queue, timeouts, waiters } = &self.queue_names;
        let waiters = waiters.iter().filter(|_| self.by_key);
        [&self.names.lock, queue, timeouts].into_iter().chain(waiters).any(|name| name.as_bytes() == key)
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        vec![self.queue_names.timeouts.clone().into_bytes(), self.queue_names.queue.clone().into_bytes()]
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            QUEUE => out.text(&self.queue_names.queue),
            TIMEOUTS => out.text(&self.queue_names.timeouts),
            WAITER => out.text(&self.queue_names.waiters[call.owner]),
            WAIT_MS => out.int(self.asked_wait_ms[call.owner]),
            WAIT_DEADLINE => out.int(call.clock_ms() + self.asked_wait_ms[call.owner]),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn read(&mut self, parameter: Parameter, word: &[u8], call: &mut Call) -> Option<()> {
        let number = number(word)?;
        self.asked_wait_ms[call.owner] =
            if parameter == WAIT_DEADLINE { number - call.clock_ms() } else { number };
        Some(())
    }

    fn describe(&self, call: &Call, text: &mut String) {
        let wait_ms = self.asked_wait_ms[call.owner];
        if wait_ms != 0 {
            let _ = write!(text, " (waits {wait_ms} ms)");
        }
    }

    fn reset(&mut self) {
        self.until_ms = [0; OWNERS];
        self.waits_ms = [0; OWNERS];
        self.disturbed = false;
        self.asked_skew_ms = [0; OWNERS];
        self.lease_ms = LEASE_MS;
        self.skew_ms = 0;
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let waits_ms = self.waits_ms[call.owner];
        let holds = self.until_ms[call.owner] > 0;
        call.lease_ms = LEASE_MS;
        let is_sent = match call.operation {
            GIVE_UP => waits_ms > 0,
            RENEW => holds,
            // A thread that waits rarely tries as well.
            TRY_ACQUIRE => waits_ms == 0 || choice == 7,
            _ => true,
        };
        if is_sent {
            // A waiting thread repeats its request with the same waiting time until it is granted or gives up.
            self.asked_wait_ms[call.owner] = match call.operation {
                UNLOCK | FORCE_UNLOCK => 0,
                _ if waits_ms > 0 => waits_ms,
                _ => WAITS_MS[choice as usize % WAITS_MS.len()],
            };
        }
        is_sent
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.state(view);
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            // The lock may have been released in between: then the owner waits now.
            if call.operation == ACQUIRE && matches!(out.reply, Reply::Int(_)) {
                self.waits(call);
            }
            return;
        }
        let before = &std::mem::take(&mut self.before);
        let after = &self.state(view);
        let change = &mut Change { call, out, before, after, verdict };
        let clock_ms = call.clock_ms();
        self.lease_ms = self.lease_ms.max(call.lease_ms);
        self.skew_ms = self.skew_ms.max(call.skew_ms.abs());
        let late = self.late(before, clock_ms).is_some();
        let wait_ms = self.asked_wait_ms[call.owner];
        if call.operation == RENEW {
            expect_renewal_told(change.verdict, out.reply, before.holds[call.owner] > 0);
        }
        match call.operation {
            ACQUIRE | TRY_ACQUIRE => self.acquired(change),
            UNLOCK => self.unlocked(change),
            GIVE_UP => {
                self.waits_ms[call.owner] = 0;
                let waits = after.queue.contains(&call.owner) || after.deadlines_ms[call.owner].is_some();
                change.expect(F6, !waits, || format!("{} still waits", owner_name(call.owner)));
            }
            FORCE_UNLOCK => {
                change.expect(A1, !after.exists, || "the lock is still held".to_owned());
                change.expect(U2, out.reply == Reply::Int(before.exists as i64), || {
                    format!(
                        "answered {}, the lock was {}",
                        out.reply,
                        if before.exists { "held" } else { "free" }
                    )
                });
                if before.exists {
                    self.check_told(change);
                }
                self.until_ms = [0; OWNERS];
            }
            _ if before.holds[call.owner] > 0 => {
                change.expect(T1, after.ttl_ms == call.lease_ms, || {
                    format!("renewed for {} ms, the key lives for {} ms", call.lease_ms, after.ttl_ms)
                });
                self.until_ms[call.owner] = call.now_ms + call.lease_ms;
            }
            _ => {
                change.expect(M4, before.ttl_ms == after.ttl_ms, || {
                    "who does not hold the lock changed its lease".to_owned()
                });
                self.until_ms[call.owner] = 0;
            }
        }
        self.check_queue(change, wait_ms);
        if !self.disturbed && !self.by_key {
            let known = after
                .queue
                .iter()
                .filter(|owner| after.deadlines_ms.get(**owner).is_some_and(Option::is_some));
            let same = known.count() == after.queue.len() && after.members == after.queue.len();
            change.expect(F5, same, || {
                format!("queue {:?}, deadlines {:?}", after.queue, shown(&after.deadlines_ms))
            });
            if !late && let Some((owner, left, bound)) = self.late(after, clock_ms) {
                change.expect(F3, false, || {
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
        into.extend(self.state(view).deadlines_ms.iter().flatten());
    }

    fn closing(&self) -> &'static [usize] {
        &[TRY_ACQUIRE, UNLOCK]
    }
}
