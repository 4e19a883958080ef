//! Writes lengths and strings.

use super::lzf;
use crate::num::parse_i64;

/// The longest string that is not compressed, in bytes.
const MAX_UNCOMPRESSED: usize = 20;

/// An object under construction.
pub struct Writer {
    bytes: Vec<u8>,
    compress: bool,
}

impl Writer {
    /// Creates a writer. With `compress`, it compresses long strings.
    pub fn new(compress: bool) -> Writer {
        Writer { bytes: Vec::new(), compress }
    }

    /// Returns the bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes one byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a length in as few bytes as possible; the upper two bits of the first byte state how many.
    pub fn length(&mut self, len: u64) {
        match len {
            0..64 => self.byte(len as u8),
            64..16384 => self.raw(&(0x4000 | len as u16).to_be_bytes()),
            _ => match u32::try_from(len) {
                Ok(len) => {
                    self.byte(0x80);
                    self.raw(&len.to_be_bytes());
                }
                Err(_) => {
                    self.byte(0x81);
                    self.raw(&len.to_be_bytes());
                }
            },
        }
    }

    /// Writes a string: integers of up to 32 bits in binary, long strings compressed if that saves space, all others
    /// unchanged.
    pub fn string(&mut self, string: &[u8]) {
        if let Some(number) = parse_i64(string).and_then(|number| i32::try_from(number).ok()) {
            self.integer(number);
            return;
        }
        if self.compress
            && string.len() > MAX_UNCOMPRESSED
            && let Some(compressed) = lzf::compress(string)
        {
            self.byte(0xc3);
            self.length(compressed.len() as u64);
            self.length(string.len() as u64);
            self.raw(&compressed);
            return;
        }
        self.length(string.len() as u64);
        self.raw(string);
    }

    fn integer(&mut self, number: i32) {
        let whole = number.to_le_bytes();
        let (mark, len) = match number {
            -0x80..=0x7f => (0xc0, 1),
            -0x8000..=0x7fff => (0xc1, 2),
            _ => (0xc2, 4),
        };
        self.byte(mark);
        self.raw(&whole[..len]);
    }
}
