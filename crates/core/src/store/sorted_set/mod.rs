//! Sorted sets: members ordered by score, and by their bytes where scores are equal.
//!
//! A small set is a sorted vector. A large one is a map from members to scores, and a `tree` with the map's slots in
//! order. Both answer the two questions from which everything else follows: how many members sort before a bound, and
//! which members have these ranks. Scores are never NaN.

mod tree;

use std::ops::Range;

use self::tree::Tree;
use super::limits::Limits;
use super::slab_map::{SlabMap, scale};
use crate::version::Version;

/// A set of byte strings, each with a score that orders it. Boxed, so that it does not enlarge the values of other
/// types.
#[derive(Clone)]
pub struct SortedSet(Box<Form>);

#[derive(Clone)]
enum Form {
    Listpack(Vec<(Box<[u8]>, f64)>),
    Skiplist(Large),
}

#[derive(Clone, Default)]
struct Large {
    scores: SlabMap<f64>,
    order: Tree,
}

/// An end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreBound {
    Inclusive(f64),
    Exclusive(f64),
}

/// An end of a range of members by their bytes (`-`, `+`, `[member`, `(member`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    Lowest,
    Highest,
    Inclusive(&'a [u8]),
    Exclusive(&'a [u8]),
}

impl ScoreBound {
    /// Returns whether the score is below a range that begins at this bound.
    fn is_above(self, score: f64) -> bool {
        match self {
            ScoreBound::Inclusive(bound) => score < bound,
            ScoreBound::Exclusive(bound) => score <= bound,
        }
    }

    /// Returns whether a range that ends at this bound includes the score.
    fn reaches(self, score: f64) -> bool {
        match self {
            ScoreBound::Inclusive(bound) => score <= bound,
            ScoreBound::Exclusive(bound) => score < bound,
        }
    }
}

impl LexBound<'_> {
    fn is_above(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member < bound,
            LexBound::Exclusive(bound) => member <= bound,
        }
    }

    fn reaches(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member <= bound,
            LexBound::Exclusive(bound) => member < bound,
        }
    }
}

impl SortedSet {
    /// Creates an empty set for `members` members (duplicates included) of up to `longest` bytes.
    pub fn for_members(members: usize, longest: usize, limits: &Limits) -> SortedSet {
        let mut set = SortedSet(Box::new(Form::Listpack(Vec::new())));
        if limits.zset_max_listpack_entries == 0 || longest > limits.zset_max_listpack_value {
            set.become_skiplist();
        }
        set.expect(members, longest, limits);
        set
    }

    /// Creates an empty large set, which set operations begin with.
    pub fn skiplist() -> SortedSet {
        SortedSet(Box::new(Form::Skiplist(Large::default())))
    }

    /// Announces how many members (duplicates included) of up to `longest` bytes one command is about to add. Since 7.2
    /// a small set becomes a skiplist at once if they exceed its limits.
    pub fn expect(&mut self, members: usize, longest: usize, limits: &Limits) {
        let is_too_large =
            members > limits.zset_max_listpack_entries || longest > limits.zset_max_listpack_value;
        if limits.version >= Version::V7_2 && is_too_large {
            self.become_skiplist();
        }
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match *self.0 {
            Form::Listpack(_) => "listpack",
            Form::Skiplist(_) => "skiplist",
        }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &*self.0 {
            Form::Listpack(entries) => entries.len(),
            Form::Skiplist(large) => large.scores.len(),
        }
    }

    /// Returns whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &*self.0 {
            Form::Listpack(entries) => {
                entries.iter().find(|(other, _)| **other == *member).map(|&(_, score)| score)
            }
            Form::Skiplist(large) => large.scores.get(member).copied(),
        }
    }

    /// Returns the rank of a member, from 0 for the lowest score.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        match &*self.0 {
            Form::Listpack(entries) => entries.iter().position(|(other, _)| **other == *member),
            Form::Skiplist(_) => self.score(member).map(|score| self.rank_of(member, score)),
        }
    }

    /// Returns the rank that a member with this score has, or would have.
    fn rank_of(&self, member: &[u8], score: f64) -> usize {
        self.partition_point(|other, other_score| (other_score, other) < (score, member))
    }

    /// Adds a member or changes its score. Returns its previous score.
    pub fn add(&mut self, member: &[u8], score: f64, limits: &Limits) -> Option<f64> {
        let old = self.score(member);
        if old == Some(score) {
            return old;
        }
        if let Some(old) = old {
            // A large set keeps the member in its slot, so that scans do not miss it.
            let rank = self.rank_of(member, old);
            match &mut *self.0 {
                Form::Listpack(entries) => drop(entries.remove(rank)),
                Form::Skiplist(large) => drop(large.order.remove(rank..rank + 1)),
            }
        } else if self.len() >= limits.zset_max_listpack_entries
            || member.len() > limits.zset_max_listpack_value
        {
            self.become_skiplist();
        }
        let rank = self.rank_of(member, score);
        match &mut *self.0 {
            // A listpack stores whole scores as integers, which have no negative zero.
            Form::Listpack(entries) => entries.insert(rank, (member.into(), score + 0.0)),
            Form::Skiplist(large) => {
                let (slot, _) = large.scores.insert(member, score);
                large.order.insert(rank, slot);
            }
        }
        old
    }

    /// Removes a member and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let rank = self.rank(member)?;
        self.take(rank).map(|(_, score)| score)
    }

    /// Removes the entry at a rank.
    fn take(&mut self, rank: usize) -> Option<(Box<[u8]>, f64)> {
        match &mut *self.0 {
            Form::Listpack(entries) => (rank < entries.len()).then(|| entries.remove(rank)),
            Form::Skiplist(large) => {
                let slot = *large.order.remove(rank..rank + 1).first()?;
                let (member, score) = large.scores.remove_slot(slot)?;
                Some((member[..].into(), score))
            }
        }
    }

    /// Removes and returns the member with the lowest score.
    pub fn pop_min(&mut self) -> Option<(Box<[u8]>, f64)> {
        self.take(0)
    }

    /// Removes and returns the member with the highest score.
    pub fn pop_max(&mut self) -> Option<(Box<[u8]>, f64)> {
        self.take(self.len().checked_sub(1)?)
    }

    /// Removes the entries with these ranks. Returns how many there were.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) -> usize {
        let ranks = ranks.start.min(self.len())..ranks.end.min(self.len());
        if ranks.is_empty() {
            return 0;
        }
        match &mut *self.0 {
            Form::Listpack(entries) => drop(entries.drain(ranks.clone())),
            Form::Skiplist(large) => {
                for slot in large.order.remove(ranks.clone()) {
                    large.scores.remove_slot(slot);
                }
            }
        }
        ranks.len()
    }

    /// Returns the number of entries before the first for which `is_before(member, score)` is false.
    fn partition_point(&self, is_before: impl Fn(&[u8], f64) -> bool) -> usize {
        match &*self.0 {
            Form::Listpack(entries) => entries.partition_point(|(member, score)| is_before(member, *score)),
            Form::Skiplist(large) => large.order.partition_point(|slot| {
                large.scores.entry(slot).is_some_and(|(member, &score)| is_before(member, score))
            }),
        }
    }

    /// Returns the ranks of the entries with a score between two bounds.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let start = self.partition_point(|_, score| min.is_above(score));
        let end = self.partition_point(|_, score| max.reaches(score));
        start..end.max(start)
    }

    /// Returns the ranks of the members between two bounds. The scores must all be equal; otherwise the result is some
    /// range, as in Redis.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        let start = self.partition_point(|member, _| min.is_above(member));
        let end = self.partition_point(|member, _| max.reaches(member));
        start..end.max(start)
    }

    /// Returns members and scores in ascending order, from `rank` on.
    pub fn iter_from(&self, rank: usize) -> Box<dyn Iterator<Item = (&[u8], f64)> + '_> {
        match &*self.0 {
            Form::Listpack(entries) => Box::new(entries.iter().skip(rank).map(entry)),
            Form::Skiplist(large) => Box::new(large.order.walk(rank).filter_map(|slot| large.entry(slot))),
        }
    }

    /// Returns members and scores in descending order, from `rank` on.
    pub fn iter_back_from(&self, rank: usize) -> Box<dyn Iterator<Item = (&[u8], f64)> + '_> {
        match &*self.0 {
            Form::Listpack(entries) => {
                Box::new(entries.get(..=rank).unwrap_or_default().iter().rev().map(entry))
            }
            Form::Skiplist(large) => {
                Box::new(large.order.walk_back(rank).filter_map(|slot| large.entry(slot)))
            }
        }
    }

    /// Returns members and scores in ascending order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], f64)> + '_> {
        self.iter_from(0)
    }

    /// Returns the member and score at a rank.
    pub fn get(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.iter_from(rank).next()
    }

    /// Returns the entry that the random number `draw` selects.
    pub fn random(&self, draw: u64) -> Option<(&[u8], f64)> {
        self.get(scale(draw, self.len()))
    }

    /// Visits the next entries of a scan, as [`SlabMap::scan`] does; a small set is visited whole.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        match &*self.0 {
            Form::Skiplist(large) => large.scores.scan(cursor, count, |member, &score| visit(member, score)),
            Form::Listpack(entries) => {
                entries.iter().map(entry).for_each(|(member, score)| visit(member, score));
                0
            }
        }
    }

    /// Converts a set that is small enough to a listpack. Set operations do this with their results.
    pub fn become_listpack_if_possible(&mut self, limits: &Limits) {
        if self.encoding() == "listpack"
            || self.len() > limits.zset_max_listpack_entries
            || self.iter().any(|(member, _)| member.len() > limits.zset_max_listpack_value)
        {
            return;
        }
        let entries = self.iter().map(|(member, score)| (member.into(), score + 0.0)).collect();
        *self.0 = Form::Listpack(entries);
    }

    /// Converts the set to a skiplist, whatever its size, as SORT does.
    pub fn become_skiplist(&mut self) {
        let Form::Listpack(entries) = &*self.0 else { return };
        let mut large = Large::default();
        for (rank, (member, score)) in entries.iter().enumerate() {
            let (slot, _) = large.scores.insert(member, *score);
            large.order.insert(rank, slot);
        }
        *self.0 = Form::Skiplist(large);
    }
}

impl Large {
    fn entry(&self, slot: u32) -> Option<(&[u8], f64)> {
        self.scores.entry(slot).map(|(member, &score)| (member, score))
    }
}

fn entry((member, score): &(Box<[u8]>, f64)) -> (&[u8], f64) {
    (member, *score)
}

#[cfg(test)]
mod tests;
