//! SHA-1, by which scripts are named.

// Also for those who make digests of whole runs.
pub use sha1::{Digest, Sha1};

/// Returns the SHA-1 of `bytes` in lower-case hex.
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
        pair[0] = DIGITS[(byte >> 4) as usize];
        pair[1] = DIGITS[(byte & 15) as usize];
    }
    hex
}
