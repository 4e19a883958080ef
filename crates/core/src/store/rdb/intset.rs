//! Intsets: the width of an integer in bytes (4 bytes), the number of integers (4 bytes), and the integers in ascending
//! order.

use super::reader::Reader;

/// Returns an intset of these integers, which must be in ascending order.
pub fn encode(numbers: &[i64]) -> Vec<u8> {
    let fits = |bits: u32| numbers.iter().all(|&number| number << (64 - bits) >> (64 - bits) == number);
    let width = if fits(16) {
        2
    } else if fits(32) {
        4
    } else {
        8
    };
    let mut bytes = (width as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes()[..width]);
    }
    bytes
}

/// Returns the integers, or `None` if their number or order contradicts the format.
pub fn decode(bytes: &[u8]) -> Option<Vec<i64>> {
    let mut reader = Reader::new(bytes);
    let width = u32::from_le_bytes(reader.array()?) as usize;
    let count = u32::from_le_bytes(reader.array()?) as usize;
    if !matches!(width, 2 | 4 | 8) || count.checked_mul(width)? != reader.len() {
        return None;
    }
    let numbers: Vec<i64> = (0..count).map(|_| reader.integer(width)).collect::<Option<_>>()?;
    numbers.is_sorted_by(|a, b| a < b).then_some(numbers)
}
