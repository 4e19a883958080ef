//! The client's side of the protocol, for programs and tests that talk to a server: requests as bytes, and where a reply ends. [`Value`](super::Value)
//! has what a reply says.

use crate::num;

/// Returns a request in wire form.
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

/// Returns the length in bytes of the reply or message at the start of `buf`, in RESP2 or RESP3, or `None` while it is
/// incomplete. Does not recurse, however deep the reply is nested.
pub fn value_len(buf: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut missing: u64 = 1;
    while missing > 0 {
        let line_end = at + memchr::memchr(b'\n', &buf[at..])? + 1;
        let number = || num::parse_i64(buf.get(at + 1..line_end - 2)?);
        missing -= 1;
        match buf[at] {
            b'$' | b'=' | b'!' => {
                let len = number()?;
                at = if len < 0 { line_end } else { line_end.checked_add(len as usize + 2)? };
            }
            b'*' | b'~' | b'>' => {
                missing = missing.saturating_add(number()?.max(0) as u64);
                at = line_end;
            }
            b'%' => {
                missing = missing.saturating_add(number()?.max(0) as u64 * 2);
                at = line_end;
            }
            _ => at = line_end,
        }
        if at > buf.len() {
            return None;
        }
    }
    Some(at)
}

/// Returns the elements of an aggregate, each as its complete bytes.
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
    fn a_deep_reply_is_measured_too() {
        let deep = "*1\r\n".repeat(1_000_000) + ":1\r\n";
        assert_eq!(value_len(deep.as_bytes()), Some(deep.len()));
    }

    #[test]
    fn lengths_that_no_number_holds_are_not_complete() {
        assert_eq!(value_len(b"*9223372036854775807\r\n%9223372036854775807\r\n%9\r\n"), None);
    }

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
