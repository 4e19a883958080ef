//! Fault rules: the first rule that matches is applied.

use std::collections::VecDeque;

use super::action::Action;
use super::args::{Args, SimError, syntax};
use super::matching::{Match, Subject};
use redlatch_core::image::{Reader, Words};
use redlatch_core::rng::Rng;
use redlatch_core::wire::request::split_words;

/// A fault rule: what it matches, what it does, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it matches.
    pub matching: Match,
    /// What it does.
    pub action: Action,
    /// How many times it is applied; `None`: always.
    pub times: Option<u64>,
    /// The probability that it is applied to a match, in parts per million.
    pub probability_ppm: u32,
    /// A name for it; may be empty.
    pub label: String,
}

/// The keywords that begin an option of a rule.
const OPTIONS: [&str; 4] = ["TIMES", "ALWAYS", "P", "LABEL"];

/// Returns whether an argument is the keyword of an option.
pub fn is_option(arg: &[u8]) -> bool {
    OPTIONS.iter().any(|name| arg.eq_ignore_ascii_case(name.as_bytes()))
}

impl Rule {
    /// Creates a rule that is always applied.
    pub fn new(matching: Match, action: Action) -> Rule {
        Rule { matching, action, times: None, probability_ppm: 1_000_000, label: String::new() }
    }

    /// Limits the rule to this many times.
    pub fn times(mut self, times: u64) -> Rule {
        self.times = Some(times);
        self
    }

    /// Parses `<match> DO <action> [TIMES n | ALWAYS] [P ppm] [LABEL l]`.
    pub fn parse(args: &mut Args, nodes: usize) -> Result<Rule, SimError> {
        let matching = Match::parse(args, nodes)?;
        if !args.take("DO") {
            return Err(match args.pop() {
                None => syntax("DO and an action are missing"),
                Some(_) => args.not_known(),
            });
        }
        let mut rule = Rule::new(matching, Action::parse(args)?);
        while let Some(arg) = args.pop() {
            match &arg.to_ascii_uppercase()[..] {
                b"TIMES" => rule.times = Some(args.int("TIMES", 1, i64::MAX)? as u64),
                b"ALWAYS" => rule.times = None,
                b"P" => rule.probability_ppm = args.int("the probability in ppm", 0, 1_000_000)? as u32,
                b"LABEL" => rule.label = args.text("a label")?,
                _ => return Err(args.not_known()),
            }
        }
        rule.check()?;
        Ok(rule)
    }

    /// Parses a rule as it is displayed. Returns `None` if it is none, as where an argument was too long to be displayed.
    pub(super) fn from_text(text: &[u8], nodes: usize) -> Option<Rule> {
        let words = split_words(text)?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        Rule::parse(&mut Args::new(&words), nodes).ok()
    }

    /// Checks that the rule can act on something.
    ///
    /// # Errors
    /// Names what excludes what.
    pub fn check(&self) -> Result<(), SimError> {
        self.matching.check(self.action.is_for_pushes())?;
        self.matching.check_action(&self.action)
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
            write!(f, " LABEL {}", super::args::quoted(self.label.as_bytes()))?;
        }
        Ok(())
    }
}

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub event: u64,
    /// The number of the client.
    pub client: u64,
    /// The request or the channel, in one line.
    pub summary: String,
    /// The action that was applied.
    pub outcome: String,
}

/// A rule in effect.
#[derive(Clone, Debug)]
pub struct Active {
    pub id: u64,
    pub rule: Rule,
    /// How often all clauses but NTH matched.
    matched: u64,
    pub hits: u64,
    /// The latest hits.
    pub recent: VecDeque<Hit>,
}

/// How many hits of each rule are kept for SIM.FAULT HITS.
const KEPT_HITS: usize = 1000;

/// All rules, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    active: Vec<Active>,
    last_id: u64,
    /// Whether no rule is applied, after SIM.FAULT PAUSE.
    pub paused: bool,
}

impl Rules {
    /// Adds a rule and returns its number.
    pub fn add(&mut self, rule: Rule) -> u64 {
        self.last_id += 1;
        self.active.push(Active { id: self.last_id, rule, matched: 0, hits: 0, recent: VecDeque::new() });
        self.last_id
    }

    pub fn iter(&self) -> impl Iterator<Item = &Active> {
        self.active.iter()
    }

    /// Returns whether any rule could be applied.
    pub fn are_active(&self) -> bool {
        !self.paused && !self.active.is_empty()
    }

    /// Returns lines that bring it to this state.
    pub(super) fn image(&self, lines: &mut Vec<Words>) {
        for Active { id, rule, matched, hits, recent } in &self.active {
            lines.push(Words::about("RULE").value(id).value(matched).value(hits).value(rule));
            lines.extend(recent.iter().map(|Hit { event, client, summary, outcome }| {
                let line = Words::about("HIT").value(event).value(client);
                line.word(summary.as_bytes()).word(outcome.as_bytes())
            }));
        }
        if self.last_id > 0 || self.paused {
            lines.push(Words::about("RULES").value(self.last_id).flag(self.paused));
        }
    }

    /// Takes such a line. Returns `None` if it is malformed.
    pub(super) fn take_image(&mut self, what: &[u8], line: &mut Reader, nodes: usize) -> Option<()> {
        match what {
            b"RULE" => {
                let (id, matched, hits) = (line.value()?, line.value()?, line.value()?);
                let rule = Rule::from_text(line.word()?, nodes)?;
                self.active.push(Active { id, rule, matched, hits, recent: VecDeque::new() });
            }
            b"HIT" => {
                let (event, client) = (line.value()?, line.value()?);
                let (summary, outcome) = (line.text()?, line.text()?);
                self.active.last_mut()?.recent.push_back(Hit { event, client, summary, outcome });
            }
            _ => (self.last_id, self.paused) = (line.value()?, line.flag()?),
        }
        Some(())
    }

    /// Returns the rules with this number or label.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Active> {
        self.active.iter().filter(move |active| active.is_named(name))
    }

    /// Removes the rules with this number or label. Returns how many.
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

    /// Returns the action of the first rule that matches, and records the hit. `pushes`: whether the subject is a message.
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
                || !matching.matches(subject)
            {
                continue;
            }
            active.matched += 1;
            if matching.nth().is_some_and(|nth| nth != active.matched)
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
                client: subject.conn.session.number,
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
