//! SIM.CHECK: checks invariants of locks while clients use them.

use super::{Answer, Lab};
#[cfg(feature = "own")]
use crate::control::args::syntax;
use crate::control::args::{Args, SimError, quoted, state, unknown};
use redlatch_locks::check::{Checker, Checks, Finding, Kinds, Tally};
use redlatch_locks::history::export::Format;
use redlatch_locks::invariant::Rules;
use redlatch_locks::model::Wanted;
#[cfg(feature = "own")]
use redlatch_locks::own::description;

pub const USAGE: &[&str] = &[
    "SIM.CHECK ON [ALL | <object> | <promise> | <promise>@<operation> ...] [STRICT] [OWN <description>]",
    "SIM.CHECK OFF",
    "SIM.CHECK STATUS",
    "SIM.CHECK REPORT",
    "SIM.CHECK LIST [SINCE <event>]",
    "SIM.CHECK HISTORY [TEXT|EDN|JSON]",
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
    /// Returns the violations by kind, and what was judged and what was not.
    Report,
    /// Returns the violations found in or after an event.
    List(u64),
    /// Returns the last operations on locks.
    History(Format),
    /// Discards all violations and everything known of the locks.
    Reset,
}

impl CheckCommand {
    pub fn parse(args: &mut Args) -> Result<CheckCommand, SimError> {
        Ok(
            match &args.required("ON, OFF, STATUS, REPORT, LIST, HISTORY or RESET")?.to_ascii_uppercase()[..]
            {
                b"ON" => CheckCommand::On(parse_checks(args)?),
                b"OFF" => CheckCommand::Off,
                b"STATUS" => CheckCommand::Status,
                b"REPORT" => CheckCommand::Report,
                b"LIST" => CheckCommand::List(match args.take("SINCE") {
                    true => args.int("an event", 0, i64::MAX)? as u64,
                    false => 0,
                }),
                b"HISTORY" => CheckCommand::History(match args.peek() {
                    None => Format::Text,
                    Some(_) => args.one_of(
                        "a format",
                        &[("TEXT", Format::Text), ("EDN", Format::Edn), ("JSON", Format::Json)],
                    )?,
                }),
                b"RESET" => CheckCommand::Reset,
                _ => return Err(args.not_known()),
            },
        )
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
                let refuse = |why: String| syntax(format!("OWN: {why}"));
                let lock = description::parse(&text, &mut description::no_files)
                    .map_err(|error| refuse(error.to_string()))?;
                if let Some(why) = lock.uncheckable() {
                    return Err(refuse(why));
                }
                checks.own = Some(lock.into());
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
        self.begin_history();
    }

    /// Discards all violations and everything known of the locks.
    pub fn reset_checks(&mut self) {
        self.findings.clear();
        self.kinds = Kinds::default();
        if let Some(checks) = self.checks.clone() {
            self.start_checks(checks);
        }
    }

    /// Stops checking lock scripts. Violations found before are kept.
    pub fn stop_checks(&mut self) {
        self.checks = None;
        self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.checker = None);
        if !self.keeps_history {
            self.begin_history();
        }
        self.refresh_interest();
    }

    /// Returns the violations of lock invariants: the first 100 of each kind, and no more than 1,000 but for the first of a kind.
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

    /// Returns how many operations were judged on the history of locks, and how many could not be, by reason.
    pub fn history_tally(&self) -> Tally {
        self.with_history(|history| history.tally.clone()).unwrap_or_default()
    }

    /// Returns whether checks are on.
    pub fn is_checking(&self) -> bool {
        self.checks.is_some()
    }

    /// Returns the kinds of violations that were found, with counts.
    pub fn violation_kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns a summary in lines of text: the violations by kind, and how many operations were judged and how many were not.
    pub fn check_report(&self) -> Vec<String> {
        let (models, owners) = (self.check_tally(), self.history_tally());
        let unjudged = |tally: &Tally| tally.unjudged.values().sum::<u64>();
        let mut lines = vec![match self.is_checking() {
            true => format!(
                "violations {}; scripts judged {}, not judged {}; operations judged on the history {}, not judged {}",
                self.kinds.total(),
                models.judged,
                unjudged(&models),
                owners.judged,
                unjudged(&owners)
            ),
            false => format!(
                "checks are off: SIM.CHECK ON turns them on; violations before: {}",
                self.kinds.total()
            ),
        }];
        for (kind, counted) in self.kinds.iter() {
            let cause = kind.cause.map_or(String::new(), |cause| format!(", cause: {cause}"));
            let (count, first, last) = (counted.count, counted.first, counted.last);
            lines.push(format!(
                "violated {count} times: {} of {}{cause}; first at event {first}, last at event {last}",
                kind.promise, kind.object
            ));
            let first = self.findings.iter().find(|finding| {
                finding.event == counted.first
                    && finding.promise() == kind.promise
                    && finding.cause == kind.cause
            });
            lines.extend(first.into_iter().flat_map(|finding| {
                finding.to_string().lines().map(|line| format!("  {line}")).collect::<Vec<_>>()
            }));
        }
        for (of, tally) in
            [("script", models), ("history", owners)].into_iter().filter(|_| self.is_checking())
        {
            lines.extend(
                tally.unjudged.iter().map(|(why, count)| format!("not judged {count} times ({of}): {why}")),
            );
        }
        lines
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
                let violations =
                    if self.judges_owners { self.kinds.total() } else { self.findings.len() as u64 };
                let mut facts = vec![
                    ("on", words.into()),
                    ("judged", tally.judged.into()),
                    ("unjudged", tally.unjudged.values().sum::<u64>().into()),
                    ("violations", violations.into()),
                    ("reasons", reasons.collect::<Vec<Answer>>().into()),
                ];
                if self.judges_owners {
                    let tally = self.history_tally();
                    let unjudged = tally.unjudged.values().sum::<u64>();
                    facts.extend([
                        ("operations judged", tally.judged.into()),
                        ("operations not judged", unjudged.into()),
                    ]);
                }
                facts.into_iter().flat_map(|(name, fact)| [name.into(), fact]).collect::<Vec<_>>().into()
            }
            CheckCommand::Report => {
                self.check_report().into_iter().map(Answer::from).collect::<Vec<_>>().into()
            }
            CheckCommand::History(format) => {
                let is_kept = self.checks.is_some() && self.judges_owners;
                let text = is_kept.then(|| self.with_history(|history| history.export(format))).flatten();
                let text = text.ok_or_else(|| state("there is no history: checks are off".to_owned()))?;
                Answer::Bytes(text.into_bytes())
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
    let mut facts = vec![
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
    ];
    if let Some(cause) = finding.cause {
        let grants: Vec<String> = finding.grants.iter().map(|grant| grant.to_string()).collect();
        facts.extend([
            ("cause", cause.to_string().into()),
            ("grants", lines(&grants).into()),
            ("between", lines(&finding.between).into()),
        ]);
    }
    facts.into_iter().flat_map(|(name, fact)| [name.into(), fact]).collect::<Vec<_>>().into()
}
