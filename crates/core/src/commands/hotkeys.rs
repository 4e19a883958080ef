//! HOTKEYS: collects and reports the keys that are used most.

use super::command::*;
use super::ctx::{Ctx, Words};
use crate::error::{self, Error, Outcome};
use crate::node::hotkeys::{Hotkeys, Options};
use crate::num;

const FOR_ADMINS: Flags = ADMIN | NOSCRIPT;

pub const COMMANDS: &[Command] = &[Command {
    name: "hotkeys",
    arity: -2,
    since: "8.6.0",
    since_valkey: NEVER,
    summary: "Finds the keys that are used most.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "hotkeys|start",
            arity: -2,
            since: "8.6.0",
            since_valkey: NEVER,
            flags: FOR_ADMINS,
            tips: &["request_policy:special"],
            summary: "Begins a collection.",
            complexity: "O(1)",
            run: start,
            ..Command::of(Group::Server)
        },
        Command {
            name: "hotkeys|stop",
            arity: 2,
            since: "8.6.0",
            since_valkey: NEVER,
            flags: FOR_ADMINS,
            tips: &["request_policy:special"],
            summary: "Ends the collection and keeps its results.",
            complexity: "O(1)",
            run: stop,
            ..Command::of(Group::Server)
        },
        Command {
            name: "hotkeys|get",
            arity: 2,
            since: "8.6.0",
            since_valkey: NEVER,
            flags: FOR_ADMINS,
            tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
            summary: "Reports the results.",
            complexity: "O(K)",
            run: get,
            ..Command::of(Group::Server)
        },
        Command {
            name: "hotkeys|reset",
            arity: 2,
            since: "8.6.0",
            since_valkey: NEVER,
            flags: FOR_ADMINS,
            tips: &["request_policy:special"],
            summary: "Forgets the results.",
            complexity: "O(1)",
            run: reset,
            ..Command::of(Group::Server)
        },
        Command {
            name: "hotkeys|help",
            arity: 2,
            since: "8.6.1",
            since_valkey: NEVER,
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

/// Parses the arguments of HOTKEYS START.
fn parse(mut words: Words) -> Result<Options, Error> {
    if !words.take_with("METRICS", 1) {
        return Err(Error::new("ERR METRICS parameter is required"));
    }
    let mut options = Options { counts_time: false, counts_bytes: false, count: 10, duration_s: 0, ratio: 1 };
    let number = |words: &mut Words| Ok::<_, Error>(num::parse_i64(words.word()?));
    let metrics = number(&mut words)?
        .filter(|count| (1..=2).contains(count))
        .ok_or(Error::new("ERR METRICS count must be > 0 and <= 2"))?;
    for named in 0..metrics {
        let (metric, seen) = match () {
            () if words.take("CPU") => ("CPU", &mut options.counts_time),
            () if words.take("NET") => ("NET", &mut options.counts_bytes),
            () if words.is_empty() => {
                return Err(Error::new("ERR METRICS count does not match number of metric types provided"));
            }
            () if named == 0 => {
                return Err(Error::new("ERR METRICS no valid metrics passed. Supported: CPU|NET"));
            }
            () => return Err(error::SYNTAX),
        };
        if std::mem::replace(seen, true) {
            return Err(format!("ERR METRICS {metric} defined more than once!").into());
        }
    }
    while !words.is_empty() {
        if words.take_with("COUNT", 1) {
            options.count = number(&mut words)?
                .filter(|count| (1..=64).contains(count))
                .ok_or(Error::new("ERR COUNT must be between 1 and 64"))?
                as usize;
        } else if words.take_with("DURATION", 1) {
            options.duration_s = number(&mut words)?
                .filter(|seconds| (1..=1_000_000).contains(seconds))
                .ok_or(Error::new("ERR DURATION must be between 1 and 1000000"))?;
        } else if words.take_with("SAMPLE", 1) {
            options.ratio = number(&mut words)?
                .filter(|ratio| *ratio > 0)
                .ok_or(Error::new("ERR SAMPLE ratio must be positive"))?;
        } else if words.take_with("SLOTS", 1) {
            return Err(Error::new("ERR SLOTS parameter cannot be used in non-cluster mode"));
        } else {
            return Err(error::SYNTAX);
        }
    }
    Ok(options)
}

/// Returns whether a collection runs.
fn is_active(ctx: &Ctx) -> bool {
    let now_ms = ctx.now().wall_ms();
    ctx.node.hotkeys.as_ref().is_some_and(|hotkeys| hotkeys.is_active(now_ms))
}

fn start(ctx: &mut Ctx) -> Outcome {
    let options = parse(ctx.words(2))?;
    if is_active(ctx) {
        return Err(Error::new("ERR hotkey tracking session already in progress"));
    }
    let started_ms = ctx.now().wall_ms();
    ctx.node.set_hotkeys(Some(Hotkeys::new(options, started_ms)));
    ctx.reply.ok();
    Ok(())
}

fn stop(ctx: &mut Ctx) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    match ctx.node.hotkeys.as_mut().filter(|hotkeys| hotkeys.is_active(now_ms)) {
        Some(hotkeys) => {
            hotkeys.ended_ms = Some(now_ms);
            ctx.reply.ok();
        }
        None => ctx.reply.null(),
    }
    Ok(())
}

fn reset(ctx: &mut Ctx) -> Outcome {
    if is_active(ctx) {
        return Err(Error::new("ERR hotkey tracking session in progress, stop tracking first"));
    }
    ctx.node.set_hotkeys(None);
    ctx.reply.ok();
    Ok(())
}

fn get(ctx: &mut Ctx) -> Outcome {
    let (now_ms, is_active) = (ctx.now().wall_ms(), is_active(ctx));
    let Some(hotkeys) = &ctx.node.hotkeys else {
        ctx.reply.null();
        return Ok(());
    };
    const LAST_SLOT: i64 = 16_383;
    let reply = &mut *ctx.reply;
    let Options { counts_time, counts_bytes, ratio, .. } = hotkeys.options;
    reply.array(1);
    reply.map(7 + 3 * counts_time as usize + 2 * counts_bytes as usize);
    for (name, number) in [("tracking-active", is_active as i64), ("sample-ratio", ratio)] {
        reply.bulk(name.as_bytes());
        reply.int(number);
    }
    reply.bulk(b"selected-slots");
    reply.array(1);
    reply.array(2);
    reply.int(0);
    reply.int(LAST_SLOT);
    let mut numbers = vec![
        ("all-commands-all-slots-us", 0),
        ("net-bytes-all-commands-all-slots", hotkeys.bytes as i64),
        ("collection-start-time-unix-ms", hotkeys.started_ms),
        ("collection-duration-ms", hotkeys.duration_ms(now_ms)),
    ];
    if counts_time {
        numbers.extend([("total-cpu-time-user-ms", 0), ("total-cpu-time-sys-ms", 0)]);
    }
    if counts_bytes {
        numbers.push(("total-net-bytes", hotkeys.bytes as i64));
    }
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.int(number);
    }
    if counts_time {
        reply.bulk(b"by-cpu-time-us");
        reply.array(0);
    }
    if counts_bytes {
        reply.bulk(b"by-net-bytes");
        let top = hotkeys.top();
        reply.array(2 * top.len());
        for (key, bytes) in top {
            reply.bulk(key);
            reply.int(bytes as i64);
        }
    }
    Ok(())
}
