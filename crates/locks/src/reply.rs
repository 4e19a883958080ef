//! The replies and messages that a client receives.

use std::fmt;

/// The reply of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Nil,
    Int(i64),
    /// A bulk string or a status.
    Text(&'a [u8]),
    Error(&'a [u8]),
    /// The elements, still encoded.
    Array(&'a [u8]),
}

impl Reply<'_> {
    /// Parses one reply.
    pub fn parse(bytes: &[u8]) -> Reply<'_> {
        let Some((kind, rest)) = bytes.split_first() else { return Reply::Nil };
        let end = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        let tail = tail.get(2..).unwrap_or_default();
        match kind {
            b':' => Reply::Int(redlatch_core::num::parse_i64(line).unwrap_or(0)),
            b'+' => Reply::Text(line),
            b'-' => Reply::Error(line),
            b'$' => {
                match redlatch_core::num::parse_i64(line)
                    .and_then(|len| tail.get(..usize::try_from(len).ok()?))
                {
                    Some(text) => Reply::Text(text),
                    None => Reply::Nil,
                }
            }
            // The null of RESP3.
            b'_' => Reply::Nil,
            _ => Reply::Array(tail),
        }
    }

    /// Returns an integer, the integer that a text reads as, or that of an array's first element.
    pub fn int(self) -> Option<i64> {
        match self {
            Reply::Int(n) => Some(n),
            Reply::Text(text) => redlatch_core::num::parse_i64(text),
            Reply::Array(elements) => match Reply::parse(elements) {
                Reply::Int(n) => Some(n),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether this is an error that contains `words`.
    pub fn is_error_with(self, words: &str) -> bool {
        matches!(self, Reply::Error(text) if memchr::memmem::find(text, words.as_bytes()).is_some())
    }

    /// Returns whether this is an error.
    pub fn is_error(self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

impl<'a> Reply<'a> {
    /// Returns an element of an array.
    pub fn element(self, index: usize) -> Reply<'a> {
        let Reply::Array(mut rest) = self else { return self };
        for _ in 0..index {
            let Some(len) = redlatch_core::wire::client::value_len(rest) else { return Reply::Nil };
            rest = &rest[len..];
        }
        Reply::parse(rest)
    }
}

impl fmt::Display for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Nil => f.write_str("nil"),
            Reply::Int(n) => write!(f, "{n}"),
            Reply::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Reply::Error(text) => write!(f, "error: {}", String::from_utf8_lossy(text)),
            Reply::Array(elements) => {
                write!(f, "[{}]", String::from_utf8_lossy(elements).trim_end().replace("\r\n", " "))
            }
        }
    }
}

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub channel: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Message {
    /// Returns whether the waiters of a lock act on the message: 0 wakes one of them, 1 wakes all. They ignore anything
    /// else.
    pub fn wakes(&self) -> bool {
        matches!(self.number(), Some(0 | 1))
    }

    /// Returns the number in the message.
    pub fn number(&self) -> Option<i64> {
        redlatch_core::num::parse_i64(&self.payload)
    }
}

/// Returns whether a message wakes the waiters who subscribe to `channel`.
pub fn is_told(messages: &[Message], channel: &str) -> bool {
    messages.iter().any(|message| message.channel == channel.as_bytes() && message.wakes())
}

/// The result of a request.
#[derive(Clone, Copy)]
pub struct Outcome<'a> {
    pub reply: Reply<'a>,
    pub messages: &'a [Message],
    /// Whether the client repeated an earlier request, which it regards as the same request.
    pub again: bool,
}
