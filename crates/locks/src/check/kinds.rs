//! Violations by kind, so that a thousand of one kind do not hide another.

use std::collections::BTreeMap;

use super::Finding;
use crate::history::Cause;

/// The most violations of one kind that are kept.
pub const MAX_OF_KIND: u64 = 100;

/// The same invariant of the same object, violated by the same operation for the same cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub promise: String,
    pub object: &'static str,
    pub cause: Option<Cause>,
}

/// How often violations of a kind were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub count: u64,
    /// The events of the first and of the last.
    pub first: u64,
    pub last: u64,
}

/// The kinds of violations that were found, each with a count.
#[derive(Clone, Debug, Default)]
pub struct Kinds(BTreeMap<Kind, Count>);

impl Kinds {
    /// Counts a violation. Returns whether it is the first of its kind.
    pub fn add(&mut self, finding: &Finding) -> bool {
        let event = finding.event;
        let counted =
            self.0.entry(Kind::of(finding)).or_insert(Count { count: 0, first: event, last: event });
        (counted.count, counted.last) = (counted.count + 1, event);
        counted.count == 1
    }

    /// Returns whether a violation that was just counted is among the first of its kind.
    pub fn has_room(&self, finding: &Finding) -> bool {
        self.0.get(&Kind::of(finding)).is_none_or(|counted| counted.count <= MAX_OF_KIND)
    }

    /// Iterates over the kinds, the most frequent first.
    pub fn iter(&self) -> impl Iterator<Item = (&Kind, &Count)> {
        let mut all: Vec<(&Kind, &Count)> = self.0.iter().collect();
        all.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.count));
        all.into_iter()
    }

    /// Returns how many violations were found, kept or not.
    pub fn total(&self) -> u64 {
        self.0.values().map(|counted| counted.count).sum()
    }
}

impl Kind {
    fn of(finding: &Finding) -> Kind {
        Kind { promise: finding.promise(), object: finding.object, cause: finding.cause }
    }
}
