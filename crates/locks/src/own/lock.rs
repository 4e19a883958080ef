//! What a file says about a lock.

use std::sync::Arc;

use redlatch_core::version::Version;

use super::answer::{Answer, Pattern};
use super::roles;
use super::template::{Slot, Template};
use crate::binding::{Binding, Parameter};
use crate::role::Role;
use crate::script_set::LockScript;

/// The release that a file without `redis_version` is run on.
pub const DEFAULT_VERSION: Version = Version::V7_4;

/// The kinds of locks, by what they guarantee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One owner at a time.
    #[default]
    Lock,
    /// One owner at a time; waiters are served in the order in which they came.
    Queue,
    /// A number of permits.
    Semaphore,
    /// A count that goes down to nought.
    Latch,
    /// A number of requests in an interval.
    Limiter,
}

/// Where the scripts keep the end of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// It is the expiry of the main key.
    #[default]
    Key,
    /// Somewhere in the data.
    Stored,
    /// There is none.
    Endless,
}

/// What happens when an owner acquires the lock that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reentry {
    #[default]
    Refused,
    /// It is granted, and needs one more release.
    Counts,
    /// It is granted, and needs no more releases.
    Renews,
}

/// How a limiter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// At any time, the interval before it.
    Sliding,
    /// Intervals that begin with the first request after the one before has ended.
    Fixed,
    /// Intervals that begin when the clock is a multiple of their length.
    Clock,
    /// Tokens that are added evenly up to a greatest number.
    Bucket,
}

/// The rate of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub limit: i64,
    pub per_ms: i64,
    pub burst: i64,
    pub window: Window,
}

/// One request of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub role: Role,
    /// The text of the script; empty if the request is a command.
    pub script: String,
    pub keys: Vec<Template>,
    /// The arguments of the script, or all words of the command.
    pub args: Vec<Template>,
    /// The forms of replies, the less general ones first.
    pub answers: Vec<(Answer, Pattern)>,
    /// Whether the client repeats the request if its reply is lost.
    pub resend: bool,
    /// Whether the lease is added to what is left.
    pub adds: bool,
    /// Whether an extension acquires the lock again if its lease has ended and nobody has it.
    pub acquires: bool,
    /// Whether waiters may be overtaken.
    pub overtakes: bool,
}

/// A lock that a file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub kind: Kind,
    pub version: Version,
    /// The main key.
    pub key: Template,
    /// Where waiters are told, by a message.
    pub channel: Option<Template>,
    /// The message, if waiters act on this one only.
    pub message: Option<String>,
    /// The list on which waiters block.
    pub signal: Option<Template>,
    pub lease: Lease,
    pub reentry: Reentry,
    pub permits: i64,
    /// How long a waiter that does not ask again keeps its place.
    pub waiter_ms: i64,
    pub limit: Option<Limit>,
    /// The keys that may exist after everything has ended.
    pub stays: Vec<Template>,
    /// The keys that may be lost without harm.
    pub may_be_lost: Vec<Template>,
    pub is_in_cluster: bool,
    pub parts: Vec<Part>,
}

impl Default for Lock {
    fn default() -> Lock {
        Lock {
            kind: Kind::default(),
            version: DEFAULT_VERSION,
            key: Template::of(Slot::Lock),
            channel: None,
            message: None,
            signal: None,
            lease: Lease::default(),
            reentry: Reentry::default(),
            permits: 1,
            waiter_ms: 0,
            limit: None,
            stays: Vec::new(),
            may_be_lost: Vec::new(),
            is_in_cluster: false,
            parts: Vec::new(),
        }
    }
}

impl Part {
    /// Returns the name in the file and in reports.
    pub fn name(&self) -> &'static str {
        self.role.name().strip_prefix("own.").unwrap_or_default()
    }

    /// Returns whether the reply tells success from failure.
    pub fn tells(&self) -> bool {
        self.answers.iter().all(|(answer, pattern)| match answer {
            Answer::NotHeld | Answer::Refused => true,
            _ => *pattern != Pattern::Anything,
        })
    }

    /// Returns whether the file names a form for an answer.
    pub fn has(&self, answer: Answer) -> bool {
        self.answers.iter().any(|(known, _)| *known == answer)
    }

    /// Iterates over the slots of all words.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.keys.iter().chain(&self.args).flat_map(Template::slots)
    }

    /// Returns whether a word has the slot.
    pub fn uses(&self, slot: Slot) -> bool {
        self.slots().any(|used| used == slot)
    }

    /// Returns the parameters of the words. A word that is more than one simple slot has a parameter of its own.
    pub fn binding(&self) -> Binding {
        let mut parameters: Vec<Parameter> = self.words().map(|(parameter, _)| parameter).collect();
        let args = parameters.split_off(self.keys.len());
        Binding { keys: parameters, args }
    }

    /// Iterates over the words with their parameters.
    pub fn words(&self) -> impl Iterator<Item = (Parameter, &Template)> {
        let words = self.keys.iter().chain(&self.args).enumerate();
        words.map(|(index, word)| {
            let slot = word.only_slot().and_then(Slot::parameter);
            (slot.unwrap_or_else(|| word_parameter(index)), word)
        })
    }
}

fn word_parameter(index: usize) -> Parameter {
    Parameter::argument(&format!("word {index}"))
}

impl Lock {
    /// Returns the request with a role.
    pub fn part(&self, role: Role) -> Option<&Part> {
        self.parts.iter().find(|part| part.role == role)
    }

    /// Returns whether a request with a role has the slot.
    pub fn uses(&self, role: Role, slot: Slot) -> bool {
        self.part(role).is_some_and(|part| part.uses(slot))
    }

    /// Returns whether the lock knows who has acquired it.
    pub fn names_owners(&self) -> bool {
        self.uses(roles::ACQUIRE, Slot::Owner) || self.uses(roles::ACQUIRE, Slot::Token)
    }

    /// Returns whether a request depends on the clock of the client.
    pub fn trusts_clients(&self) -> bool {
        self.parts.iter().flat_map(Part::slots).any(Slot::is_clock)
    }

    /// Returns the requests in the form in which those of jars are kept.
    pub fn scripts(&self) -> Vec<LockScript> {
        let script = |part: &Part| LockScript {
            role: part.role,
            name: part.name().to_owned(),
            text: part.script.clone(),
            binding: part.binding(),
            uses: Vec::new(),
        };
        self.parts.iter().map(script).collect()
    }

    /// Returns why the requests of real clients cannot be checked with the description, or `None` if they can.
    pub fn uncheckable(&self) -> Option<String> {
        if self.kind != Kind::Lock || self.lease != Lease::Key || self.reentry == Reentry::Counts {
            let kind = "only a lock of kind \"lock\" can be checked, with its lease on its key, and without counted holds";
            return Some(kind.to_owned());
        }
        let words = |part: &Part| {
            part.keys
                .iter()
                .chain(&part.args)
                .all(|word| word.only_slot().and_then(Slot::parameter).is_some())
        };
        let part = self.parts.iter().find(|part| part.script.is_empty() || !words(part))?;
        Some(format!(
            "[{}] cannot be checked: only a script can whose words are each one of lock, channel, owner, lease_ms and now_ms",
            part.name()
        ))
    }
}

/// A description that models share.
pub type Shared = Arc<Lock>;
