//! Passwords: the server stores only their SHA-256.

use sha2::{Digest, Sha256};

/// The SHA-256 of a password in lower-case hex. There is no `==` for it: [`is_equal`](Hash::is_equal) is the only way to compare two.
#[derive(Clone, Debug)]
pub struct Hash([u8; 64]);

/// Returns the hash of a password.
pub fn hash(password: &[u8]) -> Hash {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 64];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha256::digest(password)) {
        pair[0] = DIGITS[(byte >> 4) as usize];
        pair[1] = DIGITS[(byte & 15) as usize];
    }
    Hash(hex)
}

/// Reads a hash: exactly 64 lower-case hexadecimal digits.
pub fn parse_hash(text: &[u8]) -> Option<Hash> {
    let hash: [u8; 64] = text.try_into().ok()?;
    hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(Hash(hash))
}

impl Hash {
    /// Compares two hashes in a time that does not depend on where they differ.
    pub fn is_equal(&self, other: &Hash) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |bits, (one, other)| bits | (one ^ other));
        std::hint::black_box(difference) == 0
    }

    /// Returns the digits, to show or to store them.
    pub fn digits(&self) -> &[u8; 64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256_in_lower_case_hex() {
        let hex = b"148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940";
        assert_eq!(hash(b"p").digits(), hex);
        assert_eq!(parse_hash(hex).map(|hash| *hash.digits()), Some(*hex));
        assert!(parse_hash(&hex.to_ascii_uppercase()).is_none());
        assert!(parse_hash(&hex[1..]).is_none());
        assert!(hash(b"p").is_equal(&hash(b"p")) && !hash(b"p").is_equal(&hash(b"q")));
    }

    /// A comparison with `==` takes longer the later two values differ. The type has none, and nobody compares its digits.
    #[test]
    fn hashes_are_compared_in_constant_time_only() {
        let own = include_str!("password.rs").split("#[cfg(test)]").next().unwrap_or_default();
        assert!(!own.contains("PartialEq") && own.matches(" == ").count() == 1, "another comparison");
        let user = include_str!("user.rs");
        for line in user.lines().filter(|line| line.contains("digits()")) {
            assert!(!line.contains("==") && !line.contains("contains("), "{line}");
        }
        assert!(user.contains("found | hash.is_equal(&given)"), "every password is compared");
    }
}
