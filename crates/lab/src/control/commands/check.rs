//! SIM.CHECK: promises of locks, checked on what clients do.

use super::{Answer, Lab};
#[cfg(feature = "own")]
use crate::control::words::syntax;
use crate::control::words::{SimError, Words, quoted, unknown};
use redlatch_locks::check::{Checker, Checks, Finding, Tally};
use redlatch_locks::invariant::Rules;
use redlatch_locks::model::Wanted;
#[cfg(feature = "own")]
use redlatch_locks::own::description;

pub const USAGE: &[&str] = &[
    "SIM.CHECK ON [ALL | <object> | <promise> | <promise>@<operation> ...] [STRICT] [OWN <description>]",
    "SIM.CHECK OFF",
    "SIM.CHECK STATUS",
    "SIM.CHECK LIST [SINCE <event>]",
    "SIM.CHECK RESET",
];

#[derive(Clone, Debug, PartialEq)]
pub enum CheckCommand {
    /// From here on lock scripts are judged.
    On(Checks),
    Off,
    /// What is on, and how much was judged.
    Status,
    /// What was found in or after an event.
    List(u64),
    /// Nothing was found so far, and no lock is known.
    Reset,
}

impl CheckCommand {
    pub fn parse(words: &mut Words) -> Result<CheckCommand, SimError> {
        Ok(match &words.word("ON, OFF, STATUS, LIST or RESET")?.to_ascii_uppercase()[..] {
            b"ON" => CheckCommand::On(parse_checks(words)?),
            b"OFF" => CheckCommand::Off,
            b"STATUS" => CheckCommand::Status,
            b"LIST" => CheckCommand::List(match words.take("SINCE") {
                true => words.int("an event", 0, i64::MAX)? as u64,
                false => 0,
            }),
            b"RESET" => CheckCommand::Reset,
            _ => return Err(words.not_known()),
        })
    }
}

/// Reads what stands behind SIM.CHECK ON.
pub fn parse_checks(words: &mut Words) -> Result<Checks, SimError> {
    let mut checks = Checks::default();
    let mut only = Vec::new();
    while let Some(word) = words.pop() {
        let text = String::from_utf8_lossy(word).into_owned();
        checks.words.push(text.clone());
        match &text.to_ascii_uppercase()[..] {
            "ALL" => {}
            "STRICT" => checks.rules = Rules::Strict,
            #[cfg(feature = "own")]
            "OWN" => {
                let text = words.text("the description of a lock")?;
                let scripts = description::scripts(&text).map_err(|why| syntax(format!("OWN: {why}")))?;
                checks.own.extend(scripts);
                checks.words.push(text);
            }
            _ if Checks::is_object(&text) => checks.objects.push(text),
            _ => {
                let promise = Wanted::parse(&text).ok_or_else(|| {
                    unknown(format!("{} is neither an object nor a promise of one", quoted(word)))
                })?;
                only.push(promise);
            }
        }
    }
    checks.wanted = Wanted::these(only);
    Ok(checks)
}

impl Lab {
    /// Lock scripts are judged from here on, and no lock is known yet. What was found before stays.
    pub fn start_checks(&mut self, checks: Checks) {
        let mut watches = self.staging.watches.borrow_mut();
        for (watch, node) in watches.iter_mut().zip(self.world.nodes()) {
            watch.checker = Some(Box::new(Checker::new(checks.clone(), node.config.limits())));
        }
        drop(watches);
        self.checks = Some(checks);
        self.refresh_interest();
    }

    /// Nothing was found so far, and no lock is known.
    pub fn reset_checks(&mut self) {
        self.findings.clear();
        if let Some(checks) = self.checks.clone() {
            self.start_checks(checks);
        }
    }

    /// Lock scripts are no longer judged. What was found can still be read.
    pub fn stop_checks(&mut self) {
        self.checks = None;
        self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.checker = None);
        self.refresh_interest();
    }

    /// The promises that were found broken, the first 1,000.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How much was judged on all nodes.
    pub fn check_tally(&self) -> Tally {
        let mut sum = Tally::default();
        let watches = self.staging.watches.borrow();
        for checker in watches.iter().filter_map(|watch| watch.checker.as_ref()) {
            sum.judged += checker.tally.judged;
            for (why, count) in &checker.tally.unjudged {
                *sum.unjudged.entry(why.clone()).or_default() += count;
            }
        }
        sum
    }

    pub(super) fn apply_check(&mut self, command: CheckCommand) -> Result<Answer, SimError> {
        Ok(match command {
            CheckCommand::On(checks) => {
                self.start_checks(checks);
                Answer::Ok
            }
            CheckCommand::Off => {
                self.stop_checks();
                Answer::Ok
            }
            CheckCommand::Reset => {
                self.reset_checks();
                Answer::Ok
            }
            CheckCommand::Status => {
                let tally = self.check_tally();
                let unjudged = tally.unjudged.iter();
                let reasons = unjudged.map(|(why, count)| vec![why.clone().into(), (*count).into()].into());
                let words = match &self.checks {
                    Some(checks) if checks.words.is_empty() => "ALL".to_owned(),
                    Some(checks) => checks.words.join(" "),
                    None => "OFF".to_owned(),
                };
                Answer::facts([
                    ("on", words.into()),
                    ("judged", tally.judged.into()),
                    ("unjudged", tally.unjudged.values().sum::<u64>().into()),
                    ("violations", (self.findings.len() as u64).into()),
                    ("reasons", reasons.collect::<Vec<Answer>>().into()),
                ])
            }
            CheckCommand::List(since) => {
                let found = self.findings.iter().filter(|finding| finding.event >= since);
                found.map(row).collect::<Vec<_>>().into()
            }
        })
    }
}

/// A finding as names and values.
fn row(finding: &Finding) -> Answer {
    let lines = |lines: &[String]| lines.iter().map(|line| line.clone().into()).collect::<Vec<Answer>>();
    let owners = finding.owners.iter().map(|(letter, owner)| {
        let owner = String::from_utf8_lossy(owner);
        Answer::from(format!("{letter} = {owner}"))
    });
    Answer::facts([
        ("event", finding.event.into()),
        ("promise", finding.promise().into()),
        ("object", finding.object.into()),
        ("node", (finding.node as u64).into()),
        ("db", (finding.db as u64).into()),
        ("key", Answer::Bytes(finding.key.clone())),
        ("owner", Answer::Bytes(finding.owner.clone())),
        ("promised", finding.violation.invariant.text().into()),
        ("found", finding.violation.text.clone().into()),
        ("reply", finding.reply.clone().into()),
        ("messages", lines(&finding.messages).into()),
        ("before", lines(&finding.before).into()),
        ("after", lines(&finding.after).into()),
        ("owners", owners.collect::<Vec<_>>().into()),
    ])
}
