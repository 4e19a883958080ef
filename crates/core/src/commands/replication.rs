//! REPLICAOF and FAILOVER, between the nodes of one world.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::replication::{Peer, Role, Wish};
use crate::node::sentinel::Address;
use crate::num;
use crate::version::Version;
use crate::wire::request::split_words;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "failover",
        arity: -1,
        since: "6.2.0",
        flags: ADMIN | NOSCRIPT | STALE,
        summary: "Makes a replica take over from this master.",
        run: failover,
        ..Command::of(Group::Server)
    },
    Command {
        name: "psync",
        arity: -3,
        since: "2.8.0",
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI,
        summary: "Begins or goes on with replication; refused.",
        run: psync,
        ..Command::of(Group::Server)
    },
    Command {
        name: "replconf",
        arity: -1,
        since: "3.0.0",
        flags: ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY,
        summary: "Tells a master about its replica.",
        run: replconf,
        ..Command::of(Group::Server)
    },
    Command {
        name: "sync",
        arity: 1,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI,
        summary: "Begins replication; refused.",
        run: sync,
        ..Command::of(Group::Server)
    },
    Command {
        name: "replicaof",
        arity: 3,
        since: "5.0.0",
        flags: ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING,
        summary: "Makes the node a replica of another, or a master.",
        run: replicaof,
        ..Command::of(Group::Server)
    },
    Command {
        name: "slaveof",
        arity: 3,
        since: "1.0.0",
        flags: ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING,
        summary: "Makes the node a replica of another, or a master.",
        run: replicaof,
        ..Command::of(Group::Server)
    },
];

fn replicaof(ctx: &mut Ctx) -> Outcome {
    ctx.refuse_in_cluster("REPLICAOF not allowed in cluster mode.")?;
    let (host, port) = (ctx.argv[1], ctx.argv[2]);
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        ctx.node.replication.wish = Some(Wish::Lead);
        ctx.reply.ok();
        return Ok(());
    }
    let number = num::parse_i64(port).and_then(|port| u16::try_from(port).ok());
    let number = number.ok_or(Error::new("ERR Invalid master port"))?;
    let replication = &mut ctx.node.replication;
    let (is_known, wish) = match replication.node_at(host, port, ctx.node.index) {
        Some(master) => (replication.role == Role::Replica { of: master }, Wish::Follow { master }),
        // There is nothing else to replicate from: the link stays down.
        None => {
            let master = Address { host: String::from_utf8_lossy(host).into_owned(), port: number };
            let Peer { host, port, .. } = &replication.master;
            let is_same = *host == master.host && *port == master.port.to_string();
            (replication.role == Role::Stray && is_same, Wish::Stray { master })
        }
    };
    if is_known {
        ctx.reply.status("OK Already connected to specified master");
        return Ok(());
    }
    replication.wish = Some(wish);
    ctx.reply.ok();
    Ok(())
}

/// The options of FAILOVER.
#[derive(Default)]
struct Options<'a> {
    target: Option<(&'a [u8], &'a [u8])>,
    has_timeout: bool,
    forces: bool,
    aborts: bool,
}

impl<'a> Options<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        let mut words = ctx.words(1);
        while !words.is_empty() {
            if !options.has_timeout && words.take_with("TIMEOUT", 1) {
                if words.int()? <= 0 {
                    return Err(Error::new("ERR FAILOVER timeout must be greater than 0"));
                }
                options.has_timeout = true;
            } else if ctx.argv.len() == 2 && words.take("ABORT") {
                options.aborts = true;
            } else if options.target.is_none() && words.take_with("TO", 2) {
                let host = words.word()?;
                let port = words.word()?;
                num::parse_i64(port).ok_or(error::NOT_AN_INTEGER)?;
                options.target = Some((host, port));
            } else if !options.forces && words.take("FORCE") {
                options.forces = true;
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// Hands the role over at once. The writes that a lagging link holds back arrive first, as Redis waits for them.
fn failover(ctx: &mut Ctx) -> Outcome {
    ctx.refuse_in_cluster("FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.")?;
    let options = Options::parse(ctx)?;
    if options.aborts {
        return Err(Error::new("ERR No failover in progress."));
    }
    let replicas = &ctx.node.replication.replicas;
    if ctx.node.replication.role != Role::Master {
        return Err(Error::new("ERR FAILOVER is not valid when server is a replica."));
    }
    if replicas.is_empty() {
        return Err(Error::new("ERR FAILOVER requires connected replicas."));
    }
    if options.forces && (options.target.is_none() || !options.has_timeout) {
        return Err(Error::new(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        ));
    }
    let heir = match options.target {
        Some((_, port)) => replicas.iter().find(|replica| replica.port.as_bytes() == port),
        None => replicas.iter().filter(|replica| replica.online).max_by_key(|replica| replica.offset),
    };
    let heir = heir.ok_or(Error::new("ERR FAILOVER target HOST and PORT is not a replica."))?;
    if !heir.online {
        return Err(Error::new("ERR FAILOVER target replica is not online."));
    }
    ctx.node.replication.wish = Some(Wish::HandOver { heir: heir.node });
    ctx.reply.ok();
    Ok(())
}

/// Refuses a replica: the nodes of a world replicate between themselves, without connections.
fn sync(_: &mut Ctx) -> Outcome {
    Err(Error::new("ERR Redlatch replicates between its own nodes alone"))
}

fn psync(ctx: &mut Ctx) -> Outcome {
    ctx.int(2)?;
    sync(ctx)
}

/// Checks what a replica says about itself. Acknowledgements of a client that is no replica get no reply.
fn replconf(ctx: &mut Ctx) -> Outcome {
    let (pairs, rest) = ctx.argv[1..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(error::SYNTAX);
    }
    let version = ctx.version();
    let has_channels = version.has("8.0.0", "8.0.0");
    for [option, value] in pairs {
        let integer = || num::parse_i64(value).ok_or(error::NOT_AN_INTEGER);
        let flag = || match integer()? {
            0 | 1 => Ok(()),
            _ => Err(error::out_of_range(0, 1)),
        };
        match option.to_ascii_lowercase().as_slice() {
            b"listening-port" => {
                integer()?;
            }
            b"ip-address" | b"capa" => {}
            b"ack" | b"fack" | b"getack" => return Ok(()),
            b"rdb-only" => flag()?,
            b"rdb-filter-only" => check_filter(value)?,
            b"rdb-channel" if has_channels => flag()?,
            b"main-ch-client-id" if has_channels && !version.is_valkey() => {
                return Err(format!("ERR Unrecognized RDB client id: {}", integer()?).into());
            }
            b"set-rdb-client-id" if has_channels && version.is_valkey() => {
                return Err(format!("ERR Unrecognized RDB client id {}", integer()?).into());
            }
            b"set-cluster-node-id" if version.is_valkey_since(Version::Valkey9_0) => {
                return Err(Error::new("ERR This instance has cluster support disabled"));
            }
            b"version" if version.is_valkey() => check_release(value)?,
            _ => {
                return Err(Error::repeating("ERR Unrecognized REPLCONF option: ", option));
            }
        }
    }
    ctx.reply.ok();
    Ok(())
}

/// Checks which parts of a snapshot a replica wants.
fn check_filter(value: &[u8]) -> Outcome {
    let parts = split_words(value).ok_or(Error::new("ERR Missing rdb-filter-only values"))?;
    match parts.iter().find(|part| !part.eq_ignore_ascii_case(b"functions")) {
        Some(part) => Err(Error::repeating("ERR Unsupported rdb-filter-only option: ", part)),
        None => Ok(()),
    }
}

/// Checks that a text is a release of three numbers.
fn check_release(value: &[u8]) -> Outcome {
    let is_number = |part: &[u8]| num::parse_i64(part).is_some_and(|number| number >= 0);
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'.').collect();
    match parts.len() == 3 && parts.into_iter().all(is_number) {
        true => Ok(()),
        false => Err(Error::repeating("ERR Unrecognized version format: ", value)),
    }
}
