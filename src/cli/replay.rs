//! `redlatch replay`: a trace once more.

use std::process::ExitCode;

use clap::Parser;

use redlatch_compare::against;
use redlatch_lab::trace::{Replay, ReplayError};

/// Runs a trace again and stops at the first difference.
///
/// In this process by default: every reply, message and state has to be the same. With --against the same requests go to a
/// real server, one at a time, and its replies are compared.
#[derive(Parser, Debug)]
#[command(name = "redlatch replay", bin_name = "redlatch replay", max_term_width = 100)]
#[command(after_help = "\
The exit code is 0 without a difference, 1 with one, and 2 if the file is no trace or the server cannot be reached.")]
struct Cli {
    /// A file that `redlatch --trace` or SIM.TRACE wrote.
    #[arg(value_name = "FILE")]
    file: String,

    /// A real server, which is flushed first; one that holds keys is refused.
    #[arg(long, value_name = "HOST:PORT")]
    against: Option<String>,
}

pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let text = match std::fs::read_to_string(&cli.file) {
        Ok(text) => text,
        Err(error) => return refuse(&format!("cannot read {}: {error}", cli.file)),
    };
    if let Some(address) = &cli.against {
        return match against::replay(&text, address) {
            Ok(report) => {
                report.differences.iter().for_each(|difference| println!("{difference}\n"));
                println!(
                    "{} requests, {} replies that differ, {} not comparable",
                    report.requests,
                    report.differences.len(),
                    report.not_comparable
                );
                ExitCode::from(!report.differences.is_empty() as u8)
            }
            Err(why) => refuse(&why),
        };
    }
    match Replay::run(&text) {
        Ok(report) => {
            let end = if report.complete { "" } else { "; the trace was cut off before its end" };
            println!(
                "{} events, {} inputs, {} outputs, {} digests: no difference{end}",
                report.events, report.inputs, report.outputs, report.digests
            );
            ExitCode::SUCCESS
        }
        Err(error @ ReplayError::Differs { .. }) => {
            println!("{}: {error}", cli.file);
            ExitCode::from(1)
        }
        Err(error @ ReplayError::Malformed { .. }) => refuse(&format!("{}: {error}", cli.file)),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("redlatch replay: {why}");
    ExitCode::from(2)
}
