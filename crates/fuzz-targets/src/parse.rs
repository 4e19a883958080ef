//! Targets that parse bytes of clients.

use redlatch_core::glob;
use redlatch_core::version::Version;
use redlatch_core::wire::{RequestLimits, RequestParser};

/// Fails if a stream of requests is parsed differently as a whole and byte by byte, or a request is longer than its
/// input.
pub fn request(bytes: &[u8]) {
    for authenticated in [false, true] {
        let limits = RequestLimits { max_bulk_len: 1 << 20, authenticated, version: Version::DEFAULT };
        let whole = read(bytes, limits, bytes.len());
        let split = read(bytes, limits, 1);
        assert_eq!(whole, split);
    }
}

/// Returns the requests in a stream that arrives in pieces, and the error that ended it.
fn read(bytes: &[u8], limits: RequestLimits, piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
    let mut parser = RequestParser::default();
    let mut requests = Vec::new();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + piece.max(1)).min(bytes.len());
        loop {
            match parser.parse(&bytes[start..end], limits) {
                Ok(None) => break,
                Ok(Some(len)) => {
                    assert!(len > 0 && start + len <= end, "{len} bytes of {}", end - start);
                    let args = parser.args(&bytes[start..end]);
                    requests.push(args.iter().map(|arg| arg.to_vec()).collect());
                    start += len;
                }
                Err(error) => return (requests, Some(error.0)),
            }
        }
    }
    (requests, None)
}

/// Fails if a pattern without special characters does not match exactly its own text, or if the text after the first
/// line break does not match itself with its special characters quoted.
pub fn glob(bytes: &[u8]) {
    let at = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let (pattern, text) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let exact = glob::matches(pattern, text, false);
    let folded = glob::matches(pattern, text, true);
    if !glob::is_pattern(pattern) {
        assert_eq!(exact, pattern == text);
        assert_eq!(folded, pattern.eq_ignore_ascii_case(text));
    }
    // As in Redis, only the empty pattern matches the empty text.
    if text.is_empty() {
        return assert_eq!(exact, pattern.is_empty());
    }
    let quoted: Vec<u8> = text.iter().flat_map(|&byte| [b'\\', byte]).collect();
    assert!(glob::matches(&quoted, text, false) && glob::matches(b"*", text, false));
    assert!(glob::matches(&[b"*", &quoted[..], b"*"].concat(), text, false));
}
