//! `redlatch trace`: shows a trace in readable form.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use redlatch_lab::trace::show::Timeline;
use redlatch_lab::trace::{cost, svg};

/// Shows a trace as a timeline, or the cost of its scripts.
#[derive(Parser, Debug)]
#[command(name = "redlatch trace", bin_name = "redlatch trace", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Prints a timeline of locks, owners, waiters and messages.
    Show {
        file: String,
        /// Write the timeline to this file as an SVG picture, with a lane for each client and node.
        #[arg(long, value_name = "FILE")]
        svg: Option<String>,
    },
    /// Replays the trace and prints what each script costs: Lua instructions, calls, keys and bytes. The counts are
    /// the same on every machine.
    Cost { file: String },
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
    match run(cli.action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("redlatch trace: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(action: Action) -> Result<(), String> {
    let read =
        |file: &str| std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"));
    match action {
        Action::Show { file, svg: None } => {
            print!("{}", Timeline::of(&read(&file)?).map_err(|error| error.to_string())?)
        }
        Action::Show { file, svg: Some(picture) } => {
            let drawn = svg::draw(&Timeline::of(&read(&file)?).map_err(|error| error.to_string())?);
            std::fs::write(&picture, drawn).map_err(|error| format!("cannot write {picture}: {error}"))?;
        }
        Action::Cost { file } => print!("{}", cost::table(&read(&file)?).map_err(|error| error.to_string())?),
    }
    Ok(())
}
