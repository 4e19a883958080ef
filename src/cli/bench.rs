//! `redlatch bench`: measures servers side by side.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use super::output;
use redlatch_compare::bench::{self, Measure, Options, Soak, Speed, workload};

/// Measures servers side by side: operations of locks, and simple commands.
///
/// Every server gets the same load, in rounds that alternate between the servers. Prints for each server the
/// requests per second, the latencies, the CPU time per request (if the server runs on this machine) and the
/// CPU load of the benchmark itself. Compares the subject with each other server by rate (median and range over
/// the rounds) and by CPU time, which is less affected by other load on the machine.
///
/// Writes only keys that begin with redlatch-bench, and removes them afterwards.
#[derive(Parser, Debug)]
#[command(name = "redlatch bench", bin_name = "redlatch bench", max_term_width = 100)]
#[command(after_help = "\
The exit code is 2 if a server cannot be measured, and 1 if a soak has left something behind.

Examples:
  redlatch bench                                        all workloads, on a redlatch started for it
  redlatch bench --against 127.0.0.1:6379               side by side with a redis-server
  redlatch bench --against 127.0.0.1:6379 --workload acquire --connections 50 --pipeline 1 --pipeline 16
  redlatch bench --against 127.0.0.1:6379 --footprint   memory per lock, key and client
  redlatch bench --soak 10                              ten minutes of clients that come, go and are killed")]
struct Cli {
    /// A server to compare with. Can be repeated.
    #[arg(long, value_name = "HOST:PORT")]
    against: Vec<String>,

    /// The server that is compared with the others [default: a redlatch started for it].
    #[arg(long, value_name = "HOST:PORT")]
    subject: Option<String>,

    /// A workload to measure. Can be repeated [default: all].
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(workload::names()))]
    workload: Vec<String>,

    /// The number of concurrent clients. Can be repeated.
    #[arg(long, value_name = "NUMBER", default_values_t = [1, 50, 1000], value_parser = positive)]
    connections: Vec<usize>,

    /// The number of requests that a client sends before it waits for the replies. Can be repeated.
    #[arg(long, value_name = "NUMBER", default_values_t = [1, 16], value_parser = positive)]
    pipeline: Vec<usize>,

    /// How long to measure each row on each server, in seconds.
    #[arg(long, value_name = "NUMBER", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// How many requests to send for each row to each server, instead of --seconds.
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// The number of rounds that a row is split into.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Measure memory instead of speed. Needs freshly started servers, because a server keeps memory that it has freed.
    #[arg(long, conflicts_with_all = ["workload", "connections", "pipeline", "seconds", "requests", "rounds"])]
    footprint: bool,

    /// Let clients of every kind come, go and be killed for this many minutes, then compare what the server holds with what it held
    /// before: memory, file descriptors, sessions, timers.
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with_all = ["against", "subject", "footprint", "workload", "connections", "pipeline", "seconds", "requests", "rounds"])]
    soak: Option<f64>,
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

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if minutes > 0.0 && minutes <= 100_000.0 => Ok(minutes),
        _ => Err("not a number of minutes up to 100000".to_owned()),
    }
}

/// The files that the process opens besides its connections, at most.
const OTHER_FILES: u64 = 64;

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let measure = if let Some(minutes) = cli.soak {
        Measure::Soak(Soak { length: Duration::from_secs_f64(minutes * 60.0) })
    } else if cli.footprint {
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
    // The system tells when connections cannot be opened.
    let _ = rlimit::increase_nofile_limit(options.connections() as u64 + OTHER_FILES);
    match bench::run(&options, &mut output::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("redlatch bench: {why}");
            ExitCode::from(2)
        }
    }
}
