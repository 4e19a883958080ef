//! XREAD and XREADGROUP, which may wait for entries.

use super::command::*;
use super::ctx::{Ctx, Origin};
use super::streams::{strict_id, write_claimed_entry, write_entries, write_entry};
use crate::error::{self, Error, Outcome, c_text};
use crate::node::session::{TimeoutReply, Wait};
use crate::num;
use crate::store::Stream;
use crate::store::stream::{Pending, StreamId};
use crate::version::Version;
use crate::wire::Protocol;

const COMPLEXITY: &str = "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.";

pub const COMMANDS: &[Command] = &[
    Command {
        name: "xread",
        arity: -4,
        since: "5.0.0",
        flags: READONLY | BLOCKING | MOVABLEKEYS,
        keys: &[streams(1)],
        summary: "Gives the entries of streams after given ids, or waits for one.",
        run: xread,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xreadgroup",
        arity: -7,
        since: "5.0.0",
        flags: WRITE | BLOCKING | MOVABLEKEYS,
        keys: &[streams(4)],
        summary: "Gives the entries that a group has not read yet, or those pending for a consumer.",
        complexity: COMPLEXITY,
        run: xreadgroup,
        ..Command::of(Group::Stream)
    },
];

/// Returns the specification of keys that follow STREAMS: the first half of the arguments.
const fn streams(from: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range { last: -1, step: 1, limit: 2 },
        ..key(&["RO", "access"], 0)
    }
}

/// From where a stream is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Behind this id.
    After(StreamId),
    /// What the group has not read, `>`.
    New,
}

/// A call of XREAD or XREADGROUP.
struct Read<'a> {
    timeout_ms: Option<u64>,
    /// The most entries of each stream; 0 means no limit.
    count: usize,
    no_ack: bool,
    /// How long entries have been pending that are claimed on the way, in ms.
    claim_ms: Option<i64>,
    /// The names of the group and the consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    keys: &'a [&'a [u8]],
    ids: &'a [&'a [u8]],
}

impl<'a> Read<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Read<'a>, Error> {
        let is_group = ctx.command.name == "xreadgroup";
        let mut read = Read {
            timeout_ms: None,
            count: 0,
            no_ack: false,
            claim_ms: None,
            group: None,
            keys: &[],
            ids: &[],
        };
        let mut words = ctx.words(1);
        loop {
            if words.is_empty() {
                return Err(error::SYNTAX);
            } else if words.take_with("BLOCK", 1) {
                read.timeout_ms = Some(block_timeout_ms(ctx, words.word()?)?);
            } else if words.take_with("COUNT", 1) {
                read.count = words.int()?.max(0) as usize;
            } else if words.take_with("STREAMS", 1) {
                let rest = words.rest();
                if !rest.len().is_multiple_of(2) {
                    return Err(unbalanced(ctx));
                }
                (read.keys, read.ids) = rest.split_at(rest.len() / 2);
                break;
            } else if words.take_with("GROUP", 2) {
                if !is_group {
                    return Err(only_xreadgroup("GROUP"));
                }
                read.group = Some((words.word()?, words.word()?));
            } else if words.take("NOACK") {
                if !is_group {
                    return Err(only_xreadgroup("NOACK"));
                }
                read.no_ack = true;
            } else if ctx.version() >= Version::V8_4 && words.take_with("CLAIM", 1) {
                if !is_group {
                    return Err(only_xreadgroup("CLAIM"));
                }
                read.claim_ms = Some(claim_ms(words.word()?)?);
            } else {
                return Err(error::SYNTAX);
            }
        }
        if is_group && read.group.is_none() {
            return Err(Error::new("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(read)
    }

    /// Returns the most entries of each stream.
    fn most(&self) -> usize {
        if self.count == 0 { usize::MAX } else { self.count }
    }

    /// Returns from where each stream is read.
    ///
    /// # Errors
    /// If a key holds another type, a group is missing, or an id is malformed.
    fn starts(&self, ctx: &mut Ctx) -> Result<Vec<From>, Error> {
        let mut starts = Vec::with_capacity(self.keys.len());
        for (key, id) in self.keys.iter().zip(self.ids) {
            let version = ctx.version();
            let knows_last = version >= Version::Valkey8_1;
            let stream = ctx.read::<Stream>(key)?;
            if let Some((name, _)) = self.group
                && !stream.is_some_and(|stream| stream.groups.contains_key(name))
            {
                return Err(no_group(key, name));
            }
            starts.push(match (c_text(id), self.group) {
                (b"$", None) => From::After(stream.map_or(StreamId::MIN, |stream| stream.last_id)),
                (b"$", Some(_)) => return Err(meaningless("$")),
                (b"+", None) if knows_last => From::After(before_last(stream, version)?),
                (b"+", Some(_)) if knows_last => return Err(meaningless("+")),
                (b">", None) => {
                    return Err(Error::new(
                        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
                         <consumer> option.",
                    ));
                }
                (b">", Some(_)) => From::New,
                _ => match strict_id(id)? {
                    // Redis writes `>` as this id.
                    StreamId::MAX if self.group.is_some() => From::New,
                    id => From::After(id),
                },
            });
        }
        Ok(starts)
    }

    /// Blocks the client until one of the streams has entries.
    fn wait(&self, ctx: &mut Ctx, starts: &[From], timeout_ms: u64) {
        // The request that runs again must not read `$` anew. It reads `+` anew, as in Redis.
        let texts: Vec<Vec<u8>> = starts
            .iter()
            .zip(self.ids)
            .map(|(start, word)| match start {
                From::After(id) if c_text(word) == b"$" => id.text().to_vec(),
                _ => word.to_vec(),
            })
            .collect();
        let options = ctx.argv.len() - self.ids.len();
        let argv: Vec<&[u8]> =
            ctx.argv[..options].iter().copied().chain(texts.iter().map(Vec::as_slice)).collect();
        let wait = if self.group.is_some() { Wait::StreamGroup } else { Wait::Stream };
        ctx.wait_for_as(wait, &argv, self.keys, timeout_ms, TimeoutReply::NullArray);
        if let (Some(claim_ms), Some((group, _)), true) = (self.claim_ms, self.group, ctx.may_wait()) {
            let due_ms =
                self.keys.iter().filter_map(|key| first_claimable_ms(ctx, key, group, claim_ms)).min();
            let (wall_ms, mono_ms) = (ctx.now().wall_ms(), ctx.now().mono_ms());
            let due_ms =
                due_ms.map(|due_ms| mono_ms.saturating_add(due_ms.saturating_sub(wall_ms).max(1) as u64));
            ctx.node.retry_at(ctx.id, due_ms);
        }
    }
}

/// Returns the Unix time in ms at which the oldest pending entry of a group can be claimed.
fn first_claimable_ms(ctx: &mut Ctx, key: &[u8], group: &[u8], claim_ms: i64) -> Option<i64> {
    let stream = ctx.read_quietly::<Stream>(key).0?;
    let group = stream.groups.get(group)?;
    let first = group.pending_until(i64::MAX).find(|id| stream.get(*id).is_some())?;
    Some(group.pending(first)?.delivered_ms.saturating_add(claim_ms))
}

fn claim_ms(word: &[u8]) -> Result<i64, Error> {
    let ms = num::parse_i64(word).ok_or(Error::new("ERR min-idle-time is not an integer or out of range"))?;
    if ms < 0 { Err(Error::new("ERR min-idle-time must be a positive integer")) } else { Ok(ms) }
}

fn block_timeout_ms(ctx: &Ctx, word: &[u8]) -> Result<u64, Error> {
    if ctx.origin == Origin::Script && ctx.version() < Version::V7_2 {
        let name = String::from_utf8_lossy(c_text(ctx.argv[0])).into_owned();
        return Err(format!("ERR {name} command is not allowed with BLOCK option from scripts").into());
    }
    let timeout_ms =
        num::parse_i64(word).ok_or(Error::new("ERR timeout is not an integer or out of range"))?;
    let timeout_ms = u64::try_from(timeout_ms).map_err(|_| Error::new("ERR timeout is negative"))?;
    let is_late = || (timeout_ms as i64).checked_add(ctx.now().wall_ms()).is_none();
    if ctx.version() >= Version::V7_2 && timeout_ms > 0 && is_late() {
        return Err(Error::new("ERR timeout is out of range"));
    }
    Ok(timeout_ms)
}

fn unbalanced(ctx: &Ctx) -> Error {
    if ctx.version() < Version::V7_2 {
        return Error::new(
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        );
    }
    let name = ctx.command.name;
    let symbol = match name {
        "xreadgroup" => " or '>'",
        _ if ctx.version() >= Version::V8_0 => ", '+', or '$'",
        _ => " or '$'",
    };
    let text = format!("ERR Unbalanced '{name}' list of streams: for each stream key an ID{symbol}");
    (text + " must be specified.").into()
}

fn only_xreadgroup(option: &str) -> Error {
    format!("ERR The {option} option is only supported by XREADGROUP. You called XREAD instead.").into()
}

fn meaningless(id: &str) -> Error {
    let text = format!(
        "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
         specifying a proper ID, or use the > ID to get new messages. The {id} ID would just return an empty result set."
    );
    text.into()
}

fn no_group(key: &[u8], group: &[u8]) -> Error {
    let text = [
        b"NOGROUP No such key '",
        c_text(key),
        b"' or consumer group '",
        c_text(group),
        b"' in XREADGROUP with GROUP option",
    ];
    Error::owned(text.concat())
}

/// Returns the id before that of the last entry, so that a read gives this entry. Before 8.0 that is the last one that was added,
/// even if it is gone.
fn before_last(stream: Option<&Stream>, version: Version) -> Result<StreamId, Error> {
    let Some(stream) = stream else { return Ok(StreamId::MIN) };
    let last_id = if version >= Version::V8_0 { stream.last_live_id() } else { stream.last_id };
    let needs_one = version < Version::V8_0 && !version.is_valkey_since(Version::Valkey9_0);
    match last_id.previous() {
        None if needs_one => Err(Error::new("ERR the stream last element ID is 0-0")),
        before => Ok(before.unwrap_or_default()),
    }
}

fn xread(ctx: &mut Ctx) -> Outcome {
    read_or_wait(ctx)
}

fn xreadgroup(ctx: &mut Ctx) -> Outcome {
    read_or_wait(ctx)
}

fn read_or_wait(ctx: &mut Ctx) -> Outcome {
    let mut read = Read::parse(ctx)?;
    if let Some(key) = ctx.ready_key.filter(|_| ctx.version() < Version::V7_2) {
        return serve_woken(ctx, &read, key);
    }
    let starts = read.starts(ctx)?;
    let (start, at) = (ctx.reply.len(), ctx.reply.defer());
    let mut served = 0;
    for (key, from) in read.keys.iter().zip(&starts) {
        // As in Redis, nothing is claimed behind a stream that is not read for new entries.
        read.claim_ms = read.claim_ms.filter(|_| *from == From::New);
        served += serve(ctx, &read, key, *from, false)? as usize;
    }
    if served > 0 {
        match ctx.reply.protocol {
            Protocol::Resp2 => ctx.reply.end_array(at, served),
            Protocol::Resp3 => ctx.reply.end_map(at, served),
        }
        return Ok(());
    }
    ctx.reply.truncate(start);
    match read.timeout_ms {
        Some(timeout_ms) => read.wait(ctx, &starts, timeout_ms),
        None => ctx.reply.null_array(),
    }
    Ok(())
}

/// Serves a blocked client as releases before 7.2 do: with the stream that woke it alone, even if its new entries are gone.
fn serve_woken(ctx: &mut Ctx, read: &Read, key: &[u8]) -> Outcome {
    let Some(at) = read.keys.iter().position(|other| *other == key) else {
        ctx.waits_again = true;
        return Ok(());
    };
    const NO_KEY: Error = Error::new("UNBLOCKED the stream key no longer exists");
    const NO_GROUP: Error =
        Error::new("NOGROUP the consumer group this client was blocked on no longer exists");
    let slot = ctx.find_quietly(key).and_then(|slot| ctx.entry(slot));
    let stream: Option<&Stream> = slot.and_then(|entry| crate::store::ValueType::of(&entry.value));
    let Some(stream) = stream else {
        ctx.waits_again = read.group.is_none();
        return if read.group.is_some() { Err(NO_KEY) } else { Ok(()) };
    };
    let (from, is_served) = match read.group {
        Some((group, _)) => {
            let group = stream.groups.get(group).ok_or(NO_GROUP)?;
            (From::New, stream.last_id > group.last_id)
        }
        None => {
            let id = strict_id(read.ids[at])?;
            (From::After(id), stream.last_id > id)
        }
    };
    if !is_served {
        ctx.waits_again = true;
        return Ok(());
    }
    match ctx.reply.protocol {
        Protocol::Resp2 => ctx.reply.array(1),
        Protocol::Resp3 => ctx.reply.map(1),
    }
    serve(ctx, read, key, from, true)?;
    Ok(())
}

/// Writes the name of a stream and its entries. Returns false, and writes nothing, if there are none for this client, unless
/// `always` is true.
fn serve(ctx: &mut Ctx, read: &Read, key: &[u8], from: From, always: bool) -> Result<bool, Error> {
    let Some((group, consumer)) = read.group else {
        let From::After(id) = from else { return Ok(false) };
        let (stream, reply) = ctx.read_and_reply::<Stream>(key)?;
        let Some(stream) = stream.filter(|stream| always || stream.last_live_id() > id) else {
            return Ok(false);
        };
        begin_stream(reply, key);
        write_entries(reply, entries_after(stream, id).take(read.most()));
        return Ok(true);
    };
    let mut claimed = Vec::new();
    let new_after = match from {
        From::After(_) => None,
        From::New => {
            let now_ms = ctx.now().wall_ms();
            let Some(stream) = ctx.read::<Stream>(key)? else { return Ok(false) };
            let Some(group) = stream.groups.get(group) else { return Ok(false) };
            if let Some(claim_ms) = read.claim_ms {
                let pending = group.pending_until(now_ms.saturating_sub(claim_ms));
                let live = pending.filter(|id| stream.get(*id).is_some());
                claimed.extend(live.take(read.most()).filter_map(|id| Some((id, group.pending(id)?))));
            }
            let has_new = always || !stream.is_empty() && stream.last_live_id() > group.last_id;
            (claimed.len() < read.most() && has_new).then_some(group.last_id)
        }
    };
    // Releases before 7.2 create a consumer only with something to read.
    if ctx.version() >= Version::V7_2 || new_after.is_some() || from != From::New {
        see_consumer(ctx, key, group, consumer)?;
    }
    match (from, new_after) {
        (From::After(id), _) => serve_history(ctx, read, key, (group, consumer), id)?,
        (From::New, None) if claimed.is_empty() => return Ok(false),
        (From::New, new_after) => serve_new(ctx, read, key, (group, consumer), &claimed, new_after)?,
    }
    Ok(true)
}

fn begin_stream(reply: &mut crate::wire::Reply, key: &[u8]) {
    if reply.protocol == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

fn entries_after(stream: &Stream, id: StreamId) -> impl Iterator<Item = crate::store::stream::Entry<'_>> {
    // No id follows the largest.
    let start = id.next();
    stream.range(start.unwrap_or(StreamId::MAX), StreamId::MAX).filter(move |_| start.is_some())
}

/// Notes that a consumer tried to read, and creates it, with its event, if it is new.
///
/// # Errors
/// If the key holds another type.
pub(super) fn see_consumer(ctx: &mut Ctx, key: &[u8], group: &[u8], consumer: &[u8]) -> Result<(), Error> {
    let now_ms = ctx.now().wall_ms();
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let Some(found) = stream.groups.get_mut(group) else {
        stream.unchanged();
        return Ok(());
    };
    match found.find(consumer) {
        Some(known) => {
            found.consumer_mut(known).seen_ms = now_ms;
            stream.done_unwatched(None, 0);
        }
        None => {
            found.add_consumer(consumer, now_ms);
            stream.done_unwatched(Some("xgroup-createconsumer"), 1);
        }
    }
    Ok(())
}

/// Writes the entries that are pending for the consumer, and counts their delivery.
fn serve_history(
    ctx: &mut Ctx,
    read: &Read,
    key: &[u8],
    (group, consumer): (&[u8], &[u8]),
    after: StreamId,
) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    begin_stream(ctx.reply, key);
    let (stream, reply) = ctx.read_and_reply::<Stream>(key)?;
    let Some(stream) = stream else { return Ok(()) };
    let Some(found) = stream.groups.get(group) else { return Ok(()) };
    let Some(consumer) = found.find(consumer) else { return Ok(()) };
    let start = after.next().unwrap_or(StreamId::MAX);
    let mut delivered = Vec::new();
    let (at, mut written) = (reply.defer(), 0);
    for id in found.consumer(consumer).pending(start, StreamId::MAX).take(read.most()) {
        match stream.get(id) {
            Some(entry) => {
                write_entry(reply, &entry);
                delivered.push(id);
            }
            None => {
                reply.array(2);
                reply.bulk(&id.text());
                reply.null_array();
            }
        }
        written += 1;
    }
    reply.end_array(at, written);
    // Reading what is pending counts as a change before 7.4.
    let changes = (ctx.version() < Version::V7_4) as usize;
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    if let Some(found) = stream.groups.get_mut(group) {
        for id in delivered {
            if let Some(before) = found.pending(id) {
                let deliveries = before.deliveries.wrapping_add(1);
                found.deliver(id, Pending { delivered_ms: now_ms, deliveries, ..before });
            }
        }
    }
    stream.done_unwatched(None, changes);
    Ok(())
}

/// Writes the entries that the consumer claims, and those after `new_after` that the group has not read; makes them pending for
/// the consumer. New ones are not if they are not to be acknowledged.
fn serve_new(
    ctx: &mut Ctx,
    read: &Read,
    key: &[u8],
    (group, consumer): (&[u8], &[u8]),
    claimed: &[(StreamId, Pending)],
    new_after: Option<StreamId>,
) -> Outcome {
    let (now_ms, version) = (ctx.now().wall_ms(), ctx.version());
    begin_stream(ctx.reply, key);
    let (stream, reply) = ctx.read_and_reply::<Stream>(key)?;
    let Some(stream) = stream else { return Ok(()) };
    let mut ids = Vec::new();
    let (at, claims) = (reply.defer(), claimed.len());
    for (id, pending) in claimed {
        if let Some(entry) = stream.get(*id) {
            write_claimed_entry(
                reply,
                &entry,
                now_ms.saturating_sub(pending.delivered_ms),
                pending.deliveries,
            );
        }
    }
    let new = new_after.into_iter().flat_map(|after| entries_after(stream, after));
    for entry in new.take(read.most() - claims) {
        match read.claim_ms {
            Some(_) => write_claimed_entry(reply, &entry, 0, 0),
            None => write_entry(reply, &entry),
        }
        ids.push(entry.id);
    }
    reply.end_array(at, claims + ids.len());
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    stream.advance(group, &ids, version);
    if read.no_ack {
        ids.clear();
    }
    if let Some(found) = stream.groups.get_mut(group)
        && let Some(consumer) = found.find(consumer)
        && !(claimed.is_empty() && ids.is_empty())
    {
        for (id, before) in claimed {
            let deliveries = before.deliveries.wrapping_add(1);
            found.deliver(*id, Pending { consumer, delivered_ms: now_ms, deliveries });
        }
        for id in ids {
            found.deliver(id, Pending { consumer, delivered_ms: now_ms, deliveries: 1 });
        }
        found.consumer_mut(consumer).active_ms = now_ms;
    }
    stream.done_unwatched(None, 1);
    ctx.node.signal_delivered(ctx.db(), key);
    Ok(())
}
