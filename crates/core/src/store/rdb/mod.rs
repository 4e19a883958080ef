//! Values as Redis serializes them: what DUMP gives and RESTORE takes.
//!
//! A payload is the object as an RDB file has it (a byte for its type and encoding, and the content), the version of
//! the RDB format in two bytes, and a CRC-64 of all that:
//!
//! - [`writer`] and [`reader`] know lengths and strings, which may be integers or compressed ([`lzf`]);
//! - [`listpack`] and [`intset`] are the runs of bytes that small values are kept in, [`ziplist`] and [`zipmap`] those
//!   of earlier releases;
//! - [`save`] and [`load`] know the types.
//!
//! What is read is not trusted: every run of bytes is checked entry by entry, and nothing is allocated for a length
//! that the payload does not bear out.

mod crc64;
mod intset;
mod kinds;
mod listpack;
mod load;
mod lzf;
mod reader;
mod save;
mod writer;
mod ziplist;
mod zipmap;

use self::reader::Reader;
use self::writer::Writer;
use super::{Limits, Value};
use crate::version::Version;

/// Version and checksum at the end of a payload.
const FOOTER_BYTES: usize = 10;

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    VersionOrChecksum,
    BadFormat,
}

/// Returns the version of the RDB format that a release writes, and the latest that it reads.
fn format_version(version: Version) -> u16 {
    match version {
        Version::V7_0 => 10,
        Version::V7_2 => 11,
        Version::V7_4 => 12,
    }
}

/// Serializes a value as a release does; long strings are compressed if that is asked for and pays.
pub fn dump(value: &Value, version: Version, compress: bool) -> Vec<u8> {
    let mut writer = Writer::new(compress);
    save::value(&mut writer, value, version);
    seal(writer.into_bytes(), version)
}

/// Adds to an object what makes it a payload of a release.
pub fn seal(mut object: Vec<u8>, version: Version) -> Vec<u8> {
    object.extend_from_slice(&format_version(version).to_le_bytes());
    let checksum = crc64::checksum(&object);
    object.extend_from_slice(&checksum.to_le_bytes());
    object
}

/// Reads a serialized value. The limits decide which form it gets and stand for the release that reads it.
pub fn restore(payload: &[u8], limits: &Limits) -> Result<Value, Refusal> {
    let footer_at = payload.len().checked_sub(FOOTER_BYTES).ok_or(Refusal::VersionOrChecksum)?;
    let (body, checksum) = payload.split_at(footer_at + 2);
    let version = u16::from_le_bytes([body[footer_at], body[footer_at + 1]]);
    if version > format_version(limits.version) || crc64::checksum(body).to_le_bytes() != checksum {
        return Err(Refusal::VersionOrChecksum);
    }
    // As in Redis the object is not told where the footer begins, and what stands between them is not looked at.
    load::value(&mut Reader::new(payload), limits).ok_or(Refusal::BadFormat)
}

#[cfg(test)]
mod tests;
