//! INFO, the server's report, section by section. `info.txt` has the fields of each release in their order; a field with `{}` is
//! computed here, the others concern what a node does not have: files, threads, an allocator, processor time.
//!
//! A line `= letters name default Title` begins a section, which is in the default report or (`-`) not. The letters name the
//! releases as in `docs.txt`.

use std::collections::BTreeMap;

use super::ctx::Ctx;
use super::docs::letter;
use super::modules::Module;
use crate::error::Outcome;
use crate::node::Node;
use crate::node::replication::{Replication, Role};
use crate::node::session::SubscriptionKind;
use crate::store::{Db, Entry, Value};
use crate::version::Version;

const FIELDS: &str = include_str!("info.txt");

/// The sections that sentinels have.
const OF_SENTINELS: [&str; 5] = ["server", "clients", "stats", "cpu", "sentinel"];

pub fn info(ctx: &mut Ctx) -> Outcome {
    let asked: Vec<Vec<u8>> = ctx.argv[1..].iter().map(|word| word.to_ascii_lowercase()).collect();
    let has = |word: &str| asked.iter().any(|asked| asked == word.as_bytes());
    let all = has("all") || has("everything");
    let default = asked.is_empty() || has("default");
    let letter = letter(ctx.version());
    let mut report = String::new();
    let mut is_shown = false;
    for line in FIELDS.lines() {
        if let Some(section) = line.strip_prefix("= ") {
            let mut words = section.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (letters, name, kind, title) = (word(), word(), word(), word());
            let is_asked =
                all || default && kind == "default" || has(name) || name == "modules" && has("module_list");
            is_shown = match &ctx.node.sentinel {
                Some(_) => (is_asked || default || all) && OF_SENTINELS.contains(&name),
                None => is_asked && letters.contains(letter) && name != "sentinel",
            };
            if is_shown {
                report += if report.is_empty() { "# " } else { "\r\n# " };
                report += title;
                report += "\r\n";
            }
        } else if let Some((letters, field)) = line.split_once(' ').filter(|_| is_shown)
            && letters.contains(letter)
        {
            write_field(&mut report, field, ctx.node);
        }
    }
    ctx.reply.verbatim(b"txt", report.as_bytes());
    Ok(())
}

fn write_field(report: &mut String, field: &str, node: &Node) {
    match field {
        "{modules}" => *report += &modules(node),
        "{sentinel}" => {
            let sentinel = node.sentinel.as_deref();
            *report +=
                &sentinel.map_or_else(String::new, |own| super::sentinel::info(own, node.config.version));
        }
        "{commandstats}" => *report += &command_stats(node),
        "{errorstats}" => *report += &error_stats(node),
        "{latencystats}" => *report += &latency_stats(node),
        "{keysizes}" => *report += &key_sizes(node),
        "{keyspace}" => *report += &keyspace(node),
        _ => {
            match field.strip_suffix("{}") {
                Some(name) => {
                    *report += name;
                    *report += &value(node, name.trim_end_matches(':'));
                }
                None => *report += field,
            }
            *report += "\r\n";
        }
    }
}

/// Returns the value of a field, perhaps with further lines.
fn value(node: &Node, name: &str) -> String {
    server(node, name)
        .or_else(|| clients(node, name))
        .or_else(|| memory(node, name))
        .or_else(|| stats(node, name))
        .or_else(|| replication(node, name))
        .unwrap_or_default()
}

fn server(node: &Node, name: &str) -> Option<String> {
    let version = node.config.version;
    let uptime_s = (node.store.now.mono_us - node.stats.started_us) / 1_000_000;
    let port = node.config.get("port").unwrap_or("0");
    Some(match name {
        "redis_mode" | "server_mode" => node.mode().to_owned(),
        "cluster_enabled" => u8::from(node.cluster.is_some()).to_string(),
        "redis_version" => version.redis_release().to_owned(),
        "valkey_version" => version.full().to_owned(),
        "os" => format!("Redlatch {}", env!("CARGO_PKG_VERSION")),
        "process_id" => node.config.process_id.to_string(),
        "config_file" => node.config.config_file.clone().unwrap_or_default(),
        "run_id" => node.run_id.clone(),
        "tcp_port" => port.to_owned(),
        "server_time_usec" => node.store.now.wall_us().to_string(),
        "uptime_in_seconds" => uptime_s.to_string(),
        "uptime_in_days" => (uptime_s / 86_400).to_string(),
        "lru_clock" => ((node.store.now.wall_ms() / 1000) & 0xff_ffff).to_string(),
        "listener0" => {
            let addresses = node.config.get("bind").unwrap_or_default().split_ascii_whitespace();
            let addresses: String = addresses.map(|address| format!("bind={address},")).collect();
            format!("name=tcp,{addresses}port={port}")
        }
        _ => return None,
    })
}

fn clients(node: &Node, name: &str) -> Option<String> {
    let sessions = node.sessions.iter();
    let count = match name {
        "connected_clients" => node.sessions.len(),
        "maxclients" => node.config.maxclients,
        "blocked_clients" => sessions.filter(|session| session.blocked.is_some()).count(),
        "tracking_clients" => node.tracking.clients,
        "pubsub_clients" => sessions.filter(|session| session.is_subscriber()).count(),
        "watching_clients" => sessions.filter(|session| !session.watched.is_empty()).count(),
        "total_watched_keys" => node.watchers.len(),
        "total_blocking_keys" => node.blocking.keys(),
        "io_thread_0" => return Some(format!("clients={},reads=0,writes=0", node.sessions.len())),
        _ => return None,
    };
    Some(count.to_string())
}

/// Reports the memory in use. All that is estimated belongs to the keys, and nothing is known of earlier times.
fn memory(node: &Node, name: &str) -> Option<String> {
    let (bytes, startup) = (node.used_memory(), node.startup_memory());
    let maxmemory = node.config.eviction.maxmemory;
    Some(match name {
        "used_memory" | "used_memory_rss" | "used_memory_peak" => bytes.to_string(),
        "allocator_allocated" | "allocator_active" | "allocator_resident" => bytes.to_string(),
        "used_memory_human" | "used_memory_rss_human" | "used_memory_peak_human" => human(bytes),
        "used_memory_peak_time" => (node.store.now.wall_ms() / 1000).to_string(),
        "used_memory_overhead" | "used_memory_startup" => startup.to_string(),
        "used_memory_dataset" => (bytes - startup).to_string(),
        "used_memory_dataset_perc" => format!("{}.00%", if bytes > startup { 100 } else { 0 }),
        "number_of_cached_scripts" => node.scripts.len().to_string(),
        "number_of_functions" => node.functions.len().to_string(),
        "number_of_libraries" => node.functions.libraries().len().to_string(),
        "used_memory_functions" => node.functions.bytes().to_string(),
        "maxmemory" => maxmemory.to_string(),
        "maxmemory_human" => human(maxmemory),
        "maxmemory_policy" => node.config.get("maxmemory-policy").unwrap_or("noeviction").to_owned(),
        _ => return None,
    })
}

fn human(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "K", "M"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{bytes}B") } else { format!("{size:.2}{unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.2}G")
}

/// Reports on saves and on what the node has counted.
fn stats(node: &Node, name: &str) -> Option<String> {
    let (stats, saved, tracking) = (&node.stats, node.stats.saved, node.tracking.sizes());
    let saved_s = (node.store.now.wall_offset_ms + (saved.at_us / 1000) as i64) / 1000;
    let [denied_auth, denied_command, denied_key, denied_channel] = node.acl.log.refused;
    let count = match name {
        "rdb_changes_since_last_save" => node.dirty - saved.dirty,
        "rdb_last_save_time" => saved_s as u64,
        "rdb_saves" => saved.count,
        "total_connections_received" => stats.connections_received,
        "total_commands_processed" => stats.commands_processed,
        "rejected_connections" => stats.rejected_connections,
        "expired_subkeys" | "expired_fields" => stats.expired_hash_fields,
        "expired_keys" => stats.expired_keys,
        "evicted_keys" => stats.evicted_keys,
        "keyspace_hits" => stats.keyspace_hits,
        "keyspace_misses" => stats.keyspace_misses,
        "pubsub_channels" => node.pubsub.len(SubscriptionKind::Channel) as u64,
        "pubsub_patterns" => node.pubsub.len(SubscriptionKind::Pattern) as u64,
        "pubsubshard_channels" => node.pubsub.len(SubscriptionKind::Shard) as u64,
        "tracking_total_keys" => tracking[0] as u64,
        "tracking_total_items" => tracking[1] as u64,
        "tracking_total_prefixes" => tracking[2] as u64,
        "total_error_replies" => stats.error_replies,
        "client_output_buffer_limit_disconnections" => stats.output_limit_disconnections,
        "acl_access_denied_auth" => denied_auth,
        "acl_access_denied_cmd" => denied_command,
        "acl_access_denied_key" => denied_key,
        "acl_access_denied_channel" => denied_channel,
        _ => return None,
    };
    Some(count.to_string())
}

fn replication(node: &Node, name: &str) -> Option<String> {
    let Replication { role, master, replicas, offset, .. } = &node.replication;
    let has_backlog = matches!(role, Role::Replica { .. }) || !replicas.is_empty();
    Some(match name {
        "role" => match role {
            Role::Master => "master".to_owned(),
            Role::Replica { .. } | Role::Stray => {
                let (status, last_io) = if master.online { ("up", 0) } else { ("down", -1) };
                let link = link_fields(node);
                let flag = |name: &str| u8::from(node.config.get(name) == Some("yes"));
                format!(
                    "slave\r\nmaster_host:{}\r\nmaster_port:{}\r\nmaster_link_status:{status}\r\n\
                     master_last_io_seconds_ago:{last_io}\r\nmaster_sync_in_progress:0\r\n\
                     slave_read_repl_offset:{offset}\r\nslave_repl_offset:{offset}\r\n{}slave_priority:{}\r\n\
                     slave_read_only:{}\r\nreplica_announced:{}",
                    master.host,
                    master.port,
                    link,
                    node.config.get("replica-priority").unwrap_or("100"),
                    flag("replica-read-only"),
                    flag("replica-announced"),
                )
            }
        },
        "connected_slaves" => {
            // Releases with threads for sockets name that of each replica.
            let thread =
                if node.config.version.has("8.2.0", crate::version::NEVER) { ",io-thread=0" } else { "" };
            let lines = replicas.iter().enumerate().map(|(index, replica)| {
                let state = if replica.online { "online" } else { "wait_bgsave" };
                format!(
                    "\r\nslave{index}:ip=127.0.0.1,port={},state={state},offset={},lag=0{thread}",
                    replica.port, replica.offset
                )
            });
            format!("{}{}", replicas.len(), lines.collect::<String>())
        }
        "master_replid" => node.replication_id.clone(),
        "master_replid2" => "0".repeat(40),
        "master_repl_offset" => offset.to_string(),
        "repl_backlog_active" | "repl_backlog_first_byte_offset" => u8::from(has_backlog).to_string(),
        "repl_backlog_histlen" => match has_backlog {
            true => offset.to_string(),
            false => "0".to_owned(),
        },
        "repl_backlog_size" => node.config.get("repl-backlog-size").unwrap_or("0").to_owned(),
        _ => return None,
    })
}

/// Reports on the link of a replica to its master, as releases do that tell more or less about it.
fn link_fields(node: &Node) -> String {
    let version = node.config.version;
    let has = |release: &str| version.has(release, crate::version::NEVER);
    let seconds = |since_ms: u64| node.store.now.mono_ms().saturating_sub(since_ms) / 1000;
    let down_s = node.replication.down_ms.map(seconds);
    let mut fields = String::new();
    let mut add = |field: String| fields += &format!("{field}\r\n");
    if has("8.0.0") {
        add("replica_full_sync_buffer_size:0".to_owned());
        add("replica_full_sync_buffer_peak:0".to_owned());
    }
    let tells_of_attempts = has("8.2.0");
    if tells_of_attempts {
        add("master_current_sync_attempts:1".to_owned());
        add("master_total_sync_attempts:1".to_owned());
    }
    match down_s {
        Some(down_s) => add(format!("master_link_down_since_seconds:{down_s}")),
        None if node.replication.role == Role::Stray => add("master_link_down_since_seconds:-1".to_owned()),
        None if tells_of_attempts => {
            add(format!("master_link_up_since_seconds:{}", seconds(0)));
            add("master_client_io_thread:0".to_owned());
        }
        None => {}
    }
    if tells_of_attempts {
        add(format!("total_disconnect_time_sec:{}", down_s.unwrap_or(0)));
    }
    fields
}

fn modules(node: &Node) -> String {
    (super::modules::built_in(node.config.version).iter())
        .map(|Module { name, options, .. }| {
            format!("module:name={name},ver=1,api=1,filters=0,usedby=[],using=[],options=[{options}]\r\n")
        })
        .collect()
}

fn command_stats(node: &Node) -> String {
    (node.stats.commands())
        .map(|(name, stats)| {
            format!(
                "cmdstat_{name}:calls={},usec=0,usec_per_call=0.00,rejected_calls={},failed_calls={}\r\n",
                stats.calls, stats.rejected, stats.failed
            )
        })
        .collect()
}

/// Reports the configured percentiles of every command that was called: commands take no time.
fn latency_stats(node: &Node) -> String {
    let percentiles = node.config.get("latency-tracking-info-percentiles").unwrap_or_default();
    let percentiles: Vec<String> =
        percentiles.split_ascii_whitespace().map(|percentile| format!("p{percentile}=0.000")).collect();
    let called = node.stats.commands().filter(|(_, stats)| stats.calls > 0);
    called.map(|(name, _)| format!("latency_percentiles_usec_{name}:{}\r\n", percentiles.join(","))).collect()
}

fn error_stats(node: &Node) -> String {
    node.stats.errors().map(|(code, count)| format!("errorstat_{code}:count={count}\r\n")).collect()
}

/// Counts, for each database and type, the keys of each size: the length of a string, or how many elements others have.
fn key_sizes(node: &Node) -> String {
    let mut report = String::new();
    for (index, db) in node.store.dbs.iter().enumerate() {
        let mut counts = [const { BTreeMap::<usize, usize>::new() }; SIZED.len()];
        for (_, _, entry) in db.iter() {
            let (kind, size) = match &entry.value {
                Value::String(string) => (0, string.len()),
                Value::List(list) => (1, list.len()),
                Value::Set(set) => (2, set.len()),
                Value::SortedSet(set) => (3, set.len()),
                Value::Hash(hash) => (4, hash.len()),
                Value::Stream(_) => continue,
            };
            *counts[kind].entry(size.checked_ilog2().map_or(0, |power| 1 << power)).or_default() += 1;
        }
        for (name, counts) in SIZED.iter().zip(&counts).filter(|(_, counts)| !counts.is_empty()) {
            let bins: Vec<String> =
                counts.iter().map(|(least, count)| format!("{}={count}", short(*least))).collect();
            report += &format!("db{index}_distrib_{name}:{}\r\n", bins.join(","));
        }
    }
    report
}

/// The types of values in the order in which their sizes are reported.
const SIZED: [&str; 5] = ["strings_sizes", "lists_items", "sets_items", "zsets_items", "hashes_items"];

/// Returns a power of two with its unit.
fn short(number: usize) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let thousands = number.checked_ilog2().unwrap_or(0) / 10;
    format!("{}{}", number >> (10 * thousands), UNITS[thousands as usize])
}

fn keyspace(node: &Node) -> String {
    let version = node.config.version;
    let has_timed_fields =
        |entry: &Entry| matches!(&entry.value, Value::Hash(hash) if hash.next_expiry_ms().is_some());
    let timed = |db: &Db| db.iter().filter(|(_, _, entry)| has_timed_fields(entry)).count();
    let subexpiry = |db: &Db| match version {
        version if version >= Version::V7_4 => format!(",subexpiry={}", timed(db)),
        version if version.is_valkey_since(Version::Valkey9_0) => {
            format!(",keys_with_volatile_items={}", timed(db))
        }
        _ => String::new(),
    };
    (node.store.dbs.iter().enumerate())
        .filter(|(_, db)| !db.is_empty())
        .map(|(index, db)| {
            format!("db{index}:keys={},expires={},avg_ttl=0{}\r\n", db.len(), db.volatile(), subexpiry(db))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Config;
    use crate::rng::Rng;
    use crate::stages::NoStages;
    use crate::world::clock::{Clock, ClockMode};

    #[test]
    fn every_computed_field_has_a_value() {
        let now = Clock::new(ClockMode::Manual, 0).now();
        let mut config = Config::new(Version::V8_6);
        config.config_file = Some("redis.conf".to_owned());
        let node = Node::new(0, config, Rng::new(1), now, std::rc::Rc::new(NoStages));
        for name in FIELDS.lines().filter_map(|line| line.split_once(' ')?.1.strip_suffix(":{}")) {
            assert_ne!(value(&node, name), "", "{name}");
        }
    }
}
