//! Reads lengths, strings and numbers. Every method returns `None` if the input is too short or malformed.

use std::borrow::Cow;

use super::lzf;
use crate::num::parse_f64;

/// The unread rest of the input.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Returns the number of bytes left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Reads `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        self.rest.split_off(..count)
    }

    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.rest.split_off_first().copied()
    }

    /// Reads a signed little-endian integer of up to eight bytes.
    pub fn integer(&mut self, width: usize) -> Option<i64> {
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(self.take(width)?);
        let unused = 64 - 8 * width as u32;
        Some(i64::from_le_bytes(whole) << unused >> unused)
    }

    /// Reads a length. Where the input has an encoded string instead, Redis reads the number of its encoding as the
    /// length.
    pub fn length(&mut self) -> Option<u64> {
        let first = self.byte()?;
        match first {
            0x40..0x80 => Some(((first & 0x3f) as u64) << 8 | self.byte()? as u64),
            0x80 => Some(u32::from_be_bytes(self.array()?) as u64),
            0x81 => Some(u64::from_be_bytes(self.array()?)),
            0x82..0xc0 => None,
            _ => Some((first & 0x3f) as u64),
        }
    }

    /// Reads a length and checks that it fits memory sizes.
    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.length()?).ok()
    }

    /// Reads a string, and decodes integers and compressed strings.
    pub fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        let number = match self.rest.first()? {
            0..0xc0 => {
                let len = self.size()?;
                return self.take(len).map(Cow::Borrowed);
            }
            0xc3 => {
                self.byte()?;
                let (compressed, len) = (self.size()?, self.size()?);
                return lzf::decompress(self.take(compressed)?, len).map(Cow::Owned);
            }
            encoding @ 0xc0..0xc3 => {
                let width = 1 << (encoding & 3);
                self.byte()?;
                self.integer(width)?
            }
            _ => return None,
        };
        Some(Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()))
    }

    /// Reads a double stored as text after its length; three special lengths mean NaN and the infinities. Refuses NaN.
    pub fn double_text(&mut self) -> Option<f64> {
        match self.byte()? {
            253 => None,
            254 => Some(f64::INFINITY),
            255 => Some(f64::NEG_INFINITY),
            len => parse_f64(self.take(len as usize)?),
        }
    }

    /// Reads a double of eight bytes. Refuses NaN.
    pub fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.array()?)).filter(|value| !value.is_nan())
    }
}
