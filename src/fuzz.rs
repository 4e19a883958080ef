//! Random schedules against lock scripts of one's own.

use redlatch_locks::fuzz::{self, Options, report};
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
/// `description` is TOML with the two scripts of the lock and their arguments: `lock`, `channel`, `owner`, `lease_ms` or `now_ms`.
///
/// ```
/// let lock = r#"
///     [acquire]
///     script = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0"
///     keys = ["lock"]
///     args = ["owner", "lease_ms"]
///
///     [release]
///     script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
///     keys = ["lock"]
///     args = ["owner"]
/// "#;
/// let options = redlatch::FuzzOptions::default().schedules(200);
/// assert_eq!(redlatch::fuzz_lock(lock, &options)?, []);
/// # Ok::<(), redlatch::DescriptionError>(())
/// ```
///
/// # Errors
///
/// Fails if the description is not TOML, or lacks a script or its arguments.
pub fn fuzz_lock(description: &str, options: &FuzzOptions) -> Result<Vec<Counterexample>, DescriptionError> {
    let scripts = ScriptSet::of_own(description)?;
    let options = Options {
        seed: options.seed,
        runs: Some(options.schedules),
        faults: options.faults,
        ..Options::default()
    };
    let reports = fuzz::run(&scripts, &options).expect("no object is named that the description lacks");
    let findings = reports.into_iter().flat_map(|report| report.findings);
    Ok(findings
        .map(|finding| Counterexample {
            invariant: finding.violation.invariant.id(),
            text: finding.violation.invariant.text(),
            operation: finding.violation.operation,
            found: finding.violation.text,
            steps: finding.steps.len(),
            schedule: report::table(&finding.lines),
        })
        .collect())
}
