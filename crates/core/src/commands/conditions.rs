//! Conditions on the value of a string: the options IFEQ, IFNE, IFDEQ and IFDNE of SET, and DELEX, DELIFEQ and DIGEST.

use xxhash_rust::xxh3::xxh3_64;

use super::command::*;
use super::ctx::{Ctx, Words};
use crate::error::{self, Error, Outcome};
use crate::store::StringValue;
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "delex",
        arity: -2,
        since: "8.4.0",
        since_valkey: NEVER,
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete", "variable_flags"], 1)],
        variable_flags: |call, _| if call.len() > 2 { &["RW", "delete"] } else { &["RM", "delete"] },
        summary: "Deletes a key if its string, or the digest of its string, fulfils a condition.",
        complexity: "O(1)",
        run: delex,
        ..Command::of(Group::String)
    },
    Command {
        name: "delifeq",
        arity: 3,
        since: NEVER,
        since_valkey: "9.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RM", "delete"], 1)],
        summary: "Deletes a key if its string equals a value.",
        complexity: "O(1)",
        run: delifeq,
        ..Command::of(Group::String)
    },
    Command {
        name: "digest",
        arity: 2,
        since: "8.4.0",
        since_valkey: NEVER,
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the XXH3 hash of a string.",
        complexity: "O(N)",
        run: digest,
        ..Command::of(Group::String)
    },
];

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Equal,
    NotEqual,
    DigestEqual,
    DigestNotEqual,
}

/// A condition on the value of a string, with its operand: a value or a digest.
#[derive(Clone, Copy, Debug)]
pub struct Condition<'a> {
    test: Test,
    operand: &'a [u8],
}

const TESTS: [(&str, Test); 4] = [
    ("IFEQ", Test::Equal),
    ("IFNE", Test::NotEqual),
    ("IFDEQ", Test::DigestEqual),
    ("IFDNE", Test::DigestNotEqual),
];

impl<'a> Condition<'a> {
    /// Parses an option of SET with its operand. Valkey has IFEQ alone, and once; in Redis a condition of the same kind as the one
    /// `before` takes its place. Returns `None` if the next argument is no option that a release has here.
    pub fn take(words: &mut Words<'a>, before: Option<Condition>, version: Version) -> Option<Condition<'a>> {
        if !version.has("8.4.0", "8.1.0") {
            return None;
        }
        let known = if version.is_valkey() { &TESTS[..1] } else { &TESTS };
        let may_follow = |test| before.is_none_or(|before| before.test == test && !version.is_valkey());
        let (_, test) =
            *known.iter().find(|(keyword, test)| may_follow(*test) && words.take_with(keyword, 1))?;
        words.pop().map(|operand| Condition { test, operand })
    }

    /// Returns whether a value fulfils the condition.
    ///
    /// # Errors
    ///
    /// Fails if the operand has to be a digest and is not one.
    fn holds_for(self, value: &[u8]) -> Result<bool, Error> {
        let has_digest = || match self.operand.len() {
            16 => Ok(self.operand.eq_ignore_ascii_case(hex_digest(value).as_bytes())),
            _ => Err(Error::new("ERR must be exactly 16 hexadecimal characters")),
        };
        match self.test {
            Test::Equal => Ok(value == self.operand),
            Test::NotEqual => Ok(value != self.operand),
            Test::DigestEqual => has_digest(),
            Test::DigestNotEqual => has_digest().map(|is_equal| !is_equal),
        }
    }

    /// Returns whether SET may replace the string at a key. A missing key differs from every value.
    ///
    /// # Errors
    ///
    /// Fails if the key holds no string, or if the operand has to be a digest and is not one.
    pub fn allows_set(self, ctx: &mut Ctx, key: &[u8]) -> Result<bool, Error> {
        match ctx.read::<StringValue>(key)?.map(StringValue::to_vec) {
            Some(value) => self.holds_for(&value),
            None => Ok(matches!(self.test, Test::NotEqual | Test::DigestNotEqual)),
        }
    }
}

/// Returns the XXH3 hash of a value as 16 hexadecimal digits.
fn hex_digest(value: &[u8]) -> String {
    format!("{:016x}", xxh3_64(value))
}

fn digest(ctx: &mut Ctx) -> Outcome {
    let value = ctx.read::<StringValue>(ctx.argv[1])?.map(StringValue::to_vec);
    match value {
        Some(value) => ctx.reply.bulk(hex_digest(&value).as_bytes()),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn delex(ctx: &mut Ctx) -> Outcome {
    let [_, key, condition @ ..] = ctx.argv else { return Err(error::SYNTAX) };
    let deletes = match *condition {
        [] => true,
        [keyword, operand] => match string_to_delete(ctx, key)? {
            Some(value) => {
                let is_named = |(name, _): &&(&str, Test)| name.as_bytes().eq_ignore_ascii_case(keyword);
                let (_, test) = TESTS
                    .iter()
                    .find(is_named)
                    .ok_or(Error::new("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?;
                Condition { test: *test, operand }.holds_for(&value)?
            }
            None => false,
        },
        _ => return Err(error::wrong_arity(ctx.command.name)),
    };
    let deleted = deletes && ctx.delete(key);
    ctx.reply.int(deleted as i64);
    Ok(())
}

/// Returns the value of a key that DELEX deletes under a condition.
fn string_to_delete(ctx: &mut Ctx, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    const NO_STRING: Error = Error::new("ERR Key should be of string type if conditions are specified");
    let value = ctx.read::<StringValue>(key).map_err(|_| NO_STRING)?;
    Ok(value.map(StringValue::to_vec))
}

fn delifeq(ctx: &mut Ctx) -> Outcome {
    let [_, key, wanted] = *ctx.argv else { return Err(error::SYNTAX) };
    let is_equal = ctx.read::<StringValue>(key)?.is_some_and(|value| value.to_vec() == wanted);
    let deleted = is_equal && ctx.delete(key);
    ctx.reply.int(deleted as i64);
    Ok(())
}
