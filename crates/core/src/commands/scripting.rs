//! Scripts: EVAL and SCRIPT.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::scripts::parse_sha;
use crate::script::Script;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "eval",
        arity: -3,
        since: "2.6.0",
        flags: NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[KeySpec {
            flags: &["RW", "access", "update"],
            notes: "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
            begin: Begin::Index(2),
            find: Find::Count { count: 0, first: 1, step: 1 },
        }],
        summary: "Runs a script.",
        complexity: "Depends on the script that is executed.",
        run: eval,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "eval_ro",
        arity: -3,
        since: "7.0.0",
        flags: READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[KeySpec {
            flags: &["RO", "access"],
            notes: "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
            begin: Begin::Index(2),
            find: Find::Count { count: 0, first: 1, step: 1 },
        }],
        summary: "Runs a script that may not write.",
        complexity: "Depends on the script that is executed.",
        run: eval_ro,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "evalsha",
        arity: -3,
        since: "2.6.0",
        flags: NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[counted_keys(&["RW", "access", "update"], 2)],
        summary: "Runs a script by the digest of its text.",
        complexity: "Depends on the script that is executed.",
        run: evalsha,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "evalsha_ro",
        arity: -3,
        since: "7.0.0",
        flags: READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 2)],
        summary: "Runs a script that may not write, by the digest of its text.",
        complexity: "Depends on the script that is executed.",
        run: evalsha_ro,
        ..Command::of(Group::Scripting)
    },
    Command {
        name: "script",
        arity: -2,
        since: "2.6.0",
        acl: &[],
        summary: "Manages the script cache.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "script|help",
                arity: 2,
                since: "5.0.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|debug",
                arity: 3,
                since: "3.2.0",
                flags: NOSCRIPT,
                summary: "Sets the mode of the script debugger.",
                complexity: "O(1)",
                changes: DEBUG_WITH_ENGINE,
                run: script_debug,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|exists",
                arity: -3,
                since: "2.6.0",
                flags: NOSCRIPT,
                tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
                summary: "Tells which scripts are cached.",
                complexity: "O(N)",
                changes: STALE_IN_VALKEY,
                run: script_exists,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|flush",
                arity: -2,
                since: "2.6.0",
                flags: NOSCRIPT,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                summary: "Empties the script cache.",
                complexity: "O(N)",
                changes: STALE_IN_VALKEY,
                run: script_flush,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|load",
                arity: 3,
                since: "2.6.0",
                flags: NOSCRIPT | STALE,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                summary: "Compiles a script and caches it.",
                complexity: "O(N)",
                run: script_load,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|show",
                arity: 3,
                since: NEVER,
                since_valkey: "8.0.0",
                flags: NOSCRIPT,
                summary: "Gives the text of a cached script.",
                complexity: "O(1).",
                changes: STALE_IN_VALKEY,
                run: script_show,
                ..Command::of(Group::Scripting)
            },
            Command {
                name: "script|kill",
                arity: 2,
                since: "2.6.0",
                flags: NOSCRIPT | ALLOW_BUSY,
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                summary: "Ends the script that is running.",
                complexity: "O(1)",
                run: script_kill,
                ..Command::of(Group::Scripting)
            },
        ],
        ..Command::of(Group::Scripting)
    },
];

const DEBUG_WITH_ENGINE: &[Change] = &[Change { since: (NEVER, "9.0.0"), apply: |row| row.arity = -3 }];

const STALE_IN_VALKEY: &[Change] = &[Change { since: (NEVER, "9.0.0"), apply: |row| row.flags |= STALE }];

fn eval(ctx: &mut Ctx) -> Outcome {
    run_text(ctx, false)
}

fn eval_ro(ctx: &mut Ctx) -> Outcome {
    run_text(ctx, true)
}

fn evalsha(ctx: &mut Ctx) -> Outcome {
    run_cached(ctx, false)
}

fn evalsha_ro(ctx: &mut Ctx) -> Outcome {
    run_cached(ctx, true)
}

fn run_text(ctx: &mut Ctx, read_only: bool) -> Outcome {
    ctx.node.feed_monitors(ctx.id, ctx.db(), ctx.argv, false);
    let keys = key_count(ctx, error::NOT_AN_INTEGER)?;
    let script = ctx.node.load_script(ctx.argv[1], true)?;
    run(ctx, &script, keys, read_only)
}

fn run_cached(ctx: &mut Ctx, read_only: bool) -> Outcome {
    ctx.node.feed_monitors(ctx.id, ctx.db(), ctx.argv, false);
    let sha = parse_sha(ctx.argv[1]).ok_or_else(|| error::no_script(ctx.version()))?;
    let keys = key_count(ctx, error::NOT_AN_INTEGER)?;
    let script = ctx.node.scripts.find(&sha).ok_or_else(|| error::no_script(ctx.version()))?;
    run(ctx, &script, keys, read_only)
}

/// Returns how many of the arguments are keys, or `not_a_number`.
pub(super) fn key_count(ctx: &Ctx, not_a_number: Error) -> Result<usize, Error> {
    let count = ctx.int(2).map_err(|_| not_a_number)?;
    if count > ctx.argv.len() as i64 - 3 {
        return Err(Error::new("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| Error::new("ERR Number of keys can't be negative"))
}

/// Runs a script or a function for a command with the number of keys at argument 2.
pub(super) fn run(ctx: &mut Ctx, script: &Script, keys: usize, read_only: bool) -> Outcome {
    let flags = script.flags();
    ctx.node.check_script_start(flags)?;
    if read_only && flags.declared && !flags.no_writes {
        return Err(Error::new("ERR Can not execute a script with write flag using *_ro command."));
    }
    ctx.node.run_script(ctx.id, ctx.command, script, ctx.argv, keys, ctx.reply);
    Ok(())
}

fn script_load(ctx: &mut Ctx) -> Outcome {
    let script = ctx.node.load_script(ctx.argv[2], false)?;
    ctx.reply.bulk(script.sha().as_bytes());
    Ok(())
}

fn script_exists(ctx: &mut Ctx) -> Outcome {
    ctx.reply.array(ctx.argv.len() - 2);
    for text in &ctx.argv[2..] {
        let known = parse_sha(text).is_some_and(|sha| ctx.node.scripts.contains(&sha));
        ctx.reply.int(known as i64);
    }
    Ok(())
}

fn script_show(ctx: &mut Ctx) -> Outcome {
    let script = parse_sha(ctx.argv[2]).and_then(|sha| ctx.node.scripts.peek(&sha));
    let text = script.map(|script| script.text()).ok_or_else(|| error::no_script(ctx.version()))?;
    ctx.reply.bulk(text);
    Ok(())
}

fn script_flush(ctx: &mut Ctx) -> Outcome {
    let mode_is = |mode: &[u8]| ctx.argv[2].eq_ignore_ascii_case(mode);
    match ctx.argv.len() {
        2 => {}
        3 if mode_is(b"SYNC") || mode_is(b"ASYNC") => {}
        _ => return Err(Error::new("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    ctx.node.scripts.flush();
    ctx.reply.ok();
    Ok(())
}

fn script_kill(ctx: &mut Ctx) -> Outcome {
    ctx.node.scripts.kill(false)?;
    ctx.reply.ok();
    Ok(())
}

/// Accepts the debugger's modes, so that clients that set them continue. There is no debugger.
fn script_debug(ctx: &mut Ctx) -> Outcome {
    match ctx.argv[2].to_ascii_lowercase().as_slice() {
        b"yes" | b"sync" | b"no" => {
            ctx.reply.ok();
            Ok(())
        }
        _ => Err(Error::new("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
    }
}
