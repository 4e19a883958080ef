//! Sets, one at a time.

use super::command::*;
use super::ctx::Ctx;
use super::random::{MAX_DRAWS, MAX_REPLY};
use super::scan;
use crate::error::{self, Outcome};
use crate::node::notify::Class;
use crate::num;
use crate::store::{Set, ValueType};
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "sadd",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Adds members and creates the set if it is missing.",
        complexity: "O(1)",
        run: sadd,
        ..Command::of(Group::Set)
    },
    Command {
        name: "scard",
        arity: 2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Counts the members.",
        complexity: "O(1)",
        run: scard,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sismember",
        arity: 3,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Tells whether a member is in a set.",
        complexity: "O(1)",
        run: sismember,
        ..Command::of(Group::Set)
    },
    Command {
        name: "smembers",
        arity: 2,
        since: "1.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives all members.",
        complexity: "O(N) where N is the set cardinality.",
        run: smembers,
        ..Command::of(Group::Set)
    },
    Command {
        name: "smismember",
        arity: -3,
        since: "6.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Tells for several members whether they are in a set.",
        complexity: "O(N)",
        run: smismember,
        ..Command::of(Group::Set)
    },
    Command {
        name: "smove",
        arity: 4,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["RW", "insert"], 2)],
        summary: "Moves a member to another set.",
        complexity: "O(1)",
        run: smove,
        ..Command::of(Group::Set)
    },
    Command {
        name: "spop",
        arity: -2,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Removes random members.",
        complexity: "O(N)",
        run: spop,
        ..Command::of(Group::Set)
    },
    Command {
        name: "srandmember",
        arity: -2,
        since: "1.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives random members.",
        complexity: "O(N)",
        run: srandmember,
        ..Command::of(Group::Set)
    },
    Command {
        name: "srem",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes members.",
        complexity: "O(N)",
        run: srem,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sscan",
        arity: -3,
        since: "2.8.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Walks through the members.",
        complexity: "O(1)",
        run: sscan,
        ..Command::of(Group::Set)
    },
];

fn sadd(ctx: &mut Ctx) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    let limits = ctx.node.store.limits.clone();
    if ctx.edit::<Set>(key)?.is_none() {
        let set = Set::for_members(members[0], members.len(), &limits);
        ctx.insert(key, set.into());
    }
    let set = ctx.edit_or_create::<Set>(key)?;
    set.expect(members.len(), &limits);
    let added = members.iter().filter(|member| set.add(member, &limits)).count();
    if added > 0 {
        ctx.changed(key, Class::SET, "sadd", added);
    }
    ctx.reply.int(added as i64);
    Ok(())
}

fn srem(ctx: &mut Ctx) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    let removed = match ctx.edit::<Set>(key)? {
        Some(set) => members.iter().filter(|member| set.remove(member)).count(),
        None => 0,
    };
    if removed > 0 {
        ctx.changed(key, Class::SET, "srem", removed);
        ctx.delete_if_empty(key);
    }
    ctx.reply.int(removed as i64);
    Ok(())
}

fn smove(ctx: &mut Ctx) -> Outcome {
    let [_, from, to, member] = *ctx.argv else { return Err(error::SYNTAX) };
    // Both are looked up before anything is checked.
    ctx.find_for_write(to);
    let Some(set) = ctx.edit::<Set>(from)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let is_member = set.contains(member);
    ctx.edit::<Set>(to)?;
    ctx.reply.int(is_member as i64);
    if !is_member || from == to {
        return Ok(());
    }
    if let Some(set) = ctx.edit::<Set>(from)? {
        set.remove(member);
    }
    ctx.touched(from, Class::SET, "srem");
    ctx.delete_if_empty(from);
    let limits = ctx.node.store.limits.clone();
    if !ctx.exists(to) {
        ctx.insert(to, Set::for_members(member, 1, &limits).into());
    }
    if ctx.edit_or_create::<Set>(to)?.add(member, &limits) {
        ctx.touched(to, Class::SET, "sadd");
    }
    Ok(())
}

fn sismember(ctx: &mut Ctx) -> Outcome {
    let (key, member) = (ctx.argv[1], ctx.argv[2]);
    with_set(ctx, key, |set, reply| reply.int(contains(set, member)))
}

fn smismember(ctx: &mut Ctx) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    with_set(ctx, key, |set, reply| {
        reply.array(members.len());
        for member in members {
            reply.int(contains(set, member));
        }
    })
}

fn contains(set: Option<&Set>, member: &[u8]) -> i64 {
    set.is_some_and(|set| set.contains(member)) as i64
}

fn scard(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    with_set(ctx, key, |set, reply| reply.int(set.map_or(0, Set::len) as i64))
}

fn smembers(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    with_set(ctx, key, |set, reply| match set {
        Some(set) => write_set(set, reply),
        None => reply.set(0),
    })
}

/// Reads a set, or finds none, and writes the reply from it.
fn with_set(ctx: &mut Ctx, key: &[u8], write: impl FnOnce(Option<&Set>, &mut Reply)) -> Outcome {
    let (set, reply) = ctx.read_and_reply::<Set>(key)?;
    write(set, reply);
    Ok(())
}

/// Writes all members of a set.
pub fn write_set(set: &Set, reply: &mut Reply) {
    reply.set(set.len());
    write_members(set, reply);
}

fn write_members(set: &Set, reply: &mut Reply) {
    let mut digits = itoa::Buffer::new();
    for member in set.iter() {
        reply.bulk(member.bytes(&mut digits));
    }
}

fn sscan(ctx: &mut Ctx) -> Outcome {
    scan::scan_value::<Set>(ctx, |set, options, found| {
        set.scan(options.cursor, options.count, |member| {
            let member = member.to_vec();
            if options.matches(&member) {
                found.push(member);
            }
        })
    })
}

fn spop(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    match &ctx.argv[2..] {
        [] => pop_one(ctx, key),
        [count] => {
            let count = num::parse_i64(count).filter(|&n| n >= 0).ok_or(error::MUST_BE_POSITIVE)?;
            pop_some(ctx, key, count as u64)
        }
        _ => Err(error::SYNTAX),
    }
}

fn pop_one(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    if ctx.edit::<Set>(key)?.is_none() {
        ctx.reply.null();
        return Ok(());
    }
    let draw = ctx.random();
    let member = ctx.edit::<Set>(key)?.and_then(|set| set.pop_random(draw));
    ctx.reply.bulk_or_null(member.as_deref());
    ctx.touched(key, Class::SET, "spop");
    ctx.delete_if_empty(key);
    Ok(())
}

fn pop_some(ctx: &mut Ctx, key: &[u8], count: u64) -> Outcome {
    let Some(form) = ctx.edit::<Set>(key)?.map(|set| Form::of(set)).filter(|_| count > 0) else {
        ctx.reply.set(0);
        return Ok(());
    };
    let picks = pick_places(ctx, form, count);
    let limits = ctx.node.store.limits.clone();
    let Some(set) = ctx.edit::<Set>(key)? else { return Ok(()) };
    let members = set.take(&picks, &limits);
    ctx.reply.set(members.len());
    for member in &members {
        ctx.reply.bulk(member);
    }
    ctx.changed(key, Class::SET, "spop", members.len());
    ctx.delete_if_empty(key);
    Ok(())
}

/// What a choice of members depends on.
struct Form {
    len: usize,
    is_listpack: bool,
}

impl Form {
    fn of(set: &Set) -> Form {
        Form { len: set.len(), is_listpack: set.encoding() == "listpack" }
    }
}

/// The places of up to `count` different members. A listpack is walked through once, so its members come in order.
fn pick_places(ctx: &mut Ctx, form: Form, count: u64) -> Vec<usize> {
    if count >= form.len as u64 {
        return (0..form.len).collect();
    }
    let mut places = ctx.pick(form.len, count as i64);
    if form.is_listpack {
        places.sort_unstable();
    }
    places
}

fn srandmember(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    match &ctx.argv[2..] {
        [] => {
            let draw = ctx.random();
            with_set(ctx, key, |set, reply| match set.and_then(|set| set.random(draw)) {
                Some(member) => reply.bulk(member.bytes(&mut itoa::Buffer::new())),
                None => reply.null(),
            })
        }
        [count] => match num::parse_i64(count).ok_or(error::NOT_AN_INTEGER)? {
            i64::MIN => Err(error::out_of_range(-i64::MAX, i64::MAX)),
            count if count < 0 => show_repeatedly(ctx, key, count.unsigned_abs()),
            count => show_different(ctx, key, count as u64),
        },
        _ => Err(error::SYNTAX),
    }
}

/// Random members, of which each may come several times.
fn show_repeatedly(ctx: &mut Ctx, key: &[u8], count: u64) -> Outcome {
    if ctx.read::<Set>(key)?.is_none() {
        ctx.reply.array(0);
        return Ok(());
    }
    if count > MAX_DRAWS {
        return Err(error::OUT_OF_RANGE);
    }
    ctx.reply.array(count as usize);
    let slot = ctx.find_quietly(key).unwrap_or_default();
    for _ in 0..count {
        let draw = ctx.random();
        let set = ctx.entry(slot).and_then(|entry| Set::of(&entry.value));
        let member = set.and_then(|set| set.random(draw)).map(|member| member.to_vec());
        ctx.reply.bulk_or_null(member.as_deref());
        if ctx.reply.len() > MAX_REPLY {
            return Err(error::OUT_OF_RANGE);
        }
    }
    Ok(())
}

/// Up to `count` different members.
fn show_different(ctx: &mut Ctx, key: &[u8], count: u64) -> Outcome {
    let Some(form) = ctx.read::<Set>(key)?.map(Form::of) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let picks = pick_places(ctx, form, count);
    let slot = ctx.find_quietly(key).unwrap_or_default();
    let members = match ctx.entry(slot).and_then(|entry| Set::of(&entry.value)) {
        Some(set) => set.members_at(&picks),
        None => Vec::new(),
    };
    ctx.reply.array(members.len());
    for member in &members {
        ctx.reply.bulk(member);
    }
    Ok(())
}
