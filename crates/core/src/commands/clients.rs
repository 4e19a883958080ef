//! CLIENT: what the server knows about its clients, and how it treats them.

use super::command::*;
use super::connection::check_name;
use super::ctx::Ctx;
use super::tracking;
use crate::error::{self, Error, Outcome};
use crate::node::Node;
use crate::node::session::{ReplyMode, Session, SessionId};
use crate::node::tracking::TrackingMode;
use crate::num;
use crate::version::Version;
use crate::wire::Protocol;

pub const COMMANDS: &[Command] = &[Command {
    name: "client",
    arity: -2,
    since: "2.4.0",
    acl: &[],
    summary: "Tells about connections and sets how they behave.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "client|kill",
            arity: -3,
            since: "2.4.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Closes connections.",
            complexity: "O(N)",
            run: client_kill,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|reply",
            arity: 3,
            since: "3.2.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Turns replies on or off.",
            complexity: "O(1)",
            changes: REPLY_IN_VALKEY,
            run: client_reply,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|pause",
            arity: -3,
            since: "2.9.50",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Holds back the commands of clients.",
            complexity: "O(1)",
            changes: &[Change { since: ("7.2.0", ""), apply: |row| row.since = "3.0.0" }],
            run: client_pause,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|caching",
            arity: 3,
            since: "6.0.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Says whether the next request's keys are tracked.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: tracking::client_caching,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|getredir",
            arity: 2,
            since: "6.0.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Returns the client to which tracking messages are redirected.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: tracking::client_getredir,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|tracking",
            arity: -3,
            since: "6.0.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Turns messages about changed keys on or off.",
            complexity: "O(1). Some options may introduce additional complexity.",
            run: tracking::client_tracking,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|trackinginfo",
            arity: 2,
            since: "6.2.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Describes the connection's tracking.",
            complexity: "O(1)",
            run: tracking::client_trackinginfo,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|info",
            arity: 2,
            since: "6.2.0",
            flags: NOSCRIPT | LOADING | STALE,
            tips: &["nondeterministic_output"],
            summary: "Describes the connection.",
            complexity: "O(1)",
            run: client_info,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|help",
            arity: 2,
            since: "5.0.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|no-touch",
            arity: 3,
            since: "7.2.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Says whether commands mark keys as used.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_no_touch,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|setname",
            arity: 3,
            since: "2.6.9",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Names the connection.",
            complexity: "O(1)",
            changes: &[
                Change {
                    since: ("7.2.0", ""),
                    apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
                },
                Change { since: (NEVER, "9.0.0"), apply: |row| row.flags |= ALLOW_BUSY },
            ],
            run: client_setname,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|no-evict",
            arity: 3,
            since: "7.0.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Protects the connection from eviction.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_no_evict,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|setinfo",
            arity: 4,
            since: "7.2.0",
            flags: NOSCRIPT | LOADING | STALE,
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            summary: "Tells the server about the client library.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_setinfo,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|id",
            arity: 2,
            since: "5.0.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Gives the number of the connection.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_id,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|getname",
            arity: 2,
            since: "2.6.9",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Gives the name of the connection.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_getname,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|unblock",
            arity: -3,
            since: "5.0.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Wakes a connection that waits.",
            complexity: "O(log N)",
            run: client_unblock,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|capa",
            arity: -3,
            since: NEVER,
            since_valkey: "8.0.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Tells the server what the client can do.",
            complexity: "O(1)",
            changes: ALLOW_BUSY_IN_VALKEY,
            run: client_capa,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|import-source",
            arity: 3,
            since: NEVER,
            since_valkey: "8.1.0",
            flags: NOSCRIPT | LOADING | STALE,
            summary: "Marks the client as the source of an import.",
            complexity: "O(1)",
            run: client_import_source,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|unpause",
            arity: 2,
            since: "6.2.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            summary: "Lets held commands run.",
            complexity: "O(N)",
            run: client_unpause,
            ..Command::of(Group::Connection)
        },
        Command {
            name: "client|list",
            arity: -2,
            since: "2.4.0",
            flags: ADMIN | NOSCRIPT | LOADING | STALE,
            tips: &["nondeterministic_output"],
            summary: "Describes all connections.",
            complexity: "O(N)",
            run: client_list,
            ..Command::of(Group::Connection)
        },
    ],
    ..Command::of(Group::Connection)
}];

const REPLY_IN_VALKEY: &[Change] =
    &[Change { since: (NEVER, "9.0.0"), apply: |row| row.flags |= ALLOW_BUSY | NO_MULTI }];

const ALLOW_BUSY_IN_VALKEY: &[Change] =
    &[Change { since: (NEVER, "9.0.0"), apply: |row| row.flags |= ALLOW_BUSY }];

fn client_id(ctx: &mut Ctx) -> Outcome {
    ctx.reply.int(ctx.id.number as i64);
    Ok(())
}

fn client_getname(ctx: &mut Ctx) -> Outcome {
    let name = ctx.session().name.clone();
    ctx.reply.bulk_or_null((!name.is_empty()).then_some(&name));
    Ok(())
}

fn client_setname(ctx: &mut Ctx) -> Outcome {
    check_name(ctx.argv[2], ctx.version())?;
    ctx.session().name = ctx.argv[2].to_vec();
    ctx.reply.ok();
    Ok(())
}

fn client_setinfo(ctx: &mut Ctx) -> Outcome {
    let (attribute, value) = (ctx.argv[2], ctx.argv[3]);
    let session = ctx.session();
    let field = match lower(attribute).as_slice() {
        b"lib-name" => &mut session.lib_name,
        b"lib-ver" => &mut session.lib_ver,
        _ => {
            return Err(Error::owned(
                [b"ERR Unrecognized option '", error::c_text(attribute), b"'"].concat(),
            ));
        }
    };
    if !error::c_text(value).iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        let why: &[u8] = b" cannot contain spaces, newlines or special characters.";
        return Err(Error::owned([b"ERR ", attribute, why].concat()));
    }
    *field = value.to_vec();
    ctx.reply.ok();
    Ok(())
}

fn client_info(ctx: &mut Ctx) -> Outcome {
    let id = ctx.id;
    let line = ctx.node.sessions.get(id).map(|session| ctx.node.describe(session)).unwrap_or_default();
    ctx.reply.verbatim(b"txt", format!("{line}\n").as_bytes());
    Ok(())
}

fn client_list(ctx: &mut Ctx) -> Outcome {
    let mut words = ctx.words(2);
    let mut kind = None;
    let mut ids = None;
    if words.take_with("TYPE", 1) {
        let name = words.word()?;
        if !words.is_empty() && !ctx.version().is_valkey() {
            return Err(error::SYNTAX);
        }
        kind = Some(client_type(name)?);
    } else if words.take_with("ID", 1) {
        let mut list = Vec::new();
        while let Some(word) = words.pop() {
            list.push(listed_id(word, ctx.version())?);
        }
        ids = Some(list);
    }
    if !words.is_empty() {
        return Err(error::SYNTAX);
    }
    let text: String = (ctx.node.sessions.iter())
        .filter(|session| !session.killed && kind.is_none_or(|kind| kind == type_of(session)))
        .filter(|session| ids.as_ref().is_none_or(|ids| ids.contains(&session.id.number)))
        .map(|session| ctx.node.describe(session) + "\n")
        .collect();
    ctx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// Parses an id of CLIENT LIST. One that no client can have is an error of Valkey's alone.
fn listed_id(word: &[u8], version: Version) -> Result<u64, Error> {
    let id = num::parse_i64(word);
    match id {
        Some(id @ 1..) => Ok(id as u64),
        Some(_) if version.is_valkey() => Err(Error::new("ERR client-id should be greater than 0")),
        None if version.is_valkey() => Err(error::SYNTAX),
        Some(_) => Ok(0),
        None => Err(Error::new("ERR Invalid client ID")),
    }
}

/// The classes of clients in CLIENT LIST and CLIENT KILL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientType {
    Normal,
    Replica,
    PubSub,
    Master,
}

fn client_type(word: &[u8]) -> Result<ClientType, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"replica" | b"slave" => Ok(ClientType::Replica),
        b"pubsub" => Ok(ClientType::PubSub),
        b"master" => Ok(ClientType::Master),
        _ => {
            let mut text = b"ERR Unknown client type '".to_vec();
            text.extend_from_slice(word);
            text.push(b'\'');
            Err(Error::owned(text))
        }
    }
}

fn type_of(session: &Session) -> ClientType {
    if session.is_subscriber() { ClientType::PubSub } else { ClientType::Normal }
}

impl Node {
    /// Returns the line of CLIENT LIST for one client. The buffer sizes are those of an idle connection.
    pub(crate) fn describe(&self, session: &Session) -> String {
        let now_us = self.store.now.mono_us;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let queued = session.multi.as_ref().map_or(-1, |multi| multi.commands.len() as i64);
        let queued_bytes: usize =
            session.multi.iter().flat_map(|multi| &multi.commands).map(|queued| queued.size()).sum();
        let version = self.config.version;
        let mut line = format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={}{} db={} sub={} psub={} ssub={} multi={queued}",
            session.id.number,
            session.addr,
            session.laddr,
            session.fd,
            text(&session.name),
            (now_us - session.created_us) / 1_000_000,
            (now_us - session.active_us) / 1_000_000,
            flags_of(session),
            match version.is_valkey() {
                true if session.can_redirect => " capa=r",
                true => " capa=",
                false => "",
            },
            session.db,
            session.channels.len(),
            session.patterns.len(),
            session.shards.len(),
        );
        if version > Version::V7_2 {
            line += &format!(" watch={}", session.watched.len());
        }
        line += &format!(
            " qbuf=0 qbuf-free=0 argv-mem=0 multi-mem={queued_bytes} rbs=1024 rbp=0 obl={} oll=0 omem=0 tot-mem={} events=r cmd={} user={} redir={} resp={}",
            session.output.held_len(),
            1024 + queued_bytes + session.output.held_len(),
            session.last_command,
            text(session.user.name()),
            session.tracking.as_ref().map_or(-1, |tracking| tracking.redirect as i64),
            if session.protocol() == Protocol::Resp3 { 3 } else { 2 },
        );
        if version >= Version::V7_2 {
            line += &format!(" lib-name={} lib-ver={}", text(&session.lib_name), text(&session.lib_ver));
        }
        if version >= Version::V8_0 {
            line += " io-thread=0";
        }
        line
    }
}

fn flags_of(session: &Session) -> String {
    let flags = [
        (session.monitor, 'O'),
        (session.is_subscriber(), 'P'),
        (session.multi.is_some(), 'x'),
        (session.reads_replicas, 'r'),
        (session.blocked.is_some(), 'b'),
        (session.watch_broken, 'd'),
        (session.closing, 'c'),
        (session.tracking.is_some(), 't'),
        (session.tracking.as_ref().is_some_and(|tracking| tracking.is_redirect_broken), 'R'),
        (session.tracking.as_ref().is_some_and(|t| t.mode == TrackingMode::Broadcast), 'B'),
        (session.no_evict, 'e'),
        (session.no_touch, 'T'),
    ];
    let text: String = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
    if text.is_empty() { "N".to_owned() } else { text }
}

fn client_reply(ctx: &mut Ctx) -> Outcome {
    let mode = lower(ctx.argv[2]);
    let session = ctx.session();
    match mode.as_slice() {
        b"on" => {
            session.reply_mode = ReplyMode::On;
            ctx.reply.ok();
        }
        b"off" => session.reply_mode = ReplyMode::Off,
        b"skip" if session.reply_mode != ReplyMode::Off => session.reply_mode = ReplyMode::SkipNext,
        b"skip" => {}
        _ => return Err(error::SYNTAX),
    }
    Ok(())
}

fn lower(word: &[u8]) -> Vec<u8> {
    word.to_ascii_lowercase()
}

fn client_no_evict(ctx: &mut Ctx) -> Outcome {
    let on = on_or_off(ctx.argv[2])?;
    ctx.session().no_evict = on;
    ctx.reply.ok();
    Ok(())
}

fn client_no_touch(ctx: &mut Ctx) -> Outcome {
    let on = on_or_off(ctx.argv[2])?;
    ctx.session().no_touch = on;
    ctx.reply.ok();
    Ok(())
}

/// Notes the one capability that there is; others are ignored.
fn client_capa(ctx: &mut Ctx) -> Outcome {
    if ctx.argv[2..].iter().any(|word| word.eq_ignore_ascii_case(b"redirect")) {
        ctx.session().can_redirect = true;
    }
    ctx.reply.ok();
    Ok(())
}

/// Refuses: there is no import mode.
fn client_import_source(ctx: &mut Ctx) -> Outcome {
    if ctx.node.config.get("import-mode") != Some("yes") && lower(ctx.argv[2]) != b"off" {
        return Err(Error::new("ERR Server is not in import mode"));
    }
    on_or_off(ctx.argv[2])?;
    ctx.reply.ok();
    Ok(())
}

fn on_or_off(word: &[u8]) -> Result<bool, Error> {
    match lower(word).as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(error::SYNTAX),
    }
}

fn client_pause(ctx: &mut Ctx) -> Outcome {
    let writes_only = match ctx.argv.get(3) {
        None => false,
        Some(mode) if mode.eq_ignore_ascii_case(b"WRITE") => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"ALL") => false,
        Some(_) => return Err(Error::new("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms = num::parse_i64(ctx.argv[2])
        .ok_or(Error::new("ERR timeout is not an integer or out of range"))
        .and_then(|ms| u64::try_from(ms).map_err(|_| Error::new("ERR timeout is negative")))?;
    let until_ms = ctx.now().mono_ms().saturating_add(timeout_ms);
    ctx.node.pause_clients(writes_only, until_ms);
    ctx.reply.ok();
    Ok(())
}

fn client_unpause(ctx: &mut Ctx) -> Outcome {
    ctx.node.end_pause();
    ctx.reply.ok();
    Ok(())
}

fn client_unblock(ctx: &mut Ctx) -> Outcome {
    if ctx.argv.len() > 4 && !ctx.version().is_valkey() {
        return Err(error::subcommand_syntax(ctx.argv));
    }
    // Valkey ignores the reason if more follows.
    let with_error = match ctx.argv.get(3).filter(|_| ctx.argv.len() == 4) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"TIMEOUT") => false,
        Some(word) if word.eq_ignore_ascii_case(b"ERROR") => true,
        Some(_) => return Err(Error::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let number = ctx.int(2)?;
    let target = u64::try_from(number).ok().and_then(|number| ctx.node.sessions.by_number(number));
    let woken = match target.map(|session| session.id) {
        Some(id) => ctx.node.unblock_by_command(id, with_error),
        None => false,
    };
    ctx.reply.int(woken as i64);
    Ok(())
}

/// Selects the clients that CLIENT KILL disconnects.
#[derive(Default)]
struct KillFilter<'a> {
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    id: Option<u64>,
    kind: Option<ClientType>,
    user: Option<&'a [u8]>,
    max_age_s: Option<u64>,
    keep_caller: bool,
}

impl KillFilter<'_> {
    fn matches(&self, session: &Session, caller: SessionId, now_us: u64) -> bool {
        self.addr.is_none_or(|addr| session.addr.as_bytes() == addr)
            && self.laddr.is_none_or(|addr| session.laddr.as_bytes() == addr)
            && self.id.is_none_or(|id| session.id.number == id)
            && self.kind.is_none_or(|kind| type_of(session) == kind)
            && self.user.is_none_or(|user| user == session.user.name())
            && self.max_age_s.is_none_or(|age| (now_us - session.created_us) / 1_000_000 >= age)
            && !(self.keep_caller && session.id == caller)
    }
}

fn client_kill(ctx: &mut Ctx) -> Outcome {
    let now_us = ctx.now().mono_us;
    let by_address = ctx.argv.len() == 3;
    let filter = if by_address {
        KillFilter { addr: Some(ctx.argv[2]), ..KillFilter::default() }
    } else {
        parse_kill_filter(ctx)?
    };
    let mut victims: Vec<SessionId> = (ctx.node.sessions.iter())
        .filter(|session| filter.matches(session, ctx.id, now_us))
        .map(|session| session.id)
        .collect();
    if by_address {
        victims.truncate(1);
    }
    for &id in &victims {
        if id != ctx.id {
            ctx.node.kill_session(id);
        } else {
            // The caller still gets its reply.
            ctx.node.end_session(id);
        }
    }
    match (by_address, victims.is_empty()) {
        (true, true) => Err(Error::new("ERR No such client")),
        (true, false) => {
            ctx.reply.ok();
            Ok(())
        }
        (false, _) => {
            ctx.reply.int(victims.len() as i64);
            Ok(())
        }
    }
}

fn parse_kill_filter<'a>(ctx: &Ctx<'a>) -> Result<KillFilter<'a>, Error> {
    let mut filter = KillFilter { keep_caller: true, ..KillFilter::default() };
    let mut words = ctx.words(2);
    while !words.is_empty() {
        if words.take_with("ID", 1) {
            let id = num::parse_i64(words.word()?);
            if id.is_none() && ctx.version().is_valkey() {
                return Err(error::SYNTAX);
            }
            let id = id.filter(|&id| id > 0).ok_or(Error::new("ERR client-id should be greater than 0"))?;
            filter.id = Some(id as u64);
        } else if ctx.version() > Version::V7_2 && words.take_with("MAXAGE", 1) {
            let age = num::parse_i64(words.word()?)
                .ok_or(Error::new("ERR maxage is not an integer or out of range"))
                .and_then(|age| {
                    let age = u64::try_from(age).ok().filter(|&age| age > 0);
                    age.ok_or(Error::new("ERR maxage should be greater than 0"))
                })?;
            filter.max_age_s = Some(age);
        } else if words.take_with("TYPE", 1) {
            filter.kind = Some(client_type(words.word()?)?);
        } else if words.take_with("ADDR", 1) {
            filter.addr = Some(words.word()?);
        } else if words.take_with("LADDR", 1) {
            filter.laddr = Some(words.word()?);
        } else if words.take_with("USER", 1) {
            let user = words.word()?;
            if ctx.node.acl.user(user).is_none() {
                let mut text = b"ERR No such user '".to_vec();
                text.extend_from_slice(user);
                text.push(b'\'');
                return Err(Error::owned(text));
            }
            filter.user = Some(user);
        } else if words.take_with("SKIPME", 1) {
            filter.keep_caller = match lower(words.word()?).as_slice() {
                b"yes" => true,
                b"no" => false,
                _ => return Err(error::SYNTAX),
            };
        } else {
            return Err(error::SYNTAX);
        }
    }
    Ok(filter)
}
