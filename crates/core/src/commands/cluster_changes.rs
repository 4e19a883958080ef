//! The subcommands of CLUSTER that change it, and the commands by which clients follow redirections.

use super::cluster_reports::{cluster, member, slot};
use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::cluster::{FailoverKind, Health, NodeId};
use crate::num;
use crate::slots::SlotSet;
use crate::version::Version;

pub fn asking(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    ctx.session().asks = true;
    ctx.reply.ok();
    Ok(())
}

/// READONLY and READWRITE. Clients of Valkey may send them outside of a cluster.
pub fn mark_reads(ctx: &mut Ctx) -> Outcome {
    if !ctx.version().is_valkey() {
        cluster(ctx)?;
    }
    ctx.session().reads_replicas = ctx.command.name == "readonly";
    ctx.reply.ok();
    Ok(())
}

/// Returns the slots of ADDSLOTS and its relatives: each word, or with `in_ranges` the first and the last of each range.
fn slots_given(ctx: &Ctx, in_ranges: bool) -> Result<Vec<u16>, Error> {
    let words = &ctx.argv[2..];
    if !in_ranges {
        return words.iter().map(|word| slot(word)).collect();
    }
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(error::wrong_arity(ctx.command.name));
    }
    let mut slots = Vec::new();
    for [first, last] in pairs {
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return Err(
                format!("ERR start slot number {first} is greater than end slot number {last}").into()
            );
        }
        slots.extend(first..=last);
    }
    Ok(slots)
}

/// Takes slots that nobody serves, or lets them go.
fn change_slots(ctx: &mut Ctx, in_ranges: bool, adds: bool) -> Outcome {
    let cluster = ctx.node.cluster.as_deref().ok_or(super::cluster::DISABLED)?;
    let slots = slots_given(ctx, in_ranges)?;
    let mut seen = SlotSet::default();
    for &slot in &slots {
        match cluster.owner(slot) {
            Some(_) if adds => return Err(format!("ERR Slot {slot} is already busy").into()),
            None if !adds => return Err(format!("ERR Slot {slot} is already unassigned").into()),
            _ if seen.contains(slot) => {
                return Err(format!("ERR Slot {slot} specified multiple times").into());
            }
            _ => seen.insert(slot),
        }
    }
    let cluster = self::cluster(ctx)?;
    let owner = adds.then(|| cluster.me().id);
    for slot in slots {
        if adds {
            cluster.importing.remove(&slot);
        }
        cluster.assign(slot, owner);
    }
    cluster.announce();
    ctx.reply.ok();
    Ok(())
}

pub fn add_slots(ctx: &mut Ctx) -> Outcome {
    change_slots(ctx, false, true)
}

pub fn add_slot_ranges(ctx: &mut Ctx) -> Outcome {
    change_slots(ctx, true, true)
}

pub fn delete_slots(ctx: &mut Ctx) -> Outcome {
    change_slots(ctx, false, false)
}

pub fn delete_slot_ranges(ctx: &mut Ctx) -> Outcome {
    change_slots(ctx, true, false)
}

pub fn flush_slots(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    if !ctx.node.store.dbs[0].is_empty() {
        return Err(Error::new("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
    }
    let cluster = cluster(ctx)?;
    let id = cluster.me().id;
    cluster.slots_of(id).iter().for_each(|slot| cluster.assign(slot, None));
    cluster.announce();
    ctx.reply.ok();
    Ok(())
}

/// SETSLOT: the steps by which a slot moves to another node.
pub fn set_slot(ctx: &mut Ctx) -> Outcome {
    const UNKNOWN: &str = "ERR I don't know about node ";
    const NOT_A_MASTER: Error = Error::new("ERR Target node is not a master");
    if !cluster(ctx)?.me().is_master() {
        return Err(Error::new("ERR Please use SETSLOT only with masters."));
    }
    let slot = slot(ctx.argv[2])?;
    match (ctx.argv[3].to_ascii_lowercase().as_slice(), ctx.argv.len()) {
        (b"migrating", 5) => {
            if !cluster(ctx)?.owns(slot) {
                return Err(format!("ERR I'm not the owner of hash slot {slot}").into());
            }
            let target = member(ctx, 4, UNKNOWN)?;
            if !target.is_master() {
                return Err(NOT_A_MASTER);
            }
            cluster(ctx)?.migrating.insert(slot, target.id);
        }
        (b"importing", 5) => {
            if cluster(ctx)?.owns(slot) {
                return Err(format!("ERR I'm already the owner of hash slot {slot}").into());
            }
            let source = member(ctx, 4, UNKNOWN)?;
            if !source.is_master() {
                return Err(NOT_A_MASTER);
            }
            cluster(ctx)?.importing.insert(slot, source.id);
        }
        (b"stable", 4) => {
            let cluster = cluster(ctx)?;
            cluster.importing.remove(&slot);
            cluster.migrating.remove(&slot);
        }
        (b"node", 5) => {
            let target = member(ctx, 4, "ERR Unknown node ")?;
            if !target.is_master() {
                return Err(NOT_A_MASTER);
            }
            hand_slot_over(ctx, slot, target.id)?;
        }
        _ => {
            return Err(Error::new(
                "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP",
            ));
        }
    }
    cluster(ctx)?.announce();
    ctx.reply.ok();
    Ok(())
}

fn hand_slot_over(ctx: &mut Ctx, slot: u16, target: NodeId) -> Outcome {
    let keys = ctx.node.count_keys_in(slot);
    let may_migrate = ctx.node.config.cluster.allows_replica_migration;
    let cluster = cluster(ctx)?;
    let (was_mine, is_mine) = (cluster.owns(slot), target == cluster.me().id);
    if was_mine && !is_mine && keys > 0 {
        return Err(format!(
            "ERR Can't assign hashslot {slot} to a different node while I still hold keys for this hash slot."
        )
        .into());
    }
    if keys == 0 {
        cluster.migrating.remove(&slot);
    }
    cluster.assign(slot, Some(target));
    if was_mine && !is_mine && cluster.me().slots == 0 && may_migrate {
        cluster.follow(target);
    }
    if is_mine && cluster.importing.remove(&slot).is_some() {
        cluster.bump_epoch();
    }
    Ok(())
}

pub fn bump_epoch(ctx: &mut Ctx) -> Outcome {
    let cluster = cluster(ctx)?;
    let word = if cluster.bump_epoch() { "BUMPED" } else { "STILL" };
    let text = format!("{word} {}", cluster.me().config_epoch);
    ctx.reply.status(&text);
    Ok(())
}

pub fn set_config_epoch(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let epoch = ctx.int(2)?;
    let epoch = u64::try_from(epoch).map_err(|_| format!("ERR Invalid config epoch specified: {epoch}"))?;
    let cluster = cluster(ctx)?;
    if cluster.members().len() > 1 {
        return Err(Error::new(
            "ERR The user can assign a config epoch only when the node does not know any other node.",
        ));
    }
    if cluster.me().config_epoch != 0 {
        return Err(Error::new("ERR Node config epoch is already non-zero"));
    }
    cluster.me_mut().config_epoch = epoch;
    cluster.current_epoch = cluster.current_epoch.max(epoch);
    ctx.reply.ok();
    Ok(())
}

/// There is no file of the cluster's configuration to write.
pub fn save_config(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    ctx.reply.ok();
    Ok(())
}

/// MEET: only nodes of this world can be met; any other address does not answer.
pub fn meet(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    if ctx.argv.len() > 5 {
        return Err(error::subcommand_syntax(ctx.argv));
    }
    let (host, port) = (ctx.argv[2], ctx.argv[3]);
    let (base, bus) = match ctx.version() < Version::V7_2 {
        true => ("ERR Invalid TCP base port specified: ", "ERR Invalid TCP bus port specified: "),
        false => ("ERR Invalid base port specified: ", "ERR Invalid bus port specified: "),
    };
    let number = num::parse_i64(port).ok_or_else(|| Error::repeating(base, port))?;
    if let Some(text) = ctx.argv.get(4) {
        num::parse_i64(text).ok_or_else(|| Error::repeating(bus, text))?;
    }
    let host = String::from_utf8_lossy(host);
    if host.parse::<std::net::IpAddr>().is_err() || !(1..=65_535).contains(&number) {
        return Err(format!("ERR Invalid node address specified: {host}:{number}").into());
    }
    let is_announced = ctx.node.config.get("cluster-announce-ip") == Some(&host);
    let is_local = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()) || is_announced;
    let mut ports = ctx.node.replication.ports.iter();
    let found = ports.position(|known| known.as_bytes() == port).filter(|&node| node != ctx.node.index);
    if let Some(node) = found.filter(|_| is_local) {
        ctx.node.meet(node);
    }
    ctx.reply.ok();
    Ok(())
}

pub fn forget(ctx: &mut Ctx) -> Outcome {
    let now_ms = ctx.now().mono_ms();
    let id = ctx.argv[2];
    let cluster = cluster(ctx)?;
    let found = cluster.members().iter().find(|member| member.id.as_bytes() == id).map(|member| member.id);
    let found = found.ok_or_else(|| Error::repeating("ERR Unknown node ", id))?;
    if found == cluster.me().id {
        return Err(Error::new("ERR I tried hard but I can't forget myself..."));
    }
    if cluster.me().master == Some(found) {
        return Err(Error::new("ERR Can't forget my master!"));
    }
    cluster.forget(found, now_ms);
    ctx.reply.ok();
    Ok(())
}

pub fn replicate(ctx: &mut Ctx) -> Outcome {
    let master = member(ctx, 2, "ERR Unknown node ")?;
    let is_empty = ctx.node.store.dbs.iter().all(|db| db.is_empty());
    let cluster = cluster(ctx)?;
    if master.id == cluster.me().id {
        return Err(Error::new("ERR Can't replicate myself"));
    }
    if !master.is_master() {
        return Err(Error::new("ERR I can only replicate a master, not a replica."));
    }
    if cluster.me().is_master() && (cluster.me().slots > 0 || !is_empty) {
        return Err(Error::new("ERR To set a master the node must be empty and without assigned slots."));
    }
    if cluster.me().master != Some(master.id) {
        cluster.follow(master.id);
    }
    ctx.reply.ok();
    Ok(())
}

pub fn failover(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let kind = match ctx.argv[2..] {
        [] => FailoverKind::Agreed,
        [word] if word.eq_ignore_ascii_case(b"FORCE") => FailoverKind::Forced,
        [word] if word.eq_ignore_ascii_case(b"TAKEOVER") => FailoverKind::Takeover,
        [_] => return Err(error::SYNTAX),
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    let cluster = cluster(ctx)?;
    if cluster.me().is_master() {
        return Err(Error::new("ERR You should send CLUSTER FAILOVER to a replica"));
    }
    let master = cluster.my_master().ok_or(Error::new("ERR I'm a replica but my master is unknown to me"))?;
    let is_unreachable = master.silent_since_ms.is_some() || matches!(master.health, Health::Failed { .. });
    if is_unreachable && kind == FailoverKind::Agreed {
        return Err(Error::new("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE"));
    }
    ctx.node.begin_manual_failover(kind);
    ctx.reply.ok();
    Ok(())
}

pub fn reset(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let is_hard = match ctx.argv[2..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"SOFT") => false,
        [word] if word.eq_ignore_ascii_case(b"HARD") => true,
        [_] => return Err(error::SYNTAX),
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    let is_master = cluster(ctx)?.me().is_master();
    if is_master && ctx.node.store.dbs.iter().any(|db| !db.is_empty()) {
        return Err(Error::new("ERR CLUSTER RESET can't be called with master nodes containing keys"));
    }
    if !is_master {
        (0..ctx.node.store.dbs.len()).for_each(|db| ctx.node.flush_db(db));
    }
    let id = is_hard.then(|| NodeId::random(&mut ctx.node.rng));
    let shard = NodeId::random(&mut ctx.node.rng);
    cluster(ctx)?.reset(id, shard);
    ctx.reply.ok();
    Ok(())
}

/// Deletes the keys of a slot.
pub fn flush_slot(ctx: &mut Ctx) -> Outcome {
    cluster(ctx)?;
    let slot = slot(ctx.argv[2])?;
    match ctx.argv[3..] {
        [] => {}
        [word] if word.eq_ignore_ascii_case(b"SYNC") || word.eq_ignore_ascii_case(b"ASYNC") => {}
        _ => return Err(error::SYNTAX),
    }
    ctx.node.delete_slot(slot);
    ctx.reply.ok();
    Ok(())
}
