//! Listpacks: a sequence of entries, each an integer or a string followed by the entry's length.
//!
//! A header with the total bytes (4) and the number of entries (2) precedes the entries; `0xff` follows them.
//!
//! [`Listpack`] writes a listpack and [`entries`] reads one that is not trusted. The other functions work on the bytes of a
//! listpack that is known to be sound, which streams keep in memory.

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
        match parse_i64(entry) {
            Some(number) => self.push_int(number),
            None => self.push_with(|bytes| push_string(bytes, entry)),
        }
    }

    /// Appends an integer.
    pub fn push_int(&mut self, number: i64) {
        self.push_with(|bytes| push_integer(bytes, number));
    }

    fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
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
        entries.push(read_element(&mut reader, mark)?.into_text());
        let back = Back::of(before - reader.len());
        if reader.take(back.len)? != back.bytes() {
            return None;
        }
    }
    let is_counted = count == UNKNOWN_COUNT || count as usize == entries.len();
    (reader.len() == 0 && is_counted).then_some(entries)
}

/// An entry as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    Int(i64),
    Text(&'a [u8]),
}

impl<'a> Element<'a> {
    /// Returns the integer, or `None` for a string that does not read as one.
    pub fn number(self) -> Option<i64> {
        match self {
            Element::Int(number) => Some(number),
            Element::Text(text) => parse_i64(text),
        }
    }

    /// Returns the entry as text, written to `digits` if it is an integer.
    pub fn bytes(self, digits: &'a mut itoa::Buffer) -> &'a [u8] {
        match self {
            Element::Int(number) => digits.format(number).as_bytes(),
            Element::Text(text) => text,
        }
    }

    /// Returns whether the entry's text is `text`.
    pub fn equals(self, text: &[u8]) -> bool {
        self.bytes(&mut itoa::Buffer::new()) == text
    }

    fn into_text(self) -> Cow<'a, [u8]> {
        match self {
            Element::Int(number) => Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()),
            Element::Text(text) => Cow::Borrowed(text),
        }
    }
}

/// Reads an entry without the length that follows it.
fn read_element<'a>(reader: &mut Reader<'a>, mark: u8) -> Option<Element<'a>> {
    let low = |bits: u32| (mark & ((1 << bits) - 1)) as usize;
    let number = match mark {
        0..0x80 => mark as i64,
        0x80..0xc0 => return reader.take(low(6)).map(Element::Text),
        0xc0..0xe0 => {
            // Thirteen bits, of which the highest is the sign.
            let bits = (low(5) as i64) << 8 | reader.byte()? as i64;
            bits << 51 >> 51
        }
        0xe0..0xf0 => {
            let len = low(4) << 8 | reader.byte()? as usize;
            return reader.take(len).map(Element::Text);
        }
        0xf0 => {
            let len = u32::from_le_bytes(reader.array()?) as usize;
            return reader.take(len).map(Element::Text);
        }
        0xf1 => reader.integer(2)?,
        0xf2 => reader.integer(3)?,
        0xf3 => reader.integer(4)?,
        0xf4 => reader.integer(8)?,
        _ => return None,
    };
    Some(Element::Int(number))
}

// ---- sound listpacks in memory ---------------------------------------------------------------------------------------

const SOUND: &str = "a listpack in memory is sound";

/// A listpack without entries.
pub const EMPTY: [u8; 7] = [7, 0, 0, 0, 0, 0, END];

/// The position of the first entry.
pub const FIRST: usize = HEADER_BYTES;

/// Returns the entry at a position, and the position of the next.
pub fn element(bytes: &[u8], at: usize) -> (Element<'_>, usize) {
    let mut reader = Reader::new(&bytes[at..]);
    let before = reader.len();
    let element = reader.byte().and_then(|mark| read_element(&mut reader, mark)).expect(SOUND);
    let len = before - reader.len();
    (element, at + len + Back::of(len).len)
}

/// Returns the position after the entry at a position.
pub fn next(bytes: &[u8], at: usize) -> usize {
    element(bytes, at).1
}

/// Returns the position of the entry that ends at a position.
pub fn previous(bytes: &[u8], end: usize) -> usize {
    let (mut len, mut back) = (0, 0);
    loop {
        let byte = bytes[end - 1 - back];
        len |= ((byte & 0x7f) as usize) << (7 * back);
        back += 1;
        if byte & 0x80 == 0 {
            return end - back - len;
        }
    }
}

/// Appends the entries that `write` pushes.
pub fn append(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Listpack)) {
    let known = u16::from_le_bytes([bytes[4], bytes[5]]);
    bytes.pop();
    let mut listpack = Listpack { bytes: std::mem::take(bytes), count: 0 };
    write(&mut listpack);
    listpack.count = match known {
        UNKNOWN_COUNT => usize::MAX,
        known => known as usize + listpack.count,
    };
    *bytes = listpack.finish();
}

/// Replaces the entry at a position by an integer.
pub fn replace_int(bytes: &mut Vec<u8>, at: usize, number: i64) {
    let end = next(bytes, at);
    let mut entry = Listpack { bytes: Vec::with_capacity(10), count: 0 };
    entry.push_int(number);
    if entry.bytes.len() == end - at {
        bytes[at..end].copy_from_slice(&entry.bytes);
        return;
    }
    bytes.splice(at..end, entry.bytes);
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
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

    proptest! {
        #[test]
        fn a_listpack_in_memory_is_walked_both_ways(written in prop::collection::vec(entry(), 1..20), at: prop::sample::Index, number: i64) {
            let mut bytes = EMPTY.to_vec();
            append(&mut bytes, |listpack| written.iter().for_each(|entry| listpack.push(entry)));
            let mut listpack = Listpack::new();
            written.iter().for_each(|entry| listpack.push(entry));
            prop_assert_eq!(&bytes, &listpack.finish());
            let index = at.index(written.len());
            let position = (0..index).fold(FIRST, |at, _| next(&bytes, at));
            prop_assert!(element(&bytes, position).0.equals(&written[index]));
            prop_assert_eq!(previous(&bytes, next(&bytes, position)), position);
            replace_int(&mut bytes, position, number);
            let mut changed: Vec<Cow<[u8]>> = written.iter().map(|entry| Cow::Borrowed(&entry[..])).collect();
            changed[index] = Cow::Owned(number.to_string().into_bytes());
            prop_assert_eq!(entries(&bytes), Some(changed));
        }
    }
}
