//! Commands for keys of any type: existence, names, copies, scans, OBJECT.

use super::command::*;
use super::ctx::Ctx;
use super::scan::{self, ScanOptions};
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::node::notify::Class;
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "copy",
        arity: -3,
        since: "6.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RO", "access"], 1), key(&["OW", "update"], 2)],
        summary: "Copies the value of a key to another key.",
        complexity: "O(N)",
        run: copy,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "del",
        arity: -2,
        since: "1.0.0",
        flags: WRITE,
        keys: &[keys(&["RM", "delete"], 1, -1, 1)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        summary: "Deletes keys.",
        complexity: "O(N)",
        run: del,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "exists",
        arity: -2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[keys(&["RO"], 1, -1, 1)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        summary: "Counts the keys that exist.",
        complexity: "O(N)",
        run: exists,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "keys",
        arity: 2,
        since: "1.0.0",
        flags: READONLY,
        acl: &["keyspace", "dangerous"],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        summary: "Lists the keys that match a pattern.",
        complexity: "O(N)",
        run: keys_,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "move",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "update"], 1)],
        summary: "Moves a key to another database.",
        complexity: "O(1)",
        run: move_,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "object",
        arity: -2,
        since: "2.2.3",
        acl: &[],
        summary: "Shows how a value is kept.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "object|freq",
                arity: 3,
                since: "4.0.0",
                flags: READONLY,
                keys: &[key(&["RO"], 2)],
                tips: &["nondeterministic_output"],
                summary: "Gives the access frequency of a value.",
                complexity: "O(1)",
                run: object_freq,
                ..Command::of(Group::Generic)
            },
            Command {
                name: "object|encoding",
                arity: 3,
                since: "2.2.3",
                flags: READONLY,
                keys: &[key(&["RO"], 2)],
                tips: &["nondeterministic_output"],
                summary: "Gives the internal encoding of a value.",
                complexity: "O(1)",
                run: object_encoding,
                ..Command::of(Group::Generic)
            },
            Command {
                name: "object|idletime",
                arity: 3,
                since: "2.2.3",
                flags: READONLY,
                keys: &[key(&["RO"], 2)],
                tips: &["nondeterministic_output"],
                summary: "Gives the seconds since a value was last used.",
                complexity: "O(1)",
                run: object_idletime,
                ..Command::of(Group::Generic)
            },
            Command {
                name: "object|help",
                arity: 2,
                since: "6.2.0",
                flags: LOADING | STALE,
                summary: "Explains the subcommands.",
                complexity: "O(1)",
                run: super::help::reply,
                ..Command::of(Group::Generic)
            },
            Command {
                name: "object|refcount",
                arity: 3,
                since: "2.2.3",
                flags: READONLY,
                keys: &[key(&["RO"], 2)],
                tips: &["nondeterministic_output"],
                summary: "Gives the number of references to a value.",
                complexity: "O(1)",
                run: object_refcount,
                ..Command::of(Group::Generic)
            },
        ],
        ..Command::of(Group::Generic)
    },
    Command {
        name: "randomkey",
        arity: 1,
        since: "1.0.0",
        flags: READONLY,
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        summary: "Gives a random key.",
        complexity: "O(1)",
        changes: &[Change {
            since: ("7.2.0", ""),
            apply: |row| {
                row.tips =
                    &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"];
            },
        }],
        run: randomkey,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "rename",
        arity: 3,
        since: "1.0.0",
        flags: WRITE,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["OW", "update"], 2)],
        summary: "Renames a key and overwrites the new one.",
        complexity: "O(1)",
        run: rename,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "renamenx",
        arity: 3,
        since: "1.0.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1), key(&["OW", "insert"], 2)],
        summary: "Renames a key unless the new name exists.",
        complexity: "O(1)",
        run: renamenx,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "scan",
        arity: -2,
        since: "2.8.0",
        flags: READONLY,
        tips: &["nondeterministic_output", "request_policy:special"],
        summary: "Walks through the keys of the database.",
        complexity: "O(1)",
        changes: &[Change {
            since: ("7.2.0", ""),
            apply: |row| {
                row.tips = &["nondeterministic_output", "request_policy:special", "response_policy:special"]
            },
        }],
        run: scan,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "touch",
        arity: -2,
        since: "3.2.1",
        flags: READONLY | FAST,
        keys: &[keys(&["RO"], 1, -1, 1)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        summary: "Counts the keys that exist and marks them as used.",
        complexity: "O(N)",
        run: touch,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "type",
        arity: 2,
        since: "1.0.0",
        flags: READONLY | FAST,
        keys: &[key(&["RO"], 1)],
        summary: "Gives the type of a value.",
        complexity: "O(1)",
        run: type_,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "unlink",
        arity: -2,
        since: "4.0.0",
        flags: WRITE | FAST,
        keys: &[keys(&["RM", "delete"], 1, -1, 1)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        summary: "Deletes keys and frees their memory later.",
        complexity: "O(1)",
        run: unlink,
        ..Command::of(Group::Generic)
    },
];

fn del(ctx: &mut Ctx) -> Outcome {
    let mut deleted = 0;
    for key in &ctx.argv[1..] {
        deleted += ctx.delete(key) as i64;
    }
    ctx.reply.int(deleted);
    Ok(())
}

fn unlink(ctx: &mut Ctx) -> Outcome {
    del(ctx)
}

fn exists(ctx: &mut Ctx) -> Outcome {
    let count = ctx.argv[1..].iter().filter(|key| ctx.peek(key).is_some()).count();
    ctx.reply.int(count as i64);
    Ok(())
}

fn touch(ctx: &mut Ctx) -> Outcome {
    let count = ctx.argv[1..].iter().filter(|key| ctx.find(key).is_some()).count();
    ctx.reply.int(count as i64);
    Ok(())
}

fn type_(ctx: &mut Ctx) -> Outcome {
    let name = ctx.peek(ctx.argv[1]).and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.type_name());
    ctx.reply.status(name.unwrap_or("none"));
    Ok(())
}

fn keys_(ctx: &mut Ctx) -> Outcome {
    let pattern = ctx.argv[1];
    let now = ctx.now();
    let db = &ctx.node.store.dbs[ctx.db()];
    let found: Vec<&[u8]> = (db.iter())
        .filter(|(_, key, entry)| {
            !entry.is_expired(now) && (pattern == b"*" || glob::matches(pattern, key, false))
        })
        .map(|(_, key, _)| key)
        .collect();
    ctx.reply.array(found.len());
    for key in found {
        ctx.reply.bulk(key);
    }
    Ok(())
}

fn randomkey(ctx: &mut Ctx) -> Outcome {
    // Expired keys may still be present while expiry is suspended.
    for _ in 0..100 {
        let draw = ctx.random();
        let db = &ctx.node.store.dbs[ctx.db()];
        let Some(key) = db.random_slot(draw).and_then(|slot| db.key(slot)).map(<[u8]>::to_vec) else { break };
        if ctx.find_quietly(&key).is_some() {
            ctx.reply.bulk(&key);
            return Ok(());
        }
    }
    ctx.reply.null();
    Ok(())
}

fn rename(ctx: &mut Ctx) -> Outcome {
    move_key(ctx, true)?;
    ctx.reply.ok();
    Ok(())
}

fn renamenx(ctx: &mut Ctx) -> Outcome {
    let moved = move_key(ctx, false)?;
    ctx.reply.int(moved as i64);
    Ok(())
}

/// Renames a key, with its value and expiry. Returns false if the new name exists and `overwrite` is false.
fn move_key(ctx: &mut Ctx, overwrite: bool) -> Result<bool, Error> {
    let (from, to) = (ctx.argv[1], ctx.argv[2]);
    let slot = ctx.find_for_write(from).ok_or(error::NO_SUCH_KEY)?;
    if from == to {
        return Ok(overwrite);
    }
    let old_type =
        ctx.find_for_write(to).and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.type_name());
    if old_type.is_some() {
        if !overwrite {
            return Ok(false);
        }
        ctx.discard(to);
    }
    let db = ctx.db();
    let Some(entry) = ctx.node.store.remove(db, slot) else { return Ok(false) };
    let expires_at_ms = entry.expires_at_ms();
    let renamed = ctx.insert(to, entry.value, expires_at_ms).postpone();
    ctx.announce(from, Class::GENERIC, "rename_from");
    renamed.resume(ctx).done("rename_to", 1);
    if let Some((old_type, slot)) = old_type.zip(ctx.find_quietly(to)) {
        ctx.notify_overwritten(to, slot, old_type);
    }
    Ok(true)
}

fn move_(ctx: &mut Ctx) -> Outcome {
    ctx.refuse_in_cluster("MOVE is not allowed in cluster mode")?;
    let key = ctx.argv[1];
    let to = ctx.db_index(2)?;
    if to == ctx.db() {
        return Err(Error::new("ERR source and destination objects are the same"));
    }
    let from = ctx.db();
    let taken = ctx.in_db(to, |ctx| ctx.find_quietly(key).is_some());
    let Some(slot) = ctx.find_for_write(key).filter(|_| !taken) else {
        ctx.reply.int(0);
        return Ok(());
    };
    let Some(entry) = ctx.node.store.remove(from, slot) else { return Ok(()) };
    let expires_at_ms = entry.expires_at_ms();
    let moved = ctx.in_db(to, |ctx| ctx.insert(key, entry.value, expires_at_ms).postpone());
    ctx.announce(key, Class::GENERIC, "move_from");
    moved.resume(ctx).done("move_to", 1);
    ctx.reply.int(1);
    Ok(())
}

fn copy(ctx: &mut Ctx) -> Outcome {
    let (from, to) = (ctx.argv[1], ctx.argv[2]);
    let (mut db, mut replace) = (ctx.db(), false);
    let mut words = ctx.words(3);
    while !words.is_empty() {
        if words.take("REPLACE") {
            replace = true;
        } else if words.take_with("DB", 1) {
            db = ctx.db_index(ctx.argv.len() - words.len())?;
            words.pop();
        } else {
            return Err(error::SYNTAX);
        }
    }
    if db != 0 {
        let has_one = ctx.version() >= Version::V7_4;
        let why = if has_one {
            "DB index is out of range"
        } else {
            "Copying to another database is not allowed in cluster mode"
        };
        ctx.refuse_in_cluster(why)?;
    }
    if db == ctx.db() && from == to {
        return Err(Error::new("ERR source and destination objects are the same"));
    }
    let source = ctx
        .find(from)
        .and_then(|slot| ctx.entry(slot))
        .map(|entry| (entry.value.clone(), entry.expires_at_ms()));
    let copied = match source {
        Some((value, expires_at_ms)) => ctx.in_db(db, |ctx| {
            let slot = ctx.find_for_write(to);
            let old_type = slot.and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.type_name());
            if old_type.is_some() {
                if !replace {
                    return false;
                }
                ctx.discard(to);
            }
            ctx.insert(to, value, expires_at_ms).done("copy_to", 1);
            if let Some((old_type, slot)) = old_type.zip(ctx.find_quietly(to)) {
                ctx.notify_overwritten(to, slot, old_type);
            }
            true
        }),
        None => false,
    };
    ctx.reply.int(copied as i64);
    Ok(())
}

fn scan(ctx: &mut Ctx) -> Outcome {
    let options = ScanOptions::parse(ctx, 1)?;
    let now = ctx.now();
    let mut found: Vec<Box<[u8]>> = Vec::new();
    let db = &ctx.node.store.dbs[ctx.db()];
    let next = db.scan(options.cursor, options.count, |key, entry| {
        let type_fits =
            options.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(entry.value.type_name().as_bytes()));
        if type_fits && !entry.is_expired(now) && options.matches(key) {
            found.push(key.into());
        }
    });
    scan::reply(ctx, next, &found);
    Ok(())
}

fn object_encoding(ctx: &mut Ctx) -> Outcome {
    match ctx.find_quietly(ctx.argv[2]).and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.encoding()) {
        Some(encoding) => ctx.reply.bulk(encoding.as_bytes()),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn object_refcount(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let slot = ctx.find_quietly(ctx.argv[2]);
    match slot.and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.refcount(version)) {
        Some(count) => ctx.reply.int(count),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn object_idletime(ctx: &mut Ctx) -> Outcome {
    let now_s = ctx.now().mono_s();
    match ctx.find_quietly(ctx.argv[2]).and_then(|slot| ctx.entry(slot)).map(|entry| entry.usage) {
        Some(_) if ctx.node.store.limits.counts_uses => {
            return Err(Error::new(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
                 policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Some(usage) => ctx.reply.int(now_s.wrapping_sub(usage.used_at_s()) as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn object_freq(ctx: &mut Ctx) -> Outcome {
    let now_s = ctx.now().mono_s();
    match ctx.find_quietly(ctx.argv[2]).and_then(|slot| ctx.entry(slot)).map(|entry| entry.usage) {
        Some(usage) if ctx.node.store.limits.counts_uses => {
            ctx.reply.int(usage.count(now_s, ctx.node.config.eviction.decay).into());
            return Ok(());
        }
        Some(_) => {}
        None => {
            ctx.reply.null();
            return Ok(());
        }
    }
    Err(Error::new(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
         between policies at runtime LRU and LFU data will take some time to adjust.",
    ))
}
