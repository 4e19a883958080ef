//! docs/scenarios.md names at least one test for each scenario, and every test it names exists.

use std::fs;
use std::path::Path;

/// Returns the texts between backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the file of a module of a test binary.
fn of_module(name: &str) -> String {
    let candidates = ["offline", "oracle", "jars"].map(|binary| format!("tests/{binary}/{name}.rs"));
    let found = candidates.into_iter().find(|file| Path::new(file).exists());
    found.unwrap_or_else(|| panic!("no test binary has a module {name}"))
}

#[test]
fn every_scenario_names_tests_that_exist() {
    let page = fs::read_to_string("docs/scenarios.md").unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit()).collect();
    assert_eq!(rows.len(), 34);
    let mut above = 0;
    for row in rows {
        let cell = row.trim_end_matches('|').rsplit_once('|').unwrap().1;
        let mut named = 0;
        let mut class = "";
        for test in quoted(cell) {
            let (file, text) = if let Some((module, name)) = test.split_once("::") {
                (of_module(module), format!("fn {name}("))
            } else {
                let (of, name) = test.split_once('#').unwrap_or_else(|| panic!("no test: {test}"));
                class = if of.is_empty() { class } else { of };
                (
                    format!("tests/redisson/faults/src/test/java/redlatch/{class}.java"),
                    format!("void {name}("),
                )
            };
            let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(source.contains(&text), "{file} has no {text}");
            named += 1;
        }
        above = if cell.contains("the same") { above } else { named };
        assert!(named + above > 0, "no test in {row}");
    }
}
