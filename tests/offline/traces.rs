//! Traces recorded by earlier builds replay without a difference.

use std::fs;
use std::path::Path;

use redlatch_lab::trace::Replay;

#[test]
fn every_recorded_trace_replays_without_a_difference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut failures = Vec::new();
    let mut replayed = 0;
    for entry in fs::read_dir(folder).expect("tests/traces is there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        replayed += 1;
        let text = fs::read_to_string(&path).expect("a trace is text");
        match Replay::run(&text) {
            Ok(replay) if replay.complete && replay.outputs > 0 => {}
            Ok(replay) => failures.push(format!("{}: not a whole trace: {replay:?}", path.display())),
            Err(error) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(replayed >= 8, "only {replayed} traces");
}
