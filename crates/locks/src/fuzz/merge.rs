//! Merges the reports of several processes into the report that one process would have written.

use serde_json::Value;

use super::corpus::Corpus;
use super::report::list_never_reached;
use super::schedule;

/// Merges reports of [`json`](super::report::json). Of the same violation the schedule with the lowest number is kept.
pub fn merge(documents: &[Value]) -> Value {
    let mut objects: Vec<Value> = Vec::new();
    let all = documents.iter().filter_map(|document| document["objects"].as_array()).flatten();
    for object in all.filter(|object| object.is_object()) {
        match objects.iter_mut().find(|known| known["object"] == object["object"]) {
            Some(known) => add(known, object),
            None => objects.push(object.clone()),
        }
    }
    for object in &mut objects {
        order(object);
        let mut corpus = Corpus::default();
        corpus.add_json(&object["corpus"]);
        object["corpus"] = corpus.minimal().json();
    }
    let source = documents.first().map(|document| document["source"].clone()).unwrap_or_default();
    let mut problems: Vec<&Value> = Vec::new();
    for problem in documents.iter().filter_map(|document| document["problems"].as_array()).flatten() {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    serde_json::json!({"source": source, "objects": objects, "problems": problems})
}

/// Adds what another process has reported of the same object.
fn add(known: &mut Value, object: &Value) {
    for sum in ["schedules", "scripts"] {
        let added = object[sum].as_u64().unwrap_or(0);
        known[sum] = known[sum].as_u64().unwrap_or(0).saturating_add(added).into();
    }
    let seconds = |object: &Value| object["seconds"].as_f64().unwrap_or(0.0);
    known["seconds"] = (seconds(known) + seconds(object)).into();
    for operation in object["coverage"].as_array().into_iter().flatten() {
        let operations = known["coverage"].as_array_mut().into_iter().flatten();
        let same = |known: &&mut Value| known.is_object() && known["operation"] == operation["operation"];
        for known in operations.filter(same) {
            add_counts(&mut known["replies"], &operation["replies"]);
            add_counts(&mut known["branches"], &operation["branches"]);
        }
    }
    list_never_reached(known);
    for finding in object["findings"].as_array().into_iter().flatten() {
        let Some(findings) = known["findings"].as_array_mut() else { continue };
        let same = |known: &&mut Value| {
            known["invariant"] == finding["invariant"] && known["operation"] == finding["operation"]
        };
        match findings.iter_mut().find(same) {
            Some(known) if known["number"].as_u64() <= finding["number"].as_u64() => {}
            Some(known) => *known = finding.clone(),
            None => findings.push(finding.clone()),
        }
    }
    if let (Some(known), Some(other)) = (known["corpus"].as_array_mut(), object["corpus"].as_array()) {
        known.extend(other.iter().cloned());
    }
}

/// Adds the counts of `other` to the counts of the same names.
fn add_counts(known: &mut Value, other: &Value) {
    let Some(known) = known.as_object_mut() else { return };
    for (name, count) in other.as_object().into_iter().flatten() {
        let sum = known.get(name).and_then(Value::as_u64).unwrap_or(0);
        let sum = sum.saturating_add(count.as_u64().unwrap_or(0));
        known.insert(name.clone(), sum.into());
    }
}

/// Brings the violations of an object into the order in which one process would have found them, and names the cause of each.
fn order(object: &mut Value) {
    let Some(findings) = object["findings"].as_array_mut() else { return };
    findings.retain(Value::is_object);
    findings.sort_by_key(|finding| finding["number"].as_u64());
    let shape = |finding: &Value| {
        let steps = finding["schedule"].as_str().and_then(schedule::decode).unwrap_or_default();
        (finding["operation"].clone(), schedule::shape(&steps))
    };
    for at in 0..findings.len() {
        let first = findings.iter().position(|other| shape(other) == shape(&findings[at])).unwrap_or(at);
        let part = |name: &str| findings[first][name].as_str().unwrap_or_default().to_owned();
        let cause = format!("{}@{}", part("invariant"), part("operation"));
        findings[at]["cause"] = cause.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_reports_are_merged_to_nothing() {
        let report = serde_json::json!({"objects": [1, "x", {"object": "rw", "schedules": u64::MAX, "coverage": [7, 7], "findings": [3]}]});
        let merged = merge(&[report.clone(), report, serde_json::json!(null)]);
        assert_eq!(merged["objects"].as_array().map(Vec::len), Some(1));
        assert_eq!(merged["objects"][0]["schedules"], u64::MAX);
    }
}
