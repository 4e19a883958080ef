//! `redlatch mutate`: changes lock scripts, and counts the changes that the fuzzer notices.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use super::campaign::shard::{self, Shard};
use redlatch_locks::jar;
use redlatch_locks::mutate::{self, Options, report};

/// Measures what the fuzzer's models notice: changes the lock scripts of a Redisson release, one token or statement at a
/// time, and runs the fuzzer on each changed script.
///
/// A mutant is killed if a schedule violates an invariant at a step at which the original does not. Mutants that no
/// client can distinguish from the original are listed with their reasons in the source,
/// crates/locks/src/mutate/equivalents.toml. The exit code is 1 if a score is below its threshold, 0 if none is, and 2
/// if nothing could be run.
#[derive(Parser, Debug)]
#[command(name = "redlatch mutate", bin_name = "redlatch mutate", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch mutate --jar redisson-4.7.0.jar
  redlatch mutate --jar redisson-4.7.0.jar --object rw --runs 20000 --format json")]
struct Cli {
    /// The jar of the Redisson release.
    #[arg(long, value_name = "JAR")]
    jar: PathBuf,

    /// An object whose scripts to change. Can be repeated [default: all].
    #[arg(long, value_name = "NAME")]
    object: Vec<String>,

    /// How many schedules each mutant has to survive.
    #[arg(long, value_name = "N", default_value_t = Options::default().runs)]
    runs: usize,

    /// The seed of the random schedules.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    seed: u64,

    /// The lowest share of killed mutants that passes, in percent of those that are not equivalent.
    #[arg(long, value_name = "PERCENT", default_value = "95")]
    threshold: f64,

    /// The lowest share of killed mutants that passes for each object, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "90")]
    object_threshold: f64,

    /// Which share of the mutants to try: 2/4 is the second of four; auto/4 takes the number from JOB_COMPLETION_INDEX or
    /// SLURM_ARRAY_TASK_ID.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = shard::parse)]
    shard: Shard,

    /// Write the report of this shard into a directory, for redlatch campaign merge. The exit code is then 0.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The number of threads.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: usize,

    /// The format of the report.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match run(&cli) {
        Ok(is_enough) => ExitCode::from(u8::from(!is_enough)),
        Err(message) => {
            eprintln!("redlatch mutate: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<bool, String> {
    let path = cli.jar.display();
    let bytes = std::fs::read(&cli.jar).map_err(|error| format!("cannot read {path}: {error}"))?;
    let jar = jar::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    let options = Options {
        objects: cli.object.clone(),
        runs: cli.runs,
        seed: cli.seed,
        shard: (cli.shard.0 as usize, cli.shard.1 as usize),
        jobs: cli.jobs,
    };
    let outcomes = mutate::run(&jar, &options).map_err(|error| error.to_string())?;
    if outcomes.is_empty() {
        return Err(format!("{path} has no lock scripts to change"));
    }
    let mut document = report::json(&outcomes);
    let campaign = serde_json::json!({
        "kind": "mutate", "source": path.to_string(), "objects": cli.object, "runs": cli.runs, "seed": cli.seed,
        "threshold": cli.threshold, "object_threshold": cli.object_threshold,
    });
    shard::label(&mut document, cli.shard, campaign);
    match cli.format {
        Format::Text => print!("{}", report::text(&outcomes)),
        Format::Json => print!("{document:#}\n"),
    }
    if let Some(directory) = &cli.output {
        shard::write(directory, &document)?;
        return Ok(true);
    }
    let (objects, all) = report::scores(&outcomes);
    let enough = objects.iter().all(|(_, score)| score.percent() >= cli.object_threshold);
    Ok(enough && all.percent() >= cli.threshold)
}
