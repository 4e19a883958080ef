//! Publish and subscribe.

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::node::session::SubscriptionKind;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "psubscribe",
        arity: -2,
        since: "2.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        summary: "Listens to the channels that match patterns.",
        complexity: "O(N)",
        changes: DENYOOM_SINCE_8_2,
        run: psubscribe,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "publish",
        arity: 3,
        since: "2.0.0",
        flags: PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE,
        summary: "Sends a message to a channel.",
        complexity: "O(N+M)",
        run: publish,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "pubsub",
        arity: -2,
        since: "2.8.0",
        summary: "Tells about channels and subscriptions.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "pubsub|numsub",
                arity: -2,
                since: "2.8.0",
                flags: PUBSUB | LOADING | STALE,
                summary: "Counts the subscribers of channels.",
                complexity: "O(N)",
                run: pubsub_numsub,
                ..Command::of(Group::PubSub)
            },
            Command {
                name: "pubsub|help",
                arity: 2,
                since: "6.2.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::PubSub)
            },
            Command {
                name: "pubsub|channels",
                arity: -2,
                since: "2.8.0",
                flags: PUBSUB | LOADING | STALE,
                summary: "Lists channels with subscribers.",
                complexity: "O(N)",
                run: pubsub_channels,
                ..Command::of(Group::PubSub)
            },
            Command {
                name: "pubsub|shardnumsub",
                arity: -2,
                since: "7.0.0",
                flags: PUBSUB | LOADING | STALE,
                summary: "Counts the subscribers of shard channels.",
                complexity: "O(N)",
                run: pubsub_shardnumsub,
                ..Command::of(Group::PubSub)
            },
            Command {
                name: "pubsub|numpat",
                arity: 2,
                since: "2.8.0",
                flags: PUBSUB | LOADING | STALE,
                summary: "Counts the patterns that are listened to.",
                complexity: "O(1)",
                run: pubsub_numpat,
                ..Command::of(Group::PubSub)
            },
            Command {
                name: "pubsub|shardchannels",
                arity: -2,
                since: "7.0.0",
                flags: PUBSUB | LOADING | STALE,
                summary: "Lists shard channels with subscribers.",
                complexity: "O(N)",
                run: pubsub_shardchannels,
                ..Command::of(Group::PubSub)
            },
        ],
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "punsubscribe",
        arity: -1,
        since: "2.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        summary: "Stops listening to patterns.",
        complexity: "O(N)",
        run: punsubscribe,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "spublish",
        arity: 3,
        since: "7.0.0",
        flags: PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE,
        keys: &[key(&["not_key"], 1)],
        summary: "Sends a message to a shard channel.",
        complexity: "O(N)",
        run: spublish,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "ssubscribe",
        arity: -2,
        since: "7.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        keys: &[keys(&["not_key"], 1, -1, 1)],
        summary: "Listens to shard channels.",
        complexity: "O(N)",
        changes: DENYOOM_SINCE_8_2,
        run: ssubscribe,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "subscribe",
        arity: -2,
        since: "2.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        summary: "Listens to channels.",
        complexity: "O(N)",
        changes: DENYOOM_SINCE_8_2,
        run: subscribe,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "sunsubscribe",
        arity: -1,
        since: "7.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        keys: &[keys(&["not_key"], 1, -1, 1)],
        summary: "Stops listening to shard channels.",
        complexity: "O(N)",
        run: sunsubscribe,
        ..Command::of(Group::PubSub)
    },
    Command {
        name: "unsubscribe",
        arity: -1,
        since: "2.0.0",
        flags: PUBSUB | NOSCRIPT | LOADING | STALE,
        summary: "Stops listening to channels.",
        complexity: "O(N)",
        run: unsubscribe,
        ..Command::of(Group::PubSub)
    },
];

/// A subscription takes memory.
const DENYOOM_SINCE_8_2: &[Change] = &[Change { since: ("8.2.0", NEVER), apply: |row| row.flags |= DENYOOM }];

fn subscribe(ctx: &mut Ctx) -> Outcome {
    subscribe_to(ctx, SubscriptionKind::Channel)
}

fn psubscribe(ctx: &mut Ctx) -> Outcome {
    subscribe_to(ctx, SubscriptionKind::Pattern)
}

fn ssubscribe(ctx: &mut Ctx) -> Outcome {
    if ctx.origin != Origin::Client {
        return Err(Error::new("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    subscribe_to(ctx, SubscriptionKind::Shard)
}

fn unsubscribe(ctx: &mut Ctx) -> Outcome {
    unsubscribe_from(ctx, SubscriptionKind::Channel)
}

fn punsubscribe(ctx: &mut Ctx) -> Outcome {
    unsubscribe_from(ctx, SubscriptionKind::Pattern)
}

fn sunsubscribe(ctx: &mut Ctx) -> Outcome {
    unsubscribe_from(ctx, SubscriptionKind::Shard)
}

/// Writes one confirmation per name, all in the same reply.
fn subscribe_to(ctx: &mut Ctx, kind: SubscriptionKind) -> Outcome {
    for name in &ctx.argv[1..] {
        ctx.node.subscribe(ctx.id, kind, name, ctx.reply);
    }
    Ok(())
}

fn unsubscribe_from(ctx: &mut Ctx, kind: SubscriptionKind) -> Outcome {
    if ctx.argv.len() == 1 {
        ctx.node.unsubscribe_all(ctx.id, kind, ctx.reply);
    }
    for name in &ctx.argv[1..] {
        ctx.node.unsubscribe(ctx.id, kind, name, ctx.reply);
    }
    Ok(())
}

fn publish(ctx: &mut Ctx) -> Outcome {
    if ctx.node.sentinel.is_some() {
        return super::sentinel::publish(ctx);
    }
    publish_to(ctx, SubscriptionKind::Channel)
}

fn spublish(ctx: &mut Ctx) -> Outcome {
    publish_to(ctx, SubscriptionKind::Shard)
}

fn publish_to(ctx: &mut Ctx, kind: SubscriptionKind) -> Outcome {
    if ctx.node.interest.scripts {
        ctx.node.stages.published(ctx.node.index, ctx.argv[1], ctx.argv[2]);
    }
    let receivers = ctx.node.publish_for_client(kind, ctx.argv[1], ctx.argv[2]);
    ctx.reply.int(receivers as i64);
    Ok(())
}

fn pubsub_channels(ctx: &mut Ctx) -> Outcome {
    list_channels(ctx, SubscriptionKind::Channel)
}

fn pubsub_shardchannels(ctx: &mut Ctx) -> Outcome {
    list_channels(ctx, SubscriptionKind::Shard)
}

fn list_channels(ctx: &mut Ctx, kind: SubscriptionKind) -> Outcome {
    if ctx.argv.len() > 3 {
        return Err(error::subcommand_syntax(ctx.argv));
    }
    let pattern = ctx.argv.get(2);
    let matches = |name: &&[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
    let names: Vec<&[u8]> = ctx.node.pubsub.names(kind).filter(matches).collect();
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

fn pubsub_numsub(ctx: &mut Ctx) -> Outcome {
    count_subscribers(ctx, SubscriptionKind::Channel)
}

fn pubsub_shardnumsub(ctx: &mut Ctx) -> Outcome {
    count_subscribers(ctx, SubscriptionKind::Shard)
}

fn count_subscribers(ctx: &mut Ctx, kind: SubscriptionKind) -> Outcome {
    let names = &ctx.argv[2..];
    ctx.reply.array(names.len() * 2);
    for name in names {
        ctx.reply.bulk(name);
        ctx.reply.int(ctx.node.pubsub.subscribers(kind, name).len() as i64);
    }
    Ok(())
}

fn pubsub_numpat(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(ctx.node.pubsub.len(SubscriptionKind::Pattern) as i64);
    Ok(())
}
