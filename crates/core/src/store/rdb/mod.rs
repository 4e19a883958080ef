//! Serialized values: what DUMP returns and RESTORE reads.
//!
//! A payload is the object as in an RDB file (a byte for type and encoding, then the content), the version of the RDB
//! format in two bytes, and a CRC-64 of all this:
//!
//! - `writer` and `reader` handle lengths and strings, which may be integers or compressed (`lzf`);
//! - `listpack` and `intset` are the byte formats of small values, `ziplist` and `zipmap` those of earlier
//!   releases;
//! - `save` and `load` handle the value types, `stream` the streams, `file` whole files.
//!
//! The reader does not trust its input: it checks every format entry by entry, and allocates nothing for a length that
//! the payload cannot contain.

mod crc64;
pub mod file;
mod intset;
mod kinds;
mod libraries;
pub(super) mod listpack;
mod load;
mod lzf;
mod reader;
mod save;
mod stream;
mod writer;
mod ziplist;
mod zipmap;

pub use self::libraries::{dump_libraries, restore_libraries};
use self::reader::Reader;
use self::writer::Writer;
use super::{Limits, Value};
use crate::version::Version;

/// The bytes of the version and the checksum at the end of a payload.
const FOOTER_BYTES: usize = 10;

/// The reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    VersionOrChecksum,
    BadFormat,
}

/// Returns the version of the RDB format that a release writes, which is also the latest that it reads.
fn format_version(version: Version) -> u16 {
    match version {
        Version::V7_0 => 10,
        Version::V7_2 | Version::Valkey8_1 => 11,
        Version::Valkey9_0 | Version::Valkey9_1 | Version::Valkey9_2 => 80,
        Version::V7_4 | Version::V8_0 | Version::V8_2 | Version::V8_4 => 12,
        Version::V8_6 | Version::V8_8 | Version::V8_10 => 13,
    }
}

/// Serializes a value as a release does. With `compress`, long strings are compressed if that saves space.
pub fn dump(value: &Value, version: Version, compress: bool) -> Vec<u8> {
    let mut writer = Writer::new(compress);
    save::value(&mut writer, value, version);
    seal(writer.into_bytes(), version)
}

/// Returns the number of bytes of a value in a file, without its type.
pub fn object_len(value: &Value, version: Version, compress: bool) -> usize {
    let mut writer = Writer::new(compress);
    save::value(&mut writer, value, version);
    writer.into_bytes().len().saturating_sub(1)
}

/// Turns an object into a payload by appending the release's format version and the checksum.
pub fn seal(mut object: Vec<u8>, version: Version) -> Vec<u8> {
    object.extend_from_slice(&format_version(version).to_le_bytes());
    let checksum = crc64::checksum(&object);
    object.extend_from_slice(&checksum.to_le_bytes());
    object
}

/// Reads a serialized value. The limits decide the value's encoding and name the release that reads it.
///
/// # Errors
///
/// Fails if the checksum or the format version is wrong, or the object is malformed.
pub fn restore(payload: &[u8], limits: &Limits) -> Result<Value, Refusal> {
    check(payload, limits.version)?;
    // As in Redis, the object's reader may read into the footer, and bytes between the object and the footer are
    // ignored.
    load::value(&mut Reader::new(payload), limits).ok_or(Refusal::BadFormat)
}

/// Checks the format version and the checksum at the end of a payload.
fn check(payload: &[u8], reader: Version) -> Result<(), Refusal> {
    let footer_at = payload.len().checked_sub(FOOTER_BYTES).ok_or(Refusal::VersionOrChecksum)?;
    let (body, checksum) = payload.split_at(footer_at + 2);
    let version = u16::from_le_bytes([body[footer_at], body[footer_at + 1]]);
    // Valkey refuses what Redis has written since the two parted.
    let is_foreign = reader.is_valkey() && (12..80).contains(&version);
    // Zeros say that the payload has no checksum.
    let is_unchecked = reader >= Version::V8_6 && checksum == [0; 8];
    let is_intact = || crc64::checksum(body).to_le_bytes() == checksum;
    if version > format_version(reader) || is_foreign || !is_unchecked && !is_intact() {
        return Err(Refusal::VersionOrChecksum);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
