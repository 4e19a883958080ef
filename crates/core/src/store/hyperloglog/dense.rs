//! The dense form: six bits for each register, the lowest bits of each byte first.

use super::REGISTERS;

/// The bytes of all registers.
pub(super) const LEN: usize = REGISTERS * 6 / 8;

/// Raises a register to `rank` if it is lower. Returns whether it was.
pub(super) fn raise(registers: &mut [u8], index: usize, rank: u8) -> bool {
    let (at, shift) = (index * 6 / 8, index * 6 % 8);
    let pair = u16::from_le_bytes([registers[at], registers.get(at + 1).copied().unwrap_or(0)]);
    if (pair >> shift) as u8 & 63 >= rank {
        return false;
    }
    let [low, high] = (pair & !(63 << shift) | u16::from(rank) << shift).to_le_bytes();
    registers[at] = low;
    if let Some(byte) = registers.get_mut(at + 1) {
        *byte = high;
    }
    true
}

/// Returns all registers in order.
pub(super) fn ranks(registers: &[u8]) -> impl Iterator<Item = u8> {
    let (triples, _) = registers.as_chunks::<3>();
    triples.iter().flat_map(|&[a, b, c]| {
        let four = u32::from_le_bytes([a, b, c, 0]);
        [four, four >> 6, four >> 12, four >> 18].map(|word| word as u8 & 63)
    })
}
