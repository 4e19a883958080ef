//! Commands that observe the server: MONITOR, SLOWLOG, LATENCY, MEMORY.

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{self, Error, Outcome};
use crate::node::slowlog::Slowlog;
use crate::num;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "latency",
        arity: -2,
        since: "2.8.13",
        summary: "Reports latency events.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "latency|help",
                arity: 2,
                since: "2.8.13",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|history",
                arity: 3,
                since: "2.8.13",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
                summary: "Lists the samples of an event.",
                complexity: "O(1)",
                run: latency_history,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|doctor",
                arity: 2,
                since: "2.8.13",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
                summary: "Gives a report for people.",
                complexity: "O(1)",
                run: latency_doctor,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|graph",
                arity: 3,
                since: "2.8.13",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
                summary: "Draws the samples of an event.",
                complexity: "O(1)",
                run: latency_graph,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|histogram",
                arity: -2,
                since: "7.0.0",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
                summary: "Gives the latency distribution of commands.",
                complexity: "O(N)",
                run: latency_histogram,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|reset",
                arity: -2,
                since: "2.8.13",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                summary: "Forgets the samples.",
                complexity: "O(1)",
                changes: &[Change {
                    since: ("7.2.0", ""),
                    apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:agg_sum"],
                }],
                run: latency_reset,
                ..Command::of(Group::Server)
            },
            Command {
                name: "latency|latest",
                arity: 2,
                since: "2.8.13",
                flags: ADMIN | NOSCRIPT | LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
                summary: "Lists the latest sample of each event.",
                complexity: "O(1)",
                run: latency_latest,
                ..Command::of(Group::Server)
            },
        ],
        ..Command::of(Group::Server)
    },
    Command {
        name: "memory",
        arity: -2,
        since: "4.0.0",
        summary: "Reports on memory.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "memory|doctor",
                arity: 2,
                since: "4.0.0",
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                summary: "Gives a report for people.",
                complexity: "O(1)",
                run: memory_doctor,
                ..Command::of(Group::Server)
            },
            Command {
                name: "memory|malloc-stats",
                arity: 2,
                since: "4.0.0",
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                summary: "Gives the statistics of the allocator.",
                complexity: "O(N)",
                changes: LOADING_IN_VALKEY,
                run: memory_malloc_stats,
                ..Command::of(Group::Server)
            },
            Command {
                name: "memory|help",
                arity: 2,
                since: "4.0.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Server)
            },
            Command {
                name: "memory|stats",
                arity: 2,
                since: "4.0.0",
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                summary: "Gives details of memory use.",
                complexity: "O(1)",
                run: super::memory_stats::reply,
                ..Command::of(Group::Server)
            },
            Command {
                name: "memory|purge",
                arity: 2,
                since: "4.0.0",
                tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
                summary: "Returns free memory to the system.",
                complexity: "O(N)",
                changes: LOADING_IN_VALKEY,
                run: memory_purge,
                ..Command::of(Group::Server)
            },
            Command {
                name: "memory|usage",
                arity: -3,
                since: "4.0.0",
                flags: READONLY,
                keys: &[key(&["RO"], 2)],
                summary: "Estimates the memory of a key.",
                complexity: "O(N) where N is the number of samples.",
                run: memory_usage,
                ..Command::of(Group::Server)
            },
        ],
        ..Command::of(Group::Server)
    },
    Command {
        name: "monitor",
        arity: 1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | LOADING | STALE,
        summary: "Shows all commands as they run.",
        run: monitor,
        ..Command::of(Group::Server)
    },
    Command {
        name: "slowlog",
        arity: -2,
        since: "2.2.12",
        summary: "Reports slow commands.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "slowlog|len",
                arity: 2,
                since: "2.2.12",
                flags: ADMIN | LOADING | STALE,
                tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
                summary: "Counts the entries.",
                complexity: "O(1)",
                run: slowlog_len,
                ..Command::of(Group::Server)
            },
            Command {
                name: "slowlog|get",
                arity: -2,
                since: "2.2.12",
                flags: ADMIN | LOADING | STALE,
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                summary: "Lists the entries.",
                complexity: "O(N)",
                run: slowlog_get,
                ..Command::of(Group::Server)
            },
            Command {
                name: "slowlog|reset",
                arity: 2,
                since: "2.2.12",
                flags: ADMIN | LOADING | STALE,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                summary: "Forgets the entries.",
                complexity: "O(N)",
                run: slowlog_reset,
                ..Command::of(Group::Server)
            },
            Command {
                name: "slowlog|help",
                arity: 2,
                since: "6.2.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Server)
            },
        ],
        ..Command::of(Group::Server)
    },
];

const LOADING_IN_VALKEY: &[Change] = &[Change { since: (NEVER, "8.0.0"), apply: |row| row.flags |= LOADING }];

fn monitor(ctx: &mut Ctx) -> Outcome {
    if ctx.origin != Origin::Client {
        return Err(Error::new("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let session = ctx.session();
    if !session.monitor {
        session.monitor = true;
        ctx.node.monitors.push(ctx.id);
    }
    ctx.reply.ok();
    Ok(())
}

fn slowlog_len(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(ctx.node.slowlog.entries.len() as i64);
    Ok(())
}

fn slowlog_reset(ctx: &mut Ctx) -> Outcome {
    ctx.node.slowlog.entries.clear();
    ctx.reply.ok();
    Ok(())
}

fn slowlog_get(ctx: &mut Ctx) -> Outcome {
    if ctx.argv.len() > 3 {
        return Err(error::subcommand_syntax(ctx.argv));
    }
    let count = ctx.argv.get(2).map_or(Ok(10), |word| parse_slowlog_count(word))?;
    reply_slowlog(ctx.reply, &ctx.node.slowlog, count);
    Ok(())
}

/// Parses how many entries of the log a client wants; -1 means all.
///
/// # Errors
///
/// Fails if it is not such a number.
pub fn parse_slowlog_count(word: &[u8]) -> Result<usize, Error> {
    match num::parse_i64(word) {
        Some(-1) => Ok(usize::MAX),
        Some(count) if count >= 0 => Ok(count as usize),
        _ => Err(Error::new("ERR count should be greater than or equal to -1")),
    }
}

/// Writes the newest `count` entries of a log.
pub fn reply_slowlog(reply: &mut Reply, log: &Slowlog, count: usize) {
    reply.array(log.entries.len().min(count));
    for entry in log.entries.iter().take(count) {
        reply.array(6);
        reply.int(entry.id);
        reply.int(entry.time_s);
        reply.int(entry.measure);
        reply.array(entry.argv.len());
        entry.argv.iter().for_each(|word| reply.bulk(word));
        reply.bulk(entry.addr.as_bytes());
        reply.bulk(&entry.client_name);
    }
}

/// Replies with an empty list: time does not pass inside an event, so there is no latency.
fn latency_latest(ctx: &mut Ctx) -> Outcome {
    ctx.reply.array(0);
    Ok(())
}

fn latency_history(ctx: &mut Ctx) -> Outcome {
    ctx.reply.array(0);
    Ok(())
}

fn latency_reset(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(0);
    Ok(())
}

fn latency_graph(ctx: &mut Ctx) -> Outcome {
    let event = String::from_utf8_lossy(ctx.argv[2]).into_owned();
    Err(format!("ERR No samples available for event '{event}'").into())
}

/// Counts all calls in the first bucket: time does not pass inside an event.
fn latency_histogram(ctx: &mut Ctx) -> Outcome {
    let asked: Vec<String> =
        ctx.argv[2..].iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    let is_asked = |name: &str| {
        let container = name.split('|').next().unwrap_or_default();
        asked.is_empty() || asked.iter().any(|asked| asked == name || asked == container)
    };
    let counted = ctx.node.stats.commands().filter(|(name, stats)| stats.calls > 0 && is_asked(name));
    let calls: Vec<(String, u64)> = counted.map(|(name, stats)| (name.to_string(), stats.calls)).collect();
    ctx.reply.map(calls.len());
    for (name, calls) in calls {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.map(2);
        ctx.reply.bulk(b"calls");
        ctx.reply.int(calls as i64);
        ctx.reply.bulk(b"histogram_usec");
        ctx.reply.map(1);
        ctx.reply.int(1);
        ctx.reply.int(calls as i64);
    }
    Ok(())
}

fn latency_doctor(ctx: &mut Ctx) -> Outcome {
    ctx.reply.verbatim(b"txt", b"No latency was observed: time stands still while a command runs.\n");
    Ok(())
}

fn memory_usage(ctx: &mut Ctx) -> Outcome {
    let mut samples = 5;
    let mut words = ctx.words(3);
    while !words.is_empty() {
        if !words.take_with("SAMPLES", 1) {
            return Err(error::SYNTAX);
        }
        samples = match usize::try_from(words.int()?) {
            Ok(0) => usize::MAX,
            Ok(samples) => samples,
            Err(_) => return Err(error::SYNTAX),
        };
    }
    let key_len = ctx.argv[2].len();
    match ctx
        .find_quietly(ctx.argv[2])
        .and_then(|slot| ctx.entry(slot))
        .map(|entry| entry.value.memory_bytes(samples))
    {
        Some(bytes) => ctx.reply.int((bytes + key_len) as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn memory_doctor(ctx: &mut Ctx) -> Outcome {
    ctx.reply.verbatim(b"txt", b"Nothing to report: the memory in use is an estimate here.\n");
    Ok(())
}

fn memory_malloc_stats(ctx: &mut Ctx) -> Outcome {
    ctx.reply.bulk(b"Stats not supported for the current allocator");
    Ok(())
}

fn memory_purge(ctx: &mut Ctx) -> Outcome {
    ctx.reply.ok();
    Ok(())
}
