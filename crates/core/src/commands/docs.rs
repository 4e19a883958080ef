//! COMMAND DOCS. `docs.txt` has the syntax of every command, which `tests/command-docs` reads from real servers; the rows have the
//! rest, in words of our own.
//!
//! A line begins with the letters of the releases that it describes, and the name. Then come `-` if there is no complexity,
//! `+` flags, `!` the release that deprecated the command, `>` what replaced it, `@` the releases of its history, and the
//! arguments: `(name type "display #key-spec =token ^since !deprecated-since &flags (argument) …)`.

use super::command::Command;
use super::ctx::Ctx;
use crate::error::Outcome;
use crate::version::{Version, release_number};
use crate::wire::Reply;

const SYNTAX: &str = include_str!("docs.txt");

/// Replies with the documentation of all commands, or of those that are named.
pub fn command_docs(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let commands = ctx.node.config.commands();
    let rows: Vec<&Command> = if ctx.argv.len() == 2 {
        commands.rows.iter().collect()
    } else {
        ctx.argv[2..].iter().filter_map(|name| commands.named(name)).collect()
    };
    ctx.reply.map(rows.len());
    rows.iter().for_each(|row| document(ctx.reply, row, version));
    Ok(())
}

/// Writes the name and the documentation of a command.
fn document(reply: &mut Reply, row: &Command, version: Version) {
    let syntax = Syntax::of(row.name, version);
    reply.bulk(row.name.as_bytes());
    let at = reply.defer();
    let mut fields = 0;
    let mut begin = |reply: &mut Reply, name: &str| {
        reply.bulk(name.as_bytes());
        fields += 1;
    };
    for (name, text) in
        [("summary", row.summary), ("since", row.since_in(version)), ("group", row.group.name())]
    {
        begin(reply, name);
        reply.bulk(text.as_bytes());
    }
    if !syntax.lacks_complexity {
        begin(reply, "complexity");
        reply.bulk(row.complexity.as_bytes());
    }
    if !syntax.flags.is_empty() {
        begin(reply, "doc_flags");
        reply.set(syntax.flags.len());
        syntax.flags.iter().for_each(|flag| reply.status(flag));
    }
    if let Some(release) = syntax.deprecated_since {
        begin(reply, "deprecated_since");
        reply.bulk(release.as_bytes());
    }
    if let Some(replacement) = syntax.replaced_by {
        begin(reply, "replaced_by");
        reply.bulk(replacement.replace('_', " ").as_bytes());
    }
    if !syntax.history.is_empty() {
        begin(reply, "history");
        reply.set(syntax.history.len());
        for release in &syntax.history {
            reply.array(2);
            reply.bulk(release.as_bytes());
            reply.bulk(syntax.news_of(release).as_bytes());
        }
    }
    if !syntax.arguments.is_empty() {
        begin(reply, "arguments");
        write_arguments(reply, &syntax.arguments, version);
    }
    if !row.subcommands.is_empty() {
        begin(reply, "subcommands");
        reply.map(row.subcommands.len());
        row.subcommands.iter().for_each(|sub| document(reply, sub, version));
    }
    reply.end_map(at, fields);
}

fn write_arguments(reply: &mut Reply, arguments: &[Argument], version: Version) {
    reply.array(arguments.len());
    for argument in arguments {
        let at = reply.defer();
        let mut fields = 2;
        for (name, text) in [("name", argument.name), ("type", argument.kind)] {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        // What has parts is not displayed itself.
        let is_displayed = argument.kind != "oneof" && argument.kind != "block";
        if version >= Version::V7_2 && is_displayed {
            reply.bulk(b"display_text");
            reply.bulk(argument.display.unwrap_or(argument.name).as_bytes());
            fields += 1;
        }
        if let Some(index) = argument.key_spec {
            reply.bulk(b"key_spec_index");
            reply.int(index);
            fields += 1;
        }
        for (name, text) in [
            ("token", argument.token),
            ("since", argument.since),
            ("deprecated_since", argument.deprecated_since),
        ] {
            if let Some(text) = text {
                reply.bulk(name.as_bytes());
                reply.bulk(text.as_bytes());
                fields += 1;
            }
        }
        if !argument.flags.is_empty() {
            reply.bulk(b"flags");
            reply.set(argument.flags.len());
            for flag in argument.flags.chars() {
                reply.status(match flag {
                    '?' => "optional",
                    '*' => "multiple",
                    _ => "multiple_token",
                });
            }
            fields += 1;
        }
        if !argument.parts.is_empty() {
            reply.bulk(b"arguments");
            write_arguments(reply, &argument.parts, version);
            fields += 1;
        }
        reply.end_map(at, fields);
    }
}

/// What `docs.txt` says about a command.
#[derive(Default)]
struct Syntax {
    lacks_complexity: bool,
    flags: Vec<&'static str>,
    deprecated_since: Option<&'static str>,
    replaced_by: Option<&'static str>,
    history: Vec<&'static str>,
    arguments: Vec<Argument>,
}

#[derive(Default)]
struct Argument {
    name: &'static str,
    kind: &'static str,
    display: Option<&'static str>,
    key_spec: Option<i64>,
    token: Option<&'static str>,
    since: Option<&'static str>,
    deprecated_since: Option<&'static str>,
    flags: &'static str,
    parts: Vec<Argument>,
}

/// Returns the letter of the release that describes this one: itself, or the next later one of the product that was compared.
pub(super) fn letter(version: Version) -> char {
    match version {
        Version::V7_0 => 'a',
        Version::V7_2 | Version::V7_4 => 'b',
        Version::V8_0 => 'c',
        Version::V8_2 | Version::V8_4 | Version::V8_6 | Version::V8_8 | Version::V8_10 => 'd',
        Version::Valkey8_1 => 'v',
        Version::Valkey9_0 | Version::Valkey9_1 | Version::Valkey9_2 => 'w',
    }
}

impl Syntax {
    fn of(name: &str, version: Version) -> Syntax {
        let letter = letter(version);
        let line = SYNTAX.lines().find_map(|line| {
            let (letters, rest) = line.split_once(' ')?;
            let rest = rest.strip_prefix(name)?;
            (letters.contains(letter) && (rest.is_empty() || rest.starts_with(' '))).then_some(rest)
        });
        let mut words = line.unwrap_or_default().split_ascii_whitespace();
        let mut syntax = Syntax::default();
        let exists = |release: &str| release_number(release) <= version.number();
        while let Some(word) = words.next() {
            match word.split_at(1) {
                ("-", _) => syntax.lacks_complexity = true,
                ("+", flag) => syntax.flags.push(flag),
                ("!", release) => syntax.deprecated_since = Some(release),
                (">", replacement) => syntax.replaced_by = Some(replacement),
                ("@", release) if exists(release) => syntax.history.push(release),
                ("(", name) => {
                    let (argument, _) = Argument::parse(name, &mut words);
                    syntax.arguments.push(argument);
                }
                _ => {}
            }
        }
        retain(&mut syntax.arguments, &exists);
        syntax
    }

    /// Says what a release added.
    fn news_of(&self, release: &str) -> String {
        let mut tokens = Vec::new();
        self.arguments.iter().for_each(|argument| argument.collect_tokens(release, &mut tokens));
        match tokens.is_empty() {
            true => "Changed.".to_owned(),
            false => format!("Added `{}`.", tokens.join("`, `")),
        }
    }
}

/// Keeps the arguments that a release has.
fn retain(arguments: &mut Vec<Argument>, exists: &impl Fn(&str) -> bool) {
    arguments.retain(|argument| argument.since.is_none_or(exists));
    arguments.iter_mut().for_each(|argument| retain(&mut argument.parts, exists));
}

impl Argument {
    /// Parses an argument after its `(name`. Returns it, and how many of the arguments around it end with it.
    fn parse(name: &'static str, words: &mut std::str::SplitAsciiWhitespace<'static>) -> (Argument, usize) {
        let mut argument = Argument { name, ..Argument::default() };
        while let Some(word) = words.next() {
            let text = word.trim_end_matches(')');
            let mut ends = word.len() - text.len();
            match text.split_at_checked(1).unwrap_or_default() {
                ("\"", display) => argument.display = Some(display),
                ("#", index) => argument.key_spec = index.parse().ok(),
                ("=", token) => argument.token = Some(token),
                ("^", release) => argument.since = Some(release),
                ("!", release) => argument.deprecated_since = Some(release),
                ("&", flags) => argument.flags = flags,
                ("(", name) => {
                    let (part, outer_ends) = Argument::parse(name, words);
                    argument.parts.push(part);
                    ends = outer_ends;
                }
                (kind, _) => argument.kind = kind_of(kind),
            }
            if ends > 0 {
                return (argument, ends - 1);
            }
        }
        (argument, 0)
    }

    fn collect_tokens(&self, release: &str, tokens: &mut Vec<&'static str>) {
        if self.since == Some(release) {
            tokens.extend(self.token.filter(|token| !token.is_empty()));
        }
        self.parts.iter().for_each(|part| part.collect_tokens(release, tokens));
    }
}

fn kind_of(letter: &str) -> &'static str {
    match letter {
        "s" => "string",
        "i" => "integer",
        "d" => "double",
        "k" => "key",
        "p" => "pattern",
        "u" => "unix-time",
        "t" => "pure-token",
        "o" => "oneof",
        _ => "block",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_line() {
        for version in Version::ALL {
            for row in crate::commands::table::all(version) {
                for row in std::iter::once(row).chain(row.subcommands) {
                    let has_line = SYNTAX.lines().any(|line| line.split(' ').nth(1) == Some(row.name));
                    assert!(has_line, "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn arguments_nest_and_later_ones_are_left_out() {
        let set = Syntax::of("set", Version::V8_6);
        assert_eq!(set.arguments[0].name, "key");
        assert!(set.arguments[2].parts.iter().any(|part| part.token == Some("IFEQ")));
        let old = Syntax::of("set", Version::V8_2);
        assert!(!old.arguments[2].parts.iter().any(|part| part.token == Some("IFEQ")));
        assert!(set.news_of("8.4.0").contains("IFEQ") && !old.history.contains(&"8.4.0"));
    }
}
