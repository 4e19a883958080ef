//! The client's side of the protocol: requests out, replies in. For tools and tests that talk to a server.

use redis_protocol::{resp2, resp3};

/// A request as clients send it.
pub fn encode(argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", argv.len()).into_bytes();
    for arg in argv {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// How many bytes the reply or message at the start of `buf` takes, in either protocol; `None` while it is not complete
/// or if it is none.
pub fn value_len(buf: &[u8]) -> Option<usize> {
    match resp2::decode::decode_range(buf) {
        Ok(found) => found.map(|(_, len)| len),
        Err(_) => resp3::decode::complete::decode_range(buf).ok()?.map(|(_, len)| len),
    }
}

/// The elements of an aggregate, each with all its bytes.
pub fn elements(buf: &[u8]) -> Vec<&[u8]> {
    let Some(header) = memchr::memchr(b'\n', buf) else { return Vec::new() };
    let mut rest = &buf[header + 1..];
    let mut parts = Vec::new();
    while let Some(len) = value_len(rest).filter(|&len| len > 0) {
        let (part, tail) = rest.split_at(len);
        parts.push(part);
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_both_protocols_are_measured() {
        for reply in [
            "+OK\r\n",
            "-ERR x\r\n",
            ":-5\r\n",
            "$3\r\nabc\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "*2\r\n$-1\r\n*-1\r\n",
            "_\r\n",
            ",1.5\r\n",
            ",inf\r\n",
            "#t\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "~1\r\n:1\r\n",
            "%0\r\n",
            "~0\r\n",
            ">3\r\n+message\r\n$1\r\nc\r\n$1\r\nm\r\n",
            "=6\r\ntxt:ab\r\n",
            "(12345678901234567890123\r\n",
            "*1\r\n_\r\n",
            "*2\r\n*2\r\n$1\r\na\r\n,0.1\r\n_\r\n",
            "$0\r\n\r\n",
            ",-0\r\n",
            ",5e-324\r\n",
            ",nan\r\n",
        ] {
            assert_eq!(value_len(reply.as_bytes()), Some(reply.len()), "{reply:?}");
            for cut in 0..reply.len() {
                assert_eq!(value_len(&reply.as_bytes()[..cut]), None, "{reply:?} cut at {cut}");
            }
        }
    }
}
