//! The keys of each hash slot of a cluster, without a scan: a list for each slot, linked through the slots of the slab.

use crate::slots::{SLOTS, hash_slot};

const END: u32 = u32::MAX;

/// The neighbours of a key in the list of its hash slot.
#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

/// The keys of each hash slot, the newest first.
#[derive(Clone)]
pub struct SlotIndex {
    heads: Box<[u32]>,
    counts: Box<[u32]>,
    /// By the place of a key in the slab.
    links: Vec<Links>,
}

impl Default for SlotIndex {
    fn default() -> SlotIndex {
        SlotIndex { heads: vec![END; SLOTS].into(), counts: vec![0; SLOTS].into(), links: Vec::new() }
    }
}

impl SlotIndex {
    /// Adds the key at a place.
    pub fn insert(&mut self, key: &[u8], place: u32) {
        let slot = hash_slot(key) as usize;
        let next = std::mem::replace(&mut self.heads[slot], place);
        if self.links.len() <= place as usize {
            self.links.resize(place as usize + 1, Links { previous: END, next: END });
        }
        self.links[place as usize] = Links { previous: END, next };
        if next != END {
            self.links[next as usize].previous = place;
        }
        self.counts[slot] += 1;
    }

    /// Removes the key at a place.
    pub fn remove(&mut self, key: &[u8], place: u32) {
        let slot = hash_slot(key) as usize;
        let Links { previous, next } = self.links[place as usize];
        match previous {
            END => self.heads[slot] = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != END {
            self.links[next as usize].previous = previous;
        }
        self.counts[slot] -= 1;
    }

    /// Returns the number of keys in a hash slot.
    pub fn count(&self, slot: u16) -> usize {
        self.counts[slot as usize] as usize
    }

    /// Returns the places of the keys in a hash slot.
    pub fn keys(&self, slot: u16) -> impl Iterator<Item = u32> {
        let after = |place: u32| (place != END).then_some(place);
        std::iter::successors(after(self.heads[slot as usize]), move |&place| {
            after(self.links[place as usize].next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_what_was_inserted_and_not_removed() {
        let mut index = SlotIndex::default();
        let keys: Vec<String> = (0..5).map(|number| format!("{{a}}{number}")).collect();
        let slot = hash_slot(b"a");
        keys.iter().enumerate().for_each(|(place, key)| index.insert(key.as_bytes(), place as u32));
        for (gone, left) in [(2, vec![4, 3, 1, 0]), (4, vec![3, 1, 0]), (0, vec![3, 1])] {
            index.remove(keys[gone].as_bytes(), gone as u32);
            assert_eq!(index.keys(slot).collect::<Vec<_>>(), left);
            assert_eq!(index.count(slot), left.len());
        }
        index.insert(b"b", 0);
        assert_eq!((index.count(hash_slot(b"b")), index.count(slot)), (1, 2));
    }
}
