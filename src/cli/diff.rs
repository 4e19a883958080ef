//! `redlatch diff`: random commands to two servers.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use super::output;
use redlatch_compare::diff;

/// Sends the same random commands to a real server and to redlatch, and prints every difference as the shortest
/// list of commands that shows it.
///
/// All databases of both servers are flushed; servers that hold keys are refused.
#[derive(Parser, Debug)]
#[command(name = "redlatch diff", bin_name = "redlatch diff", max_term_width = 100)]
#[command(after_help = "\
The exit code is 0 without a difference, 1 with one, and 2 if nothing could be compared.

Examples:
  redlatch diff --against 127.0.0.1:6379                       every family, 3000 commands each
  redlatch diff --against 127.0.0.1:6379 --family hashes --seed 7 --commands 100000")]
struct Cli {
    /// The real server: a redis-server 7.0, 7.2 or 7.4 without keys.
    #[arg(long, value_name = "HOST:PORT")]
    against: String,

    /// The server to be tested; by default one is started that stands for the release of the other.
    #[arg(long, value_name = "HOST:PORT")]
    subject: Option<String>,

    /// A family of commands; may be given several times. By default all of them.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(diff::family_names()))]
    family: Vec<String>,

    /// How many commands of each family.
    #[arg(long, value_name = "NUMBER", default_value_t = 3000)]
    commands: usize,

    /// The same seed sends the same commands.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// The protocol; by default both in turn.
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    resp: Option<u8>,
}

/// Ends the process when the one that started it has ended, in whatever way: its end of the standard input closes.
pub fn end_with_starter() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
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
