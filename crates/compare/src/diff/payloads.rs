//! Generates input for the Lua libraries, and HyperLogLogs. Almost valid data finds more bugs than valid or random data.

use redlatch_core::rng::Rng;
use redlatch_core::store::{StringValue, Value, rdb};
use redlatch_core::version::Version;

fn pick<'a>(rng: &mut Rng, from: &[&'a [u8]]) -> &'a [u8] {
    from[rng.below(from.len())]
}

/// Generates random bytes, fewer than `most`.
pub fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.below(256) as u8).collect()
}

/// Generates what DUMP returns for a string, which every release reads. One in four is damaged.
pub fn dumped(rng: &mut Rng) -> Vec<u8> {
    let text: &[u8] = pick(
        rng,
        &[b"", b"a", b"12", b"-70000", b"1e3", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"\x00\xff"],
    );
    let mut dumped = rdb::dump(&Value::String(StringValue::new(text)), Version::V7_0, rng.below(2) == 0);
    match rng.below(12) {
        0 => dumped.truncate(rng.below(dumped.len())),
        1 => {
            let at = rng.below(dumped.len());
            dumped[at] ^= 1 << rng.below(8);
        }
        2 => dumped = bytes(rng, 20),
        _ => {}
    }
    dumped
}

/// Generates a format of `struct.pack`.
pub fn struct_format(rng: &mut Rng) -> Vec<u8> {
    let options: &[&[u8]] = &[
        b"b", b"B", b"h", b"H", b"l", b"L", b"T", b"i", b"I", b"i3", b"I5", b"i16", b"f", b"d", b"s", b"c0",
        b"c3", b"c", b"x", b"<", b">", b"!", b"!4", b"!2", b" ", b"i0", b"Bc0", b"z",
    ];
    (0..rng.below(6)).flat_map(|_| pick(rng, options)).copied().collect()
}

/// Generates a text for `cjson.decode`.
pub fn json(rng: &mut Rng) -> Vec<u8> {
    let mut text = Vec::new();
    append_json(rng, 4, &mut text);
    for _ in 0..rng.below(3) {
        mutate(rng, &mut text);
    }
    text
}

fn append_json(rng: &mut Rng, depth: usize, text: &mut Vec<u8>) {
    let scalars: &[&[u8]] = &[
        b"1",
        b"-1",
        b"0.5",
        b"1e5",
        b"1e-7",
        b"123456789012345678",
        b"0x1f",
        b"01",
        b"nan",
        b"-inf",
        b"true",
        b"false",
        b"null",
        b"\"\"",
        b"\"text\"",
        b"\"\\u00e9\\ud83d\\ude00\"",
        b"\"a\\/\\b\\n\"",
        b"\"\xff\x01\"",
        b"\"1\"",
    ];
    match rng.below(if depth == 0 { 1 } else { 3 }) {
        0 => text.extend_from_slice(pick(rng, scalars)),
        1 => {
            text.push(b'[');
            for i in 0..rng.below(4) {
                if i > 0 {
                    text.push(b',');
                }
                append_json(rng, depth - 1, text);
            }
            text.push(b']');
        }
        _ => {
            text.push(b'{');
            for i in 0..rng.below(4) {
                if i > 0 {
                    text.extend_from_slice(b" ,");
                }
                text.extend_from_slice(pick(rng, &[b"\"a\"", b"\"b\"", b"\"1\"", b"\"long key\""]));
                text.push(b':');
                append_json(rng, depth - 1, text);
            }
            text.push(b'}');
        }
    }
}

/// Generates a HyperLogLog in the sparse encoding: mostly valid, sometimes with too few or too many registers.
pub fn hyperloglog(rng: &mut Rng) -> Vec<u8> {
    let mut text = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80".to_vec();
    let mut left = 16384;
    for _ in 0..rng.below(12) {
        match rng.below(3) {
            0 => {
                let len = 1 + rng.below(64);
                text.push(len as u8 - 1);
                left -= len;
            }
            1 => {
                let len = 1 + rng.below(1000);
                text.extend_from_slice(&(0x4000 | (len - 1) as u16).to_be_bytes());
                left -= len;
            }
            _ => {
                let len = 1 + rng.below(4);
                text.push(0x80 | (rng.below(32) as u8) << 2 | (len - 1) as u8);
                left -= len;
            }
        }
    }
    text.extend_from_slice(&(0x4000 | (left - 1) as u16).to_be_bytes());
    if rng.below(4) == 0 {
        mutate(rng, &mut text);
        // No truncated run: Redis reads the memory behind it.
        text.push(0);
    }
    text
}

fn mutate(rng: &mut Rng, text: &mut Vec<u8>) {
    let at = rng.below(text.len() + 1);
    match rng.below(3) {
        0 if at < text.len() => drop(text.remove(at)),
        1 if at < text.len() => {
            text[at] = pick(rng, &[b"\"", b"]", b"}", b",", b"\\", b"0", b"-", b"\0", b"e", b"."])[0]
        }
        _ => text.insert(at, rng.below(256) as u8),
    }
}

/// Generates data for `cmsgpack.unpack`.
pub fn message_pack(rng: &mut Rng) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..rng.below(4) {
        append_message_pack(rng, 3, &mut data);
    }
    for _ in 0..rng.below(3) {
        mutate(rng, &mut data);
    }
    data
}

fn append_message_pack(rng: &mut Rng, depth: usize, data: &mut Vec<u8>) {
    let kinds: &[(u8, usize)] = &[
        (0xca, 4),
        (0xcb, 8),
        (0xcc, 1),
        (0xcd, 2),
        (0xce, 4),
        (0xcf, 8),
        (0xd0, 1),
        (0xd1, 2),
        (0xd2, 4),
        (0xd3, 8),
        (0xc0, 0),
        (0xc2, 0),
        (0xc3, 0),
        (0x05, 0),
        (0xe5, 0),
        (0xa3, 3),
        (0xc4, 2),
        (0xc1, 0),
    ];
    match rng.below(if depth == 0 { 1 } else { 4 }) {
        0 | 1 => {
            let (kind, len) = kinds[rng.below(kinds.len())];
            data.push(kind);
            (0..len).for_each(|_| data.push(rng.below(256) as u8));
        }
        2 => {
            let len = rng.below(4);
            match rng.below(3) {
                0 => data.push(0x90 | len as u8),
                1 => data.extend_from_slice(&[0xdc, 0, len as u8]),
                _ => data.extend_from_slice(&[0xdd, 0, 0, 0, len as u8]),
            }
            (0..len).for_each(|_| append_message_pack(rng, depth - 1, data));
        }
        _ => {
            let len = rng.below(4);
            data.push(0x80 | len as u8);
            for _ in 0..len {
                // No tables as keys: they are ordered by address.
                append_message_pack(rng, 0, data);
                append_message_pack(rng, depth - 1, data);
            }
        }
    }
}
