//! `redlatch trace`: shows a trace in readable form, compares two, exports and judges the history of its locks, finds what made
//! a violation inevitable, and makes a schedule of it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::history::{self, HistoryArgs, LinearizeArgs};
use super::travel::{self, Futures};
use redlatch_lab::schedule::Recorded;
use redlatch_lab::trace::show::Timeline;
use redlatch_lab::trace::{Tape, cost, svg};
use redlatch_lab::travel::{Journey, Parting};

/// Shows a trace as a timeline, or the cost of its scripts; compares two traces; finds what made a violation inevitable;
/// makes a schedule of it.
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
    /// Prints the first event at which two runs part, and what differs. Ids, times and the numbers of events and connections
    /// do not count. The exit code is 1 if the runs part.
    Diff { a: String, b: String },
    /// Prints the operations on locks: who asked for what, when, and what he was told. For Jepsen's checkers (edn), for
    /// Porcupine (json), or for people.
    History(HistoryArgs),
    /// Prints whether the operations on each lock are linearizable, and if not, the shortest part of the history that is not.
    /// The exit code is 0 if all are, 1 if one is not, and 3 if the limit was reached first.
    Linearize(LinearizeArgs),
    /// Finds the first event after which PREDICATE holds, and the event after which it was inevitable: all futures from there
    /// lead to it, and some from the event before do not. In these futures concurrent requests come in any order, and each
    /// fault that the run injects later may not happen. The exit code is 1 if PREDICATE never holds.
    Blame {
        file: String,
        /// What to look for; redlatch replay --help lists the forms.
        #[arg(long, value_name = "PREDICATE")]
        find: String,
        #[command(flatten)]
        futures: Futures,
    },
    /// Prints a schedule that repeats the run: redlatch demo FILE runs it. It expects the replies that were recorded; what
    /// depends on real time or on the numbers of events is a pattern.
    ToSchedule {
        file: String,
        /// Shrink it to the shortest schedule that still shows what --keep names.
        #[arg(long, requires = "keep")]
        shrink: bool,
        /// What has to hold at the end; redlatch replay --help lists the forms. The exit code is 1 if it never holds.
        #[arg(long, value_name = "PREDICATE", requires = "shrink")]
        keep: Option<String>,
    },
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match run(cli.action) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("redlatch trace: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(action: Action) -> Result<ExitCode, String> {
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
        Action::Diff { a, b } => {
            let (a, b) = (read(&a)?, read(&b)?);
            match Parting::of(&Tape::of(&a), &Tape::of(&b))? {
                None => println!("the runs do not part"),
                Some(parting) => {
                    print!("{parting}");
                    return Ok(ExitCode::from(1));
                }
            }
        }
        Action::History(args) => print!("{}", history::export(&read(&args.file)?, &args)?),
        Action::Linearize(args) => return history::linearize(&read(&args.file)?, &args),
        Action::Blame { file, find, futures } => return blame(&read(&file)?, &find, &futures),
        Action::ToSchedule { file, keep, .. } => return to_schedule(&read(&file)?, keep.as_deref()),
    }
    Ok(ExitCode::SUCCESS)
}

fn blame(text: &str, predicate: &str, futures: &Futures) -> Result<ExitCode, String> {
    let tape = Tape::of(text);
    let mut journey =
        Journey::looking_for(&tape, travel::predicate(predicate)?).map_err(|error| error.to_string())?;
    let Some(blame) = journey.blame(&futures.options()).map_err(|error| error.to_string())? else {
        println!("{predicate}: never, in {} events", journey.last_event());
        return Ok(ExitCode::from(1));
    };
    println!("{predicate}: after event {}", blame.found);
    match blame.event {
        Some(event) => {
            println!("inevitable after event {event}:");
            journey.lines().for_each(|line| println!("  {line}"));
        }
        None => println!("inevitable from the beginning"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the schedule of a run, and says on standard error how well it repeats the run.
fn to_schedule(text: &str, keep: Option<&str>) -> Result<ExitCode, String> {
    let recorded = Recorded::of(&Tape::of(text)).map_err(|error| error.to_string())?;
    let Some(predicate) = keep else {
        print!("{}", recorded.text());
        let Recorded { exact, different, missing, left_out, .. } = recorded;
        eprintln!(
            "{exact} replies as recorded, {different} different, {missing} missing, {left_out} inputs left out"
        );
        return Ok(ExitCode::SUCCESS);
    };
    match recorded.shrink(predicate, travel::read_script)? {
        Some(shrunk) => {
            print!("{}", shrunk.text);
            eprintln!("{} of {} steps", shrunk.left, shrunk.steps);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            println!("{predicate}: never");
            Ok(ExitCode::from(1))
        }
    }
}
