//! Commands for the expiry of hash fields.

use super::command::*;
use super::ctx::Ctx;
use super::expiry::{Base, Unit};
use super::hash_ex::passed_event;
use super::hash_fields::{self, Arguments, Family};
use crate::error::{Error, Outcome};
use crate::store::Hash;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "hexpire",
        arity: -6,
        since: "7.4.0",
        since_valkey: "9.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of fields in seconds.",
        complexity: "O(N)",
        changes: NO_DENYOOM,
        run: hexpire,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hexpireat",
        arity: -6,
        since: "7.4.0",
        since_valkey: "9.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of fields to a Unix time in seconds.",
        complexity: "O(N)",
        changes: NO_DENYOOM,
        run: hexpireat,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hexpiretime",
        arity: -5,
        since: "7.4.0",
        since_valkey: "9.0.0",
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
        since_valkey: "9.0.0",
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
        since_valkey: "9.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of fields in milliseconds.",
        complexity: "O(N)",
        changes: NO_DENYOOM,
        run: hpexpire,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpexpireat",
        arity: -6,
        since: "7.4.0",
        since_valkey: "9.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of fields to a Unix time in milliseconds.",
        complexity: "O(N)",
        changes: NO_DENYOOM,
        run: hpexpireat,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hpexpiretime",
        arity: -5,
        since: "7.4.0",
        since_valkey: "9.0.0",
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
        since_valkey: "9.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the time to live of fields in milliseconds.",
        complexity: "O(N)",
        changes: NONDETERMINISTIC,
        run: hpttl,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "httl",
        arity: -5,
        since: "7.4.0",
        since_valkey: "9.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the time to live of fields in seconds.",
        complexity: "O(N)",
        changes: NONDETERMINISTIC,
        run: httl,
        ..Command::of(Group::Hash)
    },
];

const NO_DENYOOM: &[Change] = &[Change { since: ("8.0.0", "9.0.0"), apply: |row| row.flags &= !DENYOOM }];

const NONDETERMINISTIC: &[Change] =
    &[Change { since: ("8.0.0", NEVER), apply: |row| row.tips = &["nondeterministic_output"] }];

// The replies for a field.
const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const SET: i64 = 1;
const DELETED: i64 = 2;

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
    let passed = passed_event(ctx);
    let arguments = parse_expire(ctx, unit, base);
    // Redis checks the type of the key before the arguments.
    if ctx.version().is_valkey() {
        arguments.clone()?;
    }
    let edit = ctx.edit::<Hash>(key)?;
    let (end_ms, arguments) = arguments?;
    let fields = arguments.fields;
    let Some(mut edit) = edit else { return reply_each(ctx.reply, fields, |_| NO_FIELD) };
    let (hash, limits) = edit.with_limits();
    hash.prepare_expiries(limits);
    let expire_field = |field: &&[u8]| {
        let Some(old_ms) = hash.expiry(field) else { return NO_FIELD };
        if !arguments.condition.allows(old_ms, end_ms) {
            NOT_MET
        } else if end_ms <= now_ms {
            hash.remove(field);
            DELETED
        } else {
            hash.set_expiry_in(field, Some(end_ms), limits);
            SET
        }
    };
    let outcomes: Vec<i64> = fields.iter().map(expire_field).collect();
    let count = |outcome| outcomes.iter().filter(|&&other| other == outcome).count();
    let (deleted, set) = (count(DELETED), count(SET));
    edit.done_if_any(if deleted > 0 { passed } else { "hexpire" }, deleted + set);
    ctx.node.stats.expired_hash_fields += deleted as u64;
    reply_each(ctx.reply, outcomes, |outcome| outcome)
}

/// Parses `key time [NX|XX|GT|LT] FIELDS numfields field …`. Returns the new expiry (Unix time in ms) and the other arguments.
fn parse_expire<'a>(ctx: &Ctx<'a>, unit: Unit, base: Base) -> Result<(i64, Arguments<'a>), Error> {
    let end_ms = hash_fields::expiry_ms(ctx, ctx.argv[2], unit, base);
    // Valkey reads the time last.
    if !ctx.version().is_valkey() {
        end_ms.clone()?;
    }
    let arguments = hash_fields::parse(ctx, 3, Family::Expire)?;
    Ok((end_ms?, arguments))
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
    let fields = hash_fields::parse_fields(ctx, 2);
    if ctx.version().is_valkey() {
        fields.clone()?;
    }
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
    let fields = hash_fields::parse_fields(ctx, 2);
    if ctx.version().is_valkey() {
        fields.clone()?;
    }
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
