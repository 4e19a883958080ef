//! The guarantees of locks, queues and semaphores: who may have them, for how long, and what a release does.

use super::answer::Answer;
use super::lock::{Kind, Lease, Lock, Part, Reentry};
use super::model::{ACQUIRE, EXTEND, FORCE, GET, LEAVE, RELEASE, RESET, TRY, Turn};
use super::template::Slot;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::view::FOREVER;

/// What one owner has been granted.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// The number of permits or, of a re-entrant lock, of grants.
    count: i64,
    until_ms: i64,
    token: u64,
    fence: i64,
    /// Whether the owner was granted the lock and has not released it, whatever has become of its lease.
    believes: bool,
}

impl Hold {
    /// Returns whether the lease has certainly not ended.
    fn is_held(&self, now_ms: i64) -> bool {
        self.count > 0 && self.until_ms > now_ms
    }

    /// Returns whether the lease may not have ended: a key lives to the end of the millisecond in which it expires.
    fn may_be_held(&self, now_ms: i64) -> bool {
        self.count > 0 && self.until_ms >= now_ms
    }

    fn end(&mut self) {
        *self = Hold { token: self.token, fence: self.fence, ..Hold::default() };
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    owner: usize,
    asked_ms: i64,
    /// Whether it may have lost its place, or not: it did not ask for too long, or the queue was lost.
    is_doubtful: bool,
}

/// What all owners have been told.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    holds: [Hold; OWNERS],
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    last_fence: i64,
    permits: i64,
}

impl Holders {
    /// Creates a lock that nobody holds.
    pub fn new(lock: &Lock) -> Holders {
        Holders { permits: lock.permits, ..Holders::default() }
    }

    pub fn token(&self, owner: usize) -> u64 {
        self.holds[owner].token
    }

    pub fn fence(&self, owner: usize) -> i64 {
        self.holds[owner].fence
    }

    /// Notes that waiters may have lost their places.
    pub fn doubt_waiters(&mut self) {
        self.waiters.iter_mut().for_each(|waiter| waiter.is_doubtful = true);
    }

    /// Returns whether nothing has happened to the owner since a request, so that its client may repeat it.
    pub fn is_current(&self, call: &Call) -> bool {
        match call.operation {
            ACQUIRE | TRY => {
                let hold = &self.holds[call.owner];
                hold.token == call.request + 1 && hold.is_held(call.now_ms)
            }
            EXTEND => self.holds[call.owner].is_held(call.now_ms),
            _ => true,
        }
    }

    /// Completes a call. Returns false if the client would not send it now.
    pub fn ask(&self, lock: &Lock, part: &Part, call: &mut Call) -> bool {
        let hold = &self.holds[call.owner];
        match call.operation {
            // A client has one permit, or one place in the queue.
            ACQUIRE | TRY
                if lock.kind == Kind::Queue || lock.kind == Kind::Semaphore && lock.names_owners() =>
            {
                !hold.may_be_held(call.now_ms)
            }
            RELEASE | EXTEND => {
                if call.operation == RELEASE && lock.kind == Kind::Semaphore {
                    call.count = if part.uses(Slot::Count) { hold.count.max(1) } else { 1 };
                }
                // If the reply does not tell, only the client itself can know whether it holds the lock.
                let tells =
                    part.tells() && !part.acquires && (lock.kind != Kind::Semaphore || lock.names_owners());
                tells || hold.believes
            }
            LEAVE => self.waiters.iter().any(|waiter| waiter.owner == call.owner),
            _ => true,
        }
    }

    pub fn deadlines(&self, lock: &Lock, into: &mut Vec<i64>) {
        let ends = self.holds.iter().filter(|hold| hold.count > 0).map(|hold| hold.until_ms);
        into.extend(ends.filter(|until_ms| *until_ms < i64::MAX));
        into.extend(self.waiters.iter().map(|waiter| waiter.asked_ms + lock.waiter_ms));
    }

    /// Returns the permits that others certainly hold, and those that they may hold. Permits without an owner are
    /// everybody's.
    fn taken(&self, lock: &Lock, owner: usize, now_ms: i64) -> (i64, i64) {
        let others =
            self.holds.iter().enumerate().filter(|(index, _)| *index != owner || !lock.names_owners());
        others.fold((0, 0), |(held, maybe), (_, hold)| {
            let count = if lock.kind == Kind::Semaphore { hold.count } else { 1 };
            (
                held + if hold.is_held(now_ms) { count } else { 0 },
                maybe + if hold.may_be_held(now_ms) { count } else { 0 },
            )
        })
    }

    /// Returns whether the lock is held by somebody whose acquire was not seen, as when checks begin.
    fn is_strange(&self, turn: &Turn) -> bool {
        let is_known = self.holds.iter().any(|hold| hold.may_be_held(turn.call.now_ms));
        turn.lock.kind == Kind::Lock && turn.before.exists() && !is_known
    }

    /// Compares a request with the guarantees.
    pub fn judge(&mut self, turn: &Turn, verdict: &mut Verdict) {
        match turn.call.operation {
            ACQUIRE | TRY => match turn.answer {
                Answer::Granted => self.granted(turn, verdict),
                _ => self.refused(turn, verdict),
            },
            RELEASE => self.released(turn, verdict),
            EXTEND if turn.part.acquires && !self.holds[turn.call.owner].may_be_held(turn.call.now_ms) => {
                match turn.answer {
                    Answer::Extended => self.granted(turn, verdict),
                    _ => self.refused(turn, verdict),
                }
            }
            EXTEND => self.extended(turn, verdict),
            FORCE => self.forced(turn, verdict),
            LEAVE => self.waiters.retain(|waiter| waiter.owner != turn.call.owner),
            RESET => self.reset(turn, verdict),
            GET => self.told(turn, verdict),
            _ => {}
        }
        self.keeps_leases(turn, verdict);
    }

    fn granted(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let Turn { lock, call, .. } = *turn;
        let Call { owner, now_ms, lease_ms, .. } = *call;
        let own = self.holds[owner];
        let (held, _) = self.taken(lock, owner, now_ms);
        if !turn.is_skewed {
            if lock.kind == Kind::Semaphore {
                verdict.expect(S1, held + call.count <= self.permits, || {
                    format!("granted {} while {held} of {} are held", call.count, self.permits)
                });
            } else {
                let other = (0..OWNERS).find(|&other| other != owner && self.holds[other].is_held(now_ms));
                verdict.expect(M1, other.is_none(), || {
                    let other = other.unwrap_or(owner);
                    let until_ms = self.holds[other].until_ms;
                    let what = match until_ms {
                        i64::MAX => "the lock and has not released it".to_owned(),
                        _ => format!("a lease for {} ms more", until_ms - now_ms),
                    };
                    format!("granted while {} has {what}", owner_name(other))
                });
            }
            let again = lock.kind == Kind::Lock && own.is_held(now_ms);
            verdict.expect(A2, !again || lock.reentry != Reentry::Refused, || {
                "granted to its owner, and it is not re-entrant".to_owned()
            });
            self.serves_in_order(turn, verdict);
        }
        let is_again = own.is_held(now_ms) || own.may_be_held(now_ms) && turn.before.exists();
        if let Some(fence) = turn.numbers.fence {
            if is_again && lock.reentry != Reentry::Refused {
                verdict.expect(K2, fence == own.fence, || {
                    format!("the owner has the token {}, and is told {fence}", own.fence)
                });
            } else {
                verdict.expect(K1, fence > self.last_fence, || {
                    format!("token {fence} after {}", self.last_fence)
                });
            }
            self.last_fence = self.last_fence.max(fence);
        }
        let mut until_ms = if lock.lease == Lease::Endless { i64::MAX } else { now_ms + lease_ms };
        if lock.lease == Lease::Key {
            let ttl_ms = turn.after.ttl_ms;
            verdict.expect(G7, ttl_ms != FOREVER, || "the lock has no end".to_owned());
            // Who has it already may keep what is left.
            let kept_ms = if is_again { turn.before.ttl_ms } else { lease_ms };
            verdict.expect(
                T1,
                turn.is_skewed || ttl_ms == lease_ms || ttl_ms == kept_ms.max(lease_ms),
                || format!("asked for {lease_ms} ms, the key lives for {ttl_ms} ms"),
            );
            until_ms = now_ms + if is_again { ttl_ms.max(0) } else { lease_ms };
        }
        let counts = lock.reentry == Reentry::Counts && is_again || !lock.names_owners();
        self.holds[owner] = Hold {
            count: if counts { own.count.max(0) + call.count } else { call.count },
            until_ms,
            token: if call.operation == EXTEND { own.token } else { call.request + 1 },
            fence: turn.numbers.fence.unwrap_or(0),
            believes: true,
        };
        self.waiters.retain(|waiter| waiter.owner != owner);
    }

    /// Expects that nobody who still waits came earlier.
    fn serves_in_order(&self, turn: &Turn, verdict: &mut Verdict) {
        let Call { owner, now_ms, .. } = *turn.call;
        let own = self.waiters.iter().find(|waiter| waiter.owner == owner);
        let is_doubtful =
            own.is_some_and(|own| own.is_doubtful || own.asked_ms + turn.lock.waiter_ms <= now_ms);
        let before = self.waiters.iter().take_while(|waiter| waiter.owner != owner);
        let waits = |waiter: &&Waiter| !waiter.is_doubtful && waiter.asked_ms + turn.lock.waiter_ms > now_ms;
        if let Some(first) = before.filter(|waiter| waits(waiter)).find(|_| !is_doubtful) {
            verdict.expect(F1, turn.part.overtakes, || {
                let waits_ms = now_ms - first.asked_ms;
                format!(
                    "granted while {}, who came earlier, waits; it asked {waits_ms} ms ago",
                    owner_name(first.owner)
                )
            });
        }
    }

    fn refused(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let Turn { lock, call, .. } = *turn;
        let Call { owner, now_ms, .. } = *call;
        let own = self.holds[owner];
        let (_, maybe) = self.taken(lock, owner, now_ms);
        if lock.kind == Kind::Lock {
            verdict.expect(A1, turn.before == turn.after, || {
                format!("a refused request changed {} to {}", shown(turn.before), shown(turn.after))
            });
        }
        let is_excluded = match lock.kind {
            Kind::Semaphore => maybe + call.count > self.permits,
            _ => maybe > 0 || own.may_be_held(now_ms) && lock.reentry == Reentry::Refused,
        };
        let is_excluded = is_excluded || self.is_strange(turn);
        let waits = |waiter: &&Waiter| waiter.asked_ms + lock.waiter_ms >= now_ms;
        let own_place = self.waiters.iter().position(|waiter| waiter.owner == owner);
        let may_be_earlier = |(place, waiter): &(usize, &Waiter)| {
            waiter.owner != owner
                && (waiter.is_doubtful || own_place.is_none_or(|own_place| *place < own_place))
        };
        let earlier = || self.waiters.iter().enumerate().filter(may_be_earlier).map(|(_, waiter)| waiter);
        let has_dead = earlier().any(|waiter| !waits(&waiter));
        // Who may have lost its own place may be behind everybody.
        let is_lost = own_place.is_some_and(|place| {
            let own = &self.waiters[place];
            own.is_doubtful || own.asked_ms + lock.waiter_ms <= now_ms
        });
        let is_behind = earlier().any(|waiter| waits(&waiter))
            || is_lost && self.waiters.iter().any(|waiter| waiter.owner != owner && waits(&waiter))
            // Who does not wait may be refused while there is a queue at all.
            || call.operation == TRY && !self.waiters.is_empty();
        if !is_excluded && !is_behind && !turn.is_skewed {
            let who = if own.is_held(now_ms) { "though it holds the lock" } else { "though it is free" };
            let invariant = if has_dead { F2 } else { A2 };
            verdict.expect(invariant, false, || format!("answered {}, {who}", turn.reply));
        }
        if let Some(wait_ms) = turn.numbers.wait_ms
            && lock.lease != Lease::Endless
            && lock.kind != Kind::Queue
            && !turn.is_skewed
        {
            let ends =
                self.holds.iter().filter(|hold| hold.may_be_held(now_ms)).map(|hold| hold.until_ms - now_ms);
            let left_ms = ends.max().unwrap_or(0);
            let slack_ms = if turn.numbers.is_rounded { 1_000 } else { 1 };
            let is_true = match lock.kind {
                Kind::Lock => (wait_ms - left_ms).abs() <= slack_ms,
                _ => wait_ms <= left_ms + slack_ms,
            };
            verdict
                .expect(T2, is_true, || format!("told to wait {wait_ms} ms, the lease ends in {left_ms} ms"));
        }
        if lock.kind == Kind::Queue && call.operation == ACQUIRE {
            let waiter = Waiter { owner, asked_ms: now_ms, is_doubtful: is_lost };
            match own_place {
                Some(place) if !is_lost => self.waiters[place] = waiter,
                place => {
                    place.map(|place| self.waiters.remove(place));
                    self.waiters.push(waiter);
                }
            }
        }
    }

    fn released(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let Turn { lock, call, answer, .. } = *turn;
        let Call { owner, now_ms, .. } = *call;
        let own = self.holds[owner];
        let tells = turn.part.tells();
        if own.is_held(now_ms) {
            verdict.expect(U2, !tells || answer != Answer::NotHeld || turn.is_skewed, || {
                format!("the owner's release answered {}", turn.reply)
            });
            let left = match lock.reentry {
                Reentry::Counts => own.count - 1,
                _ if lock.kind == Kind::Semaphore => own.count - call.count,
                _ => 0,
            };
            let is_still_held = left > 0 && lock.kind == Kind::Lock;
            let told = turn.part.has(Answer::StillHeld).then_some(answer == Answer::StillHeld);
            verdict.expect(U2, told.is_none_or(|told| told == is_still_held), || {
                format!("answered {} with {left} holds left", turn.reply)
            });
            if lock.lease == Lease::Key && lock.kind == Kind::Lock {
                verdict.expect(A1, turn.after.exists() == is_still_held, || match is_still_held {
                    true => format!("the lock is free with {left} holds left"),
                    false => "the lock is still held".to_owned(),
                });
            }
            verdict.expect(M3, is_still_held || turn.is_told, || "nobody was told".to_owned());
            match left {
                1.. => self.holds[owner].count = left,
                _ => self.holds[owner].end(),
            }
        } else {
            let may_be_held = own.may_be_held(now_ms) || turn.is_skewed || self.is_strange(turn);
            verdict.expect(U1, !tells || answer == Answer::NotHeld || may_be_held, || {
                format!("answered {} to who does not hold the lock", turn.reply)
            });
            if lock.lease == Lease::Key && !may_be_held {
                verdict.expect(U1, turn.before == turn.after, || {
                    format!("{} became {}", shown(turn.before), shown(turn.after))
                });
            }
            match answer {
                Answer::StillHeld if own.count > 1 => self.holds[owner].count -= 1,
                _ => self.holds[owner].end(),
            }
        }
    }

    fn extended(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let Turn { lock, call, answer, .. } = *turn;
        let Call { owner, now_ms, lease_ms, .. } = *call;
        let own = self.holds[owner];
        let tells = turn.part.tells();
        let asked_ms = if turn.part.adds { own.until_ms - now_ms + lease_ms } else { lease_ms };
        if !own.may_be_held(now_ms) {
            let may_be_held = turn.is_skewed || self.is_strange(turn);
            verdict.expect(M5, !tells || answer == Answer::NotHeld || may_be_held, || {
                format!("answered {} to who does not hold the lock", turn.reply)
            });
            if lock.lease == Lease::Key && !may_be_held {
                verdict.expect(M4, turn.before == turn.after, || {
                    format!("{} became {}", shown(turn.before), shown(turn.after))
                });
            }
            return;
        }
        if own.is_held(now_ms) {
            verdict.expect(M5, !tells || answer == Answer::Extended || turn.is_skewed, || {
                format!("answered {} to who holds the lock", turn.reply)
            });
            if lock.lease == Lease::Key {
                let ttl_ms = turn.after.ttl_ms;
                verdict.expect(T1, ttl_ms == asked_ms || turn.is_skewed, || {
                    format!("asked for {asked_ms} ms, the key lives for {ttl_ms} ms")
                });
            }
        }
        if answer == Answer::Extended {
            self.holds[owner].until_ms = now_ms.saturating_add(asked_ms);
        }
    }

    fn forced(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let now_ms = turn.call.now_ms;
        let is_held = self.holds.iter().any(|hold| hold.is_held(now_ms));
        verdict.expect(U2, !(is_held && turn.part.tells() && turn.answer == Answer::NotHeld), || {
            format!("the lock was held, and the answer is {}", turn.reply)
        });
        if turn.lock.lease == Lease::Key {
            verdict.expect(A1, !turn.after.exists(), || "the lock is still held".to_owned());
        }
        verdict.expect(M3, !is_held || turn.is_told, || "nobody was told".to_owned());
        self.holds.iter_mut().for_each(Hold::end);
    }

    fn reset(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let is_set = self.permits > 0;
        if turn.part.has(Answer::Refused) {
            verdict.expect(Q1, (turn.answer == Answer::Refused) == is_set, || {
                format!("answered {}, and there were {} permits", turn.reply, self.permits)
            });
            if turn.answer == Answer::Refused {
                return;
            }
        }
        let count = if turn.part.uses(Slot::Count) { turn.call.count } else { turn.lock.permits };
        verdict.expect(Q2, turn.is_told, || "nobody was told".to_owned());
        *self = Holders { permits: count, last_fence: self.last_fence, ..Holders::default() };
    }

    fn told(&mut self, turn: &Turn, verdict: &mut Verdict) {
        let now_ms = turn.call.now_ms;
        let sum = |counts: &dyn Fn(&Hold) -> bool| -> i64 {
            self.holds.iter().filter(|hold| counts(hold)).map(|hold| hold.count).sum()
        };
        let least = self.permits - sum(&|hold| hold.may_be_held(now_ms));
        let most = self.permits - sum(&|hold| hold.is_held(now_ms));
        let told = turn.numbers.left.unwrap_or(0);
        verdict.expect(V1, (least..=most).contains(&told) || turn.is_skewed, || {
            format!("answered {}, and {most} of {} are free", turn.reply, self.permits)
        });
    }

    /// Expects that the key lives as long as every lease that was granted.
    fn keeps_leases(&self, turn: &Turn, verdict: &mut Verdict) {
        if turn.lock.lease != Lease::Key || turn.is_skewed {
            return;
        }
        let now_ms = turn.call.now_ms;
        for (owner, hold) in self.holds.iter().enumerate().filter(|(_, hold)| hold.is_held(now_ms)) {
            let left_ms = hold.until_ms - now_ms;
            verdict.expect(M2, turn.after.ttl_ms >= left_ms, || {
                format!("{} has a lease for {left_ms} ms more, {}", owner_name(owner), shown(turn.after))
            });
        }
    }
}

fn shown(key: &super::model::Snapshot) -> String {
    match key.exists() {
        true => format!("the key = {}, {} ms", key.value, key.ttl_ms),
        false => "no key".to_owned(),
    }
}
