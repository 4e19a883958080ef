//! Streams: their entries. `stream_deletes` has XDEL and its kin, `stream_producers` idempotent producers, `stream_reads` XREAD and
//! XREADGROUP, `stream_groups` consumer groups, `stream_info` XINFO.

use super::command::*;
use super::ctx::{Ctx, Words};
use super::stream_deletes::take_references;
use super::stream_producers::Origin;
use crate::error::{self, Error, Outcome};
use crate::store::Stream;
use crate::store::stream::{Entry, StreamId, Threshold, Trim, WrittenId, node};
use crate::version::Version;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "xadd",
        arity: -5,
        since: "5.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec {
            notes: "UPDATE instead of INSERT because of the optional trimming feature",
            ..key(&["RW", "update"], 1)
        }],
        tips: &["nondeterministic_output"],
        summary: "Appends an entry to a stream, which is created if it is missing.",
        complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
        run: xadd,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xlen",
        arity: 2,
        since: "5.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Counts the entries of a stream.",
        run: xlen,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xrange",
        arity: -4,
        since: "5.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the entries in a range of ids.",
        complexity: RANGE_COMPLEXITY,
        run: xrange,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xrevrange",
        arity: -4,
        since: "5.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the entries in a range of ids, in reverse order.",
        complexity: RANGE_COMPLEXITY,
        run: xrevrange,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xsetid",
        arity: -3,
        since: "5.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the last id of a stream; replication uses it.",
        run: xsetid,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xtrim",
        arity: -4,
        since: "5.0.0",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Removes the oldest entries of a stream.",
        complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
        run: xtrim,
        ..Command::of(Group::Stream)
    },
];

const RANGE_COMPLEXITY: &str = "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).";

pub(super) const INVALID_ID: Error = Error::new("ERR Invalid stream ID specified as stream command argument");
const TOO_LARGE: Error = Error::new("ERR Elements are too large to be stored");
const NOT_GREATER: Error =
    Error::new("ERR The ID specified in XADD is equal or smaller than the target stream top item");

const LIMIT_WITHOUT_TILDE: Error =
    Error::new("ERR syntax error, LIMIT cannot be used without the special ~ option");

/// Parses an id that names one entry; a missing number is 0.
///
/// # Errors
/// If it is not such an id.
pub(super) fn strict_id(word: &[u8]) -> Result<StreamId, Error> {
    WrittenId::parse_strict(word, 0).ok_or(INVALID_ID)
}

/// Parses the start of a range, which is excluded after `(`.
///
/// # Errors
/// If it is not an id, or no id follows the excluded one.
pub(super) fn range_start(word: &[u8]) -> Result<StreamId, Error> {
    match excluded(word) {
        Some(rest) => strict_id(rest)?.next().ok_or(Error::new("ERR invalid start ID for the interval")),
        None => bound(word, 0),
    }
}

/// Parses the end of a range, which is excluded after `(`.
///
/// # Errors
/// If it is not an id, or no id precedes the excluded one.
pub(super) fn range_end(word: &[u8]) -> Result<StreamId, Error> {
    match excluded(word) {
        Some(rest) => {
            let id = WrittenId::parse_strict(rest, u64::MAX).ok_or(INVALID_ID)?;
            id.previous().ok_or(Error::new("ERR invalid end ID for the interval"))
        }
        None => bound(word, u64::MAX),
    }
}

fn excluded(word: &[u8]) -> Option<&[u8]> {
    word.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

fn bound(word: &[u8], missing_seq: u64) -> Result<StreamId, Error> {
    WrittenId::parse(word).and_then(|id| id.with_seq(missing_seq)).ok_or(INVALID_ID)
}

/// Writes an entry: its id, and an array of fields and values.
pub(super) fn write_entry(reply: &mut Reply, entry: &Entry) {
    reply.array(2);
    write_parts(reply, entry);
}

/// Writes an entry that was claimed on the way: also the ms since its last delivery, and how often it was delivered.
pub(super) fn write_claimed_entry(reply: &mut Reply, entry: &Entry, idle_ms: i64, deliveries: u64) {
    reply.array(4);
    write_parts(reply, entry);
    reply.int(idle_ms);
    reply.int(deliveries as i64);
}

fn write_parts(reply: &mut Reply, entry: &Entry) {
    let mut digits = itoa::Buffer::new();
    reply.bulk(&entry.id.text());
    reply.array(entry.len * 2);
    for (field, value) in entry.pairs() {
        reply.bulk(field.bytes(&mut digits));
        reply.bulk(value.bytes(&mut digits));
    }
}

/// Writes entries as an array.
pub(super) fn write_entries<'a>(reply: &mut Reply, entries: impl Iterator<Item = Entry<'a>>) {
    let at = reply.defer();
    let mut count = 0;
    for entry in entries {
        write_entry(reply, &entry);
        count += 1;
    }
    reply.end_array(at, count);
}

/// The options of XADD and XTRIM.
#[derive(Default)]
struct Options<'a> {
    trim: Option<Trim>,
    no_stream: bool,
    origin: Option<Origin<'a>>,
}

impl<'a> Options<'a> {
    /// Parses options until one is none of them: the id of XADD, which is left in `words`.
    fn parse(words: &mut Words<'a>, is_xadd: bool, ctx: &Ctx) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        let (mut threshold, mut is_approximate, mut limit, mut references) = (None, false, None, None);
        let knows_references = ctx.version() >= Version::V8_2;
        let knows_origins = is_xadd && ctx.version() >= Version::V8_6;
        while let Some(&word) = words.rest().first() {
            let is_threshold = |name: &str| word.eq_ignore_ascii_case(name.as_bytes()) && words.len() > 1;
            if is_xadd && word == b"*" {
                break;
            } else if is_threshold("MAXLEN") || is_threshold("MINID") {
                if threshold.is_some() {
                    return Err(Error::new(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                let found = parse_threshold(words)?;
                (threshold, is_approximate) = (Some(found.0), found.1);
            } else if words.take_with("LIMIT", 1) {
                let most = words.int()?;
                limit = Some(
                    u64::try_from(most).map_err(|_| Error::new("ERR The LIMIT argument must be >= 0."))?,
                );
            } else if is_xadd && words.take("NOMKSTREAM") {
                options.no_stream = true;
            } else if knows_references && take_references(words, &mut references) {
                continue;
            } else if knows_origins && let Some(origin) = Origin::take(words, options.origin)? {
                options.origin = Some(origin);
            } else if is_xadd {
                // Redis checks the id before the combination of options.
                WrittenId::parse(word)
                    .filter(|id| !matches!(id, WrittenId::Min | WrittenId::Max))
                    .ok_or(INVALID_ID)?;
                break;
            } else {
                return Err(error::SYNTAX);
            }
        }
        if options.origin.is_some() && words.rest().first().is_some_and(|id| *id != b"*") {
            return Err(Error::new(
                "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs",
            ));
        }
        let Some(threshold) = threshold else {
            return match limit {
                Some(1..) => Err(Error::new(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                )),
                Some(0) if is_xadd => Err(LIMIT_WITHOUT_TILDE),
                _ if is_xadd => Ok(options),
                _ => Err(Error::new("ERR syntax error, XTRIM must be called with a trimming strategy")),
            };
        };
        if limit.is_some() && !is_approximate {
            return Err(LIMIT_WITHOUT_TILDE);
        }
        let limit = limit.unwrap_or(if is_approximate { default_limit(ctx) } else { 0 });
        let references = references.unwrap_or_default();
        options.trim = Some(Trim { threshold, is_approximate, limit, references });
        Ok(options)
    }
}

/// Parses `MAXLEN` or `MINID` with its operator and its argument. Returns also whether only whole nodes are removed.
fn parse_threshold(words: &mut Words) -> Result<(Threshold, bool), Error> {
    let is_maxlen = words.take("MAXLEN") || !words.take("MINID");
    let is_approximate = words.len() > 1 && words.take("~");
    if !is_approximate && words.len() > 1 {
        words.take("=");
    }
    let threshold = if is_maxlen {
        let most = words.int()?.try_into();
        Threshold::MaxLen(most.map_err(|_| Error::new("ERR The MAXLEN argument must be >= 0."))?)
    } else {
        Threshold::MinId(strict_id(words.word()?)?)
    };
    Ok((threshold, is_approximate))
}

/// Returns how many entries an approximate trim removes at most: those of a hundred nodes.
fn default_limit(ctx: &Ctx) -> u64 {
    match ctx.node.store.limits.stream_node_max_entries.saturating_mul(100) {
        0 => 10_000,
        most => most.min(1_000_000),
    }
}

fn xadd(ctx: &mut Ctx) -> Outcome {
    let mut words = ctx.words(2);
    let options = Options::parse(&mut words, true, ctx)?;
    let written = words.pop();
    let fields = words.rest();
    if fields.is_empty() || fields.len() % 2 == 1 {
        return Err(error::wrong_arity("xadd"));
    }
    let written = written.filter(|word| *word != b"*").and_then(WrittenId::parse);
    if written.and_then(|id| id.with_seq(0)) == Some(StreamId::MIN) {
        return Err(Error::new("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let key = ctx.argv[1];
    let last_id = match ctx.edit::<Stream>(key)? {
        Some(stream) => stream.last_id,
        None if options.no_stream => {
            ctx.reply.null();
            return Ok(());
        }
        None => StreamId::MIN,
    };
    let now_ms = ctx.now().wall_ms();
    let origin = options.origin.map(|origin| (origin.producer, origin.id_of(fields)));
    if let Some((producer, id)) = &origin
        && let Some(mut stream) = ctx.edit::<Stream>(key)?
        && let Some(known) = stream.producers.find(producer, id, now_ms)
    {
        stream.producers.duplicates = stream.producers.duplicates.wrapping_add(1);
        stream.done_unwatched(None, 1);
        ctx.reply.bulk(&known.text());
        return Ok(());
    }
    if last_id == StreamId::MAX {
        return Err(Error::new(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ));
    }
    let id = new_id(written, last_id, now_ms).ok_or(match written {
        // Releases before 7.2 take the end of the numbers of a ms for another error.
        Some(WrittenId::AnyOfMs(ms)) if ms == last_id.ms && ctx.version() < Version::V7_2 => TOO_LARGE,
        _ => NOT_GREATER,
    })?;
    if fields.iter().map(|part| part.len()).sum::<usize>() > node::MAX_BYTES {
        return Err(TOO_LARGE);
    }
    let mut edit = ctx.edit_or_create::<Stream>(key)?;
    let (stream, limits) = edit.with_limits();
    stream.append(id, fields, limits);
    if let Some((producer, used)) = &origin {
        stream.producers.remember(producer, used, id, now_ms);
    }
    edit.done("xadd", 1);
    ctx.reply.bulk(&id.text());
    ctx.node.signal_ready(ctx.db(), key);
    // The entry and the trim count as one change.
    if let (Some(trim), Some(mut edit)) = (options.trim, ctx.edit::<Stream>(key)?) {
        match edit.trim(&trim) {
            0 => edit.unchanged(),
            _ => edit.done("xtrim", 0),
        }
    }
    Ok(())
}

/// Returns the id of a new entry, given what the client wrote (`None` for `*`), or `None` if it is not greater than the last.
fn new_id(written: Option<WrittenId>, last_id: StreamId, now_ms: i64) -> Option<StreamId> {
    let id = match written {
        None => {
            let now = StreamId { ms: now_ms.max(0) as u64, seq: 0 };
            if now.ms > last_id.ms { Some(now) } else { last_id.next() }
        }
        Some(WrittenId::AnyOfMs(ms)) if ms == last_id.ms => {
            last_id.seq.checked_add(1).map(|seq| StreamId { ms, seq })
        }
        Some(WrittenId::AnyOfMs(ms)) => Some(StreamId { ms, seq: 0 }),
        Some(id) => id.with_seq(0),
    };
    id.filter(|id| *id > last_id)
}

fn xtrim(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(&mut ctx.words(2), false, ctx)?;
    let mut removed = 0;
    if let (Some(trim), Some(mut edit)) = (options.trim, ctx.edit::<Stream>(ctx.argv[1])?) {
        removed = edit.trim(&trim);
        edit.done_if_any("xtrim", removed as usize);
    }
    ctx.reply.int(removed as i64);
    Ok(())
}

fn xlen(ctx: &mut Ctx) -> Outcome {
    let len = ctx.read::<Stream>(ctx.argv[1])?.map_or(0, Stream::len);
    ctx.reply.int(len as i64);
    Ok(())
}

fn xrange(ctx: &mut Ctx) -> Outcome {
    range(ctx, false)
}

fn xrevrange(ctx: &mut Ctx) -> Outcome {
    range(ctx, true)
}

fn range(ctx: &mut Ctx, is_reverse: bool) -> Outcome {
    let (start, end) = if is_reverse { (3, 2) } else { (2, 3) };
    let (start, end) = (range_start(ctx.argv[start])?, range_end(ctx.argv[end])?);
    let mut count = usize::MAX;
    let mut words = ctx.words(4);
    while !words.is_empty() {
        if !words.take_with("COUNT", 1) {
            return Err(error::SYNTAX);
        }
        count = words.int()?.max(0) as usize;
    }
    let (stream, reply) = ctx.read_and_reply::<Stream>(ctx.argv[1])?;
    match stream {
        None => reply.array(0),
        Some(_) if count == 0 => reply.null_array(),
        Some(stream) if is_reverse => write_entries(reply, stream.range_back(start, end).take(count)),
        Some(stream) => write_entries(reply, stream.range(start, end).take(count)),
    }
    Ok(())
}

fn xsetid(ctx: &mut Ctx) -> Outcome {
    let smaller = |than: &str| Error::owned(format!("ERR The ID specified in XSETID is smaller than {than}"));
    let id = strict_id(ctx.argv[2])?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::MIN);
    let mut words = ctx.words(3);
    while !words.is_empty() {
        if words.take_with("ENTRIESADDED", 1) {
            let count = u64::try_from(words.int()?);
            entries_added = Some(count.map_err(|_| Error::new("ERR entries_added must be positive"))?);
        } else if words.take_with("MAXDELETEDID", 1) {
            max_deleted_id = strict_id(words.word()?)?;
            if id < max_deleted_id {
                return Err(smaller("the provided max_deleted_entry_id"));
            }
        } else {
            return Err(error::SYNTAX);
        }
    }
    let knows_deleted = ctx.version() >= Version::V7_2;
    let mut stream = ctx.edit::<Stream>(ctx.argv[1])?.ok_or(error::NO_SUCH_KEY)?;
    if knows_deleted && id < stream.max_deleted_id {
        return Err(smaller("current max_deleted_entry_id"));
    }
    if !stream.is_empty() && id < stream.last_live_id() {
        return Err(smaller("the target stream top item"));
    }
    if !stream.is_empty() && entries_added.is_some_and(|count| count < stream.len() as u64) {
        return Err(Error::new(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    stream.last_id = id;
    if let Some(count) = entries_added {
        stream.entries_added = count;
    }
    if max_deleted_id != StreamId::MIN {
        stream.max_deleted_id = max_deleted_id;
    }
    stream.done_unwatched(Some("xsetid"), 1);
    ctx.reply.ok();
    Ok(())
}
