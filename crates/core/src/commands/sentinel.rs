//! SENTINEL: what a sentinel tells about the masters that it watches, and how it is told to watch others.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::node::sentinel::settings::{Globals, MasterSettings, Refusal};
use crate::node::sentinel::{Address, CRASHES, Kind, Master, Row, Sentinel, TIMES};
use crate::num;
use crate::version::Version;
use crate::wire::Reply;

/// Returns the row of a subcommand.
const fn row(name: &'static str, arity: i32, since: &'static str, run: fn(&mut Ctx) -> Outcome) -> Command {
    Command { name, arity, since, flags: ADMIN, run, ..Command::of(Group::Sentinel) }
}

pub const COMMANDS: &[Command] = &[Command {
    name: "sentinel",
    arity: -2,
    since: "2.8.4",
    flags: ADMIN,
    summary: "Watches masters and their replicas.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            summary: "Checks whether enough sentinels can be reached for a failover.",
            complexity: "",
            ..row("sentinel|ckquorum", 3, "2.8.4", ckquorum)
        },
        Command {
            summary: "Reads and changes the settings of the sentinel.",
            complexity: "O(N) when N is the number of configuration parameters provided",
            old_arity: Some(-3),
            ..row("sentinel|config", -4, "6.2.0", config)
        },
        Command {
            summary: "Reads and changes the times of the sentinel.",
            complexity: "O(N) where N is the number of configurable parameters",
            ..row("sentinel|debug", -2, "7.0.0", debug)
        },
        Command {
            summary: "Begins a failover without asking other sentinels.",
            complexity: "",
            ..row("sentinel|failover", 3, "2.8.4", failover)
        },
        Command {
            summary: "Writes the configuration.",
            ..row("sentinel|flushconfig", 2, "2.8.4", flushconfig)
        },
        Command {
            summary: "Gives the address of a master.",
            ..row("sentinel|get-master-addr-by-name", 3, "2.8.4", get_master_addr)
        },
        Command {
            name: "sentinel|help",
            arity: 2,
            since: "6.2.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            run: super::help::reply,
            ..Command::of(Group::Sentinel)
        },
        Command {
            summary: "Gives the last INFO of the servers.",
            complexity: "O(N) where N is the number of instances",
            ..row("sentinel|info-cache", -3, "3.2.0", info_cache)
        },
        Command {
            summary: "Says whether a master is down, and votes.",
            ..row("sentinel|is-master-down-by-addr", 6, "2.8.4", is_master_down)
        },
        Command { summary: "Describes a master.", ..row("sentinel|master", 3, "2.8.4", master) },
        Command {
            summary: "Describes all masters.",
            complexity: "O(N) where N is the number of masters",
            ..row("sentinel|masters", 2, "2.8.4", masters)
        },
        Command { summary: "Begins to watch a master.", ..row("sentinel|monitor", 6, "2.8.4", monitor) },
        Command { summary: "Gives the id of the sentinel.", ..row("sentinel|myid", 2, "6.2.0", myid) },
        Command {
            summary: "Lists the scripts that are to run.",
            complexity: "",
            ..row("sentinel|pending-scripts", 2, "2.8.4", pending_scripts)
        },
        Command { summary: "Ends to watch a master.", ..row("sentinel|remove", 3, "2.8.4", remove) },
        Command {
            summary: "Describes the replicas of a master.",
            complexity: "O(N) where N is the number of replicas",
            ..row("sentinel|replicas", 3, "5.0.0", replicas)
        },
        Command {
            summary: "Forgets what was learned about masters.",
            complexity: "O(N) where N is the number of monitored masters",
            ..row("sentinel|reset", 3, "2.8.4", reset)
        },
        Command {
            summary: "Describes the other sentinels of a master.",
            complexity: "O(N) where N is the number of Sentinels",
            ..row("sentinel|sentinels", 3, "2.8.4", sentinels)
        },
        Command { summary: "Changes the settings of a master.", ..row("sentinel|set", -5, "2.8.4", set) },
        Command {
            summary: "Lets the process end in the middle of a failover.",
            complexity: "",
            ..row("sentinel|simulate-failure", -3, "3.2.0", simulate_failure)
        },
        Command {
            summary: "Describes the replicas of a master.",
            complexity: "O(N) where N is the number of replicas.",
            ..row("sentinel|slaves", 3, "2.8.0", replicas)
        },
    ],
    ..Command::of(Group::Sentinel)
}];

/// Returns the sentinel. Its commands exist on sentinels alone.
fn own<'a>(ctx: &'a Ctx) -> Result<&'a Sentinel, Error> {
    ctx.node.sentinel.as_deref().ok_or_else(not_a_sentinel)
}

fn own_mut<'a>(ctx: &'a mut Ctx) -> Result<&'a mut Sentinel, Error> {
    ctx.node.sentinel.as_deref_mut().ok_or_else(not_a_sentinel)
}

fn not_a_sentinel() -> Error {
    Error::new("ERR This instance is not a sentinel")
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

fn write_row(reply: &mut Reply, row: &Row) {
    reply.map(row.len());
    for (name, value) in row {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// Returns descriptions of what `kinds` picks of a master.
fn describe<'a>(
    ctx: &'a Ctx,
    master: &'a Master,
    kinds: impl Fn(&'a Master) -> Vec<Kind<'a>>,
) -> Result<Vec<Row>, Error> {
    let (now_ms, info_ms) = (ctx.now().mono_ms(), own(ctx)?.times_ms[0]);
    Ok(kinds(master).into_iter().map(|kind| master.describe(kind, now_ms, info_ms)).collect())
}

fn reply_rows(ctx: &mut Ctx, rows: &[Row]) {
    ctx.reply.array(rows.len());
    rows.iter().for_each(|row| write_row(ctx.reply, row));
}

fn masters(ctx: &mut Ctx) -> Outcome {
    let rows = own(ctx)?.masters.iter().map(|master| describe(ctx, master, |_| vec![Kind::Master]));
    let rows = rows.collect::<Result<Vec<_>, _>>()?.concat();
    reply_rows(ctx, &rows);
    Ok(())
}

fn master(ctx: &mut Ctx) -> Outcome {
    let rows = describe(ctx, own(ctx)?.master(ctx.argv[2])?, |_| vec![Kind::Master])?;
    rows.iter().for_each(|row| write_row(ctx.reply, row));
    Ok(())
}

fn replicas(ctx: &mut Ctx) -> Outcome {
    let master = own(ctx)?.master(ctx.argv[2])?;
    let rows = describe(ctx, master, |master| master.replicas.iter().map(Kind::Replica).collect())?;
    reply_rows(ctx, &rows);
    Ok(())
}

fn sentinels(ctx: &mut Ctx) -> Outcome {
    let master = own(ctx)?.master(ctx.argv[2])?;
    let rows = describe(ctx, master, |master| master.peers.iter().map(Kind::Peer).collect())?;
    reply_rows(ctx, &rows);
    Ok(())
}

fn get_master_addr(ctx: &mut Ctx) -> Outcome {
    let Ok(master) = own(ctx)?.master(ctx.argv[2]) else {
        ctx.reply.null_array();
        return Ok(());
    };
    let Address { host, port } = master.address().clone();
    ctx.reply.array(2);
    ctx.reply.bulk(host.as_bytes());
    ctx.reply.bulk_int(port.into());
    Ok(())
}

fn myid(ctx: &mut Ctx) -> Outcome {
    let id = own(ctx)?.id.clone();
    ctx.reply.bulk(id.as_bytes());
    Ok(())
}

fn ckquorum(ctx: &mut Ctx) -> Outcome {
    let usable = own(ctx)?.master(ctx.argv[2])?.check_quorum()?;
    let text = format!("OK {usable} usable Sentinels. Quorum and failover authorization can be reached");
    ctx.reply.status(&text);
    Ok(())
}

fn failover(ctx: &mut Ctx) -> Outcome {
    ctx.node.force_failover(ctx.argv[2])?;
    ctx.reply.ok();
    Ok(())
}

/// Says that the configuration was written. There is no file: a sentinel learns again what it knew.
fn flushconfig(ctx: &mut Ctx) -> Outcome {
    ctx.reply.ok();
    Ok(())
}

fn pending_scripts(ctx: &mut Ctx) -> Outcome {
    ctx.reply.array(0);
    Ok(())
}

/// Names the masters and their replicas, without a text: a sentinel keeps no INFO.
fn info_cache(ctx: &mut Ctx) -> Outcome {
    let asked = |master: &&Master| {
        let name = master.settings.name.as_bytes();
        ctx.argv[2..].iter().any(|asked| asked.eq_ignore_ascii_case(name))
    };
    let found: Vec<(String, usize)> = own(ctx)?
        .masters
        .iter()
        .filter(asked)
        .map(|master| (master.settings.name.clone(), 1 + master.replicas.len()))
        .collect();
    ctx.reply.map(found.len());
    for (name, instances) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.array(instances);
        for _ in 0..instances {
            ctx.reply.array(2);
            ctx.reply.int(0);
            ctx.reply.null();
        }
    }
    Ok(())
}

fn is_master_down(ctx: &mut Ctx) -> Outcome {
    let (port, epoch) = (ctx.int(3)?, ctx.int(4)?);
    let address = Address { host: text(ctx.argv[2]), port: u16::try_from(port).unwrap_or(0) };
    let is_it = |master: &&Master| master.own.address == address;
    let is_down = own(ctx)?.masters.iter().find(is_it).is_some_and(|master| master.own.sdown_ms.is_some());
    let candidate = text(ctx.argv[5]);
    let vote = match candidate.as_str() {
        "*" => None,
        _ => ctx.node.vote(&address, u64::try_from(epoch).unwrap_or(0), &candidate),
    };
    let (leader, epoch) = vote.map_or((None, 0), |vote| (vote.leader, vote.epoch));
    ctx.reply.array(3);
    ctx.reply.int(is_down.into());
    ctx.reply.bulk(leader.as_deref().unwrap_or("*").as_bytes());
    ctx.reply.int(epoch as i64);
    Ok(())
}

fn monitor(ctx: &mut Ctx) -> Outcome {
    let words: Vec<String> = ctx.argv[2..].iter().map(|word| text(word)).collect();
    let [name, host, port, quorum] = &words[..] else { return Err(error::SYNTAX) };
    let sentinel = own(ctx)?;
    let settings = MasterSettings::new(name, host, port, quorum, &sentinel.settings.globals);
    let mut settings = settings.map_err(|why| Error::owned(format!("ERR {why}")))?;
    settings.down_after_ms = sentinel.time_ms("DEFAULT-DOWN-AFTER");
    settings.failover_timeout_ms = sentinel.time_ms("DEFAULT-FAILOVER-TIMEOUT");
    if sentinel.master(name.as_bytes()).is_ok() {
        return Err(Error::new("ERR Duplicate master name."));
    }
    ctx.node.monitor(settings);
    ctx.reply.ok();
    Ok(())
}

fn remove(ctx: &mut Ctx) -> Outcome {
    let label = own(ctx)?.master(ctx.argv[2])?.label();
    ctx.node.say("-monitor", &label);
    let name = ctx.argv[2];
    own_mut(ctx)?.masters.retain(|master| master.settings.name.as_bytes() != name);
    ctx.reply.ok();
    Ok(())
}

fn reset(ctx: &mut Ctx) -> Outcome {
    let (pattern, now_ms) = (ctx.argv[2], ctx.now().mono_ms());
    let mut labels = Vec::new();
    for master in &mut own_mut(ctx)?.masters {
        if glob::matches(pattern, master.settings.name.as_bytes(), false) {
            master.begin_anew(now_ms);
            labels.push(master.label());
        }
    }
    labels.iter().for_each(|label| ctx.node.say("+reset-master", label));
    ctx.node.look_at(now_ms);
    ctx.reply.int(labels.len() as i64);
    Ok(())
}

fn set(ctx: &mut Ctx) -> Outcome {
    let words: Vec<String> = ctx.argv[3..].iter().map(|word| text(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (mut rest, now_ms) = (&words[..], ctx.now().mono_ms());
    while !rest.is_empty() {
        let name = ctx.argv[2];
        let sentinel = own_mut(ctx)?;
        let allows_scripts = sentinel.settings.allows_scripts;
        let master = sentinel.master_mut(name)?;
        let taken = master.settings.set(rest, allows_scripts).map_err(|(why, at)| refusal(why, rest, at))?;
        let shown = match rest[0].eq_ignore_ascii_case("auth-pass") {
            true => vec![rest[0], "******"],
            false => rest[..taken].to_vec(),
        };
        let label = format!("{} {}", master.label(), shown.join(" "));
        ctx.node.say("+set", &label);
        rest = &rest[taken..];
    }
    ctx.node.look_at(now_ms);
    ctx.reply.ok();
    Ok(())
}

fn refusal(why: Refusal, words: &[&str], at: usize) -> Error {
    let option = words.first().copied().unwrap_or_default();
    match why {
        Refusal::Unknown => {
            format!("ERR Unknown option or number of arguments for SENTINEL SET '{option}'").into()
        }
        Refusal::Value => {
            let value = words.get(at).copied().unwrap_or_default();
            format!("ERR Invalid argument '{value}' for SENTINEL SET '{option}'").into()
        }
        Refusal::Scripts => Error::new(
            "ERR Reconfiguration of scripts path is denied for security reasons. Check the deny-scripts-reconfig \
             configuration directive in your Sentinel configuration",
        ),
    }
}

fn config(ctx: &mut Ctx) -> Outcome {
    let takes_several = ctx.version() >= Version::V7_2;
    let action = ctx.argv[2].to_ascii_lowercase();
    let words: Vec<String> = ctx.argv[3..].iter().map(|word| text(word)).collect();
    match (action.as_slice(), &words[..]) {
        (b"get", names) if !names.is_empty() && (takes_several || names.len() == 1) => config_get(ctx, names),
        (b"set", pairs) if takes_several && pairs.len() % 2 == 0 || pairs.len() == 2 => {
            config_set(ctx, pairs)
        }
        (b"set", _) if takes_several => Err(error::wrong_arity("sentinel|config")),
        _ => Err(Error::new(match takes_several {
            true => {
                "ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...] / SET <param> <value> [<param> <value> ...] \
                 are supported."
            }
            false => "ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.",
        })),
    }
}

fn config_get(ctx: &mut Ctx, patterns: &[String]) -> Outcome {
    let sentinel = own(ctx)?;
    let mut names: Vec<&str> = Globals::NAMES.to_vec();
    if ctx.version() >= Version::V7_2 {
        names.push("loglevel");
    }
    let is_asked =
        |name: &&str| patterns.iter().any(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes(), true));
    names.retain(is_asked);
    let loglevel = ctx.node.config.get("loglevel").unwrap_or("notice").to_owned();
    let found: Vec<(&str, String)> = names
        .into_iter()
        .map(|name| match name {
            "loglevel" => (name, loglevel.clone()),
            _ => (name, sentinel.settings.globals.get(name)),
        })
        .collect();
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// Sets all of the settings or, on an error, none.
fn config_set(ctx: &mut Ctx, words: &[String]) -> Outcome {
    let (pairs, _) = words.as_chunks::<2>();
    let mut globals = own(ctx)?.settings.globals.clone();
    let has_loglevel = ctx.version() >= Version::V7_2;
    for (at, [name, value]) in pairs.iter().enumerate() {
        if has_loglevel && pairs[..at].iter().any(|[known, _]| known.eq_ignore_ascii_case(name)) {
            return Err(format!("ERR Duplicate argument '{name}' to SENTINEL CONFIG SET").into());
        }
        let outcome = match name.eq_ignore_ascii_case("loglevel") && has_loglevel {
            true => match ["debug", "verbose", "notice", "warning", "nothing"].contains(&value.as_str()) {
                true => Ok(()),
                false => Err(Refusal::Value),
            },
            false => globals.set(name, value),
        };
        outcome.map_err(|why| match why {
            Refusal::Value => {
                Error::owned(format!("ERR Invalid value '{value}' to SENTINEL CONFIG SET '{name}'"))
            }
            _ => Error::owned(format!("ERR Invalid argument '{name}' to SENTINEL CONFIG SET")),
        })?;
    }
    for [name, value] in pairs {
        if name.eq_ignore_ascii_case("loglevel") {
            ctx.node.config.set(&[(b"loglevel", value.as_bytes())])?;
        }
    }
    own_mut(ctx)?.settings.globals = globals;
    ctx.reply.ok();
    Ok(())
}

fn debug(ctx: &mut Ctx) -> Outcome {
    let words: Vec<String> = ctx.argv[2..].iter().map(|word| text(word)).collect();
    if words.is_empty() {
        let times_ms = own(ctx)?.times_ms;
        ctx.reply.map(TIMES.len());
        for ((name, _), ms) in TIMES.iter().zip(times_ms) {
            ctx.reply.bulk(name.as_bytes());
            ctx.reply.bulk_int(ms as i64);
        }
        return Ok(());
    }
    for pair in words.chunks(2) {
        let unknown = || {
            let text = format!("ERR Unknown option or number of arguments for SENTINEL DEBUG '{}'", pair[0]);
            Error::owned(text)
        };
        let [name, value] = pair else { return Err(unknown()) };
        let at = TIMES.iter().position(|(known, _)| known.eq_ignore_ascii_case(name)).ok_or_else(unknown)?;
        let ms = num::parse_i64(value.as_bytes()).and_then(|ms| u64::try_from(ms).ok()).filter(|&ms| ms > 0);
        let ms = ms.ok_or_else(|| {
            Error::owned(format!("ERR Invalid argument '{value}' for SENTINEL DEBUG '{name}'"))
        })?;
        own_mut(ctx)?.times_ms[at] = ms;
    }
    let now_ms = ctx.now().mono_ms();
    ctx.node.look_at(now_ms);
    ctx.reply.ok();
    Ok(())
}

fn simulate_failure(ctx: &mut Ctx) -> Outcome {
    let mut crashes = 0;
    for word in &ctx.argv[2..] {
        if word.eq_ignore_ascii_case(b"help") {
            ctx.reply.array(CRASHES.len());
            CRASHES.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
            return Ok(());
        }
        let bit = CRASHES.iter().position(|name| word.eq_ignore_ascii_case(name.as_bytes()));
        crashes |= 1 << bit.ok_or(Error::new("ERR Unknown failure simulation specified"))?;
    }
    own_mut(ctx)?.crashes = crashes;
    ctx.reply.ok();
    Ok(())
}

/// Takes what another sentinel publishes. Sentinels of the same world need no messages to hear one another.
pub fn publish(ctx: &mut Ctx) -> Outcome {
    if ctx.argv[1] != b"__sentinel__:hello" {
        return Err(Error::new("ERR Only HELLO messages are accepted by Sentinel instances."));
    }
    ctx.reply.int(1);
    Ok(())
}

/// Replies to ROLE of a sentinel.
pub fn role(ctx: &mut Ctx) -> Outcome {
    let names: Vec<String> = own(ctx)?.masters.iter().map(|master| master.settings.name.clone()).collect();
    ctx.reply.array(2);
    ctx.reply.bulk(b"sentinel");
    ctx.reply.array(names.len());
    names.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
    Ok(())
}

/// Returns the section of INFO about the masters.
pub fn info(sentinel: &Sentinel, version: Version) -> String {
    let mut lines = format!(
        "sentinel_masters:{}\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n",
        sentinel.masters.len()
    );
    if version.has("8.0.0", crate::version::NEVER) {
        lines += "sentinel_total_tilt:0\r\n";
    }
    lines += &format!(
        "sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:{}\r\n",
        sentinel.crashes
    );
    for (index, master) in sentinel.masters.iter().enumerate() {
        let status = match (master.odown_ms, master.own.sdown_ms) {
            (Some(_), _) => "odown",
            (None, Some(_)) => "sdown",
            _ => "ok",
        };
        let Address { host, port } = &master.own.address;
        lines += &format!(
            "master{index}:name={},status={status},address={host}:{port},slaves={},sentinels={}\r\n",
            master.settings.name,
            master.replicas.len(),
            master.peers.len() + 1
        );
    }
    lines
}
