//! Hash commands, except those for the expiry of fields (`hash_expiry.rs`).

use super::command::*;
use super::ctx::Ctx;
use super::random;
use super::scan;
use crate::error::{self, Error, Outcome};
use crate::long_double::LongDouble;
use crate::num;
use crate::store::Hash;
use crate::store::hash::Field;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "hdel",
        arity: -3,
        since: "2.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Deletes fields.",
        complexity: "O(N)",
        run: hdel,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hexists",
        arity: 3,
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Tells whether a field exists.",
        complexity: "O(1)",
        run: hexists,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hget",
        arity: 3,
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the value of a field.",
        complexity: "O(1)",
        run: hget,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hgetall",
        arity: 2,
        since: "2.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives all fields and values.",
        complexity: "O(N) where N is the size of the hash.",
        run: hgetall,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hincrby",
        arity: 4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds to the integer in a field.",
        complexity: "O(1)",
        run: hincrby,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hincrbyfloat",
        arity: 4,
        since: "2.6.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds to the number in a field.",
        complexity: "O(1)",
        run: hincrbyfloat,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hkeys",
        arity: 2,
        since: "2.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives all fields.",
        complexity: "O(N) where N is the size of the hash.",
        run: hkeys,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hlen",
        arity: 2,
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Counts the fields.",
        complexity: "O(1)",
        run: hlen,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hmget",
        arity: -3,
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the values of several fields.",
        complexity: "O(N)",
        run: hmget,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hmset",
        arity: -4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets several fields.",
        complexity: "O(N)",
        run: hmset,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hrandfield",
        arity: -2,
        since: "6.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives random fields.",
        complexity: "O(N)",
        run: hrandfield,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hscan",
        arity: -3,
        since: "2.8.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Walks through the fields.",
        complexity: "O(1)",
        run: hscan,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hset",
        arity: -4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets fields and creates the hash if it is missing.",
        complexity: "O(1)",
        run: hset,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hsetnx",
        arity: 4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Sets a field if it does not exist.",
        complexity: "O(1)",
        run: hsetnx,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hstrlen",
        arity: 3,
        since: "3.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Gives the length of a field's value.",
        complexity: "O(1)",
        run: hstrlen,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hvals",
        arity: 2,
        since: "2.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives all values.",
        complexity: "O(N) where N is the size of the hash.",
        run: hvals,
        ..Command::of(Group::Hash)
    },
];

const NOT_AN_INTEGER: Error = Error::new("ERR hash value is not an integer");
const NOT_A_FLOAT: Error = Error::new("ERR hash value is not a float");

fn hset(ctx: &mut Ctx) -> Outcome {
    let added = set_fields(ctx)?;
    ctx.reply.int(added);
    Ok(())
}

fn hmset(ctx: &mut Ctx) -> Outcome {
    set_fields(ctx)?;
    ctx.reply.ok();
    Ok(())
}

/// Sets the fields that the arguments name. Returns how many of them are new.
fn set_fields(ctx: &mut Ctx) -> Result<i64, Error> {
    let key = ctx.argv[1];
    let (pairs, []) = ctx.argv[2..].as_chunks::<2>() else {
        return Err(error::wrong_arity(ctx.command.name));
    };
    let mut edit = ctx.edit_or_create::<Hash>(key)?;
    let (hash, limits) = edit.with_limits();
    hash.expect(pairs.len(), limits);
    let mut added = 0;
    for [field, value] in pairs {
        added += hash.set(field, value, limits) as i64;
    }
    edit.done("hset", pairs.len());
    Ok(added)
}

fn hsetnx(ctx: &mut Ctx) -> Outcome {
    let [_, key, field, value] = *ctx.argv else { return Err(error::SYNTAX) };
    let now_ms = ctx.now().wall_ms();
    let mut edit = ctx.edit_or_create::<Hash>(key)?;
    let free = !edit.contains(field, now_ms);
    if free {
        let (hash, limits) = edit.with_limits();
        hash.set(field, value, limits);
        edit.done("hset", 1);
    }
    ctx.reply.int(free as i64);
    Ok(())
}

fn hget(ctx: &mut Ctx) -> Outcome {
    let (key, field) = (ctx.argv[1], ctx.argv[2]);
    ctx.node.expire_accessed_fields(ctx.db(), key, &[field]);
    with_hash(ctx, key, |hash, now_ms, reply| match hash {
        Some(hash) => reply.bulk_or_null(hash.get(field, now_ms)),
        None => reply.null(),
    })
}

fn hmget(ctx: &mut Ctx) -> Outcome {
    let (key, fields) = (ctx.argv[1], &ctx.argv[2..]);
    ctx.node.expire_accessed_fields(ctx.db(), key, fields);
    with_hash(ctx, key, |hash, now_ms, reply| {
        reply.array(fields.len());
        for field in fields {
            reply.bulk_or_null(hash.and_then(|hash| hash.get(field, now_ms)));
        }
    })
}

fn hexists(ctx: &mut Ctx) -> Outcome {
    let (key, field) = (ctx.argv[1], ctx.argv[2]);
    ctx.node.expire_accessed_fields(ctx.db(), key, &[field]);
    with_hash(ctx, key, |hash, now_ms, reply| {
        reply.int(hash.is_some_and(|hash| hash.contains(field, now_ms)) as i64);
    })
}

fn hstrlen(ctx: &mut Ctx) -> Outcome {
    let (key, field) = (ctx.argv[1], ctx.argv[2]);
    ctx.node.expire_accessed_fields(ctx.db(), key, &[field]);
    with_hash(ctx, key, |hash, now_ms, reply| {
        reply.int(hash.and_then(|hash| hash.get(field, now_ms)).map_or(0, <[u8]>::len) as i64);
    })
}

fn hlen(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    with_hash(ctx, key, |hash, _, reply| reply.int(hash.map_or(0, Hash::len) as i64))
}

/// Looks up a hash and calls `write` with it (`None`: no such key), the Unix time in ms, and the reply.
fn with_hash(ctx: &mut Ctx, key: &[u8], write: impl FnOnce(Option<&Hash>, i64, &mut Reply)) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    let (hash, reply) = ctx.read_and_reply::<Hash>(key)?;
    write(hash, now_ms, reply);
    Ok(())
}

fn hgetall(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    with_hash(ctx, key, |hash, now_ms, reply| {
        let at = reply.defer();
        let mut pairs = 0;
        for field in alive(hash, now_ms) {
            reply.bulk(field.name);
            reply.bulk(field.value);
            pairs += 1;
        }
        reply.end_map(at, pairs);
    })
}

fn hkeys(ctx: &mut Ctx) -> Outcome {
    list(ctx, |field| field.name)
}

fn hvals(ctx: &mut Ctx) -> Outcome {
    list(ctx, |field| field.value)
}

fn list(ctx: &mut Ctx, part: for<'a> fn(&Field<'a>) -> &'a [u8]) -> Outcome {
    let key = ctx.argv[1];
    with_hash(ctx, key, |hash, now_ms, reply| {
        let at = reply.defer();
        let mut len = 0;
        for field in alive(hash, now_ms) {
            reply.bulk(part(&field));
            len += 1;
        }
        reply.end_array(at, len);
    })
}

fn alive(hash: Option<&Hash>, now_ms: i64) -> impl Iterator<Item = Field<'_>> {
    hash.into_iter().flat_map(Hash::iter).filter(move |field| !field.is_expired(now_ms))
}

fn hdel(ctx: &mut Ctx) -> Outcome {
    let (key, fields) = (ctx.argv[1], &ctx.argv[2..]);
    let Some(mut edit) = ctx.edit::<Hash>(key)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let hash = &mut *edit;
    let mut deleted = 0;
    for field in fields {
        // A field that has expired and is still there counts, as in Redis.
        deleted += hash.remove(field) as usize;
        if hash.is_empty() {
            break;
        }
    }
    edit.done_if_any("hdel", deleted);
    ctx.reply.int(deleted as i64);
    Ok(())
}

fn hincrby(ctx: &mut Ctx) -> Outcome {
    let (key, field) = (ctx.argv[1], ctx.argv[2]);
    let by = ctx.int(3)?;
    let now_ms = ctx.now().wall_ms();
    let mut edit = ctx.edit_or_create::<Hash>(key)?;
    let old = match edit.get(field, now_ms) {
        Some(value) => num::parse_i64(value).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let sum = old.checked_add(by).ok_or(error::OVERFLOW)?;
    let mut digits = itoa::Buffer::new();
    let (hash, limits) = edit.with_limits();
    hash.set_keeping_expiry(field, digits.format(sum).as_bytes(), limits);
    edit.done_without_rearm("hincrby", 1);
    ctx.reply.int(sum);
    Ok(())
}

fn hincrbyfloat(ctx: &mut Ctx) -> Outcome {
    let (key, field) = (ctx.argv[1], ctx.argv[2]);
    let by = LongDouble::parse(ctx.argv[3]).ok_or(error::NOT_A_FLOAT)?;
    if !by.is_finite() {
        return Err(Error::new("ERR value is NaN or Infinity"));
    }
    let now_ms = ctx.now().wall_ms();
    let mut edit = ctx.edit_or_create::<Hash>(key)?;
    let old = match edit.get(field, now_ms) {
        Some(value) => LongDouble::parse(value).ok_or(NOT_A_FLOAT)?,
        None => LongDouble::from(0),
    };
    let sum = old + by;
    if !sum.is_finite() {
        return Err(error::NAN_OR_INFINITY);
    }
    let text = sum.to_string();
    let (hash, limits) = edit.with_limits();
    hash.set_keeping_expiry(field, text.as_bytes(), limits);
    edit.done_without_rearm("hincrbyfloat", 1);
    ctx.reply.bulk(text.as_bytes());
    Ok(())
}

fn hscan(ctx: &mut Ctx) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    scan::scan_value::<Hash>(ctx, |hash, options, found| {
        hash.scan(options.cursor, options.count, |field| {
            if !field.is_expired(now_ms) && options.matches(field.name) {
                found.push(field.name.to_vec());
                if !options.no_values {
                    found.push(field.value.to_vec());
                }
            }
        })
    })
}

fn hrandfield(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let Some(request) = random::Request::parse(ctx, "WITHVALUES")? else {
        return random_field(ctx, key);
    };
    let now_ms = ctx.now().wall_ms();
    let fields: Vec<(Vec<u8>, Vec<u8>)> = alive(ctx.read::<Hash>(key)?, now_ms)
        .map(|field| (field.name.to_vec(), field.value.to_vec()))
        .collect();
    random::reply(ctx, &fields, request, |reply, value| reply.bulk(value))
}

fn random_field(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    let names: Vec<Vec<u8>> =
        alive(ctx.read::<Hash>(key)?, now_ms).map(|field| field.name.to_vec()).collect();
    match ctx.pick(names.len(), 1).first() {
        Some(&at) => ctx.reply.bulk(&names[at]),
        None => ctx.reply.null(),
    }
    Ok(())
}
