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
//!
//! The models live in [`crate`]. Only this module drives a world.

// Like a driver, this module measures time and uses all processors.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod baseline;
pub mod bench;
pub mod branches;
pub mod compare;
pub mod real;
pub mod report;
mod request;
pub mod runner;
pub mod schedule;
mod shrink;
pub mod tokens;

use std::fmt;
use std::time::{Duration, Instant};

use crate::invariant::Rules;
use crate::model::{Kind, OWNERS, Violation, Wanted};
use crate::script_set::ScriptSet;
use baseline::Baseline;
use redlatch_core::rng::Rng;
use runner::{Coverage, Line, Runner};
use schedule::{COMMON, Common, Step};

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
    pub owners: usize,
    /// Try all schedules of this many steps instead of random ones.
    pub exhaustive: Option<usize>,
    pub jobs: usize,
    /// The part of the schedules that this process tries: `(1, 4)` is the second of four.
    pub shard: (u64, u64),
    /// Whether the search of an object ends with its first violation.
    pub stop_at_first: bool,
    /// What is not reported because it is known.
    pub baseline: Option<Baseline>,
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
            owners: OWNERS,
            exhaustive: None,
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
    /// The number of schedules tried before.
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

/// Branches are counted in one of this many schedules. Counted schedules come 64 in a row, because the marked scripts
/// have to be loaded for them.
const WATCHED: u64 = 16;
const WATCHED_IN_A_ROW: u64 = 64;

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
    Ok(chosen.map(|object| run_object(scripts, object, options)).collect())
}

fn run_object(scripts: &ScriptSet, object: &'static str, options: &Options) -> ObjectReport {
    let jobs = options.jobs.max(1) as u64;
    let mut reports: Vec<ObjectReport> = std::thread::scope(|scope| {
        let work = |job: u64| move || Search::new(scripts, object, options, job, jobs).run();
        let threads: Vec<_> = (1..jobs).map(|job| scope.spawn(work(job))).collect();
        let mut reports = vec![work(0)()];
        reports.extend(threads.into_iter().filter_map(|thread| thread.join().ok()));
        reports
    });
    let mut all = reports.remove(0);
    for report in reports {
        all.schedules += report.schedules;
        all.coverage.add(&report.coverage);
        for finding in report.findings {
            let same = |known: &Finding| {
                (known.violation.invariant, known.violation.operation)
                    == (finding.violation.invariant, finding.violation.operation)
            };
            match all.findings.iter_mut().find(|known| same(known)) {
                Some(known) if known.steps.len() <= finding.steps.len() => {}
                Some(known) => *known = finding,
                None => all.findings.push(finding),
            }
        }
    }
    all
}

/// Returns a runner for one object of a release, or `None` if the release does not have it.
pub fn runner_for(scripts: &ScriptSet, object: &str) -> Option<Runner> {
    let (_, model) = scripts.models().into_iter().find(|(name, _)| *name == object)?;
    Some(Runner::new(scripts, model, scripts.version()))
}

/// The search by one job.
struct Search<'a> {
    scripts: &'a ScriptSet,
    object: &'static str,
    options: &'a Options,
    job: u64,
    jobs: u64,
    runner: Runner,
    /// Runs the older release with which this one is compared.
    older: Option<Runner>,
    wanted: Wanted,
    findings: Vec<Finding>,
    schedules: u64,
    start: Instant,
}

impl<'a> Search<'a> {
    fn new(
        scripts: &'a ScriptSet,
        object: &'static str,
        options: &'a Options,
        job: u64,
        jobs: u64,
    ) -> Search<'a> {
        let model = scripts.models().into_iter().find(|(name, _)| *name == object).map(|(_, model)| model);
        let mut wanted = options.wanted.clone();
        let listed = options.baseline.iter().flat_map(|baseline| baseline.listed(object));
        wanted.except.extend(listed.map(|known| (known.invariant, Some(known.operation.clone()))));
        Search {
            scripts,
            object,
            options,
            job,
            jobs,
            runner: Runner::new(scripts, model.expect("the object was listed"), scripts.version()),
            older: options.baseline.as_ref().and_then(|baseline| baseline.runner(object)),
            wanted,
            findings: Vec::new(),
            schedules: 0,
            start: Instant::now(),
        }
    }

    fn run(mut self) -> ObjectReport {
        match self.options.exhaustive {
            Some(depth) => self.all(depth),
            None => self.random(),
        }
        ObjectReport {
            object: self.object,
            findings: self.findings,
            schedules: self.schedules,
            operations: (0..self.runner.operations().len())
                .map(|operation| self.runner.describe(operation))
                .collect(),
            coverage: self.runner.coverage,
            took: self.start.elapsed(),
        }
    }

    fn random(&mut self) {
        let mut steps = Vec::new();
        let operations = self.runner.operations();
        let (shard, shards) = self.options.shard;
        for n in 0u64.. {
            if self.is_over(n) {
                break;
            }
            // Each schedule has a number, from which its random numbers are derived.
            let number = (n * self.jobs + self.job) * shards + shard;
            let mut rng = Rng::new(self.options.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let has = |operation| self.runner.can(operation);
            let Options { owners, faults, .. } = *self.options;
            schedule::random(&mut rng, operations, has, (owners, faults), &mut steps);
            self.attempt(&steps);
        }
    }

    /// Tries all schedules up to a length. Owners are interchangeable, so they appear in the order A, B, C only.
    fn all(&mut self, depth: usize) {
        let alphabet = self.alphabet();
        let (shard, shards) = self.options.shard;
        let parts = shards * self.jobs;
        let part = shard * self.jobs + self.job;
        let mut places = Vec::new();
        for len in 1..=depth {
            places.clear();
            places.resize(len, 0usize);
            let mut number = 0u64;
            loop {
                let steps: Vec<Step> = places.iter().map(|place| alphabet[*place]).collect();
                number += 1;
                if number % parts == part && in_order(&steps) {
                    self.attempt(&steps);
                    if self.options.stop_at_first && !self.findings.is_empty() {
                        return;
                    }
                }
                let Some(at) = places.iter().rposition(|place| *place + 1 < alphabet.len()) else { break };
                places[at] += 1;
                places[at + 1..].fill(0);
            }
        }
    }

    /// Returns the steps of exhaustive schedules: every operation for every owner with two choices, and steps of time
    /// to just after and just before the next relevant time.
    fn alphabet(&self) -> Vec<Step> {
        let mut alphabet =
            vec![Step { action: 0, owner: 0, choice: 0 }, Step { action: 0, owner: 0, choice: 2 }];
        for owner in 0..self.options.owners as u8 {
            if self.options.faults {
                let again = COMMON.iter().position(|common| *common == Common::Again).unwrap_or(0);
                alphabet.push(Step { action: again as u8, owner, choice: 0 });
            }
            for operation in
                (0..self.runner.operations().len()).filter(|operation| self.runner.can(*operation))
            {
                let chooses = self.runner.operations()[operation].kind == Kind::Acquire;
                for choice in 0..=chooses as u8 {
                    alphabet.push(Step { action: (COMMON.len() + operation) as u8, owner, choice });
                }
            }
        }
        alphabet
    }

    fn is_over(&self, n: u64) -> bool {
        if self.options.stop_at_first && !self.findings.is_empty() {
            return true;
        }
        match self.options.runs {
            Some(runs) => n >= runs,
            None => n.is_multiple_of(64) && self.start.elapsed() >= self.options.time,
        }
    }

    /// Returns the first selected violation of a schedule that the older release, if there is one, does not show.
    fn first(&mut self, steps: &[Step], wanted: &Wanted) -> Option<(usize, Violation)> {
        let rules = self.options.rules;
        match &mut self.older {
            None => self.runner.run(steps, rules, wanted, None),
            Some(older) => baseline::first_new(&mut self.runner, older, steps, rules, &mut wanted.clone()),
        }
    }

    /// Adds to `wanted` the violations that the older release shows in this schedule too.
    fn known(&mut self, steps: &[Step], wanted: &Wanted) -> Wanted {
        let mut wanted = wanted.clone();
        if let Some(older) = &mut self.older {
            baseline::first_new(&mut self.runner, older, steps, self.options.rules, &mut wanted);
        }
        wanted
    }

    fn attempt(&mut self, steps: &[Step]) {
        self.runner.watch_branches((self.schedules / WATCHED_IN_A_ROW).is_multiple_of(WATCHED));
        self.schedules += 1;
        let rules = self.options.rules;
        let wanted = std::mem::take(&mut self.wanted);
        let found = self.first(steps, &wanted);
        self.wanted = wanted;
        let Some((at, violation)) = found else { return };
        let after = self.start.elapsed();
        let schedules = self.schedules;
        let same = Wanted::one(violation.invariant, violation.operation);
        let coverage = self.runner.coverage.clone();
        self.runner.watch_branches(false);
        let first = &steps[..steps.len().min(at + 1)];
        let mut shortest = shrink::shrink(first, |steps| self.first(steps, &same).is_some());
        let reduction = self.start.elapsed() - after;
        // Earlier schedules must not have an influence: the report shows a new server.
        let mut lines = Vec::new();
        let mut fresh = runner_for(self.scripts, self.object).expect("the object was listed");
        let known = self.known(&shortest, &same);
        let repeated = fresh.run(&shortest, rules, &known, Some(&mut lines));
        let violation = match repeated {
            Some((_, violation)) => violation,
            None => {
                shortest = steps.to_vec();
                violation
            }
        };
        self.runner.coverage = coverage;
        self.wanted.except.push((violation.invariant, Some(violation.operation.to_owned())));
        self.findings.push(Finding {
            object: self.object,
            violation,
            rules,
            steps: shortest,
            lines,
            schedules,
            after,
            first_steps: first.len(),
            reduction,
        });
    }
}

/// Returns whether owners first appear in the order A, B, C. Other orders are equivalent.
fn in_order(steps: &[Step]) -> bool {
    let mut next = 0;
    steps.iter().filter(|step| step.common() != Some(Common::Advance)).all(|step| {
        let fits = step.owner <= next;
        next = next.max(step.owner + 1);
        fits
    })
}
