//! Databases: keys with their values and expiry, and the timers that remove them.

use std::cell::Cell;

use super::usage::Usage;
use super::{Limits, SlabMap, SlotIndex, Timer, Value};
use crate::wheel::{TimerId, TimerPlace, Wheel};

/// The time that an event sees. It does not change while one command, script or transaction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since the world began; never decreases.
    pub mono_us: u64,
    /// Unix time in ms minus the monotonic time in ms.
    pub wall_offset_ms: i64,
}

impl Now {
    /// Returns the monotonic time in milliseconds.
    pub fn mono_ms(self) -> u64 {
        self.mono_us / 1000
    }

    /// Returns the monotonic time in seconds, in which the last use of a key is kept.
    pub fn mono_s(self) -> u32 {
        (self.mono_us / 1_000_000) as u32
    }

    /// Returns the Unix time in milliseconds, which decides when keys expire.
    pub fn wall_ms(self) -> i64 {
        (self.mono_us / 1000) as i64 + self.wall_offset_ms
    }

    /// Returns the Unix time in microseconds.
    pub fn wall_us(self) -> i64 {
        self.mono_us as i64 + self.wall_offset_ms * 1000
    }
}

/// A key's value, expiry and last use.
#[derive(Clone)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// Unix time in ms at the end of which the key expires; negative if it never does.
    expires_at_ms: i64,
    /// Where the timer is that fires when the key expires, or when the first of its hash fields does.
    timer: TimerPlace,
    /// The last use or the number of uses, for `OBJECT IDLETIME`, `OBJECT FREQ` and eviction.
    pub usage: Usage,
}

const NEVER: i64 = -1;

impl Entry {
    fn new(value: Value, usage: Usage) -> Entry {
        Entry { value, expires_at_ms: NEVER, timer: TimerPlace::NONE, usage }
    }

    /// Returns when the key expires, as Unix time in ms.
    pub fn expires_at_ms(&self) -> Option<i64> {
        (self.expires_at_ms >= 0).then_some(self.expires_at_ms)
    }

    /// Returns whether the key has expired. It lives until the end of the millisecond at which it expires.
    pub fn is_expired(&self, now: Now) -> bool {
        self.expires_at_ms >= 0 && now.wall_ms() > self.expires_at_ms
    }
}

/// One numbered database.
#[derive(Clone, Default)]
pub struct Db {
    keys: SlabMap<Entry>,
    /// The number of keys with an expiry.
    volatile: usize,
    /// The slot found last. A script often calls several commands for the same key.
    found_last: Cell<u32>,
    /// The keys by hash slot, in cluster mode.
    hash_slots: Option<Box<SlotIndex>>,
}

impl Db {
    /// Returns the number of keys, expired ones included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the database has no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.len() == 0
    }

    /// Returns the number of slots, free ones included.
    pub fn slots(&self) -> usize {
        self.keys.slots()
    }

    /// Returns the number of keys with an expiry.
    pub fn volatile(&self) -> usize {
        self.volatile
    }

    /// Returns the slot of a key, whether it has expired or not. A slot stays valid until its key is removed.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let last = self.found_last.get();
        if self.keys.key(last) == Some(key) {
            return Some(last);
        }
        let slot = self.keys.find(key)?;
        self.found_last.set(slot);
        Some(slot)
    }

    /// Returns the key in a slot.
    pub fn key(&self, slot: u32) -> Option<&[u8]> {
        self.keys.key(slot)
    }

    /// Returns the entry in a slot.
    pub fn entry(&self, slot: u32) -> Option<&Entry> {
        self.keys.value(slot)
    }

    /// Returns the entry in a slot for changes.
    pub fn entry_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.keys.value_mut(slot)
    }

    /// Returns slots, keys and entries in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8], &Entry)> {
        self.keys.iter_slots()
    }

    /// Visits the next keys of a scan. See [`SlabMap::scan`].
    pub fn scan(&self, cursor: u64, count: usize, visit: impl FnMut(&[u8], &Entry)) -> u64 {
        self.keys.scan(cursor, count, visit)
    }

    /// Returns the keys by hash slot, in cluster mode.
    pub fn hash_slots(&self) -> Option<&SlotIndex> {
        self.hash_slots.as_deref()
    }

    /// Returns the slot that the random number `draw` selects.
    pub fn random_slot(&self, draw: u64) -> Option<u32> {
        self.keys.random(draw)
    }
}

/// All databases of a node, and the wheel with its timers.
#[derive(Clone)]
pub struct Store {
    /// The databases by number.
    pub dbs: Vec<Db>,
    /// All timers of the node.
    pub timers: Wheel<Timer>,
    /// The time of the current event.
    pub now: Now,
    /// The limits of the compact encodings.
    pub limits: Limits,
}

impl Store {
    /// Creates empty databases.
    pub fn new(databases: usize, now: Now, limits: Limits) -> Store {
        let dbs = (0..databases).map(|_| Db::default()).collect();
        Store { dbs, timers: Wheel::new(now.mono_ms()), now, limits }
    }

    /// Keeps the keys of a database by hash slot from here on.
    pub fn index_hash_slots(&mut self, db: usize) {
        let mut index = SlotIndex::default();
        self.dbs[db].iter().for_each(|(slot, key, _)| index.insert(key, slot));
        self.dbs[db].hash_slots = Some(Box::new(index));
    }

    /// Inserts a value without an expiry. The key must not exist, or must have expired.
    pub fn insert(&mut self, db: usize, key: &[u8], mut value: Value) -> u32 {
        if let Value::String(string) = &mut value {
            string.settle(key.len(), false, self.limits.version);
        }
        let now_s = self.now.mono_s();
        let usage = if self.limits.counts_uses { Usage::new_counted(now_s) } else { Usage::at(now_s) };
        let (slot, replaced) = self.dbs[db].keys.insert(key, Entry::new(value, usage));
        if let Some(ended) = replaced {
            // An expired key that had not been removed yet.
            cancel(&mut self.timers, db, slot, &ended);
            self.dbs[db].volatile -= (ended.expires_at_ms >= 0) as usize;
        } else if let Some(index) = &mut self.dbs[db].hash_slots {
            index.insert(key, slot);
        }
        self.rearm(db, slot);
        slot
    }

    /// Replaces the value of a key. Keeps its expiry.
    pub fn replace(&mut self, db: usize, slot: u32, mut value: Value) {
        let key_len = self.dbs[db].key(slot).map_or(0, <[u8]>::len);
        let version = self.limits.version;
        if let Some(entry) = self.dbs[db].entry_mut(slot) {
            if let Value::String(string) = &mut value {
                string.settle(key_len, entry.expires_at_ms >= 0, version);
            }
            entry.value = value;
            self.rearm(db, slot);
        }
    }

    /// Removes a key and cancels its timer. Returns its entry.
    pub fn remove(&mut self, db: usize, slot: u32) -> Option<Entry> {
        let (key, entry) = self.dbs[db].keys.remove_slot(slot)?;
        if let Some(index) = &mut self.dbs[db].hash_slots {
            index.remove(&key, slot);
        }
        cancel(&mut self.timers, db, slot, &entry);
        self.dbs[db].volatile -= (entry.expires_at_ms >= 0) as usize;
        Some(entry)
    }

    /// Sets (Unix time in ms) or removes the expiry of a key.
    pub fn set_expiry(&mut self, db: usize, slot: u32, expires_at_ms: Option<i64>) {
        let Some(entry) = self.dbs[db].keys.value_mut(slot) else { return };
        let had = entry.expires_at_ms >= 0;
        entry.expires_at_ms = expires_at_ms.unwrap_or(NEVER);
        self.dbs[db].volatile = self.dbs[db].volatile + expires_at_ms.is_some() as usize - had as usize;
        self.rearm(db, slot);
    }

    /// Arms the timer of a key for whichever comes first: its own expiry or that of one of its hash fields. Call this
    /// whenever a hash's field expiries have changed.
    pub fn rearm(&mut self, db: usize, slot: u32) {
        let Some(entry) = self.dbs[db].keys.value_mut(slot) else { return };
        let key_end = (entry.expires_at_ms >= 0).then_some(entry.expires_at_ms);
        let field_end = match &entry.value {
            Value::Hash(hash) => hash.next_expiry_ms(),
            _ => None,
        };
        let end = match (key_end, field_end) {
            (Some(key), Some(field)) => key.min(field),
            (end, None) | (None, end) => match end {
                Some(end) => end,
                None => {
                    cancel(&mut self.timers, db, slot, entry);
                    entry.timer = TimerPlace::NONE;
                    return;
                }
            },
        };
        let due_ms = due_ms(end, self.now);
        let payload = Timer::Key { db: db as u16, slot };
        if !self.timers.rearm(self.timers.at(entry.timer, payload), due_ms) {
            entry.timer = self.timers.arm(due_ms, payload).into();
        }
    }

    /// Re-arms the timers of all keys, after a change of the wall clock.
    pub fn rearm_all(&mut self) {
        for db in 0..self.dbs.len() {
            let slots: Vec<u32> = self.dbs[db].iter().map(|(slot, _, _)| slot).collect();
            slots.into_iter().for_each(|slot| self.rearm(db, slot));
        }
    }

    /// Returns the timer of a key, or [`TimerId::NONE`].
    pub(super) fn timer(&self, db: usize, slot: u32, entry: &Entry) -> TimerId {
        self.timers.at(entry.timer, Timer::Key { db: db as u16, slot })
    }

    /// Notes that the timer of a key has fired, or would have, and is no longer armed.
    pub fn timer_fired(&mut self, db: usize, slot: u32) {
        if let Some(entry) = self.dbs[db].keys.value_mut(slot) {
            cancel(&mut self.timers, db, slot, entry);
            entry.timer = TimerPlace::NONE;
        }
    }

    /// Removes all keys of a database and cancels their timers.
    pub fn clear(&mut self, db: usize) {
        let emptied = std::mem::take(&mut self.dbs[db]);
        if emptied.hash_slots.is_some() {
            self.index_hash_slots(db);
        }
        for (slot, _, entry) in emptied.keys.iter_slots() {
            cancel(&mut self.timers, db, slot, entry);
        }
    }

    /// Swaps the contents of two databases.
    pub fn swap(&mut self, a: usize, b: usize) {
        // Timers contain the number of their database.
        for db in [a, b] {
            for (slot, _, entry) in self.dbs[db].iter() {
                cancel(&mut self.timers, db, slot, entry);
            }
        }
        self.dbs.swap(a, b);
        for db in [a, b] {
            let slots: Vec<u32> = self.dbs[db].iter().map(|(slot, _, _)| slot).collect();
            slots.into_iter().for_each(|slot| self.rearm(db, slot));
        }
    }
}

/// Cancels the timer of a key, if it has one.
fn cancel(timers: &mut Wheel<Timer>, db: usize, slot: u32, entry: &Entry) {
    if entry.timer != TimerPlace::NONE {
        timers.cancel(timers.at(entry.timer, Timer::Key { db: db as u16, slot }));
    }
}

/// Returns the monotonic time in ms at which the timer for an expiry at `end_ms` (Unix time) fires: keys and fields
/// live until the end of that millisecond.
pub(super) fn due_ms(end_ms: i64, now: Now) -> u64 {
    end_ms.saturating_add(1).saturating_sub(now.wall_offset_ms).max(0) as u64
}
