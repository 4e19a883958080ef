//! Hash slots: which one a key is in, and sets of them.

use std::fmt;

/// The number of hash slots of a cluster.
pub const SLOTS: usize = 16_384;

/// Returns the hash slot of a key: the CRC-16 (XMODEM) of its hash tag, or of all of it, modulo 16,384.
pub fn hash_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let len = rest.iter().position(|&byte| byte == b'}').filter(|&len| len > 0)?;
        Some(&rest[..len])
    });
    let crc = tag.unwrap_or(key).iter().fold(0u16, |crc, &byte| {
        (0..8).fold(
            crc ^ u16::from(byte) << 8,
            |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 },
        )
    });
    crc % SLOTS as u16
}

/// A set of hash slots.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet(Box<[u64]>);

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet(vec![0; SLOTS / 64].into())
    }
}

impl SlotSet {
    pub fn insert(&mut self, slot: u16) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    pub fn contains(&self, slot: u16) -> bool {
        self.0[slot as usize / 64] & 1 << (slot % 64) != 0
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let after = |bits: u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
            let rests = std::iter::successors(Some(word).filter(|&bits| bits != 0), move |&bits| after(bits));
            rests.map(move |bits| at as u16 * 64 + bits.trailing_zeros() as u16)
        })
    }

    /// Returns the slots for which `owners` has the value `owner`.
    pub fn of(owners: &[u16], owner: u16) -> SlotSet {
        let word = |owners: &[u16]| {
            let bits = owners.iter().enumerate().map(|(bit, &own)| u64::from(own == owner) << bit);
            bits.fold(0, |word, bit| word | bit)
        };
        SlotSet(owners.chunks(64).map(word).collect())
    }

    /// Feeds the set to `sink`.
    pub fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        self.0.iter().for_each(|word| sink(&word.to_le_bytes()));
    }

    /// Returns the first and the last slot of each range without gaps, in order.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        ranges(self.iter())
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<T: IntoIterator<Item = u16>>(slots: T) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

/// Returns the first and the last of each range without gaps in an ascending sequence of slots.
pub fn ranges(slots: impl Iterator<Item = u16>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for slot in slots {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    ranges
}

/// Returns the slots of one of `masters` that share all of them evenly, as `redis-cli --cluster create` assigns them.
pub fn even_share(master: usize, masters: usize) -> std::ops::Range<u16> {
    let each = SLOTS as f64 / masters as f64;
    let bound =
        |master: usize| if master == masters { SLOTS as u16 } else { (master as f64 * each).round() as u16 };
    bound(master)..bound(master + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_slots_of_redis() {
        for (key, slot) in
            [("foo", 12182), ("123456789", 12739), ("", 0), ("{foo}bar", 12182), ("{}foo", 9500)]
        {
            assert_eq!(hash_slot(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn shares_are_those_of_redis_cli_and_cover_everything() {
        assert_eq!([0, 1, 2].map(|master| even_share(master, 3)), [0..5461, 5461..10923, 10923..16384]);
        for masters in 1..=100 {
            let total: usize = (0..masters).map(|master| even_share(master, masters).len()).sum();
            assert_eq!(total, SLOTS);
        }
    }

    #[test]
    fn sets_know_their_ranges() {
        let set: SlotSet = [0, 1, 2, 7, 16_382, 16_383].into_iter().collect();
        assert_eq!(set.ranges(), [(0, 2), (7, 7), (16_382, 16_383)]);
    }
}
