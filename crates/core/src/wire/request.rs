//! The request parser: flat arrays of bulk strings and inline commands, with Redis's limits and error texts.
//!
//! The parser copies nothing: a parsed request is a list of ranges into the connection's read buffer. When a request
//! arrives in pieces, parsing resumes where it stopped.

use std::ops::Range;

use memchr::{memchr, memchr2};
use smallvec::SmallVec;

use crate::num;
use crate::version::Version;

/// The longest header line or inline command, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// The parts of one request: the command's name and its arguments.
pub type Args<'a> = SmallVec<[&'a [u8]; 16]>;

/// The limits that the server sets for a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// `proto-max-bulk-len` in bytes.
    pub max_bulk_len: u64,
    /// Whether the client has authenticated; until then it may send small requests only.
    pub authenticated: bool,
    /// The release that decides what a NUL byte in a header means.
    pub version: Version,
}

/// The reason why a byte stream is not a valid request: the text that follows `Protocol error: `. The server closes the
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

/// The parser's state for one connection.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// Arguments read so far, as ranges into the buffer (or into `inline`).
    spans: Vec<Range<usize>>,
    /// The unquoted arguments of an inline command.
    inline: Option<Vec<u8>>,
    /// Where parsing resumes, relative to the start of the request.
    pos: usize,
    /// The number of bulk strings that the current array still lacks.
    missing: usize,
    /// The announced length of the bulk string that is being read.
    bulk_len: Option<usize>,
}

impl RequestParser {
    /// Parses the request that starts at the first byte of `buf`.
    ///
    /// Returns `Ok(Some(n))` if the request is complete and `n` bytes long; [`args`](Self::args) then returns its
    /// parts, or none for an empty request, which gets no reply. Returns `Ok(None)` if more bytes are needed: call
    /// again with the longer buffer.
    ///
    /// # Errors
    ///
    /// Fails if the bytes violate the protocol or exceed `limits`.
    pub fn parse(&mut self, buf: &[u8], limits: RequestLimits) -> Result<Option<usize>, ProtocolError> {
        if self.pos == 0 {
            self.spans.clear();
            self.inline = None;
            match buf.first() {
                None => return Ok(None),
                Some(b'*') => {
                    if !self.array_header(buf, limits)? {
                        return Ok(None);
                    }
                }
                Some(_) => return self.inline(buf, limits),
            }
            self.short_bulks(buf, limits);
        }
        while self.missing > 0 {
            if !self.bulk(buf, limits)? {
                return Ok(None);
            }
            self.short_bulks(buf, limits);
        }
        if limits.version.is_valkey() && !self.has_line_ends(buf) {
            return Err(error("invalid CRLF in request"));
        }
        Ok(Some(std::mem::take(&mut self.pos)))
    }

    /// Returns whether every string of the request ends with a line end. Only Valkey looks.
    #[cold]
    fn has_line_ends(&self, buf: &[u8]) -> bool {
        self.spans.iter().all(|span| buf[span.end..].starts_with(b"\r\n"))
    }

    /// Returns the parts of the request in `buf` that [`parse`](Self::parse) has just completed.
    pub fn args<'a>(&'a self, buf: &'a [u8]) -> Args<'a> {
        let bytes = self.inline.as_deref().unwrap_or(buf);
        let mut args = Args::new();
        args.extend(self.spans.iter().map(|span| &bytes[span.clone()]));
        args
    }

    /// Reads `*<count>`. Returns false if it is incomplete.
    fn array_header(&mut self, buf: &[u8], limits: RequestLimits) -> Result<bool, ProtocolError> {
        if let Some((count @ ..=10, header)) = short_header(buf, b'*') {
            (self.missing, self.pos) = (count, header);
            return Ok(true);
        }
        let is_c_string = !limits.version.is_valkey();
        let Some(line) = header_line(buf, 0, is_c_string, "too big mbulk count string")? else {
            return Ok(false);
        };
        let count = num::parse_i64(&buf[1..line.end]).filter(|&n| n <= i32::MAX as i64);
        let count = count.ok_or_else(|| error("invalid multibulk length"))?;
        if count > 10 && !limits.authenticated {
            return Err(error("unauthenticated multibulk length"));
        }
        self.pos = line.next;
        self.missing = usize::try_from(count).unwrap_or(0);
        Ok(true)
    }

    /// Reads complete bulk strings with short headers up to the first that is incomplete or longer: usually all of
    /// them.
    fn short_bulks(&mut self, buf: &[u8], limits: RequestLimits) {
        let (mut pos, mut missing) = (self.pos, self.missing);
        while missing > 0
            && let Some((len, header)) = short_header(&buf[pos..], b'$')
            && let (start, end) = (pos + header, pos + header + len)
            && end + 2 <= buf.len()
            && len as u64 <= limits.max_bulk_len
        {
            self.spans.push(start..end);
            pos = end + 2;
            missing -= 1;
        }
        (self.pos, self.missing) = (pos, missing);
    }

    /// Reads `$<len>` and the string that follows. Returns false if they are incomplete.
    fn bulk(&mut self, buf: &[u8], limits: RequestLimits) -> Result<bool, ProtocolError> {
        let len = match self.bulk_len {
            Some(len) => len,
            None => match self.bulk_header(buf, limits)? {
                Some(len) => len,
                None => return Ok(false),
            },
        };
        if buf.len() < self.pos + len + 2 {
            self.bulk_len = Some(len);
            return Ok(false);
        }
        self.spans.push(self.pos..self.pos + len);
        self.pos += len + 2;
        self.missing -= 1;
        self.bulk_len = None;
        Ok(true)
    }

    /// Reads `$<len>`. Returns `None` if it is incomplete.
    fn bulk_header(&mut self, buf: &[u8], limits: RequestLimits) -> Result<Option<usize>, ProtocolError> {
        let is_c_string = !limits.version.is_valkey() && limits.version < Version::V8_4;
        let Some(line) = header_line(buf, self.pos, is_c_string, "too big bulk count string")? else {
            return Ok(None);
        };
        if buf[self.pos] != b'$' {
            return Err(error(&format!("expected '$', got '{}'", buf[self.pos] as char)));
        }
        let len = num::parse_i64(&buf[self.pos + 1..line.end])
            .and_then(|len| u64::try_from(len).ok())
            .filter(|&len| len <= limits.max_bulk_len)
            .ok_or_else(|| error("invalid bulk length"))?;
        if len > 16 * 1024 && !limits.authenticated {
            return Err(error("unauthenticated bulk length"));
        }
        self.pos = line.next;
        Ok(Some(len as usize))
    }

    fn inline(&mut self, buf: &[u8], limits: RequestLimits) -> Result<Option<usize>, ProtocolError> {
        // Redis looks for the end of the line in a C string.
        let Some(newline) = memchr2(b'\n', 0, buf).filter(|&at| buf[at] == b'\n') else {
            return if buf.len() > MAX_LINE { Err(error("too big inline request")) } else { Ok(None) };
        };
        let line = buf[..newline].strip_suffix(b"\r").unwrap_or(&buf[..newline]);
        // Valkey's own parser of lines lets a word go on behind a closing quote.
        let may_join = limits.version.is_valkey_since(Version::Valkey9_1);
        let words = words_of(line, may_join).ok_or_else(|| error("unbalanced quotes in request"))?;
        let mut bytes = Vec::new();
        for word in words {
            let start = bytes.len();
            bytes.extend_from_slice(&word);
            self.spans.push(start..bytes.len());
        }
        self.inline = Some(bytes);
        Ok(Some(newline + 1))
    }
}

fn error(text: &str) -> ProtocolError {
    ProtocolError(text.to_owned())
}

/// Returns the number in a header of one or two digits, which nearly all headers have, and the header's length. `None`
/// means only that the header needs the slower parser.
fn short_header(buf: &[u8], kind: u8) -> Option<(usize, usize)> {
    let digit = |byte: u8| (byte - b'0') as usize;
    match *buf {
        [first, a @ b'0'..=b'9', b'\r', _, ..] if first == kind => Some((digit(a), 4)),
        [first, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] if first == kind => {
            Some((digit(a) * 10 + digit(b), 5))
        }
        _ => None,
    }
}

struct Line {
    end: usize,
    next: usize,
}

/// Returns the line that starts at `from`, or `None` while its end has not arrived. Releases that look for the end in a C string never
/// find one behind a NUL byte.
fn header_line(
    buf: &[u8],
    from: usize,
    is_c_string: bool,
    too_long: &str,
) -> Result<Option<Line>, ProtocolError> {
    let line = &buf[from..];
    let end = match is_c_string {
        true => memchr2(b'\r', 0, line).filter(|&at| line[at] == b'\r'),
        false => memchr(b'\r', line),
    };
    let Some(at) = end else {
        return if buf.len() - from > MAX_LINE { Err(error(too_long)) } else { Ok(None) };
    };
    let end = from + at;
    Ok((end + 1 < buf.len()).then_some(Line { end, next: end + 2 }))
}

/// Splits a line into words as redis-cli and redis.conf quote them: `"…"` with escapes, `'…'` with `\'`.
/// Returns `None` if a quote is not closed, or if anything but a blank follows a closing quote.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    words_of(line, false)
}

/// Splits a line as [`split_words`] does. `may_join`: anything may follow a closing quote, and belongs to the same word.
fn words_of(line: &[u8], may_join: bool) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let (word, tail) = word_of(rest, may_join)?;
        words.push(word);
        rest = tail;
    }
}

/// Splits off the first word of a line that does not begin with a blank, as [`split_words`] does. Returns the word and what
/// follows it, or `None` if its quotes are unbalanced.
pub fn split_word(rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    word_of(rest, false)
}

fn word_of(mut rest: &[u8], may_join: bool) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [b, ..] if b.is_ascii_whitespace() || *b == 0 => return Some((word, &rest[1..])),
            [quote @ (b'"' | b'\''), tail @ ..] => {
                rest = read_quoted(*quote, tail, &mut word)?;
                if may_join {
                    continue;
                }
                // A blank or the end has to follow a closing quote.
                return match rest {
                    [] => Some((word, rest)),
                    [b, ..] if b.is_ascii_whitespace() => Some((word, rest)),
                    _ => None,
                };
            }
            [b, tail @ ..] => {
                word.push(*b);
                rest = tail;
            }
        }
    }
}

fn read_quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\\', b'x', high, low, tail @ ..] if quote == b'"' && is_hex(*high) && is_hex(*low) => {
                word.push(hex(*high) << 4 | hex(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [b'\\', b'\'', tail @ ..] if quote == b'\'' => {
                word.push(b'\'');
                rest = tail;
            }
            [b, tail @ ..] if *b == quote => return Some(tail),
            [b, tail @ ..] => {
                word.push(*b);
                rest = tail;
            }
        }
    }
}

fn is_hex(digit: u8) -> bool {
    digit.is_ascii_hexdigit()
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RequestLimits =
        RequestLimits { max_bulk_len: 512 << 20, authenticated: true, version: Version::V7_4 };

    fn parse_all(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let mut parser = RequestParser::default();
        let (mut at, mut requests) = (0, Vec::new());
        while let Some(len) = parser.parse(&bytes[at..], LIMITS)? {
            requests.push(parser.args(&bytes[at..]).iter().map(|arg| arg.to_vec()).collect());
            at += len;
        }
        Ok(requests)
    }

    #[test]
    fn a_request_split_at_any_byte_is_the_same_request() {
        let bytes = b"*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n";
        for cut in 0..bytes.len() {
            let mut parser = RequestParser::default();
            assert_eq!(parser.parse(&bytes[..cut], LIMITS), Ok(None), "cut at {cut}");
            assert_eq!(parser.parse(bytes, LIMITS), Ok(Some(bytes.len())));
            assert_eq!(parser.args(bytes).as_slice(), [&b"ECHO"[..], b"a\r\nbc"]);
        }
    }

    #[test]
    fn pipelined_and_inline_requests_mix() {
        let requests =
            parse_all(b"PING\r\n*1\r\n$4\r\nPING\r\nset k \"a \\x41\\n\" 'b\\'c'\n\r\n*0\r\n").unwrap();
        assert_eq!(requests.len(), 5);
        assert_eq!(requests[2], [&b"set"[..], b"k", b"a A\n", b"b'c"]);
        assert!(requests[3].is_empty() && requests[4].is_empty());
    }

    #[test]
    fn malformed_headers_have_redis_texts() {
        for (bytes, text) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*1\r\n+OK\r\n", "expected '$', got '+'"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"set \"a\r\n", "unbalanced quotes in request"),
        ] {
            assert_eq!(parse_all(bytes), Err(error(text)));
        }
    }
}
