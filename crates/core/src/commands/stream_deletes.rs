//! XDEL, XDELEX and XACKDEL: entries that are deleted by their ids, with or without their deliveries to groups.

use super::command::*;
use super::ctx::{Ctx, Words};
use super::streams::strict_id;
use crate::error::{self, Error, Outcome};
use crate::store::Stream;
use crate::store::stream::{References, StreamId};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "xackdel",
        arity: -6,
        since: "8.2.0",
        since_valkey: NEVER,
        flags: WRITE | FAST,
        keys: &[key(&["RW", "update", "delete"], 1)],
        summary: "Acknowledges entries and deletes them.",
        complexity: "O(1) for each message ID processed.",
        run: xackdel,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xdel",
        arity: -3,
        since: "5.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Deletes entries and counts them.",
        complexity: DELETE_COMPLEXITY,
        run: xdel,
        ..Command::of(Group::Stream)
    },
    Command {
        name: "xdelex",
        arity: -5,
        since: "8.2.0",
        since_valkey: NEVER,
        flags: WRITE | FAST,
        keys: &[key(&["RW", "delete"], 1)],
        summary: "Deletes entries, and says for each what became of it.",
        complexity: DELETE_COMPLEXITY,
        run: xdelex,
        ..Command::of(Group::Stream)
    },
];

const DELETE_COMPLEXITY: &str =
    "O(1) for each single item to delete in the stream, regardless of the stream size.";

/// What became of an entry, as a reply has it.
#[derive(Clone, Copy)]
enum Fate {
    Missing = -1,
    Deleted = 1,
    /// A group has not read it yet, or has not acknowledged it.
    Referenced = 2,
}

/// Takes one of the words for what becomes of deliveries, unless it was given before.
pub(super) fn take_references(words: &mut Words, references: &mut Option<References>) -> bool {
    const WORDS: [(&str, References); 3] =
        [("KEEPREF", References::Keep), ("DELREF", References::Delete), ("ACKED", References::Respect)];
    let found = WORDS.iter().find(|(word, _)| references.is_none() && words.take(word));
    *references = found.map(|(_, found)| *found).or(*references);
    found.is_some()
}

/// Parses `[KEEPREF | DELREF | ACKED] IDS count id …`. The ids themselves are parsed once the stream is found.
fn parse<'a>(mut words: Words<'a>) -> Result<(References, &'a [&'a [u8]]), Error> {
    let (mut references, mut ids) = (None, None);
    while !words.is_empty() {
        if take_references(&mut words, &mut references) {
            continue;
        }
        if !words.take_with("IDS", 1) {
            return Err(error::SYNTAX);
        }
        let count = words.int().ok().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        let count = count.ok_or(Error::new("ERR Number of IDs must be a positive integer"))?;
        let named = words.rest().get(..count);
        ids = Some(named.ok_or(Error::new("ERR The `numids` parameter must match the number of arguments"))?);
        words.skip(count);
    }
    Ok((references.unwrap_or_default(), ids.ok_or(error::SYNTAX)?))
}

/// Deletes an entry. Returns whether it was there.
fn delete(stream: &mut Stream, id: StreamId) -> bool {
    let is_deleted = stream.delete(id);
    if is_deleted {
        stream.max_deleted_id = stream.max_deleted_id.max(id);
    }
    is_deleted
}

/// Parses the ids of entries.
///
/// # Errors
/// If one is malformed.
pub(super) fn strict_ids(words: &[&[u8]]) -> Result<Vec<StreamId>, Error> {
    words.iter().map(|word| strict_id(word)).collect()
}

fn write_fates(ctx: &mut Ctx, fates: &[Fate]) {
    ctx.reply.array(fates.len());
    fates.iter().for_each(|&fate| ctx.reply.int(fate as i64));
}

fn xdel(ctx: &mut Ctx) -> Outcome {
    let words = &ctx.argv[2..];
    let Some(mut edit) = ctx.edit::<Stream>(ctx.argv[1])? else {
        ctx.reply.int(0);
        return Ok(());
    };
    // Borrowed for changes only if there is one to make.
    let deleted =
        strict_ids(words)?.into_iter().filter(|&id| edit.get(id).is_some() && delete(&mut edit, id)).count();
    edit.done_if_any("xdel", deleted);
    ctx.reply.int(deleted as i64);
    Ok(())
}

fn xdelex(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let exists = ctx.edit::<Stream>(key)?.is_some();
    let (references, words) = parse(ctx.words(2))?;
    if !exists {
        write_fates(ctx, &vec![Fate::Missing; words.len()]);
        return Ok(());
    }
    let ids = strict_ids(words)?;
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let (mut deleted, mut forgets) = (0, false);
    let fate = |id| {
        match references {
            References::Respect if stream.is_referenced(id) => return Fate::Referenced,
            References::Delete => forgets |= stream.delete_references(id),
            _ => {}
        }
        match stream.get(id).is_some() && delete(&mut stream, id) {
            true => {
                deleted += 1;
                Fate::Deleted
            }
            false => Fate::Missing,
        }
    };
    let fates: Vec<Fate> = ids.into_iter().map(fate).collect();
    match deleted {
        0 if forgets => stream.done_unwatched(None, 0),
        _ => stream.done_if_any("xdel", deleted),
    }
    write_fates(ctx, &fates);
    Ok(())
}

fn xackdel(ctx: &mut Ctx) -> Outcome {
    let (key, name) = (ctx.argv[1], ctx.argv[2]);
    let has_group = ctx.edit::<Stream>(key)?.is_some_and(|stream| stream.groups.contains_key(name));
    let (references, words) = parse(ctx.words(3))?;
    if !has_group {
        write_fates(ctx, &vec![Fate::Missing; words.len()]);
        return Ok(());
    }
    let ids = strict_ids(words)?;
    let Some(mut stream) = ctx.edit::<Stream>(key)? else { return Ok(()) };
    let (mut acknowledged, mut deleted) = (0, 0);
    let fate = |id| {
        if !stream.groups.get_mut(name).is_some_and(|group| group.acknowledge(id)) {
            return Fate::Missing;
        }
        acknowledged += 1;
        match references {
            References::Respect if stream.is_referenced(id) => return Fate::Referenced,
            References::Delete => _ = stream.delete_references(id),
            _ => {}
        }
        // The entry may be gone already.
        deleted += delete(&mut stream, id) as usize;
        Fate::Deleted
    };
    let fates: Vec<Fate> = ids.into_iter().map(fate).collect();
    match deleted {
        0 => stream.done_unwatched(None, acknowledged),
        _ => stream.done("xdel", acknowledged),
    }
    write_fates(ctx, &fates);
    Ok(())
}
