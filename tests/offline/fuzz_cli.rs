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
    assert_eq!(code, 0);
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
