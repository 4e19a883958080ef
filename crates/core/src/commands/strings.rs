//! String commands, including those for numbers in strings.

use super::command::*;
use super::conditions::Condition;
use super::ctx::{Ctx, Origin, Words};
use super::expiry::{Base, Unit, to_unix_ms};
use crate::error::{self, Error, Outcome};
use crate::long_double::LongDouble;
use crate::node::notify::Class;
use crate::store::StringValue;
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "append",
        arity: 3,
        since: "2.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Appends to a string and creates it if it is missing.",
        complexity: "O(1)",
        run: append,
        ..Command::of(Group::String)
    },
    Command {
        name: "decr",
        arity: 2,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Takes one from an integer.",
        complexity: "O(1)",
        run: decr,
        ..Command::of(Group::String)
    },
    Command {
        name: "decrby",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Takes a number from an integer.",
        complexity: "O(1)",
        run: decrby,
        ..Command::of(Group::String)
    },
    Command {
        name: "get",
        arity: 2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the value of a string.",
        complexity: "O(1)",
        run: get,
        ..Command::of(Group::String)
    },
    Command {
        name: "getdel",
        arity: 2,
        since: "6.2.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Gives the value of a string and deletes it.",
        complexity: "O(1)",
        run: getdel,
        ..Command::of(Group::String)
    },
    Command {
        name: "getex",
        arity: -2,
        since: "6.2.0",
        flags: WRITE | FAST,
        keys: &[KeySpec {
            flags: &["RW", "access", "update"],
            notes: "RW and UPDATE because it changes the TTL",
            begin: Begin::Index(1),
            find: Find::Range { last: 0, step: 1, limit: 0 },
        }],
        summary: "Gives the value of a string and sets or removes its expiry.",
        complexity: "O(1)",
        run: getex,
        ..Command::of(Group::String)
    },
    Command {
        name: "getrange",
        arity: 4,
        since: "2.4.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives a part of a string.",
        complexity: "O(N)",
        run: getrange,
        ..Command::of(Group::String)
    },
    Command {
        name: "getset",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Gives the old value of a string and sets a new one.",
        complexity: "O(1)",
        run: getset,
        ..Command::of(Group::String)
    },
    Command {
        name: "incr",
        arity: 2,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds one to an integer.",
        complexity: "O(1)",
        run: incr,
        ..Command::of(Group::String)
    },
    Command {
        name: "incrby",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds a number to an integer.",
        complexity: "O(1)",
        run: incrby,
        ..Command::of(Group::String)
    },
    Command {
        name: "incrbyfloat",
        arity: 3,
        since: "2.6.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds a floating-point number to a number.",
        complexity: "O(1)",
        run: incrbyfloat,
        ..Command::of(Group::String)
    },
    Command {
        name: "lcs",
        arity: -3,
        since: "7.0.0",
        flags: READONLY,
        keys: &[keys(&["RO", "access"], 1, 1, 1)],
        summary: "Finds the longest common subsequence of two strings.",
        complexity: "O(N*M)",
        run: super::lcs::lcs,
        ..Command::of(Group::String)
    },
    Command {
        name: "mget",
        arity: -2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[keys(&["RO", "access"], 1, -1, 1)],
        tips: &["request_policy:multi_shard"],
        summary: "Gives the values of several strings.",
        complexity: "O(N)",
        run: mget,
        ..Command::of(Group::String)
    },
    Command {
        name: "mset",
        arity: -3,
        since: "1.0.1",
        flags: WRITE | DENYOOM,
        keys: &[keys(&["OW", "update"], 1, -1, 2)],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        summary: "Sets several strings.",
        complexity: "O(N)",
        run: mset,
        ..Command::of(Group::String)
    },
    Command {
        name: "msetex",
        arity: -4,
        since: "8.4.0",
        since_valkey: "9.1.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[KeySpec {
            flags: &["OW", "update"],
            notes: "",
            begin: Begin::Index(1),
            find: Find::Count { count: 0, first: 1, step: 2 },
        }],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        summary: "Sets several strings, with a condition and an expiry if asked.",
        complexity: "O(N)",
        run: msetex,
        ..Command::of(Group::String)
    },
    Command {
        name: "msetnx",
        arity: -3,
        since: "1.0.1",
        flags: WRITE | DENYOOM,
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        keys: &[keys(&["OW", "insert"], 1, -1, 2)],
        summary: "Sets several strings if none of the keys exists.",
        complexity: "O(N)",
        changes: &[Change { since: ("7.2.0", ""), apply: |row| row.tips = &[] }],
        run: msetnx,
        ..Command::of(Group::String)
    },
    Command {
        name: "psetex",
        arity: 4,
        since: "2.6.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["OW", "update"], 1)],
        summary: "Sets a string with an expiry in milliseconds.",
        complexity: "O(1)",
        run: psetex,
        ..Command::of(Group::String)
    },
    Command {
        name: "set",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM,
        keys: &[KeySpec {
            flags: &["RW", "access", "update", "variable_flags"],
            notes: "RW and ACCESS due to the optional `GET` argument",
            begin: Begin::Index(1),
            find: Find::Range { last: 0, step: 1, limit: 0 },
        }],
        variable_flags: set_flags,
        summary: "Sets a string, with conditions and an expiry if asked.",
        complexity: "O(1)",
        run: set,
        ..Command::of(Group::String)
    },
    Command {
        name: "setex",
        arity: 4,
        since: "2.0.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["OW", "update"], 1)],
        summary: "Sets a string with an expiry in seconds.",
        complexity: "O(1)",
        run: setex,
        ..Command::of(Group::String)
    },
    Command {
        name: "setnx",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["OW", "insert"], 1)],
        summary: "Sets a string if the key does not exist.",
        complexity: "O(1)",
        run: setnx,
        ..Command::of(Group::String)
    },
    Command {
        name: "setrange",
        arity: 4,
        since: "2.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Overwrites a part of a string.",
        complexity: "O(1)",
        run: setrange,
        ..Command::of(Group::String)
    },
    Command {
        name: "strlen",
        arity: 2,
        since: "2.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Gives the length of a string in bytes.",
        complexity: "O(1)",
        run: strlen,
        ..Command::of(Group::String)
    },
    Command {
        name: "substr",
        arity: 4,
        since: "1.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives a part of a string; the old name of GETRANGE.",
        complexity: "O(N)",
        run: substr,
        ..Command::of(Group::String)
    },
];

const TOO_LONG: Error = Error::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

fn get(ctx: &mut Ctx) -> Outcome {
    reply_value(ctx, ctx.argv[1])
}

/// Writes the string at a key, or a null.
fn reply_value(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let (value, reply) = ctx.read_and_reply::<StringValue>(key)?;
    match value {
        Some(value) => reply.bulk(value.bytes(&mut itoa::Buffer::new())),
        None => reply.null(),
    }
    Ok(())
}

/// Returns a copy of the string at a key, for a command that reads.
fn current(ctx: &mut Ctx, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    Ok(ctx.read::<StringValue>(key)?.map(StringValue::to_vec))
}

/// The expiry that a command gives to a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expiry {
    #[default]
    None,
    Keep,
    Persist,
    /// At this Unix time in ms.
    At(i64),
}

/// The text of a time, its unit and its base.
type Time<'a> = (&'a [u8], Unit, Base);

/// Parses EX, PX, EXAT or PXAT with its time. If one of them came before (`again`), only the same one may follow, and the last
/// counts. Returns `None` if the next argument is not one of them.
fn parse_expiry<'a>(words: &mut Words<'a>, again: Option<Time>) -> Option<Time<'a>> {
    for (keyword, unit, base) in [
        ("EX", Unit::Seconds, Base::Now),
        ("PX", Unit::Milliseconds, Base::Now),
        ("EXAT", Unit::Seconds, Base::Epoch),
        ("PXAT", Unit::Milliseconds, Base::Epoch),
    ] {
        let allowed = again.is_none_or(|(_, before, from)| (before, from) == (unit, base));
        if allowed && words.take_with(keyword, 1) {
            return words.pop().map(|time| (time, unit, base));
        }
    }
    None
}

/// Converts a time to an expiry.
///
/// # Errors
/// If the time is not an integer, not positive, or the expiry exceeds 64 bits.
fn expiry_at(ctx: &Ctx, (time, unit, base): Time) -> Result<Expiry, Error> {
    let time = crate::num::parse_i64(time).ok_or(error::NOT_AN_INTEGER)?;
    let at = if time > 0 { to_unix_ms(time, unit, base, ctx.now().wall_ms()) } else { None };
    at.map(Expiry::At).ok_or_else(|| error::invalid_expire(ctx.command.name))
}

/// Returns what a SET does with its key: with GET it also reads it.
fn set_flags(call: &[&[u8]], version: Version) -> &'static [&'static str] {
    let has = |option: &str| call.iter().skip(3).any(|word| word.eq_ignore_ascii_case(option.as_bytes()));
    let compares = || ["IFEQ", "IFNE", "IFDEQ", "IFDNE"].iter().any(|option| has(option));
    if has("GET") {
        &["RW", "access", "update"]
    } else if version >= Version::V8_4 && compares() {
        &["RW", "update"]
    } else {
        &["OW", "update"]
    }
}

fn set(ctx: &mut Ctx) -> Outcome {
    let (key, value) = (ctx.argv[1], ctx.argv[2]);
    let version = ctx.version();
    let (mut nx, mut xx, mut get, mut keep, mut time) = (false, false, false, false, None);
    let mut condition = None;
    let mut words = ctx.words(3);
    while !words.is_empty() {
        // Redis accepts NX and XX behind a condition on the value, but not before one.
        let excluded = version.is_valkey() && condition.is_some();
        if !xx && !excluded && words.take("NX") {
            nx = true;
        } else if !nx && !excluded && words.take("XX") {
            xx = true;
        } else if words.take("GET") {
            get = true;
        } else if !nx
            && !xx
            && let Some(taken) = Condition::take(&mut words, condition, version)
        {
            condition = Some(taken);
        } else if time.is_none() && words.take("KEEPTTL") {
            keep = true;
        } else if !keep {
            time = Some(parse_expiry(&mut words, time).ok_or(error::SYNTAX)?);
        } else {
            return Err(error::SYNTAX);
        }
    }
    let expiry = match time {
        Some(time) => expiry_at(ctx, time)?,
        None if keep => Expiry::Keep,
        None => Expiry::None,
    };
    if get {
        reply_value(ctx, key)?;
    }
    let exists = ctx.exists(key);
    let mut refused = nx && exists || xx && !exists;
    if let Some(condition) = condition
        && !refused
    {
        refused = !condition.allows_set(ctx, key)?;
    }
    if refused {
        if !get {
            ctx.reply.null();
        }
        return Ok(());
    }
    match expiry {
        // Valkey 9.0 sets no value that has expired already.
        Expiry::At(at_ms) if version.is_valkey_since(Version::Valkey9_0) && at_ms <= ctx.now().wall_ms() => {
            ctx.expire_now(key);
        }
        expiry => assign(ctx, key, value, expiry),
    }
    if !get {
        ctx.reply.ok();
    }
    Ok(())
}

/// Sets a string and its expiry, with the `set` event and, if it expires, the `expire` event.
fn assign(ctx: &mut Ctx, key: &[u8], value: &[u8], expiry: Expiry) {
    // Valkey 9.1 does not look for integers in what a script passes.
    let stays_text = ctx.origin == Origin::Script && ctx.version().is_valkey_since(Version::Valkey9_1);
    let value = if stays_text { StringValue::text(value) } else { StringValue::new(value) };
    let mut edit = ctx.set_key(key, value, expiry == Expiry::Keep);
    if let Expiry::At(at_ms) = expiry {
        edit.set_key_expiry(at_ms);
    }
    edit.done("set", 1);
    if let Expiry::At(_) = expiry {
        ctx.notify(key, Class::GENERIC, "expire");
    }
}

fn setnx(ctx: &mut Ctx) -> Outcome {
    let free = !ctx.exists(ctx.argv[1]);
    if free {
        assign(ctx, ctx.argv[1], ctx.argv[2], Expiry::None);
    }
    ctx.reply.int(free as i64);
    Ok(())
}

fn setex(ctx: &mut Ctx) -> Outcome {
    set_with_ttl(ctx, Unit::Seconds)
}

fn psetex(ctx: &mut Ctx) -> Outcome {
    set_with_ttl(ctx, Unit::Milliseconds)
}

fn set_with_ttl(ctx: &mut Ctx, unit: Unit) -> Outcome {
    let expiry = expiry_at(ctx, (ctx.argv[2], unit, Base::Now))?;
    assign(ctx, ctx.argv[1], ctx.argv[3], expiry);
    ctx.reply.ok();
    Ok(())
}

fn getset(ctx: &mut Ctx) -> Outcome {
    reply_value(ctx, ctx.argv[1])?;
    assign(ctx, ctx.argv[1], ctx.argv[2], Expiry::None);
    Ok(())
}

fn getdel(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let value = current(ctx, key)?;
    ctx.reply.bulk_or_null(value.as_deref());
    if value.is_some() {
        ctx.delete(key);
    }
    Ok(())
}

fn getex(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let mut words = ctx.words(2);
    let (mut persist, mut time) = (false, None);
    while !words.is_empty() {
        if time.is_none() && words.take("PERSIST") {
            persist = true;
        } else if !persist {
            time = Some(parse_expiry(&mut words, time).ok_or(error::SYNTAX)?);
        } else {
            return Err(error::SYNTAX);
        }
    }
    let expiry = match time {
        Some(time) => expiry_at(ctx, time),
        None if persist => Ok(Expiry::Persist),
        None => Ok(Expiry::Keep),
    };
    // Valkey 9.0 checks the time before it looks for the key.
    if ctx.version().is_valkey_since(Version::Valkey9_0) {
        expiry.clone()?;
    }
    let Some(value) = current(ctx, key)? else {
        ctx.reply.null();
        return Ok(());
    };
    let expiry = expiry?;
    ctx.reply.bulk(&value);
    let Some(slot) = ctx.find_quietly(key) else { return Ok(()) };
    match expiry {
        Expiry::At(at_ms) if at_ms <= ctx.now().wall_ms() => ctx.expire_now(key),
        Expiry::At(at_ms) => ctx.set_expiry(key, slot, Some(at_ms)),
        Expiry::Persist if ctx.entry(slot).is_some_and(|entry| entry.expires_at_ms().is_some()) => {
            ctx.set_expiry(key, slot, None);
        }
        _ => {}
    }
    Ok(())
}

fn mget(ctx: &mut Ctx) -> Outcome {
    let keys = &ctx.argv[1..];
    ctx.reply.array(keys.len());
    for key in keys {
        match current(ctx, key) {
            Ok(Some(bytes)) => ctx.reply.bulk(&bytes),
            _ => ctx.reply.null(),
        }
    }
    Ok(())
}

fn mset(ctx: &mut Ctx) -> Outcome {
    let pairs = pairs(ctx)?;
    for [key, value] in pairs {
        assign(ctx, key, value, Expiry::None);
    }
    ctx.reply.ok();
    Ok(())
}

fn msetnx(ctx: &mut Ctx) -> Outcome {
    let pairs = pairs(ctx)?;
    let free = !pairs.iter().any(|[key, _]| ctx.exists(key));
    if free {
        for [key, value] in pairs {
            assign(ctx, key, value, Expiry::None);
        }
    }
    ctx.reply.int(free as i64);
    Ok(())
}

/// The conditions NX and XX of MSETEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existence {
    Any,
    None,
    All,
}

fn msetex(ctx: &mut Ctx) -> Outcome {
    let (pairs, words) = counted_pairs(ctx)?;
    let (existence, expiry) = parse_msetex_options(ctx, words)?;
    let allowed = match existence {
        Existence::Any => true,
        Existence::None => !pairs.iter().any(|[key, _]| ctx.exists(key)),
        Existence::All => pairs.iter().all(|[key, _]| ctx.exists(key)),
    };
    if allowed {
        for [key, value] in pairs {
            if ctx.version().is_valkey() {
                assign(ctx, key, value, expiry);
            } else {
                assign_expiry_first(ctx, key, value, expiry);
            }
        }
    }
    ctx.reply.int(allowed as i64);
    Ok(())
}

/// Sets a string as [`assign`] does, with the `expire` event before the `set` event.
fn assign_expiry_first(ctx: &mut Ctx, key: &[u8], value: &[u8], expiry: Expiry) {
    let mut edit = ctx.set_key(key, StringValue::new(value), expiry == Expiry::Keep);
    if let Expiry::At(at_ms) = expiry {
        edit.set_key_expiry(at_ms);
        let postponed = edit.postpone();
        ctx.notify(key, Class::GENERIC, "expire");
        postponed.resume(ctx).done("set", 1);
    } else {
        edit.done("set", 1);
    }
}

/// The keys and values of MSETEX, and the options behind them.
type PairsAndOptions<'a> = (&'a [[&'a [u8]; 2]], Words<'a>);

/// Parses the number of keys, the keys and their values.
fn counted_pairs<'a>(ctx: &Ctx<'a>) -> Result<PairsAndOptions<'a>, Error> {
    let is_valkey = ctx.version().is_valkey();
    let count = crate::num::parse_i64(ctx.argv[1])
        .filter(|count| (1..=i64::from(i32::MAX)).contains(count))
        .ok_or(Error::new(match is_valkey {
            true => "ERR invalid numkeys value or out of range",
            false => "ERR invalid numkeys value",
        }))?;
    let mut words = ctx.words(2);
    let pairs = words.rest().get(..2 * count as usize).ok_or(match is_valkey {
        true => error::SYNTAX,
        false => Error::new("ERR wrong number of key-value pairs"),
    })?;
    words.skip(pairs.len());
    Ok((pairs.as_chunks::<2>().0, words))
}

/// Parses NX, XX, KEEPTTL and the options for an expiry.
fn parse_msetex_options(ctx: &Ctx, mut words: Words) -> Result<(Existence, Expiry), Error> {
    let (mut existence, mut keep, mut time) = (Existence::Any, false, None);
    while !words.is_empty() {
        if existence != Existence::All && words.take("NX") {
            existence = Existence::None;
        } else if existence != Existence::None && words.take("XX") {
            existence = Existence::All;
        } else if time.is_none() && words.take("KEEPTTL") {
            keep = true;
        } else if !keep {
            time = Some(parse_expiry(&mut words, time).ok_or(error::SYNTAX)?);
        } else {
            return Err(error::SYNTAX);
        }
    }
    let expiry = match time {
        Some(time) => expiry_at(ctx, time)?,
        None if keep => Expiry::Keep,
        None => Expiry::None,
    };
    Ok((existence, expiry))
}

fn pairs<'a>(ctx: &Ctx<'a>) -> Result<&'a [[&'a [u8]; 2]], Error> {
    match ctx.argv[1..].as_chunks::<2>() {
        (pairs, []) => Ok(pairs),
        _ => Err(error::wrong_arity(ctx.command.name)),
    }
}

fn strlen(ctx: &mut Ctx) -> Outcome {
    let len = ctx.read::<StringValue>(ctx.argv[1])?.map_or(0, |value| value.len());
    ctx.reply.int(len as i64);
    Ok(())
}

fn append(ctx: &mut Ctx) -> Outcome {
    let (key, tail) = (ctx.argv[1], ctx.argv[2]);
    let max_len = ctx.node.config.proto_max_bulk_len;
    let len = match ctx.edit::<StringValue>(key)? {
        Some(value) if (value.len() + tail.len()) as u64 > max_len => return Err(TOO_LONG),
        Some(mut value) => {
            let bytes = value.make_raw();
            bytes.extend_from_slice(tail);
            let len = bytes.len();
            value.done("append", 1);
            len
        }
        None => {
            ctx.set_key(key, StringValue::new(tail), false).done("append", 1);
            tail.len()
        }
    };
    ctx.reply.int(len as i64);
    Ok(())
}

fn setrange(ctx: &mut Ctx) -> Outcome {
    let (key, part) = (ctx.argv[1], ctx.argv[3]);
    let offset = ctx.int(2)?;
    if offset < 0 {
        return Err(Error::new("ERR offset is out of range"));
    }
    let old_len = ctx.edit::<StringValue>(key)?.map(|value| value.len());
    if part.is_empty() {
        ctx.reply.int(old_len.unwrap_or(0) as i64);
        return Ok(());
    }
    if (offset as u64).saturating_add(part.len() as u64) > ctx.node.config.proto_max_bulk_len {
        return Err(TOO_LONG);
    }
    let mut value = ctx.edit_or_create::<StringValue>(key)?;
    let bytes = value.make_raw();
    let end = offset as usize + part.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset as usize..end].copy_from_slice(part);
    let len = bytes.len();
    value.done("setrange", 1);
    ctx.reply.int(len as i64);
    Ok(())
}

fn getrange(ctx: &mut Ctx) -> Outcome {
    let (start, end) = (ctx.int(2)?, ctx.int(3)?);
    let (value, reply) = ctx.read_and_reply::<StringValue>(ctx.argv[1])?;
    let mut digits = itoa::Buffer::new();
    reply.bulk(slice(value.map_or(&[], |value| value.bytes(&mut digits)), start, end));
    Ok(())
}

fn substr(ctx: &mut Ctx) -> Outcome {
    getrange(ctx)
}

/// Returns the bytes from `start` to `end`, both included. Negative indexes count from the end.
fn slice(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    let len = bytes.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_end = |index: i64| if index < 0 { (len.saturating_add(index)).max(0) } else { index };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end || len == 0 { &[] } else { &bytes[start as usize..=end as usize] }
}

fn incr(ctx: &mut Ctx) -> Outcome {
    add(ctx, 1)
}

fn decr(ctx: &mut Ctx) -> Outcome {
    add(ctx, -1)
}

fn incrby(ctx: &mut Ctx) -> Outcome {
    add(ctx, ctx.int(2)?)
}

fn decrby(ctx: &mut Ctx) -> Outcome {
    let by = ctx.int(2)?;
    add(ctx, by.checked_neg().ok_or(Error::new("ERR decrement would overflow"))?)
}

fn add(ctx: &mut Ctx, by: i64) -> Outcome {
    let key = ctx.argv[1];
    let mut value = ctx.edit_or_insert::<StringValue>(key, |_| StringValue::Int(0).into())?;
    let old = value.as_i64().ok_or(error::NOT_AN_INTEGER)?;
    let sum = old.checked_add(by).ok_or(error::OVERFLOW)?;
    *value = StringValue::Int(sum);
    value.done("incrby", 1);
    ctx.reply.int(sum);
    Ok(())
}

fn incrbyfloat(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let old = match ctx.edit::<StringValue>(key)? {
        Some(value) => LongDouble::parse(&value.to_vec()).ok_or(error::NOT_A_FLOAT)?,
        None => LongDouble::from(0),
    };
    let by = LongDouble::parse(ctx.argv[2]).ok_or(error::NOT_A_FLOAT)?;
    let sum = old + by;
    if !sum.is_finite() {
        return Err(error::NAN_OR_INFINITY);
    }
    let text = sum.to_string();
    let had_expiry = (ctx.find_quietly(key).and_then(|slot| ctx.entry(slot)))
        .is_some_and(|entry| entry.expires_at_ms().is_some());
    // The value changes in place: no event says that it was overwritten.
    let mut edit = ctx.edit_or_create::<StringValue>(key)?;
    let (value, limits) = edit.with_limits();
    *value = StringValue::text(text.as_bytes());
    value.settle(key.len(), had_expiry, limits.version);
    edit.done("incrbyfloat", 1);
    ctx.reply.bulk(text.as_bytes());
    Ok(())
}
