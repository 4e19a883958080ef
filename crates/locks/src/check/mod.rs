//! Checks the invariants of locks on the requests of real clients.
//!
//! While checks are on, the models that judge schedules of the fuzzer also judge every script that is recognised as a
//! lock script ([`crate`]): they compare the keys before and after it, its reply and its messages with the guarantees
//! of the operation.
//!
//! | file | concept |
//! |---|---|
//! | `kinds` | violations by kind, with counts |
//! | `reading` | the arguments of a script by their meaning |
//! | `shadow` | one lock of real clients, translated for its models |
//!
//! A model knows one lock and six owners. A server has many of both, its keys change without scripts, and locks may
//! exist before checks begin. So each lock has a shadow, which translates. A state that no script has left is accepted
//! as it is, and earlier grants no longer count. Scripts that cannot be judged are counted with the reason, and never
//! reported as violations.

mod kinds;
mod reading;
mod shadow;

use std::collections::BTreeMap;
use std::fmt;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::binding::Binding;
use crate::history::{Cause, Grant};
use crate::invariant::Rules;
use crate::model::{Message, Reply, Violation, Wanted, is_failure};
use crate::own::lock::Shared;
use crate::role::Role;
use crate::script_set::{LockScript, ScriptSet};
pub use kinds::{Count, Kind, Kinds};
use reading::{Reading, parts};
use redlatch_core::script::sha1_hex;
use redlatch_core::store::{Limits, Store};
use shadow::{Shadow, Turn};

/// A SHA-1 in lower-case hex.
type Sha = [u8; 40];

/// The settings of the checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// The arguments of `SIM.CHECK ON`.
    pub words: Vec<String>,
    /// The names of the objects to check (`rlock`, `rw`); empty means all.
    pub objects: Vec<String>,
    pub wanted: Wanted,
    pub rules: Rules,
    /// The lock that a file describes, in the format of `redlatch fuzz --scripts`.
    pub own: Option<Shared>,
}

impl Checks {
    /// Returns whether there is an object with this name.
    pub fn is_object(name: &str) -> bool {
        Role::all().any(|role| role.name().split('.').next() == Some(name))
    }

    /// Returns whether a violation is one that these settings select.
    pub fn asks_for(&self, finding: &Finding) -> bool {
        let object = finding.object.split('.').next().unwrap_or_default();
        (self.objects.is_empty() || self.objects.iter().any(|name| name == object))
            && self.wanted.contains(finding.violation.invariant, finding.violation.operation)
    }
}

/// A violation and its circumstances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The number of the event in which the script ended.
    pub event: u64,
    pub node: usize,
    pub db: usize,
    pub object: &'static str,
    pub violation: Violation,
    pub key: Vec<u8>,
    /// The owner on whose behalf the script ran; empty if the script does not name it.
    pub owner: Vec<u8>,
    /// The owners that the letters in the texts refer to.
    pub owners: Vec<(char, Vec<u8>)>,
    pub reply: String,
    pub messages: Vec<String>,
    /// The keys of the lock, one line for each.
    pub before: Vec<String>,
    pub after: Vec<String>,
    /// What explains a violation that [`History`](crate::history::History) has found.
    pub cause: Option<Cause>,
    /// The grants that exclude each other, or the one that was lost, and what stands between.
    pub grants: Vec<Grant>,
    pub between: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.grants.is_empty() { "" } else { ":" };
        writeln!(f, "{}{colon}", self.violation.text)?;
        self.grants.iter().try_for_each(|grant| writeln!(f, "  {grant}"))?;
        self.between.iter().try_for_each(|happening| writeln!(f, "  between: {happening}"))
    }
}

impl Finding {
    /// Returns the invariant and the operation that violated it: `A1@read.unlock`.
    pub fn promise(&self) -> String {
        format!("{}@{}", self.violation.invariant.id(), self.violation.operation)
    }
}

/// Counts of judged and unjudged operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub judged: u64,
    /// Those that were not judged, by reason.
    pub unjudged: BTreeMap<String, u64>,
}

/// A script that is about to run.
pub struct Start<'a> {
    pub sha: Sha,
    /// The role that its text was recognised as, and the text.
    pub lock: Option<(Role, &'a [u8])>,
    pub keys: &'a [&'a [u8]],
    pub argv: &'a [&'a [u8]],
    pub db: usize,
    /// The number of the connection.
    pub client: u64,
    /// Whether a rule of the control plane makes the script fail.
    pub is_sabotaged: bool,
}

/// A lock script's role and arguments, or the reason why its arguments are unknown.
type Known = Result<(Role, Binding), String>;

/// The most violations that are kept.
pub const MAX_FINDINGS: usize = 1_000;

/// The most locks that are remembered.
const MAX_LOCKS: usize = 10_000;

/// The checks of one node.
#[derive(Clone)]
pub struct Checker {
    checks: Checks,
    scripts: HashMap<Sha, Known, FixedState>,
    /// For each role, the lock script that was seen last.
    seen: ScriptSet,
    /// The locks, by database and name.
    locks: BTreeMap<(usize, Vec<u8>), Shadow>,
    /// The names of locks, by their companion keys.
    companions: BTreeMap<(usize, Vec<u8>), Vec<u8>>,
    /// The locks that the running script uses, and its operation on each.
    present: Vec<(Shadow, Turn)>,
    messages: Vec<Message>,
    scratch: Store,
    findings: Vec<Finding>,
    pub tally: Tally,
}

impl Checker {
    /// Creates checks that have seen nothing. `limits` decides about the encodings of copied values.
    pub fn new(checks: Checks, limits: Limits) -> Checker {
        let mut checker = Checker {
            scripts: HashMap::default(),
            seen: ScriptSet::default(),
            locks: BTreeMap::new(),
            companions: BTreeMap::new(),
            present: Vec::new(),
            messages: Vec::new(),
            scratch: Store::new(1, Default::default(), limits),
            findings: Vec::new(),
            tally: Tally::default(),
            checks,
        };
        if let Some(lock) = &checker.checks.own {
            for script in lock.scripts() {
                let sha = sha1_hex(script.text.as_bytes());
                checker.scripts.insert(sha, Ok((script.role, script.binding)));
            }
            checker.seen.put_own(lock.clone());
        }
        checker
    }

    /// Records the state of the locks that a script is about to use.
    pub fn begin(&mut self, start: &Start, store: &Store) {
        self.messages.clear();
        self.present.clear();
        let Some(known) = self.know(start) else { return };
        let (role, binding) = match known {
            Ok(known) => known,
            Err(why) => return self.leave_out(why),
        };
        if start.is_sabotaged {
            return self.leave_out(format!("{}: a rule makes it fail", role.name()));
        }
        let Some(parts) = parts(role, &binding, start.keys, start.argv) else {
            return self.leave_out(format!("{}: several owners or locks in one script", role.name()));
        };
        let now_ms = store.now.wall_ms();
        for (index, (keys, argv)) in parts.into_iter().enumerate() {
            let Some(reading) = Reading::of((role, &binding), index, (&keys, &argv), now_ms) else {
                self.leave_out(format!("{}: arguments out of the ordinary", role.name()));
                continue;
            };
            if let Err(why) = self.begin_part(start, reading, store) {
                self.leave_out(format!("{}: {why}", role.name()));
            }
        }
    }

    fn begin_part(&mut self, start: &Start, reading: Reading, store: &Store) -> Result<(), &'static str> {
        let named = reading.lock().map(<[u8]>::to_vec);
        let name = named.or_else(|| {
            reading.companions().find_map(|key| self.companions.get(&(start.db, key.to_vec())).cloned())
        });
        let name = name.ok_or("a lock that was not seen before")?;
        for key in reading.companions() {
            let key = (start.db, key.to_vec());
            self.companions.entry(key).or_insert_with(|| name.clone());
        }
        self.make_room(store);
        let place = (start.db, name);
        let mut lock = self.locks.remove(&place).unwrap_or_else(|| Shadow::new(start.db, place.1.clone()));
        let begun = lock.begin(start, reading, &self.seen, store, &mut self.scratch);
        match begun {
            Ok(turn) => self.present.push((lock, turn)),
            Err(why) => {
                self.locks.insert(place, lock);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Records a message that the running script published.
    pub fn published(&mut self, channel: &[u8], payload: &[u8]) {
        if !self.present.is_empty() {
            self.messages.push(Message { channel: channel.to_vec(), payload: payload.to_vec() });
        }
    }

    /// Judges the script that began last, which has ended with `reply`.
    pub fn finish(&mut self, reply: &[u8], event: u64, node: usize, store: &Store) {
        let is_foreign = is_foreign(Reply::parse(reply));
        for (mut lock, turn) in std::mem::take(&mut self.present) {
            let place = (lock.db(), lock.name().to_vec());
            if is_foreign {
                self.leave_out("the server refused a command of the script".to_owned());
            } else {
                self.tally.judged += 1;
                let found = lock.finish(turn, reply, &self.messages, &self.checks, store, &mut self.scratch);
                self.findings.extend(found.map(|finding| Finding { event, node, ..finding }));
            }
            self.locks.insert(place, lock);
        }
    }

    /// Returns the violations since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn leave_out(&mut self, why: String) {
        *self.tally.unjudged.entry(why).or_default() += 1;
    }

    /// Returns what is known of a script, or `None` if it is not a lock script.
    fn know(&mut self, start: &Start) -> Option<Known> {
        if let Some(known) = self.scripts.get(&start.sha) {
            return Some(known.clone());
        }
        let (role, text) = start.lock?;
        let known = match Binding::of(role, text) {
            // Redisson 2.2. The shadow cannot replace the names of owners inside JSON text.
            Ok(_) if memchr::memmem::find(text, b"cjson.").is_some() => {
                Err(format!("{}: owners stand in JSON", role.name()))
            }
            Ok(binding) => Ok((role, binding)),
            Err(why) => Err(format!("{}: {why}", role.name())),
        };
        self.scripts.insert(start.sha, known.clone());
        // Several objects share the text. The other scripts that the lock gets will show which object it is.
        for role in role.readings() {
            if let Ok(binding) = Binding::of(role, text) {
                self.seen.put(LockScript {
                    role,
                    name: role.name().to_owned(),
                    text: String::from_utf8_lossy(text).into_owned(),
                    binding,
                    uses: Vec::new(),
                });
            }
        }
        Some(known)
    }

    /// Forgets locks that are free and not granted to anybody, if there are too many.
    fn make_room(&mut self, store: &Store) {
        if self.locks.len() < MAX_LOCKS {
            return;
        }
        self.locks.retain(|_, lock| lock.has_keys(store));
        if self.locks.len() >= MAX_LOCKS {
            self.locks.clear();
        }
        self.companions.clear();
    }
}

/// Returns whether the server, not the script, caused an error: out of memory, a replica, a key of the wrong type.
fn is_foreign(reply: Reply) -> bool {
    matches!(reply, Reply::Error(text)
        if is_failure(reply) && (!text.starts_with(b"ERR ") || memchr::memmem::find(text, b"killed by user").is_some()))
}
