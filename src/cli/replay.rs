//! `redlatch replay`: replays a trace and compares the outputs.

use std::process::ExitCode;

use clap::Parser;

use redlatch_compare::against;
use redlatch_lab::trace::{Replay, ReplayError};

/// Replays a trace and reports where the outputs differ.
///
/// Replays in this process by default, compares every reply, message and state, and stops at the first difference.
/// With --against, sends the requests to a real server, one at a time, and compares its replies.
#[derive(Parser, Debug)]
#[command(name = "redlatch replay", bin_name = "redlatch replay", max_term_width = 100)]
#[command(after_help = "\
The exit code is 0 without a difference, 1 with a difference, and 2 if the file is not a trace or the server cannot be \
reached.")]
struct Cli {
    /// A trace, recorded with redlatch --trace or SIM.TRACE.
    #[arg(value_name = "FILE")]
    file: String,

    /// A real server. Its databases are flushed; a server that holds keys is refused.
    #[arg(long, value_name = "HOST:PORT")]
    against: Option<String>,
}

/// Runs the subcommand with its arguments, its name first.
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
                    "{} requests, {} replies differ, {} not comparable",
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
            let end = if report.complete { "" } else { "; the trace is incomplete" };
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
