//! Commands for the whole server: databases, time, role, saving, shutdown, DEBUG.

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{self, Error, Outcome};
use crate::node::Request;
use crate::node::blocking::timeout_reply;
use crate::node::replication::Role;
use crate::node::session::{TimeoutReply, Wait};
use crate::node::stats::Saved;
use crate::num;
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "bgrewriteaof",
        arity: 1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING,
        summary: "Rewrites the append-only file in the background.",
        complexity: "O(1)",
        run: bgrewriteaof,
        ..Command::of(Group::Server)
    },
    Command {
        name: "bgsave",
        arity: -1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING,
        summary: "Saves the databases in the background.",
        complexity: "O(1)",
        run: bgsave,
        ..Command::of(Group::Server)
    },
    Command {
        name: "dbsize",
        arity: 1,
        since: "1.0.0",
        flags: READONLY | FAST,
        acl: &["keyspace"],
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        summary: "Counts the keys of the database.",
        complexity: "O(1)",
        run: dbsize,
        ..Command::of(Group::Server)
    },
    Command {
        name: "flushall",
        arity: -1,
        since: "1.0.0",
        flags: WRITE,
        acl: &["keyspace", "dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        summary: "Deletes the keys of all databases.",
        complexity: "O(N)",
        run: flushall,
        ..Command::of(Group::Server)
    },
    Command {
        name: "flushdb",
        arity: -1,
        since: "1.0.0",
        flags: WRITE,
        acl: &["keyspace", "dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        summary: "Deletes the keys of the database.",
        complexity: "O(N)",
        run: flushdb,
        ..Command::of(Group::Server)
    },
    Command {
        name: "info",
        arity: -1,
        since: "1.0.0",
        flags: LOADING | STALE,
        acl: &["dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        summary: "Reports on the server in sections.",
        complexity: "O(1)",
        run: super::info::info,
        ..Command::of(Group::Server)
    },
    Command {
        name: "lastsave",
        arity: 1,
        since: "1.0.0",
        flags: LOADING | STALE | FAST,
        acl: &["admin", "dangerous"],
        tips: &["nondeterministic_output"],
        summary: "Gives the time of the last save.",
        complexity: "O(1)",
        run: lastsave,
        ..Command::of(Group::Server)
    },
    Command {
        name: "lolwut",
        arity: -1,
        since: "5.0.0",
        flags: READONLY | FAST,
        summary: "Shows the version.",
        run: lolwut,
        ..Command::of(Group::Server)
    },
    Command {
        name: "role",
        arity: 1,
        since: "2.8.12",
        flags: NOSCRIPT | LOADING | STALE | FAST,
        acl: &["admin", "dangerous"],
        summary: "Tells the role in replication.",
        complexity: "O(1)",
        run: role,
        ..Command::of(Group::Server)
    },
    Command {
        name: "save",
        arity: 1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI,
        summary: "Saves the databases.",
        complexity: "O(N)",
        run: save,
        ..Command::of(Group::Server)
    },
    Command {
        name: "shutdown",
        arity: -1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY,
        summary: "Ends the server.",
        complexity: "O(N)",
        run: shutdown,
        ..Command::of(Group::Server)
    },
    Command {
        name: "swapdb",
        arity: 3,
        since: "4.0.0",
        flags: WRITE | FAST,
        acl: &["keyspace", "dangerous"],
        summary: "Exchanges two databases.",
        complexity: "O(N)",
        run: swapdb,
        ..Command::of(Group::Server)
    },
    Command {
        name: "time",
        arity: 1,
        since: "2.6.0",
        flags: LOADING | STALE | FAST,
        tips: &["nondeterministic_output"],
        summary: "Gives the server's time.",
        complexity: "O(1)",
        run: time,
        ..Command::of(Group::Server)
    },
    Command {
        name: "wait",
        arity: 3,
        since: "3.0.0",
        flags: NOSCRIPT,
        acl: &["connection"],
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        summary: "Waits until replicas acknowledge the connection's writes.",
        complexity: "O(1)",
        changes: &[Change { since: ("7.2.0", ""), apply: |row| row.flags = BLOCKING }],
        run: wait,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "waitaof",
        arity: 4,
        since: "7.2.0",
        flags: BLOCKING,
        acl: &["connection"],
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        summary: "Waits until the connection's writes are on disk, here and on replicas.",
        complexity: "O(1)",
        run: waitaof,
        ..Command::of(Group::Generic)
    },
];

fn dbsize(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(ctx.node.store.dbs[ctx.db()].len() as i64);
    Ok(())
}

fn time(ctx: &mut Ctx) -> Outcome {
    let wall_us = ctx.now().wall_us() + ctx.node.scripts.shown_us();
    ctx.reply.array(2);
    ctx.reply.bulk_int(wall_us / 1_000_000);
    ctx.reply.bulk_int(wall_us % 1_000_000);
    Ok(())
}

fn flushdb(ctx: &mut Ctx) -> Outcome {
    check_flush_mode(ctx)?;
    ctx.node.flush_db(ctx.db());
    announce_flush(ctx);
    ctx.reply.ok();
    Ok(())
}

fn flushall(ctx: &mut Ctx) -> Outcome {
    check_flush_mode(ctx)?;
    for db in 0..ctx.node.store.dbs.len() {
        ctx.node.flush_db(db);
    }
    announce_flush(ctx);
    ctx.reply.ok();
    Ok(())
}

/// Tells tracking clients that everything has changed. Since 7.4 a synchronous flush replies when its own client has been told.
fn announce_flush(ctx: &mut Ctx) {
    ctx.node.invalidate_all();
    let is_async = ctx.argv.get(1).is_some_and(|mode| mode.eq_ignore_ascii_case(b"ASYNC"));
    if ctx.version() >= Version::V7_4 && ctx.origin == Origin::Client && !is_async {
        ctx.node.send_pending_invalidations(ctx.id);
        let told = ctx.session().output.take_own();
        ctx.reply.raw(&told);
    }
}

/// Checks the option ASYNC or SYNC, which makes no difference here.
fn check_flush_mode(ctx: &Ctx) -> Outcome {
    match ctx.argv.get(1) {
        None => Ok(()),
        Some(mode)
            if ctx.argv.len() == 2
                && (mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC")) =>
        {
            Ok(())
        }
        Some(_) => Err(error::SYNTAX),
    }
}

impl crate::node::Node {
    /// Removes all keys of a database without publishing events.
    pub fn flush_db(&mut self, db: usize) {
        self.break_watches_of_db(db, None);
        self.note_all_keys(db);
        self.dirty += self.store.dbs[db].len() as u64;
        self.store.clear(db);
        self.eviction.forget();
        self.signal_db_ready(db);
    }
}

fn swapdb(ctx: &mut Ctx) -> Outcome {
    ctx.refuse_in_cluster("SWAPDB is not allowed in cluster mode")?;
    let index = |word: &[u8], which: &str| {
        num::parse_i64(word)
            .filter(|&n| i32::try_from(n).is_ok())
            .ok_or_else(|| Error::owned(format!("ERR invalid {which} DB index")))
    };
    let (a, b) = (index(ctx.argv[1], "first")?, index(ctx.argv[2], "second")?);
    let in_range =
        |n: i64| usize::try_from(n).ok().filter(|&db| db < ctx.node.store.dbs.len()).ok_or(error::BAD_DB);
    let (a, b) = (in_range(a)?, in_range(b)?);
    if a != b {
        ctx.node.break_watches_of_db(a, Some(b));
        ctx.node.break_watches_of_db(b, Some(a));
        // Both databases lose and gain keys.
        [a, b].into_iter().for_each(|db| ctx.node.note_all_keys(db));
        ctx.node.store.swap(a, b);
        ctx.node.eviction.forget();
        [a, b].into_iter().for_each(|db| ctx.node.note_all_keys(db));
        ctx.node.signal_db_ready(a);
        ctx.node.signal_db_ready(b);
    }
    ctx.node.dirty += 1;
    ctx.reply.ok();
    Ok(())
}

fn role(ctx: &mut Ctx) -> Outcome {
    if ctx.node.sentinel.is_some() {
        return super::sentinel::role(ctx);
    }
    let replication = &ctx.node.replication;
    let address = b"127.0.0.1";
    match replication.role {
        Role::Master => {
            ctx.reply.array(3);
            ctx.reply.bulk(b"master");
            ctx.reply.int(replication.offset as i64);
            ctx.reply.array(replication.replicas.len());
            for peer in &replication.replicas {
                ctx.reply.array(3);
                ctx.reply.bulk(address);
                ctx.reply.bulk(peer.port.as_bytes());
                ctx.reply.bulk_int(peer.offset as i64);
            }
        }
        Role::Replica { .. } | Role::Stray => {
            ctx.reply.array(5);
            ctx.reply.bulk(b"slave");
            ctx.reply.bulk(replication.master.host.as_bytes());
            ctx.reply.int(replication.master.port.parse().unwrap_or(0));
            ctx.reply.bulk(if replication.master.online { b"connected" } else { b"connect" });
            ctx.reply.int(if replication.master.online { replication.offset as i64 } else { -1 });
        }
    }
    Ok(())
}

fn wait(ctx: &mut Ctx) -> Outcome {
    let replicas = ctx.int(1)?;
    let timeout_ms = wait_timeout_ms(ctx, 2)?;
    wait_for_replicas(ctx, replicas, Wait::Replicas, timeout_ms, TimeoutReply::Acks);
    Ok(())
}

fn waitaof(ctx: &mut Ctx) -> Outcome {
    let local = num::parse_i64(ctx.argv[1]).filter(|n| (0..=1).contains(n));
    let local = match (local, num::parse_i64(ctx.argv[1])) {
        (Some(local), _) => local,
        (None, Some(_)) => return Err(error::out_of_range(0, 1)),
        (None, None) => return Err(error::NOT_AN_INTEGER),
    };
    let replicas = ctx.int(2).ok().filter(|&n| n >= 0).ok_or(error::MUST_BE_POSITIVE)?;
    let timeout_ms = wait_timeout_ms(ctx, 3)?;
    if local > 0 {
        return Err(Error::new(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    wait_for_replicas(ctx, replicas, Wait::AppendOnlyFile, timeout_ms, TimeoutReply::LocalAndAcks);
    Ok(())
}

/// Replies at once if enough replicas have what the client wrote. Otherwise blocks the client.
fn wait_for_replicas(ctx: &mut Ctx, asked: i64, wait: fn(u64) -> Wait, timeout_ms: u64, reply: TimeoutReply) {
    let acked = ctx.node.acked_replicas(ctx.id);
    match u64::try_from(asked) {
        Ok(asked) if acked < asked => ctx.wait_for(wait(asked), &[], timeout_ms, reply),
        _ => timeout_reply(ctx.reply, reply, acked),
    }
}

/// Returns the timeout in argument `index`, in whole milliseconds.
fn wait_timeout_ms(ctx: &Ctx, index: usize) -> Result<u64, Error> {
    let ms =
        num::parse_i64(ctx.argv[index]).ok_or(Error::new("ERR timeout is not an integer or out of range"))?;
    if ms < 0 {
        return Err(Error::new("ERR timeout is negative"));
    }
    if ms.checked_add(ctx.now().wall_ms()).is_none() {
        return Err(Error::new("ERR timeout is out of range"));
    }
    Ok(ms as u64)
}

fn lastsave(ctx: &mut Ctx) -> Outcome {
    let saved_ms = ctx.now().wall_offset_ms + (ctx.node.stats.saved.at_us / 1000) as i64;
    ctx.reply.int(saved_ms / 1000);
    Ok(())
}

/// Notes that the data counts as saved. The driver writes the file, if there is one.
fn note_save(ctx: &mut Ctx) {
    ctx.node.save_is_due = true;
    let (at_us, dirty) = (ctx.now().mono_us, ctx.node.dirty);
    let count = ctx.node.stats.saved.count + 1;
    ctx.node.stats.saved = Saved { at_us, dirty, count };
}

fn save(ctx: &mut Ctx) -> Outcome {
    note_save(ctx);
    ctx.reply.ok();
    Ok(())
}

fn bgsave(ctx: &mut Ctx) -> Outcome {
    match ctx.argv.get(1) {
        None => {}
        Some(word) if ctx.argv.len() == 2 && word.eq_ignore_ascii_case(b"SCHEDULE") => {}
        Some(_) => return Err(error::SYNTAX),
    }
    note_save(ctx);
    // A transaction does not fork.
    let began = if ctx.origin == Origin::Exec { "scheduled" } else { "started" };
    ctx.reply.status(&format!("Background saving {began}"));
    Ok(())
}

fn bgrewriteaof(ctx: &mut Ctx) -> Outcome {
    let began = if ctx.origin == Origin::Exec { "scheduled" } else { "started" };
    ctx.reply.status(&format!("Background append only file rewriting {began}"));
    Ok(())
}

fn shutdown(ctx: &mut Ctx) -> Outcome {
    let (mut save, mut nosave, mut abort) = (false, false, false);
    let mut words = ctx.words(1);
    while !words.is_empty() {
        if words.take("NOSAVE") {
            nosave = true;
        } else if words.take("SAVE") {
            save = true;
        } else if words.take("ABORT") {
            abort = true;
        } else if !words.take("NOW") && !words.take("FORCE") {
            return Err(error::SYNTAX);
        }
    }
    if save && nosave || abort && ctx.argv.len() > 2 {
        return Err(error::SYNTAX);
    }
    if abort {
        return Err(Error::new("ERR No shutdown in progress."));
    }
    if ctx.node.scripts.is_busy() && !nosave {
        return Err(ctx.node.scripts.busy_error());
    }
    ctx.node.save_is_due |= save;
    ctx.node.request = Some(Request::Shutdown);
    ctx.node.end_session(ctx.id);
    Ok(())
}

fn lolwut(ctx: &mut Ctx) -> Outcome {
    if ctx.argv.len() > 2 && ctx.argv[1].eq_ignore_ascii_case(b"VERSION") {
        // The size of the drawing of a release.
        let numbers = match ctx.int(2)? {
            5 => 3,
            6 => 2,
            _ => 0,
        };
        (3..ctx.argv.len().min(3 + numbers)).try_for_each(|at| ctx.int(at).map(drop))?;
    }
    // Valkey said Redis here until 9.0.
    let version = ctx.version();
    let product = if version.is_valkey_since(Version::Valkey9_0) { "Valkey" } else { "Redis" };
    let text = format!("Redlatch, emulating {product} ver. {}\n", version.full());
    ctx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}
