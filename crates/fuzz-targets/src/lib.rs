//! Fuzz targets: functions that accept any bytes, and panic if one of their invariants does not hold.
//!
//! `fuzz/` runs them with libFuzzer, `tests/fuzz-long` all of them for hours. `tests/offline/byte_fuzz.rs` runs each on a
//! number of inputs derived from `fuzz/corpus`.
//!
//! | file | targets |
//! |---|---|
//! | `parse` | `request`, `reply`, `glob`, `config` |
//! | `libraries` | `struct`, `cmsgpack`, `cjson`, `lua`: the script engine alone |
//! | `timers` | `wheel` |
//! | `server` | `commands`, `schedule`, `token`: whole servers |
//! | `session` | `session`, `trace`: several clients of a server, from the command table |
//! | `dump` | `dump`: serialized values |
//! | `files` | `jar`, `class`, `own`, `report`: what `redlatch fuzz` reads; `demo`: schedules |

mod dump;
mod files;
mod libraries;
mod parse;
mod server;
mod session;
mod timers;

/// A target and its name.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "request", run: parse::request },
    Target { name: "reply", run: parse::reply },
    Target { name: "glob", run: parse::glob },
    Target { name: "config", run: parse::config },
    Target { name: "struct", run: libraries::struct_pack },
    Target { name: "cmsgpack", run: libraries::cmsgpack },
    Target { name: "cjson", run: libraries::cjson },
    Target { name: "lua", run: libraries::lua },
    Target { name: "wheel", run: timers::wheel },
    Target { name: "commands", run: server::commands },
    Target { name: "schedule", run: server::schedule },
    Target { name: "session", run: session::session },
    Target { name: "trace", run: session::trace },
    Target { name: "dump", run: dump::dump },
    Target { name: "jar", run: files::jar },
    Target { name: "class", run: files::class },
    Target { name: "own", run: files::own },
    Target { name: "demo", run: files::demo },
    Target { name: "token", run: server::token },
    Target { name: "report", run: files::report },
];

/// Runs a target.
///
/// # Panics
/// If there is no target with this name, or an invariant does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(bytes);
}
