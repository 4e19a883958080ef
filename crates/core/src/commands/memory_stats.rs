//! MEMORY STATS. A node knows what its keys take, by estimate; it has no allocator, no buffers and no tables of its own to report.

use super::ctx::Ctx;
use crate::error::Outcome;
use crate::version::NEVER;

const ALWAYS: (&str, &str) = ("1.0.0", "");
const SINCE_7_4: (&str, &str) = ("7.4.0", "8.0.0");

/// The field in whose place the databases stand, each with fields of its own.
const DATABASES: &str = "db";

/// The fields in their order, with the first releases of Redis and of Valkey that have them.
const FIELDS: &[(&str, (&str, &str))] = &[
    ("peak.allocated", ALWAYS),
    ("total.allocated", ALWAYS),
    ("startup.allocated", ALWAYS),
    ("replication.backlog", ALWAYS),
    ("replica.fullsync.buffer", ("8.0.0", NEVER)),
    ("replicas.repl.buffer", (NEVER, "9.0.0")),
    ("clients.slaves", ALWAYS),
    ("clients.normal", ALWAYS),
    ("cluster.links", ALWAYS),
    ("cluster.slot_import", (NEVER, "9.0.0")),
    ("cluster.slot_export", (NEVER, "9.0.0")),
    ("aof.buffer", ALWAYS),
    ("lua.caches", ALWAYS),
    ("functions.caches", ALWAYS),
    ("script.VMs", ("8.0.0", NEVER)),
    (DATABASES, ALWAYS),
    ("overhead.db.hashtable.lut", SINCE_7_4),
    ("overhead.db.hashtable.rehashing", SINCE_7_4),
    ("overhead.total", ALWAYS),
    ("db.dict.rehashing.count", SINCE_7_4),
    ("keys.count", ALWAYS),
    ("keys.bytes-per-key", ALWAYS),
    ("dataset.bytes", ALWAYS),
    ("dataset.percentage", ALWAYS),
    ("peak.percentage", ALWAYS),
    ("allocator.allocated", ALWAYS),
    ("allocator.active", ALWAYS),
    ("allocator.resident", ALWAYS),
    ("allocator.muzzy", SINCE_7_4),
    ("allocator-fragmentation.ratio", ALWAYS),
    ("allocator-fragmentation.bytes", ALWAYS),
    ("allocator-rss.ratio", ALWAYS),
    ("allocator-rss.bytes", ALWAYS),
    ("rss-overhead.ratio", ALWAYS),
    ("rss-overhead.bytes", ALWAYS),
    ("fragmentation", ALWAYS),
    ("fragmentation.bytes", ALWAYS),
];

/// The first releases without the index of cluster slots among the fields of a database.
const WITHOUT_SLOT_INDEX: (&str, &str) = SINCE_7_4;

pub fn reply(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let (used, startup) = (ctx.node.used_memory(), ctx.node.startup_memory());
    let dbs = ctx.node.store.dbs.iter().enumerate();
    let filled: Vec<usize> = dbs.filter(|(_, db)| !db.is_empty()).map(|(index, _)| index).collect();
    let keys: u64 = ctx.node.store.dbs.iter().map(|db| db.len() as u64).sum();
    let fields = FIELDS.iter().filter(|(_, (redis, valkey))| version.has(redis, valkey));
    let names: Vec<&str> = fields.map(|(name, _)| *name).collect();
    let of_database = match version.has(WITHOUT_SLOT_INDEX.0, WITHOUT_SLOT_INDEX.1) {
        true => &["overhead.hashtable.main", "overhead.hashtable.expires"][..],
        false => {
            &["overhead.hashtable.main", "overhead.hashtable.expires", "overhead.hashtable.slot-to-keys"]
        }
    };
    let reply = &mut *ctx.reply;
    reply.map(names.len() - 1 + filled.len());
    for name in names {
        if name == DATABASES {
            for index in &filled {
                reply.bulk(format!("db.{index}").as_bytes());
                reply.map(of_database.len());
                for name in of_database {
                    reply.bulk(name.as_bytes());
                    reply.int(0);
                }
            }
            continue;
        }
        reply.bulk(name.as_bytes());
        match name {
            "dataset.percentage" | "peak.percentage" => reply.double(100.0),
            "allocator-fragmentation.ratio"
            | "allocator-rss.ratio"
            | "rss-overhead.ratio"
            | "fragmentation" => {
                reply.double(1.0);
            }
            "peak.allocated"
            | "total.allocated"
            | "allocator.allocated"
            | "allocator.active"
            | "allocator.resident" => reply.int(used as i64),
            "startup.allocated" | "overhead.total" => reply.int(startup as i64),
            "keys.count" => reply.int(keys as i64),
            "keys.bytes-per-key" => reply.int((used - startup).checked_div(keys).unwrap_or(0) as i64),
            "dataset.bytes" => reply.int((used - startup) as i64),
            _ => reply.int(0),
        }
    }
    Ok(())
}
