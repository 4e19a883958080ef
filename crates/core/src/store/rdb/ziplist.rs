//! Ziplists, the format of small values before Redis 7.0.
//!
//! The total bytes (4), the offset of the last entry (4) and the number of entries (2) precede the entries; `0xff`
//! follows them. Each entry begins with the length of the previous one.

use std::borrow::Cow;

use super::reader::Reader;

const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
/// The entry's length follows in four bytes.
const LONG: u8 = 0xfe;
const UNKNOWN_COUNT: u16 = u16::MAX;

/// Returns the entries of a ziplist, or `None` if it is malformed.
pub fn entries(bytes: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut reader = Reader::new(bytes);
    let total = u32::from_le_bytes(reader.array()?) as usize;
    let tail = u32::from_le_bytes(reader.array()?) as usize;
    let count = u16::from_le_bytes(reader.array()?);
    let mut entries = Vec::new();
    let (mut last_at, mut last_len) = (HEADER_BYTES, 0);
    loop {
        let at = bytes.len() - reader.len();
        let mark = reader.byte()?;
        if mark == END {
            break;
        }
        let previous =
            if mark == LONG { u32::from_le_bytes(reader.array()?) as usize } else { mark as usize };
        if previous != last_len {
            return None;
        }
        entries.push(entry(&mut reader)?);
        (last_at, last_len) = (at, bytes.len() - reader.len() - at);
    }
    let is_counted = count == UNKNOWN_COUNT || count as usize == entries.len();
    (total == bytes.len() && tail == last_at && reader.len() == 0 && is_counted).then_some(entries)
}

fn entry<'a>(reader: &mut Reader<'a>) -> Option<Cow<'a, [u8]>> {
    let mark = reader.byte()?;
    let low = (mark & 0x3f) as usize;
    let number = match mark {
        0..0x40 => return reader.take(low).map(Cow::Borrowed),
        0x40..0x80 => {
            let len = low << 8 | reader.byte()? as usize;
            return reader.take(len).map(Cow::Borrowed);
        }
        0x80 => {
            let len = u32::from_be_bytes(reader.array()?) as usize;
            return reader.take(len).map(Cow::Borrowed);
        }
        0xc0 => reader.integer(2)?,
        0xd0 => reader.integer(4)?,
        0xe0 => reader.integer(8)?,
        0xf0 => reader.integer(3)?,
        0xfe => reader.integer(1)?,
        0xf1..=0xfd => (mark & 0x0f) as i64 - 1,
        _ => return None,
    };
    Some(Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()))
}
