//! `redlatch scripts`: shows the Lua scripts in a jar.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use redlatch_locks::jar::{self, JarScript};
use redlatch_locks::role::Role;
use redlatch_locks::sites::{self, Reading};

/// Shows the Lua scripts in a Redisson jar and which of them are lock scripts.
#[derive(Parser, Debug)]
#[command(name = "redlatch scripts", bin_name = "redlatch scripts", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch scripts list redisson-4.7.0.jar
  redlatch scripts show redisson-4.7.0.jar rw.read.unlock
  redlatch scripts diff redisson-3.4.2.jar redisson-3.4.3.jar")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Lists every script: its role if it is a lock script, its class and method.
    List {
        jar: PathBuf,
        /// List lock scripts only.
        #[arg(long)]
        locks: bool,
    },
    /// Prints the text of scripts, selected by role, class or Class.method.
    Show { jar: PathBuf, name: String },
    /// Shows the differences between two releases. The exit code is 1 if they differ.
    Diff {
        old: PathBuf,
        new: PathBuf,
        /// List lock scripts only.
        #[arg(long)]
        locks: bool,
    },
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let done = match &cli.command {
        Command::List { jar, locks } => list(jar, *locks),
        Command::Show { jar, name } => show(jar, name),
        Command::Diff { old, new, locks } => diff(old, new, *locks),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("redlatch scripts: {message}");
            ExitCode::from(2)
        }
    }
}

/// A script of a jar and what it is.
struct Known {
    script: JarScript,
    reading: Reading,
}

impl Known {
    /// Returns the role; `?` for a script of a lock's class that fits none, `-` for other scripts.
    fn role(&self) -> &'static str {
        match self.reading {
            Reading::Unknown => "?",
            reading => reading.role().map_or("-", Role::name),
        }
    }

    /// Returns whether this is a script of a lock, with a role or without.
    fn is_lock(&self) -> bool {
        self.reading != Reading::Other
    }
}

fn read(jar: &Path) -> Result<Vec<Known>, String> {
    let bytes = std::fs::read(jar).map_err(|error| format!("cannot read {}: {error}", jar.display()))?;
    let scripts = jar::scripts(&bytes).map_err(|error| format!("{}: {error}", jar.display()))?;
    let readings = sites::read(&scripts);
    Ok(scripts.into_iter().zip(readings).map(|(script, reading)| Known { script, reading }).collect())
}

fn list(jar: &Path, locks: bool) -> Result<u8, String> {
    let scripts = read(jar)?;
    for known in scripts.iter().filter(|known| known.is_lock() || !locks) {
        println!("{:28} {}", known.role(), known.script.name());
    }
    let known = scripts.iter().filter(|known| known.reading.role().is_some()).count();
    println!("{} scripts, {known} of them lock scripts", scripts.len());
    Ok(0)
}

fn show(jar: &Path, name: &str) -> Result<u8, String> {
    let scripts = read(jar)?;
    let mut found = false;
    for known in &scripts {
        let (role, script) = (known.role(), &known.script);
        if role == name || script.class == name || script.name() == name {
            println!("-- {} ({role})", script.name());
            if let Some(call) = &script.call {
                println!("-- KEYS: {}\n-- ARGV: {}", call.keys.join(", "), call.args.join(", "));
            }
            println!("{}\n", script.text);
            found = true;
        }
    }
    if found { Ok(0) } else { Err(format!("no script '{name}' in {}", jar.display())) }
}

fn diff(old: &Path, new: &Path, locks: bool) -> Result<u8, String> {
    let by_name = |scripts: Vec<Known>| -> BTreeMap<String, Known> {
        let chosen = scripts.into_iter().filter(|known| !locks || known.is_lock());
        chosen.map(|known| (known.script.name(), known)).collect()
    };
    let (old, new) = (by_name(read(old)?), by_name(read(new)?));
    let mut changes = 0;
    for (name, before) in &old {
        let role = before.role();
        match new.get(name) {
            None => println!("- {name} ({role})"),
            Some(after) if after.script.text != before.script.text => {
                println!("~ {name} ({role})\n{}", changed(&before.script.text, &after.script.text));
            }
            Some(_) => continue,
        }
        changes += 1;
    }
    for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        println!("+ {name} ({})", after.role());
        changes += 1;
    }
    println!("{changes} changes");
    Ok((changes > 0) as u8)
}

/// Shows the part of a script that changed, with some of the text around it.
fn changed(before: &str, after: &str) -> String {
    const AROUND: usize = 40;
    let (old, new): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let room = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(old, new)| old == new).count();
    let part = |text: &[char]| -> String {
        text[same.saturating_sub(AROUND)..(text.len() - tail + AROUND).min(text.len())].iter().collect()
    };
    format!("    - …{}…\n    + …{}…", part(&old), part(&new))
}
