//! Redisson's released jars, for the tests that read their scripts. `tests/jars/fetch` fetches missing ones.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use redlatch_locks::jar::{self, JarScript};

use crate::support::oracle;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the folder of the jars; `None` if one is missing and cannot be fetched.
fn fetched() -> Option<PathBuf> {
    static FETCHED: OnceLock<bool> = OnceLock::new();
    let fetched = *FETCHED.get_or_init(|| {
        Command::new(folder("tests/jars/fetch")).status().is_ok_and(|status| status.success())
    });
    fetched.then(|| folder("target/jars"))
}

/// Returns the scripts of a release.
///
/// Without the jars the whole binary is skipped: nearly every test in it reads them, in the middle of which the harness has no
/// way to skip.
pub fn scripts(release: &str) -> Vec<JarScript> {
    let Some(jars) = oracle::or_skip(fetched(), "target/jars (and with it the rest of tests/jars)") else {
        std::process::exit(0);
    };
    let bytes = std::fs::read(jars.join(format!("redisson-{release}.jar"))).expect("the jar was fetched");
    jar::scripts(&bytes).expect("the jar can be read")
}
