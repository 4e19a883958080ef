//! Libraries of functions: what FUNCTION DUMP returns and FUNCTION RESTORE reads.

use super::{FOOTER_BYTES, Reader, Refusal, Writer, check, seal};
use crate::version::Version;

/// Precedes the text of a library.
const LIBRARY: u8 = 245;
/// Precedes a library in the format of a release candidate of 7.0.
const EARLY_LIBRARY: u8 = 246;

/// Serializes the texts of libraries.
pub fn dump_libraries<'a>(
    texts: impl Iterator<Item = &'a [u8]>,
    version: Version,
    compress: bool,
) -> Vec<u8> {
    let mut writer = Writer::new(compress);
    for text in texts {
        writer.byte(LIBRARY);
        writer.string(text);
    }
    seal(writer.into_bytes(), version)
}

/// Calls `load` with the text of each library.
///
/// # Errors
///
/// Fails with Redis's error text if the payload is malformed, or with the first error of `load`.
pub fn restore_libraries<E: From<&'static str>>(
    payload: &[u8],
    version: Version,
    mut load: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    check(payload, version)
        .map_err(|_: Refusal| E::from("ERR DUMP payload version or checksum are wrong"))?;
    // As in Redis, the reader of a text may read into the footer.
    let mut reader = Reader::new(payload);
    while reader.len() > FOOTER_BYTES {
        match reader.byte() {
            Some(LIBRARY) => {}
            Some(EARLY_LIBRARY) => return Err("ERR Pre-GA function format not supported".into()),
            _ => return Err("ERR given type is not a function".into()),
        }
        let text = reader.string().ok_or("ERR Failed loading library payload")?;
        load(&text)?;
    }
    Ok(())
}
