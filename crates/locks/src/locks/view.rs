//! The keyspace as the models read it: directly, without commands and without copies.

use redlatch_core::node::Node;
use redlatch_core::store::{Entry, Hash, List, Now, SortedSet, Store, Value};

/// Database 0 of a node.
#[derive(Clone, Copy)]
pub struct View<'a> {
    store: &'a Store,
    now: Now,
    /// This node and those beside it, and their time without the jumps of each. None: there is but this store.
    nodes: &'a [Node],
    clock: Now,
}

/// PTTL of a key that is missing, and of one that does not expire.
pub const MISSING: i64 = -2;
pub const FOREVER: i64 = -1;

impl<'a> View<'a> {
    pub fn new(store: &'a Store, now: Now) -> View<'a> {
        View { store, now, nodes: &[], clock: now }
    }

    /// The view of one of several nodes. `clock` is the world's.
    pub fn of_node(nodes: &'a [Node], node: usize, clock: Now) -> View<'a> {
        let Node { store, wall_jump_ms, .. } = &nodes[node];
        let now = Now { wall_offset_ms: clock.wall_offset_ms.saturating_add(*wall_jump_ms), ..clock };
        View { store, now, nodes, clock }
    }

    /// All nodes at this instant.
    pub fn all(self) -> impl Iterator<Item = View<'a>> {
        let alone = self.nodes.is_empty().then_some(self);
        alone
            .into_iter()
            .chain((0..self.nodes.len()).map(move |node| View::of_node(self.nodes, node, self.clock)))
    }

    pub fn now(self) -> Now {
        self.now
    }

    fn entry(self, key: &[u8]) -> Option<&'a Entry> {
        let db = &self.store.dbs[0];
        db.entry(db.find(key)?).filter(|entry| !entry.is_expired(self.now))
    }

    pub fn exists(self, key: &[u8]) -> bool {
        self.entry(key).is_some()
    }

    /// What PTTL answers.
    pub fn ttl_ms(self, key: &[u8]) -> i64 {
        self.entry(key).map_or(MISSING, |entry| self.remaining_ms(entry))
    }

    fn remaining_ms(self, entry: &Entry) -> i64 {
        entry.expires_at_ms().map_or(FOREVER, |at| at - self.now.wall_ms())
    }

    pub fn hash(self, key: &[u8]) -> Option<&'a Hash> {
        match &self.entry(key)?.value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    /// The number in a field; 0 if there is none.
    pub fn count(self, hash: &Hash, field: &[u8]) -> i64 {
        let value = hash.get(field, self.now.wall_ms());
        value.and_then(redlatch_core::num::parse_i64).unwrap_or(0)
    }

    /// The number that a string holds.
    pub fn number(self, key: &[u8]) -> Option<i64> {
        match &self.entry(key)?.value {
            Value::String(value) => value.as_i64(),
            _ => None,
        }
    }

    /// The bytes of a string.
    pub fn text(self, key: &[u8]) -> Option<Vec<u8>> {
        match &self.entry(key)?.value {
            Value::String(value) => Some(value.to_vec()),
            _ => None,
        }
    }

    pub fn list(self, key: &[u8]) -> Option<&'a List> {
        match &self.entry(key)?.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn sorted_set(self, key: &[u8]) -> Option<&'a SortedSet> {
        match &self.entry(key)?.value {
            Value::SortedSet(set) => Some(set),
            _ => None,
        }
    }

    /// All living keys with what PTTL answers, in the order of the keyspace.
    pub fn keys(self) -> impl Iterator<Item = (&'a [u8], &'a Value, i64)> {
        let entries = self.store.dbs[0].iter().filter(move |(_, _, entry)| !entry.is_expired(self.now));
        entries.map(move |(_, key, entry)| (key, &entry.value, self.remaining_ms(entry)))
    }
}
