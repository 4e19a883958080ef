//! Intersections, unions and differences of sets.

use itoa::Buffer;

use super::command::*;
use super::ctx::{Ctx, Words};
use super::sets::write_set;
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::set::Member;
use crate::store::{Limits, Set, ValueType};
use crate::version::Version;

/// The keys of commands that store the result of several sets.
const STORED: &[KeySpec] = &[key(&["OW", "update"], 1), keys(&["RO", "access"], 2, -1, 1)];

pub const COMMANDS: &[Command] = &[
    Command {
        name: "sdiff",
        arity: -2,
        since: "1.0.0",
        flags: READONLY,
        keys: &[keys(&["RO", "access"], 1, -1, 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives the difference of sets.",
        complexity: "O(N)",
        run: sdiff,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sdiffstore",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM,
        keys: STORED,
        summary: "Stores the difference of sets.",
        complexity: "O(N)",
        run: sdiffstore,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sinter",
        arity: -2,
        since: "1.0.0",
        flags: READONLY,
        keys: &[keys(&["RO", "access"], 1, -1, 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives the intersection of sets.",
        complexity: "O(N*M)",
        run: sinter,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sintercard",
        arity: -3,
        since: "7.0.0",
        flags: READONLY | MOVABLEKEYS,
        keys: &[counted_keys(&["RO", "access"], 1)],
        summary: "Counts the members of an intersection.",
        complexity: "O(N*M)",
        run: sintercard,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sinterstore",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "update"], 1), keys(&["RO", "access"], 2, -1, 1)],
        summary: "Stores the intersection of sets.",
        complexity: "O(N*M)",
        changes: &[Change { since: ("7.2.0", ""), apply: |row| row.keys = STORED }],
        run: sinterstore,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sunion",
        arity: -2,
        since: "1.0.0",
        flags: READONLY,
        keys: &[keys(&["RO", "access"], 1, -1, 1)],
        tips: &["nondeterministic_output_order"],
        summary: "Gives the union of sets.",
        complexity: "O(N)",
        run: sunion,
        ..Command::of(Group::Set)
    },
    Command {
        name: "sunionstore",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | DENYOOM,
        keys: STORED,
        summary: "Stores the union of sets.",
        complexity: "O(N)",
        run: sunionstore,
        ..Command::of(Group::Set)
    },
];

/// A set operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

impl Operation {
    fn event(self) -> &'static str {
        match self {
            Operation::Intersection => "sinterstore",
            Operation::Union => "sunionstore",
            Operation::Difference => "sdiffstore",
        }
    }

    fn of(self, sets: &[Option<&Set>], limits: &Limits) -> Set {
        match self {
            Operation::Intersection => intersection(sets, limits),
            Operation::Union => union(sets, limits),
            Operation::Difference => difference(sets, limits),
        }
    }
}

fn sinter(ctx: &mut Ctx) -> Outcome {
    show(ctx, Operation::Intersection)
}

fn sunion(ctx: &mut Ctx) -> Outcome {
    show(ctx, Operation::Union)
}

fn sdiff(ctx: &mut Ctx) -> Outcome {
    show(ctx, Operation::Difference)
}

fn sinterstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Intersection)
}

fn sunionstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Union)
}

fn sdiffstore(ctx: &mut Ctx) -> Outcome {
    store(ctx, Operation::Difference)
}

fn show(ctx: &mut Ctx, operation: Operation) -> Outcome {
    let result = compute(ctx, operation, &ctx.argv[1..])?;
    write_set(&result, ctx.reply);
    Ok(())
}

fn store(ctx: &mut Ctx, operation: Operation) -> Outcome {
    let to = ctx.argv[1];
    let result = compute(ctx, operation, &ctx.argv[2..])?;
    ctx.reply.int(result.len() as i64);
    let result = (!result.is_empty()).then_some(result);
    ctx.store_result(to, result, operation.event(), 1);
    Ok(())
}

fn compute(ctx: &mut Ctx, operation: Operation, keys: &[&[u8]]) -> Result<Set, Error> {
    let slots = find_all(ctx, keys)?;
    Ok(operation.of(&sets_at(ctx, &slots), &ctx.node.store.limits))
}

/// Returns the slots of keys that hold sets, with `None` for missing keys.
fn find_all(ctx: &mut Ctx, keys: &[&[u8]]) -> Result<Vec<Option<u32>>, Error> {
    let mut slots = Vec::with_capacity(keys.len());
    for key in keys {
        let slot = ctx.find(key);
        if slot.and_then(|slot| ctx.entry(slot)).is_some_and(|entry| Set::of(&entry.value).is_none()) {
            return Err(error::WRONG_TYPE);
        }
        slots.push(slot);
    }
    Ok(slots)
}

fn sets_at<'a>(ctx: &'a Ctx, slots: &[Option<u32>]) -> Vec<Option<&'a Set>> {
    let set = |slot: &Option<u32>| Set::of(&ctx.entry((*slot)?)?.value);
    slots.iter().map(set).collect()
}

/// Returns the members that all sets have, in the order of the smallest set; none if a set is missing.
fn common<'a>(sets: &'a [Option<&'a Set>]) -> impl Iterator<Item = Member<'a>> + 'a {
    let mut sets: Vec<&Set> = sets.iter().copied().collect::<Option<_>>().unwrap_or_default();
    sets.sort_by_key(|set| set.len());
    let smallest = sets.first().copied();
    let is_common = move |member: &Member| {
        let mut digits = Buffer::new();
        let bytes = member.bytes(&mut digits);
        sets[1..].iter().all(|set| set.contains(bytes))
    };
    smallest.into_iter().flat_map(Set::iter).filter(is_common)
}

fn intersection(sets: &[Option<&Set>], limits: &Limits) -> Set {
    let smallest = sets.iter().flatten().min_by_key(|set| set.len());
    let mut result = smallest.map_or_else(Set::intset, |set| set.for_intersection(limits));
    add_all(&mut result, common(sets), limits);
    if limits.version >= Version::V7_2 {
        result.become_intset_if_possible(limits);
    }
    result
}

fn add_all<'a>(result: &mut Set, members: impl Iterator<Item = Member<'a>>, limits: &Limits) {
    let mut digits = Buffer::new();
    for member in members {
        result.add(member.bytes(&mut digits), limits);
    }
}

fn union(sets: &[Option<&Set>], limits: &Limits) -> Set {
    let mut result = Set::intset();
    for set in sets.iter().flatten() {
        add_all(&mut result, set.iter(), limits);
    }
    result
}

/// Returns the members of the first set that no other set has.
///
/// Redis looks up each member in all other sets or, if it expects that to take longer, removes the members of the other sets
/// from a copy of the first. The two ways may give the result another encoding, so this function chooses as Redis does.
fn difference(sets: &[Option<&Set>], limits: &Limits) -> Set {
    let mut result = Set::intset();
    let (Some(Some(first)), others) = (sets.first(), sets.get(1..).unwrap_or(&[])) else { return result };
    let others: Vec<&Set> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| std::ptr::eq(*first, *other)) {
        return result;
    }
    let lookups = first.len() * (others.len() + 1) / 2;
    let removals = first.len() + others.iter().map(|other| other.len()).sum::<usize>();
    let mut digits = Buffer::new();
    if lookups <= removals {
        let kept = first.iter().filter(|member| {
            let mut digits = Buffer::new();
            let bytes = member.bytes(&mut digits);
            !others.iter().any(|other| other.contains(bytes))
        });
        add_all(&mut result, kept, limits);
    } else {
        add_all(&mut result, first.iter(), limits);
        for member in others.iter().flat_map(|other| other.iter()) {
            result.remove(member.bytes(&mut digits));
        }
    }
    result
}

fn sintercard(ctx: &mut Ctx) -> Outcome {
    let (keys, limit) = parse_sintercard(ctx.words(1))?;
    let slots = find_all(ctx, keys)?;
    let sets = sets_at(ctx, &slots);
    let count = match limit {
        0 => common(&sets).count(),
        limit => common(&sets).take(limit).count(),
    };
    ctx.reply.int(count as i64);
    Ok(())
}

/// Parses `numkeys key … [LIMIT limit]`. A limit of 0 means no limit.
fn parse_sintercard<'a>(mut words: Words<'a>) -> Result<(&'a [&'a [u8]], usize), Error> {
    let numkeys = num::parse_i64(words.word()?)
        .filter(|&numkeys| numkeys > 0)
        .ok_or(Error::new("ERR numkeys should be greater than 0"))? as usize;
    let too_many = Error::new("ERR Number of keys can't be greater than number of args");
    let keys = words.rest().get(..numkeys).ok_or(too_many)?;
    words.skip(numkeys);
    let mut limit = 0;
    while !words.is_empty() {
        if !words.take_with("LIMIT", 1) {
            return Err(error::SYNTAX);
        }
        let negative = Error::new("ERR LIMIT can't be negative");
        limit = num::parse_i64(words.word()?).filter(|&limit| limit >= 0).ok_or(negative)? as usize;
    }
    Ok((keys, limit))
}
