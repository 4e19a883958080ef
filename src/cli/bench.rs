//! `redlatch bench`: how fast servers are, side by side.

use std::process::ExitCode;

use clap::Parser;

use super::output;
use redlatch_compare::bench::{self, Measure, Options, Speed, workload};

/// Measures servers side by side: the work of locks, and the simplest commands.
///
/// Every server gets the same load, in rounds that go from server to server. Prints requests in a second, latencies,
/// the processor time of the server for each request (if it runs on this machine), how busy the load itself was, and
/// how many times as fast as the others the subject is: by rate (the median of the rounds, and the range), and by
/// processor time, which says the same on a machine that does other things too.
///
/// Only keys that begin with redlatch-bench are written, and they are removed again.
#[derive(Parser, Debug)]
#[command(name = "redlatch bench", bin_name = "redlatch bench", max_term_width = 100)]
#[command(after_help = "\
The exit code is 2 if a server cannot be measured.

Examples:
  redlatch bench                                        everything, of a redlatch started for it
  redlatch bench --against 127.0.0.1:6379               next to a redis-server
  redlatch bench --against 127.0.0.1:6379 --workload acquire --connections 50 --pipeline 1 --pipeline 16
  redlatch bench --against 127.0.0.1:6379 --footprint   memory for each lock, key and client")]
struct Cli {
    /// A server to compare with; may be given several times.
    #[arg(long, value_name = "HOST:PORT")]
    against: Vec<String>,

    /// The server that the others are compared with; by default a redlatch is started.
    #[arg(long, value_name = "HOST:PORT")]
    subject: Option<String>,

    /// What to send; may be given several times. By default everything.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(workload::names()))]
    workload: Vec<String>,

    /// How many clients there are at once; may be given several times.
    #[arg(long, value_name = "NUMBER", default_values_t = [1, 50, 1000], value_parser = positive)]
    connections: Vec<usize>,

    /// How many requests a client sends before it waits for the replies; may be given several times.
    #[arg(long, value_name = "NUMBER", default_values_t = [1, 16], value_parser = positive)]
    pipeline: Vec<usize>,

    /// How long each row takes for each server.
    #[arg(long, value_name = "NUMBER", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// How many requests each row takes for each server, whatever time they need.
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Into how many turns of the servers a row is split.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Measure memory instead: give fresh servers, which keep what they have once occupied.
    #[arg(long, conflicts_with_all = ["workload", "connections", "pipeline", "seconds", "requests", "rounds"])]
    footprint: bool,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("not a number from 1 to 1000000".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("not a number of seconds up to 86400".to_owned()),
    }
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
    let measure = if cli.footprint {
        Measure::Footprint
    } else {
        Measure::Speed(Speed {
            workloads: cli.workload,
            connections: cli.connections,
            pipelines: cli.pipeline,
            seconds: cli.seconds,
            requests: cli.requests,
            rounds: cli.rounds,
        })
    };
    let options = Options { subject: cli.subject, against: cli.against, measure };
    super::serve::raise_file_limit(options.connections());
    match bench::run(&options, &mut output::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("redlatch bench: {why}");
            ExitCode::from(2)
        }
    }
}
