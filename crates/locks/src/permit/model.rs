//! The model of a semaphore whose permits have leases.

use smallvec::SmallVec;

use super::names::{LEASE_DEADLINE, NEVER, NEVER_MS, PERMIT, PERMITS, TIMEOUTS, permit_id, permit_number};
use super::roles;
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::script_set::ScriptSet;
use crate::view::{FOREVER, View};

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
    Operation::new("try_set", Sends::Script(roles::TRY_SET)),
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried(),
    Operation::new("release", Sends::Script(roles::RELEASE)).retried(),
    Operation::new("release_all", Sends::Script(roles::RELEASE_ALL)),
    Operation::new("available", Sends::ScriptOrGet(roles::AVAILABLE)),
    Operation::new("set", Sends::Script(roles::SET)),
    Operation::new("add", Sends::Script(roles::ADD)),
    Operation::expiry("expire", Sends::Pexpire),
    Operation::new("total", Sends::Script(roles::TOTAL)),
    Operation::new("held", Sends::Script(roles::ACQUIRED)),
    Operation::new("lease", Sends::Script(roles::LEASE)),
    Operation::new("update_lease", Sends::Script(roles::UPDATE_LEASE)),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    free: Option<i64>,
    free_ttl_ms: i64,
    held_ttl_ms: i64,
    /// The held permits with the ends of their leases.
    held: SmallVec<[([u8; 16], i64); 8]>,
}

impl State {
    fn ended(&self, now_ms: i64) -> i64 {
        self.held.iter().filter(|(_, end)| *end <= now_ms).count() as i64
    }

    /// Returns when the next permit ends, unless none does.
    fn next_end(&self) -> Option<i64> {
        self.held.iter().map(|(_, end)| *end).min().filter(|end| *end != NEVER_MS)
    }

    fn end_of(&self, permit: u64) -> Option<i64> {
        let id = permit_id(permit);
        self.held.iter().find(|(held, _)| *held == id).map(|(_, end)| *end)
    }
}

/// The permits that a request names.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// The first permit; the call says how many follow.
    permit: u64,
    /// Whether the request names the same permit repeatedly.
    repeats: bool,
}

/// Iterates over the permits that a request names.
fn permits_of(asked: Asked, call: &Call) -> impl Iterator<Item = u64> + Clone {
    asked.permit..asked.permit + call.count.max(0) as u64
}

/// A semaphore whose permits have leases.
#[derive(Clone)]
pub struct PermitSemaphore {
    names: Names,
    /// The key of the sorted set of held permits.
    timeouts: String,
    before: State,
    /// How many permits clients have set and added; `None` if they have set none, or the semaphore has expired.
    total: Option<i64>,
    /// The permits that were granted.
    granted: Vec<u64>,
    /// The number of the next permit.
    next: u64,
    /// The permits in each owner's last request.
    asked: [Asked; OWNERS],
    /// Whether the number of available permits is not only read.
    available_purges: bool,
    /// Whether a permit without an end was granted.
    is_endless: bool,
    /// Whether a client can acquire several permits at once.
    takes_several: bool,
}

impl PermitSemaphore {
    /// Creates a model for the scripts of a release.
    pub fn new(scripts: &ScriptSet) -> PermitSemaphore {
        let acquire = scripts.script(roles::ACQUIRE);
        PermitSemaphore {
            available_purges: scripts.script(roles::AVAILABLE).is_some(),
            takes_several: acquire.is_some_and(|script| script.binding.args.contains(&PERMITS)),
            names: Names::new("my:semaphore", "redisson_sc"),
            timeouts: "{my:semaphore}:timeout".to_owned(),
            before: State::default(),
            total: None,
            granted: Vec::new(),
            next: 0,
            asked: Default::default(),
            is_endless: false,
        }
    }

    fn state(&self, view: View) -> State {
        let lock = self.names.lock.as_bytes();
        let timeouts = self.timeouts.as_bytes();
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

    /// Returns whether free and held permits add up to the number that was set.
    fn adds_up(&self, state: &State) -> bool {
        match self.total {
            Some(total) => state.free.is_none_or(|free| free + state.held.len() as i64 == total),
            None => state.free.is_none(),
        }
    }

    /// Expects that an operation has removed this many expired permits, if it removes any in this release.
    fn check_purged(&self, change: &mut Change<&State>, ended: i64) {
        let Change { call, before, after, .. } = *change;
        let granted = match call.operation {
            ACQUIRE => permits_of(self.asked[call.owner], call)
                .filter(|permit| after.end_of(*permit).is_some())
                .count(),
            _ => 0,
        };
        let (was, is) = (before.held.len() as i64 - ended, after.held.len() as i64 - granted as i64);
        let purges = call.operation != AVAILABLE || self.available_purges;
        change.expect(P8, was == is || !purges, || {
            format!("{ended} permits have expired, and {is} are held instead of {was}")
        });
    }

    /// Expects that waiters are told of the permits that an operation frees.
    fn check_told(&self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let (was, is) = (before.free.unwrap_or(0), after.free.unwrap_or(0));
        let freed = match call.operation {
            TRY_SET | SET | ADD => is - was,
            EXPIRE => return,
            // What an acquire takes after expired permits were freed does not count.
            _ => before.held.iter().filter(|held| !after.held.contains(held)).count() as i64,
        };
        let freed = if call.operation == UPDATE_LEASE { before.ended(call.clock_ms()) } else { freed };
        let due = freed.min(was + freed);
        let told = out.messages.iter().filter(|message| message.channel == self.names.channel.as_bytes());
        let told: i64 = told.filter_map(Message::number).sum();
        let least = out.messages.iter().filter_map(Message::number).min().unwrap_or(1);
        change.expect(Q3, least >= 0, || format!("waiters were told {least}"));
        change.expect(Q4, least != 0, || "waiters were told 0".to_owned());
        change.expect(P6, call.operation != ADD || call.count != 0 || out.messages.is_empty(), || {
            "nothing was added, and yet a message was sent".to_owned()
        });
        change.expect(Q2, due <= 0 || told > 0, || {
            format!("{freed} permits are free again, and nobody was told")
        });
        // The client lets as many of its waiters ask again as the message says.
        change.expect(Q4, due <= 0 || told >= due, || {
            format!("{freed} permits are free again, and waiters were told {told}")
        });
    }

    fn released(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let asked = self.asked[call.owner];
        let clock_ms = call.clock_ms();
        self.granted.retain(|permit| *permit != asked.permit);
        let end = before.end_of(asked.permit);
        match end {
            Some(end) if end <= clock_ms => change.expect(P3, out.reply == Reply::Int(0), || {
                format!("the permit ended {} ms ago, and its release succeeded", clock_ms - end)
            }),
            Some(_) => change.expect(U2, out.reply == Reply::Int(1), || {
                format!("a permit that is held was released, and the answer is {}", out.reply)
            }),
            None => {
                change.expect(U1, out.reply == Reply::Int(0), || {
                    format!("answered {} for a permit that is not held", out.reply)
                });
                change.expect(U1, before == after, || format!("{before:?} became {after:?}"));
            }
        }
        change.expect(A1, after.end_of(asked.permit).is_none(), || "the permit is still held".to_owned());
        let others =
            |state: &State| state.held.iter().filter(|(id, _)| *id != permit_id(asked.permit)).count();
        change.expect(A1, others(before) == others(after), || "another permit is no longer held".to_owned());
    }

    fn released_all(&mut self, change: &mut Change<&State>) {
        let Change { call, out, before, after, .. } = *change;
        let asked = self.asked[call.owner];
        let clock_ms = call.clock_ms();
        let named = if asked.repeats { 1 } else { call.count as u64 };
        let permits = || asked.permit..asked.permit + named;
        let good = |permit: u64| before.end_of(permit).is_some_and(|end| end > clock_ms);
        if permits().all(good) {
            self.granted.retain(|permit| !permits().contains(permit));
            if asked.repeats {
                let answered_as_failure = out.reply != Reply::Int(call.count);
                let released = after.end_of(asked.permit).is_none();
                return change.expect(P7, !(released && answered_as_failure), || {
                    format!("the permit is released, and the answer to {} names is {}", call.count, out.reply)
                });
            }
            change.expect(U2, out.reply == Reply::Int(call.count), || {
                format!("answered {} for {} permits that are held", out.reply, call.count)
            });
            change.expect(A1, permits().all(|permit| after.end_of(permit).is_none()), || {
                "a permit is still held".to_owned()
            });
            let left = before.held.len() as i64 - before.ended(clock_ms) - call.count;
            change.expect(P8, after.held.len() as i64 == left, || {
                format!("{} permits are held instead of {left}", after.held.len())
            });
        } else {
            let lost = permits().find(|permit| good(*permit) && after.end_of(*permit).is_none());
            change.expect(P4, lost.is_none(), || {
                "one of the permits is not held, and yet another was released".to_owned()
            });
            change.expect(P4, out.reply == Reply::Int(0), || {
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

    fn form(&self) -> Form {
        Form::Permits
    }

    fn has_key(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes() || key == self.timeouts.as_bytes()
    }

    fn expiring(&self) -> Vec<&str> {
        vec![&self.timeouts, &self.names.lock]
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        let Asked { permit, repeats } = self.asked[call.owner];
        match parameter {
            TIMEOUTS => out.text(&self.timeouts),
            PERMIT => out.text(permit_id(permit)),
            PERMITS if repeats => (0..call.count).for_each(|_| out.text(permit_id(permit))),
            PERMITS => (0..call.count as u64).for_each(|n| out.text(permit_id(permit + n))),
            LEASE_DEADLINE => out.int(call.clock_ms() + call.lease_ms),
            NEVER => out.int(NEVER_MS),
            _ => self.names.write(parameter, call, out),
        }
    }

    fn read(&mut self, parameter: Parameter, word: &[u8], call: &mut Call) -> Option<()> {
        match parameter {
            PERMIT | PERMITS => {
                self.asked[call.owner] = Asked { permit: permit_number(word)?, repeats: false };
            }
            LEASE_DEADLINE => call.lease_ms = number(word)? - call.clock_ms(),
            _ => {}
        }
        Some(())
    }

    fn describe(&self, call: &Call, text: &mut String) {
        if self.asked[call.owner].repeats {
            text.push_str(" (the same)");
        }
    }

    fn reset(&mut self) {
        self.total = None;
        self.granted.clear();
        self.next = 0;
        self.is_endless = false;
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let mut asked = Asked { permit: self.next, repeats: false };
        match call.operation {
            TRY_SET | SET => call.count = i64::from(choice % 3) + 1,
            ADD => call.count = [1, 1, 1, 0, -1, -1, -1, -1][usize::from(choice) % 8],
            ACQUIRE => {
                call.lease_ms = match choice {
                    5 => NEVER_MS - call.clock_ms(),
                    _ => LEASES_MS[choice as usize % LEASES_MS.len()],
                };
                call.count = if self.takes_several && choice >= 6 { 2 } else { 1 };
            }
            EXPIRE if self.total.is_none() => return false,
            EXPIRE => call.lease_ms = 3_000,
            RELEASE | RELEASE_ALL | LEASE | UPDATE_LEASE => {
                let Some(permit) = self.granted.get(choice as usize % self.granted.len().max(1)) else {
                    return false;
                };
                asked.permit = *permit;
                call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
                if call.operation == RELEASE_ALL {
                    (call.count, asked.repeats) = match choice {
                        0..=3 => (2, false),
                        4 | 5 => (1, false),
                        _ => (2, true),
                    };
                }
            }
            _ => {}
        }
        self.asked[call.owner] = asked;
        self.next = self.next.max(asked.permit + call.count.max(0) as u64);
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.state(view);
        if self.before.free.is_none() {
            self.total = None;
        }
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        let before = &std::mem::take(&mut self.before);
        if out.again {
            return;
        }
        let after = &self.state(view);
        let change = &mut Change { call, out, before, after, verdict };
        let asked = self.asked[call.owner];
        let clock_ms = call.clock_ms();
        let added_up = self.adds_up(before);
        let ended = before.ended(clock_ms);
        match call.operation {
            TRY_SET => {
                change.expect(A2, out.reply == Reply::Int(before.free.is_none() as i64), || {
                    format!("answered {} with {:?} permits", out.reply, before.free)
                });
                if before.free.is_none() {
                    self.total = Some(call.count);
                }
                let free = before.free.or(Some(call.count));
                change.expect(Q1, after.free == free, || {
                    format!("{:?} permits instead of {free:?}", after.free)
                });
            }
            ACQUIRE => {
                let may = before.free.is_some_and(|free| free + ended.min(call.count) >= call.count);
                let granted = matches!(out.reply, Reply::Text(text) if !text.starts_with(b":"));
                change.expect(A2, granted == may || before.free.is_none(), || {
                    format!("answered {} with {:?} permits free and {ended} ended", out.reply, before.free)
                });
                self.check_purged(change, ended.min(call.count));
                if !granted && before.free.is_some() {
                    // The client asks again when the next permit ends.
                    let next = after.next_end().map(|end| format!(":{end}"));
                    let told = match out.reply {
                        Reply::Nil => None,
                        Reply::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                        other => Some(other.to_string()),
                    };
                    change.expect(T2, told == next, || format!("told {told:?} instead of {next:?}"));
                }
                if granted {
                    let permits = permits_of(asked, call);
                    self.granted.extend(permits.clone());
                    let end = Some(clock_ms + call.lease_ms);
                    self.is_endless |= end == Some(NEVER_MS);
                    let mut permits = permits;
                    change.expect(A1, permits.all(|permit| after.end_of(permit) == end), || {
                        "the permit does not end when its lease does".to_owned()
                    });
                    change.expect(
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
            RELEASE => self.released(change),
            RELEASE_ALL => self.released_all(change),
            AVAILABLE => {
                let available = before.free.map_or(0, |free| free + ended);
                // Without a semaphore some releases reply nil.
                let told = match out.reply {
                    Reply::Nil if before.free.is_none() => Some(0),
                    reply => reply.int(),
                };
                change.expect(
                    P5,
                    told == Some(available) || before.free.is_none() && told == Some(ended),
                    || format!("{available} are available, answered {}", out.reply),
                );
                self.check_purged(change, ended);
            }
            SET => {
                let same = before.free.map(|free| free + before.held.len() as i64) == Some(call.count);
                self.total = Some(call.count);
                change.expect(P6, !same || out.messages.is_empty(), || {
                    "there are as many permits already, and yet a message was sent".to_owned()
                });
                let total = after.free.map(|free| free + before.held.len() as i64);
                change.expect(Q1, before.free.is_none() || total == Some(call.count), || {
                    format!("{total:?} permits instead of {}", call.count)
                });
            }
            TOTAL => {
                let total = before.free.map_or(0, |free| free + before.held.len() as i64);
                // Without free permits there is no semaphore, whatever is held.
                let any = before.free.is_none() && !before.held.is_empty();
                change.expect(V1, any || out.reply.int() == Some(total), || {
                    format!("answered {} of {total} permits", out.reply)
                });
                self.check_purged(change, ended);
            }
            HELD => {
                let held = before.held.len() as i64 - ended;
                change.expect(V1, out.reply == Reply::Int(held), || {
                    format!("answered {} of {held} permits that are held", out.reply)
                });
                self.check_purged(change, ended);
            }
            LEASE => {
                let left_ms = match before.end_of(asked.permit) {
                    Some(NEVER_MS) => -1,
                    Some(end) => (end - clock_ms).max(0),
                    None => 0,
                };
                change.expect(V1, out.reply == Reply::Int(left_ms), || {
                    format!("answered {}, the permit is held for {left_ms} ms more", out.reply)
                });
                self.check_purged(change, ended);
            }
            UPDATE_LEASE => {
                let held = before.end_of(asked.permit).is_some_and(|end| end > clock_ms);
                change.expect(U2, out.reply == Reply::Int(held as i64), || {
                    let held = if held { "held" } else { "not held" };
                    format!("answered {} for a permit that is {held}", out.reply)
                });
                self.check_purged(change, ended);
                let end = held.then_some(clock_ms + call.lease_ms);
                change.expect(A1, after.end_of(asked.permit) == end, || {
                    format!("the permit ends at {:?} instead of {end:?}", after.end_of(asked.permit))
                });
            }
            ADD => self.total = Some(self.total.unwrap_or(0) + call.count),
            _ => {}
        }
        self.check_told(change);
        if call.operation != EXPIRE {
            let is_new = before.free.is_none();
            let expected_ms = if is_new { FOREVER } else { before.free_ttl_ms };
            change.expect(Q5, after.free.is_none() || after.free_ttl_ms == expected_ms, || {
                let lives_ms = after.free_ttl_ms;
                format!("the semaphore lives for {lives_ms} ms instead of {expected_ms} ms (-1: for ever)")
            });
        }
        // Reports only the operation that breaks the sum. An operation that creates the semaphore must not leave old
        // permits behind.
        let from_nothing = before.free.is_none();
        change.expect(P1, self.adds_up(after) || !(added_up || from_nothing), || {
            format!("{:?} permits are free and {} held, of {:?}", after.free, after.held.len(), self.total)
        });
    }

    fn deadlines(&self, view: View, into: &mut Vec<i64>) {
        into.extend(self.state(view).held.iter().map(|(_, end)| *end));
    }

    fn closing(&self) -> &'static [usize] {
        &[AVAILABLE]
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        key == self.names.lock.as_bytes() || self.is_endless && key == self.timeouts.as_bytes()
    }
}
