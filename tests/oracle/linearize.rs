//! The check of linearizability against a published one: Porcupine's test histories, with the verdicts in its own tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::oracle;
use redlatch_locks::datum::Datum;
use redlatch_locks::linearize::{Call, Entry, Limit, Model, Outcome, Verdict, check, judge, read};

fn porcupine() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/porcupine");
    oracle::or_skip(folder.join("porcupine_test.go").exists().then_some(folder), "target/porcupine")
}

/// Returns the arguments of all calls of a function in Porcupine's tests.
fn calls(folder: &Path, function: &str) -> Vec<Vec<String>> {
    let source = fs::read_to_string(folder.join("porcupine_test.go")).unwrap();
    let begin = format!("{function}(t, ");
    let lines = source.lines().filter_map(|line| line.trim().strip_prefix(&begin)?.strip_suffix(')'));
    let words = |line: &str| line.split(", ").map(|word| word.trim_matches('"').to_owned()).collect();
    lines.map(words).collect()
}

fn limited<T>(configurations: u64, run: impl FnOnce(&mut Limit) -> T) -> T {
    run(&mut Limit { configurations, is_over: &mut || false })
}

/// Converts a line of an old log of Jepsen: `INFO  jepsen.util - 3 :ok :cas [1 2]`.
fn entry(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("INFO  jepsen.util - ")?.split_whitespace();
    let (process, kind, f) = (words.next()?, words.next()?, words.next()?);
    process.parse::<u64>().ok()?;
    let value = words.collect::<Vec<_>>().join(" ");
    Some(format!("{{:process {process}, :type {kind}, :f {f}, :value {value}}}\n"))
}

#[test]
fn logs_of_etcd_get_porcupines_verdict() {
    let Some(folder) = porcupine() else { return };
    let tests = calls(&folder, "checkJepsen");
    assert!(tests.len() >= 100, "{}", tests.len());
    let mut good = 0;
    for test in tests {
        let number: u32 = test[0].parse().unwrap();
        let log = fs::read_to_string(folder.join(format!("test_data/jepsen/etcd_{number:03}.log"))).unwrap();
        let entries = read(&log.lines().filter_map(entry).collect::<String>()).unwrap();
        assert!(entries.len() > 2, "log {number} has {} operations", entries.len());
        let report = limited(10_000_000, |limit| judge(&entries, None, limit)).unwrap();
        let expected = test[1] == "true";
        assert_eq!(report.is_linearizable(), Some(expected), "log {number}\n{report}");
        good += usize::from(expected);
    }
    assert!(good > 5, "{good}");
}

/// The keys of a store, to which clients append.
struct Appended;

enum Access {
    Get(Option<String>),
    Put(String),
    Append(String),
}

impl Model for Appended {
    type State = String;
    type Operation = Access;

    fn start(&self) -> String {
        String::new()
    }

    fn step(&self, state: &String, access: &Access, next: &mut Vec<String>) {
        match access {
            Access::Get(value) if value.as_ref().is_none_or(|value| value == state) => {
                next.push(state.clone())
            }
            Access::Get(_) => {}
            Access::Put(value) => next.push(value.clone()),
            Access::Append(value) => next.push(format!("{state}{value}")),
        }
    }
}

#[test]
fn logs_of_a_key_value_store_get_porcupines_verdict() {
    let Some(folder) = porcupine() else { return };
    let tests = calls(&folder, "checkKv");
    assert!(tests.len() >= 6, "{}", tests.len());
    for test in tests {
        let log = fs::read_to_string(folder.join(format!("test_data/kv/{}.txt", test[0]))).unwrap();
        let entries = read(&log).unwrap();
        let mut keys: Vec<&String> = entries.iter().map(|entry| &entry.key.2).collect();
        keys.sort();
        keys.dedup();
        // One bad key is enough, and costs less than others that are good.
        let verdicts = |configurations| -> Vec<Option<bool>> {
            let verdict = |key: &&String| {
                let of_key = entries.iter().filter(|entry| entry.key.2 == **key);
                let calls: Vec<Call<Access>> = of_key.map(call).collect();
                match limited(configurations, |limit| check(&Appended, &calls, limit)) {
                    Verdict::Linearizable(_) => Some(true),
                    Verdict::Not { .. } => Some(false),
                    Verdict::Unknown => None,
                }
            };
            keys.iter().map(verdict).collect()
        };
        let mut found = verdicts(10_000);
        if found.contains(&None) && !found.contains(&Some(false)) {
            found = verdicts(10_000_000);
        }
        let is_bad = found.contains(&Some(false));
        assert!(is_bad || !found.contains(&None), "{test:?}: the limit was reached");
        assert_eq!(!is_bad, test[1] == "true", "{test:?}");
    }
}

fn call(entry: &Entry) -> Call<Access> {
    let text = |datum: &Datum| datum.text().unwrap_or_default().to_owned();
    let operation = match &entry.function[..] {
        "get" => Access::Get((entry.outcome == Outcome::Ok).then(|| text(&entry.result))),
        "put" => Access::Put(text(&entry.argument)),
        "append" => Access::Append(text(&entry.argument)),
        other => panic!("{other}"),
    };
    Call { operation, from: entry.from, to: entry.to }
}
