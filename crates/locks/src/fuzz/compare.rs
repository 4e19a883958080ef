//! Runs two releases on the same schedules, and finds the first difference that clients can see.

use std::time::Instant;

use super::runner::{Line, Runner};
use super::schedule::{self, Step};
use super::{Options, runner_for, shrink};
use crate::model::Wanted;
use crate::script_set::ScriptSet;
use redlatch_core::rng::Rng;

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
pub fn compare(old: &ScriptSet, new: &ScriptSet, options: &Options) -> Vec<Difference> {
    let names = old.models().into_iter().map(|(name, _)| name);
    let chosen = names
        .filter(|name| options.objects.is_empty() || options.objects.iter().any(|object| object == name));
    chosen
        .filter_map(|object| {
            compare_object(object, runner_for(old, object)?, runner_for(new, object)?, options)
        })
        .collect()
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
        let mut rng = Rng::new(options.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
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
    let visible = |line: &Line| (line.reply.clone(), line.messages.clone(), line.keys.clone());
    let at = (0..ours.len().max(theirs.len()))
        .find(|at| ours.get(*at).map(visible) != theirs.get(*at).map(visible))?;
    ours.truncate(at + 1);
    theirs.truncate(at + 1);
    Some((ours, theirs))
}
