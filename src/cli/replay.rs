//! `redlatch replay`: replays a trace and compares the outputs, or travels through it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{CommandFactory, FromArgMatches, Parser};

use super::travel;
use redlatch_compare::against;
use redlatch_lab::trace::{Replay, ReplayError};

/// Replays a trace and reports where the outputs differ.
///
/// Replays in this process by default, compares every reply, message and state, and stops at the first difference.
/// With --against, sends the requests to a real server, one at a time, and compares its replies. With --to, --find or
/// --step, stops at a moment of the run and shows it.
#[derive(Parser, Debug)]
#[command(name = "redlatch replay", bin_name = "redlatch replay", max_term_width = 100)]
#[command(after_help = "\
PREDICATE is one of
  key NAME == VALUE    a string has this value, on some node
  absent NAME          a key that was there is gone, on some node
  two-owners           two clients were told that they hold the same lock
  queue NAME > N       a collection has more than N elements, or more than N clients wait for it
  invariant NAME       a lock's invariant is violated: M1, A1@read.unlock, rw, ALL
  script FILE          a Lua script answers 1; it runs on each node, ARGV[1] is the node's number

redlatch trace show FILE prints the numbers of events, redlatch fuzz --list the invariants; docs/time-travel.md explains \
more.

The exit code is 0 without a difference, 1 with a difference or if PREDICATE never holds, and 2 if the file is not a \
trace, has no such event, or the server cannot be reached.")]
pub(super) struct Cli {
    /// A trace, recorded with redlatch --trace or SIM.TRACE.
    #[arg(value_name = "FILE")]
    pub file: String,

    #[command(flatten)]
    pub travel: travel::Args,

    /// A real server. Its databases are flushed; a server that holds keys is refused.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["to", "find", "step"])]
    against: Option<String>,

    /// How long the real server may take for a reply. After three replies in a row that do not come, the replay ends.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = parse_seconds, requires = "against")]
    timeout: Duration,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or_else(|| "not a positive number of seconds".to_owned())
}

/// Returns what prints the progress of a replay of so many lines to standard error, once in a second.
fn progress_of(lines: usize) -> impl FnMut(usize, &against::Report) {
    const EVERY: Duration = Duration::from_secs(1);
    let mut shown = Instant::now();
    move |line, report| {
        if shown.elapsed() >= EVERY {
            shown = Instant::now();
            let (requests, differ) = (report.requests, report.differences.len());
            eprintln!("line {line} of {lines}: {requests} requests, {differ} replies differ");
        }
    }
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let parsed = Cli::command().try_get_matches_from(args).and_then(|found| {
        travel::check_usage(&found)?;
        Cli::from_arg_matches(&found)
    });
    let cli = match parsed {
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
        let mut progress = progress_of(text.lines().count());
        return match against::replay(&text, address, cli.timeout, &mut progress) {
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
    if cli.travel.is_asked_for() {
        return travel::run(&cli.file, &text, &cli.travel);
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

pub(super) fn refuse(why: &str) -> ExitCode {
    eprintln!("redlatch replay: {why}");
    ExitCode::from(2)
}
