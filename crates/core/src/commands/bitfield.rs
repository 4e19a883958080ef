//! BITFIELD: integers of any width in a string.

use super::bitmaps::{BAD_POSITION, check_position, reach};
use super::command::*;
use super::ctx::{Ctx, Words};
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::{StringValue, bits};
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "bitfield",
        arity: -2,
        since: "3.2.0",
        flags: WRITE | DENYOOM,
        keys: &[KeySpec {
            flags: &["RW", "access", "update", "variable_flags"],
            notes: "This command allows both access and modification of the key",
            begin: Begin::Index(1),
            find: Find::Range { last: 0, step: 1, limit: 0 },
        }],
        variable_flags: key_flags,
        summary: "Reads, sets and increments integers of any width in a string.",
        complexity: "O(1) for each subcommand specified",
        run: bitfield,
        ..Command::of(Group::Bitmap)
    },
    Command {
        name: "bitfield_ro",
        arity: -2,
        since: "6.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Reads integers of any width in a string.",
        complexity: "O(1) for each subcommand specified",
        run: bitfield_ro,
        ..Command::of(Group::Bitmap)
    },
];

/// Returns what a call does with its key: it only reads if it consists of GET and OVERFLOW.
fn key_flags(call: &[&[u8]], _: Version) -> &'static [&'static str] {
    let mut words = Words::of(call.get(2..).unwrap_or_default());
    while !words.is_empty() {
        if words.take_with("GET", 2) {
            words.skip(2);
        } else if words.take_with("OVERFLOW", 1) {
            words.skip(1);
        } else {
            return &["RW", "access", "update"];
        }
    }
    &["RO", "access"]
}

/// What happens to a number that does not fit its field.
#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// The place of an integer, and how its bits are read.
#[derive(Clone, Copy)]
struct Field {
    position: u64,
    /// From 1 to 64.
    width: u32,
    is_signed: bool,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    Increment(i64, Overflow),
}

impl Field {
    /// Takes the type (`i16`, `u8`) and the position of a field; a position `#3` is that of the fourth field of this width.
    ///
    /// # Errors
    /// If either is malformed or out of range.
    fn take(ctx: &Ctx, words: &mut Words) -> Result<Field, Error> {
        const BAD_TYPE: Error = Error::new(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        );
        let word = words.word()?;
        // Until Valkey 9.1 the text ended at a zero byte.
        let is_whole = ctx.version().is_valkey_since(Version::Valkey9_1);
        let (is_signed, width) = match if is_whole { word } else { error::c_text(word) } {
            [b'i', width @ ..] => (true, width),
            [b'u', width @ ..] => (false, width),
            _ => return Err(BAD_TYPE),
        };
        let widest = if is_signed { 64 } else { 63 };
        let width = num::parse_i64(width).filter(|width| (1..=widest).contains(width)).ok_or(BAD_TYPE)?;
        let position = match words.word()? {
            // Redis multiplies without a check for overflow.
            [b'#', index @ ..] => num::parse_i64(index).map(|index| index.wrapping_mul(width)),
            position => num::parse_i64(position),
        };
        let position = position.and_then(|position| check_position(ctx, position)).ok_or(BAD_POSITION)?;
        Ok(Field { position, width: width as u32, is_signed })
    }

    fn last_bit(self) -> u64 {
        self.position + u64::from(self.width) - 1
    }

    /// Returns the integer as its 64 bits, sign-extended if the field is signed.
    fn read(self, bytes: &[u8]) -> i64 {
        let unused = if self.is_signed { 64 - self.width } else { 0 };
        (bits::read_field(bytes, self.position, self.width) << unused) as i64 >> unused
    }

    /// Returns the sum of two numbers as the field holds it, or `None` if it does not fit and `overflow` is `Fail`.
    fn sum(self, value: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        let is_beyond = if self.is_signed {
            self.signed_excess(value, increment)
        } else {
            self.unsigned_excess(value as u64, increment)
        };
        let wrapped = value.wrapping_add(increment);
        let (min, max) = self.limits();
        match (is_beyond, overflow) {
            (None, _) => Some(wrapped),
            (Some(_), Overflow::Wrap) => Some(self.truncate(wrapped)),
            (Some(Excess::Above), Overflow::Saturate) => Some(max),
            (Some(Excess::Below), Overflow::Saturate) => Some(min),
            (Some(_), Overflow::Fail) => None,
        }
    }

    fn limits(self) -> (i64, i64) {
        match self.is_signed {
            true => (i64::MIN >> (64 - self.width), i64::MAX >> (64 - self.width)),
            false => (0, (u64::MAX >> (64 - self.width)) as i64),
        }
    }

    /// Returns on which side a sum leaves the range of a signed field. The distances to the limits wrap as in Redis, so
    /// that a number far below them counts as above.
    fn signed_excess(self, value: i64, increment: i64) -> Option<Excess> {
        let (min, max) = self.limits();
        let (room, depth) = (max.wrapping_sub(value), min.wrapping_sub(value));
        let is_narrow = self.width < 64;
        if value > max || increment > room && (is_narrow || value >= 0 && increment > 0) {
            Some(Excess::Above)
        } else if value < min || increment < depth && (is_narrow || value < 0 && increment < 0) {
            Some(Excess::Below)
        } else {
            None
        }
    }

    fn unsigned_excess(self, value: u64, increment: i64) -> Option<Excess> {
        let max = u64::MAX >> (64 - self.width);
        if value > max || increment > 0 && increment.unsigned_abs() > max - value {
            Some(Excess::Above)
        } else if increment < 0 && increment.unsigned_abs() > value {
            Some(Excess::Below)
        } else {
            None
        }
    }

    /// Returns the number that the field's bits of `value` represent.
    fn truncate(self, value: i64) -> i64 {
        let unused = 64 - self.width;
        if self.is_signed { value << unused >> unused } else { ((value as u64) << unused >> unused) as i64 }
    }
}

/// The side on which a number leaves a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    Above,
    Below,
}

/// Parses the subcommands.
fn parse(ctx: &Ctx) -> Result<Vec<(Field, Action)>, Error> {
    let mut words = ctx.words(2);
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    while !words.is_empty() {
        if words.take_with("GET", 2) {
            steps.push((Field::take(ctx, &mut words)?, Action::Get));
        } else if words.take_with("SET", 3) {
            let field = Field::take(ctx, &mut words)?;
            steps.push((field, Action::Set(words.int()?, overflow)));
        } else if words.take_with("INCRBY", 3) {
            let field = Field::take(ctx, &mut words)?;
            steps.push((field, Action::Increment(words.int()?, overflow)));
        } else if words.take_with("OVERFLOW", 1) {
            overflow = match error::c_text(words.word()?).to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err(Error::new("ERR Invalid OVERFLOW type specified")),
            };
        } else {
            return Err(error::SYNTAX);
        }
    }
    Ok(steps)
}

fn bitfield(ctx: &mut Ctx) -> Outcome {
    let steps = parse(ctx)?;
    let written = steps.iter().filter(|(_, action)| !matches!(action, Action::Get));
    match written.map(|(field, _)| field.last_bit()).max() {
        Some(last_bit) => change(ctx, &steps, last_bit),
        None => read(ctx, &steps),
    }
}

fn bitfield_ro(ctx: &mut Ctx) -> Outcome {
    let steps = parse(ctx)?;
    if steps.iter().any(|(_, action)| !matches!(action, Action::Get)) {
        return Err(Error::new("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(ctx, &steps)
}

fn read(ctx: &mut Ctx, steps: &[(Field, Action)]) -> Outcome {
    let (value, reply) = ctx.read_and_reply::<StringValue>(ctx.argv[1])?;
    let mut digits = itoa::Buffer::new();
    let bytes = value.map_or(&[][..], |value| value.bytes(&mut digits));
    reply.array(steps.len());
    steps.iter().for_each(|(field, _)| reply.int(field.read(bytes)));
    Ok(())
}

/// Runs subcommands of which some write, the farthest of them up to `last_bit`.
fn change(ctx: &mut Ctx, steps: &[(Field, Action)], last_bit: u64) -> Outcome {
    let mut value = ctx.edit_or_create::<StringValue>(ctx.argv[1])?;
    let (bytes, has_grown) = reach(&mut value, last_bit);
    let mut changes = 0;
    let mut replies = Vec::with_capacity(steps.len());
    for &(field, action) in steps {
        let old = field.read(bytes);
        let (new, reply) = match action {
            Action::Get => (None, Some(old)),
            Action::Set(number, overflow) => {
                let new = field.sum(number, 0, overflow);
                (new, new.map(|_| old))
            }
            Action::Increment(by, overflow) => {
                let new = field.sum(old, by, overflow);
                (new, new)
            }
        };
        if let Some(new) = new {
            bits::write_field(bytes, field.position, field.width, new as u64);
            changes += (has_grown || new != old) as usize;
        }
        replies.push(reply);
    }
    match changes {
        // Redis keeps the longer string to itself if no number was written.
        0 if has_grown => value.unannounced(),
        _ => value.done_if_any("setbit", changes),
    }
    ctx.reply.array(replies.len());
    for reply in replies {
        match reply {
            Some(number) => ctx.reply.int(number),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(is_signed: bool, width: u32) -> Field {
        Field { position: 0, width, is_signed }
    }

    #[test]
    fn numbers_that_do_not_fit_wrap_saturate_or_fail() {
        let outcomes = |field: Field, value, by| {
            [Overflow::Wrap, Overflow::Saturate, Overflow::Fail]
                .map(|overflow| field.sum(value, by, overflow))
        };
        assert_eq!(outcomes(field(false, 8), 250, 10), [Some(4), Some(255), None]);
        assert_eq!(outcomes(field(false, 8), 5, -10), [Some(251), Some(0), None]);
        assert_eq!(outcomes(field(true, 8), 120, 10), [Some(-126), Some(127), None]);
        assert_eq!(outcomes(field(true, 8), -120, -10), [Some(126), Some(-128), None]);
        assert_eq!(outcomes(field(true, 64), i64::MAX, 1), [Some(i64::MIN), Some(i64::MAX), None]);
        assert_eq!(outcomes(field(true, 64), i64::MIN, -1), [Some(i64::MAX), Some(i64::MIN), None]);
        assert_eq!(
            outcomes(field(false, 63), i64::MAX, i64::MAX),
            [Some(i64::MAX - 1), Some(i64::MAX), None]
        );
        assert_eq!(outcomes(field(true, 1), -1, 1), [Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn no_pair_of_numbers_panics() {
        let extremes = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for width in 1..=64 {
            for (value, by) in extremes.iter().flat_map(|&value| extremes.map(|by| (value, by))) {
                for overflow in [Overflow::Wrap, Overflow::Saturate, Overflow::Fail] {
                    field(true, width).sum(value, by, overflow);
                    field(false, width.min(63)).sum(value, by, overflow);
                }
            }
        }
    }
}
