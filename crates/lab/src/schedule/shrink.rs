//! Shrinks the steps of a run to the fewest that still show something.

use std::collections::BTreeSet;

use super::failure::Failure;
use super::run::Stage;
use super::step::{Step, Who};

/// The most steps that one shrinking carries out in all its runs.
const MAX_WORK: usize = 50_000_000;

/// Up to how many steps pairs are tried, too: some steps can only be removed together.
const MAX_PAIRS: usize = 64;

/// Removes items by delta debugging: ever smaller parts, as long as the rest keeps what is looked for.
///
/// # Errors
/// The error of `keeps`.
pub fn fewer<T: Clone, E>(
    mut items: Vec<T>,
    mut keeps: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<Vec<T>, E> {
    let mut size = items.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        let mut found = false;
        while from < items.len() {
            let mut rest = items.clone();
            rest.drain(from..items.len().min(from + size));
            if keeps(&rest)? {
                items = rest;
                found = true;
            } else {
                from += size;
            }
        }
        if !found || size > 1 {
            size /= 2;
        }
    }
    Ok(items)
}

/// Creates the server of a run.
pub type Begin<'a> = &'a dyn Fn() -> Result<Stage, Failure>;

/// Looks for fewer steps after which a predicate holds.
pub struct Search<'a> {
    predicate: &'a str,
    work: usize,
}

impl<'a> Search<'a> {
    /// Prepares to look for a predicate, which the servers judge.
    pub fn new(predicate: &'a str) -> Search<'a> {
        Search { predicate, work: 0 }
    }

    /// Returns whether the predicate comes to hold.
    ///
    /// # Errors
    /// The server cannot be created, or the script of the predicate fails.
    pub fn shows(&mut self, begin: Begin, steps: &[Step]) -> Result<bool, Failure> {
        Ok(self.first_bad(begin, steps)?.is_some())
    }

    /// Returns the number of the step after which the predicate holds for the first time.
    ///
    /// # Errors
    /// As [`shows`](Self::shows).
    fn first_bad(&mut self, begin: Begin, steps: &[Step]) -> Result<Option<usize>, Failure> {
        let mut stage = begin()?;
        for (index, step) in steps.iter().enumerate() {
            self.work += 1;
            if self.work > MAX_WORK {
                break;
            }
            // In another future a client may be waiting, or gone. Only a script without an end is the end of the run.
            if let Err(Failure::Limit(_)) = stage.perform(step, &mut |_| {}) {
                break;
            }
            if stage.holds(self.predicate)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Returns the fewest steps found, or `None` if the predicate never holds.
    ///
    /// # Errors
    /// As [`shows`](Self::shows).
    pub fn shortest(&mut self, begin: Begin, steps: &[Step]) -> Result<Option<Vec<Step>>, Failure> {
        let Some(last) = self.first_bad(begin, steps)? else { return Ok(None) };
        let mut best = steps[..=last].to_vec();
        best = self.without_groups(begin, best, &key_of)?;
        best = self.without_groups(begin, best, &|step| client_of(step).map(|who| who.to_string()))?;
        loop {
            let before = best.clone();
            best = fewer(best, |steps| self.shows(begin, steps))?;
            self.remove_pairs(begin, &mut best)?;
            self.round_times(begin, &mut best)?;
            if best == before {
                break;
            }
        }
        let last = self.first_bad(begin, &best)?.map_or(best.len(), |last| last + 1);
        best.truncate(last);
        Ok(Some(best))
    }

    /// Removes all steps of a group at once, as long as the predicate comes to hold. Steps without a group stay.
    fn without_groups(
        &mut self,
        begin: Begin,
        steps: Vec<Step>,
        group_of: &dyn Fn(&Step) -> Option<String>,
    ) -> Result<Vec<Step>, Failure> {
        let groups: BTreeSet<String> = steps.iter().filter_map(group_of).collect();
        let of = |kept: &[String]| {
            let is_kept =
                |step: &&Step| group_of(step).is_none_or(|group| kept.binary_search(&group).is_ok());
            steps.iter().filter(is_kept).cloned().collect::<Vec<Step>>()
        };
        let kept = fewer(groups.into_iter().collect(), |kept: &[String]| self.shows(begin, &of(kept)))?;
        Ok(of(&kept))
    }

    /// Removes pairs of steps, where there are few: a transaction's beginning and end, a link that goes down and up.
    fn remove_pairs(&mut self, begin: Begin, best: &mut Vec<Step>) -> Result<(), Failure> {
        let mut second = best.len().min(MAX_PAIRS);
        while second > 1 {
            second -= 1;
            for first in (0..second).rev() {
                let mut rest = best.clone();
                rest.remove(second);
                rest.remove(first);
                if self.shows(begin, &rest)? {
                    *best = rest;
                    second = second.saturating_sub(1).min(best.len());
                    break;
                }
            }
        }
        Ok(())
    }

    /// Adds times that follow each other up, and rounds them up to seconds or ms.
    fn round_times(&mut self, begin: Begin, best: &mut Vec<Step>) -> Result<(), Failure> {
        let mut index = 0;
        while index < best.len() {
            if let [Step::Advance { us: first }, Step::Advance { us: second }] =
                best[index..best.len().min(index + 2)]
            {
                let mut joined = best.clone();
                joined.remove(index);
                joined[index] = Step::Advance { us: first + second };
                if self.shows(begin, &joined)? {
                    *best = joined;
                    continue;
                }
            }
            if let Step::Advance { us } = best[index] {
                for unit in [1_000_000, 1_000] {
                    let mut rounded = best.clone();
                    rounded[index] = Step::Advance { us: us.div_ceil(unit) * unit };
                    if rounded[index] != best[index] && self.shows(begin, &rounded)? {
                        *best = rounded;
                        break;
                    }
                }
            }
            index += 1;
        }
        Ok(())
    }
}

/// Returns the client of a step.
fn client_of(step: &Step) -> Option<&Who> {
    match step {
        Step::Connect { who, .. } | Step::Disconnect(who) | Step::Send { who, .. } => Some(who),
        _ => None,
    }
}

/// Returns the key of a request, or its command if it has none. SIM commands and connections have no group.
fn key_of(step: &Step) -> Option<String> {
    let Step::Send { argv, .. } = step else { return None };
    let text = |index: usize| argv.get(index).map(|word| String::from_utf8_lossy(word).into_owned());
    let command = text(0)?.to_ascii_uppercase();
    if command.starts_with("SIM.") {
        return None;
    }
    let key = match &command[..] {
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => text(3),
        "SCRIPT" | "CLIENT" | "CONFIG" | "PING" | "HELLO" => None,
        _ => text(1),
    };
    Some(key.unwrap_or(command))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn fewest(items: Vec<u32>, mut keeps: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
        let Ok(items) = fewer(items, |items| Ok::<_, Infallible>(keeps(items)));
        items
    }

    #[test]
    fn items_that_matter_remain() {
        let mut runs = 0;
        let kept = fewest((0..1_000).collect(), |items: &[u32]| {
            runs += 1;
            items.contains(&17) && items.contains(&801)
        });
        assert_eq!(kept, [17, 801]);
        assert!(runs < 100, "{runs}");
        assert_eq!(fewest(vec![1, 2], |_| true), [0; 0]);
        assert_eq!(fewest(Vec::new(), |_| true), [0; 0]);
    }
}
