//! Targets that read files: jars, descriptions of locks, reports, and schedules.

use redlatch_lab::schedule::{NoFiles, Recorded, Schedule};
use redlatch_lab::trace::Tape;
use redlatch_locks::fuzz::schedule::{Step, decode};
use redlatch_locks::fuzz::{branches, merge, runner_for};
use redlatch_locks::invariant::Rules;
use redlatch_locks::jar::{self, JarScript};
use redlatch_locks::model::Wanted;
use redlatch_locks::own::description;
use redlatch_locks::script_set::ScriptSet;

/// The most steps of a schedule: enough for every model to come to rest.
const STEPS: usize = 64;

/// Reads the scripts of a jar.
pub fn jar(bytes: &[u8]) {
    if let Ok(scripts) = jar::scripts(bytes) {
        run_all(&scripts);
    }
}

/// Reads the scripts of a class file, without the jar around it, whose checksums keep most changes out.
pub fn class(bytes: &[u8]) {
    let mut scripts = Vec::new();
    let read = jar::class_scripts(bytes, &mut scripts);
    assert!(read.is_err() || scripts.iter().all(|script| script.text.contains("redis.")));
    run_all(&scripts);
}

/// Runs a schedule on every object that the scripts make up.
fn run_all(scripts: &[JarScript]) {
    let set = ScriptSet::new(scripts);
    let steps: Vec<Step> =
        (0..STEPS as u8).map(|n| Step { action: n % 13, owner: n % 3, choice: n % 8 }).collect();
    for (object, _) in set.models() {
        run_schedule(&set, object, &steps);
    }
}

fn run_schedule(scripts: &ScriptSet, object: &str, steps: &[Step]) {
    if let Some(mut runner) = runner_for(scripts, object) {
        runner.run(&steps[..steps.len().min(STEPS)], Rules::AsDocumented, &Wanted::default(), None);
    }
}

/// Every operation of a lock that a file describes, a request that is sent again, a lost key, and time.
const OWN: &str = "b00500510801700c00200c10c20600d00000100510520210910610a00500";

/// Reads the description of a lock, runs a schedule on the lock, and marks the branches of its scripts. Fails if a change
/// that is said to break the lock changes nothing.
pub fn own(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(changes) = description::broken(&text) {
        for change in changes {
            let is_changed = change.apply(&text) != text;
            assert!(is_changed || change.replace == change.with, "{change:?}");
        }
    }
    // A script may be in another file.
    let mut files = |_: &str| Ok(format!("return 1 -- {text}"));
    let Ok(scripts) = ScriptSet::of_own_with(&text, &mut files) else { return };
    let steps = decode(OWN).expect("a schedule token");
    run_schedule(&scripts, "own", &steps);
    for script in scripts.scripts() {
        branches::mark(&script.text);
    }
}

/// Runs a schedule, and makes another one of the recorded run. Fails if that has another outcome than it expects.
pub fn demo(bytes: &[u8]) {
    let Ok(schedule) = Schedule::parse("demo", bytes, &mut NoFiles) else { return };
    // Long loops and scripts without an end take their time until they reach their limits.
    if ["repeat", "while", "until"]
        .iter()
        .any(|word| bytes.windows(word.len()).any(|part| part == word.as_bytes()))
    {
        return;
    }
    let report = schedule.run_traced(&mut NoFiles, &mut |_| {});
    let trace = report.trace.unwrap_or_default();
    let Ok(recorded) = Recorded::of(&Tape::of(&trace)) else { return };
    let text = recorded.text();
    let again = Schedule::parse("recorded", text.as_bytes(), &mut NoFiles)
        .and_then(|schedule| schedule.run(&mut NoFiles, &mut |_| {}));
    if let Err(error) = again {
        panic!("{error} in\n{text}");
    }
}

/// Merges reports: each line of the input is one. Fails if merging the result again changes anything.
pub fn report(bytes: &[u8]) {
    let documents =
        bytes.split(|&byte| byte == b'\n').map(serde_json::from_slice).collect::<Result<Vec<_>, _>>();
    let Ok(documents) = documents else { return };
    let once = merge::merge(&documents);
    let twice = merge::merge(std::slice::from_ref(&once));
    assert_eq!(once, twice);
}
