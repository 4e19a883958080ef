//! A fuzzed script of one's own: random schedules find that a release without a check frees somebody else's lock, and nothing in the
//! release that checks its owner.
//!
//! Run it with `cargo run --example fuzz_own_script`.

use redlatch::{FuzzOptions, fuzz_lock};

const ACQUIRE: &str = r#"
[acquire]
command = ["SET", "{lock}", "{owner}", "NX", "PX", "{lease_ms}"]
granted = "OK"
refused = "nil"
"#;

const CARELESS_RELEASE: &str = r#"
[release]
command = ["DEL", "{lock}"]
released = 1
not_held = 0
"#;

const RELEASE: &str = r#"
[release]
script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
keys = ["{lock}"]
args = ["{owner}"]
released = 1
not_held = 0
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = FuzzOptions::default().schedules(2_000);

    let found = fuzz_lock(&format!("{ACQUIRE}{CARELESS_RELEASE}"), &options)?;
    for counterexample in &found {
        println!("{} ({}) is broken:", counterexample.invariant, counterexample.text);
        println!("{}: {}", counterexample.operation, counterexample.found);
        println!("{}", counterexample.schedule);
    }
    assert!(found.iter().any(|counterexample| counterexample.operation == "release"));
    assert!(found.iter().all(|counterexample| counterexample.steps <= 4), "schedules are shrunk");

    let found = fuzz_lock(&format!("{ACQUIRE}{RELEASE}"), &options)?;
    assert_eq!(found, []);
    println!(
        "{} schedules later: nothing is wrong with the release that checks its owner",
        options.schedules
    );
    Ok(())
}

#[test]
fn every_assertion_holds() {
    main().unwrap();
}
