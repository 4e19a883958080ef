//! HyperLogLogs: strings that estimate how many different elements were added to them, in Redis's format, byte for byte.
//!
//! A HyperLogLog is a header of 16 bytes and 16,384 registers. Each register holds the longest run of zeros, plus one, that
//! the hash of an element has had among the elements that belong to it.
//!
//! | bytes | header |
//! |---|---|
//! | 0–3 | `HYLL` |
//! | 4 | the encoding: 0 dense, 1 sparse |
//! | 5–7 | unused |
//! | 8–15 | the last estimate, little-endian; its highest bit says that the registers have changed since |
//!
//! Strings come from clients, so any bytes may follow a valid header. Sources: `hyperloglog.c` of Redis for the format, Otmar
//! Ertl, arXiv:1702.01284, for the estimate.

mod dense;
mod estimate;
mod hash;
mod sparse;

pub use sparse::{Opcode, opcodes};

use super::Limits;

/// The number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// The bits of a hash that select the register.
const INDEX_BITS: u32 = 14;
/// The other bits of a hash, whose zeros count.
const RANK_BITS: u32 = 64 - INDEX_BITS;
const HEADER: usize = 16;
const DENSE_LEN: usize = HEADER + dense::LEN;

/// The form of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits for each register.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

/// The registers of a string with a valid header are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupted;

/// Creates an empty HyperLogLog, in the sparse encoding.
pub fn empty() -> Vec<u8> {
    let mut bytes = b"HYLL\x01".to_vec();
    bytes.resize(HEADER, 0);
    sparse::append_zeros(&mut bytes, REGISTERS);
    bytes
}

/// Returns the encoding of a string that has the header of a HyperLogLog and, if it is dense, the right length.
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    let header = bytes.first_chunk::<HEADER>().filter(|header| header.starts_with(b"HYLL"))?;
    match header[4] {
        0 if bytes.len() == DENSE_LEN => Some(Encoding::Dense),
        1 => Some(Encoding::Sparse),
        _ => None,
    }
}

/// Adds an element. Returns whether a register has changed. A sparse form that would exceed
/// `hll_sparse_max_bytes` becomes dense.
///
/// # Errors
/// If the registers are malformed.
pub fn add(bytes: &mut Vec<u8>, element: &[u8], limits: &Limits) -> Result<bool, Corrupted> {
    let (index, rank) = hash::place(element);
    raise(bytes, index, rank, limits)
}

/// Raises a register to `rank` if it is lower. Returns whether it was.
///
/// # Errors
/// If the registers are malformed.
pub fn raise(bytes: &mut Vec<u8>, index: usize, rank: u8, limits: &Limits) -> Result<bool, Corrupted> {
    if encoding(bytes) == Some(Encoding::Sparse) {
        match sparse::raise(bytes, index, rank, limits.hll_sparse_max_bytes)? {
            sparse::Raised::Yes => invalidate(bytes),
            sparse::Raised::No => return Ok(false),
            sparse::Raised::TooLarge => {
                make_dense(bytes, limits)?;
                return Ok(dense::raise(&mut bytes[HEADER..], index, rank));
            }
        }
        return Ok(true);
    }
    Ok(dense::raise(&mut bytes[HEADER..], index, rank))
}

/// Converts a sparse form to the dense one. Returns whether it was sparse. Keeps the last estimate.
///
/// # Errors
/// If the registers are malformed.
pub fn make_dense(bytes: &mut Vec<u8>, limits: &Limits) -> Result<bool, Corrupted> {
    if encoding(bytes) != Some(Encoding::Sparse) {
        return Ok(false);
    }
    let mut registers = Registers::default();
    registers.merge(bytes, limits)?;
    bytes.truncate(HEADER);
    bytes[4] = 0;
    bytes.resize(DENSE_LEN, 0);
    for (index, &rank) in registers.0.iter().enumerate() {
        dense::raise(&mut bytes[HEADER..], index, rank);
    }
    Ok(true)
}

/// Returns the last estimate, unless the registers have changed since.
pub fn cached(bytes: &[u8]) -> Option<u64> {
    let card = bytes.get(8..)?.first_chunk::<8>()?;
    (card[7] & 0x80 == 0).then(|| u64::from_le_bytes(*card))
}

/// Stores an estimate.
pub fn cache(bytes: &mut [u8], estimate: u64) {
    bytes[8..HEADER].copy_from_slice(&estimate.to_le_bytes());
}

/// Notes that the registers have changed since the last estimate.
pub fn invalidate(bytes: &mut [u8]) {
    bytes[15] |= 0x80;
}

/// Estimates the number of elements from the registers.
///
/// # Errors
/// If the registers are malformed.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupted> {
    let mut histogram = [0; estimate::RANKS];
    match encoding(bytes) {
        Some(Encoding::Sparse) => sparse::count_ranks(&bytes[HEADER..], &mut histogram)?,
        _ => dense::ranks(&bytes[HEADER..]).for_each(|rank| histogram[rank as usize] += 1),
    }
    Ok(estimate::cardinality(&histogram))
}

/// All registers, a byte each: the union of several HyperLogLogs.
pub struct Registers(Box<[u8; REGISTERS]>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(Box::new([0; REGISTERS]))
    }
}

impl Registers {
    /// Raises each register to that of a HyperLogLog.
    ///
    /// # Errors
    /// If its registers are malformed. Some may have been raised nevertheless.
    pub fn merge(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Corrupted> {
        if encoding(bytes) == Some(Encoding::Sparse) {
            return sparse::merge(&bytes[HEADER..], &mut self.0, limits.version);
        }
        for (register, rank) in self.0.iter_mut().zip(dense::ranks(&bytes[HEADER..])) {
            *register = rank.max(*register);
        }
        Ok(())
    }

    /// Estimates the number of elements.
    pub fn count(&self) -> u64 {
        let mut histogram = [0; estimate::RANKS];
        self.iter().for_each(|rank| histogram[rank as usize] += 1);
        estimate::cardinality(&histogram)
    }

    /// Returns the registers in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests;
