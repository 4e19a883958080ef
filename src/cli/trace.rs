//! `redlatch trace`: traces for people.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use redlatch_lab::trace::show::Story;
use redlatch_lab::trace::{cost, svg};

/// Shows what a trace tells.
#[derive(Parser, Debug)]
#[command(name = "redlatch trace", bin_name = "redlatch trace", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Prints a timeline: locks, owners, waiters, messages.
    Show {
        file: String,
        /// Draw one lane for each client and node instead, and write the picture to this file.
        #[arg(long, value_name = "FILE")]
        svg: Option<String>,
    },
    /// Replays the trace and prints what each script costs: Lua instructions, calls, keys, bytes. The table is the same on
    /// every machine.
    Cost { file: String },
}

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
        Action::Show { file, svg: None } => print!("{}", Story::of(&read(&file)?)?),
        Action::Show { file, svg: Some(picture) } => {
            let drawn = svg::draw(&Story::of(&read(&file)?)?);
            std::fs::write(&picture, drawn).map_err(|error| format!("cannot write {picture}: {error}"))?;
        }
        Action::Cost { file } => print!("{}", cost::table(&read(&file)?)?),
    }
    Ok(())
}
