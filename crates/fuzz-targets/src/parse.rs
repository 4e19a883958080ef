//! Targets that parse bytes of clients, servers and configuration files.

use std::fmt::Write;

use redlatch_core::glob;
use redlatch_core::node::Config;
use redlatch_core::version::Version;
use redlatch_core::wire::client::{elements, value_len};
use redlatch_core::wire::reply::{Protocol, Reply};
use redlatch_core::wire::{RequestLimits, RequestParser, Value};

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

/// Fails if the two readers of replies disagree about where one ends, a reply is complete before its end, or one that the
/// server's own writer has written is not read.
pub fn reply(bytes: &[u8]) {
    read_reply(bytes);
    let mut left = bytes.iter().copied();
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut reply = Reply::new(protocol, Version::DEFAULT);
        write_value(&mut left, 6, &mut reply);
        let written = reply.as_bytes();
        assert_eq!(value_len(written), Some(written.len()), "{}", written.escape_ascii());
        let read = Value::decode(written).map(|read| read.map(|(_, len)| len));
        assert_eq!(read, Ok(Some(written.len())), "{}", written.escape_ascii());
        read_reply(written);
    }
}

fn read_reply(bytes: &[u8]) {
    let len = value_len(bytes);
    assert!(elements(bytes).iter().map(|part| part.len()).sum::<usize>() <= bytes.len());
    if let Ok(Some((value, end))) = Value::decode(bytes) {
        // A reader of ends alone takes a lone line feed, as errors of scripts have, for the end of a line.
        let has_lone_feed =
            memchr::memchr_iter(b'\n', &bytes[..end]).any(|at| at == 0 || bytes[at - 1] != b'\r');
        assert!(len == Some(end) || has_lone_feed, "{len:?} and {end}");
        write!(String::new(), "{value}").expect("a string takes any text");
        let cuts = (0..end).step_by(1 + end / 64);
        assert!(cuts.into_iter().all(|cut| matches!(Value::decode(&bytes[..cut]), Ok(None) | Err(_))));
    }
}

/// Writes any value: each byte selects a type, and the next one its length or its content.
fn write_value(bytes: &mut dyn Iterator<Item = u8>, depth: usize, reply: &mut Reply) {
    let (kind, size) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
    let len = if depth == 0 { 0 } else { usize::from(size % 5) };
    let text: Vec<u8> =
        if matches!(kind % 14, 1 | 2) { (&mut *bytes).take(size.into()).collect() } else { Vec::new() };
    let mut items =
        |count: usize, reply: &mut Reply| (0..count).for_each(|_| write_value(bytes, depth - 1, reply));
    match kind % 14 {
        0 => reply.null(),
        1 => reply.bulk(&text),
        2 => reply.verbatim(b"txt", &text),
        3 => reply.int(i64::from(size) - 100),
        4 => reply.double((f64::from(size) - 128.0) / 7.0),
        5 => {
            reply.double([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, f64::MAX][usize::from(size % 5)])
        }
        6 => reply.boolean(size % 2 == 0),
        7 => reply.big_number(b"-12345678901234567890"),
        8 => reply.null_array(),
        9 => reply.error(b"ERR any"),
        10 => {
            reply.array(len);
            items(len, reply);
        }
        11 => {
            reply.map(len);
            items(2 * len, reply);
        }
        12 => {
            reply.set(len);
            items(len, reply);
        }
        _ => {
            let at = reply.defer();
            items(len, reply);
            reply.end_array(at, len);
        }
    }
}

/// Applies the lines of a configuration file, as at the start and as CONFIG SET. Fails if a parameter does not accept the
/// value that it shows, or shows another one then.
pub fn config(bytes: &[u8]) {
    let Some((&release, text)) = bytes.split_first() else { return };
    let version = Version::ALL[usize::from(release) % Version::ALL.len()];
    let (mut started, mut running) = (Config::new(version), Config::new(version));
    for line in text.split(|&byte| byte == b'\n') {
        let Ok(Some((name, values))) = Config::parse_line(line) else { continue };
        let value = values.join(" ");
        let _ = started.set_at_start(&name, value.as_bytes());
        if running.set(&[(name.as_bytes(), value.as_bytes())]).is_ok() {
            keeps_its_own_value(&mut running, &name);
        }
        started.limits();
        assert!((1..=1024).contains(&running.databases));
    }
    assert!(running.matching(b"*").count() > 100);
}

fn keeps_its_own_value(config: &mut Config, name: &str) {
    let Some(shown) = config.get(name).map(str::to_owned) else { return };
    let again = config.set(&[(name.as_bytes(), shown.as_bytes())]);
    assert!(again.is_ok(), "{name} refuses its own value {shown:?}: {again:?}");
    assert_eq!(config.get(name), Some(&*shown), "{name}");
}
