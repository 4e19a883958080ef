//! SIM.KEY: what a node forgets or mistimes without telling anybody.

use super::{Answer, Lab, Scope};
use crate::control::words::{MAX_MS, SimError, Words};
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

/// A database of a node; by default the first of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Where {
    /// The number of the node.
    pub node: usize,
    /// The number of the database.
    pub db: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum KeyCommand {
    /// A key is gone: no event, no message, no broken watch. Gives 1 if it was there.
    Lose { key: Vec<u8>, place: Where },
    /// A key ends so many ms from now, or never.
    Ttl { key: Vec<u8>, ttl_ms: Option<u64>, place: Where },
    /// Keys with their type, TTL in ms (-1: none) and DUMP, sorted.
    Dump { pattern: Vec<u8>, place: Where },
    /// The hash over the state of all nodes.
    Digest,
}

impl KeyCommand {
    pub fn parse(words: &mut Words, scope: &Scope) -> Result<KeyCommand, SimError> {
        Ok(match &words.word("LOSE, TTL, DUMP or DIGEST")?.to_ascii_uppercase()[..] {
            b"LOSE" => {
                let key = words.word("a key")?.to_vec();
                KeyCommand::Lose { key, place: Where::parse(words, scope)? }
            }
            b"TTL" => {
                let key = words.word("a key")?.to_vec();
                let ttl_ms = u64::try_from(words.int("a TTL in ms", -1, MAX_MS)?).ok();
                KeyCommand::Ttl { key, ttl_ms, place: Where::parse(words, scope)? }
            }
            b"DUMP" => {
                let pattern = match words.peek() {
                    Some(word) if !is_place(word) => words.word("a pattern")?.to_vec(),
                    _ => b"*".to_vec(),
                };
                KeyCommand::Dump { pattern, place: Where::parse(words, scope)? }
            }
            b"DIGEST" => KeyCommand::Digest,
            _ => return Err(words.not_known()),
        })
    }
}

fn is_place(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"DB") || word.eq_ignore_ascii_case(b"NODE")
}

impl Where {
    fn parse(words: &mut Words, scope: &Scope) -> Result<Where, SimError> {
        let mut place = Where { node: scope.node, db: scope.db };
        while let Some(word) = words.pop() {
            match &word.to_ascii_uppercase()[..] {
                b"DB" => place.db = words.int("the number of a database", 0, i64::MAX)? as usize,
                b"NODE" => place.node = words.int("the number of a node", 0, i64::MAX)? as usize,
                _ => return Err(words.not_known()),
            }
        }
        Ok(place)
    }
}

impl Lab {
    pub(super) fn apply_key(&mut self, command: KeyCommand) -> Result<Answer, SimError> {
        match command {
            KeyCommand::Lose { key, place } => {
                let node = self.database(place)?;
                let Some(slot) = node.store.dbs[place.db].find(&key) else { return Ok(Answer::Int(0)) };
                node.store.remove(place.db, slot);
                Ok(Answer::Int(1))
            }
            KeyCommand::Ttl { key, ttl_ms, place } => {
                let node = self.database(place)?;
                let Some(slot) = node.store.dbs[place.db].find(&key) else { return Ok(Answer::Int(0)) };
                let end_ms = ttl_ms.map(|ttl_ms| node.store.now.wall_ms().saturating_add(ttl_ms as i64));
                node.store.set_expiry(place.db, slot, end_ms);
                Ok(Answer::Int(1))
            }
            KeyCommand::Dump { pattern, place } => {
                let rows = self.dump_keys(&pattern, place)?.into_iter().map(|key| {
                    let ttl_ms = Answer::Int(key.ttl_ms.unwrap_or(-1));
                    vec![Answer::Bytes(key.key), key.kind.into(), ttl_ms, Answer::Bytes(key.dump)].into()
                });
                Ok(rows.collect::<Vec<_>>().into())
            }
            KeyCommand::Digest => Ok(self.world.digest().into()),
        }
    }

    /// The keys of a database that match a glob, sorted.
    pub(crate) fn dump_keys(&mut self, pattern: &[u8], place: Where) -> Result<Vec<DumpedKey>, SimError> {
        let node = self.database(place)?;
        let now_ms = node.store.now.wall_ms();
        let version = node.config.version;
        let mut keys: Vec<_> = node.store.dbs[place.db]
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

    fn database(&mut self, place: Where) -> Result<&mut Node, SimError> {
        self.check_node(place.node)?;
        let node = self.world.begin(place.node);
        let databases = node.store.dbs.len();
        if place.db >= databases {
            return Err(crate::control::words::range(format!(
                "there is no database {}: there are {databases}",
                place.db
            )));
        }
        Ok(node)
    }
}
