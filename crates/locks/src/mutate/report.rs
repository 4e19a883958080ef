//! Reports of a run, for people and programs.

use std::fmt::Write;

use super::{Fate, Mutant, Outcome};

/// The numbers of one object's mutants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    pub killed: usize,
    pub survived: usize,
    pub equivalent: usize,
}

impl Score {
    fn count(&mut self, fate: &Fate) {
        match fate {
            Fate::Killed { .. } | Fate::NotRecognised => self.killed += 1,
            Fate::Survived => self.survived += 1,
            Fate::Equivalent(_) => self.equivalent += 1,
        }
    }

    /// Returns the share of the mutants that are not equivalent and were killed, in percent.
    pub fn percent(self) -> f64 {
        match self.killed + self.survived {
            0 => 100.0,
            mutants => 100.0 * self.killed as f64 / mutants as f64,
        }
    }
}

/// Returns the score of each object, in the order in which they were tried, and that of all.
pub fn scores(outcomes: &[Outcome]) -> (Vec<(&'static str, Score)>, Score) {
    let mut scores: Vec<(&'static str, Score)> = Vec::new();
    let mut all = Score::default();
    for Outcome { mutant, fate } in outcomes {
        all.count(fate);
        match scores.iter_mut().find(|(object, _)| *object == mutant.object) {
            Some((_, score)) => score.count(fate),
            None => {
                let mut score = Score::default();
                score.count(fate);
                scores.push((mutant.object, score));
            }
        }
    }
    (scores, all)
}

/// Renders the scores as a table, after the list of the mutants that survived.
pub fn text(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for Outcome { mutant, .. } in outcomes.iter().filter(|outcome| outcome.fate == Fate::Survived) {
        let Mutant { object, script, role, mutation, .. } = mutant;
        let _ = writeln!(
            out,
            "survived: {object}: {script} ({role}): {} {}: {} → {}",
            mutation.operator,
            mutation.at,
            shown(&mutation.old),
            shown(&mutation.new)
        );
    }
    let _ = writeln!(
        out,
        "{:18} {:>7} {:>9} {:>11} {:>7}",
        "object", "killed", "survived", "equivalent", "score"
    );
    let (scores, all) = scores(outcomes);
    for (object, score) in scores.into_iter().chain([("all", all)]) {
        let Score { killed, survived, equivalent } = score;
        let percent = score.percent();
        let _ = writeln!(out, "{object:18} {killed:>7} {survived:>9} {equivalent:>11} {percent:>6.1}%");
    }
    out
}

/// Returns a part of a script on one line.
fn shown(text: &str) -> String {
    match text.trim() {
        "" => "nothing".to_owned(),
        text => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns the outcomes as one JSON document.
pub fn json(outcomes: &[Outcome]) -> serde_json::Value {
    let mutants = outcomes.iter().map(|Outcome { mutant, fate }| {
        let Mutant { object, script, role, sha1, mutation } = mutant;
        let mut row = serde_json::json!({
            "object": object, "script": script, "role": role, "sha1": sha1, "operator": mutation.operator, "at": mutation.at,
            "old": shown(&mutation.old), "new": shown(&mutation.new),
        });
        match fate {
            Fate::Killed { invariant, operation, schedules } => {
                row["fate"] = "killed".into();
                row["violation"] = format!("{}@{operation}", invariant.id()).into();
                row["schedules"] = (*schedules).into();
            }
            Fate::NotRecognised => row["fate"] = "not recognised".into(),
            Fate::Survived => row["fate"] = "survived".into(),
            Fate::Equivalent(why) => {
                row["fate"] = "equivalent".into();
                row["why"] = why.as_str().into();
            }
        }
        row
    });
    merge(&[serde_json::json!({"mutants": mutants.collect::<Vec<_>>()})])
}

/// Merges documents of [`json`], each of which has the outcomes of other mutants, and adds the scores.
pub fn merge(documents: &[serde_json::Value]) -> serde_json::Value {
    let mutants: Vec<&serde_json::Value> =
        documents.iter().filter_map(|document| document["mutants"].as_array()).flatten().collect();
    let mut scores: Vec<(String, Score)> = Vec::new();
    let mut all = Score::default();
    for mutant in &mutants {
        let object = mutant["object"].as_str().unwrap_or_default();
        if scores.iter().all(|(known, _)| known != object) {
            scores.push((object.to_owned(), Score::default()));
        }
        let of_object = scores.iter_mut().filter(|(known, _)| known == object).map(|(_, score)| score);
        for score in of_object.chain([&mut all]) {
            match mutant["fate"].as_str() {
                Some("survived") => score.survived += 1,
                Some("equivalent") => score.equivalent += 1,
                _ => score.killed += 1,
            }
        }
    }
    let scores = scores.iter().map(|(object, score)| (object.as_str(), *score)).chain([("all", all)]);
    serde_json::json!({"scores": scores.map(row).collect::<Vec<_>>(), "mutants": mutants})
}

/// Returns the score of an object, or of all, as JSON.
fn row((object, score): (&str, Score)) -> serde_json::Value {
    let Score { killed, survived, equivalent } = score;
    serde_json::json!({
        "object": object, "killed": killed, "survived": survived, "equivalent": equivalent, "percent": score.percent(),
    })
}
