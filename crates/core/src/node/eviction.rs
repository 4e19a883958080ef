//! `maxmemory`: estimates the memory in use, and evicts keys in the order that `maxmemory-policy` asks for.
//!
//! The bytes of a value are estimated from a few of its elements, as MEMORY USAGE estimates them, so the same requests always
//! evict the same keys. Like Redis, a round looks at `maxmemory-samples` random keys of each database and keeps the best
//! candidates of all rounds in a small pool (`evict.c`).

use super::Node;
use super::notify::Class;
use super::replication::Role;
use crate::store::slab_map::scale;
use crate::store::usage::{Decay, Usage};
use crate::store::{Entry, SlabMap};
use crate::version::Version;

/// The candidates that are remembered between rounds.
const POOL: usize = 16;
/// The most keys that one request evicts. The requests after it go on.
const MOST_AT_ONCE: usize = 10_000;
/// How many elements of a value are looked at to estimate its size.
const SAMPLES: usize = 5;

/// What decides which key goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least recently used key.
    Lru,
    /// The least frequently used key.
    Lfu,
    /// The least recently modified key.
    Lrm,
    Random,
    /// The key that expires first.
    Ttl,
}

/// A value of `maxmemory-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `None` if no key is ever evicted.
    pub order: Option<Order>,
    /// Whether only keys with an expiry are evicted.
    is_volatile: bool,
}

impl Policy {
    pub const NO_EVICTION: Policy = Policy { order: None, is_volatile: false };

    /// Parses the name of a policy, such as `volatile-lru`. An unknown name evicts nothing.
    pub fn parse(name: &str) -> Policy {
        let Some((scope, order)) = name.split_once('-') else { return Policy::NO_EVICTION };
        let order = match order {
            "lru" => Order::Lru,
            "lfu" => Order::Lfu,
            "lrm" => Order::Lrm,
            "random" => Order::Random,
            "ttl" => Order::Ttl,
            _ => return Policy::NO_EVICTION,
        };
        Policy { order: Some(order), is_volatile: scope == "volatile" }
    }

    /// Returns whether keys count their uses instead of remembering the last one.
    pub fn counts_uses(self) -> bool {
        self.order == Some(Order::Lfu)
    }

    fn allows(self, entry: &Entry) -> bool {
        !self.is_volatile || entry.expires_at_ms().is_some()
    }
}

/// The settings of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In bytes; 0 for no limit.
    pub maxmemory: u64,
    pub policy: Policy,
    pub samples: usize,
    pub decay: Decay,
    /// Whether changes of keys matter: for the memory in use, or for the order in which they are evicted.
    pub watches_changes: bool,
    /// Whether a replica leaves eviction to its master.
    pub replica_ignores: bool,
}

/// The state of eviction.
#[derive(Clone, Default)]
pub struct Eviction {
    /// The bytes of each key while memory is limited, by database.
    weights: Option<Vec<SlabMap<u32>>>,
    bytes: u64,
    /// Whether more memory is in use than allowed, and nothing can be evicted.
    pub is_out_of_memory: bool,
    /// Whether the settings have changed since the last round.
    pub is_due: bool,
    pool: Vec<Candidate>,
    /// The database from which the next random key is taken.
    next_db: usize,
}

#[derive(Clone)]
struct Candidate {
    db: usize,
    key: Box<[u8]>,
    /// The larger, the sooner the key is evicted.
    rank: u64,
}

impl Eviction {
    /// Forgets the estimates, because many keys have changed.
    pub fn forget(&mut self) {
        self.weights = None;
        self.pool.clear();
    }
}

impl Node {
    /// Returns the bytes that a server of the release uses without keys: its `used_memory_startup`.
    pub fn startup_memory(&self) -> u64 {
        match self.config.version {
            version if version.is_valkey_since(Version::Valkey9_0) => 998_400,
            version if version.is_valkey() => 958_928,
            version if version >= Version::V8_2 => 716_208,
            version if version >= Version::V8_0 => 662_360,
            version if version >= Version::V7_2 => 946_264,
            _ => 876_192,
        }
    }

    /// Returns an estimate of the memory in use, in bytes.
    pub fn used_memory(&self) -> u64 {
        self.startup_memory()
            + match &self.eviction.weights {
                Some(_) => self.eviction.bytes,
                None => self.weigh_all().map(|(_, _, weight)| weight as u64).sum(),
            }
    }

    /// Evicts keys before a request, if memory is limited.
    #[inline]
    pub(super) fn make_room(&mut self) {
        if self.config.eviction.maxmemory > 0 {
            self.evict();
        }
    }

    /// Evicts keys until the memory in use is below `maxmemory`, as far as the policy allows.
    #[inline(never)]
    pub(super) fn evict(&mut self) {
        self.eviction.is_out_of_memory = false;
        let limits = self.config.eviction;
        if limits.maxmemory == 0 {
            return self.eviction.forget();
        }
        if self.eviction.weights.is_none() {
            self.begin_weighing();
        }
        if self.replication.role != Role::Master && limits.replica_ignores || self.scripts.is_running() {
            return;
        }
        let mut evicted = 0;
        while self.used_memory() > limits.maxmemory && evicted < MOST_AT_ONCE {
            let Some((db, slot)) = self.next_victim(limits) else {
                self.eviction.is_out_of_memory = true;
                break;
            };
            self.evict_key(db, slot);
            evicted += 1;
        }
    }

    fn evict_key(&mut self, db: usize, slot: u32) {
        let Some(key) = self.store.dbs[db].key(slot).map(Box::<[u8]>::from) else { return };
        self.store.remove(db, slot);
        self.stats.evicted_keys += 1;
        self.dirty += 1;
        self.signal_modified(db, &key);
        self.notify(Class::EVICTED, "evicted", db, &key);
    }

    /// Returns the key to evict next.
    fn next_victim(&mut self, limits: Limits) -> Option<(usize, u32)> {
        match limits.policy.order? {
            Order::Random => self.random_victim(limits.policy),
            order => loop {
                if !self.fill_pool(order, limits) {
                    return None;
                }
                // The keys of earlier rounds may be gone by now, or may no longer expire.
                while let Some(Candidate { db, key, .. }) = self.eviction.pool.pop() {
                    let keys = &self.store.dbs[db];
                    let slot = keys.find(&key);
                    let is_allowed = |slot| keys.entry(slot).is_some_and(|entry| limits.policy.allows(entry));
                    if let Some(slot) = slot.filter(|&slot| is_allowed(slot)) {
                        return Some((db, slot));
                    }
                }
            },
        }
    }

    fn random_victim(&mut self, policy: Policy) -> Option<(usize, u32)> {
        let count = self.store.dbs.len();
        for _ in 0..count {
            let db = self.eviction.next_db % count;
            self.eviction.next_db = db + 1;
            let draw = self.rng.next_u64();
            let found = self.store.dbs[db].iter_from(draw).find(|(_, _, entry)| policy.allows(entry));
            if let Some((slot, _, _)) = found {
                return Some((db, slot));
            }
        }
        None
    }

    /// Adds the best of some random keys of each database to the pool, whose last candidate goes first. Returns false if no
    /// key may be evicted.
    fn fill_pool(&mut self, order: Order, limits: Limits) -> bool {
        let now_s = self.store.now.mono_s();
        let mut is_any = false;
        for (db, keys) in self.store.dbs.iter().enumerate() {
            let none = if limits.policy.is_volatile { keys.volatile() == 0 } else { keys.is_empty() };
            if none {
                continue;
            }
            is_any = true;
            let allowed =
                keys.iter_from(self.rng.next_u64()).filter(|(_, _, entry)| limits.policy.allows(entry));
            for (_, key, entry) in allowed.take(limits.samples) {
                let rank = rank(order, entry, now_s, limits.decay);
                let pool = &mut self.eviction.pool;
                if pool.iter().any(|known| known.db == db && *known.key == *key) {
                    continue;
                }
                let at = pool.partition_point(|known| known.rank < rank);
                pool.insert(at, Candidate { db, key: key.into(), rank });
                if pool.len() > POOL {
                    pool.remove(0);
                }
            }
        }
        is_any
    }

    /// Notes that a key was used.
    #[inline]
    pub fn mark_used(&mut self, db: usize, slot: u32) {
        if matches!(self.config.eviction.policy.order, Some(Order::Lfu | Order::Lrm)) {
            return self.count_use(db, slot);
        }
        let now_s = self.store.now.mono_s();
        if let Some(entry) = self.store.dbs[db].entry_mut(slot) {
            entry.usage = Usage::at(now_s);
        }
    }

    /// Counts a use, unless only changes matter.
    #[inline(never)]
    fn count_use(&mut self, db: usize, slot: u32) {
        let now_s = self.store.now.mono_s();
        let Some(entry) = self.store.dbs[db].entry_mut(slot) else { return };
        if self.config.eviction.policy.counts_uses() {
            let draw = self.rng.next_u64();
            entry.usage = entry.usage.counted_once_more(now_s, self.config.eviction.decay, draw);
        }
    }

    /// Notes that a key was changed or removed.
    #[inline]
    pub(super) fn note_weight(&mut self, db: usize, key: &[u8]) {
        if self.config.eviction.watches_changes {
            self.weigh(db, key);
        }
    }

    #[inline(never)]
    fn weigh(&mut self, db: usize, key: &[u8]) {
        if self.config.eviction.policy.order == Some(Order::Lrm) {
            let now_s = self.store.now.mono_s();
            let keys = &mut self.store.dbs[db];
            if let Some(entry) = keys.find(key).and_then(|slot| keys.entry_mut(slot)) {
                entry.usage = Usage::at(now_s);
            }
        }
        let Some(weights) = &mut self.eviction.weights else { return };
        let keys = &self.store.dbs[db];
        let new = keys.find(key).and_then(|slot| keys.entry(slot)).map(|entry| weight(key, entry));
        let old = match new {
            Some(new) => weights[db].insert(key, new).1,
            None => weights[db].remove(key),
        };
        self.eviction.bytes += u64::from(new.unwrap_or(0));
        self.eviction.bytes -= u64::from(old.unwrap_or(0));
    }

    fn begin_weighing(&mut self) {
        let mut weights: Vec<SlabMap<u32>> = self.store.dbs.iter().map(|_| SlabMap::new()).collect();
        let mut bytes = 0;
        for (db, key, weight) in self.weigh_all() {
            weights[db].insert(key, weight);
            bytes += u64::from(weight);
        }
        self.eviction.weights = Some(weights);
        self.eviction.bytes = bytes;
    }

    fn weigh_all(&self) -> impl Iterator<Item = (usize, &[u8], u32)> {
        let dbs = self.store.dbs.iter().enumerate();
        dbs.flat_map(|(db, keys)| keys.iter().map(move |(_, key, entry)| (db, key, weight(key, entry))))
    }

    /// Asserts that the estimates are those of the present keys.
    ///
    /// # Panics
    /// If a change of a key was not noted.
    pub(super) fn check_weights(&self) {
        let Some(weights) = &self.eviction.weights else { return };
        let (mut keys, mut bytes) = (0, 0);
        for (db, key, weight) in self.weigh_all() {
            assert_eq!(
                weights[db].get(key),
                Some(&weight),
                "{}: a wrong estimate of its size",
                key.escape_ascii()
            );
            keys += 1;
            bytes += u64::from(weight);
        }
        assert_eq!(weights.iter().map(SlabMap::len).sum::<usize>(), keys, "estimates of keys that are gone");
        assert_eq!(self.eviction.bytes, bytes, "the estimates do not add up");
    }
}

/// Returns how soon a key should be evicted: the larger, the sooner.
fn rank(order: Order, entry: &Entry, now_s: u32, decay: Decay) -> u64 {
    match order {
        Order::Lru | Order::Lrm => now_s.saturating_sub(entry.usage.used_at_s()).into(),
        Order::Lfu => u64::from(u8::MAX - entry.usage.count(now_s, decay)),
        Order::Ttl => u64::MAX - entry.expires_at_ms().unwrap_or(i64::MAX) as u64,
        Order::Random => 0,
    }
}

fn weight(key: &[u8], entry: &Entry) -> u32 {
    (key.len() + entry.value.memory_bytes(SAMPLES)).min(u32::MAX as usize) as u32
}

impl crate::store::Db {
    /// Returns all keys once, beginning at a slot that the random number `draw` selects.
    fn iter_from(&self, draw: u64) -> impl Iterator<Item = (u32, &[u8], &Entry)> {
        let slots = self.slots();
        let start = scale(draw, slots);
        (start..slots).chain(0..start).filter_map(|slot| {
            let slot = slot as u32;
            Some((slot, self.key(slot)?, self.entry(slot)?))
        })
    }
}
