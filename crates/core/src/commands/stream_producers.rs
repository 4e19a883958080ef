//! Idempotent producers: XADD with IDMP and IDMPAUTO, XCFGSET and XIDMPRECORD.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::command::*;
use super::ctx::{Ctx, Words};
use super::streams::strict_id;
use crate::error::{self, Error, Outcome};
use crate::store::Stream;
use crate::store::stream::producers::{DURATION_S, MAX_SIZE};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "xcfgset",
        arity: -2,
        since: "8.6.0",
        since_valkey: NEVER,
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets for how long, and how many, ids of idempotent producers a stream remembers.",
        run: xcfgset,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xidmprecord",
        arity: 5,
        since: "8.6.2",
        since_valkey: NEVER,
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Notes the id under which an idempotent producer added an entry; loading a file uses it.",
        run: xidmprecord,
        ..Command::of(Group::Stream)
    },
];

/// The producer of an entry, and the id under which it adds the entry: `None` means that the fields decide about it.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub producer: &'a [u8],
    id: Option<&'a [u8]>,
}

impl<'a> Origin<'a> {
    /// Takes the option `IDMP producer id` or `IDMPAUTO producer` of XADD.
    ///
    /// # Errors
    /// If there was one before, or a part is empty.
    pub fn take(words: &mut Words<'a>, before: Option<Origin<'a>>) -> Result<Option<Origin<'a>>, Error> {
        let is_automatic = words.take_with("IDMPAUTO", 1);
        if !is_automatic && !words.take_with("IDMP", 2) {
            return Ok(None);
        }
        if before.is_some() {
            return Err(Error::new("ERR syntax error, IDMP/IDMPAUTO specified multiple times"));
        }
        let producer = words.word()?;
        if producer.is_empty() {
            let name = if is_automatic { "IDMPAUTO" } else { "IDMP" };
            return Err(format!("ERR syntax error, {name} requires a non-empty producer ID").into());
        }
        let id = if is_automatic { None } else { Some(words.word()?) };
        if id.is_some_and(<[u8]>::is_empty) {
            return Err(Error::new("ERR syntax error, IDMP requires a non-empty idempotent ID"));
        }
        Ok(Some(Origin { producer, id }))
    }

    /// Returns the id under which the producer adds an entry with these fields and values.
    pub fn id_of(&self, fields: &[&[u8]]) -> Vec<u8> {
        self.id.map_or_else(|| automatic_id(fields), <[u8]>::to_vec)
    }
}

/// Returns an id for fields and their values that does not depend on the order of the pairs.
fn automatic_id(fields: &[&[u8]]) -> Vec<u8> {
    let sum = fields.chunks(2).fold(0u128, |sum, pair| {
        let mut hash = Xxh3::new();
        for part in pair {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        sum.wrapping_add(hash.digest128())
    });
    xxh3_128(&sum.to_be_bytes()).to_be_bytes().to_vec()
}

fn xcfgset(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    if ctx.edit::<Stream>(key)?.is_none() {
        return Err(error::NO_SUCH_KEY);
    }
    let mut words = ctx.words(2);
    let (mut duration_s, mut max_size) = (None, None);
    while !words.is_empty() {
        let (name, unit, range, value) = if words.take_with("IDMP-DURATION", 1) {
            ("IDMP-DURATION", "seconds", DURATION_S, &mut duration_s)
        } else if words.take_with("IDMP-MAXSIZE", 1) {
            ("IDMP-MAXSIZE", "entries", MAX_SIZE, &mut max_size)
        } else {
            return Err(error::SYNTAX);
        };
        if value.is_some() {
            return Err(format!("ERR {name} specified multiple times").into());
        }
        let number = u64::try_from(words.int()?).ok().filter(|number| range.contains(number));
        let refused = || {
            Error::owned(format!("ERR {name} must be between {} and {} {unit}", range.start(), range.end()))
        };
        *value = Some(number.ok_or_else(refused)?);
    }
    if duration_s.is_none() && max_size.is_none() {
        return Err(Error::new("ERR At least one parameter must be specified"));
    }
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let producers = &mut stream.producers;
    let changes = producers
        .configure(duration_s.unwrap_or(producers.duration_s), max_size.unwrap_or(producers.max_size));
    stream.done_unwatched(None, changes as usize);
    ctx.reply.ok();
    Ok(())
}

fn xidmprecord(ctx: &mut Ctx) -> Outcome {
    let (key, producer, id) = (ctx.argv[1], ctx.argv[2], ctx.argv[3]);
    let entry = strict_id(ctx.argv[4])?;
    for (part, name) in [(producer, "producer"), (id, "idempotent")] {
        if part.is_empty() {
            return Err(format!("ERR {name} ID must be non-empty").into());
        }
    }
    let now_ms = ctx.now().wall_ms();
    let mut stream = ctx.edit::<Stream>(key)?.ok_or(error::NO_SUCH_KEY)?;
    if stream.get(entry).is_none() {
        return Err(Error::new("ERR No such message in stream"));
    }
    match stream.producers.find(producer, id, now_ms) {
        Some(known) if known != entry => {
            return Err(Error::new("ERR IID already exists for this producer with a different stream ID"));
        }
        Some(_) => {}
        None => {
            stream.producers.remember(producer, id, entry, now_ms);
            stream.done_unwatched(None, 1);
        }
    }
    ctx.reply.ok();
    Ok(())
}
