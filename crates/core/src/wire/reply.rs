//! The reply writer: one call per value; the protocol version decides the bytes.
//!
//! A handler writes its reply once. RESP2 clients, RESP3 clients and `redis.call` inside scripts all receive that
//! reply. Types that RESP2 lacks (maps, sets, doubles, booleans, null) take the form that Redis gives them in RESP2.

use crate::long_double::LongDouble;
use crate::num;
use crate::version::Version;

/// The protocol a client negotiated with `HELLO`, or a script with `redis.setresp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// An append-only buffer of reply bytes.
#[derive(Clone, Debug)]
pub struct Reply {
    buf: Vec<u8>,
    pub protocol: Protocol,
    /// Decides how doubles print: as `%.17g` before 7.2, in the shortest form since 7.2.
    version: Version,
}

/// A position in the reply where an aggregate's header is inserted once its length is known.
#[derive(Debug)]
#[must_use = "a deferred header has to be set"]
pub struct Deferred(usize);

impl Reply {
    /// Creates an empty reply.
    pub fn new(protocol: Protocol, version: Version) -> Reply {
        Reply { buf: Vec::new(), protocol, version }
    }

    /// Returns the release whose reply this is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Takes the whole reply and leaves an empty one of the same protocol.
    pub fn take(&mut self) -> Reply {
        let empty = Reply::new(self.protocol, self.version);
        std::mem::replace(self, empty)
    }

    /// Returns the bytes written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Returns whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.buf.clear();
    }

    /// Removes everything after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.buf.truncate(len);
    }

    /// Returns the underlying buffer, for the driver that writes it to a socket.
    pub fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// Appends bytes that are already in wire form.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    fn header(&mut self, kind: u8, n: i64) {
        // Nearly every reply contains small numbers, which need no formatting.
        if (0..10).contains(&n) {
            self.buf.extend_from_slice(&[kind, b'0' + n as u8, b'\r', b'\n']);
            return;
        }
        let mut digits = itoa::Buffer::new();
        self.buf.push(kind);
        self.buf.extend_from_slice(digits.format(n).as_bytes());
        self.buf.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.buf.push(kind);
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Writes the status `OK`.
    pub fn ok(&mut self) {
        self.buf.extend_from_slice(b"+OK\r\n");
    }

    /// Writes a status.
    pub fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error line. Line breaks inside the text become blanks, as in Redis.
    pub fn error(&mut self, text: &[u8]) {
        self.buf.push(b'-');
        self.buf.extend(text.iter().map(|&b| if b == b'\r' || b == b'\n' { b' ' } else { b }));
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Writes an integer.
    pub fn int(&mut self, n: i64) {
        self.header(b':', n);
    }

    /// Writes a bulk string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len() as i64);
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Writes an integer as a bulk string.
    pub fn bulk_int(&mut self, n: i64) {
        let mut digits = itoa::Buffer::new();
        self.bulk(digits.format(n).as_bytes());
    }

    /// Writes a bulk string or, for `None`, the null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Writes the null; in RESP2, the null bulk string.
    pub fn null(&mut self) {
        self.buf.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes the null; in RESP2, the null array.
    pub fn null_array(&mut self) {
        self.buf.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes the header of an array.
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    /// Writes the header of a map of `pairs` keys and values; in RESP2, that of a flat array.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', pairs as i64 * 2),
            Protocol::Resp3 => self.header(b'%', pairs as i64),
        }
    }

    /// Writes the header of a set; in RESP2, that of an array.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len as i64),
            Protocol::Resp3 => self.header(b'~', len as i64),
        }
    }

    /// Writes the header of an out-of-band message; in RESP2, that of an array.
    pub fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len as i64),
            Protocol::Resp3 => self.header(b'>', len as i64),
        }
    }

    /// Writes a double; in RESP2, a bulk string.
    pub fn double(&mut self, value: f64) {
        let text = num::format_double(value, self.version);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes a coordinate as the release does: since Redis 8.0 as a double, before with all its decimals up to the
    /// seventeenth; in RESP2, a bulk string.
    pub fn coordinate(&mut self, value: f64) {
        if self.version >= Version::V8_0 { self.double(value) } else { self.long_double(value.into()) }
    }

    /// Writes a double with all its decimals up to the seventeenth; in RESP2, a bulk string.
    fn long_double(&mut self, value: LongDouble) {
        let text = value.to_string();
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes a boolean; in RESP2, 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        match (self.protocol, value) {
            (Protocol::Resp2, _) => self.int(value as i64),
            (Protocol::Resp3, true) => self.raw(b"#t\r\n"),
            (Protocol::Resp3, false) => self.raw(b"#f\r\n"),
        }
    }

    /// Writes a big number, given as its decimal digits.
    pub fn big_number(&mut self, digits: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits),
            Protocol::Resp3 => self.line(b'(', digits),
        }
    }

    /// Writes text with a three-letter format (`txt`, `mkd`); in RESP2, the text alone.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.header(b'=', text.len() as i64 + 4);
                self.buf.extend_from_slice(format);
                self.buf.push(b':');
                self.buf.extend_from_slice(text);
                self.buf.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Inserts bytes that are already in wire form at the offset `at`.
    pub fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.buf.splice(at..at, bytes.iter().copied());
    }

    /// Starts an aggregate whose length is not known yet.
    pub fn defer(&mut self) -> Deferred {
        Deferred(self.buf.len())
    }

    /// Inserts the header of an array whose elements have been written.
    pub fn end_array(&mut self, at: Deferred, len: usize) {
        self.insert_header(at, |reply| reply.array(len));
    }

    /// Inserts the header of a map whose keys and values have been written.
    pub fn end_map(&mut self, at: Deferred, pairs: usize) {
        self.insert_header(at, |reply| reply.map(pairs));
    }

    /// Inserts the header of a set whose elements have been written.
    pub fn end_set(&mut self, at: Deferred, len: usize) {
        self.insert_header(at, |reply| reply.set(len));
    }

    fn insert_header(&mut self, at: Deferred, write: impl FnOnce(&mut Reply)) {
        let end = self.buf.len();
        write(self);
        let header_len = self.buf.len() - end;
        self.buf[at.0..].rotate_right(header_len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Reply)) -> (String, String) {
        let text = |protocol| {
            let mut reply = Reply::new(protocol, Version::V7_4);
            write(&mut reply);
            String::from_utf8(reply.as_bytes().to_vec()).unwrap()
        };
        (text(Protocol::Resp2), text(Protocol::Resp3))
    }

    #[test]
    fn shapes_that_resp2_lacks_fall_back() {
        assert_eq!(both(|r| r.null()), ("$-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|r| r.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
        assert_eq!(both(|r| r.double(1.5)), ("$3\r\n1.5\r\n".into(), ",1.5\r\n".into()));
        assert_eq!(both(|r| r.boolean(true)), (":1\r\n".into(), "#t\r\n".into()));
        assert_eq!(both(|r| r.verbatim(b"txt", b"ab")), ("$2\r\nab\r\n".into(), "=6\r\ntxt:ab\r\n".into()));
    }

    #[test]
    fn a_deferred_header_lands_before_its_elements() {
        let (resp2, _) = both(|r| {
            r.int(7);
            let at = r.defer();
            r.int(1);
            r.int(2);
            r.end_array(at, 2);
        });
        assert_eq!(resp2, ":7\r\n*2\r\n:1\r\n:2\r\n");
    }

    #[test]
    fn an_error_never_breaks_its_line() {
        assert_eq!(both(|r| r.error(b"ERR a\r\nb")).0, "-ERR a  b\r\n");
    }
}
