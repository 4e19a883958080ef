//! What is looked for in a run, and whether it holds at a moment.

use std::cell::RefCell;
use std::rc::Rc;

use super::asker::Asker;
use crate::control::Lab;
use crate::control::args::Args;
use crate::control::commands::check::parse_checks;
use crate::trace::Player;
use redlatch_core::store::{Entry, Value};
use redlatch_locks::check::{Checks, Finding};

/// A predicate over the state of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// A string has this value, on some node.
    Key { key: Vec<u8>, value: Vec<u8> },
    /// The key has existed on some node and is gone there.
    Absent { key: Vec<u8> },
    /// Two clients were told that they hold the same lock.
    TwoOwners,
    /// A collection has more elements, or more clients wait for the key.
    Queue { key: Vec<u8>, more_than: usize },
    /// A check has found a violation.
    Invariant { name: String, checks: Checks },
    /// A script answers 1.
    Script { text: Rc<[u8]> },
}

/// The forms of a predicate, for help and error texts.
pub const FORMS: &str =
    "key NAME == VALUE, absent NAME, two-owners, queue NAME > N, invariant NAME, script FILE";

impl Predicate {
    /// Parses the text of a predicate. `read` reads the file of a script.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(
        text: &str,
        read: impl FnOnce(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Predicate, String> {
        let (kind, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        let wrong = || format!("'{text}' is not a predicate; the forms are: {FORMS}");
        let named = |name: &str| if name.is_empty() { Err(wrong()) } else { Ok(name.as_bytes().to_vec()) };
        Ok(match kind {
            "key" => {
                let (name, value) = rest.split_once("==").ok_or_else(wrong)?;
                let value = value.trim();
                let value =
                    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
                Predicate::Key { key: named(name.trim())?, value: value.into() }
            }
            "absent" => Predicate::Absent { key: named(rest)? },
            "two-owners" if rest.is_empty() => Predicate::TwoOwners,
            "queue" => {
                let (name, n) = rest.rsplit_once('>').ok_or_else(wrong)?;
                let more_than = n.trim().parse().map_err(|_| format!("'{}' is not a number", n.trim()))?;
                Predicate::Queue { key: named(name.trim())?, more_than }
            }
            "invariant" => {
                let words: Vec<&[u8]> = rest.split_whitespace().map(str::as_bytes).collect();
                if words.is_empty() {
                    return Err(wrong());
                }
                let checks = parse_checks(&mut Args::new(&words)).map_err(|error| error.text)?;
                Predicate::Invariant { name: rest.to_owned(), checks }
            }
            "script" => Predicate::Script { text: read(rest)?.into() },
            _ => return Err(wrong()),
        })
    }

    /// Makes the replay check locks, if the predicate is about an invariant. A run that has checked them itself shows what it has found.
    pub(super) fn prepare(&self, player: &mut Player) {
        let Predicate::Invariant { checks, .. } = self else { return };
        let tape = player.tape();
        let turns_checks =
            |row: usize| ["SIM.CHECK", "sim.check"].iter().any(|name| tape.text(row).contains(name));
        if player.lab().checks.is_none() && !(1..tape.rows().len()).any(turns_checks) {
            player.check(checks.clone());
        }
    }
}

/// Returns whether a violation is one that the words name: all, those of an object, or those of an invariant.
fn is_named(words: &str, finding: &Finding) -> bool {
    let promise = finding.promise();
    let names = ["ALL", "STRICT", finding.object, finding.violation.invariant.id(), &promise];
    words.split_whitespace().any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// Judges one moment after the other.
#[derive(Clone)]
pub struct Judge {
    predicate: Predicate,
    /// For each node whether the key of [`Predicate::Absent`] was there.
    was_there: Vec<bool>,
    /// Asks the script. Clones share it: it keeps nothing between two questions.
    asker: Option<Rc<RefCell<Asker>>>,
}

impl Judge {
    /// Creates a judge that has seen nothing.
    pub fn new(predicate: &Predicate) -> Judge {
        Judge { predicate: predicate.clone(), was_there: Vec::new(), asker: None }
    }

    /// Sees a moment on the way. To be called after each change, and before [`holds`](Self::holds).
    pub fn watch(&mut self, lab: &Lab) {
        if let Predicate::Absent { key } = &self.predicate {
            let is_there = present(lab, key);
            self.was_there.resize(is_there.len(), false);
            self.was_there.iter_mut().zip(is_there).for_each(|(was_there, is_there)| *was_there |= is_there);
        }
    }

    /// Returns whether the predicate holds at this moment.
    ///
    /// # Errors
    /// The script of the predicate fails.
    pub fn holds(&mut self, lab: &mut Lab) -> Result<bool, String> {
        Ok(match &self.predicate {
            Predicate::TwoOwners => {
                lab.with_history(|history| history.two_owners().is_some()).unwrap_or_default()
            }
            Predicate::Key { key, value } => entries(lab, key).flatten().any(|entry| match &entry.value {
                Value::String(string) => string.to_vec() == *value,
                _ => false,
            }),
            Predicate::Absent { key } => {
                let is_there = present(lab, key);
                let mut both = is_there.iter().zip(&self.was_there);
                both.any(|(is_there, was_there)| *was_there && !is_there)
            }
            Predicate::Queue { key, more_than } => {
                let longest = entries(lab, key).flatten().map(|entry| len(&entry.value)).max();
                longest.unwrap_or(0) > *more_than || waiting(lab, key) > *more_than
            }
            Predicate::Invariant { name, .. } => lab.findings.iter().any(|finding| is_named(name, finding)),
            Predicate::Script { text } => {
                let configs = || lab.world.nodes().iter().map(|node| node.config.clone()).collect();
                let asker =
                    self.asker.get_or_insert_with(|| Rc::new(RefCell::new(Asker::new(text, configs()))));
                asker.borrow_mut().ask(&mut lab.world)?
            }
        })
    }
}

/// Returns the entry of a key in each database of each node.
fn entries<'a>(lab: &'a Lab, key: &'a [u8]) -> impl Iterator<Item = Option<&'a Entry>> {
    lab.world().nodes().iter().flat_map(move |node| {
        let now = node.store.now;
        node.store.dbs.iter().map(move |db| db.entry(db.find(key)?).filter(|entry| !entry.is_expired(now)))
    })
}

/// Returns for each node whether it has a key, in any database.
fn present(lab: &Lab, key: &[u8]) -> Vec<bool> {
    let has = |node: &redlatch_core::node::Node| {
        node.store.dbs.iter().any(|db| {
            let entry = db.find(key).and_then(|slot| db.entry(slot));
            entry.is_some_and(|entry| !entry.is_expired(node.store.now))
        })
    };
    lab.world().nodes().iter().map(has).collect()
}

/// Returns how many clients wait for a key.
fn waiting(lab: &Lab, key: &[u8]) -> usize {
    let sessions = lab.world().nodes().iter().flat_map(|node| node.sessions.iter());
    let blocked = sessions.filter_map(|session| session.blocked.as_ref());
    blocked.filter(|blocked| blocked.keys.iter().any(|waits| **waits == *key)).count()
}

/// Returns the number of elements of a collection; a string has none.
pub(super) fn len(value: &Value) -> usize {
    match value {
        Value::String(_) => 0,
        Value::List(list) => list.len(),
        Value::Set(set) => set.len(),
        Value::SortedSet(set) => set.len(),
        Value::Hash(hash) => hash.len(),
        Value::Stream(stream) => stream.len(),
    }
}
