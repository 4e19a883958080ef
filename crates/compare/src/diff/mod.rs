//! Random differential testing: the same commands to two servers, whose answers have to be the same.
//!
//! A run goes through rounds of a few hundred commands. Each begins on empty databases with fresh connections, so a
//! difference can be repeated, shrunk and printed as a case for `tests/differential`.
//!
//! | file | concept |
//! |---|---|
//! | `shapes` | what the arguments of each command look like, and the families |
//! | `grammar`, `pools` | from a form to random words |
//! | `lua`, `payloads` | random scripts, and data for their libraries |
//! | `exclusions` | what cannot be compared, and why |
//! | `generator` | random rounds |
//! | `runner`, `pair`, `keyspace`, `compare` | both servers step by step |
//! | `shrink` | the shortest case |

// A driver: it talks to servers over sockets and waits for them.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod compare;
pub mod exclusions;
mod generator;
mod grammar;
mod keyspace;
pub mod link;
pub mod lua;
mod pair;
mod payloads;
pub mod pools;
mod runner;
mod shapes;
mod shrink;
mod step;
pub(crate) mod target;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use generator::Generator;
use runner::{Outcome, Pace, Runner};
use shapes::{FAMILIES, Family};
use target::Target;

use redlatch_core::version::Version;

/// What to compare.
pub struct Options {
    pub against: String,
    /// By default a server of our own.
    pub subject: Option<String>,
    /// By default all.
    pub families: Vec<String>,
    /// For each family.
    pub commands: usize,
    pub seed: u64,
    /// By default both in turn.
    pub resp: Option<u8>,
}

/// The names of the families.
pub fn family_names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// The word that starts a server of `diff`'s own, which ends with the process that started it.
pub const SUBJECT: &str = "diff-subject";

/// Commands of a round.
const ROUND: usize = 300;

/// A family is given up after so many differences.
const ENOUGH: usize = 25;

/// Compares the servers and writes each difference to `out`, what goes on to `progress`. Gives the number of
/// differences; the error says why nothing could be compared.
pub fn run(options: &Options, out: &mut dyn Write, progress: &mut dyn FnMut(&str)) -> Result<usize, String> {
    let theirs = Target::at(&options.against)?;
    let version = theirs.version();
    let ours = match &options.subject {
        Some(address) => Target::at(address)?,
        None => Target::spawn(version, Stdio::inherit())?,
    };
    let mut families = Vec::new();
    for name in &options.families {
        let family = FAMILIES.iter().find(|family| family.name == name);
        families.push(family.ok_or_else(|| format!("no family is called '{name}'"))?);
    }
    if families.is_empty() {
        families.extend(FAMILIES);
    }
    let mut runner = Runner::new(ours, theirs)?;
    let result = run_families(&mut runner, &families, version, options, out, progress);
    // Leave the servers as they were found, whatever came of it.
    let cleaned = runner.reset();
    result.and_then(|differences| cleaned.map(|()| differences))
}

fn run_families(
    runner: &mut Runner,
    families: &[&'static Family],
    version: Version,
    options: &Options,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<usize, String> {
    let mut differences = 0;
    for family in families.iter().copied() {
        let generator = Generator::new(family, version, options.seed);
        let mut run = FamilyRun { family, options, runner, sent: 0, seen: BTreeSet::new(), unrepeated: 0 };
        run.all_rounds(generator, out, progress)?;
        differences += run.seen.len();
        let summary = format!(
            "{}: {} commands as Redis {}, {} differences{}\n",
            family.name,
            run.sent,
            version.full(),
            run.seen.len(),
            if run.unrepeated > 0 {
                format!(" ({} more did not repeat)", run.unrepeated)
            } else {
                String::new()
            }
        );
        out.write_all(summary.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(differences)
}

struct FamilyRun<'a> {
    family: &'static Family,
    options: &'a Options,
    runner: &'a mut Runner,
    sent: usize,
    /// The commands whose differences have been shown.
    seen: BTreeSet<String>,
    unrepeated: usize,
}

impl FamilyRun<'_> {
    fn all_rounds(
        &mut self,
        mut generator: Generator,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        for round in 0.. {
            if self.sent >= self.options.commands || self.seen.len() + self.unrepeated >= ENOUGH {
                break;
            }
            let resp3 = self.options.resp.map_or(round % 2 == 1, |resp| resp == 3);
            let len = ROUND.min(self.options.commands - self.sent).max(10);
            let steps = generator.round(len, resp3);
            progress(&format!("{}: {} of {} commands", self.family.name, self.sent, self.options.commands));
            self.runner.pace = Pace::Pipelined;
            let outcome = self.runner.run(&steps, true)?;
            self.sent += outcome.sent;
            let Some(pipelined) = outcome.difference else { continue };
            // Somewhere among the steps that were sent at once; one by one, it is known where.
            self.runner.pace = Pace::OneByOne;
            let difference = self.runner.run(&steps, true)?.difference.unwrap_or(pipelined);
            let kind = kind_of(&difference);
            if self.seen.contains(&kind) {
                continue;
            }
            progress(&format!("{}: a difference at {}; shrinking", self.family.name, difference.command));
            match shrink::shrink(self.runner, &steps, &difference)? {
                Some((_, shortest)) => {
                    self.seen.insert(kind);
                    report(&shortest, self.family, out).map_err(|error| error.to_string())?;
                }
                None => {
                    self.unrepeated += 1;
                    let text = format!("# did not repeat: {}\n", describe(&difference));
                    out.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }
}

/// Differences of the same command with the same kinds of reply are taken for the same; those of scripts, if the replies
/// are the same where they begin to differ.
fn kind_of(difference: &runner::Difference) -> String {
    let (ours, theirs) = (&difference.ours, &difference.theirs);
    let from = if difference.command.starts_with("EVAL") {
        ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count()
    } else {
        0
    };
    let kind = |reply: &[u8]| {
        let rest = &reply[from..];
        let line = rest.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let len = if line.starts_with(b"-") || from > 0 { 24 } else { 1 };
        String::from_utf8_lossy(&line[..line.len().min(len)]).into_owned()
    };
    format!("{} {} {}", difference.command, kind(ours), kind(theirs))
}

fn describe(difference: &runner::Difference) -> String {
    let (ours, theirs) = (difference.ours.escape_ascii(), difference.theirs.escape_ascii());
    format!("{}\n#   ours:   {ours}\n#   theirs: {theirs}", difference.line)
}

/// A difference as a case, with what each server said.
fn report(outcome: &Outcome, family: &Family, out: &mut dyn Write) -> std::io::Result<()> {
    let Some(difference) = &outcome.difference else { return Ok(()) };
    writeln!(out, "# {}: {}", family.name, describe(difference))?;
    for line in &outcome.case {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}
