//! The keyspace as models read it: directly, without commands and without copies.

use redlatch_core::store::{Entry, Hash, List, Now, SortedSet, Store, Value};

/// The keyspaces of several nodes that share one clock.
pub trait Stores {
    /// Returns the number of nodes.
    fn count(&self) -> usize;

    /// Returns a node's data, and how many ms its wall clock is ahead of the common clock.
    fn store(&self, node: usize) -> (&Store, i64);
}

/// Database 0 of a node.
#[derive(Clone, Copy)]
pub struct View<'a> {
    store: &'a Store,
    now: Now,
    /// All nodes, this one included, or `None` if there is only this store.
    nodes: Option<&'a dyn Stores>,
    /// The common clock.
    clock: Now,
}

/// The values of PTTL for a missing key, and for a key that does not expire.
pub const MISSING: i64 = -2;
pub const FOREVER: i64 = -1;

impl<'a> View<'a> {
    /// Returns the view of a single store.
    pub fn new(store: &'a Store, now: Now) -> View<'a> {
        View { store, now, nodes: None, clock: now }
    }

    /// Returns the view of one of several nodes.
    pub fn of_node(nodes: &'a dyn Stores, node: usize, clock: Now) -> View<'a> {
        let (store, ahead_ms) = nodes.store(node);
        let now = Now { wall_offset_ms: clock.wall_offset_ms.saturating_add(ahead_ms), ..clock };
        View { store, now, nodes: Some(nodes), clock }
    }

    /// Iterates over all nodes at the present time.
    pub fn all(self) -> impl Iterator<Item = View<'a>> {
        let count = self.nodes.map_or(1, Stores::count);
        (0..count).map(move |node| self.nodes.map_or(self, |nodes| View::of_node(nodes, node, self.clock)))
    }

    /// Returns the present time by the node's clock.
    pub fn now(self) -> Now {
        self.now
    }

    fn entry(self, key: &[u8]) -> Option<&'a Entry> {
        let db = &self.store.dbs[0];
        db.entry(db.find(key)?).filter(|entry| !entry.is_expired(self.now))
    }

    /// Returns whether a key exists and has not expired.
    pub fn exists(self, key: &[u8]) -> bool {
        self.entry(key).is_some()
    }

    /// Returns the value of PTTL for a key.
    pub fn ttl_ms(self, key: &[u8]) -> i64 {
        self.entry(key).map_or(MISSING, |entry| self.remaining_ms(entry))
    }

    fn remaining_ms(self, entry: &Entry) -> i64 {
        entry.expires_at_ms().map_or(FOREVER, |at| at - self.now.wall_ms())
    }

    /// Returns the value at a key.
    pub fn value(self, key: &[u8]) -> Option<&'a Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the hash at a key.
    pub fn hash(self, key: &[u8]) -> Option<&'a Hash> {
        match &self.entry(key)?.value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    /// Returns the number in a field, or 0 if the field is missing.
    pub fn count(self, hash: &Hash, field: &[u8]) -> i64 {
        let value = hash.get(field, self.now.wall_ms());
        value.and_then(redlatch_core::num::parse_i64).unwrap_or(0)
    }

    /// Returns the number in a string.
    pub fn number(self, key: &[u8]) -> Option<i64> {
        match &self.entry(key)?.value {
            Value::String(value) => value.as_i64(),
            _ => None,
        }
    }

    /// Returns the bytes of a string.
    pub fn text(self, key: &[u8]) -> Option<Vec<u8>> {
        match &self.entry(key)?.value {
            Value::String(value) => Some(value.to_vec()),
            _ => None,
        }
    }

    /// Returns the list at a key.
    pub fn list(self, key: &[u8]) -> Option<&'a List> {
        match &self.entry(key)?.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the sorted set at a key.
    pub fn sorted_set(self, key: &[u8]) -> Option<&'a SortedSet> {
        match &self.entry(key)?.value {
            Value::SortedSet(set) => Some(set),
            _ => None,
        }
    }

    /// Iterates over all keys that have not expired, with their values of PTTL, in the order of the keyspace.
    pub fn keys(self) -> impl Iterator<Item = (&'a [u8], &'a Value, i64)> {
        let entries = self.store.dbs[0].iter().filter(move |(_, _, entry)| !entry.is_expired(self.now));
        entries.map(move |(_, key, entry)| (key, &entry.value, self.remaining_ms(entry)))
    }
}
