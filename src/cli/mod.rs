//! The command line.

// A driver: here, and nowhere below, is the real world.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod diff;
mod fuzz;
mod options;
mod scripts;
mod serve;

use std::process::ExitCode;

pub use options::Options;

/// Runs the program with the arguments of the process.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let mut args: Vec<String> = args.into_iter().collect();
    match args.get(1).map(String::as_str) {
        Some("diff") => {
            args.remove(0);
            return diff::main(args);
        }
        Some("fuzz") => {
            args.remove(0);
            return fuzz::main(args);
        }
        Some("scripts") => {
            args.remove(0);
            return scripts::main(args);
        }
        Some(crate::diff::SUBJECT) => {
            args.remove(1);
            diff::end_with_starter();
        }
        _ => {}
    }
    match Options::parse(args) {
        Ok(options) => serve::serve(options),
        Err(exit) => exit,
    }
}
