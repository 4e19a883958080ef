//! Shrinks a round with a difference to a short case that still shows it.

use super::runner::{Difference, Fatal, Outcome, Pace, Runner};
use super::step::Step;
use redlatch_lab::schedule::fewer;

/// The most runs spent on one difference.
const BUDGET: usize = 400;

/// Returns the shortest steps found that show the difference, and their outcome. Returns `None` if the same steps do not
/// show the difference again.
pub fn shrink(
    runner: &mut Runner,
    steps: &[Step],
    difference: &Difference,
) -> Result<Option<(Vec<Step>, Outcome)>, Fatal> {
    let behind = difference.at >= steps.len();
    let mut search = Search { runner, command: difference.command.clone(), behind, runs: 0 };
    let end = steps.len().min(difference.at + 1);
    if !search.shows(&steps[..end])? {
        return Ok(None);
    }
    search.runner.pace = Pace::Hurried;
    let mut best = search.fewer_steps(steps[..end].to_vec())?;
    search.fewer_arguments(&mut best)?;
    search.fewer_lines(&mut best)?;
    search.runner.pace = Pace::OneByOne;
    let outcome = search.runner.run(&best, behind)?;
    Ok(outcome.difference.is_some().then_some((best, outcome)))
}

struct Search<'a> {
    runner: &'a mut Runner,
    command: String,
    behind: bool,
    runs: usize,
}

impl Search<'_> {
    /// Returns whether steps show this difference, not another.
    fn shows(&mut self, steps: &[Step]) -> Result<bool, Fatal> {
        self.runs += 1;
        let outcome = self.runner.run(steps, self.behind)?;
        Ok(outcome.difference.is_some_and(|difference| difference.command == self.command))
    }

    /// Removes steps by delta debugging, as long as the difference remains.
    fn fewer_steps(&mut self, steps: Vec<Step>) -> Result<Vec<Step>, Fatal> {
        fewer(steps, |rest| Ok(self.runs < BUDGET && self.shows(rest)?))
    }

    /// Removes the arguments that do not matter.
    fn fewer_arguments(&mut self, steps: &mut [Step]) -> Result<(), Fatal> {
        for at in 0..steps.len() {
            for index in (1..steps[at].argv.len()).rev() {
                if self.runs >= BUDGET {
                    return Ok(());
                }
                let removed = steps[at].argv.remove(index);
                if !self.shows(steps)? {
                    steps[at].argv.insert(index, removed);
                }
            }
        }
        Ok(())
    }

    /// Removes the lines of scripts that do not matter.
    fn fewer_lines(&mut self, steps: &mut [Step]) -> Result<(), Fatal> {
        for at in 0..steps.len() {
            for index in 1..steps[at].argv.len() {
                let mut lines: Vec<Vec<u8>> =
                    steps[at].argv[index].split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                for line in (0..lines.len()).rev() {
                    if lines.len() == 1 || self.runs >= BUDGET {
                        break;
                    }
                    let removed = lines.remove(line);
                    let whole = std::mem::replace(&mut steps[at].argv[index], lines.join(&b'\n'));
                    if !self.shows(steps)? {
                        lines.insert(line, removed);
                        steps[at].argv[index] = whole;
                    }
                }
            }
        }
        Ok(())
    }
}
