//! Commands for the expiry of keys.

use super::command::*;
use super::ctx::{Ctx, Words};
use crate::error::{self, Error, Outcome};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "expire",
        arity: -3,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of a key in seconds.",
        complexity: "O(1)",
        run: expire,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "expireat",
        arity: -3,
        since: "1.2.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of a key to a Unix time in seconds.",
        complexity: "O(1)",
        run: expireat,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "expiretime",
        arity: 2,
        since: "7.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the expiry of a key as a Unix time in seconds.",
        complexity: "O(1)",
        run: expiretime,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "pexpire",
        arity: -3,
        since: "2.6.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the time to live of a key in milliseconds.",
        complexity: "O(1)",
        run: pexpire,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "pexpireat",
        arity: -3,
        since: "2.6.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets the expiry of a key to a Unix time in milliseconds.",
        complexity: "O(1)",
        run: pexpireat,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "pexpiretime",
        arity: 2,
        since: "7.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the expiry of a key as a Unix time in milliseconds.",
        complexity: "O(1)",
        run: pexpiretime,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "persist",
        arity: 2,
        since: "2.2.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Removes the expiry of a key.",
        complexity: "O(1)",
        run: persist,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "pttl",
        arity: 2,
        since: "2.6.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives the time to live of a key in milliseconds.",
        complexity: "O(1)",
        run: pttl,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "ttl",
        arity: 2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives the time to live of a key in seconds.",
        complexity: "O(1)",
        run: ttl,
        ..Command::of(Group::Generic)
    },
];

/// The unit of a time in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
}

/// The point from which a time in a command counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Now,
    Epoch,
}

/// Converts a time of a command to Unix time in ms. Returns `None` on overflow.
pub fn to_unix_ms(time: i64, unit: Unit, base: Base, now_ms: i64) -> Option<i64> {
    let ms = match unit {
        Unit::Seconds => time.checked_mul(1000)?,
        Unit::Milliseconds => time,
    };
    match base {
        Base::Now => ms.checked_add(now_ms),
        Base::Epoch => Some(ms),
    }
}

/// The conditions NX, XX, GT and LT on a new expiry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    /// Parses the conditions, which are all that is left.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, or if conditions exclude one another.
    pub fn parse(mut words: Words) -> Result<Condition, Error> {
        let mut condition = Condition::default();
        while let Some(word) = words.pop() {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => condition.nx = true,
                b"xx" => condition.xx = true,
                b"gt" => condition.gt = true,
                b"lt" => condition.lt = true,
                _ => return Err(Error::owned([b"ERR Unsupported option ", error::c_text(word)].concat())),
            }
        }
        let Condition { nx, xx, gt, lt } = condition;
        if nx && (xx || gt || lt) {
            return Err(Error::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if gt && lt {
            return Err(Error::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(condition)
    }

    /// Returns whether a new expiry is allowed, given the old one. A key without an expiry counts as the last to expire.
    pub fn allows(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        !(self.nx && old_ms.is_some()
            || self.xx && old_ms.is_none()
            || self.gt && old_ms.is_none_or(|old_ms| new_ms <= old_ms)
            || self.lt && old_ms.is_some_and(|old_ms| new_ms >= old_ms))
    }
}

fn expire(ctx: &mut Ctx) -> Outcome {
    expire_generic(ctx, Unit::Seconds, Base::Now)
}

fn pexpire(ctx: &mut Ctx) -> Outcome {
    expire_generic(ctx, Unit::Milliseconds, Base::Now)
}

fn expireat(ctx: &mut Ctx) -> Outcome {
    expire_generic(ctx, Unit::Seconds, Base::Epoch)
}

fn pexpireat(ctx: &mut Ctx) -> Outcome {
    expire_generic(ctx, Unit::Milliseconds, Base::Epoch)
}

fn expire_generic(ctx: &mut Ctx, unit: Unit, base: Base) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    let condition = Condition::parse(ctx.words(3))?;
    let when_ms =
        to_unix_ms(ctx.int(2)?, unit, base, now_ms).ok_or_else(|| error::invalid_expire(ctx.command.name))?;
    let Some(slot) = ctx.find_for_write(key) else {
        ctx.reply.int(0);
        return Ok(());
    };
    let old_ms = ctx.entry(slot).and_then(|entry| entry.expires_at_ms());
    if !condition.allows(old_ms, when_ms) {
        ctx.reply.int(0);
        return Ok(());
    }
    if when_ms <= now_ms {
        ctx.expire_now(key);
    } else {
        ctx.set_expiry(key, slot, Some(when_ms));
    }
    ctx.reply.int(1);
    Ok(())
}

fn persist(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let volatile =
        |ctx: &Ctx, slot: &u32| ctx.entry(*slot).is_some_and(|entry| entry.expires_at_ms().is_some());
    match ctx.find_for_write(key).filter(|slot| volatile(ctx, slot)) {
        Some(slot) => {
            ctx.set_expiry(key, slot, None);
            ctx.reply.int(1);
        }
        None => ctx.reply.int(0),
    }
    Ok(())
}

fn ttl(ctx: &mut Ctx) -> Outcome {
    ttl_generic(ctx, Unit::Seconds, Base::Now)
}

fn pttl(ctx: &mut Ctx) -> Outcome {
    ttl_generic(ctx, Unit::Milliseconds, Base::Now)
}

fn expiretime(ctx: &mut Ctx) -> Outcome {
    ttl_generic(ctx, Unit::Seconds, Base::Epoch)
}

fn pexpiretime(ctx: &mut Ctx) -> Outcome {
    ttl_generic(ctx, Unit::Milliseconds, Base::Epoch)
}

/// Writes the time to live or the expiry of a key; -2: no such key; -1: no expiry.
fn ttl_generic(ctx: &mut Ctx, unit: Unit, base: Base) -> Outcome {
    let time = match ctx.peek(ctx.argv[1]) {
        None => -2,
        Some(slot) => match ctx.entry(slot).and_then(|entry| entry.expires_at_ms()) {
            None => -1,
            Some(when_ms) => {
                let ms = match base {
                    Base::Now => (when_ms - ctx.now().wall_ms()).max(0),
                    Base::Epoch => when_ms,
                };
                match unit {
                    // Unsigned, because the greatest time overflows when it is rounded up.
                    Unit::Seconds => ((ms as u64 + 500) / 1000) as i64,
                    Unit::Milliseconds => ms,
                }
            }
        },
    };
    ctx.reply.int(time);
    Ok(())
}
