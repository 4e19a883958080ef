//! SIM.FAULT: rules that drop, delay, repeat, fail or change matching requests, replies and messages.

use super::super::rules::{Active, Rule};
use super::{Answer, Context, Lab};
use crate::control::args::{Args, SimError, quoted, unknown};

pub const USAGE: &[&str] = &[
    "SIM.FAULT ADD <match> DO <action> [TIMES <n> | ALWAYS] [P <ppm>] [LABEL <label>]",
    "SIM.FAULT LIST",
    "SIM.FAULT HITS <id | label>",
    "SIM.FAULT DEL <id | label>",
    "SIM.FAULT CLEAR | PAUSE | RESUME",
    "  <match>, all of which have to match (texts are globs): CONN <id> | NAME <client> | NODE <n> | CMD <command> | SCRIPT <role> | OWNER <owner> | SHA <prefix> | ARG <i> <word> | ARGV <i> <word> | KEY <key> | CHANNEL <channel> | AFTER <event> | NTH <n>",
    "  <action> on a request: DROP REQUEST (and all that follows on the connection) | LOSE [REPLY <bytes> | NOTHING] (only this request) | DELAY REQUEST <ms> | DUP <n> [REPLY FIRST | LAST] | ERROR <text> BEFORE | CLOSE BEFORE | REPLY <bytes> | REWRITE ARG | ARGV <i> ADD <n> | SET <word> | FORGET SCRIPTS | FAIL SUBCALL <k> [<text>]",
    "  <action> on a reply: DROP REPLY | DELAY REPLY <ms> | ERROR <text> AFTER | CLOSE AFTER | BYTES <k>; on a message: DROP PUSH | DELAY PUSH <ms> | DUP PUSH <n>",
];

/// A parsed SIM.FAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultCommand {
    /// Returns the number of the rule.
    Add(Rule),
    List,
    Hits(String),
    Delete(String),
    Clear,
    Pause,
    Resume,
}

impl FaultCommand {
    pub fn parse(args: &mut Args, context: &Context) -> Result<FaultCommand, SimError> {
        Ok(match &args.required("ADD, LIST, HITS, DEL, CLEAR, PAUSE or RESUME")?.to_ascii_uppercase()[..] {
            b"ADD" => FaultCommand::Add(Rule::parse(args, context.nodes)?),
            b"LIST" => FaultCommand::List,
            b"HITS" => FaultCommand::Hits(args.text("a rule")?),
            b"DEL" => FaultCommand::Delete(args.text("a rule")?),
            b"CLEAR" => FaultCommand::Clear,
            b"PAUSE" => FaultCommand::Pause,
            b"RESUME" => FaultCommand::Resume,
            _ => return Err(args.not_known()),
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
                        hit.client.into(),
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

/// Describes a rule: its number, its text, and how often it was applied.
fn describe(active: &Active) -> Answer {
    vec![active.id.into(), active.rule.to_string().into(), active.hits.into()].into()
}
