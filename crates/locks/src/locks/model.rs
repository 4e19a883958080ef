//! What every model of a lock object has in common.

use std::fmt;

use super::binding::Slot;
use super::invariant::{Invariant, Rules};
use super::kit::Kit;
use super::role::Role;
use super::view::View;

/// How many owners there are: A, B, C.
pub const OWNERS: usize = 3;

/// The name of an owner in reports.
pub fn owner_name(owner: usize) -> char {
    char::from(b'A' + owner as u8)
}

/// How an owner is named in scripts: client and thread.
pub const OWNER_IDS: [&str; OWNERS] = [
    "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa:1",
    "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb:1",
    "cccccccc-cccc-4ccc-8ccc-cccccccccccc:1",
];

/// The lease that is renewed: Redisson's watchdog asks for it again and again.
pub const WATCHDOG_MS: i64 = 30_000;

/// The leases that an acquire may ask for.
pub const LEASES_MS: [i64; 3] = [10_000, 2_000, WATCHDOG_MS];

/// How long the reply to a request is remembered.
pub const LATCH_TTL_MS: i64 = 20_000;

/// What a client sends for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// The script with this role.
    Script(Role),
    /// The script with the first role; the other one in releases that do not have it.
    Either(Role, Role),
    /// The script, or `PEXPIRE` in releases from before it.
    ScriptOrPexpire(Role),
    /// The script, or `GET` in releases from before it.
    ScriptOrGet(Role),
    /// The script, or nothing in releases from before it.
    ScriptOrNothing(Role),
    /// `PEXPIRE` for all keys of the object.
    Pexpire,
    /// The script, or `HGET` of the mode in releases from before it.
    ScriptOrMode(Role),
    /// No request: something happens to a node.
    Event(NodeEvent),
}

/// What happens to one of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// Requests no longer reach it.
    Down,
    /// They do again; its data is still there.
    Up,
    /// It begins anew without data.
    Restart,
    /// Its clock goes forward by [`Call::lease_ms`].
    Jump,
}

impl Sends {
    pub fn role(self) -> Option<Role> {
        match self {
            Sends::Script(role)
            | Sends::Either(role, _)
            | Sends::ScriptOrPexpire(role)
            | Sends::ScriptOrGet(role)
            | Sends::ScriptOrMode(role)
            | Sends::ScriptOrNothing(role) => Some(role),
            Sends::Pexpire | Sends::Event(_) => None,
        }
    }
}

/// Something an owner can do.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// As reports call it.
    pub name: &'static str,
    pub sends: Sends,
    pub retried: Retried,
}

/// Whether the client sends a request again when no reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    Never,
    Always,
    /// Where there are replicas or a cluster only: with [`Rules::Strict`].
    WithReplicas,
}

impl Operation {
    pub const fn new(name: &'static str, sends: Sends) -> Operation {
        Operation { name, sends, retried: Retried::Never }
    }

    pub const fn retried(self) -> Operation {
        Operation { retried: Retried::Always, ..self }
    }

    pub const fn retried_with_replicas(self) -> Operation {
        Operation { retried: Retried::WithReplicas, ..self }
    }

    /// Whether this is no request of a client but something that happens to a node.
    pub fn is_fault(self) -> bool {
        matches!(self.sends, Sends::Event(_))
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The index of the operation in the model.
    pub operation: usize,
    pub owner: usize,
    pub lease_ms: i64,
    pub wait_ms: i64,
    pub count: i64,
    /// The first of `count` permits.
    pub permit: u64,
    /// The same permit is named `count` times.
    pub repeats: bool,
    /// The members of a group that are meant, a bit for each.
    pub members: u8,
    pub limit: Limit,
    /// The node that the request goes to.
    pub node: usize,
    pub fate: Fate,
    /// The server's clock, Unix time in ms.
    pub now_ms: i64,
    /// How far the owner's clock is ahead.
    pub skew_ms: i64,
    /// Tells requests apart.
    pub request: u64,
}

/// What a rate limiter is set to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Permits in each interval.
    pub rate: i64,
    pub interval_ms: i64,
    /// Each client has its own.
    pub per_client: bool,
    /// How long it lives when nobody uses it; 0: for ever.
    pub keep_alive_ms: i64,
    /// Permits that were handed out still count.
    pub keeps_taken: bool,
    /// It is set only where there is one.
    pub only_existing: bool,
}

/// How far a request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Answered,
    /// It is executed, and the reply is lost.
    ReplyLost,
    /// It does not reach the node.
    Lost,
}

/// What a script answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Nil,
    Int(i64),
    /// A bulk string or a status.
    Text(&'a [u8]),
    Error(&'a [u8]),
    /// The elements, encoded.
    Array(&'a [u8]),
}

impl Reply<'_> {
    /// Reads one reply.
    pub fn parse(bytes: &[u8]) -> Reply<'_> {
        let Some((kind, rest)) = bytes.split_first() else { return Reply::Nil };
        let end = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        let tail = tail.get(2..).unwrap_or_default();
        match kind {
            b':' => Reply::Int(redlatch_core::num::parse_i64(line).unwrap_or(0)),
            b'+' => Reply::Text(line),
            b'-' => Reply::Error(line),
            b'$' => {
                match redlatch_core::num::parse_i64(line)
                    .and_then(|len| tail.get(..usize::try_from(len).ok()?))
                {
                    Some(text) => Reply::Text(text),
                    None => Reply::Nil,
                }
            }
            // RESP3's null.
            b'_' => Reply::Nil,
            _ => Reply::Array(tail),
        }
    }

    /// An integer, also one in a text, or the only one of an array.
    pub fn int(self) -> Option<i64> {
        match self {
            Reply::Int(n) => Some(n),
            Reply::Text(text) => redlatch_core::num::parse_i64(text),
            Reply::Array(elements) => match Reply::parse(elements) {
                Reply::Int(n) => Some(n),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is an error with these words.
    pub fn is_error_with(self, words: &str) -> bool {
        matches!(self, Reply::Error(text) if memchr::memmem::find(text, words.as_bytes()).is_some())
    }

    pub fn is_error(self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

impl<'a> Reply<'a> {
    /// One element of an array.
    pub fn element(self, index: usize) -> Reply<'a> {
        let Reply::Array(mut rest) = self else { return self };
        for _ in 0..index {
            let Some(len) = redlatch_core::wire::client::value_len(rest) else { return Reply::Nil };
            rest = &rest[len..];
        }
        Reply::parse(rest)
    }
}

impl fmt::Display for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Nil => f.write_str("nil"),
            Reply::Int(n) => write!(f, "{n}"),
            Reply::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Reply::Error(text) => write!(f, "error: {}", String::from_utf8_lossy(text)),
            Reply::Array(elements) => {
                write!(f, "[{}]", String::from_utf8_lossy(elements).trim_end().replace("\r\n", " "))
            }
        }
    }
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub channel: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Message {
    pub fn number(&self) -> Option<i64> {
        redlatch_core::num::parse_i64(&self.payload)
    }
}

/// What came of a request.
#[derive(Clone, Copy)]
pub struct Outcome<'a> {
    pub reply: Reply<'a>,
    pub messages: &'a [Message],
    /// The request was sent before: its client asks again, and believes that it asks once.
    pub again: bool,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// The operation at which it showed.
    pub operation: &'static str,
    pub text: String,
}

/// Takes what models find. Keeps the first that is looked for.
pub struct Findings<'a> {
    pub rules: Rules,
    pub operation: &'static str,
    wanted: &'a Wanted,
    pub found: Option<Violation>,
}

/// Which violations are looked for: an invariant, at one operation or anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What is looked for; nothing said: everything.
    pub only: Vec<(Invariant, Option<String>)>,
    /// What is known and looked for no more.
    pub except: Vec<(Invariant, &'static str)>,
    /// Nothing at all.
    none: bool,
}

impl Wanted {
    pub fn nothing() -> Wanted {
        Wanted { none: true, ..Wanted::default() }
    }

    /// These only; all, if there are none.
    pub fn these(only: Vec<(Invariant, Option<String>)>) -> Wanted {
        Wanted { only, ..Wanted::default() }
    }

    pub fn one(invariant: Invariant, operation: &str) -> Wanted {
        Wanted::these(vec![(invariant, Some(operation.to_owned()))])
    }

    /// Reads `M1` or `M2@read.unlock`.
    pub fn parse(word: &str) -> Option<(Invariant, Option<String>)> {
        let (id, operation) = match word.split_once('@') {
            Some((id, operation)) => (id, Some(operation.to_owned())),
            None => (word, None),
        };
        Some((Invariant::find(id)?, operation))
    }

    pub fn contains(&self, invariant: Invariant, operation: &str) -> bool {
        let wanted = self.only.is_empty()
            || self.only.iter().any(|(wanted, at)| {
                *wanted == invariant && at.as_deref().is_none_or(|wanted| wanted == operation)
            });
        wanted && !self.none && !self.except.iter().any(|(known, at)| *known == invariant && *at == operation)
    }
}

impl<'a> Findings<'a> {
    pub fn new(rules: Rules, wanted: &'a Wanted) -> Findings<'a> {
        Findings { rules, operation: "", wanted, found: None }
    }

    pub fn is_strict(&self) -> bool {
        self.rules == Rules::Strict
    }

    /// Notes a broken promise unless `holds`.
    pub fn expect(&mut self, invariant: Invariant, holds: bool, text: impl FnOnce() -> String) {
        if !holds && self.found.is_none() && self.wanted.contains(invariant, self.operation) {
            self.found = Some(Violation { invariant, operation: self.operation, text: text() });
        }
    }
}

/// Whether a reply tells that the script failed: a refusal in the form of an error does not.
pub fn is_failure(reply: Reply) -> bool {
    matches!(reply, Reply::Error(error) if !error.starts_with(b"ERR NON_REENTRANT"))
}

/// What came of a request is compared with what the model knows. A script that fails breaks a promise of its own.
pub fn judge(model: &mut dyn Model, call: &Call, outcome: Outcome, view: View, findings: &mut Findings) {
    match outcome.reply {
        Reply::Error(error) if !model.is_refusal(call, outcome.reply) => {
            findings.expect(Invariant::G4, false, || String::from_utf8_lossy(error).into_owned());
        }
        _ => model.after(call, outcome, view, findings),
    }
}

/// A request that came a second time has to be answered as it was, and to change nothing.
pub fn expect_same(findings: &mut Findings, first: Reply, second: Reply, is_unchanged: bool) {
    findings.expect(Invariant::G2, first == second, || format!("first {first}, then {second}"));
    findings.expect(Invariant::G3, is_unchanged, || "the second execution changed the keyspace".to_owned());
}

/// A lock object: its operations, and what has to hold after each of them.
///
/// The runner calls [`before`](Model::before) and [`after`](Model::after) around each request. A model compares the two states that it
/// sees, and the reply, with what the operation promises; and it keeps what clients were promised so far.
pub trait Model {
    fn operations(&self) -> &'static [Operation];

    /// The names of the object's keys and channels.
    fn names(&self) -> &Names;

    /// How many nodes it is made of.
    fn nodes(&self) -> usize {
        1
    }

    /// Whether a reply is how the object says no. An error that says so is no failure of the script, and who asks again may be
    /// told otherwise.
    fn is_refusal(&self, _call: &Call, _reply: Reply) -> bool {
        false
    }

    /// Keys that can be lost (by eviction, by hand) without the lock itself being lost.
    fn companions(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Forgets everything: the keyspace is empty.
    fn reset(&mut self);

    /// What a call asks for: fills in what the model chooses by `choice`, and puts in its place what the client does first. False: the
    /// client would not send that now.
    fn ask(&mut self, call: &mut Call, choice: u8) -> bool;

    fn before(&mut self, call: &Call, view: View);

    fn after(&mut self, call: &Call, outcome: Outcome, view: View, findings: &mut Findings);

    /// A companion key was lost, or a clock is wrong: promises that rest on it no longer hold.
    fn disturbed(&mut self) {}

    /// Instants that matter besides the ends of keys, Unix time in ms.
    fn deadlines(&self, _view: View, _into: &mut Vec<i64>) {}

    /// The operations with which somebody comes by once more when all has ended.
    fn closing(&self) -> &'static [usize] {
        &[]
    }

    /// What may be left once all has ended.
    fn may_stay(&self, _key: &[u8]) -> bool {
        false
    }
}

/// The names of an object's keys and channels, as Redisson makes them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub lock: String,
    pub channel: String,
    pub latch: String,
    pub queue: String,
    pub timeouts: String,
    pub token: String,
    /// What a release tells waiters.
    pub message: &'static str,
    /// The keys of holds begin with it, for one owner and for all.
    pub holds: [String; OWNERS],
    pub all_holds: [String; OWNERS],
    pub writers: [String; OWNERS],
    /// A waiter's sign of life.
    pub waiters: [String; OWNERS],
    /// A rate limiter's permits: left and taken, for all clients and for each.
    pub left: String,
    pub taken: String,
    pub client_left: [String; OWNERS],
    pub client_taken: [String; OWNERS],
}

/// The members that a group has.
pub const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

/// The members that a call means.
pub fn members(mask: u8) -> impl Iterator<Item = usize> {
    (0..MEMBERS.len()).filter(move |member| mask & 1 << member != 0)
}

impl Names {
    pub fn new(lock: &str, channel: &str) -> Names {
        Names {
            channel: format!("{channel}:{{{lock}}}"),
            latch: format!("redisson_unlock_latch:{{{lock}}}:"),
            queue: format!("redisson_lock_queue:{{{lock}}}"),
            timeouts: format!("redisson_lock_timeout:{{{lock}}}"),
            token: format!("redisson_lock_token:{{{lock}}}"),
            message: "0",
            holds: OWNER_IDS.map(|owner| format!("{{{lock}}}:{owner}:rwlock_timeout")),
            all_holds: OWNER_IDS.map(|_| format!("{{{lock}}}")),
            writers: OWNER_IDS.map(|owner| format!("{owner}:write")),
            waiters: OWNER_IDS.map(|owner| format!("redisson_lock_thread:{{{lock}}}:{owner}")),
            left: format!("{{{lock}}}:value"),
            taken: format!("{{{lock}}}:permits"),
            client_left: OWNER_IDS.map(|owner| format!("{{{lock}}}:value:{}", client_of(owner))),
            client_taken: OWNER_IDS.map(|owner| format!("{{{lock}}}:permits:{}", client_of(owner))),
            lock: lock.to_owned(),
        }
    }

    /// Writes a key or an argument. Several, if the slot stands for several.
    pub fn write(&self, slot: Slot, call: &Call, is_writer: bool, out: &mut Args) {
        let now_ms = call.now_ms + call.skew_ms;
        match slot {
            Slot::Lock => out.text(&self.lock),
            Slot::Channel => out.text(&self.channel),
            Slot::Latch => {
                out.text(&self.latch);
                out.extend_hex(call.request);
            }
            Slot::Queue => out.text(&self.queue),
            Slot::Timeouts => out.text(&self.timeouts),
            Slot::Holds => out.text(&self.holds[call.owner]),
            Slot::AllHolds => out.text(&self.all_holds[call.owner]),
            Slot::Token => out.text(&self.token),
            Slot::Owner if is_writer => out.text(&self.writers[call.owner]),
            Slot::Owner => out.text(OWNER_IDS[call.owner]),
            Slot::Writer => out.text(&self.writers[call.owner]),
            Slot::LeaseMs => out.int(call.lease_ms),
            Slot::WaitMs => out.int(call.wait_ms),
            Slot::Now => out.int(now_ms),
            Slot::WaitDeadline => out.int(now_ms + call.wait_ms),
            Slot::LeaseDeadline => out.int(now_ms + call.lease_ms),
            Slot::Never => out.int(NEVER),
            Slot::Message => out.text(self.message),
            Slot::Publish => out.text("PUBLISH"),
            Slot::LatchTtlMs => out.int(LATCH_TTL_MS),
            Slot::Count => out.int(call.count),
            Slot::Owners => out.int(1),
            Slot::Permit => out.permit(call.permit),
            Slot::Permits if call.repeats => (0..call.count).for_each(|_| out.permit(call.permit)),
            Slot::Permits => (0..call.count as u64).for_each(|n| out.permit(call.permit + n)),
            Slot::Word => out.text(REACQUIRED),
            Slot::Members => members(call.members).for_each(|member| out.text(MEMBERS[member])),
            Slot::Waiter => out.text(&self.waiters[call.owner]),
            Slot::Left => out.text(&self.left),
            Slot::Taken => out.text(&self.taken),
            Slot::ClientLeft => out.text(&self.client_left[call.owner]),
            Slot::ClientTaken => out.text(&self.client_taken[call.owner]),
            Slot::Rate => out.int(call.limit.rate),
            Slot::IntervalMs => out.int(call.limit.interval_ms),
            Slot::Scope => out.int(call.limit.per_client.into()),
            Slot::KeepAliveMs => out.int(call.limit.keep_alive_ms),
            // Short enough to come twice.
            Slot::RandomNumber => out.int(call.request as i64 % 4),
            Slot::Random => out.permit(call.request),
            Slot::KeepsTaken => out.int(call.limit.keeps_taken.into()),
            Slot::OnlyExisting => out.int(call.limit.only_existing.into()),
        }
    }
}

/// How a lock that is not re-entrant refuses its owner.
pub const REACQUIRED: &str = "NON_REENTRANT_REACQUIRE";

/// The client of an owner.
fn client_of(owner: &str) -> &str {
    owner.split(':').next().unwrap_or(owner)
}

/// Redisson's deadline of a permit without a lease.
pub const NEVER: i64 = 922_337_203_685_477;

/// The arguments of a request in one buffer.
#[derive(Default)]
pub struct Args {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    digits: itoa::Buffer,
}

impl Args {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn text(&mut self, text: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(text.as_ref());
        self.ends.push(self.bytes.len());
    }

    pub fn int(&mut self, n: i64) {
        self.bytes.extend_from_slice(self.digits.format(n).as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// 32 hex digits at the end of the last argument.
    fn extend_hex(&mut self, n: u64) {
        self.bytes.extend_from_slice(b"0000000000000000");
        for shift in (0..16).rev() {
            self.bytes.push(b"0123456789abcdef"[(n >> (shift * 4) & 15) as usize]);
        }
        if let Some(end) = self.ends.last_mut() {
            *end = self.bytes.len();
        }
    }

    /// The id of a permit: 16 bytes.
    pub fn permit(&mut self, n: u64) {
        self.bytes.extend_from_slice(&permit_id(n));
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, &end| Some(&self.bytes[std::mem::replace(start, end)..end]))
    }
}

/// Permits have ids of 16 bytes.
pub fn permit_id(n: u64) -> [u8; 16] {
    let mut id = *b"p000000000000000";
    let mut rest = n;
    for digit in id[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    id
}

/// The models of a release: one for each kind of object that its scripts make up.
pub fn objects(kit: &Kit) -> Vec<(&'static str, Box<dyn Model>)> {
    // Some share scripts with others; what they are acquired with is their own.
    let is_own =
        |operation: &&Operation| matches!(operation.name.rsplit('.').next(), Some("acquire" | "count_down"));
    let has_own = |model: &dyn Model| {
        model.operations().iter().filter(is_own).any(|operation| kit.find(operation.sends).is_some())
    };
    all_objects(kit).into_iter().filter(|(_, model)| has_own(&**model)).collect()
}

/// The models of all kinds of object, whether `kit` has their scripts or not.
pub fn all_objects(kit: &Kit) -> Vec<(&'static str, Box<dyn Model>)> {
    use super::{
        fair::Fair,
        faster::FasterMultiLock,
        latch::CountDownLatch,
        multi::MultiLock,
        permit::PermitSemaphore,
        rate::RateLimiter,
        rlock::{Kind, RLock},
        rw::ReadWriteLock,
        semaphore::Semaphore,
    };
    vec![
        ("rlock", Box::new(RLock::new(Kind::RLock))),
        ("rw", Box::new(ReadWriteLock::new(kit))),
        ("fair", Box::new(Fair::new(kit, true))),
        ("fair-nonreentrant", Box::new(Fair::new(kit, false))),
        ("spin", Box::new(RLock::new(Kind::Spin))),
        ("fenced", Box::new(RLock::new(Kind::Fenced))),
        ("nonreentrant", Box::new(RLock::new(Kind::NonReentrant))),
        ("semaphore", Box::<Semaphore>::default()),
        ("permit", Box::<PermitSemaphore>::default()),
        ("latch", Box::<CountDownLatch>::default()),
        ("rate", Box::new(RateLimiter::new(kit))),
        ("faster", Box::<FasterMultiLock>::default()),
        ("multi", Box::new(MultiLock::of_all())),
        ("redlock", Box::new(MultiLock::of_majority())),
        ("own", Box::<super::own::OwnLock>::default()),
    ]
}
