//! CONFIG: reads and changes the configuration.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::errands::Task;

pub const COMMANDS: &[Command] = &[Command {
    name: "config",
    arity: -2,
    since: "2.0.0",
    summary: "Reads and changes the configuration.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "config|rewrite",
            arity: 2,
            since: "2.8.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Writes the configuration to its file.",
            complexity: "O(1)",
            changes: &[Change {
                since: ("7.2.0", ""),
                apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
            }],
            run: config_rewrite,
            ..Command::of(Group::Server)
        },
        Command {
            name: "config|resetstat",
            arity: 2,
            since: "2.0.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Resets the counters of INFO.",
            complexity: "O(1)",
            changes: &[Change {
                since: ("7.2.0", ""),
                apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
            }],
            run: config_resetstat,
            ..Command::of(Group::Server)
        },
        Command {
            name: "config|get",
            arity: -3,
            since: "2.0.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Gives configuration parameters.",
            complexity: "O(N)",
            run: config_get,
            ..Command::of(Group::Server)
        },
        Command {
            name: "config|help",
            arity: 2,
            since: "5.0.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Server)
        },
        Command {
            name: "config|set",
            arity: -4,
            since: "2.0.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            summary: "Sets configuration parameters.",
            complexity: "O(N)",
            run: config_set,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

fn config_get(ctx: &mut Ctx) -> Outcome {
    let mut found: Vec<(String, String)> = Vec::new();
    for pattern in &ctx.argv[2..] {
        // A name without pattern characters is returned as the client wrote it.
        let exact = !pattern.iter().any(|byte| b"[*?".contains(byte));
        for (name, value) in ctx.node.config.matching(pattern) {
            let name = if exact { String::from_utf8_lossy(pattern).into_owned() } else { name.to_owned() };
            if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                found.push((name, value.to_owned()));
            }
        }
    }
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn config_set(ctx: &mut Ctx) -> Outcome {
    let (pairs, rest) = ctx.argv[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(error::wrong_arity(ctx.command.name));
    }
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|[name, value]| (*name, *value)).collect();
    ctx.node.config.set(&pairs)?;
    if pairs.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"requirepass")) {
        ctx.node.update_default_password();
    }
    if pairs.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with(b"cluster-")) {
        ctx.node.refresh_cluster();
    }
    ctx.node.store.limits = ctx.node.config.limits();
    ctx.node.eviction.is_due = true;
    let node = &mut *ctx.node;
    node.slowlog.entries.truncate(node.config.slowlog_max_len);
    for (log, limit) in [&mut node.large_requests, &mut node.large_replies].into_iter().zip(node.config.large)
    {
        log.entries.truncate(limit.max_len);
    }
    ctx.reply.ok();
    Ok(())
}

fn config_resetstat(ctx: &mut Ctx) -> Outcome {
    ctx.node.stats.reset();
    ctx.reply.ok();
    Ok(())
}

fn config_rewrite(ctx: &mut Ctx) -> Outcome {
    if ctx.node.config.config_file.is_none() {
        return Err(Error::new("ERR The server is running without a config file"));
    }
    ctx.answer_after(Some(Task::RewriteConfig));
    Ok(())
}
