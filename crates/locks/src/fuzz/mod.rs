//! Fuzzes lock scripts: runs random schedules against the scripts of a release, and compares every step with a model of
//! the lock.
//!
//! A schedule says who does what and when; between steps the clock does not move. After each script the model compares
//! the server's replies, messages and keys with the invariants of the lock. The first violation ends the run, and the
//! schedule is shrunk until no step can be left out.
//!
//! | file | concept |
//! |---|---|
//! | `schedule` | steps, random schedules, and the token that repeats one |
//! | `search` | the search of one object, by several threads |
//! | `corpus` | schedules that reached something new, from which others are made |
//! | `bench` | the server |
//! | `branches` | the branches of a script, and a copy of it that marks them |
//! | `tokens` | the tokens of a script |
//! | `request` | the keys and arguments of a script |
//! | `runner` | runs one schedule, step by step |
//! | `shrink` | shrinks a schedule |
//! | `baseline` | known violations, which are not reported |
//! | `compare` | compares two releases on the same schedules |
//! | `real` | runs the same schedule on a real server |
//! | `report` | reports for people and programs |
//! | `merge` | makes one report of those of several processes |
//!
//! The models live in [`crate`]. Only this module drives a world.

// Like a driver, this module measures time and uses all processors.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod baseline;
pub mod bench;
pub mod branches;
pub mod compare;
pub mod corpus;
pub mod merge;
pub mod real;
pub mod report;
mod request;
pub mod runner;
pub mod schedule;
mod search;
mod shrink;
pub mod tokens;

use std::fmt;
use std::time::Duration;

use crate::invariant::Rules;
use crate::model::{USUAL_OWNERS, Violation, Wanted};
use crate::script_set::ScriptSet;
use baseline::Baseline;
use corpus::Corpus;
use runner::{Coverage, Line, Runner};
use schedule::Step;

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the objects to test; empty means all objects of the release.
    pub objects: Vec<String>,
    pub wanted: Wanted,
    pub rules: Rules,
    pub seed: u64,
    /// The number of schedules for each object and job; without it, `time` decides.
    pub runs: Option<u64>,
    /// The time limit for each object.
    pub time: Duration,
    /// Whether to inject faults: lost replies, lost keys, wrong clocks.
    pub faults: bool,
    /// The number of owners, at most `OWNERS`.
    pub owners: usize,
    pub strategy: Strategy,
    /// For each object, the schedules that a guided search begins with.
    pub corpora: Vec<(String, Corpus)>,
    pub jobs: usize,
    /// The part of the schedules that this process tries: `(1, 4)` is the second of four.
    pub shard: (u64, u64),
    /// Whether the search of an object ends with its first violation.
    pub stop_at_first: bool,
    /// What is not reported because it is known.
    pub baseline: Option<Baseline>,
}

/// How a search chooses its schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// All steps are independent.
    #[default]
    Random,
    /// The owners act by priority, which changes at a few points ("probabilistic concurrency testing").
    Priorities,
    /// Every other schedule is made from those that reached something new.
    Guided,
    /// All schedules of up to this many steps.
    Exhaustive(usize),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            objects: Vec::new(),
            wanted: Wanted::default(),
            rules: Rules::AsDocumented,
            seed: 0,
            runs: None,
            time: Duration::from_secs(5),
            faults: true,
            owners: USUAL_OWNERS,
            strategy: Strategy::default(),
            corpora: Vec::new(),
            jobs: 1,
            shard: (0, 1),
            stop_at_first: false,
            baseline: None,
        }
    }
}

/// A violation and the shortest schedule that shows it.
#[derive(Clone, Debug)]
pub struct Finding {
    pub object: &'static str,
    pub violation: Violation,
    pub rules: Rules,
    pub steps: Vec<Step>,
    /// The run of the schedule on a new server.
    pub lines: Vec<Line>,
    /// The number of the schedule that showed it, which is the same however a search is shared out.
    pub number: u64,
    /// The number of schedules that this process had tried, with this one.
    pub schedules: u64,
    pub after: Duration,
    /// The number of steps before shrinking, and how long shrinking took.
    pub first_steps: usize,
    pub reduction: Duration,
}

/// The findings for one object, and the extent of the search.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    pub object: &'static str,
    pub findings: Vec<Finding>,
    pub schedules: u64,
    pub coverage: Coverage,
    /// The operations, in the order of the coverage.
    pub operations: Vec<OperationReport>,
    /// The schedules that reached something new.
    pub corpus: Corpus,
    pub took: Duration,
}

/// The description of an operation, to which its coverage refers.
#[derive(Clone, Debug)]
pub struct OperationReport {
    pub name: &'static str,
    /// Whether clients of the release send the request of the operation.
    pub is_present: bool,
    /// Whether they send a script that cannot be run.
    pub is_refused: bool,
    /// Its script as `Class.method`; empty if it sends no script.
    pub script: String,
    /// The branches of the script, in the order of the coverage.
    pub branches: Vec<String>,
}

/// The error for an object that the release does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownObject {
    pub name: String,
    /// The objects that the release has.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no object '{}' in this release; there are {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownObject {}

/// Tries schedules on the objects of a release.
///
/// # Errors
/// Fails if the release does not have one of the requested objects.
pub fn run(scripts: &ScriptSet, options: &Options) -> Result<Vec<ObjectReport>, UnknownObject> {
    let known: Vec<&'static str> = scripts.models().into_iter().map(|(name, _)| name).collect();
    if let Some(unknown) = options.objects.iter().find(|object| !known.contains(&object.as_str())) {
        return Err(UnknownObject { name: unknown.clone(), known });
    }
    let chosen = known
        .into_iter()
        .filter(|name| options.objects.is_empty() || options.objects.iter().any(|object| object == name));
    Ok(chosen.map(|object| search::search(scripts, object, options)).collect())
}

/// Returns a runner for one object of a release, or `None` if the release does not have it.
pub fn runner_for(scripts: &ScriptSet, object: &str) -> Option<Runner> {
    let (_, model) = scripts.models().into_iter().find(|(name, _)| *name == object)?;
    Some(Runner::new(scripts, model, scripts.version()))
}
