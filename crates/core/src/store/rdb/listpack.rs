//! Listpacks: a sequence of entries, each an integer or a string followed by the entry's length.
//!
//! A header with the total bytes (4) and the number of entries (2) precedes the entries; `0xff` follows them.

use std::borrow::Cow;

use super::reader::Reader;
use crate::num::parse_i64;

const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
/// Marks a number of entries that is too large for the header.
const UNKNOWN_COUNT: u16 = u16::MAX;

/// A listpack under construction.
pub struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Listpack {
    /// Creates an empty listpack.
    pub fn new() -> Listpack {
        Listpack { bytes: vec![0; HEADER_BYTES], count: 0 }
    }

    /// Appends an entry, as an integer if it reads as one.
    pub fn push(&mut self, entry: &[u8]) {
        let start = self.bytes.len();
        match parse_i64(entry) {
            Some(number) => push_integer(&mut self.bytes, number),
            None => push_string(&mut self.bytes, entry),
        }
        let back = Back::of(self.bytes.len() - start);
        self.bytes.extend_from_slice(back.bytes());
        self.count += 1;
    }

    /// Returns the bytes of the complete listpack.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(UNKNOWN_COUNT);
        self.bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

fn push_integer(bytes: &mut Vec<u8>, number: i64) {
    let whole = number.to_le_bytes();
    match number {
        0..=127 => bytes.push(whole[0]),
        -4096..=4095 => bytes.extend_from_slice(&[0xc0 | whole[1] & 0x1f, whole[0]]),
        _ => {
            let (mark, len) = match number {
                -0x8000..=0x7fff => (0xf1, 2),
                -0x80_0000..=0x7f_ffff => (0xf2, 3),
                -0x8000_0000..=0x7fff_ffff => (0xf3, 4),
                _ => (0xf4, 8),
            };
            bytes.push(mark);
            bytes.extend_from_slice(&whole[..len]);
        }
    }
}

fn push_string(bytes: &mut Vec<u8>, string: &[u8]) {
    let len = (string.len() as u32).to_le_bytes();
    match string.len() {
        0..64 => bytes.push(0x80 | len[0]),
        64..4096 => bytes.extend_from_slice(&[0xe0 | len[1], len[0]]),
        _ => {
            bytes.push(0xf0);
            bytes.extend_from_slice(&len);
        }
    }
    bytes.extend_from_slice(string);
}

/// The length that follows an entry, to be read backwards: seven bits per byte, high bits first; the top bit is set in
/// every byte but the first.
struct Back {
    bytes: [u8; 5],
    len: usize,
}

impl Back {
    fn of(entry_bytes: usize) -> Back {
        let len = match entry_bytes {
            0..=127 => 1,
            128..16383 => 2,
            16383..2097151 => 3,
            2097151..268435455 => 4,
            _ => 5,
        };
        let mut bytes = [0; 5];
        for (group, byte) in bytes[..len].iter_mut().rev().enumerate() {
            *byte = (entry_bytes >> (7 * group)) as u8 & 0x7f | 0x80;
        }
        bytes[0] &= 0x7f;
        Back { bytes, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the entries of a listpack, or `None` if it is malformed.
pub fn entries(bytes: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut reader = Reader::new(bytes);
    let total = u32::from_le_bytes(reader.array()?) as usize;
    let count = u16::from_le_bytes(reader.array()?);
    if total != bytes.len() {
        return None;
    }
    let mut entries = Vec::new();
    loop {
        let before = reader.len();
        let mark = reader.byte()?;
        if mark == END {
            break;
        }
        entries.push(entry(&mut reader, mark)?);
        let back = Back::of(before - reader.len());
        if reader.take(back.len)? != back.bytes() {
            return None;
        }
    }
    let is_counted = count == UNKNOWN_COUNT || count as usize == entries.len();
    (reader.len() == 0 && is_counted).then_some(entries)
}

/// Reads an entry without the length that follows it.
fn entry<'a>(reader: &mut Reader<'a>, mark: u8) -> Option<Cow<'a, [u8]>> {
    let low = |bits: u32| (mark & ((1 << bits) - 1)) as usize;
    let number = match mark {
        0..0x80 => mark as i64,
        0x80..0xc0 => return reader.take(low(6)).map(Cow::Borrowed),
        0xc0..0xe0 => {
            // Thirteen bits, of which the highest is the sign.
            let bits = (low(5) as i64) << 8 | reader.byte()? as i64;
            bits << 51 >> 51
        }
        0xe0..0xf0 => {
            let len = low(4) << 8 | reader.byte()? as usize;
            return reader.take(len).map(Cow::Borrowed);
        }
        0xf0 => {
            let len = u32::from_le_bytes(reader.array()?) as usize;
            return reader.take(len).map(Cow::Borrowed);
        }
        0xf1 => reader.integer(2)?,
        0xf2 => reader.integer(3)?,
        0xf3 => reader.integer(4)?,
        0xf4 => reader.integer(8)?,
        _ => return None,
    };
    Some(Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<Vec<u8>>(),
            any::<i64>().prop_map(|number| number.to_string().into_bytes()),
            (-5000..5000i64).prop_map(|number| number.to_string().into_bytes()),
            (0..20_000usize).prop_map(|len| vec![b'x'; len]),
        ]
    }

    proptest! {
        #[test]
        fn entries_are_read_as_written(written in prop::collection::vec(entry(), 0..20)) {
            let mut listpack = Listpack::new();
            written.iter().for_each(|entry| listpack.push(entry));
            let bytes = listpack.finish();
            prop_assert_eq!(entries(&bytes), Some(written.into_iter().map(Cow::Owned).collect()));
        }
    }
}
