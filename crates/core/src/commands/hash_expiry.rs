//! Commands for the expiry of hash fields.

use super::command::*;
use super::ctx::Ctx;
use super::expiry::{Base, Unit, to_unix_ms};
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::Hash;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "hexpire",
        arity: -6,
        since: "7.4.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of fields in seconds.",
        complexity: "O(N)",
        run: hexpire,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hexpireat",
        arity: -6,
        since: "7.4.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of fields to a Unix time in seconds.",
        complexity: "O(N)",
        run: hexpireat,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hexpiretime",
        arity: -5,
        since: "7.4.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the expiry of fields as a Unix time in seconds.",
        complexity: "O(N)",
        run: hexpiretime,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpersist",
        arity: -5,
        since: "7.4.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Removes the expiry of fields.",
        complexity: "O(N)",
        run: hpersist,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpexpire",
        arity: -6,
        since: "7.4.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of fields in milliseconds.",
        complexity: "O(N)",
        run: hpexpire,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpexpireat",
        arity: -6,
        since: "7.4.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of fields to a Unix time in milliseconds.",
        complexity: "O(N)",
        run: hpexpireat,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpexpiretime",
        arity: -5,
        since: "7.4.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the expiry of fields as a Unix time in milliseconds.",
        complexity: "O(N)",
        run: hpexpiretime,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpttl",
        arity: -5,
        since: "7.4.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the time to live of fields in milliseconds.",
        complexity: "O(N)",
        run: hpttl,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "httl",
        arity: -5,
        since: "7.4.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the time to live of fields in seconds.",
        complexity: "O(N)",
        run: httl,
        ..Command::of(Group::Hash)
    },
];

/// The latest expiry of a field, as Unix time in ms.
const MAX_UNIX_MS: i64 = 0x0000_ffff_ffff_ffff >> 2;

// The replies for a field.
const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const SET: i64 = 1;
const DELETED: i64 = 2;

/// The condition NX, XX, GT or LT on a new expiry. A field without an expiry counts as the last to expire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Nx,
    Xx,
    Gt,
    Lt,
}

impl Condition {
    fn of(word: &[u8]) -> Condition {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => Condition::Nx,
            b"xx" => Condition::Xx,
            b"gt" => Condition::Gt,
            b"lt" => Condition::Lt,
            _ => Condition::Always,
        }
    }

    fn allows(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        match self {
            Condition::Always => true,
            Condition::Nx => old_ms.is_none(),
            Condition::Xx => old_ms.is_some(),
            Condition::Gt => old_ms.is_some_and(|old_ms| new_ms > old_ms),
            Condition::Lt => old_ms.is_none_or(|old_ms| new_ms < old_ms),
        }
    }
}

fn hexpire(ctx: &mut Ctx) -> Outcome {
    expire(ctx, Unit::Seconds, Base::Now)
}

fn hpexpire(ctx: &mut Ctx) -> Outcome {
    expire(ctx, Unit::Milliseconds, Base::Now)
}

fn hexpireat(ctx: &mut Ctx) -> Outcome {
    expire(ctx, Unit::Seconds, Base::Epoch)
}

fn hpexpireat(ctx: &mut Ctx) -> Outcome {
    expire(ctx, Unit::Milliseconds, Base::Epoch)
}

fn expire(ctx: &mut Ctx, unit: Unit, base: Base) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    // Redis checks the type of the key before the arguments.
    let words = parse_expire(ctx, unit, base);
    let edit = ctx.edit::<Hash>(key)?;
    let (end_ms, condition, fields) = words?;
    let Some(mut edit) = edit else { return reply_each(ctx.reply, fields, |_| NO_FIELD) };
    let hash = &mut *edit;
    hash.become_extended();
    let outcomes: Vec<i64> =
        fields.iter().map(|field| expire_field(hash, field, condition, end_ms, now_ms)).collect();
    let count = |outcome| outcomes.iter().filter(|&&other| other == outcome).count();
    let (deleted, set) = (count(DELETED), count(SET));
    edit.done_if_any(if deleted > 0 { "hdel" } else { "hexpire" }, deleted + set);
    ctx.node.stats.expired_hash_fields += deleted as u64;
    reply_each(ctx.reply, outcomes, |outcome| outcome)
}

/// Parses `key time [NX|XX|GT|LT] FIELDS numfields field …`. Returns the new expiry (Unix time in ms), the condition and the
/// fields.
fn parse_expire<'a>(
    ctx: &Ctx<'a>,
    unit: Unit,
    base: Base,
) -> Result<(i64, Condition, &'a [&'a [u8]]), Error> {
    let time = ctx.int(2)?;
    if time < 0 {
        return Err(Error::new("ERR invalid expire time, must be >= 0"));
    }
    let end_ms = to_unix_ms(time, unit, base, ctx.now().wall_ms())
        .filter(|&end_ms| end_ms <= MAX_UNIX_MS)
        .ok_or_else(|| error::invalid_expire(ctx.command.name))?;
    let condition = Condition::of(ctx.argv[3]);
    let at = if condition == Condition::Always { 3 } else { 4 };
    let fields = fields(ctx, at, Error::new("ERR Parameter `numFields` should be greater than 0"))?;
    Ok((end_ms, condition, fields))
}

fn expire_field(hash: &mut Hash, field: &[u8], condition: Condition, end_ms: i64, now_ms: i64) -> i64 {
    let Some(old_ms) = hash.expiry(field) else { return NO_FIELD };
    if !condition.allows(old_ms, end_ms) {
        NOT_MET
    } else if end_ms <= now_ms {
        hash.remove(field);
        DELETED
    } else {
        hash.set_expiry(field, Some(end_ms));
        SET
    }
}

fn httl(ctx: &mut Ctx) -> Outcome {
    ttl(ctx, Unit::Seconds, Base::Now)
}

fn hpttl(ctx: &mut Ctx) -> Outcome {
    ttl(ctx, Unit::Milliseconds, Base::Now)
}

fn hexpiretime(ctx: &mut Ctx) -> Outcome {
    ttl(ctx, Unit::Seconds, Base::Epoch)
}

fn hpexpiretime(ctx: &mut Ctx) -> Outcome {
    ttl(ctx, Unit::Milliseconds, Base::Epoch)
}

/// Replies with the time to live or the expiry of each field. Rounds seconds up.
fn ttl(ctx: &mut Ctx, unit: Unit, base: Base) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    let fields = fields(ctx, 2, NOT_POSITIVE);
    let (hash, reply) = ctx.read_and_reply::<Hash>(ctx.argv[1])?;
    reply_each(reply, fields?, |name| match hash.and_then(|hash| hash.field(name)) {
        Some(field) if !field.is_expired(now_ms) => field.expires_at_ms.map_or(NO_EXPIRY, |end_ms| {
            let ms = if base == Base::Now { end_ms - now_ms } else { end_ms };
            if unit == Unit::Seconds { (ms + 999) / 1000 } else { ms }
        }),
        _ => NO_FIELD,
    })
}

fn hpersist(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    let fields = fields(ctx, 2, NOT_POSITIVE);
    let edit = ctx.edit::<Hash>(key)?;
    let fields = fields?;
    let Some(mut edit) = edit else { return reply_each(ctx.reply, fields, |_| NO_FIELD) };
    let hash = &mut *edit;
    let persist = |name: &&[u8]| match hash.field(name) {
        Some(field) if !field.is_expired(now_ms) => {
            let had_expiry = field.expires_at_ms.is_some();
            hash.set_expiry(name, None);
            if had_expiry { SET } else { NO_EXPIRY }
        }
        _ => NO_FIELD,
    };
    let outcomes: Vec<i64> = fields.iter().map(persist).collect();
    edit.done_if_any("hpersist", outcomes.contains(&SET) as usize);
    reply_each(ctx.reply, outcomes, |outcome| outcome)
}

const NOT_POSITIVE: Error = Error::new("ERR Number of fields must be a positive integer");

/// Parses `FIELDS numfields field …` from argument `at` on. Returns the fields.
fn fields<'a>(ctx: &Ctx<'a>, at: usize, not_positive: Error) -> Result<&'a [&'a [u8]], Error> {
    let mut words = ctx.words(at);
    if !words.take("FIELDS") {
        return Err(Error::new("ERR Mandatory argument FIELDS is missing or not at the right position"));
    }
    let count = words.pop().and_then(num::parse_i64).filter(|&count| count > 0).ok_or(not_positive)?;
    if count as u64 != words.len() as u64 {
        return Err(Error::new("ERR The `numfields` parameter must match the number of arguments"));
    }
    Ok(words.rest())
}

fn reply_each<T>(
    reply: &mut Reply,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    number: impl Fn(T) -> i64,
) -> Outcome {
    let items = items.into_iter();
    reply.array(items.len());
    for item in items {
        reply.int(number(item));
    }
    Ok(())
}
