//! Fuzz targets: functions that accept any bytes, and panic if one of their invariants does not hold.
//!
//! `fuzz/` runs them with libFuzzer. `tests/offline/byte_fuzz.rs` runs each on 2,000 inputs derived from `fuzz/corpus`.
//!
//! | file | targets |
//! |---|---|
//! | `parse` | `request`, `glob` |
//! | `libraries` | `struct`, `cmsgpack`, `cjson`, `lua`: the script engine alone |
//! | `timers` | `wheel` |
//! | `server` | `commands`, `schedule`: whole servers |

mod libraries;
mod parse;
mod server;
mod timers;

/// A target and its name.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "request", run: parse::request },
    Target { name: "glob", run: parse::glob },
    Target { name: "struct", run: libraries::struct_pack },
    Target { name: "cmsgpack", run: libraries::cmsgpack },
    Target { name: "cjson", run: libraries::cjson },
    Target { name: "lua", run: libraries::lua },
    Target { name: "wheel", run: timers::wheel },
    Target { name: "commands", run: server::commands },
    Target { name: "schedule", run: server::schedule },
];

/// Runs a target.
///
/// # Panics
/// If there is no target with this name, or an invariant does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(bytes);
}
