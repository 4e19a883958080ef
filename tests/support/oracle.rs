//! External programs and files that tests need: reference servers, jars, faketime.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns whether a test fails, instead of being skipped, if something is missing. In CI no test is skipped.
fn is_required() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| value == "1" || value == "true");
    is_set("CI") || is_set("REDLATCH_REQUIRE_ORACLES")
}

/// Returns what a test needs. If it is missing, prints a line to standard error, and the test skips itself.
///
/// # Panics
///
/// Fails the test in CI and under `REDLATCH_REQUIRE_ORACLES=1`.
pub fn or_skip<T>(found: Option<T>, what: &str) -> Option<T> {
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        assert!(!is_required(), "{what} is missing: run tests/install");
        // Written directly, because the test harness captures output of the macros.
        let line = format!("SKIPPED {test}: {what} is missing; tests/install installs what it needs\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    found
}

/// Finds a reference server in `target/oracles`.
pub fn server(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/oracles").join(name);
    or_skip(program.exists().then_some(program), &format!("target/oracles/{name}"))
}

/// Checks that a program is on the search path.
pub fn program(name: &str) -> Option<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    or_skip(found.then_some(()), name)
}
