//! Functions: FUNCTION and FCALL.

use super::command::*;
use super::ctx::Ctx;
use super::scripting::{self, key_count};
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::node::functions::{Library, RestorePolicy};
use crate::script;
use crate::store::rdb;
use crate::wire::Reply;

const LOADS: Command = Command {
    since: "7.0.0",
    flags: WRITE | DENYOOM | NOSCRIPT,
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    complexity: "O(N) where N is the size of the text, or of the libraries",
    ..Command::of(Group::Scripting)
};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "fcall",
        arity: -3,
        since: "7.0.0",
        flags: NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[KeySpec {
            flags: &["RW", "access", "update"],
            notes: "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
            begin: Begin::Index(2),
            find: Find::Count { count: 0, first: 1, step: 1 },
        }],
        summary: "Runs a function.",
        complexity: "Depends on the function that is executed.",
        run: fcall,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "fcall_ro",
        arity: -3,
        since: "7.0.0",
        flags: READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[KeySpec {
            flags: &["RO", "access"],
            notes: "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
            begin: Begin::Index(2),
            find: Find::Count { count: 0, first: 1, step: 1 },
        }],
        summary: "Runs a function that may not write.",
        complexity: "Depends on the function that is executed.",
        run: fcall,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "function",
        arity: -2,
        since: "7.0.0",
        acl: &[],
        summary: "Manages libraries of functions.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command { name: "function|load", arity: -3, summary: "Loads a library.", run: load, ..LOADS },
            Command {
                name: "function|restore",
                arity: -3,
                summary: "Loads the libraries of a payload.",
                run: restore,
                ..LOADS
            },
            Command {
                name: "function|delete",
                arity: 3,
                flags: WRITE | NOSCRIPT,
                summary: "Deletes a library.",
                complexity: "O(1)",
                run: delete,
                ..LOADS
            },
            Command {
                name: "function|flush",
                arity: -2,
                flags: WRITE | NOSCRIPT,
                summary: "Deletes all libraries.",
                complexity: "O(N) where N is the number of functions",
                run: flush,
                ..LOADS
            },
            Command {
                name: "function|dump",
                arity: 2,
                since: "7.0.0",
                flags: NOSCRIPT,
                summary: "Returns all libraries as a payload.",
                complexity: "O(N) where N is the number of functions",
                run: dump,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "function|list",
                arity: -2,
                since: "7.0.0",
                flags: NOSCRIPT,
                tips: &["nondeterministic_output_order"],
                summary: "Lists the libraries and their functions.",
                complexity: "O(N) where N is the number of functions",
                run: list,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "function|stats",
                arity: 2,
                since: "7.0.0",
                flags: NOSCRIPT | ALLOW_BUSY,
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                summary: "Returns the running function, and how many there are.",
                complexity: "O(1)",
                run: stats,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "function|kill",
                arity: 2,
                since: "7.0.0",
                flags: NOSCRIPT | ALLOW_BUSY,
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                summary: "Ends the running function.",
                complexity: "O(1)",
                run: kill,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "function|help",
                arity: 2,
                since: "7.0.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Scripting)
            },
        ],
        ..Command::of(Group::Scripting)
    },
];

fn fcall(ctx: &mut Ctx) -> Outcome {
    ctx.node.feed_monitors(ctx.id, ctx.db(), ctx.argv, false);
    let function = ctx.node.functions.find(ctx.argv[1]).cloned();
    let function = function.ok_or(Error::new("ERR Function not found"))?;
    let keys = key_count(ctx, Error::new("ERR Bad number of keys provided"))?;
    scripting::run(ctx, &function, keys, ctx.command.has(READONLY))
}

fn load(ctx: &mut Ctx) -> Outcome {
    let (text, options) = ctx.argv[2..].split_last().ok_or(error::SYNTAX)?;
    let mut replace = false;
    for option in options {
        if !option.eq_ignore_ascii_case(b"REPLACE") {
            return Err(Error::repeating("ERR Unknown option given: ", option));
        }
        replace = true;
    }
    let name = ctx.node.load_library(text, replace)?;
    ctx.node.dirty += 1;
    ctx.reply.bulk(&name);
    Ok(())
}

fn restore(ctx: &mut Ctx) -> Outcome {
    let policy = match ctx.argv[3..] {
        [] => RestorePolicy::Append,
        [word] if word.eq_ignore_ascii_case(b"APPEND") => RestorePolicy::Append,
        [word] if word.eq_ignore_ascii_case(b"REPLACE") => RestorePolicy::Replace,
        [word] if word.eq_ignore_ascii_case(b"FLUSH") => RestorePolicy::Flush,
        [_] => {
            return Err(Error::new(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => return Err(wrong_words(ctx)),
    };
    ctx.node.restore_functions(ctx.argv[2], policy)?;
    ctx.node.dirty += 1;
    ctx.reply.ok();
    Ok(())
}

/// Returns the error for a subcommand with too many words.
fn wrong_words(ctx: &Ctx) -> Error {
    let word = &ctx.argv[1][..ctx.argv[1].len().min(128)];
    let parts: [&[u8]; 3] =
        [b"ERR unknown subcommand or wrong number of arguments for '", word, b"'. Try FUNCTION HELP."];
    Error::owned(parts.concat())
}

fn delete(ctx: &mut Ctx) -> Outcome {
    if !ctx.node.delete_library(ctx.argv[2]) {
        return Err(Error::new("ERR Library not found"));
    }
    ctx.node.dirty += 1;
    ctx.reply.ok();
    Ok(())
}

fn flush(ctx: &mut Ctx) -> Outcome {
    match ctx.argv[2..] {
        [] => {}
        [mode] if mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC") => {}
        [_] => return Err(Error::new("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")),
        _ => return Err(wrong_words(ctx)),
    }
    ctx.node.flush_functions();
    ctx.node.dirty += 1;
    ctx.reply.ok();
    Ok(())
}

fn dump(ctx: &mut Ctx) -> Outcome {
    let compress = ctx.node.config.get("rdbcompression") == Some("yes");
    let payload = rdb::dump_libraries(ctx.node.functions.texts(), ctx.version(), compress);
    ctx.reply.bulk(&payload);
    Ok(())
}

fn list(ctx: &mut Ctx) -> Outcome {
    let (mut pattern, mut with_code) = (None, false);
    let mut words = ctx.argv[2..].iter();
    while let Some(word) = words.next() {
        if !with_code && word.eq_ignore_ascii_case(b"WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && word.eq_ignore_ascii_case(b"LIBRARYNAME") {
            pattern = Some(words.next().ok_or(Error::new("ERR library name argument was not given"))?);
        } else {
            return Err(Error::owned([b"ERR Unknown argument ", error::c_text(word)].concat()));
        }
    }
    let libraries = ctx.node.functions.libraries();
    let found: Vec<(&[u8], &Library)> = libraries
        .filter(|(name, _)| pattern.is_none_or(|pattern| glob::matches(pattern, name, true)))
        .collect();
    ctx.reply.array(found.len());
    for (name, library) in found {
        write_library(ctx.reply, name, library, with_code);
    }
    Ok(())
}

fn write_library(reply: &mut Reply, name: &[u8], library: &Library, with_code: bool) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for script::Function { script, description } in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(script.function().unwrap_or_default());
        reply.bulk(b"description");
        match description {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        let flags: Vec<&str> = script.flags().names().collect();
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.status(flag));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.text);
    }
}

fn stats(ctx: &mut Ctx) -> Outcome {
    if ctx.node.scripts.is_running() && !ctx.node.scripts.runs_function() {
        return Err(error::busy(ctx.version(), false));
    }
    let reply = &mut *ctx.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match ctx.node.scripts.running_function() {
        Some((name, request, duration_ms)) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(name);
            reply.bulk(b"command");
            let words = request.args();
            reply.array(words.len());
            words.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.int(duration_ms as i64);
        }
        None => reply.null(),
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.int(ctx.node.functions.libraries().len() as i64);
    reply.bulk(b"functions_count");
    reply.int(ctx.node.functions.len() as i64);
    Ok(())
}

fn kill(ctx: &mut Ctx) -> Outcome {
    ctx.node.scripts.kill(true)?;
    ctx.reply.ok();
    Ok(())
}
