//! The ids of stream entries: a time in ms and a number among the entries of that ms.

use crate::num::parse_i64;

/// The longest text of an id that Redis reads, in bytes.
const MAX_TEXT_BYTES: usize = 127;

/// The id of an entry. Ids order entries: first by time, then by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Unix time in ms, unless a client chose the id.
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// Returns the id that follows this one, or `None` after the last.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// Returns the id before this one, or `None` before the first.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Returns the 16 bytes that order as the ids do.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.ms.to_be_bytes());
        bytes[8..].copy_from_slice(&self.seq.to_be_bytes());
        bytes
    }

    /// Returns the id of these 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> StreamId {
        let whole = u128::from_be_bytes(bytes);
        StreamId { ms: (whole >> 64) as u64, seq: whole as u64 }
    }

    /// Returns the text that replies contain: `ms-seq`.
    pub fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; 41], len: 0 };
        let mut digits = itoa::Buffer::new();
        text.push(digits.format(self.ms).as_bytes());
        text.push(b"-");
        text.push(digits.format(self.seq).as_bytes());
        text
    }
}

/// The text of an id.
pub struct IdText {
    bytes: [u8; 41],
    len: usize,
}

impl IdText {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl std::ops::Deref for IdText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// An id as a client writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenId {
    /// `-`, the smallest id.
    Min,
    /// `+`, the largest id.
    Max,
    /// `ms-seq`.
    Whole(StreamId),
    /// `ms`.
    Ms(u64),
    /// `ms-*`.
    AnyOfMs(u64),
}

impl WrittenId {
    /// Parses an id. Numbers are read as C's `strtoull` reads them.
    pub fn parse(text: &[u8]) -> Option<WrittenId> {
        match text {
            b"-" => return Some(WrittenId::Min),
            b"+" => return Some(WrittenId::Max),
            _ if text.len() > MAX_TEXT_BYTES => return None,
            _ => {}
        }
        let text = crate::error::c_text(text);
        match text.iter().position(|&byte| byte == b'-') {
            None => parse_u64(text).map(WrittenId::Ms),
            Some(dash) => {
                let ms = parse_u64(&text[..dash])?;
                match &text[dash + 1..] {
                    b"*" => Some(WrittenId::AnyOfMs(ms)),
                    seq => Some(WrittenId::Whole(StreamId { ms, seq: parse_u64(seq)? })),
                }
            }
        }
    }

    /// Parses an id that names one entry: neither `-` nor `+` nor `ms-*`. A missing number is `missing_seq`.
    pub fn parse_strict(text: &[u8], missing_seq: u64) -> Option<StreamId> {
        match WrittenId::parse(text)? {
            WrittenId::Min | WrittenId::Max => None,
            id => id.with_seq(missing_seq),
        }
    }

    /// Returns the id with `missing_seq` in place of a missing number, or `None` for `ms-*`.
    pub fn with_seq(self, missing_seq: u64) -> Option<StreamId> {
        match self {
            WrittenId::Min => Some(StreamId::MIN),
            WrittenId::Max => Some(StreamId::MAX),
            WrittenId::Whole(id) => Some(id),
            WrittenId::Ms(ms) => Some(StreamId { ms, seq: missing_seq }),
            WrittenId::AnyOfMs(_) => None,
        }
    }
}

/// Reads an unsigned number as Redis's `string2ull` does: canonical integers must not be negative; anything else is read by
/// C's `strtoull`, which takes leading blanks, a sign and leading zeros, and negates after a minus sign.
fn parse_u64(text: &[u8]) -> Option<u64> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number: u64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add((digit - b'0').into())?;
    }
    Some(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |ms, seq| Some(StreamId { ms, seq });
        for (text, expected) in [
            ("1-2", id(1, 2)),
            ("5", id(5, 7)),
            ("18446744073709551615-18446744073709551615", Some(StreamId::MAX)),
            ("18446744073709551616", None),
            ("1-18446744073709551616", None),
            ("05-007", id(5, 7)),
            (" 5-+3", id(5, 3)),
            ("1--05", id(1, u64::MAX - 4)),
            ("1--5", None),
            ("5\0abc", id(5, 7)),
            ("-5", None),
            ("5-", None),
            ("", None),
            ("-", None),
            ("+", None),
            ("5-*", None),
            ("1 -1", None),
        ] {
            assert_eq!(WrittenId::parse_strict(text.as_bytes(), 7), expected, "{text:?}");
        }
        assert_eq!(WrittenId::parse(b"5-*"), Some(WrittenId::AnyOfMs(5)));
        assert_eq!(WrittenId::parse(&[b'1'; 128]), None);
    }

    #[test]
    fn neighbours_cross_the_ms() {
        let last = StreamId { ms: 3, seq: u64::MAX };
        assert_eq!(last.next(), Some(StreamId { ms: 4, seq: 0 }));
        assert_eq!(last.next().and_then(StreamId::previous), Some(last));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
        assert_eq!(StreamId::from_bytes(last.to_bytes()), last);
        assert_eq!(&*StreamId::MAX.text(), b"18446744073709551615-18446744073709551615");
    }
}
