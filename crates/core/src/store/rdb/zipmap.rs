//! Zipmaps, the format of small hashes before Redis 2.6: fields and values, each with its length.

use std::borrow::Cow;

use super::reader::Reader;

const END: u8 = 0xff;
/// The length follows in four bytes.
const LONG: u8 = 0xfe;

/// Returns fields and values in turn, or `None` if the zipmap is malformed.
pub fn entries(bytes: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut reader = Reader::new(bytes);
    let count = reader.byte()?;
    let mut entries = Vec::new();
    loop {
        let mark = reader.byte()?;
        if mark == END {
            break;
        }
        let len = length(&mut reader, mark)?;
        entries.push(Cow::Borrowed(reader.take(len)?));
        let mark = reader.byte()?;
        let len = length(&mut reader, mark)?;
        let unused = reader.byte()?;
        entries.push(Cow::Borrowed(reader.take(len)?));
        reader.take(unused as usize)?;
    }
    let is_counted = count >= LONG || count as usize == entries.len() / 2;
    (reader.len() == 0 && is_counted).then_some(entries)
}

fn length(reader: &mut Reader, mark: u8) -> Option<usize> {
    match mark {
        END => None,
        LONG => Some(u32::from_le_bytes(reader.array()?) as usize),
        len => Some(len as usize),
    }
}
