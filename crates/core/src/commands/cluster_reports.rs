//! The subcommands of CLUSTER that describe the cluster as a node sees it.

use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::Node;
use crate::node::cluster::{Cluster, Endpoint, Health, Member, NodeId};
use crate::node::replication::Role;
use crate::num;
use crate::slots::{SLOTS, hash_slot};
use crate::version::Version;
use crate::wire::Reply;

/// Returns the cluster that the node belongs to.
///
/// # Errors
/// If the node is not in cluster mode.
pub(super) fn cluster<'c>(ctx: &'c mut Ctx) -> Result<&'c mut Cluster, Error> {
    ctx.node.cluster.as_deref_mut().ok_or(super::cluster::DISABLED)
}

/// Returns the node whose id is the argument at `index`.
///
/// # Errors
/// If no node has this id.
pub(super) fn member(ctx: &mut Ctx, index: usize, why: &'static str) -> Result<Member, Error> {
    let id = ctx.argv[index];
    let found = cluster(ctx)?.members().iter().find(|member| member.id.as_bytes() == id).cloned();
    found.ok_or_else(|| Error::repeating(why, id))
}

pub fn help(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    super::help::reply(ctx)
}

pub fn my_id(ctx: &mut Ctx) -> Outcome {
    let id = cluster(ctx)?.me().id;
    ctx.reply.bulk(id.as_bytes());
    Ok(())
}

pub fn my_shard_id(ctx: &mut Ctx) -> Outcome {
    let id = cluster(ctx)?.me().shard;
    ctx.reply.bulk(id.as_bytes());
    Ok(())
}

pub fn key_slot(ctx: &mut Ctx) -> Outcome {
    if ctx.node.cluster.is_none() && !ctx.version().is_valkey_since(Version::Valkey9_1) {
        return Err(super::cluster::DISABLED);
    }
    ctx.reply.int(hash_slot(ctx.argv[2]).into());
    Ok(())
}

pub fn count_keys(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let slot = ctx.int(2)?;
    let slot = u16::try_from(slot).ok().filter(|&slot| (slot as usize) < SLOTS);
    let slot = slot.ok_or(Error::new("ERR Invalid slot"))?;
    ctx.reply.int(ctx.node.count_keys_in(slot) as i64);
    Ok(())
}

pub fn get_keys(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let (slot, most) = (ctx.int(2)?, ctx.int(3)?);
    let slot = u16::try_from(slot).ok().filter(|&slot| (slot as usize) < SLOTS);
    let (Some(slot), Ok(most)) = (slot, usize::try_from(most)) else {
        return Err(Error::new("ERR Invalid slot or number of keys"));
    };
    let db = &ctx.node.store.dbs[0];
    let places = db.hash_slots().into_iter().flat_map(|index| index.keys(slot)).take(most);
    let keys: Vec<&[u8]> = places.filter_map(|place| db.key(place)).collect();
    ctx.reply.array(keys.len());
    keys.iter().for_each(|key| ctx.reply.bulk(key));
    Ok(())
}

pub fn count_failure_reports(ctx: &mut Ctx) -> Outcome {
    let member = member(ctx, 2, "ERR Unknown node ")?;
    ctx.reply.int(member.reports.len() as i64);
    Ok(())
}

/// What CLUSTER INFO tells about migrations of slots as a whole since Redis 8.4, of which there are none.
const NO_TASKS: &str = "cluster_slot_migration_active_tasks:0\r\ncluster_slot_migration_active_trim_running:0\r\n\
    cluster_slot_migration_active_trim_current_job_keys:0\r\n\
    cluster_slot_migration_active_trim_current_job_trimmed:0\r\ncluster_slot_migration_stats_active_trim_started:0\r\n\
    cluster_slot_migration_stats_active_trim_completed:0\r\n\
    cluster_slot_migration_stats_active_trim_cancelled:0\r\n";

pub fn info(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let cluster = cluster(ctx)?;
    let count = |is_counted: fn(Option<&Member>) -> bool| {
        (0..SLOTS as u16).filter(|&slot| is_counted(cluster.owner(slot))).count()
    };
    let assigned = count(|owner| owner.is_some());
    let fine = count(|owner| owner.is_some_and(|owner| owner.health == Health::Fine));
    let suspected = count(|owner| owner.is_some_and(|owner| owner.health == Health::Suspected));
    let failed = count(|owner| owner.is_some_and(Member::has_failed));
    let has_tasks = version >= Version::V8_4;
    let epoch = cluster.my_master().unwrap_or(cluster.me()).config_epoch;
    let text = format!(
        "cluster_state:{}\r\ncluster_slots_assigned:{assigned}\r\ncluster_slots_ok:{fine}\r\n\
         cluster_slots_pfail:{suspected}\r\ncluster_slots_fail:{failed}\r\ncluster_known_nodes:{}\r\n\
         cluster_size:{}\r\ncluster_current_epoch:{}\r\ncluster_my_epoch:{epoch}\r\n\
         cluster_stats_messages_sent:{}\r\ncluster_stats_messages_received:{}\r\n\
         total_cluster_links_buffer_limit_exceeded:0\r\n{}",
        if cluster.is_ok { "ok" } else { "fail" },
        cluster.members().len(),
        cluster.size(),
        cluster.current_epoch,
        cluster.sent,
        cluster.received,
        if has_tasks { NO_TASKS } else { "" },
    );
    ctx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

pub fn nodes(ctx: &mut Ctx) -> Outcome {
    let cluster = &*cluster(ctx)?;
    let ids: Vec<NodeId> = cluster.members().iter().map(|member| member.id).collect();
    let text: String = ids.iter().filter_map(|&id| describe(ctx.node, id)).map(|line| line + "\n").collect();
    ctx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

pub fn replicas(ctx: &mut Ctx) -> Outcome {
    let master = member(ctx, 2, "ERR Unknown node ")?;
    if !master.is_master() {
        return Err(Error::new("ERR The specified node is not a master"));
    }
    let ids: Vec<NodeId> = cluster(ctx)?.replicas_of(master.id).map(|replica| replica.id).collect();
    let lines: Vec<String> = ids.iter().filter_map(|&id| describe(ctx.node, id)).collect();
    ctx.reply.array(lines.len());
    lines.iter().for_each(|line| ctx.reply.bulk(line.as_bytes()));
    Ok(())
}

/// Returns the line of CLUSTER NODES about a node.
fn describe(node: &Node, id: NodeId) -> Option<String> {
    let cluster = node.cluster.as_deref()?;
    let member = cluster.member(id)?;
    let is_me = id == cluster.me().id;
    let address = &member.address;
    let hostname = match address.hostname.as_str() {
        "" => String::new(),
        name => format!(",{name}"),
    };
    let flags = [
        (is_me, "myself"),
        (member.is_master(), "master"),
        (!member.is_master(), "slave"),
        (member.health == Health::Suspected, "fail?"),
        (member.has_failed(), "fail"),
        (member.no_failover, "nofailover"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
    let master = member.master.map_or("-".to_owned(), |master| master.to_string());
    let epoch = member.master.and_then(|master| cluster.member(master)).unwrap_or(member).config_epoch;
    let now = node.store.now;
    let wall = |mono_ms: u64| mono_ms as i64 + now.wall_offset_ms;
    let (ping, pong) = match member.silent_since_ms {
        _ if is_me => (0, 0),
        Some(since_ms) => (wall(since_ms), wall(since_ms)),
        None => (0, now.wall_ms()),
    };
    let link = if member.is_suspect() && !is_me { "disconnected" } else { "connected" };
    let mut line = format!(
        "{id} {}:{}@{}{hostname} {} {master} {ping} {pong} {epoch} {link}",
        address.ip,
        address.port,
        address.bus_port,
        flags.join(",")
    );
    for (first, last) in cluster.slots_of(id).ranges() {
        line += &if first == last { format!(" {first}") } else { format!(" {first}-{last}") };
    }
    if is_me {
        cluster.migrating.iter().for_each(|(slot, to)| line += &format!(" [{slot}->-{to}]"));
        cluster.importing.iter().for_each(|(slot, from)| line += &format!(" [{slot}-<-{from}]"));
    }
    Some(line)
}

/// Returns the ranges of slots that have the same owner, in order.
fn served_ranges(cluster: &Cluster) -> Vec<(u16, u16, &Member)> {
    let mut served: Vec<(u16, u16, &Member)> = Vec::new();
    for slot in 0..SLOTS as u16 {
        let Some(owner) = cluster.owner(slot) else { continue };
        match served.last_mut() {
            Some((_, last, before)) if *last + 1 == slot && before.id == owner.id => *last = slot,
            _ => served.push((slot, slot, owner)),
        }
    }
    served
}

pub fn slots(ctx: &mut Ctx) -> Outcome {
    let endpoint = ctx.node.config.cluster.endpoint;
    let cluster = ctx.node.cluster.as_deref().ok_or(super::cluster::DISABLED)?;
    let served = served_ranges(cluster);
    ctx.reply.array(served.len());
    for (first, last, owner) in served {
        let replicas: Vec<&Member> =
            cluster.replicas_of(owner.id).filter(|replica| !replica.has_failed()).collect();
        ctx.reply.array(3 + replicas.len());
        ctx.reply.int(first.into());
        ctx.reply.int(last.into());
        write_place(ctx.reply, owner, endpoint);
        replicas.iter().for_each(|replica| write_place(ctx.reply, replica, endpoint));
    }
    Ok(())
}

/// Writes where a node is, as CLUSTER SLOTS does.
fn write_place(reply: &mut Reply, member: &Member, endpoint: Endpoint) {
    let address = &member.address;
    reply.array(4);
    match endpoint {
        Endpoint::Ip => reply.bulk_or_null(Some(address.ip.as_bytes()).filter(|ip| !ip.is_empty())),
        Endpoint::Hostname if address.hostname.is_empty() => reply.bulk(b"?"),
        Endpoint::Hostname => reply.bulk(address.hostname.as_bytes()),
        Endpoint::Unknown => reply.null(),
    }
    reply.int(address.port.into());
    reply.bulk(member.id.as_bytes());
    let others = [
        (endpoint != Endpoint::Ip, "ip", &address.ip),
        (endpoint != Endpoint::Hostname && !address.hostname.is_empty(), "hostname", &address.hostname),
    ];
    let others: Vec<_> = others.iter().filter(|(is_shown, ..)| *is_shown).collect();
    reply.map(others.len());
    for (_, name, value) in others {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

pub fn shards(ctx: &mut Ctx) -> Outcome {
    let endpoint = ctx.node.config.cluster.endpoint;
    let cluster = ctx.node.cluster.as_deref().ok_or(super::cluster::DISABLED)?;
    let masters: Vec<&Member> = cluster.members().iter().filter(|member| member.is_master()).collect();
    ctx.reply.array(masters.len());
    for master in masters {
        let ranges = cluster.slots_of(master.id).ranges();
        ctx.reply.map(2);
        ctx.reply.bulk(b"slots");
        ctx.reply.array(ranges.len() * 2);
        for (first, last) in ranges {
            ctx.reply.int(first.into());
            ctx.reply.int(last.into());
        }
        let nodes: Vec<&Member> = std::iter::once(master).chain(cluster.replicas_of(master.id)).collect();
        ctx.reply.bulk(b"nodes");
        ctx.reply.array(nodes.len());
        for node in nodes {
            write_member(ctx.reply, node, offset_of(ctx.node, node), endpoint);
        }
    }
    Ok(())
}

/// Returns the replication offset of a node: of those that this one replicates with, the present one.
fn offset_of(node: &Node, member: &Member) -> u64 {
    let replication = &node.replication;
    if member.node == node.index {
        return replication.offset;
    }
    let master = Some(&replication.master).filter(|_| replication.role != Role::Master);
    let mut peers = replication.replicas.iter().chain(master);
    peers.find(|peer| peer.node == member.node).map_or(member.offset, |peer| peer.offset)
}

fn write_member(reply: &mut Reply, member: &Member, offset: u64, endpoint: Endpoint) {
    let address = &member.address;
    let has_hostname = !address.hostname.is_empty();
    reply.map(7 + usize::from(has_hostname));
    reply.bulk(b"id");
    reply.bulk(member.id.as_bytes());
    reply.bulk(b"port");
    reply.int(address.port.into());
    reply.bulk(b"ip");
    reply.bulk(address.ip.as_bytes());
    reply.bulk(b"endpoint");
    match endpoint {
        Endpoint::Ip => reply.bulk(address.ip.as_bytes()),
        Endpoint::Hostname if !has_hostname => reply.bulk(b"?"),
        Endpoint::Hostname => reply.bulk(address.hostname.as_bytes()),
        Endpoint::Unknown => reply.bulk(b""),
    }
    if has_hostname {
        reply.bulk(b"hostname");
        reply.bulk(address.hostname.as_bytes());
    }
    reply.bulk(b"role");
    reply.bulk(if member.is_master() { b"master" } else { b"replica" });
    reply.bulk(b"replication-offset");
    reply.int(offset as i64);
    reply.bulk(b"health");
    reply.bulk(if member.has_failed() { b"fail" } else { b"online" });
}

pub fn links(ctx: &mut Ctx) -> Outcome {
    let created_ms = ctx.node.stats.started_us as i64 / 1000 + ctx.now().wall_offset_ms;
    let cluster = cluster(ctx)?;
    let peers = cluster.members().iter().skip(1).filter(|member| !member.is_suspect());
    let peers: Vec<NodeId> = peers.map(|member| member.id).collect();
    ctx.reply.array(peers.len() * 2);
    for id in peers {
        for (direction, events) in [("to", "r"), ("from", "r")] {
            ctx.reply.map(6);
            for (name, value) in [("direction", direction.as_bytes()), ("node", id.as_bytes())] {
                ctx.reply.bulk(name.as_bytes());
                ctx.reply.bulk(value);
            }
            ctx.reply.bulk(b"create-time");
            ctx.reply.int(created_ms);
            ctx.reply.bulk(b"events");
            ctx.reply.bulk(events.as_bytes());
            for name in ["send-buffer-allocated", "send-buffer-used"] {
                ctx.reply.bulk(name.as_bytes());
                ctx.reply.int(0);
            }
        }
    }
    Ok(())
}

pub fn slot_stats(ctx: &mut Ctx) -> Outcome {
    let owned: Vec<u16> = {
        let cluster = cluster(ctx)?;
        let served = cluster.me().master.unwrap_or(cluster.me().id);
        cluster.slots_of(served).iter().collect()
    };
    let chosen: Vec<u16> = match ctx.argv[2].to_ascii_lowercase().as_slice() {
        b"slotsrange" if ctx.argv.len() == 5 => {
            let (first, last) = (slot(ctx.argv[3])?, slot(ctx.argv[4])?);
            if first > last {
                return Err(
                    format!("ERR Start slot number {first} is greater than end slot number {last}").into()
                );
            }
            owned.into_iter().filter(|slot| (first..=last).contains(slot)).collect()
        }
        b"orderby" if ctx.argv.len() >= 4 => ordered_slots(ctx, owned)?,
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    ctx.reply.array(chosen.len());
    for slot in chosen {
        ctx.reply.array(2);
        ctx.reply.int(slot.into());
        ctx.reply.map(1);
        ctx.reply.bulk(b"key-count");
        ctx.reply.int(ctx.node.count_keys_in(slot) as i64);
    }
    Ok(())
}

fn ordered_slots(ctx: &Ctx, mut slots: Vec<u16>) -> Result<Vec<u16>, Error> {
    if !ctx.argv[3].eq_ignore_ascii_case(b"key-count") {
        return Err(Error::new("ERR Unrecognized sort metric for ORDERBY."));
    }
    let (mut limit, mut ascends) = (SLOTS as i64, false);
    let mut words = ctx.words(4);
    while !words.is_empty() {
        if words.take_with("LIMIT", 1) {
            limit = words.int()?;
            if !(1..=SLOTS as i64).contains(&limit) {
                return Err(Error::new(
                    "ERR Limit has to lie in between 1 and 16384 (maximum number of slots).",
                ));
            }
        } else if words.take("ASC") {
            ascends = true;
        } else if words.take("DESC") {
            ascends = false;
        } else {
            return Err(error::SYNTAX);
        }
    }
    let count = |slot: &u16| ctx.node.count_keys_in(*slot) as i64;
    slots.sort_by_key(|slot| if ascends { count(slot) } else { -count(slot) });
    slots.truncate(limit as usize);
    Ok(slots)
}

/// Parses a slot.
///
/// # Errors
/// If it is not a number from 0 to 16,383.
pub(super) fn slot(word: &[u8]) -> Result<u16, Error> {
    let number = num::parse_i64(word).and_then(|number| u16::try_from(number).ok());
    let number = number.filter(|&slot| (slot as usize) < SLOTS);
    number.ok_or(Error::new("ERR Invalid or out of range slot"))
}
