//! `redlatch fuzz` and `redlatch scripts` as programs: their output and their exit codes.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::process::Command;

/// Runs the program. Returns its output and its exit code.
fn redlatch(args: &[&str]) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(args)
        .output()
        .expect("redlatch runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap_or(-1))
}

const BROKEN: &[&str] = &["fuzz", "--scripts", "docs/locks/broken.toml", "--runs", "500"];

#[test]
fn a_violation_is_reported_and_can_be_repeated() {
    let (report, code) = redlatch(BROKEN);
    assert_eq!(code, 1);
    assert!(report.contains("own: U1 violated at release"), "{report}");
    let again = report
        .lines()
        .find_map(|line| line.trim().strip_prefix("repeat with: redlatch "))
        .expect("a line that repeats it");
    let (repeated, code) = redlatch(&again.split(' ').collect::<Vec<_>>());
    assert_eq!(code, 1);
    assert!(repeated.contains("invariant: "), "{repeated}");
}

#[test]
fn a_correct_lock_exits_with_0_and_a_search_that_cannot_run_with_2() {
    assert_eq!(redlatch(&["fuzz", "--scripts", "docs/locks/set-nx.toml", "--runs", "500"]).1, 0);
    assert_eq!(redlatch(&["fuzz", "--jar", "/nonexistent.jar"]).1, 2);
    assert_eq!(redlatch(&["fuzz", "--jar", "Cargo.toml"]).1, 2);
    assert_eq!(redlatch(&["fuzz"]).1, 2);
    assert_eq!(redlatch(&["scripts", "list", "Cargo.toml"]).1, 2);
    assert_eq!(redlatch(&["fuzz", "--list"]).1, 0);
}

#[test]
fn reports_of_parts_add_up() {
    let part = |shard: &str| {
        let (report, _) = redlatch(&[BROKEN, &["--format", "json", "--shard", shard]].concat());
        let path =
            std::env::temp_dir().join(format!("redlatch-fuzz-{}-{}.json", std::process::id(), &shard[..1]));
        std::fs::write(&path, report).expect("a temporary file");
        path
    };
    let (one, two) = (part("1/2"), part("2/2"));
    let (merged, code) = redlatch(&["fuzz", "merge", &one.to_string_lossy(), &two.to_string_lossy()]);
    assert_eq!(code, 1);
    let merged: serde_json::Value = serde_json::from_str(&merged).expect("JSON");
    assert_eq!(merged["objects"][0]["schedules"], 1000);
    assert!(merged["objects"][0]["findings"].as_array().is_some_and(|findings| !findings.is_empty()));
    for path in [one, two] {
        std::fs::remove_file(path).expect("the temporary file");
    }
}

#[test]
fn junit_has_a_case_for_each_violation() {
    let (report, _) = redlatch(&[BROKEN, &["--format", "junit"]].concat());
    assert_eq!(report.matches("<testcase").count(), report.matches("<failure").count());
    assert!(report.contains("name=\"U1@release\""), "{report}");
}

#[test]
fn known_violations_are_left_out() {
    let with = |args: &[&str]| redlatch(&[BROKEN, args].concat());
    let (report, code) = with(&["--except", "M1", "--except", "U1@release"]);
    assert_eq!(code, 1);
    assert!(!report.contains("U1 violated") && !report.contains("M1 violated"), "{report}");

    let list = std::env::temp_dir().join(format!("redlatch-baseline-{}.json", std::process::id()));
    let list = list.to_string_lossy();
    assert_eq!(with(&["--write-baseline", &list]).1, 0);
    let (report, code) = with(&["--baseline", &list]);
    assert_eq!(code, 0, "{report}");
    let sound = ["fuzz", "--scripts", "docs/locks/set-nx.toml", "--runs", "10", "--baseline", &list];
    let (report, code) = redlatch(&sound);
    assert_eq!(code, 0);
    assert!(report.contains("not violated any more: own U1@release"), "{report}");
    std::fs::remove_file(&*list).expect("the temporary file");

    assert_eq!(with(&["--baseline", "docs/locks/broken.toml"]).1, 0);
    assert_eq!(with(&["--baseline", "docs/locks/set-nx.toml"]).1, 1);
    assert_eq!(with(&["--baseline", "Cargo.lock"]).1, 2);
    assert_eq!(with(&["--baseline", "/nonexistent"]).1, 2);
}

#[test]
fn violations_with_one_cause_are_one_report() {
    let (report, _) = redlatch(&[BROKEN, &["--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let findings = report["objects"][0]["findings"].as_array().expect("findings");
    let name = |finding: &serde_json::Value| {
        format!("{}@{}", finding["invariant"].as_str().unwrap(), finding["operation"].as_str().unwrap())
    };
    let first = findings.iter().filter(|finding| finding["cause"] == name(finding)).count();
    let (text, _) = redlatch(BROKEN);
    assert_eq!(text.matches("repeat with:").count(), first, "{text}");
    assert_eq!(text.matches("  also: ").count(), findings.len() - first, "{text}");
}
