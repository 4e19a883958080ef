//! A schedule runs the scripts of a jar.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::jars;

const SCHEDULE: &str = "\
# Redisson's lock, whose acquire runs twice
script ACQUIRE = rlock.acquire of redisson-4.7.0.jar
check
control: SIM.FAULT ADD SCRIPT rlock.acquire NTH 1 DO DUP 2
a: EVAL $ACQUIRE 1 orders 30000 a:1
= nil
a: HGETALL orders
= [a:1, \"2\"]
";

#[test]
fn a_schedule_runs_the_scripts_of_a_jar() {
    if jars::are_missing() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/jars");
    let demo = |text: &str| {
        let file = folder.join(format!("schedule-{}.txt", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_redlatch"))
            .arg("demo")
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        std::fs::remove_file(file).unwrap();
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    assert_eq!(demo(SCHEDULE), (Some(0), String::new()));
    let (code, said) = demo(&SCHEDULE.replace("rlock.acquire of", "rlock.nosuch of"));
    assert_eq!(code, Some(2));
    assert!(said.contains(":2:34: redisson-4.7.0.jar has no script 'rlock.nosuch'"), "{said}");
}
