//! Compares replies.

use super::exclusions::Compare;
use redlatch_core::wire::client::value_len;

/// Splits `buf` into its values; an incomplete rest counts as one value.
pub fn values(mut buf: &[u8]) -> Vec<&[u8]> {
    let mut values = Vec::new();
    while !buf.is_empty() {
        let len = value_len(buf).unwrap_or(buf.len());
        values.push(&buf[..len]);
        buf = &buf[len..];
    }
    values
}

/// Returns the elements of an aggregate.
pub fn elements(buf: &[u8]) -> Vec<&[u8]> {
    let header = memchr::memchr(b'\n', buf).map_or(buf.len(), |at| at + 1);
    values(&buf[header..])
}

/// Sorts the messages that one PUBLISH has sent to several patterns: Redis sends them in hash-table order.
pub fn sort_pattern_messages(values: &mut [&[u8]]) {
    for run in values.chunk_by_mut(|a, b| event_of(a).is_some() && event_of(a) == event_of(b)) {
        run.sort_unstable();
    }
}

/// Returns the channel and the text of a message to a pattern.
fn event_of(message: &[u8]) -> Option<Vec<&[u8]>> {
    let parts = elements(message);
    (parts.len() == 4 && parts[0] == b"$8\r\npmessage\r\n").then(|| parts[2..].to_vec())
}

/// Moves messages that came between replies behind them. Before 7.2, the position of the events that a command causes depends on
/// the command.
pub fn move_pushes_behind(values: &mut [&[u8]]) {
    values.sort_by_key(|value| is_push(value));
}

pub fn is_push(value: &[u8]) -> bool {
    value.starts_with(b">")
}

pub fn same(ours: &[u8], theirs: &[u8], how: Compare) -> bool {
    if ours == theirs {
        return true;
    }
    match how {
        Compare::Exactly => false,
        Compare::AnyOrder => sorted_lines(ours) == sorted_lines(theirs),
        Compare::Nearly => nearly(ours, theirs),
        Compare::Kind => match (ours.first(), theirs.first()) {
            (Some(a), Some(b)) if a != b => false,
            (Some(b'-'), _) => false,
            (Some(b'*' | b'%' | b'~' | b'>'), _) => elements(ours).len() == elements(theirs).len(),
            _ => ours.starts_with(b"$-1") == theirs.starts_with(b"$-1"),
        },
    }
}

fn lines(buf: &[u8]) -> impl Iterator<Item = &[u8]> {
    buf.split(|byte| *byte == b'\n')
}

fn sorted_lines(buf: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = lines(buf).collect();
    lines.sort_unstable();
    lines
}

/// How far two readings of a clock may be apart, in the unit of the reply.
const TOLERANCE: u64 = 100;

fn nearly(ours: &[u8], theirs: &[u8]) -> bool {
    let number = |line: &[u8]| redlatch_core::num::parse_i64(line.trim_ascii().strip_prefix(b":")?);
    lines(ours).count() == lines(theirs).count()
        && lines(ours).zip(lines(theirs)).all(|(ours, theirs)| match (number(ours), number(theirs)) {
            (Some(a), Some(b)) => a.abs_diff(b) <= TOLERANCE && (a < 0) == (b < 0),
            _ => ours == theirs,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_apart() {
        let buf = b"+OK\r\n*2\r\n:1\r\n$1\r\nx\r\n>1\r\n+p\r\n$3\r\nab";
        assert_eq!(values(buf), [&b"+OK\r\n"[..], b"*2\r\n:1\r\n$1\r\nx\r\n", b">1\r\n+p\r\n", b"$3\r\nab"]);
        assert_eq!(elements(b"*2\r\n:1\r\n$1\r\nx\r\n"), [&b":1\r\n"[..], b"$1\r\nx\r\n"]);
    }

    #[test]
    fn only_what_may_differ_does() {
        let (a, b) = (&b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"[..], &b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"[..]);
        assert!(!same(a, b, Compare::Exactly) && same(a, b, Compare::AnyOrder));
        assert!(same(b":1000\r\n", b":1001\r\n", Compare::Nearly));
        assert!(!same(b":-1\r\n", b":5\r\n", Compare::Nearly));
        assert!(!same(b"-ERR a\r\n", b"-ERR b\r\n", Compare::Kind));
        assert!(same(b"$1\r\na\r\n", b"$2\r\n\r\n\r\n", Compare::Kind));
        assert!(!same(b"$1\r\na\r\n", b"$-1\r\n", Compare::Kind));
        assert!(!same(a, b"*1\r\n$1\r\na\r\n", Compare::Kind));
    }
}
