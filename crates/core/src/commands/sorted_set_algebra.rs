//! Unions, intersections and differences of sorted sets. In plain sets, each member counts with a score of 1.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::command::*;
use super::ctx::{Ctx, Words};
use super::sorted_sets::reply_members;
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::{SortedSet, Value};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "zdiff",
        arity: -3,
        since: "6.2.0",
        flags: READONLY | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 1)],
        summary: "Gives the difference of sorted sets.",
        complexity: "O(L + (N-K)log(N))",
        run: zdiff,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zdiffstore",
        arity: -4,
        since: "6.2.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[key(&["OW", "update"], 1), counted_keys(&["RO", "access"], 2)],
        summary: "Stores the difference of sorted sets.",
        complexity: "O(L + (N-K)log(N))",
        run: zdiffstore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zinter",
        arity: -3,
        since: "6.2.0",
        flags: READONLY | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 1)],
        summary: "Gives the intersection of sorted sets.",
        complexity: "O(N*K)",
        run: zinter,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zintercard",
        arity: -3,
        since: "7.0.0",
        flags: READONLY | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 1)],
        summary: "Counts the members of an intersection.",
        complexity: "O(N*K)",
        run: zintercard,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zinterstore",
        arity: -4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[key(&["OW", "update"], 1), counted_keys(&["RO", "access"], 2)],
        summary: "Stores the intersection of sorted sets.",
        complexity: "O(N*K)",
        run: zinterstore,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zunion",
        arity: -3,
        since: "6.2.0",
        flags: READONLY | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 1)],
        summary: "Gives the union of sorted sets.",
        complexity: "O(N)",
        run: zunion,
        ..Command::of(Group::SortedSet)
    },
    Command {
        name: "zunionstore",
        arity: -4,
        since: "2.0.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[key(&["OW", "update"], 1), counted_keys(&["RO", "access"], 2)],
        summary: "Stores the union of sorted sets.",
        complexity: "O(N)",
        run: zunionstore,
        ..Command::of(Group::SortedSet)
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// The function that combines the scores of a member in several sets.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_if_nan(a + b),
            Aggregate::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Aggregate::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

/// Adds two scores. Infinities that cancel each other give zero.
fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets that a command reads. The members are copies, because the look-up of the next key borrows the store.
struct Input {
    members: Vec<(Vec<u8>, f64)>,
    weight: f64,
}

impl Input {
    fn read(ctx: &mut Ctx, key: &[u8]) -> Result<Input, Error> {
        let entry = ctx.find(key).and_then(|slot| ctx.entry(slot));
        let members = match entry.map(|entry| &entry.value) {
            None => Vec::new(),
            Some(Value::SortedSet(set)) => {
                set.iter().map(|(member, score)| (member.to_vec(), score)).collect()
            }
            Some(Value::Set(set)) => set.iter().map(|member| (member.to_vec(), 1.0)).collect(),
            Some(_) => return Err(error::WRONG_TYPE),
        };
        Ok(Input { members, weight: 1.0 })
    }

    fn scores(&self) -> Scores<'_> {
        let mut scores = Scores::default();
        scores.extend(self.members.iter().map(|(member, score)| (member.as_slice(), *score)));
        scores
    }
}

type Scores<'a> = HashMap<&'a [u8], f64, foldhash::fast::FixedState>;

/// The parsed arguments of a command and the sets that it reads.
struct Query {
    inputs: Vec<Input>,
    aggregate: Aggregate,
    with_scores: bool,
    /// The count at which ZINTERCARD stops (0: no limit).
    limit: usize,
}

/// The options that a command accepts.
#[derive(Clone, Copy)]
struct Allowed {
    weights_and_aggregate: bool,
    with_scores: bool,
    limit: bool,
}

impl Query {
    /// Parses `numkeys key …` from argument `at` on, and the options, and reads the sets.
    fn parse(ctx: &mut Ctx, at: usize, allowed: Allowed) -> Result<Query, Error> {
        let mut words = ctx.words(at);
        let numkeys = words.int()?;
        if numkeys < 1 {
            let name = ctx.command.name;
            return Err(format!("ERR at least 1 input key is needed for '{name}' command").into());
        }
        let numkeys = numkeys as usize;
        if numkeys > words.len() {
            return Err(error::SYNTAX);
        }
        let mut inputs = Vec::with_capacity(numkeys);
        for key in &words.rest()[..numkeys] {
            inputs.push(Input::read(ctx, key)?);
        }
        let mut query = Query { inputs, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        query.parse_options(ctx.words(at + 1 + numkeys), allowed, ctx.version())?;
        Ok(query)
    }

    fn parse_options(&mut self, mut words: Words, allowed: Allowed, version: Version) -> Outcome {
        while !words.is_empty() {
            if allowed.weights_and_aggregate && words.take_with("WEIGHTS", self.inputs.len()) {
                for input in &mut self.inputs {
                    input.weight = num::parse_operand(words.word()?, version)
                        .ok_or(Error::new("ERR weight value is not a float"))?;
                }
            } else if allowed.weights_and_aggregate && words.take_with("AGGREGATE", 1) {
                self.aggregate = match words.word()?.to_ascii_lowercase().as_slice() {
                    b"sum" => Aggregate::Sum,
                    b"min" => Aggregate::Min,
                    b"max" => Aggregate::Max,
                    _ => return Err(error::SYNTAX),
                };
            } else if allowed.with_scores && words.take("WITHSCORES") {
                self.with_scores = true;
            } else if allowed.limit && words.take_with("LIMIT", 1) {
                let limit = num::parse_i64(words.word()?).and_then(|limit| usize::try_from(limit).ok());
                self.limit = limit.ok_or(Error::new("ERR LIMIT can't be negative"))?;
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(())
    }

    /// Returns the members of the result, each once, with their scores.
    fn run(&mut self, operation: Operation) -> Vec<(&[u8], f64)> {
        if operation != Operation::Diff {
            // Smallest first: sums of more than two scores depend on it.
            self.inputs.sort_by_key(|input| input.members.len());
        }
        match operation {
            Operation::Union => self.union(),
            Operation::Inter => self.inter().collect(),
            Operation::Diff => self.diff(),
        }
    }

    fn union(&self) -> Vec<(&[u8], f64)> {
        let mut scores = Scores::default();
        for input in &self.inputs {
            for (member, score) in &input.members {
                let score = zero_if_nan(input.weight * score);
                scores
                    .entry(member.as_slice())
                    .and_modify(|sum| *sum = self.aggregate.join(*sum, score))
                    .or_insert(score);
            }
        }
        scores.into_iter().collect()
    }

    fn inter(&self) -> impl Iterator<Item = (&[u8], f64)> {
        let (first, others) = self
            .inputs
            .split_first()
            .map_or((&[][..], &[][..]), |(first, others)| (std::slice::from_ref(first), others));
        let others: Vec<(Scores, f64)> = others.iter().map(|input| (input.scores(), input.weight)).collect();
        first.iter().flat_map(|input| input.members.iter().map(|entry| (entry, input.weight))).filter_map(
            move |((member, score), weight)| {
                let member = member.as_slice();
                let mut score = zero_if_nan(weight * score);
                for (scores, weight) in &others {
                    score = self.aggregate.join(score, scores.get(member)? * weight);
                }
                Some((member, score))
            },
        )
    }

    fn diff(&self) -> Vec<(&[u8], f64)> {
        let Some((first, others)) = self.inputs.split_first() else { return Vec::new() };
        let mut scores = first.scores();
        for (member, _) in others.iter().flat_map(|input| &input.members) {
            scores.remove(member.as_slice());
        }
        scores.into_iter().collect()
    }
}

fn zunion(ctx: &mut Ctx) -> Outcome {
    answer(ctx, Operation::Union)
}

fn zinter(ctx: &mut Ctx) -> Outcome {
    answer(ctx, Operation::Inter)
}

fn zdiff(ctx: &mut Ctx) -> Outcome {
    answer(ctx, Operation::Diff)
}

fn answer(ctx: &mut Ctx, operation: Operation) -> Outcome {
    let weighted = operation != Operation::Diff;
    let allowed = Allowed { weights_and_aggregate: weighted, with_scores: true, limit: false };
    let mut query = Query::parse(ctx, 1, allowed)?;
    let with_scores = query.with_scores;
    let mut members = query.run(operation);
    members.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal).then(a.0.cmp(b.0)));
    reply_members(ctx.reply, members.len(), members.into_iter(), with_scores);
    Ok(())
}

fn zunionstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Union)
}

fn zinterstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Inter)
}

fn zdiffstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Diff)
}

fn store(ctx: &mut Ctx, operation: Operation) -> Outcome {
    let weighted = operation != Operation::Diff;
    let allowed = Allowed { weights_and_aggregate: weighted, with_scores: false, limit: false };
    let mut query = Query::parse(ctx, 2, allowed)?;
    let limits = ctx.node.store.limits.clone();
    let mut result = SortedSet::skiplist();
    for (member, score) in query.run(operation) {
        result.add(member, score, &limits);
    }
    result.become_listpack_if_possible(&limits);
    let len = result.len();
    let result = (len > 0).then_some(result);
    ctx.store_result(ctx.argv[1], result, ctx.command.name, 1);
    ctx.reply.int(len as i64);
    Ok(())
}

fn zintercard(ctx: &mut Ctx) -> Outcome {
    let allowed = Allowed { weights_and_aggregate: false, with_scores: false, limit: true };
    let query = Query::parse(ctx, 1, allowed)?;
    let most = if query.limit == 0 { usize::MAX } else { query.limit };
    let count = query.inter().take(most).count();
    ctx.reply.int(count as i64);
    Ok(())
}
