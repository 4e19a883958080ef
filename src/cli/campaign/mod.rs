//! `redlatch campaign`: a fuzzing campaign as an array of independent shards, on the engines that people have.
//!
//! | file | concept |
//! |---|---|
//! | `shard` | the share of a process, and the report that it leaves in a directory |
//! | `merge` | makes one report of those of all shards |
//! | `plan` | prints the job for an engine |

mod merge;
mod plan;
pub mod shard;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plans a campaign of many shards, and merges what they have found.
///
/// A shard is a `redlatch fuzz` or `redlatch mutate` with `--shard I/N --output DIR`. Shards do not talk to each other. A lost shard
/// loses only what it would have found itself.
#[derive(Parser, Debug)]
#[command(name = "redlatch campaign", bin_name = "redlatch campaign", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch campaign plan --budget 10h --jobs 200 -- fuzz --jar redisson-4.7.0.jar
  redlatch campaign plan --budget 10h --jobs 200 --format kubernetes -- fuzz --jar /jars/redisson-4.7.0.jar
  redlatch campaign merge reports")]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Merge the reports of shards into one.
    ///
    /// The exit code is 1 if an invariant was violated or a score is too low, 2 if there is nothing to merge, and otherwise 3 if a
    /// shard is missing or a script was not run, else 0.
    Merge {
        /// The directory with the reports, or the reports.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,

        /// The format of the merged report.
        #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
        format: merge::Format,
    },
    /// Print the job that runs a campaign.
    Plan(plan::Plan),
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let result = match cli.action {
        Action::Merge { paths, format } => merge::run(&paths, format),
        Action::Plan(plan) => plan.run(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("redlatch campaign: {message}");
            ExitCode::from(2)
        }
    }
}
