//! Violations of invariants, and which of them are looked for.

use super::invariant::{Invariant, Rules};

/// A failed invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// The operation at which it showed.
    pub operation: &'static str,
    pub text: String,
}

/// The verdict on one request: the first violation that is looked for.
pub struct Verdict<'a> {
    pub rules: Rules,
    pub operation: &'static str,
    wanted: &'a Wanted,
    pub found: Option<Violation>,
}

/// Which violations are looked for: an invariant, at one operation or anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What is looked for; empty: everything.
    pub only: Vec<(Invariant, Option<String>)>,
    /// What is known already and no longer looked for.
    pub except: Vec<(Invariant, &'static str)>,
    /// Look for nothing.
    none: bool,
}

impl Wanted {
    pub fn nothing() -> Wanted {
        Wanted { none: true, ..Wanted::default() }
    }

    /// Looks for these only; for everything, if the list is empty.
    pub fn these(only: Vec<(Invariant, Option<String>)>) -> Wanted {
        Wanted { only, ..Wanted::default() }
    }

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

    pub fn contains(&self, invariant: Invariant, operation: &str) -> bool {
        let wanted = self.only.is_empty()
            || self.only.iter().any(|(wanted, at)| {
                *wanted == invariant && at.as_deref().is_none_or(|wanted| wanted == operation)
            });
        wanted && !self.none && !self.except.iter().any(|(known, at)| *known == invariant && *at == operation)
    }
}

impl<'a> Verdict<'a> {
    pub fn new(rules: Rules, wanted: &'a Wanted) -> Verdict<'a> {
        Verdict { rules, operation: "", wanted, found: None }
    }

    pub fn is_strict(&self) -> bool {
        self.rules == Rules::Strict
    }

    /// Notes a violation unless `holds`.
    pub fn expect(&mut self, invariant: Invariant, holds: bool, text: impl FnOnce() -> String) {
        if !holds && self.found.is_none() && self.wanted.contains(invariant, self.operation) {
            self.found = Some(Violation { invariant, operation: self.operation, text: text() });
        }
    }
}
