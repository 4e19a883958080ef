//! SIM.FAULT: rules that drop, delay, repeat, fail or change what matches.

use super::super::rules::{Active, Rule};
use super::super::words::{SimError, Words, quoted, unknown};
use super::{Answer, Scene, World};

pub const USAGE: &[&str] = &[
    "SIM.FAULT ADD <match> DO <action> [TIMES <n> | ALWAYS] [P <ppm>] [LABEL <label>]",
    "SIM.FAULT LIST",
    "SIM.FAULT HITS <id | label>",
    "SIM.FAULT DEL <id | label>",
    "SIM.FAULT CLEAR | PAUSE | RESUME",
];

#[derive(Clone, Debug, PartialEq)]
pub enum FaultOrder {
    /// Gives the number of the rule.
    Add(Rule),
    List,
    Hits(String),
    Delete(String),
    Clear,
    Pause,
    Resume,
}

impl FaultOrder {
    pub fn parse(words: &mut Words, scene: &Scene) -> Result<FaultOrder, SimError> {
        Ok(match &words.word("ADD, LIST, HITS, DEL, CLEAR, PAUSE or RESUME")?.to_ascii_uppercase()[..] {
            b"ADD" => FaultOrder::Add(Rule::parse(words, scene.nodes)?),
            b"LIST" => FaultOrder::List,
            b"HITS" => FaultOrder::Hits(words.text("a rule")?),
            b"DEL" => FaultOrder::Delete(words.text("a rule")?),
            b"CLEAR" => FaultOrder::Clear,
            b"PAUSE" => FaultOrder::Pause,
            b"RESUME" => FaultOrder::Resume,
            _ => return Err(words.not_known()),
        })
    }
}

impl World {
    pub(super) fn obey_fault(&mut self, order: FaultOrder) -> Result<Answer, SimError> {
        let no_rule = |name: &str| unknown(format!("there is no rule {}", quoted(name.as_bytes())));
        let mut control = self.control.borrow_mut();
        let rules = &mut control.rules;
        let answer = match order {
            FaultOrder::Add(rule) => rules.add(rule).into(),
            FaultOrder::List => rules.iter().map(describe).collect::<Vec<_>>().into(),
            FaultOrder::Hits(name) => {
                let active = rules.named(&name).next().ok_or_else(|| no_rule(&name))?;
                let hits = active.recent.iter().map(|hit| {
                    vec![
                        hit.event.into(),
                        hit.conn.session.number.into(),
                        hit.summary.clone().into(),
                        hit.outcome.clone().into(),
                    ]
                    .into()
                });
                hits.collect::<Vec<_>>().into()
            }
            FaultOrder::Delete(name) => match rules.remove(&name) {
                0 => return Err(no_rule(&name)),
                _ => Answer::Ok,
            },
            FaultOrder::Clear => {
                rules.clear();
                Answer::Ok
            }
            FaultOrder::Pause => {
                rules.paused = true;
                Answer::Ok
            }
            FaultOrder::Resume => {
                rules.paused = false;
                Answer::Ok
            }
        };
        drop(control);
        self.refresh_stages();
        Ok(answer)
    }
}

/// A rule's number, its words, and how often it acted.
fn describe(active: &Active) -> Answer {
    vec![active.id.into(), active.rule.to_string().into(), active.hits.into()].into()
}
