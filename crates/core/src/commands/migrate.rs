//! MIGRATE: moves keys to another server: a node of the same world, or one that the driver reaches.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::errands::Task;
use crate::node::migration::{Migration, MovedKey, Target, WRITE_FAILED};
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
    let timeout_ms = ctx.int(5)?;
    let db = ctx.int(4)?;
    let keys: Vec<MovedKey> = options.keys.iter().filter_map(|key| moved(ctx, key)).collect();
    if keys.is_empty() {
        ctx.reply.status("NOKEY");
        return Ok(());
    }
    let target = target(ctx, timeout_ms)?;
    if !ctx.may_wait() {
        return Err(WRITE_FAILED);
    }
    let Options { copies, replaces, credentials, .. } = options;
    let credentials = credentials.iter().map(|word| word.to_vec()).collect();
    // A slot that a node imports takes keys only from whoever follows a redirection.
    let restore = if ctx.node.cluster.is_some() { "RESTORE-ASKING" } else { "RESTORE" };
    let is_outside = matches!(target, Target::Outside { .. });
    let (client, from_db) = (ctx.id, ctx.db());
    let migration =
        Box::new(Migration { client, from_db, target, db, credentials, keys, copies, replaces, restore });
    if is_outside {
        ctx.answer_after(Some(Task::Migrate(migration)));
    } else {
        ctx.wait_for(Wait::Migration, &[], 0, TimeoutReply::Null);
        ctx.node.replication.wish = Some(Wish::Migrate(migration));
    }
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

/// How long each step may take if the client gives no time.
const DEFAULT_TIMEOUT_MS: u64 = 1000;

/// Returns whom the request names: the node that listens there, or a server outside.
///
/// # Errors
/// Fails as if nobody listened there if it is outside and there is no driver, or if it is the node itself.
fn target(ctx: &Ctx, timeout_ms: i64) -> Result<Target, Error> {
    let (host, port) = (ctx.argv[1], ctx.argv[2]);
    let is_local = host.eq_ignore_ascii_case(b"localhost") || host == b"127.0.0.1" || host == b"::1";
    let mut ports = ctx.node.replication.ports.iter().enumerate();
    let node = ports.find(|(_, known)| num::parse_i64(port).is_some() && known.as_bytes() == port);
    match node.filter(|_| is_local) {
        Some((node, _)) if node == ctx.node.index => Err(WRITE_FAILED),
        Some((node, _)) => Ok(Target::Node(node)),
        None if ctx.node.config.has_driver => {
            let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
            let timeout_ms =
                u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).unwrap_or(DEFAULT_TIMEOUT_MS);
            Ok(Target::Outside { host: text(host), port: text(port), timeout_ms })
        }
        None => Err(unreachable(host)),
    }
}

/// Returns the error for a server that nobody can reach.
fn unreachable(host: &[u8]) -> Error {
    let is_address = host.eq_ignore_ascii_case(b"localhost")
        || std::str::from_utf8(host).is_ok_and(|host| host.parse::<std::net::IpAddr>().is_ok());
    if is_address { WRITE_FAILED } else { CONNECTION_FAILED }
}
