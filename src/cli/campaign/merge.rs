//! Merges the reports of shards: violations, coverage, schedules that reached something new, or scores.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use redlatch_locks::fuzz;
use redlatch_locks::mutate;
use serde_json::Value;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// The reports of one campaign.
#[derive(Default)]
struct Reports {
    documents: Vec<Value>,
    /// The file of each document.
    names: Vec<String>,
    /// What was not merged and why, one sentence each.
    left_out: Vec<String>,
}

/// Merges the reports of `paths`, prints the result, and returns the exit code.
pub fn run(paths: &[PathBuf], format: Format) -> Result<u8, String> {
    let mut reports = Reports::default();
    for path in files(paths)? {
        reports.read(&path);
    }
    let Some(first) = reports.documents.first() else {
        let why = reports.left_out.join("\n");
        return Err(format!("there is no report to merge\n{why}").trim_end().to_owned());
    };
    let campaign = first["campaign"].clone();
    let missing = reports.missing(&campaign);
    let is_fuzz = campaign["kind"] != "mutate";
    let mut merged = match is_fuzz {
        true => fuzz::merge::merge(&reports.documents),
        false => mutate::report::merge(&reports.documents),
    };
    merged["campaign"] = campaign;
    merged["merged"] = reports.names.len().into();
    merged["missing_shards"] = missing.clone().into();
    merged["left_out"] = reports.left_out.clone().into();
    match format {
        Format::Json => print!("{merged:#}\n"),
        Format::Text => {
            print!("{}", if is_fuzz { findings(&merged) } else { scores(&merged) });
            print!("merged {} reports\n", reports.names.len());
            missing
                .iter()
                .for_each(|shard| print!("missing: shard {shard} of {}\n", merged["campaign"]["shards"]));
            reports.left_out.iter().for_each(|why| print!("left out: {why}\n"));
        }
    }
    let is_bad = if is_fuzz { has_findings(&merged) } else { is_below_threshold(&merged) };
    let is_whole = missing.is_empty() && reports.left_out.is_empty();
    let is_all_run = rows(&merged, "problems").next().is_none();
    Ok(match (is_bad, is_whole && is_all_run) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 3,
    })
}

/// Returns the files, and the reports in the directories, in order.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries =
            std::fs::read_dir(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut of_directory: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        of_directory.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        of_directory.sort();
        files.extend(of_directory);
    }
    Ok(files)
}

impl Reports {
    /// Reads a file, and takes it in if it is another shard of the same campaign.
    fn read(&mut self, path: &Path) {
        let name = path.display().to_string();
        match self.check(path) {
            Ok(document) => {
                self.documents.push(document);
                self.names.push(name);
            }
            Err(why) => self.left_out.push(format!("{name}: {why}")),
        }
    }

    fn check(&self, path: &Path) -> Result<Value, String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let document: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if !document["objects"].is_array() && !document["mutants"].is_array() {
            return Err("not a report of a shard".to_owned());
        }
        let Some(first) = self.documents.first() else { return Ok(document) };
        let (ours, theirs) = (&first["campaign"], &document["campaign"]);
        if let Some((name, ours, theirs)) = difference(ours, theirs) {
            return Err(format!("of another campaign: {name} is {theirs}, not {ours}"));
        }
        let shard = &document["shard"];
        let twice = self.documents.iter().position(|known| shard.is_u64() && known["shard"] == *shard);
        match twice {
            Some(at) => Err(format!("shard {shard} is in {} already", self.names[at])),
            None => Ok(document),
        }
    }

    /// Returns the numbers of the shards that have no report.
    fn missing(&self, campaign: &Value) -> Vec<u64> {
        let known: Vec<u64> =
            self.documents.iter().filter_map(|document| document["shard"].as_u64()).collect();
        let shards = campaign["shards"].as_u64().unwrap_or(0);
        // A false number must not take the memory.
        (1..=shards).filter(|shard| !known.contains(shard)).take(10_000).collect()
    }
}

/// Returns the first option in which two campaigns differ.
fn difference<'a>(ours: &'a Value, theirs: &'a Value) -> Option<(&'a str, &'a Value, &'a Value)> {
    let names = [ours, theirs]
        .into_iter()
        .filter_map(|campaign| campaign.as_object())
        .flat_map(|campaign| campaign.keys());
    names.map(|name| (name.as_str(), &ours[name], &theirs[name])).find(|(_, ours, theirs)| ours != theirs)
}

fn rows<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    document[name].as_array().into_iter().flatten()
}

fn has_findings(merged: &Value) -> bool {
    rows(merged, "objects").any(|object| rows(object, "findings").next().is_some())
}

fn is_below_threshold(merged: &Value) -> bool {
    rows(merged, "scores").any(|score| {
        let threshold = if score["object"] == "all" { "threshold" } else { "object_threshold" };
        score["percent"].as_f64() < merged["campaign"][threshold].as_f64()
    })
}

/// Shows a text of a report, which may come from anywhere.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// Renders the violations, those of one cause together, and the coverage.
fn findings(merged: &Value) -> String {
    let mut out = String::new();
    for object in rows(merged, "objects") {
        let name = text(&object["object"]);
        for finding in rows(object, "findings") {
            let id = format!("{}@{}", text(&finding["invariant"]), text(&finding["operation"]));
            if finding["cause"] != id.as_str() {
                continue;
            }
            out += &format!(
                "{name}: {id}: {}\n  schedule {}, shrunk to {}\n",
                text(&finding["text"]),
                finding["number"],
                text(&finding["schedule"]),
            );
            let also = rows(object, "findings").filter(|other| other["cause"] == id.as_str()).skip(1);
            for other in also {
                let (invariant, operation) = (text(&other["invariant"]), text(&other["operation"]));
                out += &format!(
                    "  also: {invariant}@{operation}: {} ({})\n",
                    text(&other["text"]),
                    text(&other["schedule"])
                );
            }
            out += &format!("  repeat with: {}\n", text(&finding["again"]));
        }
    }
    for object in rows(merged, "objects") {
        out += &format!(
            "{}: {} schedules, {} scripts, {:.0} s, {} invariants violated\n",
            text(&object["object"]),
            object["schedules"],
            object["scripts"],
            object["seconds"].as_f64().unwrap_or(0.0),
            rows(object, "findings").count(),
        );
        for branch in rows(object, "branches_never_reached") {
            let (script, branch) = (text(&branch["script"]), text(&branch["branch"]));
            out += &format!("  branch never reached: {script}: {branch}\n");
        }
    }
    for problem in rows(merged, "problems") {
        out += &format!("not run or doubtful: {}: {}\n", text(&problem["script"]), text(&problem["what"]));
    }
    out
}

/// Renders the scores of a mutation campaign.
fn scores(merged: &Value) -> String {
    let survived = rows(merged, "mutants").filter(|mutant| mutant["fate"] == "survived").map(|mutant| {
        let [object, script, operator] = ["object", "script", "operator"].map(|name| text(&mutant[name]));
        format!("survived: {object}: {script}: {operator} {}\n", mutant["at"])
    });
    let scores = rows(merged, "scores").map(|score| {
        format!(
            "{:18} {} killed, {} survived, {} equivalent: {:.1} %\n",
            text(&score["object"]),
            score["killed"],
            score["survived"],
            score["equivalent"],
            score["percent"].as_f64().unwrap_or(0.0),
        )
    });
    survived.chain(scores).collect()
}
