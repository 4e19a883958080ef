//! One verdict for each lock of a history.

use std::collections::BTreeMap;
use std::fmt;

use super::locks::{Action, Holders, LockKind, LockModel, LockOperation};
use super::read::{Entry, Outcome};
use super::register::{Access, Register};
use super::search::{Call, Limit, Model, Verdict, check};
use crate::datum::{Datum, Form};
use crate::promises::object_named;

/// The most operations before the bad moment that a report has.
const MAX_SHOWN: usize = 8;

/// The most configurations of a lock that is judged before costly ones.
const FEW_CONFIGURATIONS: u64 = 100_000;

/// A model, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelName {
    Lock(LockKind),
    Register,
}

impl ModelName {
    /// Parses `mutex`, `reentrant`, `fenced`, `rw`, `semaphore=N`, `register` or `cas-register`.
    pub fn parse(text: &str) -> Option<ModelName> {
        Some(ModelName::Lock(match text {
            "mutex" => LockKind::Mutex,
            "reentrant" => LockKind::Reentrant,
            "fenced" => LockKind::Fenced,
            "rw" => LockKind::ReadWrite,
            "register" | "cas-register" => return Some(ModelName::Register),
            _ => LockKind::Semaphore(text.strip_prefix("semaphore=")?.parse().ok()?),
        }))
    }

    /// Returns the model of a kind of lock.
    fn of_object(object: &str) -> ModelName {
        ModelName::Lock(object_named(object).map_or(LockKind::Mutex, |object| object.kind))
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelName::Lock(LockKind::Mutex) => f.write_str("mutex"),
            ModelName::Lock(LockKind::Reentrant) => f.write_str("reentrant"),
            ModelName::Lock(LockKind::Fenced) => f.write_str("fenced"),
            ModelName::Lock(LockKind::ReadWrite) => f.write_str("rw"),
            ModelName::Lock(LockKind::Semaphore(permits)) => write!(f, "semaphore={permits}"),
            ModelName::Register => f.write_str("cas-register"),
        }
    }
}

/// The verdict on one lock.
#[derive(Clone, Debug)]
pub struct Judgement {
    pub key: (i64, i64, String),
    pub model: ModelName,
    /// How many operations were judged.
    pub operations: usize,
    /// `None`: the limit was reached.
    pub is_linearizable: Option<bool>,
    /// Why it is not.
    reason: Option<Reason>,
}

/// The shortest prefix that is not linearizable.
#[derive(Clone, Debug)]
struct Reason {
    /// The operation that cannot be explained.
    at: Entry,
    /// The last operations of an order that explains all before, and how many came before these.
    order: Vec<Entry>,
    earlier: usize,
    /// What the model has after these.
    state: String,
    /// The other operations that were under way when it returned.
    concurrent: Vec<Entry>,
}

/// The verdicts on all locks of a history.
#[derive(Clone, Debug)]
pub struct Report {
    pub locks: Vec<Judgement>,
    /// How many operations have not happened, and say nothing.
    pub refused: usize,
    /// How many operations were cut off.
    pub cut_off: usize,
}

impl Report {
    /// Returns whether all locks are linearizable; `None` if the limit was reached for one, and none is bad.
    pub fn is_linearizable(&self) -> Option<bool> {
        let mut verdicts = self.locks.iter().map(|lock| lock.is_linearizable);
        match verdicts.clone().any(|verdict| verdict == Some(false)) {
            true => Some(false),
            false => verdicts.all(|verdict| verdict.is_some()).then_some(true),
        }
    }
}

/// Judges the history of each lock, by a model or by that of its kind.
///
/// # Errors
/// An operation that the model does not have.
pub fn judge(entries: &[Entry], model: Option<ModelName>, limit: &mut Limit) -> Result<Report, String> {
    let mut by_key: BTreeMap<&(i64, i64, String), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_key.entry(&entry.key).or_default().push(entry);
    }
    let begins_late = entries.iter().filter_map(|entry| entry.number).min().is_some_and(|first| first > 0);
    let mut report = Report { locks: Vec::new(), refused: 0, cut_off: 0 };
    let all = limit.configurations;
    // The costly ones last, so that they do not take the time of the others.
    limit.configurations = all.min(FEW_CONFIGURATIONS);
    let mut costly = Vec::new();
    for (key, entries) in &by_key {
        let of = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
        report.cut_off += of(Outcome::Info);
        let judgement = judge_one(key, entries, model, begins_late, limit)?;
        if let ModelName::Lock(_) = judgement.model {
            report.refused += of(Outcome::Fail);
        }
        if judgement.is_linearizable.is_none() {
            costly.push((report.locks.len(), entries));
        }
        report.locks.push(judgement);
    }
    limit.configurations = all;
    for (index, entries) in costly {
        let judged = &mut report.locks[index];
        *judged = judge_one(&judged.key, entries, model, begins_late, limit)?;
    }
    Ok(report)
}

fn judge_one(
    key: &(i64, i64, String),
    entries: &[&Entry],
    model: Option<ModelName>,
    begins_late: bool,
    limit: &mut Limit,
) -> Result<Judgement, String> {
    let model = model.unwrap_or_else(|| match entries.iter().any(|entry| is_access(entry)) {
        true => ModelName::Register,
        false => ModelName::of_object(&entries[0].object),
    });
    let (operations, is_linearizable, reason) = match model {
        ModelName::Lock(kind) => {
            let (calls, owners) = lock_calls(entries)?;
            let model = LockModel { kind, begins_late };
            verdict(&model, calls, entries, limit, |state| show_holders(state, &owners))
        }
        ModelName::Register => {
            let calls = register_calls(entries)?;
            verdict(&Register, calls, entries, limit, |value| format!("the value is {}", edn(value)))
        }
    };
    Ok(Judgement { key: key.clone(), model, operations, is_linearizable, reason })
}

/// The calls of a history, each with the index of its entry.
type Calls<O> = Vec<(usize, Call<O>)>;

fn verdict<M: Model>(
    model: &M,
    calls: Calls<M::Operation>,
    entries: &[&Entry],
    limit: &mut Limit,
    show: impl Fn(&M::State) -> String,
) -> (usize, Option<bool>, Option<Reason>) {
    let (of, calls): (Vec<usize>, Vec<Call<M::Operation>>) = calls.into_iter().unzip();
    let (at, order, state) = match check(model, &calls, limit) {
        Verdict::Linearizable(_) => return (calls.len(), Some(true), None),
        Verdict::Unknown => return (calls.len(), None, None),
        Verdict::Not { at, order, state } => (at, order, state),
    };
    let returned = calls[at].to;
    let is_open = |(index, call): &(usize, &Call<M::Operation>)| {
        let began = returned.is_some_and(|returned| call.from <= returned);
        *index != at && began && (call.to.is_none() || call.to > returned)
    };
    let concurrent = calls.iter().enumerate().filter(is_open).map(|(index, _)| entries[of[index]].clone());
    let earlier = order.len().saturating_sub(MAX_SHOWN);
    let reason = Reason {
        at: entries[of[at]].clone(),
        order: order[earlier..].iter().map(|index| entries[of[*index]].clone()).collect(),
        earlier,
        state: show(&state),
        concurrent: concurrent.collect(),
    };
    (calls.len(), Some(false), Some(reason))
}

fn edn(value: &Datum) -> String {
    value.write(Form::Edn)
}

fn show_holders(state: &Holders, owners: &[&str]) -> String {
    if state.holds.is_empty() {
        return "nobody holds it".to_owned();
    }
    let shown = state.holds.iter().map(|hold| {
        let owner = owners.get(hold.owner as usize).unwrap_or(&"");
        let count = match hold.count {
            Some(1) => String::new(),
            Some(count) => format!(" {count} times"),
            None => " at least once".to_owned(),
        };
        match hold.until_ms {
            Some(until_ms) => format!("{owner} holds it{count}, at least until {until_ms} ms"),
            None => format!("{owner} holds it{count}"),
        }
    });
    let mut shown = shown.collect::<Vec<_>>().join("; ");
    if let Some(token) = state.token {
        shown.push_str(&format!("; the last token is {token}"));
    }
    shown
}

/// Returns the operations that have happened or may have, and the owners by their numbers.
fn lock_calls<'a>(entries: &[&'a Entry]) -> Result<(Calls<LockOperation>, Vec<&'a str>), String> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut owners = Vec::new();
    let mut calls = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let action = match &entry.function[..] {
            "acquire" | "lock" => Action::Acquire,
            "release" | "unlock" => Action::Release,
            "renew" => Action::Renew,
            "force-release" | "delete" => Action::ForceRelease,
            other => return Err(format!("a lock has no operation '{other}'")),
        };
        if entry.outcome == Outcome::Fail {
            continue;
        }
        let mut id = |owner| {
            *numbers.entry(owner).or_insert_with(|| {
                owners.push(owner);
                owners.len() as u32 - 1
            })
        };
        let person = id(entry.owner.strip_suffix(":write").unwrap_or(&entry.owner));
        let owner = id(&entry.owner);
        let permits = entry.argument.int().and_then(|permits| u32::try_from(permits).ok());
        let object = object_named(&entry.object);
        let operation = LockOperation {
            action,
            owner,
            person,
            is_shared: object.is_some_and(|object| object.is_shared),
            permits: permits.unwrap_or(1),
            lease_ms: entry.lease_ms,
            from_ms: entry.from_ms,
            to_ms: entry.to_ms.or(entry.to.map(|_| u64::MAX)),
            token: entry.result.int().filter(|_| action == Action::Acquire),
            is_held: entry.is_held,
            frees_what_is_free: object.is_some_and(|object| object.frees_what_is_free),
        };
        calls.push((index, Call { operation, from: entry.from, to: entry.to }));
    }
    Ok((calls, owners))
}

fn is_access(entry: &Entry) -> bool {
    matches!(&entry.function[..], "read" | "write" | "cas")
}

fn register_calls(entries: &[&Entry]) -> Result<Calls<Access>, String> {
    let mut calls = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let is_known = entry.outcome == Outcome::Ok;
        let operation = match (&entry.function[..], &entry.argument) {
            // A compare-and-set that fails has compared.
            ("cas", Datum::List(values)) if values.len() == 2 => Access::CompareAndSet {
                from: values[0].clone(),
                to: values[1].clone(),
                is_set: (entry.outcome != Outcome::Info).then_some(is_known),
            },
            ("read" | "write", _) if entry.outcome == Outcome::Fail => continue,
            ("read", _) => Access::Read(is_known.then(|| entry.result.clone())),
            ("write", value) => Access::Write(value.clone()),
            (other, _) => return Err(format!("a register has no operation '{other}'")),
        };
        calls.push((index, Call { operation, from: entry.from, to: entry.to }));
    }
    Ok(calls)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number {
            write!(f, "operation {number}: ")?;
        }
        write!(f, "{} {}", self.owner, self.function)?;
        if self.argument != Datum::Nil {
            write!(f, " {}", edn(&self.argument))?;
        }
        if let Some(lease_ms) = self.lease_ms.filter(|_| self.function != "release") {
            write!(f, ", lease {lease_ms} ms")?;
        }
        match self.outcome {
            Outcome::Ok => f.write_str(": ok")?,
            Outcome::Fail => f.write_str(": refused")?,
            Outcome::Info => f.write_str(": no reply")?,
        }
        if self.result != Datum::Nil {
            write!(f, " {}", edn(&self.result))?;
        }
        match self.events {
            (Some(from), Some(to)) => {
                write!(
                    f,
                    " (event {from} at {} ms to event {to} at {} ms)",
                    self.from_ms,
                    self.to_ms.unwrap_or(0)
                )
            }
            (Some(from), None) => write!(f, " (event {from} at {} ms)", self.from_ms),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, db, name) = &self.key;
        write!(f, "{name}")?;
        if *db != 0 {
            write!(f, ", database {db}")?;
        }
        if *group != 0 {
            write!(f, ", node {group}")?;
        }
        let verdict = match self.is_linearizable {
            Some(true) => "linearizable",
            Some(false) => "not linearizable",
            None => "unknown: the limit was reached",
        };
        writeln!(f, " ({}, {} operations): {verdict}", self.model, self.operations)?;
        let Some(reason) = &self.reason else { return Ok(()) };
        writeln!(f, "  the shortest prefix ends with the reply to")?;
        writeln!(f, "    {}", reason.at)?;
        writeln!(f, "  operations under way then: {}", reason.concurrent.len())?;
        reason.concurrent.iter().try_for_each(|entry| writeln!(f, "    {entry}"))?;
        writeln!(f, "  everything before is explained by this order ({} earlier):", reason.earlier)?;
        reason.order.iter().try_for_each(|entry| writeln!(f, "    {entry}"))?;
        writeln!(f, "  then {}", reason.state)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bad = self.locks.iter().filter(|lock| lock.is_linearizable != Some(true));
        bad.clone().try_for_each(|lock| write!(f, "{lock}"))?;
        let operations: usize = self.locks.iter().map(|lock| lock.operations).sum();
        let verdict = match self.is_linearizable() {
            Some(true) => "linearizable",
            Some(false) => "not linearizable",
            None => "unknown",
        };
        let (locks, cut_off, refused) = (self.locks.len(), self.cut_off, self.refused);
        writeln!(
            f,
            "{verdict}: locks {locks}; operations judged {operations}, without a reply {cut_off}; refused {refused}, which say nothing"
        )
    }
}
