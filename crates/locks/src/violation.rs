//! Violations of invariants, and the selection of those to look for.

use super::invariant::{Invariant, Rules};

/// A failed invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// The operation that violated it.
    pub operation: &'static str,
    pub text: String,
}

/// The verdict on one request: the first selected violation.
pub struct Verdict<'a> {
    pub rules: Rules,
    pub operation: &'static str,
    /// The index of the step in the schedule.
    step: usize,
    wanted: &'a Wanted,
    pub found: Option<Violation>,
}

/// Selects violations: of an invariant, at one operation or at any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The violations to look for; empty means all.
    pub only: Vec<(Invariant, Option<String>)>,
    /// Violations that are ignored.
    pub except: Vec<(Invariant, Option<String>)>,
    /// Violations that are ignored at one step of a schedule each.
    pub known: Vec<(usize, Invariant)>,
    /// Whether to look for nothing.
    none: bool,
}

impl Wanted {
    /// Selects no violations.
    pub fn nothing() -> Wanted {
        Wanted { none: true, ..Wanted::default() }
    }

    /// Selects these violations, or all if the list is empty.
    pub fn these(only: Vec<(Invariant, Option<String>)>) -> Wanted {
        Wanted { only, ..Wanted::default() }
    }

    /// Ignores these violations.
    pub fn except(self, except: Vec<(Invariant, Option<String>)>) -> Wanted {
        Wanted { except, ..self }
    }

    /// Ignores violations like this one from now on.
    pub fn leave_out(&mut self, violation: &Violation) {
        self.except.push((violation.invariant, Some(violation.operation.to_owned())));
    }

    /// Selects the violations of one invariant at one operation.
    pub fn one(invariant: Invariant, operation: &str) -> Wanted {
        Wanted::these(vec![(invariant, Some(operation.to_owned()))])
    }

    /// Parses `M1` or `M2@read.unlock`.
    pub fn parse(word: &str) -> Option<(Invariant, Option<String>)> {
        let (id, operation) = match word.split_once('@') {
            Some((id, operation)) => (id, Some(operation.to_owned())),
            None => (word, None),
        };
        Some((Invariant::find(id)?, operation))
    }

    /// Returns whether a violation is selected.
    pub fn contains(&self, invariant: Invariant, operation: &str) -> bool {
        let names = |list: &[(Invariant, Option<String>)]| {
            let mut list = list.iter();
            list.any(|(named, at)| {
                *named == invariant && at.as_deref().is_none_or(|named| named == operation)
            })
        };
        (self.only.is_empty() || names(&self.only)) && !self.none && !names(&self.except)
    }
}

impl<'a> Verdict<'a> {
    /// Creates a verdict without a violation.
    pub fn new(rules: Rules, wanted: &'a Wanted) -> Verdict<'a> {
        Verdict { rules, operation: "", step: 0, wanted, found: None }
    }

    /// Sets the index of the step that is judged.
    pub fn at(self, step: usize) -> Verdict<'a> {
        Verdict { step, ..self }
    }

    /// Returns whether the strict rules apply.
    pub fn is_strict(&self) -> bool {
        self.rules == Rules::Strict
    }

    /// Records a violation unless `holds`.
    pub fn expect(&mut self, invariant: Invariant, holds: bool, text: impl FnOnce() -> String) {
        if !holds
            && self.found.is_none()
            && self.wanted.contains(invariant, self.operation)
            && !self.wanted.known.contains(&(self.step, invariant))
        {
            self.found = Some(Violation { invariant, operation: self.operation, text: text() });
        }
    }
}
