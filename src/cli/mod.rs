//! The command line.

// A driver: only drivers may use the real clock, files, sockets and processes.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

// First, so that its macros hide those of the standard library in the modules below.
#[macro_use]
mod output;

mod bench;
mod demo;
mod diff;
mod fuzz;
mod options;
mod replay;
mod run;
mod scripts;
mod serve;
mod trace;

use std::process::ExitCode;

pub use options::Options;

type Subcommand = fn(Vec<String>) -> ExitCode;

/// The subcommands: name and function, which takes the arguments with the name first.
const SUBCOMMANDS: &[(&str, Subcommand)] = &[
    ("bench", |args| bench::main(args)),
    ("demo", |args| demo::main(args)),
    ("diff", |args| diff::main(args)),
    ("fuzz", |args| fuzz::main(args)),
    ("replay", |args| replay::main(args)),
    ("run", |args| run::main(args)),
    ("scripts", |args| scripts::main(args)),
    ("trace", |args| trace::main(args)),
];

/// Runs the program with the arguments of the process, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let mut args: Vec<String> = args.into_iter().collect();
    let name = args.get(1).map(String::as_str).unwrap_or_default();
    if let Some((_, run)) = SUBCOMMANDS.iter().find(|(known, _)| *known == name) {
        return run(args.split_off(1));
    }
    if name == redlatch_compare::diff::SUBJECT {
        args.remove(1);
        diff::end_with_starter();
    }
    match Options::parse(args) {
        Ok(options) => serve::serve(options),
        Err(exit) => exit,
    }
}
