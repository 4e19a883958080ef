//! `redlatch demo`: shows step by step how distributed locks fail.

use std::process::ExitCode;

use clap::Parser;

use redlatch_lab::demo::{DEMOS, Demo};

/// Runs schedules that show how distributed locks fail.
#[derive(Parser, Debug)]
#[command(name = "redlatch demo", bin_name = "redlatch demo", max_term_width = 100)]
#[command(after_help = "\
The exit code is 0 if every outcome is as expected, 1 if one is not, and 2 if there is no such demo.")]
struct Cli {
    /// The demo to run, or all. Without a name, prints the list of demos.
    #[arg(value_name = "NAME")]
    name: Option<String>,
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
    let demos = match cli.name.as_deref() {
        None => {
            DEMOS.iter().for_each(|demo| say(&format!("{:<5}{}", demo.name, demo.title())));
            say("\nredlatch demo NAME runs one of them, redlatch demo all runs all.");
            return ExitCode::SUCCESS;
        }
        Some("all") => DEMOS.to_vec(),
        Some(name) => match Demo::find(name) {
            Some(demo) => vec![demo],
            None => {
                eprintln!("redlatch demo: there is no demo '{name}'; redlatch demo lists them");
                return ExitCode::from(2);
            }
        },
    };
    let mut failed = 0;
    for demo in demos {
        say(demo.title());
        if let Err(why) = demo.run(&mut say) {
            say(&format!("UNEXPECTED OUTCOME: {}, {why}", demo.name));
            failed += 1;
        }
        say("\n");
    }
    ExitCode::from((failed > 0) as u8)
}

fn say(line: &str) {
    println!("{line}");
}
