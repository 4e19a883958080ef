//! Passwords: the server stores only their SHA-256.

use sha2::{Digest, Sha256};

/// The SHA-256 of a password in lower-case hex.
pub type Hash = [u8; 64];

/// Returns the hash of a password.
pub fn hash(password: &[u8]) -> Hash {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 64];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha256::digest(password)) {
        pair[0] = DIGITS[(byte >> 4) as usize];
        pair[1] = DIGITS[(byte & 15) as usize];
    }
    hex
}

/// Reads a hash: exactly 64 lower-case hexadecimal digits.
pub fn parse_hash(text: &[u8]) -> Option<Hash> {
    let hash: Hash = text.try_into().ok()?;
    hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(hash)
}

/// Compares two hashes in a time that does not depend on where they differ.
pub fn is_equal(one: &Hash, other: &Hash) -> bool {
    let difference = one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256_in_lower_case_hex() {
        let hex = b"148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940";
        assert_eq!(&hash(b"p"), hex);
        assert_eq!(parse_hash(hex), Some(*hex));
        assert_eq!(parse_hash(&hex.to_ascii_uppercase()), None);
        assert_eq!(parse_hash(&hex[1..]), None);
        assert!(is_equal(hex, hex) && !is_equal(hex, &hash(b"q")));
    }
}
