//! SIM.CHECK: checks invariants of locks while clients use them.

use super::{Answer, Lab};
#[cfg(feature = "own")]
use crate::control::args::syntax;
use crate::control::args::{Args, SimError, quoted, unknown};
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

/// A parsed SIM.CHECK.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckCommand {
    /// Turns on checking of lock scripts.
    On(Checks),
    Off,
    /// Returns what is checked, and how many runs of lock scripts were.
    Status,
    /// Returns the violations found in or after an event.
    List(u64),
    /// Discards all violations and everything known of the locks.
    Reset,
}

impl CheckCommand {
    pub fn parse(args: &mut Args) -> Result<CheckCommand, SimError> {
        Ok(match &args.required("ON, OFF, STATUS, LIST or RESET")?.to_ascii_uppercase()[..] {
            b"ON" => CheckCommand::On(parse_checks(args)?),
            b"OFF" => CheckCommand::Off,
            b"STATUS" => CheckCommand::Status,
            b"LIST" => CheckCommand::List(match args.take("SINCE") {
                true => args.int("an event", 0, i64::MAX)? as u64,
                false => 0,
            }),
            b"RESET" => CheckCommand::Reset,
            _ => return Err(args.not_known()),
        })
    }
}

/// Parses the arguments after SIM.CHECK ON.
pub fn parse_checks(args: &mut Args) -> Result<Checks, SimError> {
    let mut checks = Checks::default();
    let mut only = Vec::new();
    while let Some(arg) = args.pop() {
        let text = String::from_utf8_lossy(arg).into_owned();
        checks.words.push(text.clone());
        match &text.to_ascii_uppercase()[..] {
            "ALL" => {}
            "STRICT" => checks.rules = Rules::Strict,
            #[cfg(feature = "own")]
            "OWN" => {
                let text = args.text("the description of a lock")?;
                let scripts = description::scripts(&text).map_err(|why| syntax(format!("OWN: {why}")))?;
                checks.own.extend(scripts);
                checks.words.push(text);
            }
            _ if Checks::is_object(&text) => checks.objects.push(text),
            _ => {
                let invariant = Wanted::parse(&text).ok_or_else(|| {
                    unknown(format!("{} is neither an object nor a promise of one", quoted(arg)))
                })?;
                only.push(invariant);
            }
        }
    }
    checks.wanted = Wanted::these(only);
    Ok(checks)
}

impl Lab {
    /// Checks lock scripts from now on, with no knowledge of earlier ones. Violations found before are kept.
    pub fn start_checks(&mut self, checks: Checks) {
        let mut watches = self.staging.watches.borrow_mut();
        for (watch, node) in watches.iter_mut().zip(self.world.nodes()) {
            watch.checker = Some(Box::new(Checker::new(checks.clone(), node.config.limits())));
        }
        drop(watches);
        self.checks = Some(checks);
        self.refresh_interest();
    }

    /// Discards all violations and everything known of the locks.
    pub fn reset_checks(&mut self) {
        self.findings.clear();
        if let Some(checks) = self.checks.clone() {
            self.start_checks(checks);
        }
    }

    /// Stops checking lock scripts. Violations found before are kept.
    pub fn stop_checks(&mut self) {
        self.checks = None;
        self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.checker = None);
        self.refresh_interest();
    }

    /// Returns the violations of lock invariants: the first 1,000.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns how many runs of lock scripts were checked on all nodes, and how many could not be, by reason.
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

/// Converts a violation to names and values.
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
