//! SIM.KEY: silent changes to keys: a lost key, a wrong TTL. Also shows keys and the digest of the state.

use super::{Answer, Context, Lab};
use crate::control::args::{Args, MAX_MS, SimError};
use crate::handle::DumpedKey;
use redlatch_core::glob;
use redlatch_core::node::Node;
use redlatch_core::store::rdb;

pub const USAGE: &[&str] = &[
    "SIM.KEY LOSE <key> [DB <n>] [NODE <n>]",
    "SIM.KEY TTL <key> <ms | -1> [DB <n>] [NODE <n>]",
    "SIM.KEY DUMP [<pattern>] [DB <n>] [NODE <n>]",
    "SIM.KEY DIGEST",
];

/// Identifies a database of a node. The default is database 0 of node 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbId {
    /// The number of the node.
    pub node: usize,
    /// The number of the database.
    pub db: usize,
}

/// A parsed SIM.KEY.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyCommand {
    /// Removes a key without a keyspace event, a message or a WATCH that fails. Returns 1 if the key existed.
    Lose { key: Vec<u8>, db: DbId },
    /// Sets the TTL of a key, in ms; `None`: the key never expires.
    Ttl { key: Vec<u8>, ttl_ms: Option<u64>, db: DbId },
    /// Returns matching keys with type, TTL in ms (-1: none) and DUMP, sorted.
    Dump { pattern: Vec<u8>, db: DbId },
    /// Returns a digest of the state of all nodes.
    Digest,
}

impl KeyCommand {
    pub fn parse(args: &mut Args, context: &Context) -> Result<KeyCommand, SimError> {
        Ok(match &args.required("LOSE, TTL, DUMP or DIGEST")?.to_ascii_uppercase()[..] {
            b"LOSE" => {
                let key = args.required("a key")?.to_vec();
                KeyCommand::Lose { key, db: DbId::parse(args, context)? }
            }
            b"TTL" => {
                let key = args.required("a key")?.to_vec();
                let ttl_ms = u64::try_from(args.int("a TTL in ms", -1, MAX_MS)?).ok();
                KeyCommand::Ttl { key, ttl_ms, db: DbId::parse(args, context)? }
            }
            b"DUMP" => {
                let pattern = match args.peek() {
                    Some(arg) if !begins_db(arg) => args.required("a pattern")?.to_vec(),
                    _ => b"*".to_vec(),
                };
                KeyCommand::Dump { pattern, db: DbId::parse(args, context)? }
            }
            b"DIGEST" => KeyCommand::Digest,
            _ => return Err(args.not_known()),
        })
    }
}

fn begins_db(arg: &[u8]) -> bool {
    arg.eq_ignore_ascii_case(b"DB") || arg.eq_ignore_ascii_case(b"NODE")
}

impl DbId {
    fn parse(args: &mut Args, context: &Context) -> Result<DbId, SimError> {
        let mut id = DbId { node: context.node, db: context.db };
        while let Some(arg) = args.pop() {
            match &arg.to_ascii_uppercase()[..] {
                b"DB" => id.db = args.int("the number of a database", 0, i64::MAX)? as usize,
                b"NODE" => id.node = args.int("the number of a node", 0, i64::MAX)? as usize,
                _ => return Err(args.not_known()),
            }
        }
        Ok(id)
    }
}

impl Lab {
    pub(super) fn apply_key(&mut self, command: KeyCommand) -> Result<Answer, SimError> {
        match command {
            KeyCommand::Lose { key, db } => {
                let node = self.database(db)?;
                let Some(slot) = node.store.dbs[db.db].find(&key) else { return Ok(Answer::Int(0)) };
                node.store.remove(db.db, slot);
                Ok(Answer::Int(1))
            }
            KeyCommand::Ttl { key, ttl_ms, db } => {
                let node = self.database(db)?;
                let Some(slot) = node.store.dbs[db.db].find(&key) else { return Ok(Answer::Int(0)) };
                let end_ms = ttl_ms.map(|ttl_ms| node.store.now.wall_ms().saturating_add(ttl_ms as i64));
                node.store.set_expiry(db.db, slot, end_ms);
                Ok(Answer::Int(1))
            }
            KeyCommand::Dump { pattern, db } => {
                let rows = self.dump_keys(&pattern, db)?.into_iter().map(|key| {
                    let ttl_ms = Answer::Int(key.ttl_ms.unwrap_or(-1));
                    vec![Answer::Bytes(key.key), key.kind.into(), ttl_ms, Answer::Bytes(key.dump)].into()
                });
                Ok(rows.collect::<Vec<_>>().into())
            }
            KeyCommand::Digest => Ok(self.world.digest().into()),
        }
    }

    /// Returns the keys of a database that match a glob pattern, sorted.
    pub(crate) fn dump_keys(&mut self, pattern: &[u8], db: DbId) -> Result<Vec<DumpedKey>, SimError> {
        let node = self.database(db)?;
        let now_ms = node.store.now.wall_ms();
        let version = node.config.version;
        let mut keys: Vec<_> = node.store.dbs[db.db]
            .iter()
            .filter(|(_, key, _)| glob::matches(pattern, key, false))
            .map(|(_, key, entry)| DumpedKey {
                key: key.to_vec(),
                kind: entry.value.type_name(),
                ttl_ms: entry.expires_at_ms().map(|end_ms| end_ms - now_ms),
                dump: rdb::dump(&entry.value, version, true),
            })
            .collect();
        keys.sort();
        Ok(keys)
    }

    fn database(&mut self, db: DbId) -> Result<&mut Node, SimError> {
        self.check_node(db.node)?;
        let node = self.world.begin(db.node);
        let databases = node.store.dbs.len();
        if db.db >= databases {
            return Err(crate::control::args::range(format!(
                "there is no database {}: there are {databases}",
                db.db
            )));
        }
        Ok(node)
    }
}
