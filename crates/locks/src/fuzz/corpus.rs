//! The schedules of one object that reached something new.
//!
//! After each request a run notes what it has reached: the operation, the kind of its reply, and the state of the keys, in which
//! numbers and times are put into classes. A guided search makes new schedules from those that reached something first.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;
use redlatch_core::num::parse_i64;
use redlatch_core::rng::Rng;
use redlatch_core::store::Value;

use super::schedule::{self, Step};
use crate::view::{FOREVER, View};

/// What a run has reached: a digest of an operation, its reply and the state after it.
pub type Reached = u64;

/// A schedule, and what it was the first to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub steps: Vec<Step>,
    pub reached: Vec<Reached>,
}

/// Schedules in the order in which they were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    entries: Vec<Entry>,
    reached: HashSet<Reached, FixedState>,
}

/// The most schedules of a corpus, the most steps of a schedule, and the most digests that a file may give for one.
const ENTRIES: usize = 10_000;
const STEPS: usize = 48;
const DIGESTS: usize = 1_000;

/// The most changes that make a new schedule from a known one.
const CHANGES: usize = 4;

impl Corpus {
    /// Returns whether the corpus lacks this.
    pub fn lacks(&self, reached: Reached) -> bool {
        !self.reached.contains(&reached)
    }

    /// Adds a schedule if it reached something new.
    pub fn add(&mut self, mut entry: Entry) {
        if self.entries.len() >= ENTRIES {
            return;
        }
        entry.reached.retain(|reached| self.reached.insert(*reached));
        if !entry.reached.is_empty() {
            self.entries.push(entry);
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of different things that were reached.
    pub fn reached(&self) -> usize {
        self.reached.len()
    }

    /// Returns the entries that together reach everything, and few others: those that reach the most come first.
    pub fn minimal(&self) -> Corpus {
        let by_reach = |entry: &Entry| (std::cmp::Reverse(entry.reached.len()), entry.steps.len());
        let mut entries = self.entries.clone();
        entries.sort_by_key(by_reach);
        let mut minimal = Corpus::default();
        entries.into_iter().for_each(|entry| minimal.add(entry));
        minimal.entries.sort_by_key(by_reach);
        minimal
    }

    /// Makes a new schedule of a known one and of `steps`, which is a random schedule, and puts it into `steps`.
    pub fn vary(&self, rng: &mut Rng, steps: &mut Vec<Step>) {
        if self.entries.is_empty() {
            return;
        }
        // The newest ones most often: they are the furthest from the empty server.
        let oldest = rng.below(self.entries.len());
        let back = rng.below(oldest + 1);
        let mut varied = self.entries[self.entries.len() - 1 - back].steps.clone();
        for _ in 0..1 + rng.below(CHANGES) {
            let at = rng.below(varied.len().max(1)).min(varied.len());
            let new = steps[rng.below(steps.len())];
            match rng.below(6) {
                0 if varied.len() > 1 => drop(varied.remove(at)),
                1 => varied.insert(at, new),
                2 if !varied.is_empty() => varied[at].choice = new.choice,
                3 if !varied.is_empty() => varied[at].owner = new.owner,
                4 => {
                    let other = &self.entries[rng.below(self.entries.len())].steps;
                    varied.extend_from_slice(&other[rng.below(other.len() + 1)..]);
                }
                _ => varied.extend_from_slice(&steps[..1 + rng.below(steps.len())]),
            }
        }
        varied.truncate(STEPS);
        *steps = varied;
    }

    /// Returns the corpus as JSON: an array of schedules with what they reached.
    pub fn json(&self) -> serde_json::Value {
        let entries = self.entries.iter().map(|Entry { steps, reached }| {
            let reached: Vec<String> = reached.iter().map(|digest| format!("{digest:x}")).collect();
            serde_json::json!({"schedule": schedule::encode(steps), "reached": reached})
        });
        entries.collect()
    }

    /// Adds the schedules of a corpus as JSON. What is not one is ignored.
    pub fn add_json(&mut self, corpus: &serde_json::Value) {
        for entry in corpus.as_array().into_iter().flatten() {
            let steps = entry["schedule"].as_str().and_then(schedule::decode);
            let digests =
                entry["reached"].as_array().into_iter().flatten().filter_map(|digest| digest.as_str());
            let reached = digests.filter_map(|digest| u64::from_str_radix(digest, 16).ok());
            if let Some(steps) = steps.filter(|steps| steps.len() <= STEPS) {
                self.add(Entry { steps, reached: reached.take(DIGESTS).collect() });
            }
        }
    }
}

/// Returns the digest of what a request has reached. `request`: the operation, and whether the client has repeated it; `reply`: the kind of
/// the reply.
pub fn reached(request: (usize, bool), reply: usize, view: View) -> Reached {
    let mut state = 0u64;
    for (node, view) in view.all().enumerate() {
        for (key, value, ttl_ms) in view.keys() {
            let mut hasher = FixedState::default().build_hasher();
            hasher.write_usize(node);
            hasher.write(key);
            hasher.write_u8(class_of_ttl(ttl_ms));
            write_value(value, &mut hasher);
            // The order of keys does not matter.
            state = state.wrapping_add(hasher.finish());
        }
    }
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u64(state);
    hasher.write_usize(request.0);
    hasher.write_u8(request.1.into());
    hasher.write_usize(reply);
    hasher.finish()
}

fn class_of_ttl(ttl_ms: i64) -> u8 {
    const BOUNDS_MS: [i64; 6] = [1, 2_000, 10_000, 30_000, 60_000, 90_000];
    match ttl_ms {
        FOREVER => u8::MAX,
        _ => BOUNDS_MS.iter().filter(|bound_ms| ttl_ms > **bound_ms).count() as u8,
    }
}

/// The lengths and the numbers that count as different are at most this far from 0.
const FAR: i64 = 4;

fn write_value(value: &Value, hasher: &mut impl Hasher) {
    let mut write_text = |text: &[u8]| match parse_i64(text) {
        Some(number) => hasher.write_i64(number.clamp(-FAR, FAR)),
        // An owner or a mode. Binary records differ in times.
        None if text.is_ascii() => hasher.write(text),
        None => hasher.write_usize(text.len()),
    };
    match value {
        Value::String(text) => write_text(&text.to_vec()),
        Value::Hash(hash) => {
            for field in hash.iter().take(FAR as usize) {
                write_text(field.name);
                write_text(field.value);
            }
        }
        _ => {}
    }
    let len = match value {
        Value::String(_) | Value::Stream(_) => 0,
        Value::Hash(hash) => hash.len(),
        Value::List(list) => list.len(),
        Value::Set(set) => set.len(),
        Value::SortedSet(set) => set.len(),
    };
    hasher.write(value.type_name().as_bytes());
    hasher.write_i64((len as i64).min(FAR));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: &str, reached: &[u64]) -> Entry {
        Entry { steps: schedule::decode(token).expect("a token"), reached: reached.to_vec() }
    }

    #[test]
    fn a_corpus_keeps_what_is_new_and_survives_a_file() {
        let mut corpus = Corpus::default();
        corpus.add(entry("500", &[1]));
        corpus.add(entry("500600", &[1, 2, u64::MAX]));
        corpus.add(entry("500700", &[2]));
        assert_eq!(corpus.entries(), [entry("500", &[1]), entry("500600", &[2, u64::MAX])]);
        let mut read = Corpus::default();
        read.add_json(&corpus.json());
        assert_eq!(read, corpus);
        read.add_json(&serde_json::json!([7, {}, {"schedule": "5!", "reached": ["1"]}, {"schedule": "5", "reached": 3}]));
        assert_eq!(read, corpus);
    }

    #[test]
    fn a_minimal_corpus_reaches_the_same() {
        let mut corpus = Corpus::default();
        for entry in [entry("500", &[1]), entry("600", &[2]), entry("500600700", &[3, 4])] {
            corpus.add(entry);
        }
        let minimal = corpus.minimal();
        assert_eq!(minimal.reached(), corpus.reached());
        assert_eq!(minimal.entries()[0], entry("500600700", &[3, 4]));
        assert_eq!(minimal.minimal(), minimal);
    }

    #[test]
    fn varied_schedules_are_short() {
        let mut corpus = Corpus::default();
        corpus.add(entry(&"500".repeat(STEPS), &[1]));
        corpus.add(entry("", &[2]));
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            let mut steps = schedule::decode("500600700").expect("a token");
            corpus.vary(&mut rng, &mut steps);
            assert!(steps.len() <= STEPS);
        }
    }
}
