//! Released jars of Redisson, for the tests that read their scripts. `tests/jars/fetch` gets what is missing.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

use redlatch_locks::jar::{self, JarScript};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Where the jar of a release is.
fn path(release: &str) -> PathBuf {
    static FETCHED: Once = Once::new();
    FETCHED.call_once(|| {
        let status = Command::new(folder("tests/jars/fetch")).status().expect("tests/jars/fetch runs");
        assert!(status.success(), "tests/jars/fetch: {status}");
    });
    folder("target/jars").join(format!("redisson-{release}.jar"))
}

pub fn scripts(release: &str) -> Vec<JarScript> {
    let bytes = std::fs::read(path(release)).expect("the jar was fetched");
    jar::scripts(&bytes).expect("the jar can be read")
}
