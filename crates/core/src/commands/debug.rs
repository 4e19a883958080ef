//! DEBUG: what tests of servers and clients use.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::config::parse_memory;
use crate::node::session::{TimeoutReply, Wait};
use crate::num;
use crate::store::{StringValue, Value, rdb};
use crate::version::Version;
use crate::wire::{Protocol, Reply};

pub const COMMANDS: &[Command] = &[Command {
    name: "debug",
    arity: -2,
    since: "1.0.0",
    flags: ADMIN | NOSCRIPT | LOADING | STALE,
    summary: "Stages states that tests need.",
    complexity: "Depends on subcommand.",
    run: debug,
    ..Command::of(Group::Server)
}];

/// A subcommand: its name, the fewest and the most arguments with both names, the first releases of Redis and of Valkey, and
/// its function.
type Subcommand = (&'static str, (usize, usize), (&'static str, &'static str), fn(&mut Ctx) -> Outcome);

const ALWAYS: (&str, &str) = ("1.0.0", "");
const SUBCOMMANDS: &[Subcommand] = &[
    ("allocsize-slots-assert", (3, 3), ("8.6.0", NEVER), accept_int),
    ("aof-flush-sleep", (3, 3), ALWAYS, accept),
    ("asm-failpoint", (4, 4), ("8.4.0", NEVER), |_| Err(Error::new("ERR Failed to set ASM fail point"))),
    ("asm-trim-method", (3, 4), ("8.4.0", NEVER), |_| Err(Error::new("ERR Failed to set ASM trim method"))),
    ("change-repl-id", (2, 2), ALWAYS, change_replication_id),
    ("client-enforce-reply-list", (3, 3), (NEVER, "9.0.0"), accept),
    ("client-eviction", (2, 2), ALWAYS, |_| Err(Error::new("ERR maxmemory-clients is disabled."))),
    ("close-cluster-link-on-packet-drop", (3, 3), (NEVER, "8.0.0"), accept),
    ("clusterlink", (5, 5), ALWAYS, |ctx| match ctx.argv[2].eq_ignore_ascii_case(b"KILL") {
        true => Err(Error::new("ERR Debug option only available for cluster mode enabled setup!")),
        false => Err(error::subcommand_syntax(ctx.argv)),
    }),
    ("config-rewrite-force-all", (2, 2), ALWAYS, |_| {
        Err(Error::new("ERR CONFIG-REWRITE-FORCE-ALL failed: Bad address"))
    }),
    ("delay-rdb-client-free-seconds", (3, 3), (NEVER, "8.0.0"), accept),
    ("dict-resizing", (3, 3), ("7.2.0", ""), accept),
    ("digest", (2, 2), ALWAYS, digest),
    ("digest-value", (2, usize::MAX), ALWAYS, digest_value),
    ("disable-cluster-random-ping", (3, 3), (NEVER, "8.0.0"), accept),
    ("disable-cluster-reconnection", (3, 3), (NEVER, "8.0.0"), accept),
    ("drop-cluster-packet-filter", (3, 3), ALWAYS, accept_int),
    ("error", (3, 3), ALWAYS, |ctx| Err(Error::owned(ctx.argv[2].to_vec()))),
    ("force-free-primary-async", (3, 3), (NEVER, "9.0.0"), accept),
    ("force-tls-write-error", (3, 3), (NEVER, "9.1.0"), |_| Err(Error::new("ERR TLS is not enabled"))),
    ("hashtable-can-abort-shrink", (3, 3), (NEVER, "9.0.0"), accept),
    ("help", (2, 2), ALWAYS, super::help::reply),
    ("htstats", (3, 4), ALWAYS, table_stats),
    ("htstats-key", (3, 4), ALWAYS, table_stats_of_key),
    ("internal_secret", (2, 2), ("8.0.0", NEVER), |_| Err(Error::new("ERR Internal secret is missing"))),
    ("keysizes-hist-assert", (3, 3), ("8.6.0", NEVER), accept_int),
    ("leak", (3, 3), ALWAYS, accept),
    ("listpack", (3, 3), ALWAYS, |ctx| show_structure(ctx, "listpack")),
    ("loadaof", (2, 2), ALWAYS, |_| {
        Err(Error::new("ERR Error trying to load the AOF files, check server logs."))
    }),
    ("log", (3, 3), ALWAYS, log),
    ("mark-internal-client", (2, 3), ("8.0.0", NEVER), accept),
    ("object", (3, 3), ALWAYS, debug_object),
    ("object", (4, 4), (NEVER, "8.1.0"), debug_object),
    ("pause-after-fork", (3, 3), (NEVER, "8.0.0"), accept),
    ("pause-cron", (3, 3), ALWAYS, accept),
    ("populate", (3, 5), ALWAYS, populate),
    ("protect-client", (3, 3), (NEVER, "9.1.0"), |_| Err(Error::new("ERR No such client"))),
    ("protocol", (3, 3), ALWAYS, debug_protocol),
    ("quicklist", (3, 4), ALWAYS, |ctx| show_structure(ctx, "quicklist")),
    ("quicklist-packed-threshold", (3, 3), ALWAYS, packed_threshold),
    ("reload", (2, usize::MAX), ALWAYS, reload),
    ("repl-pause", (3, 3), ("8.0.0", NEVER), |ctx| {
        accept_word(ctx, &["clear", "after-fork", "before-rdb-channel", "on-streaming-repl-buf"])
    }),
    ("replicate", (3, usize::MAX), ALWAYS, accept),
    ("reply-copy-avoidance", (3, 3), ("8.4.0", NEVER), accept),
    ("replybuffer", (4, 4), ALWAYS, reply_buffer),
    ("script", (3, 3), ("7.4.0", NEVER), |ctx| accept_word(ctx, &["list"])),
    ("sdslen", (3, 3), ALWAYS, string_sizes),
    ("set-active-expire", (3, 3), ALWAYS, set_active_expire),
    ("set-allow-access-expired", (3, 3), ("8.0.0", NEVER), accept),
    ("set-disable-deny-scripts", (3, 3), ALWAYS, accept),
    ("set-skip-checksum-validation", (3, 3), ALWAYS, accept),
    ("sleep", (3, 3), ALWAYS, debug_sleep),
    ("slotmigration", (4, 4), (NEVER, "9.0.0"), |ctx| {
        accept_word(ctx, &["prevent-pause", "prevent-failover"])
    }),
    ("stringmatch-test", (2, 2), ALWAYS, |ctx| {
        let product = if ctx.version().is_valkey() { "the server" } else { "Redis" };
        ctx.reply.status(&format!("Apparently {product} did not crash: test passed"));
        Ok(())
    }),
    ("structsize", (2, 2), ALWAYS, |ctx| {
        ctx.reply
            .bulk(b"bits:64 robj:16 dictentry:24 sdshdr5:1 sdshdr8:3 sdshdr16:5 sdshdr32:9 sdshdr64:17 ");
        Ok(())
    }),
];

fn debug(ctx: &mut Ctx) -> Outcome {
    let (word, len, version) = (ctx.argv[1].to_ascii_lowercase(), ctx.argv.len(), ctx.version());
    let found = SUBCOMMANDS.iter().find(|(name, (fewest, most), (redis, valkey), _)| {
        name.as_bytes() == word && (*fewest..=*most).contains(&len) && version.has(redis, valkey)
    });
    match found {
        Some((.., run)) => run(ctx),
        None => Err(error::subcommand_syntax(ctx.argv)),
    }
}

/// Accepts what concerns parts of Redis that are not here: fork, files, links of a cluster, allocation.
fn accept(ctx: &mut Ctx) -> Outcome {
    ctx.reply.ok();
    Ok(())
}

/// Accepts an integer as [`accept`] does.
fn accept_int(ctx: &mut Ctx) -> Outcome {
    ctx.int(2)?;
    accept(ctx)
}

/// Accepts one of these words as [`accept`] does.
fn accept_word(ctx: &mut Ctx, words: &[&str]) -> Outcome {
    match words.iter().any(|word| ctx.argv[2].eq_ignore_ascii_case(word.as_bytes())) {
        true => accept(ctx),
        false => Err(error::subcommand_syntax(ctx.argv)),
    }
}

fn set_active_expire(ctx: &mut Ctx) -> Outcome {
    ctx.node.active_expire = num::parse_i64(ctx.argv[2]).unwrap_or(0) != 0;
    ctx.node.resume_expiry();
    accept(ctx)
}

fn change_replication_id(ctx: &mut Ctx) -> Outcome {
    ctx.node.replication_id = ctx.node.rng.hex(40);
    accept(ctx)
}

fn log(ctx: &mut Ctx) -> Outcome {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(ctx.argv[2]));
    accept(ctx)
}

fn digest(ctx: &mut Ctx) -> Outcome {
    let digest = super::digest::of_node(ctx.node);
    ctx.reply.status(&digest.hex());
    Ok(())
}

fn digest_value(ctx: &mut Ctx) -> Outcome {
    let keys = &ctx.argv[2..];
    ctx.reply.array(keys.len());
    for key in keys {
        let slot = ctx.find_quietly(key);
        let entry = slot.and_then(|slot| ctx.entry(slot));
        let digest = entry.map(|entry| super::digest::of_entry(entry, ctx.version())).unwrap_or_default();
        ctx.reply.status(&digest.hex());
    }
    Ok(())
}

/// Creates strings that do not exist yet.
fn populate(ctx: &mut Ctx) -> Outcome {
    let number = |index: usize| match ctx.argv.get(index).map(|word| num::parse_i64(word)) {
        None => Ok(None),
        Some(Some(number)) if number >= 0 => Ok(Some(number as usize)),
        Some(_) => Err(error::MUST_BE_POSITIVE),
    };
    let (count, size) = (number(2)?.unwrap_or(0), number(4)?.unwrap_or(0));
    let prefix = ctx.argv.get(3).map_or(&b"key"[..], |prefix| prefix);
    for at in 0..count {
        let key = [prefix, format!(":{at}").as_bytes()].concat();
        if ctx.find_quietly(&key).is_some() {
            continue;
        }
        let mut value = format!("value:{at}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        ctx.insert(&key, Value::String(StringValue::new(&value)), None).done_without_event(1);
    }
    accept(ctx)
}

/// Checks the options. Data that was saved and loaded is as it was.
fn reload(ctx: &mut Ctx) -> Outcome {
    const OPTIONS: [&str; 3] = ["MERGE", "NOFLUSH", "NOSAVE"];
    let is_option = |word: &&[u8]| OPTIONS.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    if !ctx.argv[2..].iter().all(is_option) {
        return Err(Error::new("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
    }
    accept(ctx)
}

fn packed_threshold(ctx: &mut Ctx) -> Outcome {
    const FOUR_GB: u64 = 4 << 30;
    match parse_memory(&String::from_utf8_lossy(ctx.argv[2]), ctx.version()).filter(|bytes| *bytes < FOUR_GB)
    {
        Some(_) => accept(ctx),
        None => Err(Error::new("ERR argument must be a memory value bigger than 1 and smaller than 4gb")),
    }
}

fn reply_buffer(ctx: &mut Ctx) -> Outcome {
    let is_word = |word: &str| ctx.argv[3].eq_ignore_ascii_case(word.as_bytes());
    match ctx.argv[2].to_ascii_lowercase().as_slice() {
        b"peak-reset-time" if is_word("never") || is_word("reset") => {}
        b"peak-reset-time" => {
            ctx.int(3)?;
        }
        b"resizing" => {}
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    }
    accept(ctx)
}

/// Says that a value with this encoding was printed: it never is.
fn show_structure(ctx: &mut Ctx, encoding: &str) -> Outcome {
    let slot = ctx.find_quietly(ctx.argv[2]).ok_or(error::NO_SUCH_KEY)?;
    let is_found = ctx.entry(slot).is_some_and(|entry| entry.value.encoding() == encoding);
    if !is_found {
        return Err(format!("ERR Not a {encoding} encoded object.").into());
    }
    let name = encoding[..1].to_ascii_uppercase() + &encoding[1..];
    ctx.reply.status(&format!("{name} structure printed on stdout"));
    Ok(())
}

fn string_sizes(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[2];
    let slot = ctx.find_quietly(key).ok_or(error::NO_SUCH_KEY)?;
    let len = match ctx.entry(slot).map(|entry| (&entry.value, entry.value.encoding())) {
        Some((Value::String(value), "embstr" | "raw")) => value.len(),
        _ => return Err(Error::new("ERR Not an sds encoded string.")),
    };
    let text = match ctx.version().is_valkey() {
        true => format!(
            "key_sds_len:{} key_sds_avail:0 obj_alloc:0 val_sds_len:{len} val_sds_avail:0 val_alloc:0",
            key.len()
        ),
        false => format!(
            "key_sds_len:{}, key_sds_avail:0, key_zmalloc: 0, val_sds_len:{len}, val_sds_avail:0, val_zmalloc: 0",
            key.len()
        ),
    };
    ctx.reply.status(&text);
    Ok(())
}

fn table_stats(ctx: &mut Ctx) -> Outcome {
    check_full(ctx)?;
    let db = usize::try_from(ctx.int(2)?).ok().filter(|&db| db < ctx.node.store.dbs.len());
    let db = &ctx.node.store.dbs[db.ok_or(Error::new("ERR Out of range database"))?];
    let text = format!(
        "[Dictionary HT]\n{}[Expires HT]\n{}",
        described_table(db.len()),
        described_table(db.volatile())
    );
    ctx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

fn table_stats_of_key(ctx: &mut Ctx) -> Outcome {
    check_full(ctx)?;
    let slot = ctx.find_quietly(ctx.argv[2]).ok_or(error::NO_SUCH_KEY)?;
    let len = match ctx.entry(slot).map(|entry| (&entry.value, entry.value.encoding())) {
        Some((Value::Set(set), "hashtable")) => set.len(),
        Some((Value::Hash(hash), "hashtable")) => hash.len(),
        Some((Value::SortedSet(set), "skiplist")) => set.len(),
        _ => {
            return Err(Error::new(
                "ERR The value stored at the specified key is not represented using an hash table",
            ));
        }
    };
    ctx.reply.verbatim(b"txt", described_table(len).as_bytes());
    Ok(())
}

/// Fails if there is a fourth argument that the release does not know.
fn check_full(ctx: &Ctx) -> Outcome {
    match ctx.argv.get(3) {
        Some(_) if ctx.version() < Version::V7_2 => Err(error::subcommand_syntax(ctx.argv)),
        _ => Ok(()),
    }
}

/// Describes a hash table as one of Redis with this number of elements.
fn described_table(len: usize) -> String {
    const SMALLEST: usize = 4;
    if len == 0 {
        return String::new();
    }
    let size = len.next_power_of_two().max(SMALLEST);
    format!("Hash table 0 stats (main hash table):\n table size: {size}\n number of elements: {len}\n")
}

/// Delays the requests of all clients, the caller's included. Redis itself would stop for this time.
fn debug_sleep(ctx: &mut Ctx) -> Outcome {
    let seconds = num::parse_f64(ctx.argv[2]).unwrap_or(0.0).clamp(0.0, 1e9);
    let ms = (seconds * 1000.0) as u64;
    if ms > 0 {
        let until_ms = ctx.now().mono_ms().saturating_add(ms);
        ctx.node.block(ctx.id, Wait::Sleep, ctx.argv, Vec::new(), Some(until_ms), TimeoutReply::Ok);
        ctx.node.pause_clients(false, until_ms);
    } else {
        ctx.reply.ok();
    }
    Ok(())
}

fn debug_object(ctx: &mut Ctx) -> Outcome {
    let slot = ctx.find_quietly(ctx.argv[2]).ok_or(error::NO_SUCH_KEY)?;
    let idle_s = ctx.now().mono_s();
    let Some(entry) = ctx.entry(slot) else { return Err(error::NO_SUCH_KEY) };
    let is_fast = ctx.argv.get(3).is_some_and(|word| word.eq_ignore_ascii_case(b"fast"));
    let compress = ctx.node.config.get("rdbcompression") == Some("yes");
    let len = match is_fast {
        true => String::new(),
        false => format!(" serializedlength:{}", rdb::object_len(&entry.value, ctx.version(), compress)),
    };
    let text = format!(
        "Value at:0x{slot:012x} refcount:{} encoding:{}{len} lru:{} lru_seconds_idle:{}",
        entry.value.refcount(ctx.version()),
        entry.value.encoding(),
        entry.usage.used_at_s() & 0xff_ffff,
        idle_s.wrapping_sub(entry.usage.used_at_s()),
    );
    ctx.reply.status(&text);
    Ok(())
}

/// Replies with a sample of each type of the protocol, for tests of clients.
fn debug_protocol(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let reply = &mut *ctx.reply;
    match ctx.argv[2].to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        // The value that Redis replies with, which is not meant as π.
        #[allow(clippy::approx_constant)]
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"map" => {
            reply.map(3);
            for n in 0..3 {
                reply.int(n);
                reply.boolean(n == 1);
            }
        }
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"push" if reply.protocol == Protocol::Resp2 => {
            return Err(Error::new("ERR RESP2 is not supported by this command"));
        }
        b"push" => {
            let push = |out: &mut Reply| {
                out.push(2);
                out.bulk(b"server-cpu-usage");
                out.int(42);
            };
            let text = b"Some real reply following the push reply";
            if version < Version::V7_2 {
                push(reply);
                reply.bulk(text);
            } else {
                reply.bulk(text);
                ctx.node.push_to(ctx.id, push);
            }
        }
        b"attrib" => {
            if reply.protocol == Protocol::Resp3 {
                reply.raw(b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        _ => {
            return Err(Error::new(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}
