//! Commands for one list. The commands that move elements between lists or wait for elements are in `list_moves.rs`.

use super::command::*;
use super::ctx::{Ctx, Words};
use super::edit::Edit;
use crate::error::{self, Error, Outcome};
use crate::node::notify::Class;
use crate::num;
use crate::store::List;
use crate::store::list::{Element, End};
use crate::version::Version;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "lindex",
        arity: 3,
        since: "1.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the element at an index.",
        complexity: "O(N)",
        run: lindex,
        ..Command::of(Group::List)
    },
    Command {
        name: "linsert",
        arity: 5,
        since: "2.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Inserts an element before or after another.",
        complexity: "O(N)",
        run: linsert,
        ..Command::of(Group::List)
    },
    Command {
        name: "llen",
        arity: 2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Counts the elements.",
        complexity: "O(1)",
        run: llen,
        ..Command::of(Group::List)
    },
    Command {
        name: "lpop",
        arity: -2,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Pops the first elements.",
        complexity: "O(N)",
        run: lpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "lpos",
        arity: -3,
        since: "6.0.6",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Finds the positions of an element.",
        complexity: "O(N)",
        run: lpos,
        ..Command::of(Group::List)
    },
    Command {
        name: "lpush",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Puts elements before the first and creates the list if it is missing.",
        complexity: "O(1)",
        run: lpush,
        ..Command::of(Group::List)
    },
    Command {
        name: "lpushx",
        arity: -3,
        since: "2.2.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Puts elements before the first if the list exists.",
        complexity: "O(1)",
        run: lpushx,
        ..Command::of(Group::List)
    },
    Command {
        name: "lrange",
        arity: 4,
        since: "1.0.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives a range of elements.",
        complexity: "O(S+N)",
        run: lrange,
        ..Command::of(Group::List)
    },
    Command {
        name: "lrem",
        arity: 4,
        since: "1.0.0",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes elements that equal a value.",
        complexity: "O(N+M)",
        run: lrem,
        ..Command::of(Group::List)
    },
    Command {
        name: "lset",
        arity: 4,
        since: "1.0.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the element at an index.",
        complexity: "O(N)",
        run: lset,
        ..Command::of(Group::List)
    },
    Command {
        name: "ltrim",
        arity: 4,
        since: "1.0.0",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Keeps a range of elements only.",
        complexity: "O(N)",
        run: ltrim,
        ..Command::of(Group::List)
    },
    Command {
        name: "rpop",
        arity: -2,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Pops the last elements.",
        complexity: "O(N)",
        run: rpop,
        ..Command::of(Group::List)
    },
    Command {
        name: "rpush",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Puts elements behind the last and creates the list if it is missing.",
        complexity: "O(1)",
        run: rpush,
        ..Command::of(Group::List)
    },
    Command {
        name: "rpushx",
        arity: -3,
        since: "2.2.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Puts elements behind the last if the list exists.",
        complexity: "O(1)",
        run: rpushx,
        ..Command::of(Group::List)
    },
];

const ZERO_RANK: Error = Error::new(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from \
     the end of the list",
);

fn lpush(ctx: &mut Ctx) -> Outcome {
    push(ctx, End::Head, false)
}

fn rpush(ctx: &mut Ctx) -> Outcome {
    push(ctx, End::Tail, false)
}

fn lpushx(ctx: &mut Ctx) -> Outcome {
    push(ctx, End::Head, true)
}

fn rpushx(ctx: &mut Ctx) -> Outcome {
    push(ctx, End::Tail, true)
}

fn push(ctx: &mut Ctx, end: End, must_exist: bool) -> Outcome {
    let (key, elements) = (ctx.argv[1], &ctx.argv[2..]);
    if must_exist && ctx.edit::<List>(key)?.is_none() {
        ctx.reply.int(0);
        return Ok(());
    }
    let mut edit = ctx.edit_or_create::<List>(key)?;
    let (list, limits) = edit.with_limits();
    list.prepare(elements.iter().copied(), limits);
    for element in elements {
        list.push(end, element, limits);
    }
    let len = list.len();
    edit.done(push_event(end), elements.len());
    ctx.reply.int(len as i64);
    Ok(())
}

/// Returns the event of a push at this end.
pub fn push_event(end: End) -> &'static str {
    if end == End::Head { "lpush" } else { "rpush" }
}

fn lpop(ctx: &mut Ctx) -> Outcome {
    pop(ctx, End::Head)
}

fn rpop(ctx: &mut Ctx) -> Outcome {
    pop(ctx, End::Tail)
}

fn pop(ctx: &mut Ctx, end: End) -> Outcome {
    let key = ctx.argv[1];
    let count = match &ctx.argv[2..] {
        [] => None,
        [count] => Some(positive(count)?),
        _ => return Err(error::wrong_arity(ctx.command.name)),
    };
    match (ctx.edit::<List>(key)?, count) {
        (None, None) => ctx.reply.null(),
        (None, Some(_)) => ctx.reply.null_array(),
        (Some(_), Some(0)) => ctx.reply.array(0),
        (Some(list), Some(count)) => {
            let elements = pop_range(list, end, count);
            reply_elements(ctx.reply, &elements);
        }
        (Some(mut list), None) => {
            let element = list.pop(end);
            finish_pop(list, end, 1);
            ctx.reply.bulk_or_null(element.as_deref());
        }
    }
    Ok(())
}

fn positive(word: &[u8]) -> Result<i64, Error> {
    num::parse_i64(word).filter(|&n| n >= 0).ok_or(error::MUST_BE_POSITIVE)
}

/// Pops up to `count` elements of a list and finishes the edit.
pub fn pop_range(mut edit: Edit<List>, end: End, count: i64) -> Vec<Element> {
    let list = &mut *edit;
    let count = (list.len() as i64).min(count) as usize;
    let elements = (0..count).filter_map(|_| list.pop(end)).collect();
    finish_pop(edit, end, count);
    elements
}

/// Writes popped elements as an array.
pub fn reply_elements(reply: &mut Reply, elements: &[Element]) {
    reply.array(elements.len());
    for element in elements {
        reply.bulk(element);
    }
}

/// Finishes an edit that popped `count` elements.
pub fn finish_pop(edit: Edit<List>, end: End, count: usize) {
    finish_removal(edit, if end == End::Head { "lpop" } else { "rpop" }, count);
}

/// Finishes an edit that removed `count` elements. A short list may become a listpack again.
fn finish_removal(mut edit: Edit<List>, event: &str, count: usize) {
    let (list, limits) = edit.with_limits();
    list.shrink(limits);
    edit.done(event, count);
}

fn llen(ctx: &mut Ctx) -> Outcome {
    let (list, reply) = ctx.read_and_reply::<List>(ctx.argv[1])?;
    reply.int(list.map_or(0, List::len) as i64);
    Ok(())
}

fn lindex(ctx: &mut Ctx) -> Outcome {
    let index = ctx.int(2);
    let (list, reply) = ctx.read_and_reply::<List>(ctx.argv[1])?;
    // Redis looks up the list before it parses the index.
    let element = match list {
        Some(list) => place(index?, list.len()).and_then(|at| list.get(at)),
        None => None,
    };
    reply.bulk_or_null(element);
    Ok(())
}

/// Converts an index, which counts from the tail if it is negative, to one from the head. `None`: out of range.
fn place(index: i64, len: usize) -> Option<usize> {
    let from_head = if index < 0 { index + len as i64 } else { index };
    usize::try_from(from_head).ok().filter(|&at| at < len)
}

fn lset(ctx: &mut Ctx) -> Outcome {
    let (key, element) = (ctx.argv[1], ctx.argv[3]);
    let index = ctx.int(2);
    let version = ctx.version();
    let mut edit = ctx.edit::<List>(key)?.ok_or(error::NO_SUCH_KEY)?;
    // Since 7.2, Redis uses only the low 32 bits of the index.
    let index = if version >= Version::V7_2 { index? as i32 as i64 } else { index? };
    let (list, limits) = edit.with_limits();
    list.prepare([element], limits);
    let Some(at) = place(index, list.len()) else {
        edit.unchanged();
        return Err(error::INDEX_OUT_OF_RANGE);
    };
    list.set(at, element, limits);
    list.shrink(limits);
    edit.done("lset", 1);
    ctx.reply.ok();
    Ok(())
}

fn linsert(ctx: &mut Ctx) -> Outcome {
    let [_, key, side, pivot, element] = *ctx.argv else { return Err(error::SYNTAX) };
    let after = side.eq_ignore_ascii_case(b"AFTER");
    if !after && !side.eq_ignore_ascii_case(b"BEFORE") {
        return Err(error::SYNTAX);
    }
    let Some(mut edit) = ctx.edit::<List>(key)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let (list, limits) = edit.with_limits();
    list.prepare([element], limits);
    if !list.insert(pivot, after, element, limits) {
        edit.unchanged();
        ctx.reply.int(-1);
        return Ok(());
    }
    let len = list.len();
    edit.done("linsert", 1);
    ctx.reply.int(len as i64);
    Ok(())
}

fn lrem(ctx: &mut Ctx) -> Outcome {
    let (key, element) = (ctx.argv[1], ctx.argv[3]);
    let limit = ctx.int(2)?;
    if ctx.version() > Version::V7_2 {
        negatable(limit)?;
    }
    let Some(mut list) = ctx.edit::<List>(key)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let from = if limit < 0 { End::Tail } else { End::Head };
    let most = if limit == 0 { usize::MAX } else { limit.unsigned_abs() as usize };
    let removed = list.remove(element, from, most);
    if removed > 0 {
        finish_removal(list, "lrem", removed);
    } else {
        list.unchanged();
    }
    ctx.reply.int(removed as i64);
    Ok(())
}

/// Fails for the one number that cannot be negated, as later releases do.
fn negatable(number: i64) -> Result<i64, Error> {
    if number == i64::MIN { Err(error::out_of_range(-i64::MAX, i64::MAX)) } else { Ok(number) }
}

fn ltrim(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let (start, stop) = (ctx.int(2)?, ctx.int(3)?);
    let is_valkey = ctx.version().is_valkey();
    if let Some(mut list) = ctx.edit::<List>(key)? {
        let (start, count) = range(start, stop, list.len());
        let removed = list.len() - count;
        list.trim(start, count);
        // Redis announces LTRIM even where it removes nothing; in Valkey that breaks no watch.
        if removed == 0 && is_valkey {
            list.unchanged();
            ctx.notify(key, Class::LIST, "ltrim");
        } else {
            finish_removal(list, "ltrim", removed);
        }
    }
    ctx.reply.ok();
    Ok(())
}

fn lrange(ctx: &mut Ctx) -> Outcome {
    let (start, stop) = (ctx.int(2)?, ctx.int(3)?);
    let (list, reply) = ctx.read_and_reply::<List>(ctx.argv[1])?;
    let (start, count) = range(start, stop, list.map_or(0, List::len));
    reply.array(count);
    for element in list.into_iter().flat_map(|list| list.iter_from(start).take(count)) {
        reply.bulk(element);
    }
    Ok(())
}

/// Returns the index and the count of the elements from `start` to `stop`. Negative indexes count from the tail.
fn range(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let from_head = |index: i64| if index < 0 { index + len } else { index };
    let (start, stop) = (from_head(start).max(0), from_head(stop).min(len - 1));
    if start > stop { (0, 0) } else { (start as usize, (stop - start + 1) as usize) }
}

/// The options of LPOS: which of the equal elements it returns.
struct Wanted {
    /// The first match to return, counted from 1.
    rank: usize,
    from_tail: bool,
    /// How many matches to return (0: all); `None`: one, which is not in an array.
    count: Option<i64>,
    /// How many elements to compare (0: all).
    most: i64,
}

impl Wanted {
    fn parse(mut words: Words, version: Version) -> Result<Wanted, Error> {
        let mut wanted = Wanted { rank: 1, from_tail: false, count: None, most: 0 };
        let positive = |word: &[u8], error| num::parse_i64(word).filter(|&n| n >= 0).ok_or(error);
        while !words.is_empty() {
            if words.take_with("RANK", 1) {
                let rank = words.int()?;
                if rank == 0 {
                    return Err(ZERO_RANK);
                }
                if version >= Version::V7_2 {
                    negatable(rank)?;
                }
                (wanted.rank, wanted.from_tail) = (rank.unsigned_abs() as usize, rank < 0);
            } else if words.take_with("COUNT", 1) {
                wanted.count = Some(positive(words.word()?, Error::new("ERR COUNT can't be negative"))?);
            } else if words.take_with("MAXLEN", 1) {
                wanted.most = positive(words.word()?, Error::new("ERR MAXLEN can't be negative"))?;
            } else {
                return Err(error::SYNTAX);
            }
        }
        // Before 7.2 this rank overflows: LPOS returns the first match, or all matches if COUNT is given.
        if wanted.rank == i64::MIN.unsigned_abs() as usize {
            wanted.rank = 1;
            wanted.count = wanted.count.map(|_| 0);
        }
        Ok(wanted)
    }

    /// Returns the indexes, from the head, of the matches.
    fn find<'a>(&self, list: &'a List, element: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let last = list.len() - 1;
        let all: Box<dyn Iterator<Item = (usize, &[u8])>> = if self.from_tail {
            Box::new(list.iter().rev().enumerate().map(move |(index, other)| (last - index, other)))
        } else {
            Box::new(list.iter().enumerate())
        };
        let or_all = |n: i64| if n == 0 { usize::MAX } else { n as usize };
        all.take(or_all(self.most))
            .filter(move |(_, other)| *other == element)
            .map(|(index, _)| index)
            .skip(self.rank - 1)
            .take(or_all(self.count.unwrap_or(1)))
    }
}

fn lpos(ctx: &mut Ctx) -> Outcome {
    let (key, element) = (ctx.argv[1], ctx.argv[2]);
    let wanted = Wanted::parse(ctx.words(3), ctx.version())?;
    let (list, reply) = ctx.read_and_reply::<List>(key)?;
    let indexes: Vec<usize> = list.map_or(Vec::new(), |list| wanted.find(list, element).collect());
    if wanted.count.is_some() {
        reply.array(indexes.len());
    } else if indexes.is_empty() {
        reply.null();
    }
    for index in indexes {
        reply.int(index as i64);
    }
    Ok(())
}
