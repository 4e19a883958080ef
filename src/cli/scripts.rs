//! `redlatch scripts`: shows the Lua scripts in a jar.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use redlatch_locks::jar::{self, JarScript};
use redlatch_locks::role::{Role, role};

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
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
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

fn read(jar: &Path) -> Result<Vec<JarScript>, String> {
    let bytes = std::fs::read(jar).map_err(|error| format!("cannot read {}: {error}", jar.display()))?;
    jar::scripts(&bytes).map_err(|error| format!("{}: {error}", jar.display()))
}

fn role_of(script: &JarScript) -> Option<Role> {
    role(script.text.as_bytes()).map(|role| role.of_class(&script.class))
}

fn list(jar: &Path, locks: bool) -> Result<u8, String> {
    let scripts = read(jar)?;
    let mut known = 0;
    for script in &scripts {
        let role = role_of(script);
        known += role.is_some() as usize;
        if role.is_some() || !locks {
            println!("{:28} {}", role.map_or("-", Role::name), script.name());
        }
    }
    println!("{} scripts, {known} of them lock scripts", scripts.len());
    Ok(0)
}

fn show(jar: &Path, name: &str) -> Result<u8, String> {
    let scripts = read(jar)?;
    let mut found = false;
    for script in &scripts {
        let role = role_of(script).map_or("-", Role::name);
        if role == name || script.class == name || script.name() == name {
            println!("-- {} ({role})\n{}\n", script.name(), script.text);
            found = true;
        }
    }
    if found { Ok(0) } else { Err(format!("no script '{name}' in {}", jar.display())) }
}

fn diff(old: &Path, new: &Path, locks: bool) -> Result<u8, String> {
    let by_name = |scripts: Vec<JarScript>| -> BTreeMap<String, JarScript> {
        let chosen = scripts.into_iter().filter(|script| !locks || role_of(script).is_some());
        chosen.map(|script| (script.name(), script)).collect()
    };
    let (old, new) = (by_name(read(old)?), by_name(read(new)?));
    let mut changes = 0;
    for (name, before) in &old {
        let role = role_of(before).map_or("-", Role::name);
        match new.get(name) {
            None => println!("- {name} ({role})"),
            Some(after) if after.text != before.text => {
                println!("~ {name} ({role})\n{}", changed(&before.text, &after.text));
            }
            Some(_) => continue,
        }
        changes += 1;
    }
    for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        println!("+ {name} ({})", role_of(after).map_or("-", Role::name));
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
