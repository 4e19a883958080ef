//! Random schedules against lock scripts of one's own, and the schedule of a report once more.

// Descriptions are files.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

use redlatch_locks::fuzz::runner::Line;
use redlatch_locks::fuzz::{self, Finding, Options, report, schedule};
pub use redlatch_locks::invariant::Rules;
use redlatch_locks::model::{Violation, Wanted};
pub use redlatch_locks::own::description::DescriptionError;
use redlatch_locks::script_set::ScriptSet;

/// How to fuzz a lock.
///
/// ```
/// let options = redlatch::FuzzOptions::default().schedules(500).faults(false);
/// assert_eq!(options.schedules, 500);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FuzzOptions {
    /// What the schedules come from.
    pub seed: u64,
    /// How many schedules to try.
    pub schedules: u64,
    /// Whether replies and keys are lost and clocks are wrong.
    pub faults: bool,
}

impl Default for FuzzOptions {
    /// 10,000 schedules with faults.
    fn default() -> FuzzOptions {
        FuzzOptions { seed: 0, schedules: 10_000, faults: true }
    }
}

impl FuzzOptions {
    /// Sets what the schedules come from.
    pub fn seed(mut self, seed: u64) -> FuzzOptions {
        self.seed = seed;
        self
    }

    /// Sets how many schedules to try.
    pub fn schedules(mut self, schedules: u64) -> FuzzOptions {
        self.schedules = schedules;
        self
    }

    /// Sets whether replies and keys are lost and clocks are wrong.
    pub fn faults(mut self, faults: bool) -> FuzzOptions {
        self.faults = faults;
        self
    }
}

/// The shortest schedule that breaks an invariant of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counterexample {
    /// The invariant: `M1`.
    pub invariant: &'static str,
    /// What the invariant says.
    pub text: &'static str,
    /// The operation that broke it: `release`.
    pub operation: &'static str,
    /// What was found instead.
    pub found: String,
    /// How many steps the schedule has.
    pub steps: usize,
    /// The schedule as a table: who did what and when, and what was answered.
    pub schedule: String,
}

/// Tries random schedules of several owners on the scripts of a lock, and returns what broke its invariants. The same options find the same.
///
/// `description` is TOML; `docs/own-locks.md` explains it. It names no other files: for one that does, use [`fuzz_lock_file`].
///
/// ```
/// let lock = r#"
///     [acquire]
///     command = ["SET", "{lock}", "{owner}", "NX", "PX", "{lease_ms}"]
///     granted = "OK"
///     refused = "nil"
///
///     [release]
///     script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
///     keys = ["{lock}"]
///     args = ["{owner}"]
///     released = 1
///     not_held = 0
/// "#;
/// let options = redlatch::FuzzOptions::default().schedules(200);
/// assert_eq!(redlatch::fuzz_lock(lock, &options)?, []);
/// # Ok::<(), redlatch::DescriptionError>(())
/// ```
///
/// # Errors
///
/// Fails if the description is not TOML or not complete, or if a script does not compile. The error names the place.
pub fn fuzz_lock(description: &str, options: &FuzzOptions) -> Result<Vec<Counterexample>, DescriptionError> {
    Ok(search(&ScriptSet::of_own(description)?, options))
}

/// Does the same as [`fuzz_lock`] with a description in a file, which may name files with scripts relative to itself.
///
/// ```
/// let options = redlatch::FuzzOptions::default().schedules(200);
/// assert_eq!(redlatch::fuzz_lock_file("docs/locks/set-nx.toml", &options)?, []);
/// # Ok::<(), redlatch::DescriptionError>(())
/// ```
///
/// # Errors
///
/// Fails as [`fuzz_lock`] does, and if a file cannot be read.
pub fn fuzz_lock_file(
    path: impl AsRef<Path>,
    options: &FuzzOptions,
) -> Result<Vec<Counterexample>, DescriptionError> {
    Ok(search(&own_of(path.as_ref())?, options))
}

/// Repeats one schedule on the lock that a file describes, and returns what it breaks. A report of `redlatch fuzz` has the schedule token.
///
/// ```
/// let broken = redlatch::replay_lock_file("docs/locks/broken.toml", "500000510600")?;
/// assert_eq!((broken[0].invariant, broken[0].operation), ("U1", "release"));
/// assert_eq!(redlatch::replay_lock_file("docs/locks/set-nx.toml", "500000510600")?, []);
/// # Ok::<(), redlatch::DescriptionError>(())
/// ```
///
/// # Errors
///
/// Fails as [`fuzz_lock_file`] does, and if the token is not one.
pub fn replay_lock_file(
    path: impl AsRef<Path>,
    token: &str,
) -> Result<Vec<Counterexample>, DescriptionError> {
    replay(&own_of(path.as_ref())?, "own", token, Rules::AsDocumented)
}

/// Repeats one schedule on an object of a release of Redisson, and returns what it breaks by these rules.
///
/// # Errors
///
/// Fails if the file is not a jar with lock scripts, if the release lacks the object, and if the token is not one.
pub fn replay_jar(
    path: impl AsRef<Path>,
    object: &str,
    token: &str,
    rules: Rules,
) -> Result<Vec<Counterexample>, DescriptionError> {
    let path = path.as_ref();
    let wrong = |problem: String| DescriptionError { place: path.display().to_string(), problem };
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let jar = redlatch_locks::jar::read(&bytes).map_err(|error| wrong(error.to_string()))?;
    replay(&ScriptSet::of_jar(&jar), object, token, rules)
}

fn replay(
    scripts: &ScriptSet,
    object: &str,
    token: &str,
    rules: Rules,
) -> Result<Vec<Counterexample>, DescriptionError> {
    let wrong = |place: &str, problem: &str| DescriptionError {
        place: place.to_owned(),
        problem: problem.to_owned(),
    };
    let steps = schedule::decode(token).ok_or_else(|| wrong(token, "not a schedule token"))?;
    let mut runner =
        fuzz::runner_for(scripts, object).ok_or_else(|| wrong(object, "there is no such object"))?;
    let mut all = Vec::new();
    let mut wanted = Wanted::default();
    loop {
        let mut lines = Vec::new();
        let Some((_, violation)) = runner.run(&steps, rules, &wanted, Some(&mut lines)) else {
            return Ok(all);
        };
        // What is known does not hide what comes later.
        wanted.leave_out(&violation);
        all.push(counterexample(violation, steps.len(), &lines));
    }
}

fn counterexample(violation: Violation, steps: usize, lines: &[Line]) -> Counterexample {
    Counterexample {
        invariant: violation.invariant.id(),
        text: violation.invariant.text(),
        operation: violation.operation,
        found: violation.text,
        steps,
        schedule: report::table(lines),
    }
}

/// Reads the lock that a file describes.
fn own_of(path: &Path) -> Result<ScriptSet, DescriptionError> {
    let text = std::fs::read_to_string(path).map_err(|error| DescriptionError {
        place: path.display().to_string(),
        problem: error.to_string(),
    })?;
    own_from(path, &text)
}

/// Reads the description of a lock. The files that it names are relative to its own file.
pub(crate) fn own_from(path: &Path, description: &str) -> Result<ScriptSet, DescriptionError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    ScriptSet::of_own_with(description, &mut read)
}

fn search(scripts: &ScriptSet, options: &FuzzOptions) -> Vec<Counterexample> {
    let options = Options {
        seed: options.seed,
        runs: Some(options.schedules),
        faults: options.faults,
        ..Options::default()
    };
    let reports = fuzz::run(scripts, &options).expect("no object is named that the description lacks");
    let findings = reports.into_iter().flat_map(|report| report.findings);
    findings
        .map(|Finding { violation, steps, lines, .. }| counterexample(violation, steps.len(), &lines))
        .collect()
}
