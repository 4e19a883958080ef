//! MIGRATE: moves keys to another server, which has to be a node of the same world.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::migration::{Migration, MovedKey, WRITE_FAILED};
use crate::node::replication::Wish;
use crate::node::session::{TimeoutReply, Wait};
use crate::num;
use crate::store::rdb;

const KEYS: &[&str] = &["keys"];
const CREDENTIALS: &[(&str, usize)] = &[("auth", 1), ("auth2", 2)];

pub const COMMANDS: &[Command] = &[Command {
    name: "migrate",
    arity: -6,
    since: "2.6.0",
    flags: WRITE | MOVABLEKEYS,
    acl: &["keyspace", "dangerous"],
    keys: &[
        key(&["RW", "access", "delete"], 3),
        KeySpec {
            flags: &["RW", "access", "delete", "incomplete"],
            notes: "",
            begin: Begin::Keyword("KEYS", -2),
            find: Find::Range { last: -1, step: 1, limit: 0 },
        },
    ],
    keys_of_calls: Some(&[
        KeySpec {
            flags: &["RW", "access", "delete"],
            notes: "",
            begin: Begin::IndexWithout { index: 3, keywords: KEYS, from: 6, skipping: CREDENTIALS },
            find: Find::Range { last: 0, step: 1, limit: 0 },
        },
        KeySpec {
            flags: &["RW", "access", "delete"],
            notes: "",
            begin: Begin::Option { keywords: KEYS, from: 6, skipping: CREDENTIALS },
            find: Find::Range { last: -1, step: 1, limit: 0 },
        },
    ]),
    tips: &["nondeterministic_output"],
    summary: "Moves keys to another server.",
    complexity: "O(N)",
    run: migrate,
    ..Command::of(Group::Generic)
}];

const CONNECTION_FAILED: Error = Error::new("IOERR error or timeout connecting to the client");

/// The options of MIGRATE.
#[derive(Default)]
struct Options<'a> {
    copies: bool,
    replaces: bool,
    /// The arguments of AUTH: a password, perhaps after the name of a user.
    credentials: &'a [&'a [u8]],
    keys: &'a [&'a [u8]],
}

impl<'a> Options<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Options<'a>, Error> {
        let mut options = Options { keys: &ctx.argv[3..4], ..Options::default() };
        let mut words = ctx.words(6);
        while !words.is_empty() {
            if words.take("COPY") {
                options.copies = true;
            } else if words.take("REPLACE") {
                options.replaces = true;
            } else if words.take_with("AUTH", 1) {
                options.credentials = &words.rest()[..1];
                words.skip(1);
            } else if words.take_with("AUTH2", 2) {
                options.credentials = &words.rest()[..2];
                words.skip(2);
            } else if words.take("KEYS") {
                if !ctx.argv[3].is_empty() {
                    return Err(Error::new(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
                    ));
                }
                options.keys = words.rest();
                break;
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(options)
    }
}

fn migrate(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx)?;
    ctx.int(5)?;
    let db = ctx.int(4)?;
    let keys: Vec<MovedKey> = options.keys.iter().filter_map(|key| moved(ctx, key)).collect();
    if keys.is_empty() {
        ctx.reply.status("NOKEY");
        return Ok(());
    }
    let target = node_at(ctx, ctx.argv[1], ctx.argv[2])?;
    if !ctx.may_wait() {
        return Err(WRITE_FAILED);
    }
    let Options { copies, replaces, credentials, .. } = options;
    let credentials = credentials.iter().map(|word| word.to_vec()).collect();
    let migration =
        Migration { client: ctx.id, from_db: ctx.db(), target, db, credentials, keys, copies, replaces };
    ctx.wait_for(Wait::Migration, &[], 0, TimeoutReply::Null);
    ctx.node.replication.wish = Some(Wish::Migrate(Box::new(migration)));
    Ok(())
}

/// Serializes a key, if it exists.
fn moved(ctx: &mut Ctx, key: &[u8]) -> Option<MovedKey> {
    let compress = ctx.node.config.get("rdbcompression") == Some("yes");
    let (version, now_ms) = (ctx.version(), ctx.now().wall_ms());
    let slot = ctx.find(key)?;
    let entry = ctx.entry(slot)?;
    let ttl_ms = entry.expires_at_ms().map_or(0, |end_ms| (end_ms - now_ms).max(1));
    Some(MovedKey { key: key.into(), ttl_ms, payload: rdb::dump(&entry.value, version, compress) })
}

/// Returns the node that listens on an address.
///
/// # Errors
/// Fails as if nobody listened there: only nodes of the same world can be reached.
fn node_at(ctx: &Ctx, host: &[u8], port: &[u8]) -> Result<usize, Error> {
    let is_address = host.eq_ignore_ascii_case(b"localhost")
        || std::str::from_utf8(host).is_ok_and(|host| host.parse::<std::net::IpAddr>().is_ok());
    if !is_address {
        return Err(CONNECTION_FAILED);
    }
    let is_local = host.eq_ignore_ascii_case(b"localhost") || host == b"127.0.0.1" || host == b"::1";
    let mut ports = ctx.node.replication.ports.iter().enumerate();
    let found = ports.find(|(_, known)| num::parse_i64(port).is_some() && known.as_bytes() == port);
    found.filter(|(node, _)| is_local && *node != ctx.node.index).map(|(node, _)| node).ok_or(WRITE_FAILED)
}
