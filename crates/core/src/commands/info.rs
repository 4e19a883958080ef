//! INFO, the server's report, section by section.

use super::ctx::Ctx;
use super::modules::Module;
use crate::error::Outcome;
use crate::node::Node;
use crate::node::replication::{Replication, Role};
use crate::node::session::SubscriptionKind;
use crate::version::Version;

/// A section's name, whether it belongs to the default sections, and its lines.
type Section = (&'static str, bool, fn(&Node) -> String);

const SECTIONS: [Section; 12] = [
    ("server", true, server),
    ("clients", true, clients),
    ("memory", true, memory),
    ("persistence", true, persistence),
    ("stats", true, stats),
    ("replication", true, replication),
    ("cpu", true, cpu),
    ("modules", true, modules),
    ("commandstats", false, command_stats),
    ("errorstats", true, error_stats),
    ("cluster", true, |_| "cluster_enabled:0\r\n".to_owned()),
    ("keyspace", true, keyspace),
];

pub fn info(ctx: &mut Ctx) -> Outcome {
    let asked: Vec<Vec<u8>> = ctx.argv[1..].iter().map(|word| word.to_ascii_lowercase()).collect();
    let has = |word: &str| asked.iter().any(|asked| asked == word.as_bytes());
    let all = has("all") || has("everything");
    let default = asked.is_empty() || has("default");
    let parts: Vec<String> = SECTIONS
        .iter()
        .filter(|(name, is_default, _)| all || default && *is_default || has(name))
        .map(|(name, _, lines)| format!("# {}\r\n{}", title(name), lines(ctx.node)))
        .collect();
    ctx.reply.verbatim(b"txt", parts.join("\r\n").as_bytes());
    Ok(())
}

fn title(name: &str) -> String {
    match name {
        "cpu" => "CPU".to_owned(),
        _ => name[..1].to_ascii_uppercase() + &name[1..],
    }
}

fn server(node: &Node) -> String {
    let version = node.config.version;
    let now = node.store.now;
    let uptime_s = (now.mono_us - node.stats.started_us) / 1_000_000;
    let product = match version.is_valkey() {
        true => {
            format!("server_name:valkey\r\nvalkey_version:{}\r\nvalkey_release_stage:ga\r\n", version.full())
        }
        false => String::new(),
    };
    let mode = if version.is_valkey() { "server_mode" } else { "redis_mode" };
    format!(
        "redis_version:{}\r\n{product}redis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_build_id:0000000000000000\r\n\
         {mode}:standalone\r\nos:Redlatch {}\r\narch_bits:64\r\nmonotonic_clock:simulated\r\nmultiplexing_api:tokio\r\n\
         process_id:{}\r\nprocess_supervised:no\r\nrun_id:{}\r\ntcp_port:{}\r\nserver_time_usec:{}\r\n\
         uptime_in_seconds:{uptime_s}\r\nuptime_in_days:{}\r\nhz:10\r\nconfigured_hz:10\r\nlru_clock:{}\r\n\
         executable:redlatch\r\nconfig_file:\r\n",
        version.redis_release(),
        env!("CARGO_PKG_VERSION"),
        node.config.process_id,
        node.run_id,
        node.config.get("port").unwrap_or("0"),
        now.wall_us(),
        uptime_s / 86_400,
        (now.wall_ms() / 1000) & 0xff_ffff,
    )
}

fn clients(node: &Node) -> String {
    let subscribers = node.sessions.iter().filter(|session| session.is_subscriber()).count();
    let watching = node.sessions.iter().filter(|session| !session.watched.is_empty()).count();
    let blocked = node.sessions.iter().filter(|session| session.blocked.is_some()).count();
    let mut text = format!(
        "connected_clients:{}\r\ncluster_connections:0\r\nmaxclients:{}\r\nclient_recent_max_input_buffer:0\r\n\
         client_recent_max_output_buffer:0\r\nblocked_clients:{blocked}\r\ntracking_clients:{}\r\n",
        node.sessions.len(),
        node.config.maxclients,
        node.tracking.clients,
    );
    if node.config.version > Version::V7_2 {
        text += &format!("pubsub_clients:{subscribers}\r\nwatching_clients:{watching}\r\n");
    }
    text += "clients_in_timeout_table:0\r\n";
    if node.config.version > Version::V7_2 {
        text += &format!("total_watched_keys:{}\r\n", node.watchers.len());
    }
    if node.config.version >= Version::V7_2 {
        text +=
            &format!("total_blocking_keys:{}\r\ntotal_blocking_keys_on_nokey:0\r\n", node.blocking.keys());
    }
    text
}

fn memory(node: &Node) -> String {
    let bytes = node.used_memory();
    let (startup, maxmemory) = (node.startup_memory(), node.config.eviction.maxmemory);
    // All that is estimated belongs to the keys, and nothing is known of earlier times.
    let dataset = bytes - startup;
    let share = if dataset > 0 { 100 } else { 0 };
    let shown = human(bytes);
    format!(
        "used_memory:{bytes}\r\nused_memory_human:{shown}\r\nused_memory_rss:{bytes}\r\n\
         used_memory_rss_human:{shown}\r\nused_memory_peak:{bytes}\r\nused_memory_peak_human:{shown}\r\n\
         used_memory_peak_perc:100.00%\r\nused_memory_overhead:{startup}\r\nused_memory_startup:{startup}\r\n\
         used_memory_dataset:{dataset}\r\nused_memory_dataset_perc:{share}.00%\r\nused_memory_lua:0\r\nnumber_of_cached_scripts:{}\r\nnumber_of_functions:{}\r\n\
         number_of_libraries:{}\r\nused_memory_functions:{}\r\nmaxmemory:{}\r\nmaxmemory_human:{}\r\nmaxmemory_policy:{}\r\n\
         mem_not_counted_for_evict:0\r\nmem_fragmentation_ratio:1.00\r\nmem_allocator:rust\r\nactive_defrag_running:0\r\nlazyfree_pending_objects:0\r\n\
         lazyfreed_objects:0\r\n",
        node.scripts.len(),
        node.functions.len(),
        node.functions.libraries().len(),
        node.functions.bytes(),
        maxmemory,
        human(maxmemory),
        node.config.get("maxmemory-policy").unwrap_or("noeviction"),
    )
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

fn persistence(node: &Node) -> String {
    let saved = node.stats.saved;
    let saved_s = (node.store.now.wall_offset_ms + (saved.at_us / 1000) as i64) / 1000;
    let failures =
        if node.config.version >= Version::V8_6 { "rdb_saves_consecutive_failures:0\r\n" } else { "" };
    format!(
        "loading:0\r\nasync_loading:0\r\ncurrent_cow_peak:0\r\ncurrent_cow_size:0\r\ncurrent_cow_size_age:0\r\n\
         current_fork_perc:0.00\r\ncurrent_save_keys_processed:0\r\ncurrent_save_keys_total:0\r\n\
         rdb_changes_since_last_save:{}\r\nrdb_bgsave_in_progress:0\r\nrdb_last_save_time:{saved_s}\r\n\
         rdb_last_bgsave_status:ok\r\nrdb_last_bgsave_time_sec:-1\r\nrdb_current_bgsave_time_sec:-1\r\n\
         rdb_saves:{}\r\n{failures}rdb_last_cow_size:0\r\nrdb_last_load_keys_expired:0\r\n\
         rdb_last_load_keys_loaded:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\n\
         aof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:-1\r\naof_current_rewrite_time_sec:-1\r\n\
         aof_last_bgrewrite_status:ok\r\naof_rewrites:0\r\naof_rewrites_consecutive_failures:0\r\n\
         aof_last_write_status:ok\r\naof_last_cow_size:0\r\nmodule_fork_in_progress:0\r\n\
         module_fork_last_cow_size:0\r\n",
        node.dirty - saved.dirty,
        saved.count,
    )
}

fn stats(node: &Node) -> String {
    let (stats, tracking) = (&node.stats, node.tracking.sizes());
    let mut text = format!(
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\ninstantaneous_ops_per_sec:0\r\n\
         rejected_connections:{}\r\nsync_full:0\r\nsync_partial_ok:0\r\nsync_partial_err:0\r\n{}expired_keys:{}\r\n\
         expired_stale_perc:0.00\r\nexpired_time_cap_reached_count:0\r\nevicted_keys:{}\r\nevicted_clients:0\r\n\
         keyspace_hits:{}\r\nkeyspace_misses:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\n\
         pubsubshard_channels:{}\r\nlatest_fork_usec:0\r\ntotal_forks:0\r\ntracking_total_keys:{}\r\n\
         tracking_total_items:{}\r\ntracking_total_prefixes:{}\r\ntotal_error_replies:{}\r\nclient_output_buffer_limit_disconnections:{}\r\n",
        stats.connections_received,
        stats.commands_processed,
        stats.rejected_connections,
        match node.config.version {
            version if version >= Version::V7_4 =>
                format!("expired_subkeys:{}\r\n", stats.expired_hash_fields),
            _ => String::new(),
        },
        stats.expired_keys,
        stats.evicted_keys,
        stats.keyspace_hits,
        stats.keyspace_misses,
        node.pubsub.len(SubscriptionKind::Channel),
        node.pubsub.len(SubscriptionKind::Pattern),
        node.pubsub.len(SubscriptionKind::Shard),
        tracking[0],
        tracking[1],
        tracking[2],
        stats.error_replies,
        stats.output_limit_disconnections,
    );
    if node.config.version >= Version::V7_2 {
        for (name, count) in ["auth", "cmd", "key", "channel"].iter().zip(node.acl.log.refused) {
            text += &format!("acl_access_denied_{name}:{count}\r\n");
        }
    }
    text
}

fn modules(node: &Node) -> String {
    (super::modules::built_in(node.config.version).iter())
        .map(|Module { name, options, .. }| {
            format!("module:name={name},ver=1,api=1,filters=0,usedby=[],using=[],options=[{options}]\r\n")
        })
        .collect()
}

fn replication(node: &Node) -> String {
    let Replication { role, master, replicas, offset, .. } = &node.replication;
    let mut text = match role {
        Role::Master => "role:master\r\n".to_owned(),
        Role::Replica { .. } => {
            let status = if master.online { "up" } else { "down" };
            format!(
                "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:{}\r\nmaster_link_status:{status}\r\n\
                 master_last_io_seconds_ago:0\r\nmaster_sync_in_progress:0\r\nslave_read_repl_offset:{offset}\r\n\
                 slave_repl_offset:{offset}\r\nslave_priority:100\r\nslave_read_only:1\r\nreplica_announced:1\r\n",
                master.port,
            )
        }
    };
    text += &format!("connected_slaves:{}\r\n", replicas.len());
    for (index, replica) in replicas.iter().enumerate() {
        let state = if replica.online { "online" } else { "wait_bgsave" };
        text += &format!(
            "slave{index}:ip=127.0.0.1,port={},state={state},offset={},lag=0\r\n",
            replica.port, replica.offset
        );
    }
    text += &format!(
        "master_failover_state:no-failover\r\nmaster_replid:{}\r\n\
         master_replid2:{}\r\nmaster_repl_offset:{offset}\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:0\r\n\
         repl_backlog_size:1048576\r\nrepl_backlog_first_byte_offset:0\r\nrepl_backlog_histlen:0\r\n",
        node.replication_id,
        "0".repeat(40),
    );
    text
}

/// Reports no processor time: a node has no clock to measure it with.
fn cpu(_: &Node) -> String {
    "used_cpu_sys:0.000000\r\nused_cpu_user:0.000000\r\nused_cpu_sys_children:0.000000\r\nused_cpu_user_children:0.000000\r\n"
        .to_owned()
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

fn error_stats(node: &Node) -> String {
    node.stats.errors().map(|(code, count)| format!("errorstat_{code}:count={count}\r\n")).collect()
}

fn keyspace(node: &Node) -> String {
    let subexpiry = match node.config.version {
        version if version >= Version::V7_4 => ",subexpiry=0",
        version if version.is_valkey_since(Version::Valkey9_0) => ",keys_with_volatile_items=0",
        _ => "",
    };
    (node.store.dbs.iter().enumerate())
        .filter(|(_, db)| !db.is_empty())
        .map(|(index, db)| {
            format!("db{index}:keys={},expires={},avg_ttl=0{subexpiry}\r\n", db.len(), db.volatile())
        })
        .collect()
}
