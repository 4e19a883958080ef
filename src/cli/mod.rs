//! The command line.

// A driver: only drivers may use the real clock, files, sockets and processes.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

// First, so that its macros hide those of the standard library in the modules below.
#[macro_use]
mod output;

mod bench;
mod campaign;
mod demo;
mod diff;
mod directives;
mod drop_in;
mod fuzz;
mod history;
mod mutate;
mod options;
mod replay;
mod run;
mod scripts;
mod serve;
mod tls_files;
mod trace;
mod travel;

use std::process::ExitCode;

use drop_in::Identity;
pub use options::Options;

type Subcommand = fn(Vec<String>) -> ExitCode;

/// A subcommand.
struct Row {
    name: &'static str,
    /// What it does, for the help of the program.
    summary: &'static str,
    /// Runs it with its arguments, the name first.
    run: Subcommand,
}

const SUBCOMMANDS: &[Row] = &[
    Row {
        name: "bench",
        summary: "measure speed and memory, side by side with a real server",
        run: |args| bench::main(args),
    },
    Row {
        name: "campaign",
        summary: "share fuzzing out to many machines, and merge what they find",
        run: |args| campaign::main(args),
    },
    Row {
        name: "demo",
        summary: "run schedules, your own or those that show how locks fail",
        run: |args| demo::main(args),
    },
    Row {
        name: "diff",
        summary: "send random commands to Redlatch and to a real server, and compare",
        run: |args| diff::main(args),
    },
    Row {
        name: "fuzz",
        summary: "run lock scripts in random schedules, and check what they guarantee",
        run: |args| fuzz::main(args),
    },
    Row {
        name: "mutate",
        summary: "change lock scripts, and count the changes that fuzzing notices",
        run: |args| mutate::main(args),
    },
    Row {
        name: "replay",
        summary: "replay a recorded run, stop at any event, find the first bad one",
        run: |args| replay::main(args),
    },
    Row {
        name: "run",
        summary: "run a command and a server that share one clock",
        run: |args| run::main(args),
    },
    Row {
        name: "scripts",
        summary: "list and compare the lock scripts of Redisson's jars",
        run: |args| scripts::main(args),
    },
    Row {
        name: "tls-files",
        summary: "make an authority and certificates for tests with TLS",
        run: |args| tls_files::main(args),
    },
    Row {
        name: "trace",
        summary: "show recorded runs, compare two, find causes, make schedules of them",
        run: |args| trace::main(args),
    },
];

/// Parses the arguments of a subcommand, its name first.
///
/// # Errors
/// The exit code, after the help or an error message has been printed.
fn parse<C: clap::Parser>(args: impl IntoIterator<Item = String>) -> Result<C, ExitCode> {
    C::try_parse_from(args).map_err(|error| {
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    })
}

/// Returns the list of subcommands as the help of the program shows it.
fn list_subcommands() -> String {
    let rows = SUBCOMMANDS.iter().map(|row| format!("  {:<9} {}\n", row.name, row.summary));
    format!("Subcommands (redlatch NAME --help explains each):\n{}", rows.collect::<String>())
}

/// Returns the subcommand that a mistyped word probably means.
fn nearest_subcommand(word: &str) -> Option<&'static str> {
    const CLOSE: usize = 2;
    let near = SUBCOMMANDS.iter().map(|row| (distance(word, row.name), row.name)).min()?;
    (near.0 <= CLOSE).then_some(near.1)
}

/// Returns the Levenshtein distance: how many characters to insert, delete or replace.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// Runs the program with the arguments of the process, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let mut args: Vec<String> = args.into_iter().collect();
    let identity = Identity::of(args.first().map_or("", String::as_str));
    if identity.is_drop_in() {
        return drop_in::main(identity, args);
    }
    let name = args.get(1).map(String::as_str).unwrap_or_default();
    if let Some(row) = SUBCOMMANDS.iter().find(|row| row.name == name) {
        return (row.run)(args.split_off(1));
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
