//! The hash of elements: MurmurHash64A by Austin Appleby, in the public domain, with Redis's seed.

use super::{INDEX_BITS, RANK_BITS, REGISTERS};

const SEED: u64 = 0xadc8_3b19;

/// Returns the register that an element belongs to, and the rank that it raises the register to.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur_64a(element, SEED);
    let index = hash as usize & (REGISTERS - 1);
    let rank = (hash >> INDEX_BITS | 1 << RANK_BITS).trailing_zeros() + 1;
    (index, rank as u8)
}

fn murmur_64a(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}
