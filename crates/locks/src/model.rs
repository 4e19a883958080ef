//! What the models of all lock objects have in common.

pub use super::args::Args;
pub use super::binding::Parameter;
pub use super::names::{Names, REACQUIRED};
pub use super::operation::{Kind, NodeEvent, Operation, Retried, Sends};
pub use super::reply::{Message, Outcome, Reply};
pub use super::violation::{Verdict, Violation, Wanted};

use super::invariant::Invariant;
use super::view::View;

/// The number of owners: A, B, C.
pub const OWNERS: usize = 3;

/// Returns the name of an owner in reports.
pub fn owner_name(owner: usize) -> char {
    char::from(b'A' + owner as u8)
}

/// The names of owners in scripts: client and thread.
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

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The index of the operation in the model.
    pub operation: usize,
    pub owner: usize,
    pub lease_ms: i64,
    pub count: i64,
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

impl Call {
    /// Returns the owner's clock, Unix time in ms.
    pub fn clock_ms(&self) -> i64 {
        self.now_ms + self.skew_ms
    }
}

/// How far a request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Answered,
    /// The node executes it, and the reply is lost.
    ReplyLost,
    /// It does not reach the node.
    Lost,
}

/// A request that was executed, and the keyspace after it.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    pub call: &'a Call,
    pub out: Outcome<'a>,
    pub view: View<'a>,
}

/// What a request changed: the states of the object before and after it. Violations go to the verdict.
pub struct Change<'a, 'w, S> {
    pub call: &'a Call,
    pub out: Outcome<'a>,
    pub before: S,
    pub after: S,
    pub verdict: &'a mut Verdict<'w>,
}

impl<S> Change<'_, '_, S> {
    pub fn is_strict(&self) -> bool {
        self.verdict.is_strict()
    }

    /// Notes a violation unless `holds`.
    pub fn expect(&mut self, invariant: Invariant, holds: bool, text: impl FnOnce() -> String) {
        self.verdict.expect(invariant, holds, text);
    }
}

/// Returns whether a reply says that the script failed. A refusal in the form of an error does not.
pub fn is_failure(reply: Reply) -> bool {
    matches!(reply, Reply::Error(error) if !error.starts_with(b"ERR NON_REENTRANT"))
}

/// Compares what came of a request with what the model knows. A script that fails violates an invariant of its own.
pub fn judge(model: &mut dyn Model, seen: Observation, verdict: &mut Verdict) {
    match seen.out.reply {
        Reply::Error(error) if !model.is_refusal(seen.call, seen.out.reply) => {
            verdict.expect(Invariant::G4, false, || String::from_utf8_lossy(error).into_owned());
        }
        _ => model.after(seen, verdict),
    }
}

/// Expects that a request that came a second time is answered as the first time and changes nothing.
pub fn expect_same(verdict: &mut Verdict, first: Reply, second: Reply, is_unchanged: bool) {
    verdict.expect(Invariant::G2, first == second, || format!("first {first}, then {second}"));
    verdict.expect(Invariant::G3, is_unchanged, || "the second execution changed the keyspace".to_owned());
}

/// What the key of an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A hash of owners.
    Owners,
    /// A hash of owners with a mode.
    OwnersWithMode,
    /// A number; a sorted set beside it has the ids of permits.
    Permits,
    /// Anything else.
    Any,
}

/// A lock object: its operations, and the invariants that hold after each of them.
///
/// The runner calls [`before`](Model::before) and [`after`](Model::after) around each request. A model compares the two states that it
/// sees, and the reply, with what the operation guarantees; and it remembers what clients were granted so far.
pub trait Model {
    fn operations(&self) -> &'static [Operation];

    /// Returns the names of the object's keys and channels.
    fn names(&self) -> &Names;

    /// Returns what the object's key holds.
    fn form(&self) -> Form {
        Form::Owners
    }

    /// Returns how many nodes the object needs.
    fn nodes(&self) -> usize {
        1
    }

    /// Returns whether a reply is how the object says no. An error that says so is no failure of the script, and who asks again may get
    /// another answer.
    fn is_refusal(&self, _call: &Call, _reply: Reply) -> bool {
        false
    }

    /// Returns the keys that end with the object.
    fn expiring(&self) -> Vec<&str> {
        vec![&self.names().lock]
    }

    /// Returns keys that can be lost (by eviction, by hand) without the lock itself being lost.
    fn companions(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Returns the beginnings of the keys that an owner's holds have beside the object's own key.
    fn hold_prefixes(&self, _owner: usize) -> Vec<String> {
        Vec::new()
    }

    /// Forgets everything: the keyspace is empty.
    fn reset(&mut self);

    /// Decides what a call asks for: fills in what the model chooses by `choice`, and replaces the operation by what the client does
    /// first. Returns false if the client would not send that now; the model is unchanged then.
    fn ask(&mut self, call: &mut Call, choice: u8) -> bool;

    /// Writes the key or the arguments that a parameter means.
    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        self.names().write(parameter, call, out);
    }

    /// Reads what a client passed for one of the object's [readable](super::binding::Arguments::readable) parameters; ids of permits are
    /// translated before. Returns `None` if it makes no sense.
    fn read(&mut self, _parameter: Parameter, _word: &[u8], _call: &mut Call) -> Option<()> {
        Some(())
    }

    /// Adds to a report what a call asks for besides lease and count.
    fn describe(&self, _call: &Call, _text: &mut String) {}

    fn before(&mut self, call: &Call, view: View);

    fn after(&mut self, seen: Observation, verdict: &mut Verdict);

    /// A companion key was lost, or a clock is wrong: guarantees that rest on it no longer hold.
    fn disturbed(&mut self) {}

    /// Adds instants that matter besides the ends of keys, Unix time in ms.
    fn deadlines(&self, _view: View, _into: &mut Vec<i64>) {}

    /// Returns the operations with which somebody comes by once more when all leases have ended.
    fn closing(&self) -> &'static [usize] {
        &[]
    }

    /// Returns whether a key may be left once all leases have ended.
    fn may_stay(&self, _key: &[u8]) -> bool {
        false
    }
}
