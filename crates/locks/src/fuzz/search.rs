//! The search of one object: several threads try schedules in rounds, and learn from each other between two rounds.
//!
//! Each schedule has a number, from which it is made, and what a schedule shows does not depend on the others. So a search finds the
//! same however many threads or processes share it; only a guided one depends on what its process has tried in the rounds before.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use super::corpus::{Corpus, Entry};
use super::runner::{Coverage, Runner};
use super::schedule::{self, COMMON, Common, Step};
use super::{Finding, ObjectReport, Options, Strategy, baseline, runner_for, shrink};
use crate::model::{Kind, Violation, Wanted};
use crate::script_set::ScriptSet;

/// The number of schedules that all threads together try in a round.
const ROUND: u64 = 4096;

/// Branches are counted and states are noted in one of this many schedules. Such schedules come 64 in a row, because the marked scripts have to be
/// loaded for them.
const WATCHED: u64 = 16;
const WATCHED_IN_A_ROW: u64 = 64;

/// How many schedules a thread tries between two looks at the clock.
const UNTIMED: u64 = 64;

/// A search: what is looked for where, and what all threads know.
struct Plan<'a> {
    scripts: &'a ScriptSet,
    object: &'static str,
    options: &'a Options,
    start: Instant,
    /// Threads read it during a round. It changes between two rounds.
    known: RwLock<Known>,
}

struct Known {
    /// What is still looked for.
    wanted: Wanted,
    corpus: Corpus,
}

/// The schedules that a thread tries in a round.
enum Task {
    /// Those with these indexes among the schedules of this process.
    Some(Range<u64>),
    /// A part of all schedules up to a length.
    All { depth: usize, part: u64, parts: u64 },
}

/// Another thread.
struct Member<'scope> {
    tasks: Sender<Task>,
    harvests: Receiver<Harvest>,
    thread: ScopedJoinHandle<'scope, Coverage>,
}

/// What one thread uses.
struct Worker<'a> {
    plan: &'a Plan<'a>,
    runner: Runner,
    /// Runs the older release with which this one is compared.
    older: Option<Runner>,
}

/// A violation, before its schedule is shrunk.
struct Found {
    number: u64,
    schedules: u64,
    after: Duration,
    /// The steps up to the one that violates the invariant.
    steps: Vec<Step>,
    violation: Violation,
}

/// What a thread brings back from a round.
#[derive(Default)]
struct Harvest {
    found: Vec<Found>,
    /// Schedules that reached something new, with their numbers.
    learned: Vec<(u64, Entry)>,
    schedules: u64,
}

/// Searches one object of a release, which has it.
pub(super) fn search(scripts: &ScriptSet, object: &'static str, options: &Options) -> ObjectReport {
    let mut wanted = options.wanted.clone();
    let listed = options.baseline.iter().flat_map(|baseline| baseline.listed(object));
    wanted.except.extend(listed.map(|known| (known.invariant, Some(known.operation.clone()))));
    let corpus = options.corpora.iter().find(|(name, _)| name == object);
    let corpus = corpus.map(|(_, corpus)| corpus.clone()).unwrap_or_default();
    let known = RwLock::new(Known { wanted, corpus });
    let plan = Plan { scripts, object, options, start: Instant::now(), known };
    std::thread::scope(|scope| {
        let join = |_| {
            let (tasks, inbox) = channel();
            let (outbox, harvests) = channel();
            let plan = &plan;
            let thread = scope.spawn(move || {
                // A server stays in the thread that has started it.
                let mut worker = Worker::new(plan);
                for task in inbox {
                    // Nobody takes it when another thread has panicked.
                    let _ = outbox.send(worker.work(task));
                }
                worker.runner.coverage
            });
            Member { tasks, harvests, thread }
        };
        let team = (1..options.jobs.max(1)).map(join).collect();
        let worker = Worker::new(&plan);
        Search { worker, team, findings: Vec::new(), schedules: 0 }.run()
    })
}

/// The thread that leads the others.
struct Search<'scope, 'a> {
    worker: Worker<'a>,
    team: Vec<Member<'scope>>,
    findings: Vec<Finding>,
    schedules: u64,
}

impl Search<'_, '_> {
    fn run(mut self) -> ObjectReport {
        let Plan { object, options, start, .. } = *self.worker.plan;
        let jobs = 1 + self.team.len() as u64;
        if let Strategy::Exhaustive(depth) = options.strategy {
            let (shard, shards) = options.shard;
            self.round(|job| Task::All { depth, part: shard * jobs + job, parts: shards * jobs });
        } else {
            let end = options.runs.map_or(u64::MAX, |runs| runs.saturating_mul(jobs));
            // Counts the schedules of this process.
            let mut index = 0;
            while index < end && !self.is_over() {
                let len = ROUND.min(end - index);
                self.round(|job| Task::Some(index + len * job / jobs..index + len * (job + 1) / jobs));
                index += len;
            }
        }
        let runner = &self.worker.runner;
        let operations = (0..runner.operations().len()).map(|operation| runner.describe(operation)).collect();
        let mut coverage = self.worker.runner.coverage;
        for Member { tasks, thread, .. } in self.team {
            drop(tasks);
            coverage.add(&thread.join().expect("a thread of the search"));
        }
        ObjectReport {
            object,
            findings: self.findings,
            schedules: self.schedules,
            coverage,
            operations,
            corpus: std::mem::take(&mut self.worker.plan.known_mut().corpus),
            took: start.elapsed(),
        }
    }

    /// Returns whether the search ends between two rounds.
    fn is_over(&self) -> bool {
        let Plan { options, start, .. } = self.worker.plan;
        let is_late = || options.runs.is_none() && start.elapsed() >= options.time;
        options.stop_at_first && !self.findings.is_empty() || is_late()
    }

    /// Lets all threads work, and takes in what they bring back, in the order of the schedules.
    fn round(&mut self, task: impl Fn(u64) -> Task) {
        for (member, job) in self.team.iter().zip(1..) {
            member.tasks.send(task(job)).expect("a thread of the search");
        }
        let mut all = self.worker.work(task(0));
        for member in &self.team {
            let harvest = member.harvests.recv().expect("a thread of the search");
            all.schedules += harvest.schedules;
            all.found.extend(harvest.found);
            all.learned.extend(harvest.learned);
        }
        self.schedules += all.schedules;
        let plan = self.worker.plan;
        all.learned.sort_by_key(|(number, _)| *number);
        all.learned.into_iter().for_each(|(_, entry)| plan.known_mut().corpus.add(entry));
        all.found.sort_by_key(|found| found.number);
        if plan.options.stop_at_first {
            all.found.truncate(1);
        }
        all.found.into_iter().for_each(|found| self.take_in(found));
    }

    /// Shrinks the schedule of a violation, unless an earlier schedule has shown the same.
    fn take_in(&mut self, found: Found) {
        let Found { number, schedules, after, steps, violation } = found;
        let is_same = |finding: &Finding| {
            (finding.violation.invariant, finding.violation.operation)
                == (violation.invariant, violation.operation)
        };
        if self.findings.iter().any(is_same) {
            return;
        }
        let same = Wanted::one(violation.invariant, violation.operation);
        let begin = Instant::now();
        let worker = &mut self.worker;
        let Plan { object, options, scripts, .. } = worker.plan;
        worker.runner.watch(false, false);
        let mut shortest = shrink::shrink(&steps, |steps| worker.first(steps, &same).is_some());
        let reduction = begin.elapsed();
        // Earlier schedules must not have an influence: the report shows a new server.
        let mut lines = Vec::new();
        let mut fresh = runner_for(scripts, object).expect("the object was listed");
        let known = worker.known(&shortest, &same);
        let violation = match fresh.run(&shortest, options.rules, &known, Some(&mut lines)) {
            Some((_, violation)) => violation,
            None => {
                shortest = steps.clone();
                violation
            }
        };
        worker.plan.known_mut().wanted.leave_out(&violation);
        self.findings.push(Finding {
            object,
            violation,
            rules: options.rules,
            first_steps: steps.len(),
            steps: shortest,
            lines,
            number,
            schedules,
            after,
            reduction,
        });
    }
}

impl Plan<'_> {
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().expect("no thread panics while it writes")
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().expect("no thread panics while it writes")
    }
}

impl<'a> Worker<'a> {
    fn new(plan: &'a Plan<'a>) -> Worker<'a> {
        let Plan { scripts, object, options, .. } = plan;
        Worker {
            plan,
            runner: runner_for(scripts, object).expect("the object was listed"),
            older: options.baseline.as_ref().and_then(|baseline| baseline.runner(object)),
        }
    }

    fn work(&mut self, task: Task) -> Harvest {
        let known = self.plan.known();
        match task {
            Task::Some(indexes) => self.some(&known, indexes),
            Task::All { depth, part, parts } => self.all(&known, depth, (part, parts)),
        }
    }

    /// Tries the schedules with these indexes.
    fn some(&mut self, known: &Known, indexes: Range<u64>) -> Harvest {
        let Plan { options, start, .. } = self.plan;
        let Options { runs, time, shard: (shard, shards), .. } = **options;
        let mut wanted = known.wanted.clone();
        let mut harvest = Harvest::default();
        let mut steps = Vec::new();
        for index in indexes {
            let is_late = || index % UNTIMED == 0 && start.elapsed() >= time;
            if runs.is_none() && is_late() || self.is_done(&harvest) {
                break;
            }
            let number = index * shards + shard;
            self.make(&known.corpus, number, &mut steps);
            self.attempt(&known.corpus, (number, index + 1), &steps, &mut wanted, &mut harvest);
        }
        harvest
    }

    /// Makes the schedule with a number.
    fn make(&self, corpus: &Corpus, number: u64, steps: &mut Vec<Step>) {
        let Options { owners, faults, strategy, seed, .. } = *self.plan.options;
        let mut rng = schedule::numbers(seed, number);
        let has = |operation| self.runner.can(operation);
        schedule::random(&mut rng, self.runner.operations(), has, (owners, faults), steps);
        match strategy {
            Strategy::Priorities => schedule::prioritise(&mut rng, owners, steps),
            Strategy::Guided if rng.below(2) == 0 => corpus.vary(&mut rng, steps),
            _ => {}
        }
    }

    /// Tries a part of all schedules up to a length. Owners are interchangeable, so they appear in the order A, B, C only.
    fn all(&mut self, known: &Known, depth: usize, (part, parts): (u64, u64)) -> Harvest {
        let alphabet = self.alphabet();
        let mut wanted = known.wanted.clone();
        let mut harvest = Harvest::default();
        let mut places = Vec::new();
        let mut number = 0u64;
        for len in 1..=depth {
            places.clear();
            places.resize(len, 0usize);
            loop {
                let steps: Vec<Step> = places.iter().map(|place| alphabet[*place]).collect();
                number += 1;
                if number % parts == part && in_order(&steps) {
                    let schedules = harvest.schedules + 1;
                    self.attempt(&known.corpus, (number, schedules), &steps, &mut wanted, &mut harvest);
                    if self.is_done(&harvest) {
                        return harvest;
                    }
                }
                let Some(at) = places.iter().rposition(|place| *place + 1 < alphabet.len()) else { break };
                places[at] += 1;
                places[at + 1..].fill(0);
            }
        }
        harvest
    }

    /// Returns the steps of exhaustive schedules: every operation for every owner with two choices, and steps of time
    /// to just after and just before the next relevant time.
    fn alphabet(&self) -> Vec<Step> {
        let options = self.plan.options;
        let mut alphabet =
            vec![Step { action: 0, owner: 0, choice: 0 }, Step { action: 0, owner: 0, choice: 2 }];
        let operations = self.runner.operations();
        for owner in 0..options.owners as u8 {
            if options.faults {
                let again = COMMON.iter().position(|common| *common == Common::Again).unwrap_or(0);
                alphabet.push(Step { action: again as u8, owner, choice: 0 });
            }
            for operation in (0..operations.len()).filter(|operation| self.runner.can(*operation)) {
                let chooses = operations[operation].kind == Kind::Acquire;
                for choice in 0..=chooses as u8 {
                    alphabet.push(Step { action: (COMMON.len() + operation) as u8, owner, choice });
                }
            }
        }
        alphabet
    }

    /// Runs a schedule, notes all that it violates, and whether it reached something new. `number` comes with how many schedules were tried.
    fn attempt(
        &mut self,
        corpus: &Corpus,
        (number, schedules): (u64, u64),
        steps: &[Step],
        wanted: &mut Wanted,
        harvest: &mut Harvest,
    ) {
        let is_watched = (number / WATCHED_IN_A_ROW).is_multiple_of(WATCHED);
        self.runner.watch(is_watched, is_watched || self.plan.options.strategy == Strategy::Guided);
        harvest.schedules += 1;
        while let Some((at, violation)) = self.first(steps, wanted) {
            wanted.leave_out(&violation);
            let steps = steps[..steps.len().min(at + 1)].to_vec();
            let after = self.plan.start.elapsed();
            harvest.found.push(Found { number, schedules, after, steps, violation });
        }
        self.runner.count();
        let reached = self.runner.reached().iter();
        let new: Vec<_> = reached.filter(|(_, reached)| corpus.lacks(*reached)).collect();
        if let Some((last, _)) = new.last() {
            let steps = steps[..=*last].to_vec();
            let reached = new.iter().map(|(_, reached)| *reached).collect();
            harvest.learned.push((number, Entry { steps, reached }));
        }
    }

    /// Returns the first selected violation of a schedule that the older release, if there is one, does not show.
    fn first(&mut self, steps: &[Step], wanted: &Wanted) -> Option<(usize, Violation)> {
        let rules = self.plan.options.rules;
        match &mut self.older {
            None => self.runner.run(steps, rules, wanted, None),
            Some(older) => baseline::first_new(&mut self.runner, older, steps, rules, &mut wanted.clone()),
        }
    }

    /// Adds to `wanted` the violations that the older release shows in this schedule too.
    fn known(&mut self, steps: &[Step], wanted: &Wanted) -> Wanted {
        let mut wanted = wanted.clone();
        if let Some(older) = &mut self.older {
            let rules = self.plan.options.rules;
            baseline::first_new(&mut self.runner, older, steps, rules, &mut wanted);
        }
        wanted
    }

    /// Returns whether the thread has found what ends the search.
    fn is_done(&self, harvest: &Harvest) -> bool {
        self.plan.options.stop_at_first && !harvest.found.is_empty()
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
