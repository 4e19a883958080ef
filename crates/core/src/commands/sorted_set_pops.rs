//! Commands that pop the members with the lowest or highest scores, and their blocking forms.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::session::{TimeoutReply, Wait};
use crate::num;
use crate::store::SortedSet;
use crate::wire::Protocol;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "bzmpop",
        arity: -5,
        since: "7.0.0",
        flags: WRITE | BLOCKING | MOVABLEKEYS,
        keys: &[counted_keys(&["RW", "access", "delete"], 2)],
        summary: "Pops members from the first of several sorted sets, or waits for one.",
        complexity: "O(K)",
        run: bzmpop,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "bzpopmax",
        arity: -3,
        since: "5.0.0",
        flags: WRITE | NOSCRIPT | BLOCKING | FAST,
        keys: &[keys(&["RW", "access", "delete"], 1, -2, 1)],
        summary: "Pops the highest member of several sorted sets, or waits for one.",
        complexity: "O(log(N))",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: bzpopmax,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "bzpopmin",
        arity: -3,
        since: "5.0.0",
        flags: WRITE | NOSCRIPT | BLOCKING | FAST,
        keys: &[keys(&["RW", "access", "delete"], 1, -2, 1)],
        summary: "Pops the lowest member of several sorted sets, or waits for one.",
        complexity: "O(log(N))",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: bzpopmin,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zmpop",
        arity: -4,
        since: "7.0.0",
        flags: WRITE | MOVABLEKEYS,
        keys: &[counted_keys(&["RW", "access", "delete"], 1)],
        summary: "Pops members from the first sorted set that is not empty.",
        complexity: "O(K)",
        run: zmpop,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zpopmax",
        arity: -2,
        since: "5.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Pops the members with the highest scores.",
        complexity: "O(log(N)*M)",
        run: zpopmax,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zpopmin",
        arity: -2,
        since: "5.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Pops the members with the lowest scores.",
        complexity: "O(log(N)*M)",
        run: zpopmin,
        ..Command::of(Group::SortedSet)
    },
];

/// The end of a sorted set from which a command pops.
#[derive(Clone, Copy)]
enum Side {
    Min,
    Max,
}

/// The layout of the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// ZPOPMIN: members and scores.
    Plain,
    /// BZPOPMIN: the key, then members and scores.
    WithKey,
    /// ZMPOP: the key, then an array of pairs.
    Nested,
}

fn zpopmin(ctx: &mut Ctx) -> Outcome {
    pop_one_key(ctx, Side::Min)
}

fn zpopmax(ctx: &mut Ctx) -> Outcome {
    pop_one_key(ctx, Side::Max)
}

fn pop_one_key(ctx: &mut Ctx, side: Side) -> Outcome {
    if ctx.argv.len() > 3 {
        return Err(error::SYNTAX);
    }
    let key = ctx.argv[1];
    let count = match ctx.argv.get(2) {
        Some(word) => {
            let count = num::parse_i64(word).and_then(|count| usize::try_from(count).ok());
            count.ok_or(error::MUST_BE_POSITIVE)?
        }
        None => 1,
    };
    if !has_members(ctx, key)? || count == 0 {
        ctx.reply.array(0);
        return Ok(());
    }
    pop(ctx, key, side, count, Layout::Plain)
}

fn bzpopmin(ctx: &mut Ctx) -> Outcome {
    pop_or_wait(ctx, Side::Min)
}

fn bzpopmax(ctx: &mut Ctx) -> Outcome {
    pop_or_wait(ctx, Side::Max)
}

fn pop_or_wait(ctx: &mut Ctx, side: Side) -> Outcome {
    let last = ctx.argv.len() - 1;
    let timeout_ms = ctx.timeout_ms(last)?;
    let keys = &ctx.argv[1..last];
    if !pop_first(ctx, keys, side, 1, Layout::WithKey)? {
        ctx.wait_for(Wait::SortedSet, keys, timeout_ms, TimeoutReply::NullArray);
    }
    Ok(())
}

fn zmpop(ctx: &mut Ctx) -> Outcome {
    let (keys, side, count) = parse_many(ctx, 1)?;
    if !pop_first(ctx, keys, side, count, Layout::Nested)? {
        ctx.reply.null_array();
    }
    Ok(())
}

fn bzmpop(ctx: &mut Ctx) -> Outcome {
    let (keys, side, count) = parse_many(ctx, 2)?;
    let timeout_ms = ctx.timeout_ms(1)?;
    if !pop_first(ctx, keys, side, count, Layout::Nested)? {
        ctx.wait_for(Wait::SortedSet, keys, timeout_ms, TimeoutReply::NullArray);
    }
    Ok(())
}

/// Parses `numkeys key … MIN|MAX [COUNT count]` from argument `at` on.
fn parse_many<'a>(ctx: &Ctx<'a>, at: usize) -> Result<(&'a [&'a [u8]], Side, usize), Error> {
    let positive = |word: &[u8], error: Error| match num::parse_i64(word) {
        Some(count @ 1..) => Ok(count as usize),
        _ => Err(error),
    };
    let numkeys = positive(ctx.argv[at], Error::new("ERR numkeys should be greater than 0"))?;
    let keys = ctx.argv[at + 1..].get(..numkeys).ok_or(error::SYNTAX)?;
    let mut words = ctx.words(at + 1 + numkeys);
    let side = if words.take("MIN") {
        Side::Min
    } else if words.take("MAX") {
        Side::Max
    } else {
        return Err(error::SYNTAX);
    };
    let mut count = None;
    while !words.is_empty() {
        if count.is_some() || !words.take_with("COUNT", 1) {
            return Err(error::SYNTAX);
        }
        count = Some(positive(words.word()?, Error::new("ERR count should be greater than 0"))?);
    }
    Ok((keys, side, count.unwrap_or(1)))
}

/// Pops from the first key that holds a sorted set. Returns whether there was one.
fn pop_first(ctx: &mut Ctx, keys: &[&[u8]], side: Side, count: usize, layout: Layout) -> Result<bool, Error> {
    for key in ctx.keys_to_try(keys) {
        if has_members(ctx, key)? {
            pop(ctx, key, side, count, layout)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_members(ctx: &mut Ctx, key: &[u8]) -> Result<bool, Error> {
    Ok(ctx.edit::<SortedSet>(key)?.is_some())
}

/// Pops up to `count` members of the sorted set at `key` and writes the reply.
fn pop(ctx: &mut Ctx, key: &[u8], side: Side, count: usize, layout: Layout) -> Outcome {
    let Some(mut edit) = ctx.edit::<SortedSet>(key)? else { return Ok(()) };
    let set = &mut *edit;
    let len = set.len().min(count);
    let take = || match side {
        Side::Min => set.pop_min(),
        Side::Max => set.pop_max(),
    };
    let popped: Vec<(Box<[u8]>, f64)> = std::iter::repeat_with(take).take(len).flatten().collect();
    let event = match side {
        Side::Min => "zpopmin",
        Side::Max => "zpopmax",
    };
    edit.done(event, len);
    // ZPOPMIN nests its pairs in RESP3, but only where a count was given.
    let counted = ctx.argv.len() > 2 && ctx.reply.protocol == Protocol::Resp3;
    let nested = layout == Layout::Nested || layout == Layout::Plain && counted;
    match layout {
        Layout::Plain => ctx.reply.array(if nested { len } else { len * 2 }),
        Layout::WithKey => {
            ctx.reply.array(len * 2 + 1);
            ctx.reply.bulk(key);
        }
        Layout::Nested => {
            ctx.reply.array(2);
            ctx.reply.bulk(key);
            ctx.reply.array(len);
        }
    }
    for (member, score) in &popped {
        if nested {
            ctx.reply.array(2);
        }
        ctx.reply.bulk(member);
        ctx.reply.double(*score);
    }
    Ok(())
}
