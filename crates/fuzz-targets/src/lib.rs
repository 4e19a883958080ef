//! Fuzz targets: functions that take any bytes and hold whatever the bytes are.
//!
//! `fuzz/` gives them to libFuzzer, `tests/byte_fuzz.rs` runs each on some thousand inputs that grow out of `fuzz/corpus`. A target
//! panics if something does not hold that has to.
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

/// A target by its name.
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
/// If there is none of that name, or something does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(bytes);
}
