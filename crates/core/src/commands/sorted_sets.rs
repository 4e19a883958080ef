//! Commands for the members of a sorted set and their scores. Ranges, pops and set operations are in the sibling modules.

use super::command::*;
use super::ctx::{Ctx, Words};
use super::random;
use super::scan;
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::{Limits, SortedSet};
use crate::wire::{Protocol, Reply};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "zadd",
        arity: -4,
        since: "1.2.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Adds members with scores, or changes scores.",
        complexity: "O(log(N))",
        run: zadd,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zcard",
        arity: 2,
        since: "1.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Counts the members.",
        complexity: "O(1)",
        run: zcard,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zincrby",
        arity: 4,
        since: "1.2.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Adds to the score of a member.",
        complexity: "O(log(N))",
        run: zincrby,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zmscore",
        arity: -3,
        since: "6.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the scores of several members.",
        complexity: "O(N)",
        run: zmscore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrandmember",
        arity: -2,
        since: "6.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives random members.",
        complexity: "O(N)",
        run: zrandmember,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrank",
        arity: -3,
        old_arity: Some(3),
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the rank of a member from the lowest score.",
        complexity: "O(log(N))",
        run: zrank,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrem",
        arity: -3,
        since: "1.2.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Removes members.",
        complexity: "O(M*log(N))",
        run: zrem,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zrevrank",
        arity: -3,
        old_arity: Some(3),
        since: "2.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the rank of a member from the highest score.",
        complexity: "O(log(N))",
        run: zrevrank,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zscan",
        arity: -3,
        since: "2.8.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Walks through the members.",
        complexity: "O(1)",
        run: zscan,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zscore",
        arity: 3,
        since: "1.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the score of a member.",
        complexity: "O(1)",
        run: zscore,
        ..Command::of(Group::SortedSet)
    },
];

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
pub(super) struct AddOptions {
    pub nx: bool,
    pub xx: bool,
    gt: bool,
    lt: bool,
    /// Whether to count changed members too.
    pub ch: bool,
    /// Whether to add to the score instead of setting it.
    incr: bool,
}

impl AddOptions {
    /// Takes the options that precede the scores.
    fn take(&mut self, words: &mut Words) {
        while let Some(word) = words.rest().first() {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => self.nx = true,
                b"xx" => self.xx = true,
                b"gt" => self.gt = true,
                b"lt" => self.lt = true,
                b"ch" => self.ch = true,
                b"incr" => self.incr = true,
                _ => break,
            }
            words.pop();
        }
    }

    fn check(self, pairs: usize) -> Outcome {
        if self.nx && self.xx {
            return Err(Error::new("ERR XX and NX options at the same time are not compatible"));
        }
        if self.nx && (self.gt || self.lt) || self.gt && self.lt {
            return Err(Error::new("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.incr && pairs > 1 {
            return Err(Error::new("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Adds a member or changes its score if the options allow it.
    ///
    /// # Errors
    /// If the new score is not a number, which only INCR can cause.
    fn apply(self, set: &mut SortedSet, member: &[u8], score: f64, limits: &Limits) -> Result<Change, Error> {
        let Some(old) = set.score(member) else {
            if self.xx {
                return Ok(Change::Refused);
            }
            set.add(member, score, limits);
            return Ok(Change::Added(score));
        };
        if self.nx {
            return Ok(Change::Refused);
        }
        let new = if self.incr { old + score } else { score };
        if new.is_nan() {
            return Err(Error::new("ERR resulting score is not a number (NaN)"));
        }
        if self.gt && new <= old || self.lt && new >= old {
            return Ok(Change::Refused);
        }
        if new == old {
            return Ok(Change::Kept(new));
        }
        set.add(member, new, limits);
        Ok(Change::Updated(new))
    }
}

/// The outcome for one member, with its new score.
enum Change {
    Added(f64),
    Updated(f64),
    Kept(f64),
    /// The options do not allow the change.
    Refused,
}

fn zadd(ctx: &mut Ctx) -> Outcome {
    add(ctx, AddOptions::default())
}

fn zincrby(ctx: &mut Ctx) -> Outcome {
    add(ctx, AddOptions { incr: true, ..AddOptions::default() })
}

fn add(ctx: &mut Ctx, mut options: AddOptions) -> Outcome {
    let mut words = ctx.words(2);
    options.take(&mut words);
    let (pairs, []) = words.rest().as_chunks::<2>() else { return Err(error::SYNTAX) };
    if pairs.is_empty() {
        return Err(error::SYNTAX);
    }
    options.check(pairs.len())?;
    let mut entries = Vec::with_capacity(pairs.len());
    for [score, member] in pairs {
        entries.push((*member, num::parse_operand(score, ctx.version()).ok_or(error::NOT_A_FLOAT)?));
    }
    add_entries(ctx, options, &entries)
}

/// Adds members with their scores, at least one, to the sorted set at the first key, and writes the reply of ZADD.
pub(super) fn add_entries(ctx: &mut Ctx, options: AddOptions, entries: &[(&[u8], f64)]) -> Outcome {
    let key = ctx.argv[1];
    let (mut added, mut updated, mut last) = (0, 0, None);
    if !options.xx || ctx.exists(key) {
        let mut edit = ctx.edit_or_create::<SortedSet>(key)?;
        let (set, limits) = edit.with_limits();
        // For a new set, Redis chooses the encoding by the length of the first member; Valkey looks at all members, and at every
        // set.
        let longest = match limits.version.is_valkey() {
            true => entries.iter().map(|(member, _)| member.len()).max().unwrap_or(0),
            false if set.is_empty() => entries[0].0.len(),
            false => 0,
        };
        set.expect(entries.len(), longest, limits);
        for &(member, score) in entries {
            last = match options.apply(set, member, score, limits) {
                Ok(Change::Refused) => None,
                Ok(Change::Kept(score)) => Some(score),
                Ok(Change::Added(score)) => {
                    added += 1;
                    Some(score)
                }
                Ok(Change::Updated(score)) => {
                    updated += 1;
                    Some(score)
                }
                // Only ZINCRBY fails, and it has one member.
                Err(not_a_number) => {
                    edit.unchanged();
                    return Err(not_a_number);
                }
            };
        }
        edit.done_if_any(if options.incr { "zincr" } else { "zadd" }, added + updated);
    }
    match (options.incr, last) {
        (true, Some(score)) => ctx.reply.double(score),
        (true, None) => ctx.reply.null(),
        (false, _) => ctx.reply.int(if options.ch { added + updated } else { added } as i64),
    }
    Ok(())
}

fn zrem(ctx: &mut Ctx) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    let Some(mut edit) = ctx.edit::<SortedSet>(key)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let set = &mut *edit;
    let removed = members.iter().filter(|member| set.remove(member).is_some()).count();
    edit.done_if_any("zrem", removed);
    ctx.reply.int(removed as i64);
    Ok(())
}

fn zcard(ctx: &mut Ctx) -> Outcome {
    let (set, reply) = ctx.read_and_reply::<SortedSet>(ctx.argv[1])?;
    reply.int(set.map_or(0, SortedSet::len) as i64);
    Ok(())
}

fn zscore(ctx: &mut Ctx) -> Outcome {
    let (key, member) = (ctx.argv[1], ctx.argv[2]);
    let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
    reply_score(reply, set, member);
    Ok(())
}

fn zmscore(ctx: &mut Ctx) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
    reply.array(members.len());
    for member in members {
        reply_score(reply, set, member);
    }
    Ok(())
}

fn reply_score(reply: &mut Reply, set: Option<&SortedSet>, member: &[u8]) {
    match set.and_then(|set| set.score(member)) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

fn zrank(ctx: &mut Ctx) -> Outcome {
    rank(ctx, |rank, _| rank)
}

fn zrevrank(ctx: &mut Ctx) -> Outcome {
    rank(ctx, |rank, len| len - 1 - rank)
}

/// Writes the rank of a member. `from_first` converts the rank from the lowest score, given the size of the set, to the
/// requested rank.
fn rank(ctx: &mut Ctx, from_first: fn(usize, usize) -> usize) -> Outcome {
    let (key, member) = (ctx.argv[1], ctx.argv[2]);
    let with_score = match &ctx.argv[3..] {
        [] => false,
        [word] => {
            if !word.eq_ignore_ascii_case(b"WITHSCORE") {
                return Err(error::SYNTAX);
            }
            true
        }
        _ => return Err(error::wrong_arity(ctx.command.name)),
    };
    let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
    let found = set.and_then(|set| Some((from_first(set.rank(member)?, set.len()), set.score(member)?)));
    match (found, with_score) {
        (Some((rank, _)), false) => reply.int(rank as i64),
        (Some((rank, score)), true) => {
            reply.array(2);
            reply.int(rank as i64);
            reply.double(score);
        }
        (None, false) => reply.null(),
        (None, true) => reply.null_array(),
    }
    Ok(())
}

fn zrandmember(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let Some(request) = random::Request::parse(ctx, "WITHSCORES")? else {
        let draw = ctx.random();
        let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
        reply.bulk_or_null(set.and_then(|set| set.random(draw)).map(|(member, _)| member));
        return Ok(());
    };
    let members: Vec<(Vec<u8>, f64)> = match ctx.read::<SortedSet>(key)? {
        // Where all are asked for, Redis gives the highest first.
        Some(set) => {
            set.iter_back_from(set.len() - 1).map(|(member, score)| (member.to_vec(), score)).collect()
        }
        None => Vec::new(),
    };
    random::reply(ctx, &members, request, |reply, &score| reply.double(score))
}

fn zscan(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    scan::scan_value::<SortedSet>(ctx, |set, options, found| {
        let is_listpack = set.encoding() == "listpack";
        set.scan(options.cursor, options.count, |member, score| {
            if options.matches(member) {
                let text = match num::as_integer(score) {
                    Some(integer) if is_listpack => integer.to_string(),
                    None if is_listpack => num::format_double(score, version),
                    // A large set's scores are printed with all their digits in every release.
                    _ => num::format_g(score, 17),
                };
                found.push(member.to_vec());
                found.push(text.into_bytes());
            }
        })
    })
}

/// Writes `len` members, with their scores if `with_scores` is true: as pairs in RESP3, as one flat array in RESP2.
pub(super) fn reply_members<'a>(
    reply: &mut Reply,
    len: usize,
    members: impl Iterator<Item = (&'a [u8], f64)>,
    with_scores: bool,
) {
    let nested = with_scores && reply.protocol == Protocol::Resp3;
    reply.array(if with_scores && !nested { len * 2 } else { len });
    for (member, score) in members {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
    }
}
