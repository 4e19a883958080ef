//! Files of data (`dump.rdb`): all keys of a server, and its libraries of functions.

use super::reader::Reader;
use super::writer::Writer;
use super::{crc64, format_version, load, save};
use crate::store::{Limits, Store, Value};
use crate::version::Version;

/// What follows in the file, where no key does.
mod opcode {
    /// The slot of the keys that follow, in files of a cluster.
    pub const SLOT_INFO: u8 = 244;
    pub const LIBRARY: u8 = 245;
    pub const IDLE_S: u8 = 248;
    pub const FREQUENCY: u8 = 249;
    /// A name and a value that say something about the file.
    pub const AUXILIARY: u8 = 250;
    /// How many keys a database has.
    pub const SIZES: u8 = 251;
    pub const EXPIRES_AT_MS: u8 = 252;
    pub const EXPIRES_AT_S: u8 = 253;
    pub const SELECT: u8 = 254;
    pub const END: u8 = 255;
}

/// The bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;
/// The first version of the format that ends with a checksum.
const CHECKSUM_SINCE: u16 = 5;

/// The content of a file.
#[derive(Default)]
pub struct File {
    pub keys: Vec<Key>,
    /// The texts of the libraries of functions.
    pub libraries: Vec<Box<[u8]>>,
}

/// A key of a file.
pub struct Key {
    pub db: usize,
    pub name: Box<[u8]>,
    pub value: Value,
    /// Unix time.
    pub expires_at_ms: Option<i64>,
}

/// The reason why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// It does not begin like a file of data.
    WrongSignature,
    /// Its format is newer than the release.
    NewerFormat(u16),
    WrongChecksum,
    /// It is cut off, malformed, or has what Redlatch does not have, such as data of a module.
    BadFormat,
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::WrongSignature => f.write_str("Wrong signature trying to load DB from file"),
            FileError::NewerFormat(version) => write!(f, "Can't handle RDB format version {version}"),
            FileError::WrongChecksum => f.write_str("Wrong RDB checksum"),
            FileError::BadFormat => f.write_str("Bad data format in the RDB file"),
        }
    }
}

/// Reads a file. The limits decide the encodings of values, and name the release that reads it.
///
/// # Errors
/// If it is not a file that the release could have written or would read.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<File, FileError> {
    let (signature_len, digits) = match bytes {
        [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (9, digits.get(..4)),
        [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (9, digits.get(..3)),
        _ => return Err(FileError::WrongSignature),
    };
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let version: u16 = digits.and_then(|digits| digits.parse().ok()).ok_or(FileError::WrongSignature)?;
    if version == 0 || version > format_version(limits.version) {
        return Err(FileError::NewerFormat(version));
    }
    let mut body = &bytes[signature_len..];
    if version >= CHECKSUM_SINCE {
        let end = bytes.len().checked_sub(CHECKSUM_BYTES).filter(|&end| end >= signature_len);
        let (before, checksum) = bytes.split_at(end.ok_or(FileError::BadFormat)?);
        // Zeros say that the file has no checksum.
        if checksum != [0; CHECKSUM_BYTES] && crc64::checksum(before).to_le_bytes() != checksum {
            return Err(FileError::WrongChecksum);
        }
        body = &before[signature_len..];
    }
    read_body(&mut Reader::new(body), limits).ok_or(FileError::BadFormat)
}

fn read_body(reader: &mut Reader, limits: &Limits) -> Option<File> {
    let mut file = File::default();
    let mut db = 0;
    let mut expires_at_ms = None;
    loop {
        match reader.byte()? {
            opcode::SLOT_INFO => {
                reader.length()?;
                reader.length()?;
                reader.length()?;
            }
            opcode::LIBRARY => file.libraries.push(reader.string()?.into()),
            opcode::IDLE_S => {
                reader.length()?;
            }
            opcode::FREQUENCY => {
                reader.byte()?;
            }
            opcode::AUXILIARY => {
                reader.string()?;
                reader.string()?;
            }
            opcode::SIZES => {
                reader.length()?;
                reader.length()?;
            }
            opcode::EXPIRES_AT_MS => expires_at_ms = Some(i64::from_le_bytes(reader.array()?)),
            opcode::EXPIRES_AT_S => {
                expires_at_ms = Some(i64::from(i32::from_le_bytes(reader.array()?)) * 1000);
            }
            opcode::SELECT => db = usize::try_from(reader.length()?).ok()?,
            opcode::END => return Some(file),
            kind => {
                let name = reader.string()?.into();
                let value = load::content(reader, kind, limits)?;
                file.keys.push(Key { db, name, value, expires_at_ms: expires_at_ms.take() });
            }
        }
    }
}

/// Writes the file of a release, with its libraries of functions.
pub fn write<'a>(
    store: &Store,
    libraries: impl Iterator<Item = &'a [u8]>,
    version: Version,
    compress: bool,
) -> Vec<u8> {
    let mut writer = Writer::new(compress);
    let format = format_version(version);
    writer.raw(
        match version.is_valkey_since(Version::Valkey9_0) {
            true => format!("VALKEY{format:03}"),
            false => format!("REDIS{format:04}"),
        }
        .as_bytes(),
    );
    let unix_s = (store.now.wall_ms() / 1000).to_string();
    let release = if version.is_valkey() { "valkey-ver" } else { "redis-ver" };
    for (name, value) in [(release, version.full()), ("redis-bits", "64"), ("ctime", &unix_s)] {
        writer.byte(opcode::AUXILIARY);
        writer.string(name.as_bytes());
        writer.string(value.as_bytes());
    }
    for text in libraries {
        writer.byte(opcode::LIBRARY);
        writer.string(text);
    }
    for (number, db) in store.dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        writer.byte(opcode::SELECT);
        writer.length(number as u64);
        writer.byte(opcode::SIZES);
        writer.length(db.len() as u64);
        writer.length(db.volatile() as u64);
        for (_, name, entry) in db.iter() {
            if let Some(end_ms) = entry.expires_at_ms() {
                writer.byte(opcode::EXPIRES_AT_MS);
                writer.raw(&end_ms.to_le_bytes());
            }
            let mut object = Writer::new(compress);
            save::value(&mut object, &entry.value, version);
            let object = object.into_bytes();
            writer.raw(&object[..1]);
            writer.string(name);
            writer.raw(&object[1..]);
        }
    }
    writer.byte(opcode::END);
    let mut bytes = writer.into_bytes();
    let checksum = crc64::checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}
