//! CRC-64 with the Jones polynomial, reflected bits and the initial value 0.

const POLYNOMIAL: u64 = 0xad93_d235_94c9_35a9;

const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            let carry = if crc & 1 != 0 { POLYNOMIAL.reverse_bits() } else { 0 };
            crc = crc >> 1 ^ carry;
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Returns the CRC-64 of `bytes`.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_value() {
        assert_eq!(super::checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
