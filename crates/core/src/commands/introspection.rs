//! COMMAND: describes the table of commands to clients.

use super::command::*;
use super::ctx::Ctx;
use crate::acl::categories;
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::version::Version;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[Command {
    name: "command",
    arity: -1,
    since: "2.8.13",
    flags: LOADING | STALE,
    acl: &["connection"],
    tips: &["nondeterministic_output_order"],
    summary: "Describes all commands.",
    complexity: "O(N)",
    run: command,
    subcommands: &[
        Command {
            name: "command|count",
            arity: 2,
            since: "2.8.13",
            flags: LOADING | STALE,
            acl: &["connection"],
            summary: "Counts the commands.",
            complexity: "O(1)",
            run: command_count,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|help",
            arity: 2,
            since: "5.0.0",
            flags: LOADING | STALE,
            acl: &["connection"],
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|list",
            arity: -2,
            since: "7.0.0",
            flags: LOADING | STALE,
            acl: &["connection"],
            tips: &["nondeterministic_output_order"],
            summary: "Lists the names of commands.",
            complexity: "O(N)",
            run: command_list,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|info",
            arity: -2,
            since: "2.8.13",
            flags: LOADING | STALE,
            acl: &["connection"],
            tips: &["nondeterministic_output_order"],
            summary: "Describes commands.",
            complexity: "O(N)",
            run: command_info,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|docs",
            arity: -2,
            since: "7.0.0",
            flags: LOADING | STALE,
            acl: &["connection"],
            tips: &["nondeterministic_output_order"],
            summary: "Documents commands.",
            complexity: "O(N)",
            run: super::docs::command_docs,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|getkeys",
            arity: -3,
            old_arity: Some(-4),
            since: "2.8.13",
            flags: LOADING | STALE,
            acl: &["connection"],
            summary: "Finds the keys in a command.",
            complexity: "O(N)",
            run: command_getkeys,
            ..Command::of(Group::Server)
        },
        Command {
            name: "command|getkeysandflags",
            arity: -3,
            old_arity: Some(-4),
            since: "7.0.0",
            flags: LOADING | STALE,
            acl: &["connection"],
            summary: "Finds the keys in a command and what is done with them.",
            complexity: "O(N)",
            run: command_getkeysandflags,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

fn command(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let rows: Vec<&Command> = ctx.node.config.commands().rows.iter().collect();
    ctx.reply.array(rows.len());
    rows.iter().for_each(|row| describe(ctx.reply, row, version));
    Ok(())
}

fn command_count(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(ctx.node.config.commands().rows.len() as i64);
    Ok(())
}

fn command_list(ctx: &mut Ctx) -> Outcome {
    let mut words = ctx.words(2);
    let mut keep: Box<dyn Fn(&Command) -> bool> = Box::new(|_| true);
    if !words.is_empty() {
        if !words.take("FILTERBY") {
            return Err(error::SYNTAX);
        }
        if words.take_with("PATTERN", 1) {
            let pattern = words.word()?;
            keep = Box::new(|row| glob::matches(pattern, row.name.as_bytes(), true));
        } else if words.take_with("ACLCAT", 1) {
            let category = String::from_utf8_lossy(words.word()?).to_ascii_lowercase();
            keep = Box::new(move |row| categories(row).any(|name| name == category));
        } else if words.take_with("MODULE", 1) {
            words.pop();
            keep = Box::new(|_| false);
        } else {
            return Err(error::SYNTAX);
        }
        if !words.is_empty() {
            return Err(error::SYNTAX);
        }
    }
    let with_subcommands = ctx
        .node
        .config
        .commands()
        .rows
        .iter()
        .flat_map(|row| std::iter::once(row).chain(row.subcommands.iter()));
    let names: Vec<&str> = with_subcommands.filter(|row| keep(row)).map(|row| row.name).collect();
    ctx.reply.array(names.len());
    names.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
    Ok(())
}

fn command_info(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    if ctx.argv.len() == 2 {
        return command(ctx);
    }
    let names = &ctx.argv[2..];
    ctx.reply.array(names.len());
    for name in names {
        match ctx.node.config.commands().named(name) {
            Some(row) => describe(ctx.reply, row, version),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

/// Writes the ten fields of COMMAND INFO.
fn describe(reply: &mut Reply, row: &Command, version: Version) {
    reply.array(10);
    reply.bulk(row.name.as_bytes());
    reply.int(row.arity_in(version) as i64);
    // Redis does not report this flag.
    statuses(reply, flag_names(row.flags & !MAY_REPLICATE, version));
    let (first, last, step) = legacy_range(row);
    reply.int(first);
    reply.int(last);
    reply.int(step);
    statuses(reply, categories(row).map(|name| format!("@{name}")));
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.len());
    row.keys.iter().for_each(|spec| describe_keys(reply, spec));
    // Before Valkey 9.1, the empty list is of another type.
    if row.subcommands.is_empty() && !(version.is_valkey_since(Version::Valkey9_1)) {
        reply.set(0);
    } else {
        reply.array(row.subcommands.len());
    }
    row.subcommands.iter().for_each(|sub| describe(reply, sub, version));
}

fn statuses<T: AsRef<str>>(reply: &mut Reply, names: impl Iterator<Item = T>) {
    let at = reply.defer();
    let mut count = 0;
    for name in names {
        reply.status(name.as_ref());
        count += 1;
    }
    reply.end_set(at, count);
}

/// Returns the first key, the last key and the step, the description for clients that do not know key specs. It covers
/// one range, or adjacent ranges.
fn legacy_range(row: &Command) -> (i64, i64, i64) {
    let mut joined: Option<(i64, i64, i64)> = None;
    for spec in row.keys {
        let (Begin::Index(first), Find::Range { last, step, .. }) = (spec.begin, spec.find) else { continue };
        let (first, step) = (first as i64, step as i64);
        let last = if last >= 0 { last as i64 + first } else { last as i64 };
        joined = match joined {
            None => Some((first, last, step)),
            Some((start, end, 1)) if step == 1 && first == end + 1 => Some((start, last, 1)),
            some => some,
        };
    }
    joined.unwrap_or_default()
}

fn describe_keys(reply: &mut Reply, spec: &KeySpec) {
    let notes = !spec.notes.is_empty();
    reply.map(3 + notes as usize);
    if notes {
        reply.bulk(b"notes");
        reply.bulk(spec.notes.as_bytes());
    }
    reply.bulk(b"flags");
    statuses(reply, spec.flags.iter());
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(index) => describe_search(reply, "index", &[("index", index.into())]),
        Begin::Keyword(word, from) => {
            describe_search(
                reply,
                "keyword",
                &[("keyword", SpecValue::Word(word)), ("startfrom", from.into())],
            );
        }
        Begin::Option { .. } | Begin::IndexWithout { .. } | Begin::Unknown => {
            describe_search(reply, "unknown", &[]);
        }
    }
    reply.bulk(b"find_keys");
    match spec.find {
        _ if matches!(spec.begin, Begin::Option { .. }) => describe_search(reply, "unknown", &[]),
        Find::Range { last, step, limit } => {
            describe_search(
                reply,
                "range",
                &[("lastkey", last.into()), ("keystep", step.into()), ("limit", limit.into())],
            );
        }
        Find::Count { count, first, step } => {
            describe_search(
                reply,
                "keynum",
                &[("keynumidx", count.into()), ("firstkey", first.into()), ("keystep", step.into())],
            );
        }
        Find::Unknown => describe_search(reply, "unknown", &[]),
    }
}

enum SpecValue {
    Word(&'static str),
    Number(i32),
}

impl From<i32> for SpecValue {
    fn from(number: i32) -> SpecValue {
        SpecValue::Number(number)
    }
}

fn describe_search(reply: &mut Reply, kind: &str, fields: &[(&str, SpecValue)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        match value {
            SpecValue::Word(word) => reply.bulk(word.as_bytes()),
            SpecValue::Number(number) => reply.int(*number as i64),
        }
    }
}

fn command_getkeys(ctx: &mut Ctx) -> Outcome {
    let keys = keys_of(ctx)?;
    ctx.reply.array(keys.len());
    keys.iter().for_each(|&(at, _)| ctx.reply.bulk(ctx.argv[2 + at]));
    Ok(())
}

fn command_getkeysandflags(ctx: &mut Ctx) -> Outcome {
    let keys = keys_of(ctx)?;
    ctx.reply.array(keys.len());
    for (at, flags) in keys {
        ctx.reply.array(2);
        ctx.reply.bulk(ctx.argv[2 + at]);
        statuses(ctx.reply, flags.iter());
    }
    Ok(())
}

/// Returns the positions of the keys in the command that this call contains, with the flags of each.
fn keys_of(ctx: &Ctx) -> Result<Vec<(usize, &'static [&'static str])>, Error> {
    let call = &ctx.argv[2..];
    let row = ctx.node.config.commands().find(call).ok_or(Error::new("ERR Invalid command specified"))?;
    if row.keys_of_calls.unwrap_or(row.keys).is_empty() {
        return Err(Error::new("ERR The command has no key arguments"));
    }
    if !row.accepts(call.len(), ctx.version()) {
        return Err(Error::new("ERR Invalid number of arguments specified for command"));
    }
    let keys = keys_in_call(row, call, ctx.version());
    if keys.is_empty() && !row.has(NO_MANDATORY_KEYS) {
        return Err(Error::new("ERR Invalid arguments specified for command"));
    }
    Ok(keys)
}

/// Returns the positions of the keys in a call of a command, with the flags of each.
pub(crate) fn keys_in_call(
    row: &Command,
    call: &[&[u8]],
    version: Version,
) -> Vec<(usize, &'static [&'static str])> {
    let mut keys: Vec<(usize, &[&str])> = Vec::new();
    for spec in row.keys_of_calls.unwrap_or(row.keys) {
        let positions = match spec.begin {
            Begin::Unknown => continue,
            _ => key_positions(std::slice::from_ref(spec), call),
        };
        let is_variable = spec.flags.contains(&"variable_flags");
        let flags = if is_variable { (row.variable_flags)(call, version) } else { spec.flags };
        match positions {
            Some(positions) => keys.extend(positions.into_iter().map(|at| (at, flags))),
            None => keys.extend(keys_loosely_counted(spec, call).map(|at| (at, &[] as &[&str]))),
        }
    }
    keys
}

/// Returns the positions of keys when their count is not a valid number: like Redis, parses the count as C's `atoi`
/// does. Redis reports no flags in this case.
fn keys_loosely_counted(spec: &KeySpec, call: &[&[u8]]) -> std::ops::Range<usize> {
    let (Begin::Index(begin), Find::Count { first, .. }) = (spec.begin, spec.find) else { return 0..0 };
    let word = call.get(begin as usize).map_or(&b""[..], |word| word.trim_ascii_start());
    let word = word.strip_prefix(b"+").unwrap_or(word);
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let count = std::str::from_utf8(&word[..digits]).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let first = (begin + first) as usize;
    if count > call.len().saturating_sub(first) { 0..0 } else { first..first + count }
}
