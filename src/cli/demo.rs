//! `redlatch demo`: runs schedules: those that show how distributed locks fail, and files of the user's own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use redlatch_lab::demo::{DEMOS, Demo};
use redlatch_lab::schedule::{Files, MAX_BYTES, Schedule, ScheduleError};
use redlatch_locks::jar;
use redlatch_locks::sites;

/// Runs schedules: text files that say what clients send and receive, and when.
///
/// Without an argument, lists the built-in schedules, which show how distributed locks fail.
#[derive(Parser, Debug)]
#[command(name = "redlatch demo", bin_name = "redlatch demo", max_term_width = 100)]
#[command(after_help = "\
A schedule is lines, for example
  nodes 2                          settings come first: nodes, seed, start, version, config, check
  include rlock                    defines $ACQUIRE, $RENEW and $UNLOCK
  > A text for the reader.
  a: SET lock a NX PX 10000        client a sends a command to node 0; b@1 is a client of node 1
  = OK                             it receives exactly this; ~ [a, *] is a pattern; = waits: nothing
  advance 10001                    the clock moves by so many ms
  control: SIM.NODE STOP 0         the test itself
  a <- (error) ERR x               client a receives this later
  holds two-owners                 what must be true now; violations none: the checks found nothing

docs/schedules.md describes the language. redlatch trace to-schedule makes a schedule of a recorded run.

The exit code is 0 if every outcome is as expected, 1 if one is not, and 2 if there is no such schedule or its text is wrong.")]
struct Cli {
    /// A built-in schedule, all of them (all), a file, or - for standard input.
    #[arg(value_name = "NAME|FILE")]
    schedule: Option<String>,

    /// Print the text of a built-in schedule, to begin one of your own with.
    #[arg(long, requires = "schedule", conflicts_with = "trace")]
    text: bool,

    /// Print the outcome only.
    #[arg(long, short)]
    quiet: bool,

    /// Record the run as a trace, for redlatch replay and redlatch trace.
    #[arg(long, value_name = "FILE", requires = "schedule")]
    trace: Option<PathBuf>,
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match &cli.schedule {
        None => {
            DEMOS.iter().for_each(|demo| say(&format!("{:<5}{}", demo.name, demo.title())));
            say(
                "\nredlatch demo NAME runs one of them, redlatch demo all runs all, redlatch demo FILE runs a file.",
            );
            ExitCode::SUCCESS
        }
        Some(name) => run(name, &cli).unwrap_or_else(|why| {
            eprintln!("redlatch demo: {why}");
            ExitCode::from(2)
        }),
    }
}

fn run(name: &str, cli: &Cli) -> Result<ExitCode, String> {
    if name == "all" {
        if let Some(file) = &cli.trace {
            return Err(format!("--trace {} is for one schedule", file.display()));
        }
        let mut code = 0;
        for demo in DEMOS {
            code |= run_demo(demo, cli)?;
        }
        return Ok(ExitCode::from(code));
    }
    if let Some(demo) = Demo::find(name) {
        return run_demo(&demo, cli).map(ExitCode::from);
    }
    let (text, folder) = match name {
        "-" => (read_limited(std::io::stdin().lock(), "standard input")?, PathBuf::new()),
        path => {
            let file = std::fs::File::open(path).map_err(|error| {
                format!(
                    "there is no demo '{name}', and no such file ({error}); redlatch demo lists the demos"
                )
            })?;
            (read_limited(file, path)?, Path::new(path).parent().map(Path::to_owned).unwrap_or_default())
        }
    };
    if cli.text {
        say(&String::from_utf8_lossy(&text));
        return Ok(ExitCode::SUCCESS);
    }
    let shown = if name == "-" { "standard input" } else { name };
    let mut files = Folder(folder);
    let schedule = Schedule::parse(shown, &text, &mut files).map_err(|error| error.to_string())?;
    carry_out(schedule.title().unwrap_or(shown), &schedule, &mut files, cli).map(ExitCode::from)
}

fn run_demo(demo: &Demo, cli: &Cli) -> Result<u8, String> {
    if cli.text {
        print!("{}", demo.text);
        return Ok(0);
    }
    let schedule = demo.schedule().map_err(|error| error.to_string())?;
    carry_out(demo.title(), &schedule, &mut Folder(PathBuf::new()), cli)
}

/// Runs a schedule and prints it. Returns the exit code.
fn carry_out(title: &str, schedule: &Schedule, files: &mut Folder, cli: &Cli) -> Result<u8, String> {
    say(title);
    let mut tell = |line: &str| {
        if !cli.quiet || line.starts_with("Outcome: ") {
            say(line);
        }
    };
    let error = match &cli.trace {
        None => schedule.run(files, &mut tell).err(),
        Some(file) => {
            let report = schedule.run_traced(files, &mut tell);
            let trace = report.trace.unwrap_or_default();
            std::fs::write(file, trace)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            report.error
        }
    };
    match error {
        None => {
            say("\n");
            Ok(0)
        }
        Some(ScheduleError { place, cause }) if cause.is_about_text() => {
            Err(ScheduleError { place, cause }.to_string())
        }
        Some(error) => {
            say(&format!("UNEXPECTED OUTCOME: {error}\n\n"));
            Ok(1)
        }
    }
}

fn say(line: &str) {
    println!("{line}");
}

/// Reads a file, at most as much as a schedule may have and one byte more.
fn read_limited(file: impl Read, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read {name}: {error}"))?;
    Ok(bytes)
}

/// The folder of a schedule: the files that it names are there.
struct Folder(PathBuf);

impl Files for Folder {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let file =
            std::fs::File::open(self.0.join(path)).map_err(|error| format!("cannot read {path}: {error}"))?;
        let bytes = read_limited(file, path)?;
        match bytes.len() > MAX_BYTES {
            true => Err(format!("{path} has more than {} MiB", MAX_BYTES >> 20)),
            false => Ok(bytes),
        }
    }

    fn script(&mut self, jar: &str, wanted: &str) -> Result<String, String> {
        let bytes = std::fs::read(self.0.join(jar)).map_err(|error| format!("cannot read {jar}: {error}"))?;
        let scripts = jar::scripts(&bytes).map_err(|error| format!("{jar}: {error}"))?;
        let mut readings = sites::read(&scripts).into_iter().zip(&scripts);
        let found = readings.find(|(reading, _)| reading.role().is_some_and(|role| role.name() == wanted));
        let found = found.map(|(_, script)| script.text.clone());
        found.ok_or_else(|| {
            format!("{jar} has no script '{wanted}'; redlatch scripts list {jar} shows those that it has")
        })
    }
}
