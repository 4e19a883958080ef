//! The arguments and the reply that HRANDFIELD, ZRANDMEMBER and SRANDMEMBER have in common.

use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::num;
use crate::store::slab_map::scale;
use crate::wire::{Protocol, Reply};

/// The most elements that are drawn with repetition, and the most bytes that they may take. Redis itself would continue
/// until it runs out of memory.
pub(super) const MAX_DRAWS: u64 = 1 << 24;
pub(super) const MAX_REPLY: usize = 1 << 30;

/// How many elements to return (negative: with repetition), and whether to return their values or scores too.
pub struct Request {
    count: i64,
    with_values: bool,
}

impl Request {
    /// Parses the arguments after the key. Returns `None` if there are none, which asks for a single element.
    ///
    /// # Errors
    ///
    /// Fails if an argument is invalid, or the count is out of range.
    pub fn parse(ctx: &Ctx, with_values: &str) -> Result<Option<Request>, Error> {
        let Some(count) = ctx.argv.get(2) else { return Ok(None) };
        let count = num::parse_i64(count).ok_or(error::NOT_AN_INTEGER)?;
        if count == i64::MIN {
            return Err(error::out_of_range(-i64::MAX, i64::MAX));
        }
        let with_values = match &ctx.argv[3..] {
            [] => false,
            [word] if word.eq_ignore_ascii_case(with_values.as_bytes()) => true,
            _ => return Err(error::SYNTAX),
        };
        if with_values && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
            return Err(error::OUT_OF_RANGE);
        }
        Ok(Some(Request { count, with_values }))
    }
}

/// Picks elements and writes them. `write` writes the value or score of an element.
pub fn reply<T>(
    ctx: &mut Ctx,
    elements: &[(Vec<u8>, T)],
    request: Request,
    write: impl Fn(&mut Reply, &T),
) -> Outcome {
    let Request { count, with_values } = request;
    let with_repetition = count < 0 && !elements.is_empty();
    if with_repetition && count.unsigned_abs() > MAX_DRAWS {
        return Err(error::OUT_OF_RANGE);
    }
    let picks = if with_repetition { Vec::new() } else { ctx.pick(elements.len(), count) };
    let len = if with_repetition { count.unsigned_abs() as usize } else { picks.len() };
    let nested = with_values && ctx.reply.protocol == Protocol::Resp3;
    ctx.reply.array(if with_values && !nested { len * 2 } else { len });
    let mut picks = picks.into_iter();
    for _ in 0..len {
        let index = picks.next().unwrap_or_else(|| scale(ctx.random(), elements.len()));
        let (name, value) = &elements[index];
        if ctx.reply.len() > MAX_REPLY {
            return Err(error::OUT_OF_RANGE);
        }
        if nested {
            ctx.reply.array(2);
        }
        ctx.reply.bulk(name);
        if with_values {
            write(ctx.reply, value);
        }
    }
    Ok(())
}
