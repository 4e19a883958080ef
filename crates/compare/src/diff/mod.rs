//! Random differential testing: two servers get the same commands and have to give the same replies.
//!
//! A run consists of rounds of a few hundred commands. Each round begins with empty databases and new connections, so that
//! a difference can be repeated, shrunk and printed as a case for `tests/differential`.
//!
//! | file | concept |
//! |---|---|
//! | `shapes` | the form of each command's arguments, and the families |
//! | `grammar`, `pools` | random arguments of a form |
//! | `lua`, `payloads` | random scripts, and data for their libraries |
//! | `libraries` | libraries of functions, and rules of users |
//! | `exclusions` | commands that cannot be compared, and why |
//! | `generator` | random rounds |
//! | `runner`, `pair`, `keyspace`, `compare` | runs steps on both servers and compares |
//! | `shrink` | shrinks a difference to a short case |
//! | `verdicts` | what is known of each command, for the documentation |

// A driver: it talks to servers over sockets and waits for them.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod compare;
pub mod exclusions;
mod generator;
pub mod grammar;
mod keyspace;
mod libraries;
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
pub mod verdicts;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use generator::Generator;
pub use generator::any_request;
use runner::{Outcome, Pace, Runner};
use shapes::{FAMILIES, Family};
use target::Target;

use redlatch_core::version::Version;

/// The options of a run.
pub struct Options {
    pub against: String,
    /// The address of the server to test; by default a redlatch is started.
    pub subject: Option<String>,
    /// The families to send; by default all.
    pub families: Vec<String>,
    /// The number of commands per family.
    pub commands: usize,
    pub seed: u64,
    /// The version of the protocol; by default both, alternating.
    pub resp: Option<u8>,
}

/// Returns the names of the families.
pub fn family_names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// Returns about `len` random commands of a family, each with the number of its connection; `None`: no such family. They
/// are to be run on empty databases.
pub fn commands(
    family: &str,
    version: Version,
    seed: u64,
    len: usize,
) -> Option<impl Iterator<Item = (usize, Vec<Vec<u8>>)>> {
    let family = FAMILIES.iter().find(|known| known.name == family)?;
    let steps = Generator::new(family, version, seed).round(len, seed.is_multiple_of(2));
    Some(steps.into_iter().map(|step| (step.client, step.argv)))
}

/// The argument that starts the server under test as a child process, which exits with its parent.
pub const SUBJECT: &str = "diff-subject";

/// The number of commands in a round.
const ROUND: usize = 300;

/// The number of differences after which a family is abandoned.
const ENOUGH: usize = 25;

/// Compares the servers. Writes each difference to `out` and progress messages to `progress`. Returns the number of differences.
///
/// # Errors
/// Why the servers cannot be compared.
pub fn run(options: &Options, out: &mut dyn Write, progress: &mut dyn FnMut(&str)) -> Result<usize, String> {
    let theirs = Target::at(&options.against)?;
    let version = theirs.version();
    let ours = match &options.subject {
        Some(address) => Target::at(address)?,
        None => Target::spawn(version, theirs.permits_debug()?, Stdio::inherit())?,
    };
    let mut families = Vec::new();
    for name in &options.families {
        let family = FAMILIES.iter().find(|family| family.name == name);
        families.push(family.ok_or_else(|| format!("there is no family '{name}'"))?);
    }
    if families.is_empty() {
        families.extend(FAMILIES);
    }
    let mut runner = Runner::new(ours, theirs)?;
    let result = run_families(&mut runner, &families, version, options, out, progress);
    // Leave the servers empty, whatever the result.
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
            "{}: {} commands as {}, {} differences{}\n",
            family.name,
            run.sent,
            version.title(),
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
    /// The kinds of difference that have been reported.
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
            // The difference is somewhere among steps sent together; sending them one by one locates it.
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

/// Returns the kind of a difference: the command and the types of both replies; for scripts, the replies from where they begin to
/// differ. Only the first difference of each kind is reported.
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

/// Writes a difference as a case, with the replies of both servers.
fn report(outcome: &Outcome, family: &Family, out: &mut dyn Write) -> std::io::Result<()> {
    let Some(difference) = &outcome.difference else { return Ok(()) };
    writeln!(out, "# {}: {}", family.name, describe(difference))?;
    for line in &outcome.case {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}
