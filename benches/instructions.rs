//! Counts the instructions that parts of the server execute. The count is the same in every run, whatever else the
//! machine does. Needs valgrind. Run with `cargo bench --bench instructions`; arguments select the parts whose names
//! contain one of them.
//!
//! Each part runs N times in one process and 2 N times in another. The difference between the two counts belongs to N
//! runs.
//!
//! `cargo bench --bench instructions -- --check` compares the counts with `benches/instructions.txt`, and fails if a
//! part takes 5 % more than recorded. To record new counts, run `cargo bench --bench instructions >
//! benches/instructions.txt`. Another compiler or C library gives other counts.

#![allow(clippy::disallowed_methods)]

#[path = "support/in_process.rs"]
mod in_process;
#[path = "support/parts.rs"]
mod parts;

use std::env;
use std::process::{Command, ExitCode};

const TIMES: usize = 2000;

const RECORDED: &str = include_str!("instructions.txt");
/// The largest accepted ratio to the recorded count.
const TOLERANCE: f64 = 1.05;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [word, times, name] = &args[..]
        && word == "run"
    {
        repeat(name, times.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let checks = env::args().any(|word| word == "--check");
    let mut is_worse = false;
    for (name, _) in parts::PARTS {
        if !args.is_empty() && !args.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let (Some(once), Some(twice)) = (count(name, TIMES), count(name, 2 * TIMES)) else {
            eprintln!("cannot count: is valgrind installed?");
            return ExitCode::FAILURE;
        };
        let now = (twice - once) / TIMES as u64;
        match recorded(name).filter(|_| checks) {
            Some(before) => {
                let times = now as f64 / before as f64;
                is_worse |= times > TOLERANCE;
                println!("{now:>8}  {name} ({:+.1} %)", (times - 1.0) * 100.0);
            }
            None => println!("{now:>8}  {name}"),
        }
    }
    if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the recorded count of a part.
fn recorded(name: &str) -> Option<u64> {
    let mut lines = RECORDED.lines().filter_map(|line| line.trim().split_once("  "));
    lines.find(|(_, known)| *known == name)?.0.parse().ok()
}

fn repeat(name: &str, times: usize) {
    let (_, prepare) = parts::PARTS.iter().find(|(known, _)| *known == name).expect("a part of this name");
    let mut run = prepare();
    (0..times).for_each(|_| run());
}

/// Returns the instructions of a process that runs a part `times` times.
fn count(name: &str, times: usize) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .args(["run", &times.to_string(), name])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}
