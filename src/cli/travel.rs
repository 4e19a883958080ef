//! The part of `redlatch replay` that stops at a moment of a run.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::replay::refuse;
use super::serve;
use redlatch_lab::control::Lab;
use redlatch_lab::trace::{ReplayError, Tape};
use redlatch_lab::travel::{ForkOptions, Journey, Predicate, State, TravelError};

/// The options about moments of a run.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Stop after this event and print the state: keys, locks, clients, channels, timers, rules and gates.
    #[arg(long, value_name = "EVENT")]
    to: Option<u64>,

    /// Stop at the first event after which PREDICATE holds, and print the state.
    #[arg(long, value_name = "PREDICATE", conflicts_with = "to")]
    find: Option<String>,

    /// Try other futures from this event on, and print in how many of them PREDICATE comes to hold.
    #[arg(long, value_name = "EVENT", requires = "find", conflicts_with_all = ["to", "step", "serve", "json"])]
    fork: Option<u64>,

    #[command(flatten)]
    futures: Futures,

    /// The last event whose request belongs to the futures. Without it, all that follow do.
    #[arg(long, value_name = "EVENT", requires = "fork")]
    until: Option<u64>,

    /// Let the faults that the run injects later (SIM.NODE, SIM.KEY, SIM.FAULT, clock jumps) happen or not, by chance.
    #[arg(long, requires = "fork")]
    maybe_faults: bool,

    /// Print the state as JSON.
    #[arg(long)]
    json: bool,

    /// Read commands from standard input: step [N], next (lock event), back [N], to EVENT, print, quit.
    #[arg(long)]
    step: bool,

    /// Bring up a server in the state of that moment, with a manual clock; node N listens on PORT + N.
    #[arg(long, value_name = "PORT", conflicts_with = "step")]
    serve: Option<u16>,
}

/// How other futures are made.
#[derive(clap::Args, Debug)]
pub struct Futures {
    /// The seed of the first future; each further one has the next.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// How many futures to try.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,

    /// By how many ms a request may come earlier or later than recorded. Requests of different clients that are at most
    /// twice as far apart may change their order.
    #[arg(long, value_name = "MS", default_value_t = 1)]
    window: u64,
}

impl Futures {
    /// Returns the options of the forks.
    pub fn options(&self) -> ForkOptions {
        let Futures { seed, runs, window } = *self;
        ForkOptions {
            seed,
            runs,
            window_us: window.saturating_mul(1000).min(1 << 40),
            ..ForkOptions::default()
        }
    }
}

/// Checks that options about other futures come with --fork.
///
/// # Errors
/// The usage error.
pub fn check_usage(found: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |name: &&str| found.value_source(name) == Some(ValueSource::CommandLine);
    match ["seed", "runs", "window"].iter().find(|name| is_given(name)) {
        Some(name) if !found.contains_id("fork") => Err(super::replay::Cli::command().error(
            ErrorKind::MissingRequiredArgument,
            format!("--{name} is about other futures, which --fork EVENT asks for"),
        )),
        _ => Ok(()),
    }
}

impl Args {
    /// Returns whether any of the options is given.
    pub fn is_asked_for(&self) -> bool {
        self.to.is_some() || self.find.is_some() || self.step || self.json || self.serve.is_some()
    }
}

/// Runs the replay up to the moment that the options name.
pub fn run(file: &str, text: &str, args: &Args) -> ExitCode {
    let tape = Tape::of(text);
    match travel(&tape, args) {
        Ok(code) => code,
        Err(Stop::Refused(why)) => refuse(&why),
        Err(Stop::Travel(TravelError::Replay(error @ ReplayError::Differs { .. }))) => {
            println!("{file}: {error}");
            ExitCode::from(1)
        }
        Err(Stop::Travel(error)) => refuse(&format!("{file}: {error}")),
    }
}

/// Why there is nothing to show.
enum Stop {
    Refused(String),
    Travel(TravelError),
}

impl From<TravelError> for Stop {
    fn from(error: TravelError) -> Stop {
        Stop::Travel(error)
    }
}

/// Parses a predicate; its script comes from a file.
pub fn predicate(text: &str) -> Result<Predicate, String> {
    Predicate::parse(text, read_script)
}

/// Reads the script of a predicate.
pub fn read_script(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))
}

fn travel(tape: &Tape, args: &Args) -> Result<ExitCode, Stop> {
    let mut journey = match &args.find {
        Some(text) => Journey::looking_for(tape, predicate(text).map_err(Stop::Refused)?)?,
        None => Journey::new(tape)?,
    };
    if let Some(event) = args.fork {
        journey.go_to(event)?;
        let futures =
            ForkOptions { until: args.until, may_skip_faults: args.maybe_faults, ..args.futures.options() };
        let forks = journey.fork(&futures)?;
        print!("{forks}");
        return Ok(ExitCode::from(forks.seeds.is_empty() as u8));
    }
    match (&args.find, args.to) {
        (Some(text), _) => {
            if !journey.find()? {
                println!("{text}: never, in {} events", journey.last_event());
                return Ok(ExitCode::from(1));
            }
            if !args.json {
                print_found(text, &journey);
            }
        }
        (None, Some(event)) => journey.go_to(event)?,
        (None, None) if args.step => {}
        (None, None) => journey.go_to_end()?,
    }
    if args.step {
        prompt(&mut journey)
            .map_err(|error| Stop::Refused(format!("cannot read standard input: {error}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(asked) = args.to.filter(|asked| *asked < journey.event() && !args.json) {
        println!("event {asked} is part of one request with event {}\n", journey.event());
    }
    print(&journey, args.json);
    if let Some(port) = args.serve {
        serve::serve_lab(standing(journey), port).map_err(Stop::Refused)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the lab of this moment, with a clock that only its clients move.
fn standing(journey: Journey) -> Lab {
    let mut lab = journey.into_lab();
    lab.stand_still();
    lab
}

fn print_found(predicate: &str, journey: &Journey) {
    println!("{predicate}: after event {}", journey.event());
    let two = journey.lab().with_history(|history| history.two_owners().cloned()).flatten();
    if let Some(two) = two {
        print!("{two}");
    }
    journey.lines().for_each(|line| println!("  {line}"));
}

fn print(journey: &Journey, json: bool) {
    let state = State::of(journey.lab());
    match json {
        true => println!("{}", serde_json::to_string(&state).unwrap_or_default()),
        false => print!("{state}"),
    }
}

/// Reads commands and moves accordingly, until the end of the input.
fn prompt(journey: &mut Journey) -> io::Result<()> {
    let is_terminal = io::stdin().is_terminal();
    print_place(journey);
    loop {
        if is_terminal {
            print!("> ");
            io::stdout().flush()?;
        }
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |default| match words.get(1) {
            Some(word) => word.parse().map_err(|_| format!("'{word}' is not a number")),
            None => Ok(default),
        };
        let moved = match words.first().copied() {
            None => continue,
            Some("quit" | "q") => return Ok(()),
            Some("print" | "p") => {
                print(journey, words.get(1) == Some(&"json"));
                continue;
            }
            Some("step" | "s") => number(1).map(|n| journey.step(n)),
            Some("back" | "b") => number(1).map(|n| journey.back(n)),
            Some("to") => number(journey.last_event()).map(|event| journey.go_to(event)),
            Some("next" | "n") => Ok(journey.next_lock_event().map(|is_there| {
                if !is_there {
                    println!("no lock event follows");
                }
            })),
            Some(word) => Err(format!(
                "'{word}' is unknown; there are step [N], next, back [N], to EVENT, print [json], quit"
            )),
        };
        match moved {
            Ok(Ok(())) => print_place(journey),
            Ok(Err(error)) => println!("{error}"),
            Err(why) => println!("{why}"),
        }
    }
}

/// Prints the event and its lines.
fn print_place(journey: &Journey) {
    println!("event {} of {}", journey.event(), journey.last_event());
    journey.lines().for_each(|line| println!("  {line}"));
}
