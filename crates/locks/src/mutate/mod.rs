//! Mutation testing of the models: changes the scripts of a release, one token or statement at a time, and looks whether
//! the fuzzer notices.
//!
//! A mutant is killed by a schedule that violates an invariant at a step at which the unchanged script does not violate
//! it. What survives is either equivalent, which a list kept by hand has to give reasons for, or something that the models
//! do not look at.
//!
//! | file | concept |
//! |---|---|
//! | `operators` | the changes |
//! | `equivalents` | the list of mutants that nobody can distinguish from the original |
//! | `report` | reports for people and programs |

pub mod equivalents;
pub mod operators;
pub mod report;

use crate::catalogue::home;
use crate::fuzz::runner::Runner;
use crate::fuzz::schedule::{self, Step};
use crate::fuzz::{UnknownObject, runner_for};
use crate::invariant::{Invariant, Rules};
use crate::jar::{Jar, JarScript};
use crate::model::{USUAL_OWNERS, Wanted};
use crate::script_set::{LockScript, ScriptSet};
use equivalents::Equivalents;
use operators::Mutation;
use redlatch_core::script::{Vm, sha1_hex};
use redlatch_core::version::Version;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the objects whose scripts are changed; empty means all.
    pub objects: Vec<String>,
    /// The number of schedules that each mutant has to survive.
    pub runs: usize,
    pub seed: u64,
    /// The part of the mutants that this process tries: `(1, 4)` is the second of four.
    pub shard: (usize, usize),
    pub jobs: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { objects: Vec::new(), runs: 6_000, seed: 0, shard: (0, 1), jobs: 1 }
    }
}

/// A changed script.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub object: &'static str,
    /// `Class.method` of the script, and its role.
    pub script: String,
    pub role: &'static str,
    /// The first eight digits of the SHA-1 of the original's text.
    pub sha1: String,
    pub mutation: Mutation,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Killed {
        invariant: Invariant,
        operation: &'static str,
        /// The number of schedules tried.
        schedules: usize,
    },
    /// The fuzzer does not run the script any more, and says so.
    NotRecognised,
    Survived,
    /// The list of equivalent mutants gives this reason.
    Equivalent(String),
}

/// A mutant and what became of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub mutant: Mutant,
    pub fate: Fate,
}

/// Tries the mutants of a release's scripts.
///
/// # Errors
/// Fails if the release does not have one of the requested objects.
pub fn run(jar: &Jar, options: &Options) -> Result<Vec<Outcome>, UnknownObject> {
    let scripts = ScriptSet::of_jar(jar);
    let known: Vec<&'static str> = scripts.models().into_iter().map(|(name, _)| name).collect();
    if let Some(unknown) = options.objects.iter().find(|object| !known.contains(&object.as_str())) {
        return Err(UnknownObject { name: unknown.clone(), known });
    }
    let chosen = |object: &str| {
        known.contains(&object) && (options.objects.is_empty() || options.objects.iter().any(|o| o == object))
    };
    let (shard, shards) = options.shard;
    let mutants: Vec<(&LockScript, Mutant)> = scripts
        .scripts()
        .iter()
        .flat_map(mutants_of)
        .filter(|(_, mutant)| chosen(mutant.object))
        .enumerate()
        .filter_map(|(number, mutant)| (number % shards == shard).then_some(mutant))
        .collect();
    let jobs = options.jobs.clamp(1, mutants.len().max(1));
    let share = |job: usize| {
        let (mutants, scripts) = (&mutants, &scripts);
        move || {
            let mut bench = Trial::new(jar, scripts, options);
            let mine = mutants.iter().enumerate().filter(|(number, _)| number % jobs == job);
            mine.map(|(number, (script, mutant))| (number, bench.fate(script, mutant))).collect::<Vec<_>>()
        }
    };
    let mut fates: Vec<(usize, Fate)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..jobs).map(|job| scope.spawn(share(job))).collect();
        let mut fates = share(0)();
        fates.extend(threads.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        fates
    });
    fates.sort_by_key(|(number, _)| *number);
    let outcomes = mutants.into_iter().zip(fates);
    Ok(outcomes.map(|((_, mutant), (_, fate))| Outcome { mutant, fate }).collect())
}

/// Returns the mutants of a script that the engine's Lua compiles.
fn mutants_of(script: &LockScript) -> Vec<(&LockScript, Mutant)> {
    let Some(object) = home(script.role) else { return Vec::new() };
    let mut vm = Vm::new(VERSION);
    let mut compiles = |mutation: &Mutation| {
        vm.load(mutation.text.as_bytes()).is_ok_and(|loaded| {
            vm.unload(&loaded);
            true
        })
    };
    let good = operators::mutations(&script.text).into_iter().filter(|mutation| compiles(mutation));
    let mutant = |mutation| Mutant {
        object: object.name,
        script: script.name.clone(),
        role: script.role.name(),
        sha1: fingerprint(&script.text),
        mutation,
    };
    good.map(|mutation| (script, mutant(mutation))).collect()
}

const VERSION: Version = Version::V7_4;

/// A violation of the unchanged scripts: the step, the invariant and the operation.
type Known = (usize, Invariant, &'static str);

/// Schedules, and what the unchanged scripts of one object violate in them.
struct Reference {
    object: &'static str,
    original: Runner,
    schedules: Vec<Vec<Step>>,
    /// For each schedule, once it was needed.
    known: Vec<Option<Vec<Known>>>,
}

/// Tries mutants one after the other.
struct Trial<'a> {
    jar: &'a Jar,
    scripts: &'a ScriptSet,
    options: &'a Options,
    equivalents: Equivalents,
    reference: Option<Reference>,
}

impl<'a> Trial<'a> {
    fn new(jar: &'a Jar, scripts: &'a ScriptSet, options: &'a Options) -> Trial<'a> {
        Trial { jar, scripts, options, equivalents: Equivalents::known(), reference: None }
    }

    fn fate(&mut self, script: &LockScript, mutant: &Mutant) -> Fate {
        if let Some(why) = self.equivalents.reason(mutant) {
            return Fate::Equivalent(why);
        }
        let Some(mut runner) = self.runner(script, mutant) else { return Fate::NotRecognised };
        let reference = self.reference(mutant.object);
        for number in 0..reference.schedules.len() {
            if let Some((_, invariant, operation)) = reference.news(&mut runner, number) {
                return Fate::Killed { invariant, operation, schedules: number + 1 };
            }
        }
        Fate::Survived
    }

    /// Returns a runner of the mutant's object, as a user meets it: the mutant takes the original's place in its class and method,
    /// and is recognised like any script of a jar. Returns `None` if it is not run any more.
    fn runner(&self, script: &LockScript, mutant: &Mutant) -> Option<Runner> {
        let mut jar = self.jar.clone();
        let same = |other: &&mut JarScript| other.text == script.text && other.name() == script.name;
        for other in jar.scripts.iter_mut().filter(same) {
            other.text.clone_from(&mutant.mutation.text);
        }
        let mutated = ScriptSet::of_jar(&jar);
        let found = mutated.script(script.role)?;
        (found.text == mutant.mutation.text).then(|| runner_for(&mutated, mutant.object)).flatten()
    }

    fn reference(&mut self, object: &'static str) -> &mut Reference {
        if self.reference.as_ref().is_none_or(|reference| reference.object != object) {
            let original = runner_for(self.scripts, object).expect("the object was listed");
            let operations = original.operations();
            let schedules: Vec<Vec<Step>> = (0..self.options.runs as u64)
                .map(|number| {
                    let mut steps = Vec::new();
                    let mut rng = schedule::numbers(self.options.seed, number);
                    let has = |operation| original.can(operation);
                    schedule::random(&mut rng, operations, has, (USUAL_OWNERS, true), &mut steps);
                    steps
                })
                .collect();
            let known = vec![None; schedules.len()];
            self.reference = Some(Reference { object, original, schedules, known });
        }
        self.reference.as_mut().expect("it was set")
    }
}

impl Reference {
    /// Returns the first violation of a mutant in a schedule that the original does not show.
    fn news(&mut self, mutant: &mut Runner, number: usize) -> Option<Known> {
        let steps = &self.schedules[number];
        let original = &mut self.original;
        let known = &mut self.known[number];
        violations(mutant, steps, |found| {
            let known = known.get_or_insert_with(|| {
                let mut all = Vec::new();
                violations(original, steps, |found| {
                    all.push(found);
                    true
                });
                all
            });
            known.contains(&found)
        })
    }
}

/// Runs a schedule until it shows a violation that is not known. Known violations are ignored once they have appeared.
fn violations(runner: &mut Runner, steps: &[Step], mut is_known: impl FnMut(Known) -> bool) -> Option<Known> {
    let mut wanted = Wanted::default();
    loop {
        let (step, violation) = runner.run(steps, Rules::AsDocumented, &wanted, None)?;
        let found = (step, violation.invariant, violation.operation);
        if !is_known(found) {
            return Some(found);
        }
        wanted.leave_out(&violation);
    }
}

/// Returns by what the list of equivalent mutants knows a text: the first eight digits of its SHA-1.
fn fingerprint(script: &str) -> String {
    String::from_utf8_lossy(&sha1_hex(script.as_bytes())[..8]).into_owned()
}
