//! Redisson's released jars, for the tests that read their scripts. `tests/jars/fetch` fetches missing ones.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use redlatch_locks::jar::{self, Jar, JarScript};

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

/// Returns whether a test that reads jars has to skip itself; it says so then.
pub fn are_missing() -> bool {
    oracle::or_skip(fetched(), "target/jars").is_none()
}

/// Returns the scripts of a release.
pub fn scripts(release: &str) -> Vec<JarScript> {
    jar(release).scripts
}

/// Returns what a release's jar shows.
pub fn jar(release: &str) -> Jar {
    jar::read(&bytes(release)).expect("the jar can be read")
}

/// Returns the path of a release's jar.
pub fn path(release: &str) -> PathBuf {
    let jars = fetched().expect("a test that reads jars has asked whether they are there");
    jars.join(format!("redisson-{release}.jar"))
}

/// Returns the bytes of a release's jar.
pub fn bytes(release: &str) -> Vec<u8> {
    std::fs::read(path(release)).expect("the jar was fetched")
}
