//! SORT and SORT_RO.

use std::cmp::Ordering;

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::slots::hash_slot;
use crate::store::list::End;
use crate::store::{List, Value};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "sort",
        arity: -2,
        since: "1.0.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        acl: &["set", "sortedset", "list", "dangerous"],
        keys: &[
            key(&["RO", "access"], 1),
            KeySpec {
                flags: &["RO", "access"],
                notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort",
                begin: Begin::Unknown,
                find: Find::Unknown,
            },
            KeySpec {
                flags: &["OW", "update"],
                notes: "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array",
                begin: Begin::Option {
                    keywords: &["store"],
                    from: 2,
                    skipping: &[("limit", 2), ("get", 1), ("by", 1)],
                },
                find: Find::Range { last: 0, step: 1, limit: 0 },
            },
        ],
        summary: "Sorts a list, set or sorted set, and stores the result if asked.",
        complexity: "O(N+M*log(M))",
        run: sort,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "sort_ro",
        arity: -2,
        since: "7.0.0",
        flags: READONLY | MOVABLEKEYS,
        acl: &["set", "sortedset", "list", "dangerous"],
        keys: &[
            key(&["RO", "access"], 1),
            KeySpec {
                flags: &["RO", "access"],
                notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort",
                begin: Begin::Unknown,
                find: Find::Unknown,
            },
        ],
        summary: "Sorts a list, set or sorted set.",
        complexity: "O(N+M*log(M))",
        run: sort_ro,
        ..Command::of(Group::Generic)
    },
];

fn sort(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx, true)?;
    run(ctx, options)
}

fn sort_ro(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx, false)?;
    run(ctx, options)
}

struct Options<'a> {
    desc: bool,
    alpha: bool,
    offset: i64,
    /// The greatest number of elements to return; negative: no limit.
    limit: i64,
    /// The pattern of the keys whose values are the weights.
    by: Option<&'a [u8]>,
    /// Whether BY has a pattern without `*`, which turns sorting off.
    unsorted: bool,
    get: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(ctx: &Ctx<'a>, may_store: bool) -> Result<Options<'a>, Error> {
        let mut options = Options {
            desc: false,
            alpha: false,
            offset: 0,
            limit: -1,
            by: None,
            unsorted: false,
            get: Vec::new(),
            store: None,
        };
        // The keys that BY and GET name depend on the data, so they need permission to read every key.
        let user = &ctx.node.sessions[ctx.id].user;
        let may_read_every_key = user.may_read_every_key(ctx.command, ctx.argv, ctx.version());
        let mut words = ctx.words(2);
        while !words.is_empty() {
            if words.take("ASC") {
                options.desc = false;
            } else if words.take("DESC") {
                options.desc = true;
            } else if words.take("ALPHA") {
                options.alpha = true;
            } else if words.take_with("LIMIT", 2) {
                (options.offset, options.limit) = (words.int()?, words.int()?);
            } else if may_store && words.take_with("STORE", 1) {
                options.store = words.pop();
            } else if words.take_with("BY", 1) {
                let pattern = words.word()?;
                options.by = Some(pattern);
                let names_keys = pattern.contains(&b'*');
                options.unsorted |= !names_keys;
                if names_keys {
                    check_slot(ctx, "BY", pattern)?;
                }
                if names_keys && !may_read_every_key {
                    return Err(Error::new(
                        "ERR BY option of SORT denied due to insufficient ACL permissions.",
                    ));
                }
            } else if words.take_with("GET", 1) {
                let pattern = words.word()?;
                check_slot(ctx, "GET", pattern)?;
                options.get.push(pattern);
                if !may_read_every_key {
                    return Err(Error::new(
                        "ERR GET option of SORT denied due to insufficient ACL permissions.",
                    ));
                }
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(options)
    }

    /// Returns the range of the `len` sorted elements that LIMIT selects.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = usize::try_from(self.limit).unwrap_or(usize::MAX).min(len - start);
        start..start + count
    }
}

/// Fails in a cluster if keys that a pattern names may be in other slots than the one that is sorted. Before 7.4, all patterns are
/// refused.
fn check_slot(ctx: &Ctx, option: &str, pattern: &[u8]) -> Outcome {
    let version = ctx.version();
    let is_old = version < Version::V7_4 && !version.is_valkey();
    let is_element = pattern == b"#" && version >= Version::V8_0;
    if is_element
        || ctx.node.cluster.is_none()
        || !is_old && slot_of_pattern(pattern) == Some(hash_slot(ctx.argv[1]))
    {
        return Ok(());
    }
    let why = if is_old { "" } else { " when keys formed by the pattern may be in different slots" };
    Err(format!("ERR {option} option of SORT denied in Cluster mode{why}.").into())
}

/// Returns the slot of all keys that match a pattern, if they have the same: the pattern has a hash tag without wildcards.
fn slot_of_pattern(pattern: &[u8]) -> Option<u16> {
    let wild = pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len());
    let tag_end = pattern.iter().position(|&byte| byte == b'}');
    (wild == pattern.len() || tag_end.is_some_and(|end| end < wild && pattern[..end].contains(&b'{')))
        .then(|| hash_slot(pattern))
}

fn run(ctx: &mut Ctx, mut options: Options) -> Outcome {
    let (mut elements, is_set) = read_elements(ctx)?;
    if options.unsorted && is_set && (options.store.is_some() || ctx.origin == Origin::Script) {
        // The order of a set's members means nothing, and what is stored or seen by a script must be the same everywhere.
        (options.unsorted, options.alpha, options.by) = (false, true, None);
    }
    if options.unsorted {
        if options.desc && !is_set {
            elements.reverse();
        }
    } else {
        sort_elements(ctx, &mut elements, &options)?;
    }
    let chosen = &elements[options.range(elements.len())];
    let mut result: Vec<Option<Vec<u8>>> = Vec::new();
    for element in chosen {
        if options.get.is_empty() {
            result.push(Some(element.clone()));
        }
        for pattern in &options.get {
            result.push(look_up(ctx, pattern, element));
        }
    }
    match options.store {
        Some(key) => store(ctx, key, result),
        None => {
            ctx.reply.array(result.len());
            for element in &result {
                ctx.reply.bulk_or_null(element.as_deref());
            }
        }
    }
    Ok(())
}

/// Returns the elements of the key in their own order, and whether the key is a set. Converts a sorted set to the skiplist
/// encoding.
fn read_elements(ctx: &mut Ctx) -> Result<(Vec<Vec<u8>>, bool), Error> {
    let Some(slot) = ctx.find(ctx.argv[1]) else { return Ok((Vec::new(), false)) };
    let Some(value) = ctx.value_mut(slot) else { return Ok((Vec::new(), false)) };
    match value {
        Value::List(list) => Ok((list.iter().map(<[u8]>::to_vec).collect(), false)),
        Value::Set(set) => Ok((set.iter().map(|member| member.to_vec()).collect(), true)),
        Value::SortedSet(set) => {
            set.become_skiplist();
            Ok((set.iter().map(|(member, _)| member.to_vec()).collect(), false))
        }
        Value::String(_) | Value::Hash(_) | Value::Stream(_) => Err(error::WRONG_TYPE),
    }
}

/// The weight by which an element is sorted.
enum Weight {
    Number(f64),
    /// ALPHA. An element without a weight comes first.
    Text(Option<Vec<u8>>),
}

/// Reads a weight. Valkey and Redis before 8.0 refuse numbers that overflow or underflow.
fn weight(text: &[u8], version: Version) -> Option<f64> {
    let number = num::strtod(text, version)?;
    let refuses = if version >= Version::V8_0 {
        false
    } else if num::uses_fast_float(version) {
        error::c_text(text).is_empty() || num::is_beyond_range(text, number)
    } else {
        num::is_beyond_range(text, number) || number.is_subnormal()
    };
    (!refuses).then_some(number)
}

fn sort_elements(ctx: &mut Ctx, elements: &mut Vec<Vec<u8>>, options: &Options) -> Outcome {
    let mut weighted: Vec<(Weight, Vec<u8>)> = Vec::with_capacity(elements.len());
    let mut all_numbers = true;
    for element in std::mem::take(elements) {
        let text = match options.by {
            Some(pattern) => look_up(ctx, pattern, &element),
            None => Some(element.clone()),
        };
        let weight = match text {
            text if options.alpha => Weight::Text(text),
            None => Weight::Number(0.0),
            Some(text) => {
                let number = weight(&text, ctx.version());
                all_numbers &= number.is_some();
                Weight::Number(number.unwrap_or(0.0))
            }
        };
        weighted.push((weight, element));
    }
    if !all_numbers {
        return Err(Error::new("ERR One or more scores can't be converted into double"));
    }
    weighted.sort_by(|(a, element_a), (b, element_b)| {
        let order = match (a, b) {
            // Equal weights are sorted by their elements, so that the result is deterministic.
            (Weight::Number(a), Weight::Number(b)) => {
                a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(|| element_a.cmp(element_b))
            }
            (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        };
        if options.desc { order.reverse() } else { order }
    });
    *elements = weighted.into_iter().map(|(_, element)| element).collect();
    Ok(())
}

/// Returns the value of the key or hash field that a pattern names for an element. The pattern `#` means the element itself.
fn look_up(ctx: &mut Ctx, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|&byte| byte == b'*')?;
    let (prefix, rest) = (&pattern[..star], &pattern[star + 1..]);
    // A `->` at the very end is part of the key.
    let arrow = rest.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < rest.len());
    let (suffix, field) = match arrow {
        Some(at) => (&rest[..at], Some(&rest[at + 2..])),
        None => (rest, None),
    };
    let key = [prefix, element, suffix].concat();
    let now_ms = ctx.now().wall_ms();
    let slot = ctx.find(&key)?;
    match (&ctx.entry(slot)?.value, field) {
        (Value::String(string), None) => Some(string.to_vec()),
        (Value::Hash(hash), Some(field)) => hash.get(field, now_ms).map(<[u8]>::to_vec),
        _ => None,
    }
}

/// Stores a result as a list, with an empty element for each value that was not found.
fn store(ctx: &mut Ctx, key: &[u8], result: Vec<Option<Vec<u8>>>) {
    let limits = ctx.node.store.limits.clone();
    let elements: Vec<&[u8]> = result.iter().map(|element| element.as_deref().unwrap_or_default()).collect();
    let mut list = List::new(&limits);
    list.prepare(elements.iter().copied(), &limits);
    for element in &elements {
        list.push(End::Tail, element, &limits);
    }
    let list = (!list.is_empty()).then_some(list);
    // Each element is a change.
    ctx.store_result(key, list, "sortstore", elements.len());
    ctx.reply.int(elements.len() as i64);
}
