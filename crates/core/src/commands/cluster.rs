//! CLUSTER and the commands of cluster mode, which a server that runs without `cluster-enabled` refuses.

use super::command::*;
use super::ctx::Ctx;
use super::{cluster_changes as changes, cluster_reports as reports};
use crate::error::{Error, Outcome};

const LOADS_SINCE_7_2: &[Change] = &[Change { since: ("7.2.0", "8.0.0"), apply: |row| row.flags |= LOADING }];
const LOADS_IN_VALKEY: &[Change] = &[Change { since: (NEVER, "8.0.0"), apply: |row| row.flags |= LOADING }];

pub const COMMANDS: &[Command] = &[
    Command {
        name: "asking",
        arity: 1,
        since: "3.0.0",
        flags: FAST,
        acl: &["connection"],
        summary: "Announces that a redirection is followed.",
        run: changes::asking,
        ..Command::of(Group::Cluster)
    },
    Command {
        name: "clusterscan",
        arity: -2,
        since: NEVER,
        since_valkey: "9.1.0",
        flags: READONLY,
        acl: &["keyspace"],
        keys: &[key(&["not_key"], 1)],
        keys_of_calls: Some(&[]),
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        summary: "Walks through the keys of a cluster.",
        complexity: "O(1)",
        run: refuse,
        ..Command::of(Group::Cluster)
    },
    Command {
        name: "trimslots",
        arity: -5,
        since: "8.4.0",
        since_valkey: NEVER,
        flags: WRITE,
        acl: &["keyspace", "dangerous"],
        summary: "Removes the keys of hash slots that the node lost.",
        complexity: "O(N)",
        run: refuse,
        ..Command::of(Group::Server)
    },
    Command {
        name: "cluster",
        arity: -2,
        since: "3.0.0",
        summary: "Commands for Redis Cluster.",
        complexity: "Depends on subcommand.",
        subcommands: &[
            Command {
                name: "cluster|addslots",
                arity: -3,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Assigns hash slots to the node.",
                complexity: "O(N)",
                run: changes::add_slots,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|addslotsrange",
                arity: -4,
                since: "7.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Assigns ranges of hash slots to the node.",
                complexity: "O(N)",
                run: changes::add_slot_ranges,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|bumpepoch",
                arity: 2,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                tips: &["nondeterministic_output"],
                summary: "Advances the configuration epoch.",
                complexity: "O(1)",
                run: changes::bump_epoch,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|cancelslotmigrations",
                arity: 2,
                since: NEVER,
                since_valkey: "9.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Cancels the migrations of slots.",
                complexity: "O(N)",
                run: refuse,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|count-failure-reports",
                arity: 3,
                since: "3.0.0",
                flags: ADMIN | STALE,
                tips: &["nondeterministic_output"],
                summary: "Counts the failure reports about a node.",
                complexity: "O(N)",
                run: reports::count_failure_reports,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|countkeysinslot",
                arity: 3,
                since: "3.0.0",
                flags: STALE,
                summary: "Counts the keys of a hash slot.",
                complexity: "O(1)",
                run: reports::count_keys,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|delslots",
                arity: -3,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Takes hash slots from the node.",
                complexity: "O(N)",
                run: changes::delete_slots,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|delslotsrange",
                arity: -4,
                since: "7.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Takes ranges of hash slots from the node.",
                complexity: "O(N)",
                run: changes::delete_slot_ranges,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|failover",
                arity: -2,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Makes a replica take over from its master.",
                complexity: "O(1)",
                run: changes::failover,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|flushslot",
                arity: -3,
                since: NEVER,
                since_valkey: "9.0.0",
                flags: WRITE | ADMIN | NO_ASYNC_LOADING,
                acl: &["keyspace"],
                summary: "Removes the keys of a hash slot.",
                complexity: "O(N)",
                run: changes::flush_slot,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|flushslots",
                arity: 2,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Takes all hash slots from the node.",
                complexity: "O(1)",
                run: changes::flush_slots,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|forget",
                arity: 3,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Removes a node from the nodes table.",
                complexity: "O(1)",
                run: changes::forget,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|getkeysinslot",
                arity: 4,
                since: "3.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Lists keys of a hash slot.",
                complexity: "O(log(N))",
                run: reports::get_keys,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|getslotmigrations",
                arity: 2,
                since: NEVER,
                since_valkey: "9.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Lists the migrations of slots.",
                complexity: "O(N)",
                run: refuse,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|help",
                arity: 2,
                since: "5.0.0",
                flags: LOADING | STALE,
                summary: "Lists the subcommands.",
                complexity: "O(1)",
                run: reports::help,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|info",
                arity: 2,
                since: "3.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Describes the state of the node.",
                changes: LOADS_IN_VALKEY,
                complexity: "O(1)",
                run: reports::info,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|keyslot",
                arity: 3,
                since: "3.0.0",
                flags: STALE,
                summary: "Computes the hash slot of a key.",
                complexity: "O(N)",
                run: reports::key_slot,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|links",
                arity: 2,
                since: "7.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Lists the links to other nodes.",
                complexity: "O(N)",
                run: reports::links,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|meet",
                arity: -4,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Makes a node join the cluster.",
                complexity: "O(1)",
                run: changes::meet,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|migrateslots",
                arity: -4,
                since: NEVER,
                since_valkey: "9.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Moves hash slots to other nodes.",
                complexity: "O(N)",
                run: refuse,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|migration",
                arity: -4,
                since: "8.4.0",
                since_valkey: NEVER,
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Starts, watches and cancels migrations of slots.",
                complexity: "O(N)",
                run: refuse,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|myid",
                arity: 2,
                since: "3.0.0",
                flags: STALE,
                summary: "Tells the id of the node.",
                changes: LOADS_IN_VALKEY,
                complexity: "O(1)",
                run: reports::my_id,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|myshardid",
                arity: 2,
                since: "7.2.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Tells the id of the shard of the node.",
                changes: LOADS_IN_VALKEY,
                complexity: "O(1)",
                run: reports::my_shard_id,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|nodes",
                arity: 2,
                since: "3.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Describes the cluster as the node sees it.",
                changes: LOADS_IN_VALKEY,
                complexity: "O(N)",
                run: reports::nodes,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|replicas",
                arity: 3,
                since: "5.0.0",
                flags: ADMIN | STALE,
                tips: &["nondeterministic_output"],
                summary: "Lists the replicas of a master.",
                complexity: "O(1)",
                run: reports::replicas,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|replicate",
                arity: 3,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Makes the node a replica.",
                changes: &[Change { since: (NEVER, "9.0.0"), apply: |row| row.arity = -3 }],
                complexity: "O(1)",
                run: changes::replicate,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|reset",
                arity: -2,
                since: "3.0.0",
                flags: ADMIN | NOSCRIPT | STALE,
                summary: "Resets the node.",
                complexity: "O(N)",
                run: changes::reset,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|saveconfig",
                arity: 2,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Writes the cluster configuration to disk.",
                complexity: "O(1)",
                run: changes::save_config,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|set-config-epoch",
                arity: 3,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Sets the configuration epoch of a new node.",
                complexity: "O(1)",
                run: changes::set_config_epoch,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|setslot",
                arity: -4,
                since: "3.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                summary: "Binds a hash slot to a node.",
                complexity: "O(1)",
                run: changes::set_slot,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|shards",
                arity: 2,
                since: "7.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Maps hash slots to shards.",
                changes: LOADS_SINCE_7_2,
                complexity: "O(N)",
                run: reports::shards,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|slaves",
                arity: 3,
                since: "3.0.0",
                flags: ADMIN | STALE,
                tips: &["nondeterministic_output"],
                summary: "Lists the replicas of a master.",
                complexity: "O(1)",
                run: reports::replicas,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|slot-stats",
                arity: -4,
                since: "8.2.0",
                since_valkey: "8.0.0",
                flags: LOADING | STALE,
                tips: &["nondeterministic_output", "request_policy:all_shards"],
                summary: "Lists statistics of hash slots.",
                complexity: "O(N)",
                run: reports::slot_stats,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|slots",
                arity: 2,
                since: "3.0.0",
                flags: STALE,
                tips: &["nondeterministic_output"],
                summary: "Maps hash slots to nodes.",
                changes: LOADS_SINCE_7_2,
                complexity: "O(N)",
                run: reports::slots,
                ..Command::of(Group::Cluster)
            },
            Command {
                name: "cluster|syncslots",
                arity: -3,
                since: "8.4.0",
                since_valkey: "9.0.0",
                flags: ADMIN | STALE | NO_ASYNC_LOADING,
                tips: &["nondeterministic_output"],
                summary: "Exchanges slots between nodes; internal.",
                changes: &[Change { since: (NEVER, "9.0.0"), apply: |row| row.tips = &[] }],
                complexity: "O(1)",
                run: refuse,
                ..Command::of(Group::Cluster)
            },
        ],
        ..Command::of(Group::Cluster)
    },
    Command {
        name: "readonly",
        arity: 1,
        since: "3.0.0",
        flags: LOADING | STALE | FAST,
        acl: &["connection"],
        summary: "Lets a connection read from a replica in a cluster.",
        run: changes::mark_reads,
        ..Command::of(Group::Cluster)
    },
    Command {
        name: "readwrite",
        arity: 1,
        since: "3.0.0",
        flags: LOADING | STALE | FAST,
        acl: &["connection"],
        summary: "Ends the effect of READONLY.",
        run: changes::mark_reads,
        ..Command::of(Group::Cluster)
    },
];

/// The error of a node that is not in cluster mode.
pub(super) const DISABLED: Error = Error::new("ERR This instance has cluster support disabled");

/// Refuses what clusters of this process do not have, and everything if the node is not in cluster mode.
fn refuse(ctx: &mut Ctx) -> Outcome {
    if ctx.node.cluster.is_none() {
        return Err(DISABLED);
    }
    Err(format!("ERR '{}' is not supported", ctx.command.name).into())
}
