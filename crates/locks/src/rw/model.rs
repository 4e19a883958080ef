//! The model of a read/write lock.

use super::names::{ALL_HOLDS, HOLD_DEPTH, HOLDS, HoldNames, MODE, OWNER_KEY, WRITER, old_holds};
use super::roles;
use crate::binding::{MESSAGE, OWNER};
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::rlock;
use crate::role::Role;
use crate::script_set::ScriptSet;
use crate::view::{FOREVER, MISSING, View};
use redlatch_core::num::parse_i64;

const READ_ACQUIRE: usize = 0;
const WRITE_ACQUIRE: usize = 1;
const READ_UNLOCK: usize = 2;
const WRITE_UNLOCK: usize = 3;
const READ_RENEW: usize = 4;
const WRITE_RENEW: usize = 5;
const READ_FORCE_UNLOCK: usize = 6;
const WRITE_FORCE_UNLOCK: usize = 7;
const READ_IS_LOCKED: usize = 8;

const OPERATIONS: &[Operation] = &[
    Operation::acquire("read.acquire", Sends::Script(roles::READ_ACQUIRE)).defining().retried_with_replicas(),
    Operation::acquire("write.acquire", Sends::Script(roles::WRITE_ACQUIRE))
        .defining()
        .as_writer()
        .retried_with_replicas(),
    Operation::new("read.unlock", Sends::Script(roles::READ_UNLOCK)).retried(),
    Operation::new("write.unlock", Sends::Script(roles::WRITE_UNLOCK)).as_writer().retried(),
    Operation::renewal("read.renew", Sends::Either(roles::READ_RENEW, rlock::roles::RENEW)),
    Operation::renewal("write.renew", Sends::Script(rlock::roles::RENEW)).as_writer(),
    Operation::new("read.force_unlock", Sends::Script(roles::READ_FORCE_UNLOCK)),
    Operation::new("write.force_unlock", Sends::Script(roles::WRITE_FORCE_UNLOCK)).as_writer(),
    Operation::new("read.is_locked", Sends::ScriptOrMode(roles::READ_IS_LOCKED)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Free,
    Read,
    Write,
    /// No client knows this mode.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    mode: Mode,
    reads: [i64; OWNERS],
    writes: [i64; OWNERS],
    fields: usize,
    ttl_ms: i64,
    /// The time to live, in ms, of the key of each hold.
    holds_ms: [[i64; HOLD_DEPTH]; OWNERS],
}

const FREE: State = State {
    mode: Mode::Free,
    reads: [0; OWNERS],
    writes: [0; OWNERS],
    fields: 0,
    ttl_ms: MISSING,
    holds_ms: [[MISSING; HOLD_DEPTH]; OWNERS],
};

impl State {
    /// Returns whether these are the holds, and the mode is that of a lock with them. Each owner has a field, and so has
    /// the mode.
    fn has(&self, reads: [i64; OWNERS], writes: [i64; OWNERS]) -> bool {
        let held = |holds: [i64; OWNERS]| holds.iter().filter(|count| **count > 0).count();
        let (readers, writers) = (held(reads), held(writes));
        let mode = match (readers, writers) {
            (0, 0) => Mode::Free,
            (_, 0) => Mode::Read,
            _ => Mode::Write,
        };
        let fields = if mode == Mode::Free { 0 } else { readers + writers + 1 };
        self.reads == reads && self.writes == writes && self.mode == mode && self.fields == fields
    }

    /// Returns the rest of the longest of these read holds, in ms; `None` if a reader has more of them than are examined.
    fn longest_hold_ms(&self, reads: [i64; OWNERS]) -> Option<i64> {
        let counts = reads.map(|count| count.max(0) as usize);
        let left =
            self.holds_ms.iter().zip(counts).flat_map(|(holds, count)| &holds[..HOLD_DEPTH.min(count)]);
        let longest_ms = left.copied().max().unwrap_or(MISSING);
        counts.iter().all(|count| *count <= HOLD_DEPTH).then_some(longest_ms)
    }
}

/// The leases that an owner was granted, and the lock that it waits for.
#[derive(Clone, Debug, Default)]
struct Claim {
    /// The end of each read hold, in the order of the grants.
    reads_ms: Vec<i64>,
    /// The end of the write hold; 0 if there is none.
    write_ms: i64,
    /// The leases in its last acquires, which unlock and renewal request again.
    read_lease_ms: i64,
    write_lease_ms: i64,
    waits: Option<Mode>,
}

/// A read/write lock.
#[derive(Clone)]
pub struct ReadWriteLock {
    names: Names,
    hold_names: HoldNames,
    /// The messages of a write unlock and of a forced one: 0 wakes one waiter, 1 wakes all readers.
    write_message: &'static str,
    write_force_message: &'static str,
    /// Whether a script tells if readers hold the lock.
    asks_by_script: bool,
    /// The keys of each owner's holds; empty in releases without such keys.
    hold_keys: Vec<Vec<String>>,
    before: State,
    claims: [Claim; OWNERS],
}

/// Expects that these are the holds now.
fn expect_holds(change: &mut Change<State>, reads: [i64; OWNERS], writes: [i64; OWNERS]) {
    let Change { before, after, .. } = *change;
    change.expect(A1, after.has(reads, writes), || {
        format!(
            "reads {:?}, writes {:?} became {:?}, {:?} in mode {:?}",
            shown(&before.reads),
            shown(&before.writes),
            shown(&after.reads),
            shown(&after.writes),
            after.mode
        )
    });
}

impl ReadWriteLock {
    /// Creates a model for the scripts of a release.
    pub fn new(scripts: &ScriptSet) -> ReadWriteLock {
        let lock = "my:lock";
        let mut hold_names = HoldNames::new(lock);
        let uses = |role: Role, word: &str| {
            scripts
                .script(role)
                .is_some_and(|script| script.uses.iter().any(|used| used.eq_ignore_ascii_case(word)))
        };
        // Some releases took the text before the first colon as the prefix of all holds' keys. Later releases take the
        // text before the owner.
        if uses(roles::READ_UNLOCK, "split") && !uses(roles::READ_UNLOCK, "append") {
            hold_names.all_holds = "{my".to_owned();
        }
        let message = |role: Role| {
            let wakes_all = uses(role, "readUnlockMessage") || uses(role, "READ_UNLOCK_MESSAGE");
            if wakes_all { "1" } else { "0" }
        };
        let text = scripts.script(roles::READ_ACQUIRE).map_or("", |script| &script.text);
        let by_key =
            scripts.script(roles::READ_ACQUIRE).is_some_and(|script| script.binding.keys.contains(&HOLDS));
        let prefix = |owner: usize| match (by_key, text.contains(":rwlock_timeout:")) {
            (true, _) => Some(hold_names.holds[owner].clone()),
            (false, true) => Some(old_holds(lock, owner)),
            (false, false) => None,
        };
        let keys = |prefix: String| (1..=HOLD_DEPTH).map(|n| format!("{prefix}:{n}")).collect();
        ReadWriteLock {
            write_message: message(roles::WRITE_UNLOCK),
            write_force_message: message(roles::WRITE_FORCE_UNLOCK),
            hold_keys: (0..OWNERS).filter_map(prefix).map(keys).collect(),
            asks_by_script: scripts.script(roles::READ_IS_LOCKED).is_some(),
            before: FREE,
            claims: Default::default(),
            names: Names::new(lock, "redisson_rwlock"),
            hold_names,
        }
    }

    fn state(&self, view: View) -> State {
        let mut state = FREE;
        for (owner, keys) in self.hold_keys.iter().enumerate() {
            for (hold, key) in keys.iter().enumerate() {
                state.holds_ms[owner][hold] = view.ttl_ms(key.as_bytes());
            }
        }
        let Some(hash) = view.hash(self.names.lock.as_bytes()) else { return state };
        state.mode = match hash.get(MODE, view.now().wall_ms()) {
            Some(b"write") => Mode::Write,
            Some(b"read") => Mode::Read,
            _ => Mode::Unknown,
        };
        state.fields = hash.len();
        state.reads = OWNER_IDS.map(|owner| view.count(hash, owner.as_bytes()));
        state.writes =
            std::array::from_fn(|owner| view.count(hash, self.hold_names.writers[owner].as_bytes()));
        state.ttl_ms = view.ttl_ms(self.names.lock.as_bytes());
        state
    }

    /// Returns whether the key lives as long as all granted leases.
    fn are_kept(&self, ttl_ms: i64, now_ms: i64) -> bool {
        ttl_ms >= self.longest_ms(now_ms)
    }

    /// Returns the rest of the longest lease, in ms.
    fn longest_ms(&self, now_ms: i64) -> i64 {
        let ends =
            self.claims.iter().flat_map(|claim| claim.reads_ms.iter().copied().chain([claim.write_ms]));
        ends.map(|end| end - now_ms).filter(|left| *left > 0).max().unwrap_or(MISSING)
    }

    fn expect_kept(&self, kept: bool, change: &mut Change<State>) {
        let Change { call, before, after, .. } = *change;
        // Reports only the operation that breaks this.
        let broken = kept && !self.are_kept(after.ttl_ms, call.now_ms);
        change.expect(M2, !broken, || {
            let longest = self.longest_ms(call.now_ms);
            format!(
                "a lease runs for {longest} ms more, the key lives for {} ms (before: {} ms)",
                after.ttl_ms, before.ttl_ms
            )
        });
    }

    /// Records the lease that the owner was granted.
    fn claim(&mut self, call: &Call) {
        let end_ms = call.now_ms + call.lease_ms;
        let claim = &mut self.claims[call.owner];
        claim.waits = None;
        if call.operation == WRITE_ACQUIRE {
            claim.write_lease_ms = call.lease_ms;
            claim.write_ms = claim.write_ms.max(end_ms);
        } else {
            claim.read_lease_ms = call.lease_ms;
            claim.reads_ms.push(end_ms);
        }
    }

    fn acquired(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, lease_ms, now_ms, .. } = *call;
        let write = call.operation == WRITE_ACQUIRE;
        let own_write = before.mode == Mode::Write && before.writes[owner] > 0;
        let may = before.mode == Mode::Free || own_write || !write && before.mode == Mode::Read;
        let granted = out.reply == Reply::Nil;
        let kept = self.are_kept(before.ttl_ms, now_ms);
        if granted {
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let claim = &self.claims[other];
                let read_ms = claim.reads_ms.iter().copied().max().unwrap_or(0);
                let end = if write { claim.write_ms.max(read_ms) } else { claim.write_ms };
                change.expect(M1, end <= now_ms, || {
                    let kind = if claim.write_ms >= end { "write" } else { "read" };
                    format!(
                        "granted while {} has a {kind} lease for {} ms more",
                        owner_name(other),
                        end - now_ms
                    )
                });
            }
        }
        change.expect(A2, granted == may, || match granted {
            true => format!("granted in mode {:?}", before.mode),
            false => "refused, but nobody else is in the way".to_owned(),
        });
        if !granted {
            let others = (0..OWNERS).filter(|&other| other != owner).map(|other| &self.claims[other]);
            let runs = others.into_iter().any(|claim| {
                let reads = claim.reads_ms.iter().any(|end| *end >= now_ms);
                claim.write_ms >= now_ms || reads && before.mode == Mode::Read
            });
            if change.is_strict() {
                change.expect(A2, runs, || {
                    format!("refused in mode {:?}, but no lease runs that is in the way", before.mode)
                });
            }
            change.expect(T2, out.reply == Reply::Int(before.ttl_ms), || {
                format!("told {}, held for {} ms more", out.reply, before.ttl_ms)
            });
            change
                .expect(A1, before == after, || format!("a refused acquire changed {before:?} to {after:?}"));
            self.claims[owner].waits = Some(if write { Mode::Write } else { Mode::Read });
            return;
        }
        let (mut reads, mut writes) = (before.reads, before.writes);
        if write {
            writes[owner] += 1
        } else {
            reads[owner] += 1
        }
        expect_holds(change, reads, writes);
        self.claim(call);
        change.expect(M2, !kept || self.are_kept(after.ttl_ms, now_ms), || {
            let longest = self.longest_ms(now_ms);
            format!(
                "a lease runs for {longest} ms more, the key lives for {} ms (before: {} ms)",
                after.ttl_ms, before.ttl_ms
            )
        });
        change.expect(G7, after.ttl_ms != FOREVER, || "the lock has no end".to_owned());
        // The leases of a writer add up.
        let rest_ms = before.ttl_ms.max(0);
        let most_ms = if write { rest_ms + lease_ms } else { rest_ms.max(lease_ms) };
        change.expect(T1, (lease_ms..=most_ms).contains(&after.ttl_ms), || {
            format!(
                "asked for {lease_ms} ms, {rest_ms} ms were left, and the key lives for {} ms",
                after.ttl_ms
            )
        });
        if change.is_strict() {
            let most = before.ttl_ms.max(lease_ms);
            change.expect(G7, after.ttl_ms <= most, || {
                format!(
                    "asked for {lease_ms} ms, {} ms were left, and the key lives for {} ms",
                    before.ttl_ms, after.ttl_ms
                )
            });
        }
        let hold = reads[owner] as usize;
        if !write && !self.hold_keys.is_empty() && hold <= HOLD_DEPTH {
            let hold_ms = after.holds_ms[owner][hold - 1];
            change.expect(RW5, hold_ms == lease_ms, || {
                format!("the key of hold {hold} lives for {hold_ms} ms instead of {lease_ms} ms")
            });
        }
    }

    fn read_unlocked(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, now_ms, .. } = *call;
        if before.reads[owner] == 0 {
            self.claims[owner].reads_ms.clear();
            return self.expect_untouched(change);
        }
        if change.is_strict() && !self.hold_keys.is_empty() {
            let mine = &before.holds_ms[owner][..HOLD_DEPTH.min(before.reads[owner] as usize)];
            let are_all = before.reads[owner] <= HOLD_DEPTH as i64;
            let ended = are_all && mine.iter().all(|left_ms| *left_ms == MISSING);
            change.expect(U1, !ended || out.reply == Reply::Nil, || {
                format!("answered {} to a reader whose leases have ended", out.reply)
            });
        }
        let kept = self.are_kept(before.ttl_ms, now_ms);
        self.claims[owner].reads_ms.pop();
        let mut reads = before.reads;
        reads[owner] -= 1;
        if before.mode == Mode::Read
            && !self.hold_keys.is_empty()
            && before.longest_hold_ms(reads).is_some_and(|left_ms| left_ms <= 0)
        {
            // All other holds have expired; whether the lock still counts them makes no difference.
            let is_free = after.mode == Mode::Free;
            change.expect(U2, out.reply == Reply::Int(is_free.into()), || {
                format!("answered {}, and the mode is {:?}", out.reply, after.mode)
            });
            if is_free {
                self.expect_told(change);
            }
            return;
        }
        expect_holds(change, reads, before.writes);
        if reads == [0; OWNERS] && before.writes == [0; OWNERS] {
            change.expect(U2, out.reply == Reply::Int(1), || format!("free, but answered {}", out.reply));
            self.expect_told(change);
            let left_ms = after.holds_ms[owner][0];
            change.expect(RW5, left_ms == MISSING, || {
                format!("the lock is free, and the key of its hold lives for {left_ms} ms")
            });
        } else {
            change
                .expect(U2, out.reply == Reply::Int(0), || format!("still held, but answered {}", out.reply));
            self.expect_kept(kept, change);
            if let Some(longest_ms) = after
                .longest_hold_ms(reads)
                .filter(|_| before.mode != Mode::Write && !self.hold_keys.is_empty())
            {
                change.expect(T1, after.ttl_ms == longest_ms, || {
                    let ttl_ms = after.ttl_ms;
                    format!("the longest hold lasts for {longest_ms} ms more, the key lives for {ttl_ms} ms")
                });
            }
            let mut holds_ms = before.holds_ms;
            if let Some(hold) = holds_ms[owner].get_mut(reads[owner] as usize) {
                *hold = MISSING;
            }
            change.expect(RW5, after.holds_ms == holds_ms, || {
                format!("the keys of holds went from {:?} to {:?}", before.holds_ms, after.holds_ms)
            });
        }
    }

    fn write_unlocked(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, now_ms, lease_ms, .. } = *call;
        if before.writes[owner] == 0 {
            self.claims[owner].write_ms = 0;
            return self.expect_untouched(change);
        }
        let kept = self.are_kept(before.ttl_ms, now_ms);
        let mut writes = before.writes;
        writes[owner] -= 1;
        // If holds are left, the lease restarts with its last requested length.
        self.claims[owner].write_ms = if writes[owner] > 0 { now_ms + lease_ms } else { 0 };
        expect_holds(change, before.reads, writes);
        self.expect_kept(kept, change);
        let lives = match writes[owner] {
            0 => after.mode == Mode::Free || after.ttl_ms == before.ttl_ms,
            _ => after.ttl_ms == lease_ms,
        };
        change.expect(T1, lives, || {
            format!("with a lease of {lease_ms} ms, {} ms became {} ms", before.ttl_ms, after.ttl_ms)
        });
        change.expect(U2, out.reply == Reply::Int((writes[owner] == 0) as i64), || {
            format!("answered {} with {} write holds left", out.reply, writes[owner])
        });
        if writes[owner] == 0 && before.reads[owner] == 0 {
            self.expect_told(change);
        }
    }

    fn expect_untouched(&self, change: &mut Change<State>) {
        let Change { out, before, after, .. } = *change;
        change.expect(U1, out.reply == Reply::Nil, || {
            format!("answered {} to who does not hold the lock", out.reply)
        });
        change.expect(U1, before == after, || format!("{before:?} became {after:?}"));
        // The leases have ended without a message; the waiters need not sleep on.
        if before.mode == Mode::Free {
            self.expect_told(change);
        }
    }

    fn expect_told(&self, change: &mut Change<State>) {
        let Change { out, .. } = *change;
        change.expect(M3, is_told(out.messages, &self.names.channel), || {
            "the lock is free and nobody was told".to_owned()
        });
    }

    fn renewed(&mut self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let Call { owner, lease_ms, now_ms, .. } = *call;
        let read = call.operation == READ_RENEW;
        let held = if read { before.reads[owner] } else { before.writes[owner] };
        expect_renewal_told(change.verdict, out.reply, held > 0);
        change.expect(
            A1,
            after.mode == before.mode && after.reads == before.reads && after.writes == before.writes,
            || "a renewal changed the holds".to_owned(),
        );
        if held == 0 {
            change.expect(M4, before == after, || {
                format!(
                    "who does not hold the lock changed its lease from {} to {} ms",
                    before.ttl_ms, after.ttl_ms
                )
            });
            return;
        }
        change.expect(T1, (lease_ms..=before.ttl_ms.max(lease_ms)).contains(&after.ttl_ms), || {
            format!("renewed for {lease_ms} ms, the key lives for {} ms", after.ttl_ms)
        });
        self.expect_kept(self.are_kept(before.ttl_ms, now_ms), change);
        if read && !self.hold_keys.is_empty() {
            let mine = &after.holds_ms[owner][..HOLD_DEPTH.min(held as usize)];
            // A hold that has expired is not restored.
            let living =
                mine.iter().zip(before.holds_ms[owner]).filter(|(_, before_ms)| *before_ms != MISSING);
            let mut living = living.map(|(after_ms, _)| *after_ms);
            change.expect(RW1, living.all(|ttl_ms| ttl_ms == lease_ms), || {
                format!("renewed for {lease_ms} ms, the keys of the owner's holds live for {mine:?} ms")
            });
        }
        for other in (0..OWNERS).filter(|&other| other != owner) {
            change.expect(RW2, after.holds_ms[other] == before.holds_ms[other], || {
                format!(
                    "holds of {} went from {:?} to {:?} ms",
                    owner_name(other),
                    before.holds_ms[other],
                    after.holds_ms[other]
                )
            });
        }
        let claim = &mut self.claims[owner];
        if read {
            // A hold that has expired is not restored.
            let living = claim.reads_ms.iter_mut().filter(|end| **end >= now_ms);
            living.for_each(|end| *end = now_ms + lease_ms);
        } else {
            claim.write_ms = now_ms + lease_ms;
        }
    }

    fn force_unlocked(&mut self, mode: Mode, change: &mut Change<State>) {
        let Change { out, before, after, .. } = *change;
        let unlocks = before.mode == mode;
        change.expect(U2, out.reply == Reply::Int(unlocks as i64), || {
            format!("answered {} in mode {:?}", out.reply, before.mode)
        });
        if !unlocks {
            return change.expect(A1, before == after, || format!("{before:?} became {after:?}"));
        }
        change.expect(A1, after.mode == Mode::Free, || "the lock is still held".to_owned());
        self.expect_told(change);
        for claim in &mut self.claims {
            claim.reads_ms.clear();
            claim.write_ms = 0;
        }
    }

    /// Expects a message for the waiters who may continue now.
    fn expect_woken(&self, change: &mut Change<State>) {
        let Change { call, out, before, after, .. } = *change;
        let may = |state: State, wants: Mode| {
            state.mode == Mode::Free || (wants, state.mode) == (Mode::Read, Mode::Read)
        };
        let waiting = self.claims.iter().enumerate().filter(|(owner, _)| *owner != call.owner);
        let woken = waiting
            .filter(|(_, claim)| claim.waits.is_some_and(|wants| !may(before, wants) && may(after, wants)));
        let (mut readers, mut writers) = (0, 0);
        for (_, claim) in woken {
            match claim.waits {
                Some(Mode::Read) => readers += 1,
                _ => writers += 1,
            }
        }
        let told = is_told(out.messages, &self.names.channel);
        change.expect(RW3, readers + writers == 0 || told, || {
            format!("{readers} readers and {writers} writers may go on and nobody was told")
        });
        let all = out.messages.iter().any(|message| message.number() == Some(1));
        change.expect(RW4, readers < 2 || out.messages.is_empty() || all, || {
            format!("{readers} readers may go on, the message wakes one")
        });
    }
}

impl Model for ReadWriteLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        matches!(call.operation, READ_ACQUIRE | WRITE_ACQUIRE) && matches!(reply, Reply::Int(_))
    }

    fn has_key(&self, key: &[u8]) -> bool {
        let is_hold = |keys: &Vec<String>| {
            let prefix = keys[0].trim_end_matches('1').as_bytes();
            key.strip_prefix(prefix).is_some_and(|number| parse_i64(number).is_some())
        };
        key == self.names.lock.as_bytes() || self.hold_keys.iter().any(is_hold)
    }

    fn form(&self) -> Form {
        Form::OwnersWithMode
    }

    fn hold_prefixes(&self, owner: usize) -> Vec<String> {
        vec![self.hold_names.holds[owner].clone(), old_holds(&self.names.lock, owner)]
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            HOLDS => out.text(&self.hold_names.holds[call.owner]),
            ALL_HOLDS => out.text(&self.hold_names.all_holds),
            WRITER => out.text(&self.hold_names.writers[call.owner]),
            OWNER | OWNER_KEY if OPERATIONS[call.operation].as_writer => {
                out.text(&self.hold_names.writers[call.owner]);
            }
            OWNER_KEY => out.text(OWNER_IDS[call.owner]),
            MESSAGE if call.operation == WRITE_UNLOCK => out.text(self.write_message),
            MESSAGE if call.operation == WRITE_FORCE_UNLOCK => out.text(self.write_force_message),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn reset(&mut self) {
        self.claims = Default::default();
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let claim = &self.claims[call.owner];
        match call.operation {
            READ_ACQUIRE | WRITE_ACQUIRE => call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()],
            // Only leases of the default length are renewed.
            READ_RENEW => {
                call.lease_ms = WATCHDOG_MS;
                return !claim.reads_ms.is_empty() && claim.read_lease_ms == WATCHDOG_MS;
            }
            WRITE_RENEW => {
                call.lease_ms = WATCHDOG_MS;
                return claim.write_ms > 0 && claim.write_lease_ms == WATCHDOG_MS;
            }
            _ => call.lease_ms = if claim.write_lease_ms > 0 { claim.write_lease_ms } else { WATCHDOG_MS },
        }
        true
    }

    fn before(&mut self, call: &Call, view: View) {
        self.before = self.state(view);
        // Holds that expired with the key belong to nobody.
        if self.before.mode == Mode::Free {
            for claim in &mut self.claims {
                claim.reads_ms.retain(|end| *end > call.now_ms);
            }
        }
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            if matches!(call.operation, READ_ACQUIRE | WRITE_ACQUIRE) && out.reply == Reply::Nil {
                self.claim(call);
            }
            return;
        }
        let (before, after) = (self.before, self.state(view));
        let change = &mut Change { call, out, before, after, verdict };
        match call.operation {
            READ_ACQUIRE | WRITE_ACQUIRE => self.acquired(change),
            READ_UNLOCK => self.read_unlocked(change),
            WRITE_UNLOCK => self.write_unlocked(change),
            READ_FORCE_UNLOCK => self.force_unlocked(Mode::Read, change),
            WRITE_FORCE_UNLOCK => self.force_unlocked(Mode::Write, change),
            READ_IS_LOCKED => {
                let is_locked = before.reads != [0; OWNERS];
                let told = match out.reply {
                    Reply::Int(told) => Some(told == 1),
                    // The mode, in releases without a script.
                    reply if !self.asks_by_script => Some(reply == Reply::Text(b"read")),
                    _ => None,
                };
                change.expect(V1, told == Some(is_locked), || {
                    format!("answered {} with reads {:?}", out.reply, shown(&before.reads))
                });
            }
            _ => self.renewed(change),
        }
        self.expect_woken(change);
    }

    fn closing(&self) -> &'static [usize] {
        &[WRITE_ACQUIRE, WRITE_UNLOCK]
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        into.extend(
            self.claims.iter().flat_map(|claim| claim.reads_ms.iter().copied().chain([claim.write_ms])),
        );
    }
}
