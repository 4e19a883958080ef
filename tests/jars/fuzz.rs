//! The fuzzer finds each known bug of Redisson's scripts in the last release with the bug, and not in the first without it.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::jars;

use std::time::Duration;

use redlatch_core::rng::Rng;
use redlatch_core::version::Version;
use redlatch_locks::fuzz::runner::Runner;
use redlatch_locks::fuzz::{self, Finding, Options, Strategy, schedule};
use redlatch_locks::invariant::{Invariant, Rules};
use redlatch_locks::jar::JarScript;
use redlatch_locks::model::Wanted;
use redlatch_locks::multi::model::MultiLock;
use redlatch_locks::rlock;
use redlatch_locks::script_set::ScriptSet;

/// A known bug.
struct Bug {
    /// Redisson's issue or commit.
    name: &'static str,
    object: &'static str,
    /// The invariant, and the operation that violates it.
    invariant: &'static str,
    /// The last release with the bug, and the first without.
    broken: &'static str,
    fixed: Option<&'static str>,
    /// The number of steps of a schedule found by hand.
    steps: usize,
    rules: Rules,
}

const fn fixed(
    name: &'static str,
    object: &'static str,
    invariant: &'static str,
    releases: [&'static str; 2],
    steps: usize,
) -> Bug {
    let [broken, fixed] = releases;
    Bug { name, object, invariant, broken, fixed: Some(fixed), steps, rules: Rules::AsDocumented }
}

const fn open(
    name: &'static str,
    object: &'static str,
    invariant: &'static str,
    steps: usize,
    rules: Rules,
) -> Bug {
    Bug { name, object, invariant, broken: "4.7.0", fixed: None, steps, rules }
}

const BUGS: &[Bug] = &[
    fixed("#2018", "rlock", "U1@unlock", ["3.10.5", "3.10.6"], 1),
    fixed("#597", "rlock", "M4@renew", ["2.3.0", "2.4.0"], 4),
    fixed("#4871", "rlock", "G2@unlock", ["3.23.5", "3.24.1"], 4),
    fixed("#4871, spin", "spin", "G2@unlock", ["3.23.5", "3.24.1"], 4),
    fixed("#758", "rw", "A2@read.acquire", ["3.2.3", "3.2.4"], 2),
    fixed("#891", "rw", "A1@read.unlock", ["3.4.2", "3.4.3"], 4),
    fixed("#1110", "rw", "M2@write.acquire", ["3.5.4", "3.5.5"], 2),
    fixed("#1219", "rw", "A1@read.unlock", ["3.5.7", "3.6.0"], 4),
    fixed("#1542", "rw", "RW4@write.unlock", ["3.8.1", "3.8.2"], 4),
    fixed("#1604", "rw", "RW1@read.renew", ["3.8.0", "3.8.1"], 7),
    fixed("#2144", "rw", "M2@read.acquire", ["3.11.0", "3.11.1"], 4),
    fixed("1ce49b7a2, read", "rw", "U1@read.unlock", ["3.43.0", "3.44.0"], 1),
    fixed("1ce49b7a2, write", "rw", "U1@write.unlock", ["3.43.0", "3.44.0"], 1),
    fixed("#7098", "rw", "RW2@read.renew", ["4.3.1", "4.6.1"], 6),
    fixed("#757", "fair", "F6@give_up", ["3.2.3", "3.2.4"], 5),
    fixed("#1104", "fair", "F3@give_up", ["3.5.4", "3.5.5"], 5),
    fixed("#2099", "fair", "F3@acquire", ["3.11.0", "3.11.1"], 7),
    fixed("#4153", "fair", "G4@unlock", ["3.30.0", "3.31.0"], 4),
    fixed("#5989", "fair", "G4@acquire", ["3.44.0", "3.45.0"], 4),
    fixed("#4705", "fair", "F4@acquire", ["3.31.0", "3.32.0"], 4),
    fixed("#3225", "semaphore", "Q2@add", ["3.16.1", "3.16.2"], 2),
    fixed("#659", "permit", "P5@available", ["2.4.0", "2.5.0"], 4),
    fixed("#2444", "permit", "P2@acquire", ["3.11.6", "3.12.0"], 7),
    fixed("#4086", "permit", "P3@release", ["3.16.8", "3.17.0"], 4),
    fixed("#6343", "permit", "P4@release_all", ["3.40.2", "3.41.0"], 4),
    fixed("643d63b13", "permit", "P6@set", ["3.21.0", "3.23.5"], 2),
    fixed("#1098", "rw", "G6@read.acquire", ["3.5.4", "3.5.5"], 1),
    fixed("#4400", "rw", "V1@read.is_locked", ["3.23.5", "3.24.1"], 3),
    fixed("725d181c8", "rw", "G4@read.renew", ["3.45.0", "4.3.1"], 3),
    fixed("93d4c8ee2", "fair", "M3@force_unlock", ["2.5.1", "2.6.0"], 7),
    fixed("windows, not intervals", "rate", "L1@acquire", ["3.13.2", "3.13.3"], 6),
    fixed("two formats of a grant", "rate", "G4@available", ["3.13.3", "3.13.4"], 4),
    fixed("grants that look alike", "rate", "L2@acquire", ["3.16.2", "3.16.8"], 6),
    fixed("#5098", "rate", "L2@set", ["3.21.0", "3.23.5"], 3),
    open("read unlock forgets the write lease", "rw", "M2@read.unlock", 4, Rules::AsDocumented),
    open("write unlock forgets read leases", "rw", "M2@write.unlock", 4, Rules::AsDocumented),
    open("write unlock leaves readers asleep", "rw", "RW3@write.unlock", 4, Rules::AsDocumented),
    open("read unlock of a free lock, sent again", "rw", "G2@read.unlock", 2, Rules::AsDocumented),
    open("write unlock of a free lock, sent again", "rw", "G2@write.unlock", 2, Rules::AsDocumented),
    open("write leases add up", "rw", "G7@write.acquire", 2, Rules::Strict),
    open("a waiter without a deadline blocks", "fair", "F2@acquire", 5, Rules::AsDocumented),
    open("a waiter is told to try at once", "fair", "F7@acquire", 5, Rules::Strict),
    open("an acquire that is sent again takes two permits", "permit", "G3@acquire", 3, Rules::AsDocumented),
    open("a count down that is sent again counts twice", "latch", "G3@count_down", 3, Rules::AsDocumented),
    open("a release that is sent again counts twice", "semaphore", "G3@release", 2, Rules::AsDocumented),
    open("an acquire that is sent again leaves a permit lost", "rate", "G3@acquire", 3, Rules::AsDocumented),
    open("permits that are given back are counted twice", "rate", "L2@release", 3, Rules::AsDocumented),
    open("a limiter without grants fails", "rate", "G4@acquire", 4, Rules::AsDocumented),
    open("an old rate is kept", "rate", "L1@acquire", 5, Rules::AsDocumented),
    open("a permit that is named twice", "permit", "P7@release_all", 3, Rules::AsDocumented),
    open("a free member cannot be forced", "faster", "G4@force_unlock", 1, Rules::AsDocumented),
    open("the first member is not looked at", "faster", "V1@is_held", 2, Rules::AsDocumented),
    open("everybody is told nothing", "faster", "P6@unlock", 3, Rules::AsDocumented),
    open("an unlock that fails unlocks", "faster", "U1@unlock", 2, Rules::AsDocumented),
    open("holds outlive their lease", "faster", "A1@acquire", 3, Rules::AsDocumented),
    open("an acquire that is sent again counts twice", "rlock", "G3@acquire", 2, Rules::Strict),
    open("a token comes again", "fenced", "K1@acquire", 5, Rules::Strict),
    open("an owner gets two tokens", "fenced", "K2@acquire", 2, Rules::Strict),
    open("a reader's ended hold is unlocked", "rw", "U1@read.unlock", 4, Rules::Strict),
    open("an ended write lease refuses readers", "rw", "A2@read.acquire", 5, Rules::Strict),
    open("the first leases end before the last begins", "multi", "R1@extend", 8, Rules::Strict),
    open("two owners of all nodes", "multi", "M1@extend", 14, Rules::Strict),
    open("two owners of a majority", "redlock", "M1@extend", 12, Rules::Strict),
    open("waiters are told a negative number", "semaphore", "Q3@add", 1, Rules::AsDocumented),
];

fn script_set(release: &str) -> ScriptSet {
    ScriptSet::of_jar(&jars::jar(release))
}

fn options(object: &str, invariant: &str, rules: Rules) -> Options {
    Options {
        objects: vec![object.to_owned()],
        wanted: Wanted::these(vec![Wanted::parse(invariant).expect(invariant)]),
        rules,
        stop_at_first: true,
        ..Options::default()
    }
}

fn search(release: &str, options: &Options) -> (Option<Finding>, u64) {
    let mut reports = fuzz::run(&script_set(release), options).expect(release);
    let report = reports.remove(0);
    (report.findings.into_iter().next(), report.schedules)
}

#[test]
fn known_bugs_are_found_where_they_are() {
    if jars::are_missing() {
        return;
    }
    let mut failures = Vec::new();
    for bug in BUGS {
        let mut options = options(bug.object, bug.invariant, bug.rules);
        // At most a few seconds on an idle machine; a limit of time would fail on a busy one.
        options.runs = Some(40_000);
        match search(bug.broken, &options).0 {
            None => failures.push(format!("{}: not found in {}", bug.name, bug.broken)),
            Some(finding) => {
                println!(
                    "| {} | {} | {} | {} | {} | {} | {} | `{}` |",
                    bug.name,
                    bug.object,
                    bug.invariant,
                    bug.broken,
                    bug.fixed.unwrap_or("–"),
                    finding.schedules,
                    finding.steps.len(),
                    schedule::encode(&finding.steps)
                );
                if finding.steps.len() > bug.steps {
                    failures.push(format!("{}: {} steps, not {}", bug.name, finding.steps.len(), bug.steps));
                }
            }
        }
        let Some(fixed) = bug.fixed else { continue };
        options.runs = Some(5_000);
        if let (Some(finding), _) = search(fixed, &options) {
            failures.push(format!("{}: found in {fixed}: {}", bug.name, fuzz::report::text(&finding, fixed)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A long schedule: it needs the most steps to show two owners of a read/write lock.
#[test]
fn long_schedules_are_shrunk_quickly() {
    if jars::are_missing() {
        return;
    }
    let mut options = options("rw", "M1@write.acquire", Rules::AsDocumented);
    (options.runs, options.seed) = (Some(200_000), 1);
    let finding = search("4.7.0", &options).0.expect("two owners");
    let steps = finding.steps.len();
    println!("{} steps reduced to {steps} in {:?}", finding.first_steps, finding.reduction);
    assert!(finding.first_steps > steps && steps <= 6, "{} steps to {steps}", finding.first_steps);
    assert!(finding.reduction < Duration::from_secs(2), "{:?}", finding.reduction);
}

/// Scripts that only look wrong are not reported.
#[test]
fn correct_scripts_are_not_reported() {
    if jars::are_missing() {
        return;
    }
    let mut options = Options { runs: Some(5_000), ..Options::default() };
    options.objects =
        ["rlock", "spin", "fenced", "nonreentrant", "multi", "redlock"].map(str::to_owned).to_vec();
    for report in fuzz::run(&script_set("4.7.0"), &options).unwrap() {
        let found = report.findings.iter().map(|finding| fuzz::report::text(finding, "4.7.0"));
        assert!(report.findings.is_empty(), "{}", found.collect::<String>());
    }
    // "0" == 0 is false in Lua: the code that this release changed never had an effect.
    for release in ["3.18.0", "3.18.1"] {
        for object in ["semaphore", "permit"] {
            let mut options = self::options(object, "A2@try_set", Rules::Strict);
            options.runs = Some(5_000);
            assert!(search(release, &options).0.is_none(), "{release} {object}");
        }
    }
}

/// The model of several nodes can fail: one node of three is not a majority.
#[test]
fn too_few_nodes_are_no_lock() {
    if jars::are_missing() {
        return;
    }
    let mut runner = Runner::new(&script_set("4.7.0"), Box::new(MultiLock::of(1)), Version::V7_4);
    let wanted = Wanted::one(Invariant::M1, "extend");
    let mut steps = Vec::new();
    let found = (0..2_000).any(|seed| {
        schedule::random(&mut Rng::new(seed), runner.operations(), |_| true, (3, false), &mut steps);
        runner.run(&steps, Rules::AsDocumented, &wanted, None).is_some()
    });
    assert!(found);
}

/// An unlock that reports success and keeps the hold leaves nodes locked when an attempt fails.
#[test]
fn an_unlock_that_keeps_the_hold_leaves_nodes_held() {
    if jars::are_missing() {
        return;
    }
    let mut scripts = jars::scripts("4.7.0");
    let sound = ScriptSet::new(&scripts).script(rlock::roles::UNLOCK).unwrap().text.clone();
    let broken = sound.replace("redis.call('del', KEYS[1])", "redis.call('hincrby', KEYS[1], ARGV[3], 1)");
    assert_ne!(broken, sound);
    for script in scripts.iter_mut().filter(|script| script.text == sound) {
        script.text.clone_from(&broken);
    }
    for object in ["multi", "redlock"] {
        let mut options = options(object, "R2@unlock", Rules::AsDocumented);
        options.runs = Some(5_000);
        let finding = |scripts: &[JarScript]| {
            let report = fuzz::run(&ScriptSet::new(scripts), &options).unwrap().remove(0);
            report.findings.into_iter().next()
        };
        let found = finding(&scripts).unwrap_or_else(|| panic!("{object}"));
        assert_eq!(found.violation.invariant, Invariant::R2);
        assert!(finding(&jars::scripts("4.7.0")).is_none(), "{object}");
    }
}

#[test]
fn every_script_of_these_releases_is_run() {
    if jars::are_missing() {
        return;
    }
    for release in ["4.7.0", "3.11.6", "3.4.3", "2.3.0"] {
        let script_set = script_set(release);
        let problems = script_set.problems(&[]);
        assert!(problems.is_empty(), "{release}: {problems:?}");
    }
}

/// Releases that can set and reduce the permits of a semaphore do so correctly.
#[test]
fn permits_are_set_and_reduced() {
    if jars::are_missing() {
        return;
    }
    for (release, operation) in [("3.4.3", "set"), ("3.4.3", "reduce"), ("3.11.6", "reduce")] {
        let mut options = options("semaphore", &format!("Q1@{operation}"), Rules::AsDocumented);
        options.runs = Some(2_000);
        let report = fuzz::run(&script_set(release), &options).unwrap().remove(0);
        let at = report.operations.iter().position(|of| of.name == operation).unwrap();
        assert!(report.operations[at].is_present, "{release}");
        assert!(report.coverage.replies[at].iter().sum::<u64>() > 100, "{release}");
        assert!(report.findings.is_empty(), "{release}: {:?}", report.findings);
    }
}

/// The renewal of a group took its owner first until 3.43.
#[test]
fn the_arguments_of_old_renewals_are_understood() {
    if jars::are_missing() {
        return;
    }
    for release in ["3.40.2", "3.41.0", "3.43.0", "3.44.0"] {
        let mut options = options("faster", "G4@renew", Rules::AsDocumented);
        options.runs = Some(2_000);
        let report = fuzz::run(&script_set(release), &options).unwrap().remove(0);
        assert!(report.findings.is_empty(), "{release}: {:?}", report.findings);
        let at = report.operations.iter().position(|of| of.name == "renew").unwrap();
        assert!(report.coverage.replies[at].iter().sum::<u64>() > 100, "{release}");
    }
}

#[test]
fn the_same_seed_finds_the_same() {
    if jars::are_missing() {
        return;
    }
    let options = Options { runs: Some(300), objects: vec!["rw".to_owned()], seed: 7, ..Options::default() };
    let found = || {
        let report = fuzz::run(&script_set("3.4.2"), &options).unwrap().remove(0);
        let words = report.findings.iter().map(|finding| schedule::encode(&finding.steps));
        (words.collect::<Vec<_>>(), report.coverage)
    };
    let first = found();
    assert!(!first.0.is_empty());
    assert_eq!(first, found());
}

#[test]
fn small_schedules_are_tried_without_exception() {
    if jars::are_missing() {
        return;
    }
    let mut options = options("rlock", "U1@unlock", Rules::AsDocumented);
    (options.strategy, options.owners) = (Strategy::Exhaustive(1), 2);
    assert_eq!(search("3.10.5", &options).0.map(|finding| finding.steps.len()), Some(1));
    options.strategy = Strategy::Exhaustive(3);
    options.wanted = Wanted::default();
    let (found, schedules) = search("4.7.0", &options);
    assert!(found.is_none());
    assert!(schedules > 1_000, "{schedules} schedules");
}

#[test]
fn custom_locks_are_searched() {
    let search = |description: &str, runs: u64| {
        let script_set = ScriptSet::of_own(description).unwrap();
        let options = Options { runs: Some(runs), ..Options::default() };
        fuzz::run(&script_set, &options).unwrap().remove(0).findings
    };
    let sound = search(include_str!("../../docs/locks/set-nx.toml"), 5_000);
    assert!(sound.is_empty(), "{}", fuzz::report::text(&sound[0], ""));
    let broken = search(include_str!("../../docs/locks/broken.toml"), 5_000);
    let found: Vec<&str> = broken.iter().map(|finding| finding.violation.invariant.id()).collect();
    assert!(found.contains(&"U1") && found.contains(&"M1"), "{found:?}");
    assert!(broken.iter().all(|finding| finding.steps.len() <= 4));
    assert!(ScriptSet::of_own("[acquire]").is_err());
    let slow = include_str!("../../docs/locks/set-nx.toml")
        .replace("script = \"", "script = \"for i = 1, 200000 do end ");
    let found: Vec<&str> = search(&slow, 3).iter().map(|finding| finding.violation.invariant.id()).collect();
    assert_eq!(found, ["G1"]);
}

/// The test that --emit-test prints for a violation in a jar says what the schedule violates, besides the replies.
#[test]
fn an_emitted_test_of_a_jar_expects_the_violation() {
    if jars::are_missing() {
        return;
    }
    let mut options = options("rw", "A1@read.unlock", Rules::AsDocumented);
    options.runs = Some(1_000);
    let finding = search("3.4.2", &options).0.expect("#891");
    let broken = jars::path("3.4.2");
    let test = fuzz::report::test(&finding, fuzz::report::Origin::Jar(&broken));
    let token = schedule::encode(&finding.steps);
    let call = format!(
        "redlatch::replay_jar({:?}, \"rw\", {token:?}, redlatch::Rules::AsDocumented)",
        broken.display().to_string()
    );
    assert!(test.contains(&call), "{test}");
    assert!(test.contains("== (\"A1\", \"read.unlock\")") && test.contains("assert_eq!(sim.call("), "{test}");
    let names = |release: &str| -> Vec<(&str, &str)> {
        let found =
            redlatch::replay_jar(jars::path(release), "rw", &token, Rules::AsDocumented).expect("a jar");
        found.iter().map(|found| (found.invariant, found.operation)).collect()
    };
    assert!(names("3.4.2").contains(&("A1", "read.unlock")));
    assert!(!names("3.4.3").contains(&("A1", "read.unlock")));
    assert!(redlatch::replay_jar(&broken, "no-such-object", &token, Rules::AsDocumented).is_err());
    assert!(redlatch::replay_jar("Cargo.toml", "rw", &token, Rules::AsDocumented).is_err());
}

/// A reader with more holds than the model looks at is not judged by those that it sees.
#[test]
fn deeply_nested_readers_are_no_violation() {
    if jars::are_missing() {
        return;
    }
    for rules in [Rules::AsDocumented, Rules::Strict] {
        let found =
            redlatch::replay_jar(jars::path("4.7.0"), "rw", "500500500500510502710", rules).expect("a jar");
        assert!(
            found.iter().all(|found| (found.invariant, found.operation) != ("T1", "read.unlock")),
            "{found:?}"
        );
    }
}

/// A lock with a branch that no schedule reaches.
const WITH_A_DEAD_BRANCH: &str = r#"
[acquire]
script = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('exists', KEYS[1]) == 0 then
    for i = 1, 2 do redis.call('del', KEYS[1]) end
else
    return 0
end
return 0"""
keys = ["lock"]
args = ["owner", "lease_ms"]

[release]
script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
keys = ["lock"]
args = ["owner"]
"#;

#[test]
fn branches_that_nothing_reaches_are_named() {
    let script_set = ScriptSet::of_own(WITH_A_DEAD_BRANCH).unwrap();
    let options = Options { runs: Some(500), ..Options::default() };
    let reports = fuzz::run(&script_set, &options).unwrap();
    let never = [
        "branch never reached: acquire: if redis.call('exists', KEYS[1]) == 0 then",
        "branch never reached: acquire: for i = 1, 2 do",
    ];
    let text = fuzz::report::coverage(&reports[0]);
    let found: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("branch")).collect();
    assert_eq!(found, never);
    let junit = fuzz::report::junit(&reports, &[], "");
    assert!(junit.contains("branch never reached: acquire: for i = 1, 2 do"), "{junit}");

    let json = fuzz::report::json(&reports, &[], "");
    let merged = fuzz::merge::merge(&[json.clone(), json.clone()]);
    for report in [&json, &merged] {
        let never = report["objects"][0]["branches_never_reached"].as_array().unwrap();
        assert_eq!(never.len(), 2);
        assert!(never.iter().any(|branch| branch["branch"] == "for i = 1, 2 do"), "{never:?}");
    }
    let taken = |report: &serde_json::Value| {
        let branches = &report["objects"][0]["coverage"][1]["branches"];
        branches["if redis.call('get', KEYS[1]) == ARGV[1] then"].as_u64().unwrap()
    };
    assert!(taken(&json) > 0);
    assert_eq!(taken(&merged), 2 * taken(&json));
}

#[test]
fn branches_of_a_release_are_counted() {
    if jars::are_missing() {
        return;
    }
    let mut options = options("rlock", "M3@force_unlock", Rules::AsDocumented);
    options.runs = Some(2_000);
    let report = fuzz::run(&script_set("4.7.0"), &options).unwrap().remove(0);
    let acquire = &report.operations[0];
    assert_eq!(acquire.script, "RedissonLock.tryLockInnerAsync");
    assert_eq!(acquire.branches.len(), 2, "{:?}", acquire.branches);
    assert!(acquire.branches[0].starts_with("if ((redis.call('exists', KEYS[1]) == 0)"));
    assert!(acquire.branches[1].starts_with("past if"));
    let taken = &report.coverage.branches[0];
    assert!(taken.iter().all(|taken| *taken > 0), "{taken:?}");
    // Counts come only from the schedules whose branches are traced, not from all.
    let replies: u64 = report.coverage.replies[0].iter().sum();
    assert!(taken.iter().sum::<u64>() < replies / 4, "{taken:?} of {replies}");
}
