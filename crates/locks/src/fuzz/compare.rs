//! Runs two releases on the same schedules, and finds the first difference that clients can see.

use std::collections::BTreeSet;
use std::time::Instant;

use super::runner::{Line, Runner};
use super::schedule::{self, Step};
use super::{Options, UnknownObject, runner_for, shrink};
use crate::model::Wanted;
use crate::script_set::ScriptSet;

/// The shortest schedule on which two releases behave differently.
#[derive(Clone, Debug)]
pub struct Difference {
    pub object: &'static str,
    pub steps: Vec<Step>,
    /// The run of each release, up to the first line that differs.
    pub old: Vec<Line>,
    pub new: Vec<Line>,
}

/// Searches for a difference at every object that both releases have.
///
/// # Errors
/// Fails if neither release has one of the requested objects.
pub fn compare(
    old: &ScriptSet,
    new: &ScriptSet,
    options: &Options,
) -> Result<Vec<Difference>, UnknownObject> {
    let mut known = names(old);
    known.extend(names(new));
    if let Some(unknown) = options.objects.iter().find(|object| !known.contains(object.as_str())) {
        return Err(UnknownObject { name: unknown.clone(), known: known.into_iter().collect() });
    }
    let chosen = old.models().into_iter().map(|(name, _)| name);
    let chosen = chosen
        .filter(|name| options.objects.is_empty() || options.objects.iter().any(|object| object == name));
    let differences = chosen.filter_map(|object| {
        compare_object(object, runner_for(old, object)?, runner_for(new, object)?, options)
    });
    Ok(differences.collect())
}

/// Returns the names of a release's objects.
fn names(scripts: &ScriptSet) -> BTreeSet<&'static str> {
    scripts.models().into_iter().map(|(name, _)| name).collect()
}

/// Returns the objects that only the first of two releases has, and those that only the second has.
pub fn only_in_one([first, second]: [&ScriptSet; 2]) -> [BTreeSet<&'static str>; 2] {
    let (first, second) = (names(first), names(second));
    [&first - &second, &second - &first]
}

fn compare_object(
    object: &'static str,
    mut old: Runner,
    mut new: Runner,
    options: &Options,
) -> Option<Difference> {
    let start = Instant::now();
    let both: Vec<bool> =
        (0..old.operations().len()).map(|operation| old.can(operation) && new.can(operation)).collect();
    let mut steps = Vec::new();
    for number in 0u64.. {
        let over = options.runs.map_or(start.elapsed() >= options.time, |runs| number >= runs);
        if over {
            return None;
        }
        let mut rng = schedule::numbers(options.seed, number);
        // An operation that one of the releases lacks does not count as a difference.
        let has = |operation: usize| both[operation];
        schedule::random(&mut rng, old.operations(), has, (options.owners, options.faults), &mut steps);
        if first_difference(&mut old, &mut new, &steps, options).is_some() {
            break;
        }
    }
    let steps =
        shrink::shrink(&steps, |steps| first_difference(&mut old, &mut new, steps, options).is_some());
    let (old, new) = first_difference(&mut old, &mut new, &steps, options)?;
    Some(Difference { object, steps, old, new })
}

/// Returns both runs up to the first line that differs.
fn first_difference(
    old: &mut Runner,
    new: &mut Runner,
    steps: &[Step],
    options: &Options,
) -> Option<(Vec<Line>, Vec<Line>)> {
    let nothing = Wanted::nothing();
    let run = |runner: &mut Runner| {
        let mut lines = Vec::new();
        runner.run(steps, options.rules, &nothing, Some(&mut lines));
        lines
    };
    let (mut ours, mut theirs) = (run(old), run(new));
    let visible = |line: &Line| (without_digests(&line.reply), line.messages.clone(), line.keys.clone());
    let at = (0..ours.len().max(theirs.len()))
        .find(|at| ours.get(*at).map(visible) != theirs.get(*at).map(visible))?;
    ours.truncate(at + 1);
    theirs.truncate(at + 1);
    Some((ours, theirs))
}

/// The length of a script's digest in hex digits.
const DIGEST: usize = 40;

/// Replaces the digests of scripts in a reply: an error names the script in which it happened.
fn without_digests(reply: &str) -> String {
    let mut out = String::new();
    let mut rest = reply;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let hex = rest[at..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - at);
        out.push_str(&rest[..at]);
        out.push_str(if hex == DIGEST { "…" } else { &rest[at..at + hex] });
        rest = &rest[at + hex..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_in_errors_do_not_count() {
        let error = |digest: &str| format!("ERR x script: f_{digest}, on @user_script:1.");
        let (one, other) = ("0123456789".repeat(4), "abcdef0123".repeat(4));
        assert_eq!(without_digests(&error(&one)), without_digests(&error(&other)));
        assert_eq!(without_digests("ERR bad deadbeef é 12"), "ERR bad deadbeef é 12");
        assert_ne!(without_digests("1"), without_digests("2"));
    }
}
