//! docs/scenarios.md: every test that it names exists, and every recipe does what it says, as it stands on the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use redlatch_lab::schedule::{NoFiles, Schedule};

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

/// The number of rows.
const ROWS: usize = 34;

fn page() -> String {
    fs::read_to_string("docs/scenarios.md").unwrap()
}

/// Returns the cells of each row of the table.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit());
    let rows: Vec<Vec<&str>> =
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), ROWS);
    rows
}

/// Returns the fenced blocks of a kind of each row's section: the line at which each begins, and its text.
fn blocks<'p>(page: &'p str, kind: &str) -> BTreeMap<usize, Vec<(usize, &'p str)>> {
    let mut sections: BTreeMap<usize, Vec<(usize, &str)>> = BTreeMap::new();
    let mut row = 0;
    let mut open: Option<(usize, usize, bool)> = None;
    let mut at = 0;
    for (number, line) in page.split_inclusive('\n').enumerate() {
        match open {
            None if line.starts_with("### ") => {
                let name = line[4..].split_once('.').map(|(number, _)| number.parse());
                row = name.unwrap_or_else(|| panic!("no number: {line}")).unwrap();
                assert!(sections.insert(row, Vec::new()).is_none(), "two sections of row {row}");
            }
            None if line.starts_with("```") => {
                open = Some((number + 1, at + line.len(), line[3..].trim() == kind));
            }
            Some((first, from, is_wanted)) if line.starts_with("```") => {
                if is_wanted {
                    sections.entry(row).or_default().push((first, &page[from..at]));
                }
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    assert!(open.is_none(), "an open block");
    sections
}

#[test]
fn every_scenario_names_tests_that_exist() {
    let mut above = 0;
    for row in rows(&page()) {
        let cell = row.last().unwrap();
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
        assert!(named + above > 0, "no test in {row:?}");
    }
}

#[test]
fn every_recipe_does_what_the_page_says() {
    let page = page();
    let mut executed = Vec::new();
    for (row, recipes) in blocks(&page, "schedule") {
        for (line, recipe) in &recipes {
            // Messages have the line of the page.
            let text = "\n".repeat(*line) + recipe;
            let schedule = Schedule::parse("docs/scenarios.md", text.as_bytes(), &mut NoFiles);
            let schedule = schedule.unwrap_or_else(|error| panic!("row {row}: {error}"));
            let run = schedule.run(&mut NoFiles, &mut |_| {});
            run.unwrap_or_else(|error| panic!("row {row}: {error}"));
        }
        assert!(!recipes.is_empty(), "row {row} has no recipe");
        executed.push(row);
    }
    assert_eq!(executed, (1..=ROWS).collect::<Vec<_>>(), "the rows whose recipes were executed");
}

/// What the table names is in the recipe of the row, so that the table is as right as the recipe.
#[test]
fn every_recipe_uses_what_its_row_names() {
    let page = page();
    let (recipes, sessions) = (blocks(&page, "schedule"), blocks(&page, "console"));
    for row in rows(&page) {
        let number: usize = row[0].parse().unwrap();
        let texts: Vec<&str> =
            recipes[&number].iter().chain(&sessions[&number]).map(|(_, text)| *text).collect();
        let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        for named in quoted(row[2]) {
            // `<ms>` and `…` stand for a word or more.
            let pattern = named.replace('…', "<>");
            let parts: Vec<&str> = pattern
                .split('<')
                .enumerate()
                .map(|(index, part)| if index == 0 { part } else { part.split_once('>').unwrap().1 })
                .collect();
            let fits = |line: &&str| {
                let mut rest = *line;
                parts.iter().all(|part| match rest.split_once(part) {
                    Some((_, behind)) => {
                        rest = behind;
                        true
                    }
                    None => false,
                })
            };
            assert!(lines.iter().any(fits), "row {number} has no recipe with '{named}'");
        }
    }
}
