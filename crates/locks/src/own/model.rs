//! The model of a lock that a file describes: what its requests contain, and what their replies mean.
//!
//! The guarantees of holders, latches and limiters are in [`holders`](super::holders), [`latch`](super::latch) and
//! [`limiter`](super::limiter). They go by the replies. If the lease is the expiry of the main key, that is compared too.

use std::fmt::Write;
use std::sync::Arc;

use super::answer::{Answer, Named, Numbers};
use super::holders::Holders;
use super::latch::Latch;
use super::limiter::Limiter;
use super::lock::{Kind, Lease, Lock, Part, Shared};
use super::roles;
use super::template::{Slot, Template};
use crate::invariant::Invariant::*;
use crate::model::*;
use crate::show::show_value;
use crate::view::{MISSING, View};

pub const ACQUIRE: usize = 0;
pub const RELEASE: usize = 1;
pub const EXTEND: usize = 2;
pub const TRY: usize = 3;
pub const FORCE: usize = 4;
pub const LEAVE: usize = 5;
pub const RESET: usize = 6;
pub const COUNT_DOWN: usize = 7;
pub const GET: usize = 8;

const OPERATIONS: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(roles::ACQUIRE)).defining().retried(),
    Operation::new("release", Sends::Script(roles::RELEASE)).retried(),
    Operation::renewal("extend", Sends::Script(roles::EXTEND)).retried(),
    Operation::acquire("try", Sends::Script(roles::TRY)).retried(),
    Operation::new("force", Sends::Script(roles::FORCE)).retried(),
    Operation::new("leave", Sends::Script(roles::LEAVE)).retried(),
    Operation::new("reset", Sends::Script(roles::RESET)).retried(),
    Operation::new("count_down", Sends::Script(roles::COUNT_DOWN)).defining().retried(),
    Operation::new("get", Sends::Script(roles::GET)).retried(),
];

/// The name of the lock.
const NAME: &str = "my:lock";

/// The main key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The value in readable form; empty if the key is missing.
    pub value: String,
    pub ttl_ms: i64,
}

impl Snapshot {
    pub fn exists(&self) -> bool {
        self.ttl_ms != MISSING
    }
}

/// An executed request, as its judges see it.
pub struct Turn<'a> {
    pub lock: &'a Lock,
    pub part: &'a Part,
    pub call: &'a Call,
    pub reply: Reply<'a>,
    pub answer: Answer,
    pub numbers: Numbers,
    /// The main key before and after the request, if the lease is its expiry.
    pub before: &'a Snapshot,
    pub after: &'a Snapshot,
    /// Whether a client's clock was wrong and the requests depend on it.
    pub is_skewed: bool,
    /// Whether waiters were told, in the way that the file describes, if there is one.
    pub is_told: bool,
    /// The number of messages that waiters act on.
    pub messages: usize,
    pub view: View<'a>,
    pub key: &'a [u8],
}

/// What clients have been told so far.
#[derive(Clone, Debug)]
enum Judge {
    Holders(Box<Holders>),
    Latch(Latch),
    Limiter(Limiter),
}

/// A lock that a file describes.
#[derive(Clone)]
pub struct OwnLock {
    lock: Shared,
    names: Names,
    signal: String,
    /// For each operation, the words of its request.
    words: Vec<Vec<(Parameter, Template)>>,
    /// The beginnings of the names of the lock's keys, and whether that is all of the name.
    keys: Vec<(String, bool)>,
    stays: Vec<String>,
    may_be_lost: Vec<Vec<u8>>,
    before: Snapshot,
    is_skewed: bool,
    judge: Judge,
}

/// Writes a template whose slots have the same values in all requests.
fn constant(lock: &Lock, template: &Template) -> String {
    template.render(&mut |slot, out| match slot {
        Slot::Lock => out.push_str(NAME),
        Slot::Channel => out.push_str(&channel(lock)),
        slot => {
            let _ = write!(out, "{}", number(lock, slot));
        }
    })
}

fn channel(lock: &Lock) -> String {
    lock.channel
        .as_ref()
        .map_or(format!("my:channel:{{{NAME}}}"), |channel| channel.render(&mut |_, out| out.push_str(NAME)))
}

/// Returns the value of a slot that the file states.
fn number(lock: &Lock, slot: Slot) -> i64 {
    let limit = lock.limit;
    match slot {
        Slot::Permits => lock.permits,
        Slot::WaiterMs => lock.waiter_ms,
        Slot::Limit => limit.map_or(0, |limit| limit.limit),
        Slot::PerMs => limit.map_or(0, |limit| limit.per_ms),
        Slot::PerS => limit.map_or(0, |limit| (limit.per_ms + 999) / 1_000),
        Slot::Burst => limit.map_or(0, |limit| limit.burst),
        _ => 0,
    }
}

impl OwnLock {
    /// Creates the model of a lock.
    pub fn new(lock: Shared) -> OwnLock {
        let part = |operation: &Operation| operation.sends.role().and_then(|role| lock.part(role));
        let words = OPERATIONS.iter().map(|operation| {
            let words = part(operation).into_iter().flat_map(Part::words);
            words.map(|(parameter, word)| (parameter, word.clone())).collect()
        });
        let names_lock = |word: &&Template| word.slots().any(|slot| slot == Slot::Lock);
        let keys = lock
            .parts
            .iter()
            .flat_map(|part| if part.script.is_empty() { part.args.iter() } else { part.keys.iter() });
        let stated = lock.stays.iter().chain(&lock.may_be_lost).chain(&lock.signal);
        let keys = keys.chain(stated).chain([&lock.key]).filter(names_lock).map(|word| {
            let (prefix, is_all) = word.constant_prefix();
            (constant(&lock, &prefix), is_all)
        });
        let all = |templates: &[Template]| -> Vec<String> {
            templates.iter().map(|template| constant(&lock, template)).collect()
        };
        OwnLock {
            names: Names::with_channel(&constant(&lock, &lock.key), channel(&lock)),
            signal: lock.signal.as_ref().map(|signal| constant(&lock, signal)).unwrap_or_default(),
            words: words.collect(),
            keys: keys.collect(),
            stays: all(&lock.stays),
            may_be_lost: all(&lock.may_be_lost).into_iter().map(String::into_bytes).collect(),
            before: Snapshot::default(),
            is_skewed: false,
            judge: match lock.kind {
                Kind::Lock | Kind::Queue | Kind::Semaphore => Judge::Holders(Box::default()),
                Kind::Latch => Judge::Latch(Latch::default()),
                Kind::Limiter => Judge::Limiter(Limiter::default()),
            },
            lock,
        }
    }

    fn part(&self, operation: usize) -> Option<&Part> {
        self.lock.part(OPERATIONS[operation].sends.role()?)
    }

    /// Returns the token of a request: a new one for each that acquires, else that of the owner's last hold.
    fn token(&self, call: &Call) -> String {
        let number = match (&self.judge, call.operation) {
            (_, ACQUIRE | TRY) => call.request + 1,
            (Judge::Holders(holders), _) => holders.token(call.owner),
            _ => 0,
        };
        format!("{}#{number}", OWNER_IDS[call.owner])
    }

    fn fill(&self, slot: Slot, call: &Call, out: &mut String) {
        let number = match slot {
            Slot::Lock => return out.push_str(NAME),
            Slot::Channel => return out.push_str(&self.names.channel),
            Slot::Owner => return out.push_str(OWNER_IDS[call.owner]),
            Slot::Token => return out.push_str(&self.token(call)),
            Slot::Fence => match &self.judge {
                Judge::Holders(holders) => holders.fence(call.owner),
                _ => 0,
            },
            Slot::Request => call.request as i64,
            Slot::LeaseMs => call.lease_ms,
            Slot::LeaseS => call.lease_ms / 1_000,
            Slot::NowMs => call.clock_ms(),
            Slot::NowS => call.clock_ms() / 1_000,
            Slot::UntilMs => call.clock_ms() + call.lease_ms,
            Slot::UntilS => (call.clock_ms() + call.lease_ms) / 1_000,
            Slot::Count => call.count,
            slot => number(&self.lock, slot),
        };
        let _ = write!(out, "{number}");
    }

    fn snapshot(&self, view: View) -> Snapshot {
        if self.lock.lease != Lease::Key {
            return Snapshot { value: String::new(), ttl_ms: MISSING };
        }
        let key = self.names.lock.as_bytes();
        Snapshot { value: view.value(key).map(show_value).unwrap_or_default(), ttl_ms: view.ttl_ms(key) }
    }

    /// Returns what a reply means, with the numbers that it contains.
    fn answer(&self, call: &Call, reply: Reply) -> Option<(Answer, Numbers)> {
        let part = self.part(call.operation)?;
        let token = self.token(call);
        let named = Named { owner: OWNER_IDS[call.owner], token: &token };
        part.answers.iter().find_map(|(answer, pattern)| {
            let mut numbers = Numbers::default();
            pattern.matches(reply, named, &mut numbers).then_some((*answer, numbers))
        })
    }
}

impl Default for OwnLock {
    fn default() -> OwnLock {
        OwnLock::new(Arc::default())
    }
}

impl Model for OwnLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn form(&self) -> Form {
        Form::Any
    }

    fn is_refusal(&self, call: &Call, reply: Reply) -> bool {
        self.answer(call, reply)
            .is_some_and(|(answer, _)| matches!(answer, Answer::Refused | Answer::NotHeld))
    }

    fn is_repeated(&self, call: &Call) -> bool {
        let is_current = match &self.judge {
            Judge::Holders(holders) => holders.is_current(call),
            _ => true,
        };
        is_current && self.part(call.operation).is_some_and(|part| part.resend)
    }

    fn is_in_cluster(&self) -> bool {
        self.lock.is_in_cluster
    }

    fn has_key(&self, key: &[u8]) -> bool {
        self.keys.iter().any(|(name, is_all)| match is_all {
            true => key == name.as_bytes(),
            false => key.starts_with(name.as_bytes()),
        })
    }

    fn companions(&self) -> Vec<Vec<u8>> {
        self.may_be_lost.clone()
    }

    fn reset(&mut self) {
        self.is_skewed = false;
        match &mut self.judge {
            Judge::Holders(holders) => **holders = Holders::new(&self.lock),
            Judge::Latch(latch) => *latch = Latch::default(),
            Judge::Limiter(limiter) => *limiter = Limiter::default(),
        }
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let Some(part) = self.part(call.operation) else { return false };
        if self.lock.lease != Lease::Endless || part.slots().any(Slot::is_lease) {
            call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
        }
        if part.uses(Slot::Count) {
            let most = match (self.lock.kind, self.lock.limit) {
                (Kind::Semaphore, _) if self.lock.permits > 0 => self.lock.permits,
                (_, Some(limit)) => limit.burst,
                _ => 3,
            };
            call.count = i64::from(choice) % most.min(3) + 1;
        }
        match &self.judge {
            Judge::Holders(holders) => holders.ask(&self.lock, part, call),
            _ => true,
        }
    }

    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        let words = &self.words[call.operation];
        if let Some((_, word)) = words.iter().find(|(known, _)| *known == parameter) {
            out.text(word.render(&mut |slot, text| self.fill(slot, call, text)));
        }
    }

    fn before(&mut self, call: &Call, view: View) {
        self.is_skewed |= call.skew_ms != 0 && self.lock.trusts_clients();
        self.before = self.snapshot(view);
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, view } = seen;
        if out.again {
            return;
        }
        let found = self.answer(call, out.reply);
        let lock = self.lock.clone();
        let Some(part) = OPERATIONS[call.operation].sends.role().and_then(|role| lock.part(role)) else {
            return;
        };
        verdict.expect(V2, found.is_some(), || {
            let forms: Vec<String> = part.answers.iter().map(|(_, pattern)| pattern.to_string()).collect();
            format!("answered {}, which is none of {}", out.reply, forms.join(", "))
        });
        let Some((answer, numbers)) = found else { return };
        let wakes = |message: &&Message| {
            message.channel == self.names.channel.as_bytes()
                && lock.message.as_ref().is_none_or(|text| message.payload == text.as_bytes())
        };
        let messages = out.messages.iter().filter(wakes).count();
        let has_signal = || view.list(self.signal.as_bytes()).is_some_and(|list| !list.is_empty());
        let after = self.snapshot(view);
        let turn = Turn {
            lock: &lock,
            part,
            call,
            reply: out.reply,
            answer,
            numbers,
            before: &self.before,
            after: &after,
            is_skewed: self.is_skewed,
            is_told: (lock.channel.is_none() || messages > 0) && (lock.signal.is_none() || has_signal()),
            messages,
            view,
            key: self.names.lock.as_bytes(),
        };
        match &mut self.judge {
            Judge::Holders(holders) => holders.judge(&turn, verdict),
            Judge::Latch(latch) => latch.judge(&turn, verdict),
            Judge::Limiter(limiter) => limiter.judge(&turn, verdict),
        }
    }

    fn disturbed(&mut self) {
        if let Judge::Holders(holders) = &mut self.judge {
            holders.doubt_waiters();
        }
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        match &self.judge {
            Judge::Holders(holders) => holders.deadlines(&self.lock, into),
            Judge::Limiter(limiter) => limiter.deadlines(&self.lock, into),
            Judge::Latch(_) => {}
        }
    }

    fn closing(&self) -> &'static [usize] {
        match (self.lock.kind, self.lock.lease) {
            (Kind::Latch | Kind::Limiter, _) | (_, Lease::Endless) => &[],
            _ => &[ACQUIRE],
        }
    }

    fn may_stay(&self, key: &[u8]) -> bool {
        let is_endless = self.lock.kind == Kind::Latch
            || self.lock.kind != Kind::Limiter && self.lock.lease == Lease::Endless;
        is_endless || self.stays.iter().any(|name| name.as_bytes() == key)
    }
}
