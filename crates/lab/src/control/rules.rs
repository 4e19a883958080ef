//! Fault rules: the first that fits decides.

use std::collections::VecDeque;

use super::action::Action;
use super::matching::{Match, Subject};
use super::words::{SimError, Words, syntax};
use redlatch_core::rng::Rng;
use redlatch_core::world::ConnId;

/// A rule: what it looks at, what it does, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it looks at.
    pub matching: Match,
    /// What it does.
    pub action: Action,
    /// How many times it acts; `None`: always.
    pub times: Option<u64>,
    /// How likely it acts when it could, in parts per million.
    pub probability_ppm: u32,
    /// A name for it; may be empty.
    pub label: String,
}

/// The words that begin an option of a rule.
const OPTIONS: [&str; 4] = ["TIMES", "ALWAYS", "P", "LABEL"];

pub fn is_option(word: &[u8]) -> bool {
    OPTIONS.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

impl Rule {
    /// A rule that always acts.
    pub fn new(matching: Match, action: Action) -> Rule {
        Rule { matching, action, times: None, probability_ppm: 1_000_000, label: String::new() }
    }

    /// Acts this many times, then no more.
    pub fn times(mut self, times: u64) -> Rule {
        self.times = Some(times);
        self
    }

    /// `<match> DO <action> [TIMES n | ALWAYS] [P ppm] [LABEL l]`
    pub fn parse(words: &mut Words, nodes: usize) -> Result<Rule, SimError> {
        let matching = Match::parse(words, nodes)?;
        if !words.take("DO") {
            return Err(match words.pop() {
                None => syntax("DO and an action are missing"),
                Some(_) => words.not_known(),
            });
        }
        let mut rule = Rule::new(matching, Action::parse(words)?);
        while let Some(word) = words.pop() {
            match &word.to_ascii_uppercase()[..] {
                b"TIMES" => rule.times = Some(words.int("TIMES", 1, i64::MAX)? as u64),
                b"ALWAYS" => rule.times = None,
                b"P" => rule.probability_ppm = words.int("the probability in ppm", 0, 1_000_000)? as u32,
                b"LABEL" => rule.label = words.text("a label")?,
                _ => return Err(words.not_known()),
            }
        }
        rule.matching.check(rule.action.is_for_pushes())?;
        Ok(rule)
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.matching.clauses.is_empty() {
            write!(f, "{} ", self.matching)?;
        }
        write!(f, "DO {}", self.action)?;
        if let Some(times) = self.times {
            write!(f, " TIMES {times}")?;
        }
        if self.probability_ppm < 1_000_000 {
            write!(f, " P {}", self.probability_ppm)?;
        }
        if !self.label.is_empty() {
            write!(f, " LABEL {}", super::words::quoted(self.label.as_bytes()))?;
        }
        Ok(())
    }
}

/// One time that a rule acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub event: u64,
    pub conn: ConnId,
    /// What it acted on.
    pub summary: String,
    /// What it did.
    pub outcome: String,
}

/// A rule at work.
#[derive(Clone, Debug)]
pub struct Active {
    pub id: u64,
    pub rule: Rule,
    /// How often all clauses but NTH fitted.
    fitted: u64,
    pub hits: u64,
    /// The latest of them.
    pub recent: VecDeque<Hit>,
}

/// How many hits are kept for HITS.
const KEPT_HITS: usize = 1000;

/// All rules, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    active: Vec<Active>,
    last_id: u64,
    /// None of them acts.
    pub paused: bool,
}

impl Rules {
    pub fn add(&mut self, rule: Rule) -> u64 {
        self.last_id += 1;
        self.active.push(Active { id: self.last_id, rule, fitted: 0, hits: 0, recent: VecDeque::new() });
        self.last_id
    }

    pub fn iter(&self) -> impl Iterator<Item = &Active> {
        self.active.iter()
    }

    /// Whether any rule could act.
    pub fn are_active(&self) -> bool {
        !self.paused && !self.active.is_empty()
    }

    /// The rules that a word names: by number or by label.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Active> {
        self.active.iter().filter(move |active| active.is_named(name))
    }

    /// Takes away the rules that a word names. Returns how many.
    pub fn remove(&mut self, name: &str) -> usize {
        let before = self.active.len();
        self.active.retain(|active| !active.is_named(name));
        before - self.active.len()
    }

    pub fn remove_by_id(&mut self, id: u64) {
        self.active.retain(|active| active.id != id);
    }

    pub fn clear(&mut self) {
        self.active.clear();
    }

    /// What the first rule that fits does to this.
    pub fn decide(
        &mut self,
        subject: &Subject,
        pushes: bool,
        summary: impl FnOnce() -> String,
        rng: &mut Rng,
    ) -> Option<Action> {
        if self.paused {
            return None;
        }
        for active in &mut self.active {
            let Rule { matching, action, times, probability_ppm, .. } = &active.rule;
            if action.is_for_pushes() != pushes
                || times.is_some_and(|times| active.hits >= times)
                || !matching.fits(subject)
            {
                continue;
            }
            active.fitted += 1;
            if matching.nth().is_some_and(|nth| nth != active.fitted)
                || *probability_ppm < 1_000_000 && rng.below(1_000_000) >= *probability_ppm as usize
            {
                continue;
            }
            active.hits += 1;
            if active.recent.len() == KEPT_HITS {
                active.recent.pop_front();
            }
            active.recent.push_back(Hit {
                event: subject.event,
                conn: subject.conn,
                summary: summary(),
                outcome: active.rule.action.to_string(),
            });
            return Some(active.rule.action.clone());
        }
        None
    }
}

impl Active {
    fn is_named(&self, name: &str) -> bool {
        self.id.to_string() == name || !name.is_empty() && self.rule.label == name
    }
}
