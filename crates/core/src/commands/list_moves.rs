//! Commands that move elements between lists or pop from the first of several lists, and their blocking forms.

use super::command::*;
use super::ctx::{Ctx, Words};
use super::lists::{finish_pop, pop_range, push_event, reply_elements};
use crate::error::{self, Error, Outcome};
use crate::node::session::{TimeoutReply, Wait};
use crate::num;
use crate::store::List;
use crate::store::list::End;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "blmove",
        arity: 6,
        since: "6.2.0",
        flags: WRITE | DENYOOM | NOSCRIPT | BLOCKING,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["RW", "insert"], 2)],
        summary: "Moves an element between lists, or waits for one.",
        complexity: "O(1)",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: blmove,
        ..Command::of(Group::List)
    },
    Command {
        name: "blmpop",
        arity: -5,
        since: "7.0.0",
        flags: WRITE | BLOCKING | MOVABLEKEYS,
        keys: &[counted_keys(&["RW", "access", "delete"], 2)],
        summary: "Pops elements from the first of several lists, or waits for one.",
        complexity: "O(N+M)",
        run: blmpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "blpop",
        arity: -3,
        since: "2.0.0",
        flags: WRITE | NOSCRIPT | BLOCKING,
        keys: &[keys(&["RW", "access", "delete"], 1, -2, 1)],
        summary: "Pops the first element of several lists, or waits for one.",
        complexity: "O(N)",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: blpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "brpop",
        arity: -3,
        since: "2.0.0",
        flags: WRITE | NOSCRIPT | BLOCKING,
        keys: &[keys(&["RW", "access", "delete"], 1, -2, 1)],
        summary: "Pops the last element of several lists, or waits for one.",
        complexity: "O(N)",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: brpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "brpoplpush",
        arity: 4,
        since: "2.2.0",
        flags: WRITE | DENYOOM | NOSCRIPT | BLOCKING,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["RW", "insert"], 2)],
        summary: "Moves the last element of a list to the front of another, or waits for one.",
        complexity: "O(1)",
        changes: FOR_SCRIPTS_SINCE_7_2,
        run: brpoplpush,
        ..Command::of(Group::List)
    },
    Command {
        name: "lmove",
        arity: 5,
        since: "6.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["RW", "insert"], 2)],
        summary: "Moves an element between lists.",
        complexity: "O(1)",
        run: lmove,
        ..Command::of(Group::List)
    },
    Command {
        name: "lmpop",
        arity: -4,
        since: "7.0.0",
        flags: WRITE | MOVABLEKEYS,
        keys: &[counted_keys(&["RW", "access", "delete"], 1)],
        summary: "Pops elements from the first list that is not empty.",
        complexity: "O(N+M)",
        run: lmpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "rpoplpush",
        arity: 3,
        since: "1.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["RW", "insert"], 2)],
        summary: "Moves the last element of a list to the front of another.",
        complexity: "O(1)",
        run: rpoplpush,
        ..Command::of(Group::List)
    },
];

/// A move of LMOVE, RPOPLPUSH and their blocking forms: from one end of a list to one end of another.
#[derive(Clone, Copy)]
struct Move<'a> {
    from: &'a [u8],
    from_end: End,
    to: &'a [u8],
    to_end: End,
}

fn lmove(ctx: &mut Ctx) -> Outcome {
    let step = Move::parse(ctx)?;
    move_element(ctx, step)
}

fn rpoplpush(ctx: &mut Ctx) -> Outcome {
    let step = Move::tail_to_head(ctx);
    move_element(ctx, step)
}

fn blmove(ctx: &mut Ctx) -> Outcome {
    let step = Move::parse(ctx)?;
    move_or_wait(ctx, step, 5)
}

fn brpoplpush(ctx: &mut Ctx) -> Outcome {
    let step = Move::tail_to_head(ctx);
    move_or_wait(ctx, step, 3)
}

impl<'a> Move<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Move<'a>, Error> {
        let argv = ctx.argv;
        Ok(Move { from: argv[1], from_end: parse_end(argv[3])?, to: argv[2], to_end: parse_end(argv[4])? })
    }

    fn tail_to_head(ctx: &Ctx<'a>) -> Move<'a> {
        Move { from: ctx.argv[1], from_end: End::Tail, to: ctx.argv[2], to_end: End::Head }
    }
}

fn parse_end(word: &[u8]) -> Result<End, Error> {
    if word.eq_ignore_ascii_case(b"LEFT") {
        Ok(End::Head)
    } else if word.eq_ignore_ascii_case(b"RIGHT") {
        Ok(End::Tail)
    } else {
        Err(error::SYNTAX)
    }
}

fn move_element(ctx: &mut Ctx, step: Move) -> Outcome {
    if ctx.edit::<List>(step.from)?.is_none() {
        ctx.reply.null();
        return Ok(());
    }
    ctx.edit::<List>(step.to)?;
    let Some(mut from) = ctx.edit::<List>(step.from)? else { return Ok(()) };
    let element = from.pop(step.from_end).unwrap_or_default();
    // Redis announces the push first. Both keys may be the same list.
    let from = from.postpone();
    let mut to = ctx.edit_or_create::<List>(step.to)?;
    let (list, limits) = to.with_limits();
    // Redis estimates the size of an element from its text, and an integer has no text at this point.
    let text = if num::parse_i64(&element).is_some() { &b""[..] } else { &element };
    list.prepare([text], limits);
    list.push(step.to_end, &element, limits);
    // The pop counts as the change.
    to.done(push_event(step.to_end), 0);
    finish_pop(from.resume(ctx), step.from_end, 1);
    ctx.reply.bulk(&element);
    Ok(())
}

fn move_or_wait(ctx: &mut Ctx, step: Move, timeout_at: usize) -> Outcome {
    let timeout_ms = ctx.timeout_ms(timeout_at)?;
    if ctx.edit::<List>(step.from)?.is_some() {
        return move_element(ctx, step);
    }
    if ctx.may_wait() {
        // BLMOVE replies with one element, but with a null array on a timeout, as all blocking list commands do.
        ctx.wait_for(Wait::List, &[step.from], timeout_ms, TimeoutReply::NullArray);
    } else {
        ctx.reply.null();
    }
    Ok(())
}

fn blpop(ctx: &mut Ctx) -> Outcome {
    pop_or_wait(ctx, End::Head)
}

fn brpop(ctx: &mut Ctx) -> Outcome {
    pop_or_wait(ctx, End::Tail)
}

fn pop_or_wait(ctx: &mut Ctx, end: End) -> Outcome {
    let last = ctx.argv.len() - 1;
    let keys = &ctx.argv[1..last];
    let timeout_ms = ctx.timeout_ms(last)?;
    let Some(key) = first_list(ctx, keys)? else {
        ctx.wait_for(Wait::List, keys, timeout_ms, TimeoutReply::NullArray);
        return Ok(());
    };
    let Some(mut list) = ctx.edit::<List>(key)? else { return Ok(()) };
    let element = list.pop(end).unwrap_or_default();
    finish_pop(list, end, 1);
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    ctx.reply.bulk(&element);
    Ok(())
}

/// Returns the first of several keys that holds a list.
fn first_list<'a>(ctx: &mut Ctx<'a>, keys: &'a [&'a [u8]]) -> Result<Option<&'a [u8]>, Error> {
    for &key in ctx.keys_to_try(keys) {
        if ctx.edit::<List>(key)?.is_some() {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn lmpop(ctx: &mut Ctx) -> Outcome {
    let (keys, end, count) = parse_multi_pop(ctx.words(1))?;
    match first_list(ctx, keys)? {
        Some(key) => pop_with_key(ctx, key, end, count),
        None => {
            ctx.reply.null_array();
            Ok(())
        }
    }
}

fn blmpop(ctx: &mut Ctx) -> Outcome {
    let (keys, end, count) = parse_multi_pop(ctx.words(2))?;
    let timeout_ms = ctx.timeout_ms(1)?;
    match first_list(ctx, keys)? {
        Some(key) => pop_with_key(ctx, key, end, count),
        None => {
            ctx.wait_for(Wait::List, keys, timeout_ms, TimeoutReply::NullArray);
            Ok(())
        }
    }
}

fn pop_with_key(ctx: &mut Ctx, key: &[u8], end: End, count: i64) -> Outcome {
    let Some(list) = ctx.edit::<List>(key)? else { return Ok(()) };
    let elements = pop_range(list, end, count);
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    reply_elements(ctx.reply, &elements);
    Ok(())
}

/// Parses `numkeys key … LEFT|RIGHT [COUNT count]`.
fn parse_multi_pop<'a>(mut words: Words<'a>) -> Result<(&'a [&'a [u8]], End, i64), Error> {
    let at_least_one = |word: &[u8], error| num::parse_i64(word).filter(|&n| n > 0).ok_or(error);
    let numkeys = at_least_one(words.word()?, Error::new("ERR numkeys should be greater than 0"))?;
    let numkeys = usize::try_from(numkeys).unwrap_or(usize::MAX);
    let keys = words.rest().get(..numkeys).ok_or(error::SYNTAX)?;
    words.skip(numkeys);
    let end = parse_end(words.word()?)?;
    let mut count = None;
    while !words.is_empty() {
        if count.is_some() || !words.take_with("COUNT", 1) {
            return Err(error::SYNTAX);
        }
        count = Some(at_least_one(words.word()?, Error::new("ERR count should be greater than 0"))?);
    }
    Ok((keys, end, count.unwrap_or(1)))
}
