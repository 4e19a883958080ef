//! DUMP and RESTORE.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::notify::Class;
use crate::num;
use crate::store::Now;
use crate::store::rdb::{self, Refusal};
use crate::store::usage::Usage;
use crate::version::Version;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "dump",
        arity: 2,
        since: "2.6.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        tips: &["nondeterministic_output"],
        summary: "Gives a serialized form of a value.",
        complexity: "O(1)",
        run: dump,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "restore",
        arity: -4,
        since: "2.6.0",
        flags: WRITE | DENYOOM,
        acl: &["keyspace", "dangerous"],
        keys: &[key(&["OW", "update"], 1)],
        summary: "Creates a key from a serialized value.",
        complexity: "O(1)",
        run: restore,
        ..Command::of(Group::Generic)
    },
    Command {
        name: "restore-asking",
        arity: -4,
        since: "3.0.0",
        flags: WRITE | DENYOOM | ASKING,
        acl: &["keyspace", "dangerous"],
        keys: &[key(&["OW", "update"], 1)],
        summary: "RESTORE as the nodes of a cluster send it to each other.",
        complexity: "O(1)",
        run: restore,
        ..Command::of(Group::Server)
    },
];

const BUSY_KEY: Error = Error::new("BUSYKEY Target key name already exists.");

fn dump(ctx: &mut Ctx) -> Outcome {
    let compress = ctx.node.config.get("rdbcompression") == Some("yes");
    let version = ctx.version();
    match ctx.find(ctx.argv[1]).and_then(|slot| ctx.entry(slot)) {
        Some(entry) => {
            let payload = rdb::dump(&entry.value, version, compress);
            ctx.reply.bulk(&payload);
        }
        None => ctx.reply.null(),
    }
    Ok(())
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    /// Whether the time to live is a Unix time in ms.
    absolute: bool,
    idle_s: Option<i64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(ctx: &Ctx) -> Result<Options, Error> {
        let mut options = Options::default();
        let mut words = ctx.words(4);
        while !words.is_empty() {
            if words.take("REPLACE") {
                options.replace = true;
            } else if words.take("ABSTTL") {
                options.absolute = true;
            } else if options.frequency.is_none() && words.take_with("IDLETIME", 1) {
                let idle_s = num::parse_i64(words.word()?).ok_or(error::NOT_AN_INTEGER)?;
                if idle_s < 0 {
                    return Err(Error::new("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.idle_s = Some(idle_s);
            } else if options.idle_s.is_none() && words.take_with("FREQ", 1) {
                let frequency = num::parse_i64(words.word()?).ok_or(error::NOT_AN_INTEGER)?;
                let frequency = u8::try_from(frequency)
                    .map_err(|_| Error::new("ERR Invalid FREQ value, must be >= 0 and <= 255"))?;
                options.frequency = Some(frequency);
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(options)
    }
}

fn restore(ctx: &mut Ctx) -> Outcome {
    let (key, payload) = (ctx.argv[1], ctx.argv[3]);
    let options = Options::parse(ctx)?;
    if !options.replace && ctx.exists(key) {
        return Err(BUSY_KEY);
    }
    let ttl_ms = ctx.int(2)?;
    if ttl_ms < 0 {
        return Err(Error::new("ERR Invalid TTL value, must be >= 0"));
    }
    let value = rdb::restore(payload, &ctx.node.store.limits).map_err(refused)?;
    let now_ms = ctx.now().wall_ms();
    let expires_at_ms = match ttl_ms {
        0 => None,
        _ if options.absolute => Some(ttl_ms),
        _ => Some(ttl_ms.wrapping_add(now_ms)),
    };
    let old_type =
        ctx.find_quietly(key).and_then(|slot| ctx.entry(slot)).map(|entry| entry.value.type_name());
    let deleted = options.replace && ctx.discard(key);
    if expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms) {
        if deleted {
            ctx.announce(key, Class::GENERIC, "del");
        }
        ctx.reply.ok();
        return Ok(());
    }
    let now = ctx.now();
    let version = ctx.version();
    let counts_uses = ctx.node.store.limits.counts_uses;
    let mut edit = ctx.insert(key, value, expires_at_ms);
    let now_s = now.mono_s();
    match (options.frequency, options.idle_s) {
        (Some(frequency), _) if counts_uses => edit.set_usage(Usage::counted(frequency, now_s)),
        (_, Some(idle_s)) if !counts_uses => {
            edit.set_usage(Usage::at(now_s.wrapping_sub(idle_on_the_clock(idle_s, now, version))));
        }
        _ => {}
    }
    edit.done("restore", 1);
    if let Some((old_type, slot)) = old_type.zip(ctx.find_quietly(key)) {
        ctx.notify_overwritten(key, slot, old_type);
    }
    ctx.reply.ok();
    Ok(())
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::VersionOrChecksum => Error::new("ERR DUMP payload version or checksum are wrong"),
        Refusal::BadFormat => Error::new("ERR Bad data format"),
    }
}

/// Returns the idle time in seconds as Redis's LRU clock of 24 bits keeps it.
fn idle_on_the_clock(idle_s: i64, now: Now, version: Version) -> u32 {
    const CLOCK_MAX: i64 = (1 << 24) - 1;
    if version.is_valkey_since(Version::Valkey9_0) {
        return (idle_s & CLOCK_MAX) as u32;
    }
    let clock_s = (now.wall_ms() / 1000) & CLOCK_MAX;
    // Redis converts it to ms and back, which may overflow.
    let used_at_s = clock_s - idle_s.wrapping_mul(1000) / 1000;
    let used_at_s = if used_at_s < 0 { used_at_s + CLOCK_MAX } else { used_at_s } & CLOCK_MAX;
    let lap_s = if used_at_s > clock_s { CLOCK_MAX } else { 0 };
    (clock_s + lap_s - used_at_s) as u32
}
