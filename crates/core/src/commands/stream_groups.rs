//! Consumer groups of streams: XGROUP, and what becomes of entries that were delivered.

use super::command::*;
use super::ctx::Ctx;
use super::stream_deletes::strict_ids;
use super::stream_reads::see_consumer;
use super::streams::{INVALID_ID, range_end, range_start, strict_id, write_entry};
use crate::error::{self, Error, Outcome, c_text};
use crate::num;
use crate::store::Stream;
use crate::store::stream::{Group as ConsumerGroup, Pending, StreamId, WrittenId};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "xack",
        arity: -4,
        since: "5.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Acknowledges entries, and counts those that were pending.",
        complexity: "O(1) for each message ID processed.",
        run: xack,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xautoclaim",
        arity: -6,
        since: "6.2.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives a consumer the pending entries that nobody has acknowledged for a while.",
        complexity: "O(1) if COUNT is small.",
        run: xautoclaim,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xclaim",
        arity: -6,
        since: "5.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives a consumer pending entries of other consumers.",
        complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
        run: xclaim,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xgroup",
        arity: -2,
        since: "5.0.0",
        acl: &[],
        summary: "Manages consumer groups.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "xgroup|create",
                arity: -5,
                since: "5.0.0",
                flags: WRITE | DENYOOM,
                keys: &[key(&["RW", "insert"], 2)],
                summary: "Creates a consumer group.",
                run: xgroup_create,
                ..Command::of(Group::Stream)
            },
            Command {
                name: "xgroup|createconsumer",
                arity: 5,
                since: "6.2.0",
                flags: WRITE | DENYOOM,
                keys: &[key(&["RW", "insert"], 2)],
                summary: "Creates a consumer in a group.",
                run: xgroup_createconsumer,
                ..Command::of(Group::Stream)
            },
            Command {
                name: "xgroup|delconsumer",
                arity: 5,
                since: "5.0.0",
                flags: WRITE,
                keys: &[key(&["RW", "delete"], 2)],
                summary: "Deletes a consumer with its pending entries.",
                run: xgroup_delconsumer,
                ..Command::of(Group::Stream)
            },
            Command {
                name: "xgroup|destroy",
                arity: 4,
                since: "5.0.0",
                flags: WRITE,
                keys: &[key(&["RW", "delete"], 2)],
                summary: "Deletes a consumer group.",
                complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
                run: xgroup_destroy,
                ..Command::of(Group::Stream)
            },
            Command {
                name: "xgroup|help",
                arity: 2,
                since: "5.0.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                run: super::help::reply,
                ..Command::of(Group::Stream)
            },
            Command {
                name: "xgroup|setid",
                arity: -5,
                since: "5.0.0",
                flags: WRITE,
                keys: &[key(&["RW", "update"], 2)],
                summary: "Sets the id up to which a group has read.",
                run: xgroup_setid,
                ..Command::of(Group::Stream)
            },
        ],
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xpending",
        arity: -3,
        since: "5.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives the pending entries of a group.",
        complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call is O(1).",
        run: xpending,
        ..Command::of(Group::Stream)
    },
];

// ---- XGROUP ----------------------------------------------------------------------------------------------------------

/// The options of XGROUP CREATE and SETID.
#[derive(Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(ctx: &Ctx) -> Result<Options, Error> {
        let is_create = ctx.command.name == "xgroup|create";
        let mut options = Options::default();
        let mut words = ctx.words(5);
        while !words.is_empty() {
            if is_create && words.take("MKSTREAM") {
                options.make_stream = true;
            } else if words.take_with("ENTRIESREAD", 1) {
                options.entries_read = match words.int()? {
                    -1 => None,
                    count => Some(
                        count
                            .try_into()
                            .map_err(|_| Error::new("ERR value for ENTRIESREAD must be positive or -1"))?,
                    ),
                };
            } else {
                return Err(error::subcommand_syntax(ctx.argv));
            }
        }
        Ok(options)
    }

    /// Returns how many entries the group is said to have read. Later releases do not believe more than were added.
    fn entries_read_of(&self, stream: &Stream, version: Version) -> Option<u64> {
        let most = if version >= Version::V8_2 { stream.entries_added } else { u64::MAX };
        self.entries_read.map(|count| count.min(most))
    }

    /// Returns the id in a call, where `$` is the last id of the stream.
    fn id(ctx: &Ctx, last_id: StreamId) -> Result<StreamId, Error> {
        if c_text(ctx.argv[4]) == b"$" { Ok(last_id) } else { strict_id(ctx.argv[4]) }
    }
}

/// Checks that no option was repeated, by the number of arguments.
///
/// # Errors
/// If there are more than `most`.
fn check_len(ctx: &Ctx, most: usize) -> Outcome {
    if ctx.argv.len() > most { Err(error::subcommand_syntax(ctx.argv)) } else { Ok(()) }
}

fn no_stream() -> Error {
    Error::new(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically.",
    )
}

/// Returns the error for a group that a stream does not have.
pub(super) fn no_such_group(key: &[u8], group: &[u8]) -> Error {
    let text = [b"NOGROUP No such consumer group '", c_text(group), b"' for key name '", c_text(key), b"'"];
    Error::owned(text.concat())
}

/// Returns the error for a stream or a group that does not exist.
fn no_key_or_group(key: &[u8], group: &[u8]) -> Error {
    let text = [b"NOGROUP No such key '", c_text(key), b"' or consumer group '", c_text(group), b"'"];
    Error::owned(text.concat())
}

fn xgroup_create(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx)?;
    let (key, name) = (ctx.argv[2], ctx.argv[3]);
    let last_id = ctx.edit::<Stream>(key)?.map(|stream| stream.last_id);
    let exists = last_id.is_some();
    if !exists && !options.make_stream {
        return Err(no_stream());
    }
    check_len(ctx, 8)?;
    let version = ctx.version();
    let id = Options::id(ctx, last_id.unwrap_or_default())?;
    let mut stream = ctx.edit_or_create::<Stream>(key)?;
    if stream.groups.contains_key(name) {
        return Err(Error::new("BUSYGROUP Consumer Group name already exists"));
    }
    let entries_read = options.entries_read_of(&stream, version);
    stream.groups.insert(name.into(), ConsumerGroup::new(id, entries_read));
    if exists {
        stream.done_unwatched(Some("xgroup-create"), 1);
    } else {
        stream.done("xgroup-create", 1);
    }
    ctx.reply.ok();
    Ok(())
}

/// Returns the group that a call names as a part of its stream, to be changed.
fn edit_group<'e, 'k>(
    ctx: &'e mut Ctx,
    key: &'k [u8],
    name: &[u8],
) -> Result<super::edit::Edit<'e, 'k, Stream>, Error> {
    let stream = ctx.edit::<Stream>(key)?.ok_or_else(no_stream)?;
    if stream.groups.contains_key(name) { Ok(stream) } else { Err(no_such_group(key, name)) }
}

fn xgroup_setid(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx)?;
    let (key, name) = (ctx.argv[2], ctx.argv[3]);
    let last_id = edit_group(ctx, key, name)?.last_id;
    check_len(ctx, 7)?;
    let version = ctx.version();
    // Unlike CREATE, this takes `-` and `+` too.
    let id = match ctx.argv[4] {
        b"-" => StreamId::MIN,
        b"+" => StreamId::MAX,
        _ => Options::id(ctx, last_id)?,
    };
    let mut stream = edit_group(ctx, key, name)?;
    let entries_read = options.entries_read_of(&stream, version);
    if let Some(group) = stream.groups.get_mut(name) {
        group.last_id = id;
        group.entries_read = entries_read;
    }
    stream.done_unwatched(Some("xgroup-setid"), 1);
    ctx.reply.ok();
    Ok(())
}

fn xgroup_destroy(ctx: &mut Ctx) -> Outcome {
    let (key, name) = (ctx.argv[2], ctx.argv[3]);
    let mut stream = ctx.edit::<Stream>(key)?.ok_or_else(no_stream)?;
    let existed = stream.groups.remove(name).is_some();
    if existed {
        stream.done_unwatched(Some("xgroup-destroy"), 1);
        // Clients that wait for the group learn that it is gone.
        ctx.node.signal_ready(ctx.db(), key);
    } else {
        stream.unchanged();
    }
    ctx.reply.int(existed as i64);
    Ok(())
}

fn xgroup_createconsumer(ctx: &mut Ctx) -> Outcome {
    let (key, name, consumer) = (ctx.argv[2], ctx.argv[3], ctx.argv[4]);
    let now_ms = ctx.now().wall_ms();
    let mut stream = edit_group(ctx, key, name)?;
    let mut is_new = false;
    if let Some(group) = stream.groups.get_mut(name) {
        is_new = group.find(consumer).is_none();
        if is_new {
            group.add_consumer(consumer, now_ms);
        }
    }
    if is_new {
        stream.done_unwatched(Some("xgroup-createconsumer"), 1);
    } else {
        stream.unchanged();
    }
    ctx.reply.int(is_new as i64);
    Ok(())
}

fn xgroup_delconsumer(ctx: &mut Ctx) -> Outcome {
    let (key, name, consumer) = (ctx.argv[2], ctx.argv[3], ctx.argv[4]);
    let mut stream = edit_group(ctx, key, name)?;
    let deleted = stream.groups.get_mut(name).and_then(|group| group.delete_consumer(consumer));
    match deleted {
        Some(_) => stream.done_unwatched(Some("xgroup-delconsumer"), 1),
        None => stream.unchanged(),
    }
    ctx.reply.int(deleted.unwrap_or(0) as i64);
    Ok(())
}

// ---- pending entries -------------------------------------------------------------------------------------------------

fn xack(ctx: &mut Ctx) -> Outcome {
    let (key, name, words) = (ctx.argv[1], ctx.argv[2], &ctx.argv[3..]);
    let has_group = ctx.read::<Stream>(key)?.is_some_and(|stream| stream.groups.contains_key(name));
    let mut acknowledged = 0;
    if has_group {
        let ids = strict_ids(words)?;
        if let Some(mut stream) = ctx.edit::<Stream>(key)? {
            if let Some(group) = stream.groups.get_mut(name) {
                acknowledged = ids.iter().filter(|id| group.acknowledge(**id)).count();
            }
            stream.done_unwatched(None, acknowledged);
        }
    }
    ctx.reply.int(acknowledged as i64);
    Ok(())
}

/// The range of pending entries that XPENDING lists.
struct PendingRange<'a> {
    start: StreamId,
    end: StreamId,
    count: usize,
    min_idle_ms: i64,
    consumer: Option<&'a [u8]>,
}

impl<'a> PendingRange<'a> {
    /// Parses `[IDLE ms] start end count [consumer]`; `None` if the call has none of it.
    fn parse(ctx: &Ctx<'a>) -> Result<Option<PendingRange<'a>>, Error> {
        if ctx.argv.len() == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&ctx.argv.len()) {
            return Err(error::SYNTAX);
        }
        let mut words = ctx.words(3);
        let mut min_idle_ms = 0;
        if words.take("IDLE") {
            min_idle_ms = words.int()?;
            if words.len() < 3 {
                return Err(error::SYNTAX);
            }
        }
        let rest = words.rest();
        let count = num::parse_i64(rest[2]).ok_or(error::NOT_AN_INTEGER)?.max(0) as usize;
        let (start, end) = (range_start(rest[0])?, range_end(rest[1])?);
        Ok(Some(PendingRange { start, end, count, min_idle_ms, consumer: rest.get(3).copied() }))
    }
}

fn xpending(ctx: &mut Ctx) -> Outcome {
    let range = PendingRange::parse(ctx)?;
    let (key, name) = (ctx.argv[1], ctx.argv[2]);
    let now_ms = ctx.now().wall_ms();
    let (stream, reply) = ctx.read_and_reply::<Stream>(key)?;
    let group =
        stream.and_then(|stream| stream.groups.get(name)).ok_or_else(|| no_key_or_group(key, name))?;
    let Some(range) = range else {
        summarize(reply, group);
        return Ok(());
    };
    let consumer = match range.consumer.map(|name| group.find(name)) {
        None => None,
        Some(Some(id)) => Some(group.consumer(id)),
        Some(None) => {
            reply.array(0);
            return Ok(());
        }
    };
    let (at, mut count) = (reply.defer(), 0);
    let ids: Box<dyn Iterator<Item = StreamId>> = match consumer {
        Some(consumer) => Box::new(consumer.pending(range.start, range.end)),
        None => Box::new(group.pending_range(range.start, range.end).map(|(id, _)| id)),
    };
    let pending = ids.filter_map(|id| Some((id, group.pending(id)?)));
    let idle = |pending: &Pending| now_ms.saturating_sub(pending.delivered_ms);
    let is_listed = |pending: &Pending| range.min_idle_ms == 0 || idle(pending) >= range.min_idle_ms;
    for (id, pending) in pending.filter(|(_, pending)| is_listed(pending)).take(range.count) {
        reply.array(4);
        reply.bulk(&id.text());
        reply.bulk(&group.consumer(pending.consumer).name);
        reply.int(idle(&pending).max(0));
        reply.int(pending.deliveries as i64);
        count += 1;
    }
    reply.end_array(at, count);
    Ok(())
}

/// Writes the number of pending entries, the first and the last id, and the number for each consumer that has some.
fn summarize(reply: &mut crate::wire::Reply, group: &ConsumerGroup) {
    let mut ids = group.pending_range(StreamId::MIN, StreamId::MAX).map(|(id, _)| id);
    reply.array(4);
    reply.int(group.pending_len() as i64);
    let Some(first) = ids.next() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply.bulk(&first.text());
    reply.bulk(&ids.next_back().unwrap_or(first).text());
    let (at, mut count) = (reply.defer(), 0);
    for consumer in group.consumers().filter(|consumer| consumer.pending_len() > 0) {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk_int(consumer.pending_len() as i64);
        count += 1;
    }
    reply.end_array(at, count);
}

// ---- claims ----------------------------------------------------------------------------------------------------------

/// The options of XCLAIM.
struct Claim {
    ids: Vec<StreamId>,
    min_idle_ms: i64,
    delivered_ms: i64,
    deliveries: Option<u64>,
    force: bool,
    only_ids: bool,
    last_id: StreamId,
}

impl Claim {
    fn parse(ctx: &Ctx) -> Result<Claim, Error> {
        let invalid = |name: &str| Error::owned(format!("ERR Invalid {name} argument for XCLAIM"));
        let number = |word: &[u8], name: &str| num::parse_i64(word).ok_or_else(|| invalid(name));
        let now_ms = ctx.now().wall_ms();
        let min_idle_ms = number(ctx.argv[4], "min-idle-time")?.max(0);
        let ids: Vec<StreamId> =
            ctx.argv[5..].iter().map_while(|word| WrittenId::parse_strict(word, 0)).collect();
        let mut words = ctx.words(5 + ids.len());
        let (mut delivered_ms, mut deliveries) = (None, None);
        let (mut force, mut only_ids, mut last_id) = (false, false, StreamId::MIN);
        while let Some(&word) = words.rest().first() {
            if words.take("FORCE") {
                force = true;
            } else if words.take("JUSTID") {
                only_ids = true;
            } else if words.take_with("IDLE", 1) {
                delivered_ms = Some(now_ms.wrapping_sub(number(words.word()?, "IDLE option")?));
            } else if words.take_with("TIME", 1) {
                delivered_ms = Some(number(words.word()?, "TIME option")?);
            } else if words.take_with("RETRYCOUNT", 1) {
                deliveries = u64::try_from(number(words.word()?, "RETRYCOUNT option")?).ok();
            } else if words.take_with("LASTID", 1) {
                last_id = strict_id(words.word()?).map_err(|_| INVALID_ID)?;
            } else {
                let text = [b"ERR Unrecognized XCLAIM option '", c_text(word), b"'"];
                return Err(Error::owned(text.concat()));
            }
        }
        // A time that cannot be is replaced by the present.
        let delivered_ms = delivered_ms.filter(|ms| (0..=now_ms).contains(ms)).unwrap_or(now_ms);
        Ok(Claim { ids, min_idle_ms, delivered_ms, deliveries, force, only_ids, last_id })
    }
}

/// Gives a pending entry to the consumer that a claim names.
fn give(ctx: &mut Ctx, id: StreamId, pending: Pending) -> Outcome {
    let (key, group, consumer) = (ctx.argv[1], ctx.argv[2], ctx.argv[3]);
    let now_ms = ctx.now().wall_ms();
    // Releases before 7.2 create the consumer with the first entry that it gets.
    if ctx.version() < Version::V7_2 {
        see_consumer(ctx, key, group, consumer)?;
    }
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    if let Some(group) = stream.groups.get_mut(group)
        && let Some(consumer) = group.find(consumer)
    {
        group.deliver(id, Pending { consumer, ..pending });
        group.consumer_mut(consumer).active_ms = now_ms;
    }
    stream.done_unwatched(None, 1);
    ctx.node.signal_delivered(ctx.db(), key);
    Ok(())
}

/// Forgets a pending entry that the stream no longer has.
fn forget(ctx: &mut Ctx, id: StreamId) -> Outcome {
    let (key, group) = (ctx.argv[1], ctx.argv[2]);
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let was_pending = stream.groups.get_mut(group).is_some_and(|group| group.acknowledge(id));
    stream.done_unwatched(None, was_pending as usize);
    Ok(())
}

/// Writes a claimed entry: its id alone, or the whole.
fn write_claimed(ctx: &mut Ctx, id: StreamId, only_ids: bool) -> Outcome {
    let (stream, reply) = ctx.read_quietly::<Stream>(ctx.argv[1]);
    match stream.and_then(|stream| stream.get(id)) {
        Some(entry) if !only_ids => write_entry(reply, &entry),
        _ => reply.bulk(&id.text()),
    }
    Ok(())
}

fn xclaim(ctx: &mut Ctx) -> Outcome {
    let (key, name, consumer) = (ctx.argv[1], ctx.argv[2], ctx.argv[3]);
    let has_group = ctx.read::<Stream>(key)?.is_some_and(|stream| stream.groups.contains_key(name));
    if !has_group {
        return Err(no_key_or_group(key, name));
    }
    let claim = Claim::parse(ctx)?;
    let now_ms = ctx.now().wall_ms();
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    if let Some(group) = stream.groups.get_mut(name)
        && claim.last_id > group.last_id
    {
        group.last_id = claim.last_id;
        stream.done_unwatched(None, 1);
    } else {
        stream.unchanged();
    }
    if ctx.version() >= Version::V7_2 {
        see_consumer(ctx, key, name, consumer)?;
    }
    let (at, mut count) = (ctx.reply.defer(), 0);
    for &id in &claim.ids {
        let Some(stream) = ctx.edit::<Stream>(key)? else { break };
        let exists = stream.get(id).is_some();
        let known = stream.groups.get(name).and_then(|group| group.pending(id));
        if !exists {
            forget(ctx, id)?;
            continue;
        }
        let before = match known {
            Some(before) if now_ms.wrapping_sub(before.delivered_ms) < claim.min_idle_ms => continue,
            Some(before) => before,
            None if claim.force => Pending { consumer: 0, delivered_ms: now_ms, deliveries: 1 },
            None => continue,
        };
        let more = before.deliveries.wrapping_add(!claim.only_ids as u64);
        let deliveries = claim.deliveries.unwrap_or(more);
        give(ctx, id, Pending { delivered_ms: claim.delivered_ms, deliveries, ..before })?;
        write_claimed(ctx, id, claim.only_ids)?;
        count += 1;
    }
    ctx.reply.end_array(at, count);
    Ok(())
}

fn xautoclaim(ctx: &mut Ctx) -> Outcome {
    /// How many pending entries a call looks at for each that it may claim.
    const ATTEMPTS: usize = 10;
    const MAX_COUNT: i64 = i64::MAX / 16;
    let (key, name, consumer) = (ctx.argv[1], ctx.argv[2], ctx.argv[3]);
    let min_idle_ms = num::parse_i64(ctx.argv[4])
        .ok_or(Error::new("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?
        .max(0);
    let start = range_start(ctx.argv[5])?;
    let (mut count, mut only_ids) = (100, false);
    let mut words = ctx.words(6);
    while !words.is_empty() {
        if words.take_with("COUNT", 1) {
            let most = num::parse_i64(words.word()?).filter(|count| (1..=MAX_COUNT).contains(count));
            count = most.ok_or(Error::new("ERR COUNT must be > 0"))? as usize;
        } else if words.take("JUSTID") {
            only_ids = true;
        } else {
            return Err(error::SYNTAX);
        }
    }
    let has_group = ctx.read::<Stream>(key)?.is_some_and(|stream| stream.groups.contains_key(name));
    if !has_group {
        return Err(no_key_or_group(key, name));
    }
    if ctx.version() >= Version::V7_2 {
        see_consumer(ctx, key, name, consumer)?;
    }
    let now_ms = ctx.now().wall_ms();
    let Some(stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let (mut claimed, mut gone, mut next) = (Vec::new(), Vec::new(), None);
    let pending = stream.groups.get(name).map(|group| group.pending_range(start, StreamId::MAX));
    let mut attempts = count.saturating_mul(ATTEMPTS);
    for (id, pending) in pending.into_iter().flatten() {
        if attempts == 0 || claimed.len() + gone.len() == count {
            next = Some(id);
            break;
        }
        attempts -= 1;
        if stream.get(id).is_none() {
            gone.push(id);
        } else if now_ms.wrapping_sub(pending.delivered_ms) >= min_idle_ms {
            claimed.push((id, *pending));
        }
    }
    gone.iter().try_for_each(|&id| forget(ctx, id))?;
    ctx.reply.array(3);
    ctx.reply.bulk(&next.unwrap_or_default().text());
    ctx.reply.array(claimed.len());
    for (id, before) in claimed {
        let deliveries = before.deliveries.wrapping_add(!only_ids as u64);
        give(ctx, id, Pending { delivered_ms: now_ms, deliveries, ..before })?;
        write_claimed(ctx, id, only_ids)?;
    }
    ctx.reply.array(gone.len());
    gone.iter().for_each(|id| ctx.reply.bulk(&id.text()));
    Ok(())
}
