//! A map from byte strings whose entries never move.
//!
//! Entries live in a slab, and a hash table maps keys to their index in it. An entry keeps its index, the *slot*, from
//! insertion to removal, so other structures can refer to a key by a `u32`. Iteration follows the slots. A new entry
//! takes the slot freed last, or a new one at the end; the slab starts over once the last entry is removed. The order
//! depends on nothing but the sequence of operations.
//!
//! A scan walks over the slots, and its cursor is the next slot. Since entries never move, a scan returns every entry
//! that exists from its beginning to its end exactly once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use super::small_bytes::SmallBytes;

const NO_SLOT: u32 = u32::MAX;
const HASHER: FixedState = FixedState::with_seed(0);

/// How many random slots [`SlabMap::random`] tries before it walks to the next entry.
const RANDOM_TRIES: usize = 64;

/// A key of a map. Short keys need no allocation.
pub type Key = SmallBytes<22>;

/// A map from byte strings to `V` with stable `u32` slots and a fixed order.
#[derive(Clone)]
pub struct SlabMap<V> {
    slots: Vec<Slot<V>>,
    first_free: u32,
    index: HashTable<u32>,
}

#[derive(Clone)]
enum Slot<V> {
    Used(Key, V),
    Free { next: u32 },
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = HASHER.build_hasher();
    hasher.write(key);
    hasher.finish()
}

impl<V> Default for SlabMap<V> {
    fn default() -> Self {
        SlabMap { slots: Vec::new(), first_free: NO_SLOT, index: HashTable::new() }
    }
}

impl<V> SlabMap<V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty map with room for `entries` entries.
    pub fn with_capacity(entries: usize) -> Self {
        SlabMap {
            slots: Vec::with_capacity(entries),
            first_free: NO_SLOT,
            index: HashTable::with_capacity(entries),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the number of slots, free ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the slot of `key`, which stays the same until the entry is removed.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.index.find(hash_of(key), |&slot| self.slots[slot as usize].key() == key).copied()
    }

    /// Returns whether the map contains `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        self.find(key).and_then(|slot| self.value(slot))
    }

    /// Returns the value of `key` for changes.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        self.find(key).and_then(|slot| self.value_mut(slot))
    }

    /// Returns the key and value in a slot, or `None` if it is free.
    pub fn entry(&self, slot: u32) -> Option<(&[u8], &V)> {
        self.slots.get(slot as usize)?.used()
    }

    /// Returns the key in a slot, or `None` if it is free.
    pub fn key(&self, slot: u32) -> Option<&[u8]> {
        self.entry(slot).map(|(key, _)| key)
    }

    /// Returns the value in a slot, or `None` if it is free.
    pub fn value(&self, slot: u32) -> Option<&V> {
        self.entry(slot).map(|(_, value)| value)
    }

    /// Returns the value in a slot for changes, or `None` if it is free.
    pub fn value_mut(&mut self, slot: u32) -> Option<&mut V> {
        match self.slots.get_mut(slot as usize)? {
            Slot::Used(_, value) => Some(value),
            Slot::Free { .. } => None,
        }
    }

    /// Sets the value of `key`. Returns the key's slot and the value that it replaced. Copies the key only if it is
    /// new.
    ///
    /// # Panics
    ///
    /// If the map has 2³² − 1 entries.
    pub fn insert(&mut self, key: &[u8], value: V) -> (u32, Option<V>) {
        if self.index.len() == self.index.capacity() {
            self.grow_index();
        }
        let Self { slots, first_free, index } = self;
        let is_key = |slot: &u32| slots[*slot as usize].key() == key;
        match index.entry(hash_of(key), is_key, |slot| hash_of(slots[*slot as usize].key())) {
            TableEntry::Occupied(place) => {
                let slot = *place.get();
                let old = match &mut slots[slot as usize] {
                    Slot::Used(_, old) => Some(std::mem::replace(old, value)),
                    Slot::Free { .. } => None,
                };
                (slot, old)
            }
            TableEntry::Vacant(vacant) => {
                let slot = take_slot(slots, first_free, Slot::Used(key.into(), value));
                vacant.insert(slot);
                (slot, None)
            }
        }
    }

    /// Grows the index. Rehashing in slot order reads the keys in the order in which they are stored; the table's own
    /// growth would read them in hash order.
    fn grow_index(&mut self) {
        let mut index = HashTable::with_capacity(self.len() + self.len() / 2 + 1);
        for (slot, key, _) in self.iter_slots() {
            index.insert_unique(hash_of(key), slot, |&slot| hash_of(self.slots[slot as usize].key()));
        }
        self.index = index;
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let slot = self.find(key)?;
        self.remove_slot(slot).map(|(_, value)| value)
    }

    /// Removes the entry in a slot.
    pub fn remove_slot(&mut self, slot: u32) -> Option<(Key, V)> {
        let hash = hash_of(self.key(slot)?);
        if let Ok(place) = self.index.find_entry(hash, |&other| other == slot) {
            place.remove();
        }
        let free = Slot::Free { next: self.first_free };
        let Slot::Used(key, value) = std::mem::replace(&mut self.slots[slot as usize], free) else {
            return None;
        };
        self.first_free = slot;
        if self.index.is_empty() {
            self.slots.clear();
            self.first_free = NO_SLOT;
        }
        Some((key, value))
    }

    /// Removes everything and frees the memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns keys and values in slot order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &V)> {
        self.slots.iter().filter_map(Slot::used)
    }

    /// Returns slots, keys and values in slot order.
    pub fn iter_slots(&self) -> impl DoubleEndedIterator<Item = (u32, &[u8], &V)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| {
            let (key, value) = entry.used()?;
            Some((slot as u32, key, value))
        })
    }

    /// Visits the next `count` entries (at least one) of a scan. Returns the cursor to continue with, or 0 at the end.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], &V)) -> u64 {
        let mut left = count.max(1);
        let start = usize::try_from(cursor).unwrap_or(usize::MAX);
        for (slot, entry) in self.slots.iter().enumerate().skip(start) {
            let Some((key, value)) = entry.used() else { continue };
            if left == 0 {
                return slot as u64;
            }
            visit(key, value);
            left -= 1;
        }
        0
    }

    /// Returns the slot of the entry that the random number `draw` selects. All entries are equally likely unless
    /// nearly all slots are free.
    pub fn random(&self, mut draw: u64) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let mut slot = 0;
        for _ in 0..RANDOM_TRIES {
            slot = scale(draw, self.slots.len());
            if self.slots[slot].used().is_some() {
                return Some(slot as u32);
            }
            draw = mix(draw);
        }
        let after = (slot..self.slots.len()).chain(0..slot);
        after.map(|slot| slot as u32).find(|&slot| self.entry(slot).is_some())
    }
}

impl<V> Slot<V> {
    fn used(&self) -> Option<(&[u8], &V)> {
        match self {
            Slot::Used(key, value) => Some((key, value)),
            Slot::Free { .. } => None,
        }
    }

    /// Returns the key. The key of a free slot, which the index never refers to, is empty.
    fn key(&self) -> &[u8] {
        self.used().map_or(&[], |(key, _)| key)
    }
}

/// Stores an entry in the slot freed last, or in a new one.
fn take_slot<V>(slots: &mut Vec<Slot<V>>, first_free: &mut u32, entry: Slot<V>) -> u32 {
    let slot = *first_free;
    if let Some(Slot::Free { next }) = slots.get(slot as usize) {
        *first_free = *next;
        slots[slot as usize] = entry;
        return slot;
    }
    assert!(slots.len() < NO_SLOT as usize, "a map holds at most 2^32 - 1 entries");
    slots.push(entry);
    (slots.len() - 1) as u32
}

/// Maps a random number evenly to `0..bound`.
pub fn scale(draw: u64, bound: usize) -> usize {
    ((draw as u128 * bound as u128) >> 64) as usize
}

/// Derives another random number from `draw` (SplitMix64).
fn mix(draw: u64) -> u64 {
    let mut z = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn freed_slots_are_taken_last_first_and_entries_stay() {
        let mut map = SlabMap::new();
        for key in ["a", "b", "c", "d"] {
            map.insert(key.as_bytes(), ());
        }
        let d = map.find(b"d");
        map.remove(b"b");
        map.remove(b"c");
        assert_eq!(map.insert(b"e", ()), (2, None));
        assert_eq!(map.insert(b"f", ()), (1, None));
        assert_eq!(map.find(b"d"), d);
        let order: Vec<_> = map.iter().map(|(key, _)| key.to_vec()).collect();
        assert_eq!(order, [b"a", b"f", b"e", b"d"]);
    }

    #[test]
    fn a_table_grows_without_losing_any() {
        let mut map = SlabMap::new();
        for i in 0..100_000u32 {
            map.insert(&i.to_le_bytes(), i);
        }
        assert!((0..100_000u32).all(|i| map.get(&i.to_le_bytes()) == Some(&i)));
    }

    #[test]
    fn random_reaches_every_entry() {
        let mut map = SlabMap::new();
        for i in 0..64u8 {
            map.insert(&[i], ());
        }
        for i in (0..64u8).filter(|i| i % 7 != 0) {
            map.remove(&[i]);
        }
        let reached: BTreeSet<_> =
            (0..1_000).map(|i| map.random(mix(i)).and_then(|slot| map.key(slot))).collect();
        assert_eq!(reached, map.iter().map(|(key, _)| Some(key)).collect());
    }

    proptest! {
        #[test]
        fn behaves_as_a_map(ops in prop::collection::vec((any::<bool>(), 0..40u8, any::<u32>()), 1..300)) {
            let mut map = SlabMap::new();
            let mut model = BTreeMap::new();
            for (put, key, value) in ops {
                if put {
                    prop_assert_eq!(map.insert(&[key], value).1, model.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&[key]), model.remove(&key));
                }
                prop_assert_eq!(map.len(), model.len());
            }
            let found: BTreeMap<u8, u32> = map.iter().map(|(key, value)| (key[0], *value)).collect();
            prop_assert_eq!(&found, &model);
            for (slot, key, value) in map.iter_slots() {
                prop_assert_eq!(map.find(key), Some(slot));
                prop_assert_eq!(map.entry(slot), Some((key, value)));
            }
        }

        #[test]
        fn a_scan_returns_every_entry_that_remains(
            ops in prop::collection::vec((any::<bool>(), 0..200u8), 0..200),
            count in 0..20usize,
        ) {
            let mut map = SlabMap::new();
            // Keys from 200 on stay; the others come and go while the scan runs.
            for key in 0..=255u8 {
                map.insert(&[key], ());
            }
            let mut seen = BTreeSet::new();
            let mut cursor = 0;
            let mut ops = ops.into_iter();
            loop {
                cursor = map.scan(cursor, count, |key, ()| { seen.insert(key[0]); });
                if cursor == 0 {
                    break;
                }
                for (put, key) in ops.by_ref().take(7) {
                    if put { map.insert(&[key], ()); } else { map.remove(&[key]); }
                }
            }
            prop_assert!((200..=255u8).all(|key| seen.contains(&key)));
        }
    }
}
