//! The locks of docs/locks: what is described as sound violates nothing, and every change that is said to break a lock is noticed.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;

use redlatch_core::script::Vm;
use redlatch_locks::fuzz::{self, Options, report};
use redlatch_locks::model::Wanted;
use redlatch_locks::mutate::operators::{self, Mutation};
use redlatch_locks::own::description;
use redlatch_locks::script_set::{LockScript, ScriptSet};

/// Schedules for a sound lock, and for one that a stated change breaks.
const SOUND: u64 = 3_000;
const BROKEN: u64 = 10_000;
/// Schedules for a lock with one changed token.
const MUTANT: u64 = 800;

/// The locks that the documentation names.
const NAMES: &[&str] = &[
    "clock-window",
    "conditions",
    "extend",
    "fencing",
    "fixed-window",
    "latch",
    "node-redlock",
    "permits",
    "python-redis-lock",
    "queue",
    "redis-py",
    "redislock",
    "redsync",
    "reentrant",
    "resend",
    "semaphore",
    "set-nx",
    "shedlock",
    "sliding-window",
    "spring-lock-registry",
    "token-bucket",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/locks")
}

fn locks() -> impl Iterator<Item = (&'static str, String)> {
    NAMES.iter().map(|name| {
        let text = std::fs::read_to_string(folder().join(format!("{name}.toml")));
        (*name, text.unwrap_or_else(|error| panic!("{name}: {error}")))
    })
}

#[test]
fn every_described_lock_is_tested() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "broken")
        .collect();
    found.sort();
    assert_eq!(found, NAMES);
}

#[test]
fn sound_locks_violate_nothing() {
    for (name, text) in locks() {
        let set = ScriptSet::of_own(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let options = Options { runs: Some(SOUND), ..Options::default() };
        let reports = fuzz::run(&set, &options).unwrap();
        let findings = reports.iter().flat_map(|report| &report.findings);
        let texts: Vec<String> = findings.map(|finding| report::text(finding, name)).collect();
        assert!(texts.is_empty(), "{name}: {}", texts.concat());
        let coverage = report::coverage(&reports[0]);
        let is_missed = |line: &str| line.ends_with(" never reached");
        assert!(!coverage.lines().any(is_missed), "{name}: {coverage}");
    }
}

#[test]
fn every_change_that_breaks_a_lock_is_noticed() {
    for (name, text) in locks() {
        let changes = description::broken(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!changes.is_empty(), "{name}: no [[broken]]");
        for change in changes {
            let set = ScriptSet::of_own(&change.apply(&text));
            let set = set.unwrap_or_else(|error| panic!("{name}: {}: {error}", change.why));
            let wanted = Wanted::these(vec![change.violates.clone()]);
            let options = Options { runs: Some(BROKEN), wanted, stop_at_first: true, ..Options::default() };
            let found = fuzz::run(&set, &options).unwrap().remove(0).findings;
            assert_eq!(found.len(), 1, "{name}: {} ({:?})", change.why, change.violates);
        }
    }
}

/// Runs the program. Returns what it prints, with its errors, and its exit code.
fn redlatch(args: &[&str]) -> (String, i32) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_redlatch")).current_dir(folder()).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (text.into_owned(), output.status.code().unwrap_or(-1))
}

#[test]
fn the_program_says_which_changes_it_notices() {
    let (report, code) = redlatch(&["fuzz", "--scripts", "set-nx.toml", "--broken", "--runs", "500"]);
    assert_eq!(code, 0, "{report}");
    assert!(
        report.contains("noticed: the release deletes the key of whoever has the lock: U1@release"),
        "{report}"
    );
    let (report, code) = redlatch(&["fuzz", "--scripts", "set-nx.toml", "--broken", "--runs", "0"]);
    assert_eq!((report.matches("NOT noticed").count(), code), (2, 1), "{report}");
    assert_eq!(redlatch(&["fuzz", "--scripts", "broken.toml", "--broken"]).1, 2);
}

#[test]
fn an_error_in_a_description_names_its_place_and_ends_with_2() {
    let path = std::env::temp_dir().join(format!("redlatch-own-{}.toml", std::process::id()));
    let run = |text: &str| {
        std::fs::write(&path, text).unwrap();
        redlatch(&["fuzz", "--scripts", &path.to_string_lossy(), "--runs", "10"])
    };
    let sound = std::fs::read_to_string(folder().join("extend.toml")).unwrap();
    for (text, expected) in [
        (String::new(), "[acquire]: is missing"),
        (
            sound.replace("then return redis.call('pexpire'", "thn return redis.call('pexpire'"),
            "[extend] script: line 1: ",
        ),
        (sound.replace("\"SET\"", "\"STE\""), "[acquire] command: Redis 7.4.1 has no command STE"),
        (sound.replace("granted = \"OK\"", "granted = \"ok\""), "[acquire] granted: \"ok\" is none of"),
    ] {
        let (report, code) = run(&text);
        assert!(report.contains(expected) && code == 2, "{report}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_violation_of_the_empty_schedule_can_be_repeated() {
    let lock = "kind = 'limiter'\nwindow = 'fixed'\nlimit = 1\nper_ms = 1000\nlease = 1\n";
    let path = std::env::temp_dir().join(format!("redlatch-empty-{}.toml", std::process::id()));
    std::fs::write(&path, lock).unwrap();
    let (report, code) = redlatch(&["fuzz", "--scripts", &path.to_string_lossy()]);
    assert!(report.contains("lease: unknown") && code == 2, "{report}");
    // The acquire that ends every schedule leaves a key that never ends.
    let lock = "stays = []\nlease = 'stored'\n[acquire]\nscript = \"redis.call('set', KEYS[1], ARGV[1]) return 0\"\n\
        keys = ['{lock}']\nargs = ['{lease_ms}']\n[release]\nscript = 'return 0'\nkeys = []\nargs = []\n";
    std::fs::write(&path, lock).unwrap();
    let (report, code) =
        redlatch(&["fuzz", "--scripts", &path.to_string_lossy(), "--invariant", "G5", "--runs", "5"]);
    assert!(report.contains("--invariant G5@rest --replay ''") && code == 1, "{report}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn an_emitted_test_repeats_the_schedule_on_the_file() {
    let args =
        ["fuzz", "--scripts", "broken.toml", "--invariant", "U1@release", "--runs", "100", "--emit-test"];
    let (report, _) = redlatch(&args);
    let (_, call) = report.split_once("redlatch::replay_lock_file(\"broken.toml\", \"").expect(&report);
    let token = &call[..call.find('"').unwrap()];
    let found = redlatch::replay_lock_file(folder().join("broken.toml"), token).unwrap().remove(0);
    assert_eq!((found.invariant, found.operation), ("U1", "release"));
    assert_eq!(redlatch::replay_lock_file(folder().join("set-nx.toml"), token).unwrap(), []);
    assert!(redlatch::replay_lock_file("nowhere.toml", token).is_err());
    assert!(redlatch::replay_lock_file(folder().join("set-nx.toml"), "50").is_err());
}

/// The share of changed scripts, in percent, in which the search has to find a violation. Of those in which it does not, most differ in nothing that
/// a client could see.
const SCORE: usize = 88;

#[test]
fn most_changes_of_a_token_are_noticed() {
    let (mut killed, mut all, mut survivors) = (0, 0, String::new());
    for (name, text) in locks() {
        let set = ScriptSet::of_own(&text).unwrap();
        let mut vm = Vm::new(set.version());
        for script in set.scripts().iter().filter(|script| !script.text.is_empty()) {
            for Mutation { operator, old, new, text, .. } in operators::mutations(&script.text) {
                if vm.load(text.as_bytes()).is_err() {
                    continue;
                }
                let mut mutant = set.clone();
                mutant.put(LockScript { text, ..script.clone() });
                let options = Options { runs: Some(MUTANT), stop_at_first: true, ..Options::default() };
                all += 1;
                match fuzz::run(&mutant, &options).unwrap()[0].findings.is_empty() {
                    true => {
                        survivors += &format!("{name}, {}: {operator}: {old} became {new}\n", script.name)
                    }
                    false => killed += 1,
                }
            }
        }
    }
    assert!(killed * 100 >= all * SCORE, "{killed} of {all}\n{survivors}");
}

/// The lock of set-nx.toml with both requests as scripts.
const SCRIPTS: [&str; 2] = [
    "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0",
    "return redis.call('del', KEYS[1])",
];

#[test]
fn the_scripts_of_a_described_lock_are_checked_on_a_server() {
    let [acquire, release] = SCRIPTS;
    let described = format!(
        "[acquire]\nscript = \"{acquire}\"\nkeys = ['lock']\nargs = ['owner', 'lease_ms']\n\
         [release]\nscript = \"{release}\"\nkeys = ['lock']\nargs = []\n"
    );
    let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    let (one, two) = (sim.connect(0), sim.connect(0));
    // A lock that is held when checks begin is nobody's that they know.
    assert_eq!(sim.call(one, &["EVAL", acquire, "1", "early", "me", "1000"]), b":1\r\n");
    assert_eq!(sim.call(one, &["SIM.CHECK", "ON", "OWN", &described]), b"+OK\r\n");
    assert_eq!(sim.call(two, &["EVAL", acquire, "1", "early", "you", "1000"]), b":0\r\n");
    assert_eq!(sim.call(one, &["EVAL", acquire, "1", "early", "me", "1000"]), b":0\r\n");
    assert_eq!(sim.call(one, &["EVAL", release, "1", "early"]), b":1\r\n");
    assert_eq!(sim.findings().len(), 0);
    assert_eq!(sim.call(one, &["EVAL", acquire, "1", "mine", "me", "1000"]), b":1\r\n");
    assert_eq!(sim.call(two, &["EVAL", acquire, "1", "mine", "you", "1000"]), b":0\r\n");
    assert_eq!(sim.call(two, &["EVAL", release, "1", "mine"]), b":1\r\n");
    let found: Vec<String> = sim.findings().iter().map(|finding| finding.promise()).collect();
    assert_eq!(found, ["U1@release"]);

    for (name, text) in locks().filter(|(name, _)| ["set-nx", "queue", "reentrant"].contains(name)) {
        let refused = sim.call(one, &["SIM.CHECK", "ON", "OWN", &text]);
        assert!(refused.starts_with(b"-SIMERR SYNTAX OWN: "), "{name}: {}", refused.escape_ascii());
    }
}

#[test]
fn an_extension_may_acquire_a_lock_again_if_the_file_says_so() {
    let redsync = std::fs::read_to_string(folder().join("redsync.toml")).unwrap();
    let extended = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end";
    let acquires = "if redis.call('get', KEYS[1]) ~= ARGV[1] and not redis.call('set', KEYS[1], ARGV[1], 'NX') then return 0 end";
    let takes = "redis.call('set', KEYS[1], ARGV[1])";
    let violated = |script: &str, flag: &str| {
        let text = redsync.replace(extended, script).replace("extended = 1", flag);
        let options = Options { runs: Some(2_000), ..Options::default() };
        let text = text.split("[[broken]]").next().unwrap().to_owned();
        let reports = fuzz::run(&ScriptSet::of_own(&text).unwrap(), &options).unwrap();
        reports[0].findings.iter().map(report::name).collect::<Vec<_>>()
    };
    assert_eq!(violated(acquires, "extended = 1\nacquires = true"), [""; 0]);
    assert!(violated(acquires, "extended = 1").contains(&"M5@extend".to_owned()));
    assert!(violated(takes, "extended = 1\nacquires = true").contains(&"M1@extend".to_owned()));
}
