//! COMMANDLOG, the form in which Valkey 8.1 has the slow log. Its logs of large requests and replies stay empty.

use super::command::*;
use super::ctx::Ctx;
use super::observability::{parse_slowlog_count, reply_slowlog};
use crate::error::{Error, Outcome};

pub const COMMANDS: &[Command] = &[Command {
    name: "commandlog",
    arity: -2,
    since: NEVER,
    since_valkey: "8.1.0",
    summary: "Logs of commands that were slow or large.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "commandlog|get",
            arity: 4,
            since: NEVER,
            since_valkey: "8.1.0",
            flags: ADMIN | LOADING | STALE,
            tips: &["request_policy:all_nodes", "nondeterministic_output"],
            summary: "Gives the newest entries.",
            complexity: "O(N)",
            run: commandlog_get,
            ..Command::of(Group::Server)
        },
        Command {
            name: "commandlog|len",
            arity: 3,
            since: NEVER,
            since_valkey: "8.1.0",
            flags: ADMIN | LOADING | STALE,
            tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
            summary: "Counts the entries.",
            complexity: "O(1)",
            run: commandlog_len,
            ..Command::of(Group::Server)
        },
        Command {
            name: "commandlog|reset",
            arity: 3,
            since: NEVER,
            since_valkey: "8.1.0",
            flags: ADMIN | LOADING | STALE,
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            summary: "Forgets the entries.",
            complexity: "O(N)",
            run: commandlog_reset,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

/// Returns whether a word names the log of slow commands.
///
/// # Errors
///
/// Fails if it names no log.
fn is_slow(word: &[u8]) -> Result<bool, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"slow" => Ok(true),
        b"large-request" | b"large-reply" => Ok(false),
        _ => Err(Error::new("ERR type should be one of the following: slow, large-request, large-reply")),
    }
}

fn commandlog_get(ctx: &mut Ctx) -> Outcome {
    let is_slow = is_slow(ctx.argv[3]);
    let count = parse_slowlog_count(ctx.argv[2])?;
    reply_slowlog(ctx, if is_slow? { count } else { 0 });
    Ok(())
}

fn commandlog_len(ctx: &mut Ctx) -> Outcome {
    let len = if is_slow(ctx.argv[2])? { ctx.node.slowlog.entries.len() } else { 0 };
    ctx.reply.int(len as i64);
    Ok(())
}

fn commandlog_reset(ctx: &mut Ctx) -> Outcome {
    if is_slow(ctx.argv[2])? {
        ctx.node.slowlog.entries.clear();
    }
    ctx.reply.ok();
    Ok(())
}
