//! `redlatch trace history` and `redlatch trace linearize`: the operations on locks of a run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use redlatch_lab::trace::Tape;
use redlatch_lab::travel::history;
use redlatch_locks::history::export::Format;
use redlatch_locks::linearize::{Limit, ModelName, judge, read};

/// The formats of a history.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum FormatName {
    Edn,
    Json,
    Text,
}

/// The options of `redlatch trace history`.
#[derive(clap::Args, Debug)]
pub struct HistoryArgs {
    /// A trace.
    pub file: String,
    /// How to write it.
    #[arg(long, value_enum, default_value = "text")]
    format: FormatName,
}

/// The options of `redlatch trace linearize`.
#[derive(clap::Args, Debug)]
pub struct LinearizeArgs {
    /// A trace, or a history as Jepsen (EDN) or Porcupine (JSON) writes it.
    pub file: String,
    /// mutex, reentrant, fenced, rw, semaphore=N or cas-register. Without it, the kind of each lock says which.
    #[arg(long, value_name = "MODEL", value_parser = parse_model)]
    model: Option<ModelName>,
    /// Give up after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    /// Give up after so many configurations of one lock.
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    step_limit: u64,
}

fn parse_model(text: &str) -> Result<ModelName, String> {
    let names = "mutex, reentrant, fenced, rw, semaphore=N and cas-register";
    ModelName::parse(text).ok_or_else(|| format!("there are {names}"))
}

/// Returns the history of the locks in a trace.
pub fn export(text: &str, args: &HistoryArgs) -> Result<String, String> {
    let format = match args.format {
        FormatName::Edn => Format::Edn,
        FormatName::Json => Format::Json,
        FormatName::Text => Format::Text,
    };
    history::export(&Tape::of(text), format).map_err(|error| error.to_string())
}

/// Judges the history of the locks in a trace, or one that was exported.
pub fn linearize(text: &str, args: &LinearizeArgs) -> Result<ExitCode, String> {
    let is_trace = text.starts_with("{\"k\":");
    let entries = match is_trace {
        true => history::export(&Tape::of(text), Format::Json).map_err(|error| error.to_string())?,
        false => text.to_owned(),
    };
    let entries = read(&entries)?;
    let (start, limit) = (Instant::now(), Duration::from_secs(args.time_limit));
    let mut is_over = || start.elapsed() > limit;
    let mut limit = Limit { configurations: args.step_limit, is_over: &mut is_over };
    let report = judge(&entries, args.model, &mut limit)?;
    print!("{report}");
    Ok(ExitCode::from(match report.is_linearizable() {
        Some(true) => 0,
        Some(false) => 1,
        None => 3,
    }))
}
