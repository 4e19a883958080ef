//! Strings as arrays of bits. Fields of several bits are in [`bitfield`](super::bitfield).

use std::borrow::Cow;
use std::ops::Range;

use super::command::*;
use super::ctx::{Ctx, Words};
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::bits::{self, Operation};
use crate::store::{StringValue, ValueType};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "bitcount",
        arity: -2,
        since: "2.6.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Counts the ones in a string.",
        complexity: "O(N)",
        run: bitcount,
        ..Command::of(Group::Bitmap)
    },
    Command {
        name: "bitop",
        arity: -4,
        since: "2.6.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["OW", "update"], 2), keys(&["RO", "access"], 3, -1, 1)],
        summary: "Combines strings bit by bit and stores the result.",
        complexity: "O(N)",
        run: bitop,
        ..Command::of(Group::Bitmap)
    },
    Command {
        name: "bitpos",
        arity: -3,
        since: "2.8.7",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Finds the first one or zero in a string.",
        complexity: "O(N)",
        run: bitpos,
        ..Command::of(Group::Bitmap)
    },
    Command {
        name: "getbit",
        arity: 3,
        since: "2.2.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives one bit of a string.",
        complexity: "O(1)",
        run: getbit,
        ..Command::of(Group::Bitmap)
    },
    Command {
        name: "setbit",
        arity: 4,
        since: "2.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Sets one bit of a string, which grows if it is too short.",
        complexity: "O(1)",
        run: setbit,
        ..Command::of(Group::Bitmap)
    },
];

/// The longest string that bits make, in bytes, however large the setting `proto-max-bulk-len` is.
const MAX_BYTES: u64 = 1 << 32;

/// Parses the position of a bit in a string.
///
/// # Errors
/// If it is not an integer, or beyond the longest string that is allowed.
pub(super) fn parse_position(ctx: &Ctx, word: &[u8]) -> Result<u64, Error> {
    num::parse_i64(word).and_then(|position| check_position(ctx, position)).ok_or(BAD_POSITION)
}

/// Returns a position that lies in a string of the length that is allowed.
pub(super) fn check_position(ctx: &Ctx, position: i64) -> Option<u64> {
    let max_bytes = ctx.node.config.proto_max_bulk_len.min(MAX_BYTES);
    u64::try_from(position).ok().filter(|position| position / 8 < max_bytes)
}

pub(super) const BAD_POSITION: Error = Error::new("ERR bit offset is not an integer or out of range");

/// Makes a string long enough for the bit at `position`. Returns its bytes, and whether it has grown.
pub(super) fn reach(value: &mut StringValue, position: u64) -> (&mut Vec<u8>, bool) {
    let bytes = value.make_raw();
    let len = (position / 8) as usize + 1;
    let grows = len > bytes.len();
    if grows {
        bytes.resize(len, 0);
    }
    (bytes, grows)
}

fn setbit(ctx: &mut Ctx) -> Outcome {
    let (key, position) = (ctx.argv[1], parse_position(ctx, ctx.argv[2])?);
    let bit = match ctx.argv[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(Error::new("ERR bit is not an integer or out of range")),
    };
    let mut value = ctx.edit_or_create::<StringValue>(key)?;
    let (bytes, has_grown) = reach(&mut value, position);
    let old = bits::get(bytes, position);
    bits::write_field(bytes, position, 1, bit.into());
    value.done_if_any("setbit", (has_grown || old != bit) as usize);
    ctx.reply.int(old.into());
    Ok(())
}

fn getbit(ctx: &mut Ctx) -> Outcome {
    let position = parse_position(ctx, ctx.argv[2])?;
    let (value, reply) = ctx.read_and_reply::<StringValue>(ctx.argv[1])?;
    let bit = value.is_some_and(|value| bits::get(value.bytes(&mut itoa::Buffer::new()), position));
    reply.int(bit.into());
    Ok(())
}

/// Bytes or bits of a string, both ends included. Negative ones count from the end.
#[derive(Clone, Copy)]
struct Part {
    start: i64,
    /// `None`: to the end of the string.
    end: Option<i64>,
    in_bits: bool,
}

impl Part {
    const WHOLE: Part = Part { start: 0, end: None, in_bits: false };

    /// Returns the range of bits in a string of `len` bytes; it may be empty.
    fn of(self, len: usize) -> Range<u64> {
        let unit = if self.in_bits { 1 } else { 8 };
        let total = len as i64 * 8 / unit;
        let from_end = |index: i64| if index < 0 { (total + index).max(0) } else { index };
        let start = from_end(self.start);
        let end = self.end.map_or(total, |end| from_end(end).min(total - 1) + 1);
        if start >= end { 0..0 } else { (start * unit) as u64..(end * unit) as u64 }
    }
}

/// Takes `BYTE` or `BIT`. Returns whether positions are bits.
fn parse_unit(words: &mut Words) -> Result<bool, Error> {
    match words.take("BIT") {
        true => Ok(true),
        false if words.take("BYTE") => Ok(false),
        false => Err(error::SYNTAX),
    }
}

/// Returns the slot of a key that holds a string, for a command that reads.
fn find_string(ctx: &mut Ctx, key: &[u8]) -> Result<Option<u32>, Error> {
    let slot = ctx.find(key);
    let is_string = slot.is_none_or(|slot| string_in(ctx, slot).is_some());
    if is_string { Ok(slot) } else { Err(error::WRONG_TYPE) }
}

fn string_in<'a>(ctx: &'a Ctx, slot: u32) -> Option<&'a StringValue> {
    StringValue::of(&ctx.entry(slot)?.value)
}

/// In Redis before 7.4 the type of the key is checked before the arguments, and a missing key suffices for a reply.
fn looks_first(ctx: &Ctx) -> bool {
    ctx.version() < Version::Valkey8_1
}

/// Returns whether BITCOUNT takes a part as empty because both ends count from the end and are in the wrong order.
fn is_backwards(start: i64, end: i64) -> bool {
    start < 0 && end < start
}

fn bitcount(ctx: &mut Ctx) -> Outcome {
    let (key, mut words) = (ctx.argv[1], ctx.words(2));
    let found = if looks_first(ctx) { Some(find_string(ctx, key)?) } else { None };
    if found == Some(None) {
        ctx.reply.int(0);
        return Ok(());
    }
    let part = match words.len() {
        0 => Part::WHOLE,
        2 | 3 => {
            let start = words.int()?;
            if ctx.version().is_valkey() && words.len() == 2 {
                // Valkey looks at the unit before the end.
                let mut unit = words;
                unit.skip(1);
                parse_unit(&mut unit)?;
            }
            let end = words.int()?;
            if looks_first(ctx) && is_backwards(start, end) {
                ctx.reply.int(0);
                return Ok(());
            }
            Part { start, end: Some(end), in_bits: !words.is_empty() && parse_unit(&mut words)? }
        }
        // In Valkey a start suffices.
        1 if ctx.version().is_valkey() => Part { start: words.int()?, ..Part::WHOLE },
        _ => return Err(error::SYNTAX),
    };
    let is_empty = part.end.is_some_and(|end| is_backwards(part.start, end));
    let slot = found.map_or_else(|| find_string(ctx, key), Ok)?;
    let count = slot.and_then(|slot| string_in(ctx, slot)).filter(|_| !is_empty).map_or(0, |value| {
        let mut digits = itoa::Buffer::new();
        let bytes = value.bytes(&mut digits);
        bits::count_ones(bytes, part.of(bytes.len()))
    });
    ctx.reply.int(count as i64);
    Ok(())
}

fn bitpos(ctx: &mut Ctx) -> Outcome {
    let (key, mut words) = (ctx.argv[1], ctx.words(2));
    let bit = match words.int()? {
        0 => false,
        1 => true,
        _ => return Err(Error::new("ERR The bit argument must be 1 or 0.")),
    };
    let in_empty = if bit { -1 } else { 0 };
    let found = if looks_first(ctx) { Some(find_string(ctx, key)?) } else { None };
    if found == Some(None) {
        ctx.reply.int(in_empty);
        return Ok(());
    }
    let mut part = Part::WHOLE;
    if words.len() > 3 {
        return Err(error::SYNTAX);
    }
    if !words.is_empty() {
        part.start = words.int()?;
    }
    if let [end, ..] = words.rest() {
        let mut unit = words;
        unit.skip(1);
        part.in_bits = !unit.is_empty() && parse_unit(&mut unit)?;
        part.end = Some(num::parse_i64(end).ok_or(error::NOT_AN_INTEGER)?);
    }
    let slot = found.map_or_else(|| find_string(ctx, key), Ok)?;
    let position = slot.and_then(|slot| string_in(ctx, slot)).map_or(in_empty, |value| {
        let mut digits = itoa::Buffer::new();
        let bytes = value.bytes(&mut digits);
        let range = part.of(bytes.len());
        match bits::find(bytes, range.clone(), bit) {
            Some(position) => position as i64,
            // Without an end, the string counts as followed by zeros.
            None if !bit && part.end.is_none() && !range.is_empty() => range.end as i64,
            None => -1,
        }
    });
    ctx.reply.int(position);
    Ok(())
}

/// Parses the name of an operation. BITOP has some of them since 8.2 only.
fn parse_operation(word: &[u8], version: Version) -> Option<Operation> {
    let has_all = version >= Version::V8_2;
    match word.to_ascii_lowercase().as_slice() {
        b"and" => Some(Operation::And),
        b"or" => Some(Operation::Or),
        b"xor" => Some(Operation::Xor),
        b"not" => Some(Operation::Not),
        b"diff" if has_all => Some(Operation::Diff),
        b"diff1" if has_all => Some(Operation::Diff1),
        b"andor" if has_all => Some(Operation::AndOr),
        b"one" if has_all => Some(Operation::One),
        _ => None,
    }
}

fn bitop(ctx: &mut Ctx) -> Outcome {
    let (target, sources) = (ctx.argv[2], &ctx.argv[3..]);
    let operation = parse_operation(ctx.argv[1], ctx.version()).ok_or(error::SYNTAX)?;
    match operation {
        Operation::Not if sources.len() != 1 => {
            return Err(Error::new("ERR BITOP NOT must be called with a single source key."));
        }
        Operation::Diff | Operation::Diff1 | Operation::AndOr if sources.len() < 2 => {
            let name = String::from_utf8_lossy(ctx.argv[1]).to_ascii_uppercase();
            return Err(format!("ERR BITOP {name} must be called with at least two source keys.").into());
        }
        _ => {}
    }
    let mut slots = Vec::with_capacity(sources.len());
    for key in sources {
        slots.push(find_string(ctx, key)?);
    }
    let values: Vec<Cow<[u8]>> = slots
        .iter()
        .map(|slot| {
            slot.and_then(|slot| string_in(ctx, slot)).map_or(Cow::Borrowed(&[][..]), StringValue::to_cow)
        })
        .collect();
    let values: Vec<&[u8]> = values.iter().map(|value| &**value).collect();
    let result = operation.apply(&values);
    let len = result.len();
    ctx.store_result(target, (len > 0).then_some(StringValue::raw(result)), "set", 1);
    ctx.reply.int(len as i64);
    Ok(())
}
