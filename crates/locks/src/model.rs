//! The parts that the models of all lock objects share.

pub use super::args::Args;
pub use super::binding::Parameter;
pub use super::names::{Names, REACQUIRED};
pub use super::operation::{Kind, NodeEvent, Operation, Retried, Sends};
pub use super::reply::{Message, Outcome, Reply, is_told};
pub use super::violation::{Verdict, Violation, Wanted};

use redlatch_core::num::parse_i64;

use super::invariant::Invariant;
use super::view::View;

/// The number of owners that a model knows: A to F.
pub const OWNERS: usize = 6;

/// The number of owners that a schedule has unless it is asked for more: A, B, C.
pub const USUAL_OWNERS: usize = 3;

/// Returns what to show of the owners' values: those of A to C, and of the others up to the last that has one.
pub fn shown<T: Default + PartialEq>(values: &[T; OWNERS]) -> &[T] {
    let last = values.iter().rposition(|value| *value != T::default()).unwrap_or(0);
    &values[..USUAL_OWNERS.max(last + 1)]
}

/// Returns the letter that reports use for an owner.
pub fn owner_name(owner: usize) -> char {
    char::from(b'A' + owner as u8)
}

/// The ids of the owners in scripts: client and thread.
pub const OWNER_IDS: [&str; OWNERS] = [
    "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa:1",
    "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb:1",
    "cccccccc-cccc-4ccc-8ccc-cccccccccccc:1",
    "dddddddd-dddd-4ddd-8ddd-dddddddddddd:1",
    "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee:1",
    "ffffffff-ffff-4fff-8fff-ffffffffffff:1",
];

/// The lease that Redisson's watchdog keeps renewing, in ms.
pub const WATCHDOG_MS: i64 = 30_000;

/// The leases, in ms, that an acquire may request.
pub const LEASES_MS: [i64; 4] = [10_000, 2_000, WATCHDOG_MS, 3 * WATCHDOG_MS];

/// How long the reply to a request is remembered, in ms.
pub const LATCH_TTL_MS: i64 = 20_000;

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The index of the operation in the model.
    pub operation: usize,
    pub owner: usize,
    pub lease_ms: i64,
    pub count: i64,
    /// The node that receives the request.
    pub node: usize,
    pub fate: Fate,
    /// The server's clock as Unix time in ms.
    pub now_ms: i64,
    /// How far the owner's clock is ahead, in ms.
    pub skew_ms: i64,
    /// How much of that may be time that the request took, in ms, which of a real client nobody can tell from a clock that is behind.
    pub late_ms: i64,
    /// A number that distinguishes requests.
    pub request: u64,
}

/// The largest time or count that a client may pass: models add such numbers up. Redisson's "never" is smaller.
const MOST: i64 = 1_000_000_000_000_000;

/// Returns the number that a client passes, or `None` if it is none, or is too large to be meant.
pub fn number(word: &[u8]) -> Option<i64> {
    parse_i64(word).filter(|number| (-MOST..=MOST).contains(number))
}

impl Call {
    /// Returns the owner's clock as Unix time in ms.
    pub fn clock_ms(&self) -> i64 {
        self.now_ms + self.skew_ms
    }
}

/// How far a request and its reply get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Answered,
    /// The node executes it, and the reply is lost.
    ReplyLost,
    /// The request does not reach the node.
    Lost,
}

/// A request that was executed, and the keyspace after it.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    pub call: &'a Call,
    pub out: Outcome<'a>,
    pub view: View<'a>,
}

/// The change that a request made: the states of the object before and after it. Collects violations in the verdict.
pub struct Change<'a, 'w, S> {
    pub call: &'a Call,
    pub out: Outcome<'a>,
    pub before: S,
    pub after: S,
    pub verdict: &'a mut Verdict<'w>,
}

impl<S> Change<'_, '_, S> {
    /// Returns whether the strict rules apply.
    pub fn is_strict(&self) -> bool {
        self.verdict.is_strict()
    }

    /// Records a violation unless `holds`.
    pub fn expect(&mut self, invariant: Invariant, holds: bool, text: impl FnOnce() -> String) {
        self.verdict.expect(invariant, holds, text);
    }
}

/// Returns whether a reply says that the script failed. A refusal in the form of an error is not a failure.
pub fn is_failure(reply: Reply) -> bool {
    matches!(reply, Reply::Error(error) if !error.starts_with(b"ERR NON_REENTRANT"))
}

/// Compares the result of a request with the model's state. A script that fails violates a separate invariant.
pub fn judge(model: &mut dyn Model, seen: Observation, verdict: &mut Verdict) {
    match seen.out.reply {
        Reply::Error(error) if !model.is_refusal(seen.call, seen.out.reply) => {
            verdict.expect(Invariant::G4, false, || String::from_utf8_lossy(error).into_owned());
        }
        _ => model.after(seen, verdict),
    }
}

/// Expects that a repeated request gets the same reply as the first time and changes nothing.
pub fn expect_same(verdict: &mut Verdict, first: Reply, second: Reply, is_unchanged: bool) {
    verdict.expect(Invariant::G2, first == second, || format!("first {first}, then {second}"));
    verdict.expect(Invariant::G3, is_unchanged, || "the second execution changed the keyspace".to_owned());
}

/// Expects that a renewal says whether its owner holds the lock: with 0 the client stops to renew it. Releases reply with
/// 1 and 0, or with true and false.
pub fn expect_renewal_told(verdict: &mut Verdict, reply: Reply, holds: bool) {
    let told = match reply {
        Reply::Nil => Some(0),
        reply => reply.int(),
    };
    verdict.expect(Invariant::M5, told == Some(holds.into()), || {
        format!("answered {reply} to who {} the lock", if holds { "holds" } else { "does not hold" })
    });
}

/// The form of an object's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A hash of owners.
    Owners,
    /// A hash of owners with the field `mode`.
    OwnersWithMode,
    /// A number, accompanied by a sorted set of the permits' ids.
    Permits,
    /// Anything else.
    Any,
}

/// Copies a model behind a reference.
pub trait CopyModel {
    fn copy(&self) -> Box<dyn Model>;
}

impl<M: Model + Clone + 'static> CopyModel for M {
    fn copy(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Model> {
    fn clone(&self) -> Box<dyn Model> {
        (**self).copy()
    }
}

/// A lock object: its operations, and the invariants that hold after each of them.
///
/// The runner calls [`before`](Model::before) and [`after`](Model::after) around each request. A model compares the two
/// states and the reply with the operation's guarantees, and remembers what clients have been granted so far.
pub trait Model: CopyModel {
    fn operations(&self) -> &'static [Operation];

    /// Returns the names of the object's keys and channels.
    fn names(&self) -> &Names;

    /// Returns the form of the object's key.
    fn form(&self) -> Form {
        Form::Owners
    }

    /// Returns how many nodes the object needs.
    fn nodes(&self) -> usize {
        1
    }

    /// Returns whether a reply is the object's way of refusing. An error that refuses is not a failure of the script,
    /// and a client that asks again may get another answer.
    fn is_refusal(&self, _call: &Call, _reply: Reply) -> bool {
        false
    }

    /// Returns whether the client repeats a request that got no reply, if the operation says that clients do.
    fn is_repeated(&self, _call: &Call) -> bool {
        true
    }

    /// Returns whether the object's keys have to belong to one hash slot.
    fn is_in_cluster(&self) -> bool {
        true
    }

    /// Returns whether a key is one of the object's.
    fn has_key(&self, key: &[u8]) -> bool {
        key == self.names().lock.as_bytes()
    }

    /// Returns the keys that expire together with the object.
    fn expiring(&self) -> Vec<&str> {
        vec![&self.names().lock]
    }

    /// Returns keys whose loss (by eviction, by hand) does not lose the lock itself.
    fn companions(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Returns the prefixes of the keys that store an owner's holds outside the object's key.
    fn hold_prefixes(&self, _owner: usize) -> Vec<String> {
        Vec::new()
    }

    /// Resets the model to an empty keyspace.
    fn reset(&mut self);

    /// Completes a call: fills in what the model selects by `choice`, and replaces the operation by one that the client
    /// has to do first. Returns false, and leaves the model unchanged, if the client would not send the request now.
    fn ask(&mut self, call: &mut Call, choice: u8) -> bool;

    /// Writes the key or the arguments for a parameter.
    fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        self.names().write(parameter, call, out);
    }

    /// Reads a client's argument for one of the object's [readable](super::binding::Arguments::readable) parameters.
    /// Ids of permits are already translated. Returns `None` if the argument is invalid.
    fn read(&mut self, _parameter: Parameter, _word: &[u8], _call: &mut Call) -> Option<()> {
        Some(())
    }

    /// Appends to a report what a call requests besides lease and count.
    fn describe(&self, _call: &Call, _text: &mut String) {}

    fn before(&mut self, call: &Call, view: View);

    fn after(&mut self, seen: Observation, verdict: &mut Verdict);

    /// Notes that a companion key was lost or a clock is wrong: guarantees that depend on it no longer hold.
    fn disturbed(&mut self) {}

    /// Adds the times, besides the expiries of keys, at which something may change, as Unix time in ms.
    fn deadlines(&self, _view: View, _into: &mut Vec<i64>) {}

    /// Returns the operations to run once more after all leases have ended.
    fn closing(&self) -> &'static [usize] {
        &[]
    }

    /// Returns whether a key may still exist after all leases have ended.
    fn may_stay(&self, _key: &[u8]) -> bool {
        false
    }
}
