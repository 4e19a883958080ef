//! SIM.FAULT: rules that drop, delay, repeat, fail or change what matches.

use super::super::rules::{Active, Rule};
use super::{Answer, Lab, Scope};
use crate::control::words::{SimError, Words, quoted, unknown};

pub const USAGE: &[&str] = &[
    "SIM.FAULT ADD <match> DO <action> [TIMES <n> | ALWAYS] [P <ppm>] [LABEL <label>]",
    "SIM.FAULT LIST",
    "SIM.FAULT HITS <id | label>",
    "SIM.FAULT DEL <id | label>",
    "SIM.FAULT CLEAR | PAUSE | RESUME",
];

#[derive(Clone, Debug, PartialEq)]
pub enum FaultCommand {
    /// Gives the number of the rule.
    Add(Rule),
    List,
    Hits(String),
    Delete(String),
    Clear,
    Pause,
    Resume,
}

impl FaultCommand {
    pub fn parse(words: &mut Words, scope: &Scope) -> Result<FaultCommand, SimError> {
        Ok(match &words.word("ADD, LIST, HITS, DEL, CLEAR, PAUSE or RESUME")?.to_ascii_uppercase()[..] {
            b"ADD" => FaultCommand::Add(Rule::parse(words, scope.nodes)?),
            b"LIST" => FaultCommand::List,
            b"HITS" => FaultCommand::Hits(words.text("a rule")?),
            b"DEL" => FaultCommand::Delete(words.text("a rule")?),
            b"CLEAR" => FaultCommand::Clear,
            b"PAUSE" => FaultCommand::Pause,
            b"RESUME" => FaultCommand::Resume,
            _ => return Err(words.not_known()),
        })
    }
}

impl Lab {
    pub(super) fn apply_fault(&mut self, command: FaultCommand) -> Result<Answer, SimError> {
        let no_rule = |name: &str| unknown(format!("there is no rule {}", quoted(name.as_bytes())));
        let mut control = self.staging.control.borrow_mut();
        let rules = &mut control.rules;
        let answer = match command {
            FaultCommand::Add(rule) => rules.add(rule).into(),
            FaultCommand::List => rules.iter().map(describe).collect::<Vec<_>>().into(),
            FaultCommand::Hits(name) => {
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
            FaultCommand::Delete(name) => match rules.remove(&name) {
                0 => return Err(no_rule(&name)),
                _ => Answer::Ok,
            },
            FaultCommand::Clear => {
                rules.clear();
                Answer::Ok
            }
            FaultCommand::Pause => {
                rules.paused = true;
                Answer::Ok
            }
            FaultCommand::Resume => {
                rules.paused = false;
                Answer::Ok
            }
        };
        drop(control);
        self.refresh_interest();
        Ok(answer)
    }
}

/// A rule's number, its words, and how often it acted.
fn describe(active: &Active) -> Answer {
    vec![active.id.into(), active.rule.to_string().into(), active.hits.into()].into()
}
