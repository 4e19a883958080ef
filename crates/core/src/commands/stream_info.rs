//! XINFO: describes streams, their groups and consumers.

use super::command::*;
use super::ctx::Ctx;
use super::stream_groups::no_such_group;
use super::streams::{write_entries, write_entry};
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::Stream;
use crate::store::stream::{Consumer, Group as ConsumerGroup, StreamId};
use crate::version::Version;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[Command {
    name: "xinfo",
    arity: -2,
    since: "5.0.0",
    acl: &[],
    summary: "Describes streams.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "xinfo|consumers",
            arity: 4,
            since: "5.0.0",
            flags: READONLY,
            keys: &[key(&["RO", "access"], 2)],
            tips: &["nondeterministic_output"],
            summary: "Lists the consumers of a group.",
            run: xinfo_consumers,
            ..Command::of(Group::Stream)
        },
        Command {
            name: "xinfo|groups",
            arity: 3,
            since: "5.0.0",
            flags: READONLY,
            keys: &[key(&["RO", "access"], 2)],
            summary: "Lists the consumer groups of a stream.",
            run: xinfo_groups,
            ..Command::of(Group::Stream)
        },
        Command {
            name: "xinfo|help",
            arity: 2,
            since: "5.0.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            run: super::help::reply,
            ..Command::of(Group::Stream)
        },
        Command {
            name: "xinfo|stream",
            arity: -3,
            since: "5.0.0",
            flags: READONLY,
            keys: &[key(&["RO", "access"], 2)],
            summary: "Describes a stream.",
            run: xinfo_stream,
            ..Command::of(Group::Stream)
        },
    ],
    ..Command::of(Group::Stream)
}];

/// Returns the stream that a call describes, and the reply.
fn described<'c>(ctx: &'c mut Ctx) -> Result<(&'c Stream, &'c mut Reply), Error> {
    let (stream, reply) = ctx.read_and_reply::<Stream>(ctx.argv[2])?;
    Ok((stream.ok_or(error::NO_SUCH_KEY)?, reply))
}

fn xinfo_stream(ctx: &mut Ctx) -> Outcome {
    let (argv, version, now_ms) = (ctx.argv, ctx.version(), ctx.now().wall_ms());
    let (stream, reply) = described(ctx)?;
    let count = match &argv[3..] {
        [] => {
            describe(reply, stream, 10, now_ms);
            describe_edges(reply, stream);
            return Ok(());
        }
        [full] if full.eq_ignore_ascii_case(b"FULL") => 10,
        [full, word, count] if full.eq_ignore_ascii_case(b"FULL") && word.eq_ignore_ascii_case(b"COUNT") => {
            match num::parse_i64(count).ok_or(error::NOT_AN_INTEGER)? {
                0 => usize::MAX,
                count => usize::try_from(count).unwrap_or(10),
            }
        }
        _ => return Err(error::subcommand_syntax(argv)),
    };
    describe(reply, stream, 9, now_ms);
    reply.bulk(b"entries");
    write_entries(reply, stream.range(StreamId::MIN, StreamId::MAX).take(count));
    reply.bulk(b"groups");
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        describe_group_in_full(reply, stream, name, group, count, version);
    }
    Ok(())
}

/// Writes the header of a map with `pairs` pairs, and those that every form of XINFO STREAM begins with; since 8.6 also those of
/// idempotent producers.
fn describe(reply: &mut Reply, stream: &Stream, pairs: usize, now_ms: i64) {
    let producers = &stream.producers;
    let (names, ids) = producers.counts(now_ms);
    let idempotent = [
        ("idmp-duration", producers.duration_s),
        ("idmp-maxsize", producers.max_size),
        ("pids-tracked", names as u64),
        ("iids-tracked", ids as u64),
        ("iids-added", producers.added),
        ("iids-duplicates", producers.duplicates),
    ];
    let idempotent = if reply.version() >= Version::V8_6 { &idempotent[..] } else { &[] };
    reply.map(pairs + idempotent.len());
    write_number(reply, "length", stream.len() as i64);
    write_number(reply, "radix-tree-keys", stream.nodes().len() as i64);
    write_number(reply, "radix-tree-nodes", stream.radix_tree_nodes() as i64);
    write_id(reply, "last-generated-id", stream.last_id);
    write_id(reply, "max-deleted-entry-id", stream.max_deleted_id);
    write_number(reply, "entries-added", stream.entries_added as i64);
    write_id(reply, "recorded-first-entry-id", stream.first_id);
    idempotent.iter().for_each(|(name, number)| write_number(reply, name, *number as i64));
}

fn describe_edges(reply: &mut Reply, stream: &Stream) {
    write_number(reply, "groups", stream.groups.len() as i64);
    let first = stream.range(StreamId::MIN, StreamId::MAX).next();
    let last = stream.range_back(StreamId::MIN, StreamId::MAX).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => write_entry(reply, &entry),
            None => reply.null(),
        }
    }
}

fn write_number(reply: &mut Reply, name: &str, number: i64) {
    reply.bulk(name.as_bytes());
    reply.int(number);
}

fn write_id(reply: &mut Reply, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    reply.bulk(&id.text());
}

/// Writes how much a group has read, and how many entries it has not; null if that cannot be told.
fn write_progress(reply: &mut Reply, stream: &Stream, group: &ConsumerGroup) {
    write_id(reply, "last-delivered-id", group.last_id);
    let lag = stream.lag(group, reply.version());
    for (name, number) in [("entries-read", group.entries_read.map(|count| count as i64)), ("lag", lag)] {
        reply.bulk(name.as_bytes());
        match number {
            Some(number) => reply.int(number),
            None => reply.null(),
        }
    }
}

fn describe_group_in_full(
    reply: &mut Reply,
    stream: &Stream,
    name: &[u8],
    group: &ConsumerGroup,
    count: usize,
    version: Version,
) {
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(name);
    write_progress(reply, stream, group);
    write_number(reply, "pel-count", group.pending_len() as i64);
    reply.bulk(b"pending");
    reply.array(group.pending_len().min(count));
    for (id, pending) in group.pending_range(StreamId::MIN, StreamId::MAX).take(count) {
        reply.array(4);
        reply.bulk(&id.text());
        reply.bulk(&group.consumer(pending.consumer).name);
        reply.int(pending.delivered_ms);
        reply.int(pending.deliveries as i64);
    }
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        describe_consumer_in_full(reply, group, consumer, count, version);
    }
}

fn describe_consumer_in_full(
    reply: &mut Reply,
    group: &ConsumerGroup,
    consumer: &Consumer,
    count: usize,
    version: Version,
) {
    let has_activity = version >= Version::V7_2;
    reply.map(4 + has_activity as usize);
    reply.bulk(b"name");
    reply.bulk(&consumer.name);
    write_number(reply, "seen-time", consumer.seen_ms);
    if has_activity {
        write_number(reply, "active-time", consumer.active_ms);
    }
    write_number(reply, "pel-count", consumer.pending_len() as i64);
    reply.bulk(b"pending");
    reply.array(consumer.pending_len().min(count));
    for id in consumer.pending(StreamId::MIN, StreamId::MAX).take(count) {
        let pending = group.pending(id);
        reply.array(3);
        reply.bulk(&id.text());
        reply.int(pending.map_or(0, |pending| pending.delivered_ms));
        reply.int(pending.map_or(0, |pending| pending.deliveries as i64));
    }
}

fn xinfo_groups(ctx: &mut Ctx) -> Outcome {
    let (stream, reply) = described(ctx)?;
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        write_number(reply, "consumers", group.consumers().len() as i64);
        write_number(reply, "pending", group.pending_len() as i64);
        write_progress(reply, stream, group);
    }
    Ok(())
}

fn xinfo_consumers(ctx: &mut Ctx) -> Outcome {
    let (key, name) = (ctx.argv[2], ctx.argv[3]);
    let (now_ms, has_activity) = (ctx.now().wall_ms(), ctx.version() >= Version::V7_2);
    let (stream, reply) = described(ctx)?;
    let group = stream.groups.get(name).ok_or_else(|| no_such_group(key, name))?;
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(3 + has_activity as usize);
        reply.bulk(b"name");
        reply.bulk(&consumer.name);
        write_number(reply, "pending", consumer.pending_len() as i64);
        write_number(reply, "idle", now_ms.saturating_sub(consumer.seen_ms).max(0));
        if has_activity {
            let inactive =
                (consumer.active_ms != -1).then(|| now_ms.saturating_sub(consumer.active_ms).max(0));
            write_number(reply, "inactive", inactive.unwrap_or(-1));
        }
    }
    Ok(())
}
