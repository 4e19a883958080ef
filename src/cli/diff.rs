//! `redlatch diff`: sends random commands to two servers and compares the replies.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use super::output;
use redlatch_compare::diff;

/// Sends the same random commands to a real server and to redlatch, and prints every difference as the shortest
/// list of commands found that shows it.
///
/// Flushes all databases of both servers; refuses servers that hold keys.
#[derive(Parser, Debug)]
#[command(name = "redlatch diff", bin_name = "redlatch diff", max_term_width = 100)]
#[command(after_help = "\
The exit code is 0 if the servers do not differ, 1 if they differ, and 2 if they cannot be compared.

Examples:
  redlatch diff --against 127.0.0.1:6379                       every family, 3000 commands each
  redlatch diff --against 127.0.0.1:6379 --family hashes --seed 7 --commands 100000")]
struct Cli {
    /// The real server: an empty redis-server or valkey-server of a release that can be emulated.
    #[arg(long, value_name = "HOST:PORT")]
    against: String,

    /// The server to test [default: a redlatch started for it, which emulates the release of the real server].
    #[arg(long, value_name = "HOST:PORT")]
    subject: Option<String>,

    /// A family of commands. Can be repeated [default: all].
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(diff::family_names()))]
    family: Vec<String>,

    /// The number of commands per family.
    #[arg(long, value_name = "NUMBER", default_value_t = 3000)]
    commands: usize,

    /// The seed of the random commands.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// The version of the protocol [default: both, alternating].
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    resp: Option<u8>,
}

/// Makes this process exit when its parent process has ended and standard input is closed.
pub fn end_with_starter() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let options = diff::Options {
        against: cli.against,
        subject: cli.subject,
        families: cli.family,
        commands: cli.commands,
        seed: cli.seed,
        resp: cli.resp,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let mut progress = |text: &str| {
        if is_terminal {
            eprint!("\r\x1b[K{text}");
        }
    };
    let result = diff::run(&options, &mut output::stdout(), &mut progress);
    progress("");
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(why) => {
            eprintln!("redlatch diff: {why}");
            ExitCode::from(2)
        }
    }
}
