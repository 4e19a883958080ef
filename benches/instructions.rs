//! What the parts of the server take, in instructions: the same number at each run, whatever else the machine does.
//! Needs valgrind. `cargo bench --bench instructions`; words pick the parts whose name contains one of them.
//!
//! Each part runs N and 2 N times in processes of their own; half the difference of their counts is what N runs take.

#![allow(clippy::disallowed_methods)]

#[path = "support/in_process.rs"]
mod in_process;
#[path = "support/parts.rs"]
mod parts;

use std::env;
use std::process::{Command, ExitCode};

const TIMES: usize = 2000;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [word, times, name] = &args[..]
        && word == "run"
    {
        repeat(name, times.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    for (name, _) in parts::PARTS {
        if !args.is_empty() && !args.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match (count(name, TIMES), count(name, 2 * TIMES)) {
            (Some(once), Some(twice)) => println!("{:>8}  {name}", (twice - once) / TIMES as u64),
            _ => {
                eprintln!("cannot count: is valgrind installed?");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn repeat(name: &str, times: usize) {
    let (_, prepare) = parts::PARTS.iter().find(|(known, _)| *known == name).expect("a part of this name");
    let mut run = prepare();
    (0..times).for_each(|_| run());
}

/// Instructions of a whole process that runs a part so many times.
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
