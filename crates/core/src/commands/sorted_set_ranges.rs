//! Commands that read, store, count or remove a range of a sorted set: by rank, by score or by the bytes of the members.

use std::ops::Range;

use super::command::*;
use super::ctx::Ctx;
use super::sorted_sets::reply_members;
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::SortedSet;
use crate::store::sorted_set::{LexBound, ScoreBound};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "zcount",
        arity: 4,
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Counts the members with scores in a range.",
        complexity: "O(log(N))",
        run: zcount,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zlexcount",
        arity: 4,
        since: "2.8.9",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Counts the members in a lexicographical range.",
        complexity: "O(log(N))",
        run: zlexcount,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrange",
        arity: -4,
        since: "1.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a range of ranks, scores or names.",
        complexity: "O(log(N)+M)",
        run: zrange,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrangebylex",
        arity: -4,
        since: "2.8.9",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a lexicographical range.",
        complexity: "O(log(N)+M)",
        run: zrangebylex,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrangebyscore",
        arity: -4,
        since: "1.0.5",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a range of scores.",
        complexity: "O(log(N)+M)",
        run: zrangebyscore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrangestore",
        arity: -5,
        since: "6.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["OW", "update"], 1), key(&["RO", "access"], 2)],
        summary: "Stores a range of members in another key.",
        complexity: "O(log(N)+M)",
        run: zrangestore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zremrangebylex",
        arity: 4,
        since: "2.8.9",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes members in a lexicographical range.",
        complexity: "O(log(N)+M)",
        run: zremrangebylex,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zremrangebyrank",
        arity: 4,
        since: "2.0.0",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes members in a range of ranks.",
        complexity: "O(log(N)+M)",
        run: zremrangebyrank,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zremrangebyscore",
        arity: 4,
        since: "1.2.0",
        flags: WRITE,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes members in a range of scores.",
        complexity: "O(log(N)+M)",
        run: zremrangebyscore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrevrange",
        arity: -4,
        since: "1.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a range of ranks, highest first.",
        complexity: "O(log(N)+M)",
        run: zrevrange,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrevrangebylex",
        arity: -4,
        since: "2.8.9",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a lexicographical range, last first.",
        complexity: "O(log(N)+M)",
        run: zrevrangebylex,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrevrangebyscore",
        arity: -4,
        since: "2.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives members in a range of scores, highest first.",
        complexity: "O(log(N)+M)",
        run: zrevrangebyscore,
        ..Command::of(Group::SortedSet)
    },
];

/// The kind of the two ends of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The two ends of a range, the lower one first.
enum Bounds<'a> {
    /// The first and the last rank. Negative ranks count from the end, in the direction of the range.
    Rank(i64, i64),
    Score(ScoreBound, ScoreBound),
    Lex(LexBound<'a>, LexBound<'a>),
}

impl<'a> Bounds<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8], version: Version) -> Result<Bounds<'a>, Error> {
        match by {
            By::Rank => {
                let rank = |word| num::parse_i64(word).ok_or(error::NOT_AN_INTEGER);
                Ok(Bounds::Rank(rank(min)?, rank(max)?))
            }
            By::Score => score_bound(min, version)
                .zip(score_bound(max, version))
                .map(|(min, max)| Bounds::Score(min, max))
                .ok_or(Error::new("ERR min or max is not a float")),
            By::Lex => lex_bound(min)
                .zip(lex_bound(max))
                .map(|(min, max)| Bounds::Lex(min, max))
                .ok_or(Error::new("ERR min or max not valid string range item")),
        }
    }

    /// Returns the ranks inside the bounds, counted from the lowest score.
    fn ranks(&self, set: &SortedSet, reverse: bool) -> Range<usize> {
        match *self {
            Bounds::Score(min, max) => set.ranks_by_score(min, max),
            Bounds::Lex(min, max) => set.ranks_by_lex(min, max),
            Bounds::Rank(start, end) => {
                let len = set.len() as i64;
                let from_start = |rank: i64| if rank < 0 { rank.saturating_add(len) } else { rank };
                let start = from_start(start).max(0);
                let end = from_start(end).min(len - 1);
                if start > end {
                    return 0..0;
                }
                let (first, last) = if reverse { (len - 1 - end, len - 1 - start) } else { (start, end) };
                first as usize..last as usize + 1
            }
        }
    }
}

/// Parses `1.5`, `(1.5` or `-inf`. An empty text is zero.
fn score_bound(word: &[u8], version: Version) -> Option<ScoreBound> {
    match word {
        [b'(', rest @ ..] => num::strtod(rest, version).map(ScoreBound::Exclusive),
        _ => num::strtod(word, version).map(ScoreBound::Inclusive),
    }
}

/// Returns whether a negative offset counts from the end of a large set.
fn counts_from_end(version: Version) -> bool {
    version > Version::V7_2 && version < Version::V8_2
}

/// Parses `-`, `+`, `[member` or `(member`.
fn lex_bound(word: &[u8]) -> Option<LexBound<'_>> {
    match word {
        b"-" => Some(LexBound::Lowest),
        b"+" => Some(LexBound::Highest),
        [b'[', member @ ..] => Some(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Some(LexBound::Exclusive(member)),
        _ => None,
    }
}

/// The parsed arguments of a command of the ZRANGE family.
struct Query<'a> {
    bounds: Bounds<'a>,
    reverse: bool,
    offset: i64,
    /// The greatest number of members to return; negative: no limit.
    limit: i64,
    with_scores: bool,
}

impl<'a> Query<'a> {
    /// Parses the bounds at argument `at` and the options after them. `by` and `reverse` are what the command's name fixes; if
    /// they are `None`, the command has options for them.
    fn parse(ctx: &Ctx<'a>, at: usize, by: Option<By>, reverse: Option<bool>) -> Result<Query<'a>, Error> {
        let stores = ctx.command.name == "zrangestore";
        let (own_by, own_reverse) = (by, reverse);
        let (mut by, mut reverse) = (own_by, own_reverse);
        let (mut offset, mut limit, mut with_scores) = (0, -1, false);
        let mut words = ctx.words(at + 2);
        while !words.is_empty() {
            if !stores && words.take("WITHSCORES") {
                with_scores = true;
            } else if words.take_with("LIMIT", 2) {
                (offset, limit) = (words.int()?, words.int()?);
            } else if reverse.is_none() && words.take("REV") {
                reverse = Some(true);
            } else if by.is_none() && words.take("BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && words.take("BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(error::SYNTAX);
            }
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(Error::new(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(Error::new("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let (mut min, mut max) = (ctx.argv[at], ctx.argv[at + 1]);
        if reverse && by != By::Rank {
            std::mem::swap(&mut min, &mut max);
        }
        let bounds = Bounds::parse(by, min, max, ctx.version())?;
        Ok(Query { bounds, reverse, offset, limit, with_scores })
    }

    /// Returns the number of members in the range, and the members in the order of the query.
    fn members<'s>(
        &self,
        set: &'s SortedSet,
        version: Version,
    ) -> (usize, impl Iterator<Item = (&'s [u8], f64)> + use<'s>) {
        let ranks = self.ranks(set, version);
        let members = if self.reverse {
            set.iter_back_from(ranks.end.saturating_sub(1))
        } else {
            set.iter_from(ranks.start)
        };
        (ranks.len(), members.take(ranks.len()))
    }

    /// Returns the ranks in the range, counted from the lowest score.
    fn ranks(&self, set: &SortedSet, version: Version) -> Range<usize> {
        let ranks = self.bounds.ranks(set, self.reverse);
        if matches!(self.bounds, Bounds::Rank(..)) {
            return ranks;
        }
        let skipped = match usize::try_from(self.offset) {
            Ok(offset) => offset.min(ranks.len()),
            // A negative offset means nothing, but from 7.4 to 8.0 and in Valkey large sets take it to count from the end.
            Err(_) if counts_from_end(version) && set.encoding() == "skiplist" => {
                let from_end = self.offset.unsigned_abs().try_into().unwrap_or(usize::MAX);
                ranks.len().checked_sub(from_end).unwrap_or(ranks.len())
            }
            Err(_) => ranks.len(),
        };
        let taken = usize::try_from(self.limit).unwrap_or(usize::MAX).min(ranks.len() - skipped);
        if self.reverse {
            let end = ranks.end - skipped;
            end - taken..end
        } else {
            let start = ranks.start + skipped;
            start..start + taken
        }
    }
}

fn zrange(ctx: &mut Ctx) -> Outcome {
    range(ctx, None, None)
}

fn zrevrange(ctx: &mut Ctx) -> Outcome {
    range(ctx, Some(By::Rank), Some(true))
}

fn zrangebyscore(ctx: &mut Ctx) -> Outcome {
    range(ctx, Some(By::Score), Some(false))
}

fn zrevrangebyscore(ctx: &mut Ctx) -> Outcome {
    range(ctx, Some(By::Score), Some(true))
}

fn zrangebylex(ctx: &mut Ctx) -> Outcome {
    range(ctx, Some(By::Lex), Some(false))
}

fn zrevrangebylex(ctx: &mut Ctx) -> Outcome {
    range(ctx, Some(By::Lex), Some(true))
}

fn range(ctx: &mut Ctx, by: Option<By>, reverse: Option<bool>) -> Outcome {
    let query = Query::parse(ctx, 2, by, reverse)?;
    let version = ctx.version();
    let (set, reply) = ctx.read_and_reply::<SortedSet>(ctx.argv[1])?;
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    let (len, members) = query.members(set, version);
    reply_members(reply, len, members, query.with_scores);
    Ok(())
}

fn zrangestore(ctx: &mut Ctx) -> Outcome {
    let (to, from) = (ctx.argv[1], ctx.argv[2]);
    let query = Query::parse(ctx, 3, None, None)?;
    let version = ctx.version();
    let limits = ctx.node.store.limits.clone();
    let mut result = SortedSet::for_members(0, 0, &limits);
    if let Some(set) = ctx.read::<SortedSet>(from)? {
        let (len, members) = query.members(set, version);
        if matches!(query.bounds, Bounds::Rank(..)) {
            // Only ranks tell beforehand how many members there will be.
            result.expect(len, 0, &limits);
        }
        for (member, score) in members {
            result.add(member, score, &limits);
        }
    }
    let len = result.len();
    let result = (len > 0).then_some(result);
    ctx.store_result(to, result, "zrangestore", 1);
    ctx.reply.int(len as i64);
    Ok(())
}

fn zcount(ctx: &mut Ctx) -> Outcome {
    count(ctx, By::Score)
}

fn zlexcount(ctx: &mut Ctx) -> Outcome {
    count(ctx, By::Lex)
}

fn count(ctx: &mut Ctx, by: By) -> Outcome {
    let bounds = Bounds::parse(by, ctx.argv[2], ctx.argv[3], ctx.version())?;
    let (set, reply) = ctx.read_and_reply::<SortedSet>(ctx.argv[1])?;
    reply.int(set.map_or(0, |set| bounds.ranks(set, false).len()) as i64);
    Ok(())
}

fn zremrangebyrank(ctx: &mut Ctx) -> Outcome {
    remove_range(ctx, By::Rank)
}

fn zremrangebyscore(ctx: &mut Ctx) -> Outcome {
    remove_range(ctx, By::Score)
}

fn zremrangebylex(ctx: &mut Ctx) -> Outcome {
    remove_range(ctx, By::Lex)
}

fn remove_range(ctx: &mut Ctx, by: By) -> Outcome {
    let key = ctx.argv[1];
    let bounds = Bounds::parse(by, ctx.argv[2], ctx.argv[3], ctx.version())?;
    let event = ctx.command.name;
    let Some(mut edit) = ctx.edit::<SortedSet>(key)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let set = &mut *edit;
    let removed = set.remove_ranks(bounds.ranks(set, false));
    edit.done_if_any(event, removed);
    ctx.reply.int(removed as i64);
    Ok(())
}
