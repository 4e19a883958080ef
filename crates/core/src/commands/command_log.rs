//! COMMANDLOG, the form in which Valkey 8.1 has the slow log, with logs of large requests and replies.

use super::command::*;
use super::ctx::Ctx;
use super::observability::{parse_slowlog_count, reply_slowlog};
use crate::error::{Error, Outcome};
use crate::node::slowlog::Slowlog;

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
            name: "commandlog|help",
            arity: 2,
            since: NEVER,
            since_valkey: "8.1.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
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

/// Returns the log that a word names.
///
/// # Errors
///
/// Fails if it names no log.
fn log_of<'a>(ctx: &'a mut Ctx, word: &[u8]) -> Result<&'a mut Slowlog, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"slow" => Ok(&mut ctx.node.slowlog),
        b"large-request" => Ok(&mut ctx.node.large_requests),
        b"large-reply" => Ok(&mut ctx.node.large_replies),
        _ => Err(Error::new("ERR type should be one of the following: slow, large-request, large-reply")),
    }
}

fn commandlog_get(ctx: &mut Ctx) -> Outcome {
    let count = parse_slowlog_count(ctx.argv[2])?;
    let log = log_of(ctx, ctx.argv[3])?.clone();
    reply_slowlog(ctx.reply, &log, count);
    Ok(())
}

fn commandlog_len(ctx: &mut Ctx) -> Outcome {
    let len = log_of(ctx, ctx.argv[2])?.entries.len();
    ctx.reply.int(len as i64);
    Ok(())
}

fn commandlog_reset(ctx: &mut Ctx) -> Outcome {
    log_of(ctx, ctx.argv[2])?.entries.clear();
    ctx.reply.ok();
    Ok(())
}
