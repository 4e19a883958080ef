//! Known violations, which a search does not report: those of an older release, or those that a file lists.

use super::runner::Runner;
use super::schedule::{self, Step};
use super::{ObjectReport, runner_for};
use crate::invariant::{Invariant, Rules};
use crate::model::{Violation, Wanted};
use crate::script_set::ScriptSet;

/// What is known of a lock's violations.
#[derive(Clone, Debug)]
pub enum Baseline {
    /// What this release violates too, in the same schedule at the same step.
    Release(Box<ScriptSet>),
    /// What a file lists.
    Listed(Vec<Known>),
}

/// A violation that a file lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub object: String,
    pub invariant: Invariant,
    pub operation: String,
    pub steps: Vec<Step>,
}

impl Baseline {
    /// Reads a list from what [`list`] or [`json`](super::report::json) wrote.
    ///
    /// # Errors
    /// Fails if the text is not such a document.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        let document: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let objects = document["objects"].as_array().ok_or("not a list of violations: no 'objects'")?;
        let mut known = Vec::new();
        for object in objects {
            for finding in object["findings"].as_array().into_iter().flatten() {
                let text =
                    |name: &str| finding[name].as_str().ok_or_else(|| format!("a finding without '{name}'"));
                let (id, token) = (text("invariant")?, text("schedule")?);
                known.push(Known {
                    object: object["object"].as_str().ok_or("an object without a name")?.to_owned(),
                    invariant: Invariant::find(id).ok_or_else(|| format!("no invariant '{id}'"))?,
                    operation: text("operation")?.to_owned(),
                    steps: schedule::decode(token).ok_or_else(|| format!("no schedule token: '{token}'"))?,
                });
            }
        }
        Ok(Baseline::Listed(known))
    }

    /// Returns the listed violations of an object.
    pub(super) fn listed(&self, object: &str) -> impl Iterator<Item = &Known> {
        let known: &[Known] = match self {
            Baseline::Listed(known) => known,
            Baseline::Release(_) => &[],
        };
        known.iter().filter(move |known| known.object == object)
    }

    /// Returns a runner for the older release, if there is one and it has the object.
    pub(super) fn runner(&self, object: &str) -> Option<Runner> {
        match self {
            Baseline::Release(scripts) => runner_for(scripts, object),
            Baseline::Listed(_) => None,
        }
    }

    /// Returns the listed violations of a release that their schedules no longer show.
    pub fn outdated(&self, scripts: &ScriptSet, rules: Rules) -> Vec<&Known> {
        let Baseline::Listed(known) = self else { return Vec::new() };
        let is_outdated = |known: &&Known| {
            let wanted = Wanted::one(known.invariant, &known.operation);
            let runner = runner_for(scripts, &known.object);
            runner.is_none_or(|mut runner| runner.run(&known.steps, rules, &wanted, None).is_none())
        };
        known.iter().filter(is_outdated).collect()
    }
}

/// Renders violations as a list for [`Baseline::parse`].
pub fn list(reports: &[ObjectReport]) -> String {
    let objects = reports.iter().filter(|report| !report.findings.is_empty()).map(|report| {
        let findings = report.findings.iter().map(|finding| {
            serde_json::json!({
                "invariant": finding.violation.invariant.id(), "operation": finding.violation.operation,
                "text": finding.violation.text, "schedule": schedule::encode(&finding.steps),
            })
        });
        serde_json::json!({"object": report.object, "findings": findings.collect::<Vec<_>>()})
    });
    format!("{:#}\n", serde_json::json!({"objects": objects.collect::<Vec<_>>()}))
}

/// Returns the first violation that the older release does not show in the same schedule at the same step. Adds those
/// before it to the known ones of `wanted`.
pub(super) fn first_new(
    runner: &mut Runner,
    older: &mut Runner,
    steps: &[Step],
    rules: Rules,
    wanted: &mut Wanted,
) -> Option<(usize, Violation)> {
    loop {
        let (at, violation) = runner.run(steps, rules, wanted, None)?;
        if !violates(older, steps, rules, at, &violation) {
            return Some((at, violation));
        }
        wanted.known.push((at, violation.invariant));
    }
}

/// Returns whether a release shows this violation at this step.
fn violates(runner: &mut Runner, steps: &[Step], rules: Rules, step: usize, violation: &Violation) -> bool {
    let mut wanted = Wanted::one(violation.invariant, violation.operation);
    while let Some((at, _)) = runner.run(steps, rules, &wanted, None) {
        if at >= step {
            return at == step;
        }
        wanted.known.push((at, violation.invariant));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::{Options, run};
    use super::*;

    const SOUND: &str =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

    /// Returns a lock whose release is this script.
    fn lock(release: &str) -> ScriptSet {
        let description = format!(
            "[acquire]\nscript = \"if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0\"\n\
             keys = ['lock']\nargs = ['owner', 'lease_ms']\n[release]\nscript = \"{release}\"\nkeys = ['lock']\nargs = ['owner']\n"
        );
        ScriptSet::of_own(&description).unwrap()
    }

    fn options() -> Options {
        Options { runs: Some(500), ..Options::default() }
    }

    fn names(reports: &[ObjectReport]) -> Vec<String> {
        let findings = reports.iter().flat_map(|report| &report.findings);
        findings
            .map(|finding| format!("{}@{}", finding.violation.invariant.id(), finding.violation.operation))
            .collect()
    }

    #[test]
    fn what_an_older_release_violates_too_is_not_new() {
        // Both release for everybody. The newer one denies it.
        let (old, new) =
            (lock("redis.call('del', KEYS[1]) return 1"), lock("redis.call('del', KEYS[1]) return 0"));
        let found = names(&run(&new, &options()).unwrap());
        assert!(found.contains(&"U1@release".to_owned()) && found.len() > 1, "{found:?}");
        let baseline = Some(Baseline::Release(Box::new(old.clone())));
        let new_only = names(&run(&new, &Options { baseline, ..options() }).unwrap());
        assert!(!new_only.is_empty() && new_only.len() < found.len(), "{new_only:?} of {found:?}");
        let baseline = Some(Baseline::Release(Box::new(old.clone())));
        assert_eq!(names(&run(&old, &Options { baseline, ..options() }).unwrap()), [""; 0]);
        let baseline = Some(Baseline::Release(Box::new(lock(SOUND))));
        assert_eq!(
            names(&run(&old, &Options { baseline, ..options() }).unwrap()),
            names(&run(&old, &options()).unwrap())
        );
    }

    #[test]
    fn what_a_file_lists_is_not_new_and_may_be_outdated() {
        let broken = lock("redis.call('del', KEYS[1]) return 1");
        let reports = run(&broken, &options()).unwrap();
        let baseline = Baseline::parse(&list(&reports)).unwrap();
        assert!(baseline.outdated(&broken, Rules::AsDocumented).is_empty());
        assert_eq!(baseline.outdated(&lock(SOUND), Rules::AsDocumented).len(), names(&reports).len());
        let options = Options { baseline: Some(baseline), ..options() };
        assert_eq!(names(&run(&broken, &options).unwrap()), [""; 0]);
        for text in
            ["", "{}", "{\"objects\": [{\"object\": \"rw\", \"findings\": [{\"invariant\": \"M1\"}]}]}"]
        {
            assert!(Baseline::parse(text).is_err(), "{text}");
        }
    }
}
