//! Replies and messages as typed values: what a client reads.

use crate::num;

/// A reply or a message of a server, in either version of the protocol.
///
/// ```
/// use redlatch_core::wire::Value;
///
/// let (value, len) = Value::decode(b"*2\r\n:1\r\n$-1\r\n").unwrap().unwrap();
/// assert_eq!(value, Value::Array(vec![Value::Int(1), Value::Nil]));
/// assert_eq!(len, 13);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value: a nil bulk string or array of RESP2, or RESP3's null.
    Nil,
    /// A status line such as `OK`. Bytes that are not UTF-8 are replaced.
    Status(String),
    /// An error, its code first. Bytes that are not UTF-8 are replaced.
    Error(String),
    /// A whole number.
    Int(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// A list of values.
    Array(Vec<Value>),
    /// RESP3: a floating-point number.
    Double(f64),
    /// RESP3: true or false.
    Bool(bool),
    /// RESP3: a whole number of any size, in decimal digits.
    BigNumber(String),
    /// RESP3: a text and the three letters of its format, `txt` or `mkd`.
    Verbatim {
        /// `txt` or `mkd`.
        format: String,
        /// The text without its format.
        text: Vec<u8>,
    },
    /// RESP3: keys and values, in the order in which they came.
    Map(Vec<(Value, Value)>),
    /// RESP3: a collection without duplicates, in the order in which it came.
    Set(Vec<Value>),
    /// RESP3: a message that is not the reply to a request.
    Push(Vec<Value>),
}

/// Why bytes are not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes do not follow the protocol.
    Malformed,
    /// Aggregates are nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Malformed => write!(f, "the bytes do not follow the Redis protocol"),
            DecodeError::TooDeep => write!(f, "the reply is nested deeper than {MAX_DEPTH} levels"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// How deep aggregates may be nested.
pub const MAX_DEPTH: usize = 128;

impl Value {
    /// Decodes the value at the start of `buf`. Returns the value and how many bytes it takes, or `None` while it is not complete.
    ///
    /// # Errors
    ///
    /// Fails if the bytes do not follow the protocol or are nested deeper than [`MAX_DEPTH`].
    pub fn decode(buf: &[u8]) -> Result<Option<(Value, usize)>, DecodeError> {
        let mut decoder = Decoder { buf, at: 0 };
        Ok(decoder.value(MAX_DEPTH)?.map(|value| (value, decoder.at)))
    }

    /// Whether this is [`Value::Nil`].
    pub fn is_nil(&self) -> bool {
        *self == Value::Nil
    }

    /// Returns the number of a [`Value::Int`].
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the bytes of a string, a status, a verbatim text or a big number.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => Some(bytes),
            Value::Status(text) | Value::BigNumber(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Returns the text of an error.
    pub fn as_error(&self) -> Option<&str> {
        match self {
            Value::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the elements of an array, a set or a push message.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) | Value::Set(items) | Value::Push(items) => Some(items),
            _ => None,
        }
    }
}

/// The value in one line: `nil`, `1`, `[message, channel, 0]`.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Status(text) | Value::Error(text) | Value::BigNumber(text) => f.write_str(text),
            Value::Int(n) => write!(f, "{n}"),
            Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => {
                f.write_str(&String::from_utf8_lossy(bytes))
            }
            Value::Double(n) => write!(f, "{n}"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Array(items) | Value::Set(items) | Value::Push(items) => {
                write_list(f, "[", items, |f, item| write!(f, "{item}"), "]")
            }
            Value::Map(pairs) => {
                write_list(f, "{", pairs, |f, (key, value)| write!(f, "{key}: {value}"), "}")
            }
        }
    }
}

fn write_list<T>(
    f: &mut std::fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    write: impl Fn(&mut std::fmt::Formatter<'_>, &T) -> std::fmt::Result,
    close: &str,
) -> std::fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    f.write_str(close)
}

struct Decoder<'a> {
    buf: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// The next value; `None` if it is not complete.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, DecodeError> {
        let Some(&kind) = self.buf.get(self.at) else { return Ok(None) };
        self.at += 1;
        let Some(line) = self.line() else { return Ok(None) };
        let text = || String::from_utf8_lossy(line).into_owned();
        let value = match kind {
            b'+' => Value::Status(text()),
            b'-' => Value::Error(text()),
            b':' => Value::Int(number(line)?),
            b'(' => Value::BigNumber(text()),
            b',' => Value::Double(double(line)?),
            b'_' if line.is_empty() => Value::Nil,
            b'#' if line == b"t" => Value::Bool(true),
            b'#' if line == b"f" => Value::Bool(false),
            b'$' | b'!' | b'=' => {
                let Some(len) = length(line)? else { return Ok(Some(Value::Nil)) };
                let Some(bytes) = self.blob(len)? else { return Ok(None) };
                match kind {
                    b'$' => Value::Bulk(bytes.to_vec()),
                    b'!' => Value::Error(String::from_utf8_lossy(bytes).into_owned()),
                    _ => verbatim(bytes)?,
                }
            }
            b'*' | b'~' | b'>' | b'%' => {
                let Some(len) = length(line)? else { return Ok(Some(Value::Nil)) };
                let depth = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
                let len = if kind == b'%' { len.checked_mul(2).ok_or(DecodeError::Malformed)? } else { len };
                let Some(items) = self.items(len, depth)? else { return Ok(None) };
                match kind {
                    b'*' => Value::Array(items),
                    b'~' => Value::Set(items),
                    b'>' => Value::Push(items),
                    _ => Value::Map(pairs(items)),
                }
            }
            _ => return Err(DecodeError::Malformed),
        };
        Ok(Some(value))
    }

    /// The bytes up to the end of the line, and past it. A line may hold a lone line feed: errors do.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.buf[self.at..];
        let end = memchr::memmem::find(rest, b"\r\n")?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    /// So many bytes, and past the end of the line that follows.
    fn blob(&mut self, len: usize) -> Result<Option<&'a [u8]>, DecodeError> {
        let rest = &self.buf[self.at..];
        let end = len.checked_add(2).ok_or(DecodeError::Malformed)?;
        let Some(bytes) = rest.get(..end) else { return Ok(None) };
        self.at += end;
        bytes.strip_suffix(b"\r\n").map(Some).ok_or(DecodeError::Malformed)
    }

    fn items(&mut self, len: usize, depth: usize) -> Result<Option<Vec<Value>>, DecodeError> {
        // A length that was announced is no reason to reserve memory: only bytes that came are.
        let mut items = Vec::new();
        for _ in 0..len {
            match self.value(depth)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(items))
    }
}

fn number(line: &[u8]) -> Result<i64, DecodeError> {
    num::parse_i64(line).ok_or(DecodeError::Malformed)
}

/// The length that a header announces; `None`: there is no value.
fn length(line: &[u8]) -> Result<Option<usize>, DecodeError> {
    match number(line)? {
        -1 => Ok(None),
        len => usize::try_from(len).map(Some).map_err(|_| DecodeError::Malformed),
    }
}

fn double(line: &[u8]) -> Result<f64, DecodeError> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(DecodeError::Malformed)
}

fn verbatim(bytes: &[u8]) -> Result<Value, DecodeError> {
    match bytes.split_at_checked(4) {
        Some((&[ref format @ .., b':'], text)) => {
            Ok(Value::Verbatim { format: String::from_utf8_lossy(format).into_owned(), text: text.to_vec() })
        }
        _ => Err(DecodeError::Malformed),
    }
}

fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut items = items.into_iter();
    std::iter::from_fn(|| items.next().zip(items.next())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redis_protocol::resp3::types::OwnedFrame;

    use super::*;
    use crate::wire::client::value_len;

    /// Every type once, with the value that it is.
    fn examples() -> Vec<(&'static [u8], Value)> {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        vec![
            (b"+OK\r\n", Value::Status("OK".to_owned())),
            (b"-ERR x\r\n", Value::Error("ERR x".to_owned())),
            (b"-ERR x\ny\r\n", Value::Error("ERR x\ny".to_owned())),
            (b":-5\r\n", Value::Int(-5)),
            (b"$3\r\na\nb\r\n", bulk("a\nb")),
            (b"$0\r\n\r\n", bulk("")),
            (b"$-1\r\n", Value::Nil),
            (b"*-1\r\n", Value::Nil),
            (b"_\r\n", Value::Nil),
            (b"*2\r\n*0\r\n:1\r\n", Value::Array(vec![Value::Array(vec![]), Value::Int(1)])),
            (b",1.5\r\n", Value::Double(1.5)),
            (b",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
            (b"#t\r\n", Value::Bool(true)),
            (b"#f\r\n", Value::Bool(false)),
            (b"(123456789012345678901\r\n", Value::BigNumber("123456789012345678901".to_owned())),
            (b"=6\r\ntxt:ab\r\n", Value::Verbatim { format: "txt".to_owned(), text: b"ab".to_vec() }),
            (b"!5\r\nERR x\r\n", Value::Error("ERR x".to_owned())),
            (b"%1\r\n+a\r\n:1\r\n", Value::Map(vec![(Value::Status("a".to_owned()), Value::Int(1))])),
            (b"~1\r\n:1\r\n", Value::Set(vec![Value::Int(1)])),
            (b">2\r\n$1\r\nm\r\n_\r\n", Value::Push(vec![bulk("m"), Value::Nil])),
        ]
    }

    #[test]
    fn every_type_is_decoded_and_waits_for_its_last_byte() {
        for (bytes, value) in examples() {
            assert_eq!(Value::decode(bytes), Ok(Some((value, bytes.len()))), "{}", bytes.escape_ascii());
            for cut in 0..bytes.len() {
                assert_eq!(Value::decode(&bytes[..cut]), Ok(None), "{} at {cut}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn bytes_that_are_no_reply_are_errors() {
        for bytes in [&b"?\r\n"[..], b":x\r\n", b"$-2\r\n", b"$1\r\nabc\r\n", b"#x\r\n", b"=2\r\nab\r\n"] {
            assert_eq!(Value::decode(bytes), Err(DecodeError::Malformed), "{}", bytes.escape_ascii());
        }
        let deep = "*1\r\n".repeat(1_000_000) + ":1\r\n";
        assert_eq!(Value::decode(deep.as_bytes()), Err(DecodeError::TooDeep));
        let allowed = "*1\r\n".repeat(MAX_DEPTH) + ":1\r\n";
        assert!(Value::decode(allowed.as_bytes()).is_ok_and(|found| found.is_some()));
        assert_eq!(Value::decode(b"*4000000000000000000\r\n"), Ok(None));
    }

    /// The value as redis-protocol's decoder sees it.
    fn decoded_by_redis_protocol(bytes: &[u8]) -> Option<(Value, usize)> {
        let found = match redis_protocol::resp2::decode::decode(bytes) {
            Ok(found) => found.map(|(frame, len)| (frame.into_resp3(), len)),
            Err(_) => redis_protocol::resp3::decode::complete::decode(bytes).ok()?,
        };
        found.map(|(frame, len)| (value_of(frame), len))
    }

    fn value_of(frame: OwnedFrame) -> Value {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let list = |items: Vec<OwnedFrame>| items.into_iter().map(value_of).collect();
        match frame {
            OwnedFrame::Null => Value::Nil,
            OwnedFrame::SimpleString { data, .. } => Value::Status(text(data)),
            OwnedFrame::SimpleError { data, .. } => Value::Error(data),
            OwnedFrame::BlobError { data, .. } => Value::Error(text(data)),
            OwnedFrame::BlobString { data, .. } => Value::Bulk(data),
            OwnedFrame::Number { data, .. } => Value::Int(data),
            OwnedFrame::Double { data, .. } => Value::Double(data),
            OwnedFrame::Boolean { data, .. } => Value::Bool(data),
            OwnedFrame::BigNumber { data, .. } => Value::BigNumber(text(data)),
            OwnedFrame::Array { data, .. } => Value::Array(list(data)),
            OwnedFrame::Push { data, .. } => Value::Push(list(data)),
            other => panic!("{other:?} is not generated"),
        }
    }

    /// Bytes of replies, without the types whose order or format redis-protocol does not keep.
    fn reply() -> impl Strategy<Value = Vec<u8>> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
            "[ -~]{0,8}".prop_map(|text| format!("+{text}\r\n").into_bytes()),
            "[A-Z]{1,4} [ -~]{0,8}".prop_map(|text| format!("-{text}\r\n").into_bytes()),
            prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| {
                [format!("${}\r\n", bytes.len()).as_bytes(), &bytes[..], b"\r\n"].concat()
            }),
            Just(b"$-1\r\n".to_vec()),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop::collection::vec(inner, 0..5)
                .prop_map(|items| [format!("*{}\r\n", items.len()).into_bytes(), items.concat()].concat())
        })
    }

    proptest! {
        #[test]
        fn replies_are_what_redis_protocol_says(bytes in reply(), rest in prop::collection::vec(any::<u8>(), 0..4)) {
            let all = [&bytes[..], &rest].concat();
            let found = Value::decode(&all).unwrap();
            prop_assert_eq!(&found, &decoded_by_redis_protocol(&bytes));
            prop_assert_eq!(found.map(|(_, len)| len), value_len(&bytes));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Value::decode(&bytes);
        }
    }
}
