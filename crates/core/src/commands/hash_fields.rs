//! The arguments of commands that name fields of a hash and what to do with their expiry, in the form of each release.
//!
//! | releases | form |
//! |---|---|
//! | Redis 7.4 to 8.4 | an option, then `FIELDS numfields field …` at the end |
//! | HSETEX of these, and every command of Redis 8.6 | options and `FIELDS` in any order, read from left to right |
//! | Valkey 9.0 | options, then `FIELDS` at the end, whose place is found first |

use super::ctx::{Ctx, Words};
use super::expiry::{Base, Condition as AnyCondition, Unit, to_unix_ms};
use crate::error::{self, Error};
use crate::num;
use crate::version::Version;

/// The latest expiry of a field in Redis, as Unix time in ms.
const MAX_UNIX_MS: i64 = 0x0000_ffff_ffff_ffff >> 2;

const NOT_POSITIVE: Error = Error::new("ERR Number of fields must be a positive integer");
const NO_FIELDS: Error = Error::new("ERR Mandatory argument FIELDS is missing or not at the right position");
const WRONG_COUNT: Error = Error::new("ERR The `numfields` parameter must match the number of arguments");
const VALKEY_COUNT: Error =
    Error::new("ERR numfields should be greater than 0 and match the provided number of fields");

/// What a command does with the expiry of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewExpiry {
    #[default]
    None,
    Keep,
    Persist,
    /// Unix time in ms.
    At(i64),
}

/// What has to hold for a command to change a field.
#[derive(Clone, Copy, Debug, Default)]
pub enum FieldCondition {
    #[default]
    Always,
    Nx,
    Xx,
    Gt,
    Lt,
    /// The conditions of Valkey, which may be combined.
    Valkey(AnyCondition),
}

impl FieldCondition {
    fn of(word: &[u8]) -> Option<FieldCondition> {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => Some(FieldCondition::Nx),
            b"xx" => Some(FieldCondition::Xx),
            b"gt" => Some(FieldCondition::Gt),
            b"lt" => Some(FieldCondition::Lt),
            _ => None,
        }
    }

    /// Returns whether a field may get a new expiry (Unix time in ms).
    pub fn allows(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        match self {
            FieldCondition::Always => true,
            FieldCondition::Nx => old_ms.is_none(),
            FieldCondition::Xx => old_ms.is_some(),
            FieldCondition::Gt => old_ms.is_some_and(|old_ms| new_ms > old_ms),
            FieldCondition::Lt => old_ms.is_none_or(|old_ms| new_ms < old_ms),
            FieldCondition::Valkey(condition) => condition.allows(old_ms, new_ms),
        }
    }
}

/// Whether something has to exist, or must not exist, for HSETEX to set the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existence {
    #[default]
    Any,
    All,
    None,
}

/// The parsed arguments.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'a> {
    /// HEXPIRE and its like.
    pub condition: FieldCondition,
    pub expiry: NewExpiry,
    /// HSETEX: FNX and FXX.
    pub fields_existence: Existence,
    /// HSETEX of Valkey: NX and XX.
    pub key_existence: Existence,
    /// What is wrong with the expiry, where that is said after the type of the key was checked.
    pub late_error: Option<Error>,
    /// The fields; HSETEX: each followed by its value.
    pub fields: &'a [&'a [u8]],
}

/// The options that a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// HEXPIRE and its like: NX, XX, GT and LT.
    Expire,
    /// HGETEX: PERSIST and an expiry.
    Get,
    /// HSETEX: KEEPTTL, an expiry, FNX and FXX.
    Set,
}

impl Family {
    /// Returns how many words a field takes.
    fn stride(self) -> usize {
        if self == Family::Set { 2 } else { 1 }
    }
}

/// Parses the arguments from `at` on.
///
/// # Errors
///
/// Fails with the error of the release.
pub fn parse<'a>(ctx: &Ctx<'a>, at: usize, family: Family) -> Result<Arguments<'a>, Error> {
    let version = ctx.version();
    if version.is_valkey() {
        parse_valkey(ctx, at, family)
    } else if version >= Version::V8_6 || family == Family::Set {
        Sequential { ctx, family, arguments: Arguments::default(), has_two_conditions: false }
            .parse(ctx.words(at))
    } else {
        let mut arguments = Arguments::default();
        let mut words = ctx.words(at);
        if family == Family::Expire {
            if let Some(condition) = words.rest().first().and_then(|word| FieldCondition::of(word)) {
                arguments.condition = condition;
                words.skip(1);
            }
        } else if words.take("PERSIST") {
            arguments.expiry = NewExpiry::Persist;
        } else if let Some((unit, base)) = take_unit(&mut words) {
            arguments.expiry = NewExpiry::At(expiry_ms(ctx, words.word()?, unit, base)?);
        }
        let not_positive = match family {
            Family::Expire => Error::new("ERR Parameter `numFields` should be greater than 0"),
            _ => NOT_POSITIVE,
        };
        arguments.fields = last_fields(words, not_positive)?;
        Ok(arguments)
    }
}

/// Parses `FIELDS numfields field …` from argument `at` on, without options.
///
/// # Errors
///
/// Fails with the error of the release.
pub fn parse_fields<'a>(ctx: &Ctx<'a>, at: usize) -> Result<&'a [&'a [u8]], Error> {
    let mut words = ctx.words(at);
    if !ctx.version().is_valkey() {
        return last_fields(words, NOT_POSITIVE);
    }
    if !words.take("FIELDS") {
        return Err(error::SYNTAX);
    }
    let count = words.int()?;
    // The commands that read times have an error of their own.
    let wrong = if ctx.command.has(super::command::READONLY) { error::SYNTAX } else { VALKEY_COUNT };
    if count < 1 || count as u64 != words.len() as u64 { Err(wrong) } else { Ok(words.rest()) }
}

/// Parses `FIELDS numfields field …`, which has to be all that is left.
fn last_fields<'a>(mut words: Words<'a>, not_positive: Error) -> Result<&'a [&'a [u8]], Error> {
    if !words.take("FIELDS") {
        return Err(NO_FIELDS);
    }
    let count = words.pop().and_then(num::parse_i64).filter(|&count| count > 0).ok_or(not_positive)?;
    if count as u64 != words.len() as u64 {
        return Err(WRONG_COUNT);
    }
    Ok(words.rest())
}

/// Takes EX, PX, EXAT or PXAT.
fn take_unit(words: &mut Words) -> Option<(Unit, Base)> {
    let units = [
        ("EX", Unit::Seconds, Base::Now),
        ("PX", Unit::Milliseconds, Base::Now),
        ("EXAT", Unit::Seconds, Base::Epoch),
        ("PXAT", Unit::Milliseconds, Base::Epoch),
    ];
    units.into_iter().find(|(keyword, ..)| words.take(keyword)).map(|(_, unit, base)| (unit, base))
}

/// Parses the time of an expiry. Returns it as Unix time in ms.
///
/// # Errors
///
/// Fails if the time is not an integer, negative or too late.
pub fn expiry_ms(ctx: &Ctx, time: &[u8], unit: Unit, base: Base) -> Result<i64, Error> {
    let time = num::parse_i64(time).ok_or(error::NOT_AN_INTEGER)?;
    let is_valkey = ctx.version().is_valkey();
    if time < 0 && !is_valkey {
        return Err(Error::new("ERR invalid expire time, must be >= 0"));
    }
    // The store has no expiry at the end of time, so there the last millisecond before it has to do.
    let latest_ms = if is_valkey { i64::MAX } else { MAX_UNIX_MS };
    to_unix_ms(time, unit, base, ctx.now().wall_ms())
        .filter(|&end_ms| time >= 0 && end_ms <= latest_ms)
        .map(|end_ms| end_ms.min(i64::MAX - 1))
        .ok_or_else(|| error::invalid_expire(ctx.command.name))
}

/// Reads options and `FIELDS` in any order, as Redis 8.6 does.
struct Sequential<'c, 'a> {
    ctx: &'c Ctx<'a>,
    family: Family,
    arguments: Arguments<'a>,
    /// Whether there are conditions that exclude one another, which is an error if nothing else is.
    has_two_conditions: bool,
}

impl<'a> Sequential<'_, 'a> {
    fn parse(mut self, mut words: Words<'a>) -> Result<Arguments<'a>, Error> {
        while let Some(&word) = words.rest().first() {
            if words.take("FIELDS") {
                self.take_fields(&mut words)?;
            } else if self.family == Family::Expire {
                words.skip(1);
                self.set_condition(FieldCondition::of(word).ok_or_else(|| unknown(word))?);
            } else if let Some((unit, base)) = take_unit(&mut words) {
                self.check_no_expiry()?;
                let time = words.pop().ok_or(Error::new("ERR missing expire time"))?;
                self.arguments.expiry = NewExpiry::At(expiry_ms(self.ctx, time, unit, base)?);
            } else {
                words.skip(1);
                self.take_flag(word)?;
            }
        }
        if self.arguments.fields.is_empty() {
            return Err(Error::new("ERR missing FIELDS argument"));
        }
        if self.has_two_conditions {
            return Err(Error::new("ERR Multiple condition flags specified"));
        }
        Ok(self.arguments)
    }

    fn take_fields(&mut self, words: &mut Words<'a>) -> Result<(), Error> {
        if !self.arguments.fields.is_empty() {
            return Err(Error::new("ERR FIELDS keyword specified multiple times"));
        }
        if self.family == Family::Expire && words.len() < 2 {
            return Err(Error::new("ERR FIELDS requires at least numfields and one field argument"));
        }
        if words.is_empty() {
            return Err(error::wrong_arity(self.ctx.command.name));
        }
        let count = words
            .pop()
            .and_then(num::parse_i64)
            .filter(|count| (1..=i64::from(i32::MAX)).contains(count))
            .ok_or(Error::new(match self.family {
                Family::Expire => "ERR Parameter `numFields` should be greater than 0",
                _ => "ERR invalid number of fields",
            }))?;
        let len = count as usize * self.family.stride();
        // Before 8.6 the fields of HSETEX are the end.
        if self.ctx.version() < Version::V8_6 && len != words.len() {
            return Err(error::wrong_arity(self.ctx.command.name));
        }
        self.arguments.fields = words.rest().get(..len).ok_or(Error::new("ERR wrong number of arguments"))?;
        words.skip(len);
        Ok(())
    }

    fn set_condition(&mut self, condition: FieldCondition) {
        let same = std::mem::discriminant(&self.arguments.condition) == std::mem::discriminant(&condition);
        self.has_two_conditions |= !same && !matches!(self.arguments.condition, FieldCondition::Always);
        self.arguments.condition = condition;
    }

    fn check_no_expiry(&self) -> Result<(), Error> {
        if self.arguments.expiry == NewExpiry::None {
            return Ok(());
        }
        Err(Error::new(match self.family {
            Family::Set => "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            _ => "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified",
        }))
    }

    fn set_expiry(&mut self, expiry: NewExpiry) -> Result<(), Error> {
        self.check_no_expiry()?;
        self.arguments.expiry = expiry;
        Ok(())
    }

    fn take_flag(&mut self, word: &[u8]) -> Result<(), Error> {
        let flag = word.to_ascii_lowercase();
        match (self.family, flag.as_slice()) {
            (Family::Get, b"persist") => self.set_expiry(NewExpiry::Persist),
            (Family::Set, b"keepttl") => self.set_expiry(NewExpiry::Keep),
            (Family::Set, b"fnx" | b"fxx") if self.arguments.fields_existence == Existence::Any => {
                self.arguments.fields_existence =
                    if flag == b"fnx" { Existence::None } else { Existence::All };
                Ok(())
            }
            (Family::Set, b"fnx" | b"fxx") => {
                Err(Error::new("ERR Only one of FXX or FNX arguments can be specified"))
            }
            // The parser knows the options of the other command, too.
            (_, b"persist" | b"keepttl" | b"fnx" | b"fxx") if self.ctx.version() >= Version::V8_6 => {
                Err(Error::new("ERR unknown argument"))
            }
            _ => Err(unknown(word)),
        }
    }
}

fn unknown(word: &[u8]) -> Error {
    Error::owned([b"ERR unknown argument: ", error::c_text(word)].concat())
}

/// Parses the arguments as Valkey does: it looks for FIELDS, reads the options before it, the fields, and then the time.
fn parse_valkey<'a>(ctx: &Ctx<'a>, at: usize, family: Family) -> Result<Arguments<'a>, Error> {
    let all = ctx.words(at).rest();
    let fields_at = all
        .iter()
        .position(|word| word.eq_ignore_ascii_case(b"FIELDS"))
        .filter(|&fields_at| fields_at + 1 < all.len())
        .ok_or(VALKEY_COUNT)?;
    let mut arguments = Arguments::default();
    let mut time = None;
    let options = Words::of(&all[..fields_at]);
    match family {
        Family::Expire => arguments.condition = FieldCondition::Valkey(AnyCondition::parse(options)?),
        _ => time = parse_valkey_options(&mut arguments, options, family)?,
    }
    let mut words = Words::of(&all[fields_at + 1..]);
    let count = words.int()?;
    let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(family.stride()));
    if len.is_none_or(|len| len == 0 || len != words.len()) {
        return Err(VALKEY_COUNT);
    }
    arguments.fields = words.rest();
    if let Some((time, unit, base)) = time {
        match expiry_ms(ctx, time, unit, base) {
            Ok(end_ms) => arguments.expiry = NewExpiry::At(end_ms),
            Err(error) => arguments.late_error = Some(error),
        }
    }
    Ok(arguments)
}

/// The text of a time, its unit and its base.
type Time<'a> = (&'a [u8], Unit, Base);

/// Parses the options of HGETEX and HSETEX. Each may come again; of two expiries the last counts.
fn parse_valkey_options<'a>(
    arguments: &mut Arguments<'a>,
    mut words: Words<'a>,
    family: Family,
) -> Result<Option<Time<'a>>, Error> {
    let mut time: Option<Time> = None;
    while let Some(word) = words.pop() {
        let flag = word.to_ascii_lowercase();
        let existence = if flag.ends_with(b"nx") { Existence::None } else { Existence::All };
        match (family, flag.as_slice()) {
            (Family::Get, b"persist") if time.is_none() => arguments.expiry = NewExpiry::Persist,
            (Family::Set, b"keepttl") if time.is_none() => arguments.expiry = NewExpiry::Keep,
            (Family::Set, b"fnx" | b"fxx")
                if [Existence::Any, existence].contains(&arguments.fields_existence) =>
            {
                arguments.fields_existence = existence;
            }
            (Family::Set, b"nx" | b"xx")
                if [Existence::Any, existence].contains(&arguments.key_existence) =>
            {
                arguments.key_existence = existence;
            }
            (_, b"ex" | b"px" | b"exat" | b"pxat") if arguments.expiry == NewExpiry::None => {
                let unit = if flag.starts_with(b"e") { Unit::Seconds } else { Unit::Milliseconds };
                let base = if flag.ends_with(b"at") { Base::Epoch } else { Base::Now };
                if time.is_some_and(|(_, before, from)| (before, from) != (unit, base)) {
                    return Err(error::SYNTAX);
                }
                time = Some((words.word()?, unit, base));
            }
            _ => return Err(error::SYNTAX),
        }
    }
    Ok(time)
}
