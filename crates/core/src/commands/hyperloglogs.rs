//! HyperLogLogs: strings that estimate the number of different elements.

use super::command::*;
use super::ctx::Ctx;
use super::edit::Edit;
use crate::error::{self, Error, Outcome};
use crate::store::hyperloglog::{self, Encoding, Opcode, Registers};
use crate::store::{Limits, StringValue};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "pfadd",
        arity: -2,
        since: "2.8.9",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "insert"], 1)],
        summary: "Adds elements to a HyperLogLog and creates it if it is missing.",
        complexity: "O(1) to add every element.",
        run: pfadd,
        ..Command::of(Group::HyperLogLog)
    },
    Command {
        name: "pfcount",
        arity: -2,
        since: "2.8.9",
        flags: READONLY | MAY_REPLICATE,
        keys: &[KeySpec {
            flags: &["RW", "access"],
            notes: "RW because it may change the internal representation of the key, and propagate to replicas",
            begin: Begin::Index(1),
            find: Find::Range { last: -1, step: 1, limit: 0 },
        }],
        summary: "Estimates the number of elements in the union of HyperLogLogs.",
        complexity: "O(1) for one key whose estimate is stored, O(N) for several",
        run: pfcount,
        ..Command::of(Group::HyperLogLog)
    },
    Command {
        name: "pfdebug",
        arity: 3,
        since: "2.8.9",
        flags: WRITE | DENYOOM | ADMIN,
        keys: &[key(&["RW", "access"], 2)],
        summary: "Shows the registers of a HyperLogLog, or converts it.",
        complexity: "N/A",
        run: pfdebug,
        ..Command::of(Group::HyperLogLog)
    },
    Command {
        name: "pfmerge",
        arity: -2,
        since: "2.8.9",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "access", "insert"], 1), keys(&["RO", "access"], 2, -1, 1)],
        summary: "Merges HyperLogLogs into the first.",
        complexity: "O(N)",
        run: pfmerge,
        ..Command::of(Group::HyperLogLog)
    },
    Command {
        name: "pfselftest",
        arity: 1,
        since: "2.8.9",
        flags: ADMIN,
        summary: "Tests the registers of HyperLogLogs and their estimates.",
        complexity: "N/A",
        run: pfselftest,
        ..Command::of(Group::HyperLogLog)
    },
];

const NOT_A_HYPERLOGLOG: Error = Error::new("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPTED: Error = Error::new("INVALIDOBJ Corrupted HLL object detected");

impl From<hyperloglog::Corrupted> for Error {
    fn from(_: hyperloglog::Corrupted) -> Error {
        CORRUPTED
    }
}

/// Returns the encoding of a string that is a HyperLogLog.
fn check(value: &StringValue) -> Result<Encoding, Error> {
    hyperloglog::encoding(value.bytes(&mut itoa::Buffer::new())).ok_or(NOT_A_HYPERLOGLOG)
}

/// Returns the HyperLogLog at a key, to be changed. A string that is not one stays as it is.
fn edit<'c, 'k>(ctx: &'c mut Ctx, key: &'k [u8]) -> Result<Option<Edit<'c, 'k, StringValue>>, Error> {
    match ctx.edit::<StringValue>(key)? {
        Some(edit) => check(&edit).map(|_| Some(edit)),
        None => Ok(None),
    }
}

/// Finishes an edit whose value an error has interrupted: Redis announces nothing, even if some elements were added.
fn interrupted(edit: Edit<StringValue>, error: hyperloglog::Corrupted) -> Error {
    edit.unannounced();
    error.into()
}

/// Returns the HyperLogLog at a key, to be changed, and first creates an empty one if there is no such key. Its string is raw
/// afterwards.
fn edit_or_create<'c, 'k>(ctx: &'c mut Ctx, key: &'k [u8]) -> Result<Edit<'c, 'k, StringValue>, Error> {
    ctx.edit_or_insert::<StringValue>(key, |_| StringValue::raw(hyperloglog::empty()).into())
}

fn pfadd(ctx: &mut Ctx) -> Outcome {
    let (key, elements) = (ctx.argv[1], &ctx.argv[2..]);
    // A new key counts as a change.
    let mut changes = edit(ctx, key)?.is_none() as usize;
    let mut edit = edit_or_create(ctx, key)?;
    let (value, limits) = edit.with_limits();
    let bytes = value.make_raw();
    for element in elements {
        match hyperloglog::add(bytes, element, limits) {
            Ok(has_changed) => changes += has_changed as usize,
            Err(error) => return Err(interrupted(edit, error)),
        }
    }
    if changes > 0 {
        hyperloglog::invalidate(bytes);
    }
    edit.done_if_any("pfadd", changes);
    ctx.reply.int((changes > 0).into());
    Ok(())
}

fn pfcount(ctx: &mut Ctx) -> Outcome {
    let keys = &ctx.argv[1..];
    let estimate = match keys {
        [key] => count_one(ctx, key)?,
        _ => union(ctx, keys)?.0.count(),
    };
    ctx.reply.int(estimate as i64);
    Ok(())
}

/// Returns the estimate for one key, and stores it in the value.
fn count_one(ctx: &mut Ctx, key: &[u8]) -> Result<u64, Error> {
    if ctx.find(key).is_none() {
        return Ok(0);
    }
    let Some(mut edit) = edit(ctx, key)? else { return Ok(0) };
    let bytes = edit.make_raw();
    if let Some(estimate) = hyperloglog::cached(bytes) {
        edit.unchanged();
        return Ok(estimate);
    }
    match hyperloglog::count(bytes) {
        Ok(estimate) => {
            hyperloglog::cache(bytes, estimate);
            edit.done_without_event(1);
            Ok(estimate)
        }
        Err(error) => Err(interrupted(edit, error)),
    }
}

/// Returns the union of the HyperLogLogs at some keys, and whether any of them is dense.
fn union(ctx: &mut Ctx, keys: &[&[u8]]) -> Result<(Registers, bool), Error> {
    let limits = ctx.node.store.limits.clone();
    let (mut registers, mut any_is_dense) = (Registers::default(), false);
    for key in keys {
        let Some(value) = ctx.read::<StringValue>(key)? else { continue };
        any_is_dense |= check(value)? == Encoding::Dense;
        registers.merge(value.bytes(&mut itoa::Buffer::new()), &limits)?;
    }
    Ok((registers, any_is_dense))
}

fn pfmerge(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let (registers, any_is_dense) = union(ctx, &ctx.argv[1..])?;
    let mut edit = edit_or_create(ctx, key)?;
    let (value, limits) = edit.with_limits();
    let bytes = value.make_raw();
    let mut result = if any_is_dense { hyperloglog::make_dense(bytes, limits).map(drop) } else { Ok(()) };
    for (index, rank) in registers.iter().enumerate().filter(|(_, rank)| *rank > 0) {
        result = result.and_then(|()| hyperloglog::raise(bytes, index, rank, limits).map(drop));
    }
    if let Err(error) = result {
        return Err(interrupted(edit, error));
    }
    hyperloglog::invalidate(bytes);
    edit.done("pfadd", 1);
    ctx.reply.ok();
    Ok(())
}

fn pfdebug(ctx: &mut Ctx) -> Outcome {
    let (subcommand, key) = (ctx.argv[1], ctx.argv[2]);
    let Some(mut edit) = edit(ctx, key)? else {
        return Err(Error::new("ERR The specified key does not exist"));
    };
    let (value, limits) = edit.with_limits();
    let bytes = value.make_raw();
    let encoding = hyperloglog::encoding(bytes).ok_or(NOT_A_HYPERLOGLOG);
    match subcommand.to_ascii_lowercase().as_slice() {
        b"getreg" => {
            let mut registers = Registers::default();
            let result = hyperloglog::make_dense(bytes, limits).and_then(|has_changed| {
                registers.merge(bytes, limits)?;
                Ok(has_changed)
            });
            finish_conversion(edit, result)?;
            ctx.reply.array(hyperloglog::REGISTERS);
            registers.iter().for_each(|rank| ctx.reply.int(rank.into()));
        }
        b"todense" => {
            let result = hyperloglog::make_dense(bytes, limits);
            let has_changed = finish_conversion(edit, result)?;
            ctx.reply.int(has_changed.into());
        }
        b"decode" => {
            let runs = (encoding == Ok(Encoding::Sparse)).then(|| describe(bytes));
            edit.unchanged();
            let runs = runs.ok_or(Error::new("ERR HLL encoding is not sparse"))?;
            ctx.reply.bulk(runs.as_bytes());
        }
        b"encoding" => {
            edit.unchanged();
            ctx.reply.status(if encoding? == Encoding::Dense { "dense" } else { "sparse" });
        }
        _ => {
            edit.unchanged();
            let mut text = b"ERR Unknown PFDEBUG subcommand '".to_vec();
            text.extend_from_slice(error::c_text(subcommand));
            text.push(b'\'');
            return Err(Error::owned(text));
        }
    }
    Ok(())
}

/// Finishes an edit that has converted a HyperLogLog to the dense form, which Redis tells nobody but counts.
fn finish_conversion(
    edit: Edit<StringValue>,
    result: Result<bool, hyperloglog::Corrupted>,
) -> Result<bool, Error> {
    edit.unannounced();
    Ok(result?)
}

/// Returns the runs of a sparse HyperLogLog as text.
fn describe(bytes: &[u8]) -> String {
    let runs: Vec<String> = hyperloglog::opcodes(bytes)
        .map(|opcode| match opcode {
            Opcode::Zero { len } => format!("z:{len}"),
            Opcode::LongZero { len } => format!("Z:{len}"),
            Opcode::Value { rank, len } => format!("v:{rank},{len}"),
        })
        .collect();
    runs.join(" ")
}

/// Compares both forms, and estimates with the numbers of elements that went into them.
fn pfselftest(ctx: &mut Ctx) -> Outcome {
    const ELEMENTS: u64 = 20_000;
    const MAX_ERROR: f64 = 0.05;
    let growing = Limits::for_version(ctx.version());
    let always_dense = Limits { hll_sparse_max_bytes: 0, ..growing.clone() };
    let (mut grown, mut dense) = (hyperloglog::empty(), hyperloglog::empty());
    for element in 1..=ELEMENTS {
        let name = element.to_le_bytes();
        hyperloglog::add(&mut grown, &name, &growing)?;
        hyperloglog::add(&mut dense, &name, &always_dense)?;
        if !element.is_power_of_two() && element != ELEMENTS {
            continue;
        }
        let estimate = hyperloglog::count(&grown)?;
        let deviation = estimate.abs_diff(element) as f64;
        if estimate != hyperloglog::count(&dense)? || deviation > (element as f64 * MAX_ERROR).max(1.0) {
            let text = format!("TESTFAILED {element} elements are estimated as {estimate}");
            return Err(text.into());
        }
    }
    ctx.reply.ok();
    Ok(())
}
