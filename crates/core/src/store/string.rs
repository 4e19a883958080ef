//! Strings: an integer, a short text or a growable buffer.

use std::borrow::Cow;

use super::small_bytes::SmallBytes;
use crate::num::parse_i64;
use crate::version::Version;

/// The longest string, in bytes, that any release keeps in one allocation with its header; see [`StringValue::settle`].
const EMBSTR_MAX: usize = 112;

/// The value of a string key.
#[derive(Clone)]
pub enum StringValue {
    Int(i64),
    /// The longest inline form that fits a [`Value`](super::Value) of 24 bytes.
    Embstr(SmallBytes<22>),
    /// Boxed because a `Vec` leaves no room for the tag. A `Box<[u8]>` could not grow in place, as `APPEND` and `SETBIT` do.
    Raw(Box<Vec<u8>>),
}

impl StringValue {
    /// Creates the value that `SET` stores: canonical integers become integers.
    pub fn new(bytes: &[u8]) -> StringValue {
        match parse_i64(bytes) {
            Some(number) => StringValue::Int(number),
            None => StringValue::text(bytes),
        }
    }

    /// Creates a string that remains text even if it reads as an integer, such as the result of `INCRBYFLOAT`.
    pub fn text(bytes: &[u8]) -> StringValue {
        if bytes.len() <= EMBSTR_MAX {
            StringValue::Embstr(bytes.into())
        } else {
            StringValue::raw(bytes.into())
        }
    }

    /// Creates a string that is not shortened, whatever its length.
    pub fn raw(bytes: Vec<u8>) -> StringValue {
        StringValue::Raw(Box::new(bytes))
    }

    /// Gives the string the encoding that it has under a key of `key_len` bytes. A raw string stays raw.
    ///
    /// Before Redis 8.2 and Valkey 9.0 a string shares an allocation with its header if that fits 64 bytes. Later the key shares
    /// it, too, and Valkey's limit is 128 bytes, of which an expiry that the key had before takes eight.
    pub fn settle(&mut self, key_len: usize, had_expiry: bool, version: Version) {
        let StringValue::Embstr(bytes) = self else { return };
        let len = bytes.len();
        let fits = if version.is_valkey_since(Version::Valkey9_0) {
            // The header of a longer key is longer.
            let most = if key_len < 32 { 113 } else { 111 };
            key_len + len + if had_expiry { 8 } else { 0 } <= most
        } else if version >= Version::V8_2 {
            key_len + len <= 41
        } else {
            len <= 44
        };
        if !fits {
            self.make_raw();
        }
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match self {
            StringValue::Int(_) => "int",
            StringValue::Embstr(_) => "embstr",
            StringValue::Raw(_) => "raw",
        }
    }

    /// Returns the bytes. Those of an integer are written to `digits`.
    pub fn bytes<'a>(&'a self, digits: &'a mut itoa::Buffer) -> &'a [u8] {
        match self {
            StringValue::Int(number) => digits.format(*number).as_bytes(),
            StringValue::Embstr(short) => short,
            StringValue::Raw(bytes) => bytes,
        }
    }

    /// Returns the bytes, copied if they have to be.
    pub fn to_cow(&self) -> Cow<'_, [u8]> {
        match self {
            StringValue::Int(_) => Cow::Owned(self.to_vec()),
            StringValue::Embstr(short) => Cow::Borrowed(short),
            StringValue::Raw(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut itoa::Buffer::new()).to_vec()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes(&mut itoa::Buffer::new()).len()
    }

    /// Returns whether the string is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the integer that the string reads as, if any.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            StringValue::Int(number) => Some(*number),
            StringValue::Embstr(short) => parse_i64(short),
            StringValue::Raw(bytes) => parse_i64(bytes),
        }
    }

    /// Returns the bytes for modification, as `APPEND`, `SETRANGE` and `SETBIT` need them. Afterwards the string's
    /// encoding is `raw`.
    pub fn make_raw(&mut self) -> &mut Vec<u8> {
        if !matches!(self, StringValue::Raw(_)) {
            *self = StringValue::raw(self.to_vec());
        }
        match self {
            StringValue::Raw(bytes) => bytes,
            StringValue::Int(_) | StringValue::Embstr(_) => unreachable!("the string has just become raw"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_follow_the_bytes() {
        let encoding = |bytes: &[u8]| StringValue::new(bytes).encoding();
        assert_eq!(encoding(b"-9223372036854775808"), "int");
        assert_eq!(encoding(b"9223372036854775808"), "embstr");
        assert_eq!(encoding(b"01"), "embstr");
        assert_eq!(encoding(b""), "embstr");
        assert_eq!(encoding(&[b'x'; 112]), "embstr");
        assert_eq!(encoding(&[b'x'; 113]), "raw");
        assert_eq!(StringValue::text(b"5").encoding(), "embstr");
    }

    #[test]
    fn a_short_string_is_embedded_as_far_as_the_release_does_it() {
        for (version, key_len, longest) in [
            (Version::V7_4, 100, 44),
            (Version::V8_6, 1, 40),
            (Version::V8_6, 40, 1),
            (Version::Valkey8_1, 1, 44),
            (Version::Valkey9_1, 31, 82),
            (Version::Valkey9_1, 32, 79),
        ] {
            let encoding = |len| {
                let mut value = StringValue::text(&vec![b'x'; len]);
                value.settle(key_len, false, version);
                value.encoding()
            };
            assert_eq!((encoding(longest), encoding(longest + 1)), ("embstr", "raw"), "{version}");
        }
    }

    #[test]
    fn a_changed_string_is_raw_and_still_reads_as_an_integer() {
        let mut value = StringValue::new(b"12");
        value.make_raw().extend_from_slice(b"3");
        assert_eq!((value.encoding(), value.as_i64(), value.to_vec()), ("raw", Some(123), b"123".to_vec()));
    }
}
