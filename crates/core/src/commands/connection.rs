//! The connection: AUTH, HELLO, PING, SELECT, RESET and similar commands. CLIENT has its own file.

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{self, Error, Outcome};
use crate::node::Node;
use crate::node::replication::Role;
use crate::node::session::{ReplyMode, SessionId};
use crate::num;
use crate::version::Version;
use crate::wire::Protocol;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "auth",
        arity: -2,
        since: "1.0.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        summary: "Authenticates the connection.",
        complexity: "O(N)",
        run: auth,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "echo",
        arity: 2,
        since: "1.0.0",
        flags: LOADING | STALE | FAST,
        summary: "Gives back its argument.",
        complexity: "O(1)",
        run: echo,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "hello",
        arity: -1,
        since: "6.0.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        summary: "Chooses the protocol, authenticates and names the connection.",
        complexity: "O(1)",
        run: hello,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "ping",
        arity: -1,
        since: "1.0.0",
        flags: FAST,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        summary: "Answers, to show that the server lives.",
        complexity: "O(1)",
        run: ping,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "quit",
        arity: -1,
        since: "1.0.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        summary: "Closes the connection.",
        complexity: "O(1)",
        run: quit,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "reset",
        arity: 1,
        since: "6.2.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        summary: "Puts the connection back to how it began.",
        complexity: "O(1)",
        run: reset,
        ..Command::of(Group::Connection)
    },
    Command {
        name: "select",
        arity: 2,
        since: "1.0.0",
        flags: LOADING | STALE | FAST,
        summary: "Chooses the database.",
        complexity: "O(1)",
        changes: ALLOW_BUSY_IN_VALKEY,
        run: select,
        ..Command::of(Group::Connection)
    },
];

const ALLOW_BUSY_IN_VALKEY: &[Change] =
    &[Change { since: (NEVER, "9.0.0"), apply: |row| row.flags |= ALLOW_BUSY }];

const WRONG_PASSWORD: Error = Error::new("WRONGPASS invalid username-password pair or user is disabled.");

fn auth(ctx: &mut Ctx) -> Outcome {
    if ctx.argv.len() > 3 {
        return Err(error::SYNTAX);
    }
    let no_password_set = ctx.node.acl.default_user().has_no_password();
    let (user, password): (&[u8], &[u8]) = match ctx.argv {
        [_, password] => {
            if no_password_set {
                return Err(Error::new(
                    "ERR AUTH <password> called without any password configured for the default user. \
                     Are you sure your configuration is correct?",
                ));
            }
            (b"default", password)
        }
        words => (words[1], words[2]),
    };
    if authenticate(ctx, user, password)? {
        ctx.reply.ok();
    }
    Ok(())
}

/// Authenticates a client. Returns false if the refusal gets no reply: since 7.2, Redis (but not Valkey) is silent when part
/// of a reply, that of EXEC, is already written.
fn authenticate(ctx: &mut Ctx, user: &[u8], password: &[u8]) -> Result<bool, Error> {
    if !ctx.node.authenticate(ctx.id, user, password, ctx.argv[0]) {
        let version = ctx.version();
        let is_silent = ctx.origin == Origin::Exec && version >= Version::V7_2 && !version.is_valkey();
        return if is_silent { Ok(false) } else { Err(WRONG_PASSWORD) };
    }
    Ok(true)
}

fn hello(ctx: &mut Ctx) -> Outcome {
    let mut words = ctx.words(1);
    let mut protocol = None;
    if let Some(version) = words.pop() {
        protocol = Some(match num::parse_i64(version) {
            None => return Err(Error::new("ERR Protocol version is not an integer or out of range")),
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Error::new("NOPROTO unsupported protocol version")),
        });
    }
    // Before 7.2, each option took effect before the next one was read.
    let at_once = ctx.version() < Version::V7_2;
    let mut credentials = None;
    let mut name = None;
    while !words.is_empty() {
        if words.take_with("AUTH", 2) {
            let (user, password) = (words.word()?, words.word()?);
            if at_once {
                authenticate(ctx, user, password)?;
            }
            credentials = Some((user, password));
        } else if words.take_with("SETNAME", 1) {
            let text = words.word()?;
            check_name(text, ctx.version())?;
            if at_once {
                ctx.session().name = text.to_vec();
            }
            name = Some(text);
        } else {
            let option = words.word()?;
            let mut text = b"ERR Syntax error in HELLO option '".to_vec();
            text.extend_from_slice(error::c_text(option));
            text.push(b'\'');
            return Err(Error::owned(text));
        }
    }
    if let Some((user, password)) = credentials
        && !authenticate(ctx, user, password)?
    {
        return Ok(());
    }
    if ctx.node.must_authenticate(&ctx.node.sessions[ctx.id]) {
        let protocol = if ctx.version() >= Version::V7_2 { "<proto> " } else { "" };
        return Err(Error::owned(format!(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO {protocol}AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time"
        )));
    }
    if let Some(name) = name {
        ctx.session().name = name.to_vec();
    }
    if let Some(protocol) = protocol {
        ctx.reply.protocol = protocol;
    }
    let id = ctx.id.number as i64;
    let version = ctx.version();
    let mode = ctx.node.mode();
    let role = if ctx.node.replication.role == Role::Master { "master" } else { "replica" };
    let reply = &mut *ctx.reply;
    let is_sentinel = ctx.node.sentinel.is_some();
    reply.map(if is_sentinel { 6 } else { 7 });
    reply.bulk(b"server");
    reply.bulk(version.product().as_bytes());
    reply.bulk(b"version");
    reply.bulk(version.full().as_bytes());
    reply.bulk(b"proto");
    reply.int(if reply.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.int(id);
    reply.bulk(b"mode");
    reply.bulk(mode.as_bytes());
    if !is_sentinel {
        reply.bulk(b"role");
        reply.bulk(role.as_bytes());
    }
    reply.bulk(b"modules");
    super::modules::list(reply, version);
    Ok(())
}

/// Checks a client's name: it may contain neither blanks nor control characters. Since 7.2, Redis ignores everything
/// after a NUL.
pub(super) fn check_name(name: &[u8], version: Version) -> Outcome {
    let looked_at = if version >= Version::V7_2 { error::c_text(name) } else { name };
    if looked_at.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        Ok(())
    } else {
        Err(Error::new("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}

fn ping(ctx: &mut Ctx) -> Outcome {
    if ctx.argv.len() > 2 {
        return Err(error::wrong_arity("ping"));
    }
    let text = ctx.argv.get(1).copied();
    // A script has no subscriptions, whatever its caller has.
    let in_subscribed_mode = ctx.reply.protocol == Protocol::Resp2
        && ctx.origin != Origin::Script
        && ctx.session().is_subscriber();
    if in_subscribed_mode {
        ctx.reply.array(2);
        ctx.reply.bulk(b"pong");
        ctx.reply.bulk(text.unwrap_or_default());
    } else if let Some(text) = text {
        ctx.reply.bulk(text);
    } else {
        ctx.reply.status("PONG");
    }
    Ok(())
}

fn echo(ctx: &mut Ctx) -> Outcome {
    ctx.reply.bulk(ctx.argv[1]);
    Ok(())
}

fn select(ctx: &mut Ctx) -> Outcome {
    let db = ctx.db_index(1)?;
    if db != 0 {
        ctx.refuse_in_cluster("SELECT is not allowed in cluster mode")?;
    }
    ctx.session().db = db;
    ctx.reply.ok();
    Ok(())
}

fn quit(ctx: &mut Ctx) -> Outcome {
    ctx.reply.ok();
    ctx.node.end_session(ctx.id);
    Ok(())
}

fn reset(ctx: &mut Ctx) -> Outcome {
    ctx.node.reset_session(ctx.id);
    ctx.reply.protocol = Protocol::Resp2;
    ctx.reply.status("RESET");
    Ok(())
}

impl Node {
    /// Resets a session to the state in which it connected.
    fn reset_session(&mut self, id: SessionId) {
        self.drop_subscriptions(id);
        self.disable_tracking(id);
        self.unwatch(id);
        self.monitors.retain(|&monitor| monitor != id);
        self.set_default_user(id);
        let session = &mut self.sessions[id];
        session.multi = None;
        session.monitor = false;
        session.db = 0;
        session.name.clear();
        session.reply_mode = ReplyMode::On;
        session.no_evict = false;
        session.no_touch = false;
        session.can_redirect = false;
        (session.asks, session.reads_replicas) = (false, false);
    }
}
