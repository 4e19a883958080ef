//! The HELP subcommands. `help.txt` has the forms of the subcommands as they are in each release, and explains them in its own
//! words.
//!
//! A line `= name` begins the help of a command. Lines between `< redis valkey` and `>` are those of releases since these two,
//! lines between `<! redis valkey` and `>` those of earlier ones.

use super::ctx::Ctx;
use crate::error::{Error, Outcome};
use crate::version::Version;

const TEXTS: &str = include_str!("help.txt");

/// Replies with the help of the command that was called.
pub fn reply(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let name = ctx.command.name.split('|').next().unwrap_or_default();
    let Some(lines) = lines_of(name, version) else {
        return Err(Error::owned(format!("ERR no help for '{name}'")));
    };
    let title =
        format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", name.to_ascii_uppercase());
    let last = if version < Version::V7_2 { "    Prints this help." } else { "    Print this help." };
    ctx.reply.array(lines.len() + 3);
    for line in std::iter::once(title.as_str()).chain(lines).chain(["HELP", last]) {
        ctx.reply.status(line);
    }
    Ok(())
}

/// Returns the lines about a command in a release.
fn lines_of(name: &str, version: Version) -> Option<Vec<&'static str>> {
    let mut lines = TEXTS.lines().skip_while(|line| line.strip_prefix("= ") != Some(name));
    lines.next()?;
    let mut shown = Vec::new();
    let mut is_shown = true;
    for line in lines.take_while(|line| !line.starts_with("= ")) {
        if let Some(releases) = line.strip_prefix('<') {
            let (is_until, releases) = match releases.strip_prefix('!') {
                Some(releases) => (true, releases),
                None => (false, releases),
            };
            let mut releases = releases.split_whitespace();
            let has = version.has(releases.next()?, releases.next().unwrap_or_default());
            is_shown = has != is_until;
        } else if line == ">" {
            is_shown = true;
        } else if is_shown {
            shown.push(line);
        }
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table;

    #[test]
    fn every_help_has_a_text() {
        for version in Version::ALL {
            for row in table::all(version).filter(|row| row.subcommand(b"help").is_some()) {
                assert!(lines_of(row.name, version).is_some_and(|lines| lines.len() > 1), "{}", row.name);
            }
        }
    }
}
