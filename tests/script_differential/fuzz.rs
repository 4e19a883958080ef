//! Made-up input for the libraries, with a fixed seed: data that is nearly right finds more than either right or random data.

/// A stream of numbers that is the same every time.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 ^ self.0 >> 29) >> 11
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a [u8]]) -> &'a [u8] {
        from[self.below(from.len())]
    }
}

/// Turns a value into text that shows everything about it.
pub const DUMP: &str = "local function dump(v) \
    local t = type(v) \
    if t == 'table' then local r = {} for k, x in pairs(v) do r[#r + 1] = dump(k) .. '=' .. dump(x) end return '{' .. table.concat(r, ',') .. '}' \
    elseif t == 'number' then return string.format('%.17g', v) \
    elseif t == 'string' then return string.format('%q', v) \
    else return tostring(v) end end ";

/// A script, and two arguments for it.
pub struct Case {
    pub script: String,
    pub arguments: [Vec<u8>; 2],
}

pub fn case(numbers: &mut Numbers) -> Case {
    let (call, arguments) = match numbers.below(7) {
        0 | 1 => ("cjson.decode(ARGV[1])", [json(numbers), vec![]]),
        2 => ("cjson.encode(cjson.decode(ARGV[1]))", [json(numbers), vec![]]),
        3 => ("cmsgpack.unpack(ARGV[1])", [message_pack(numbers), vec![]]),
        4 => ("cmsgpack.pack(cmsgpack.unpack(ARGV[1]))", [message_pack(numbers), vec![]]),
        5 => ("struct.unpack(ARGV[1], ARGV[2])", [format(numbers), bytes(numbers, 40)]),
        _ => {
            let call = [
                "struct.pack(ARGV[1], ARGV[2], 2.5, -3, 'abc', 70000, '12')",
                "struct.pack(ARGV[1], 7, ARGV[2], 1e10, 'x')",
                "struct.size(ARGV[1])",
                "bit.tohex(tonumber(ARGV[2]) or -1, #ARGV[1])",
                "bit.bxor(bit.rol((tonumber(ARGV[2]) or 1e10) * 1.5, #ARGV[1]), bit.arshift(-5, #ARGV[1]))",
            ][numbers.below(5)];
            (call, [format(numbers), number(numbers)])
        }
    };
    let script = format!("{DUMP} local r = {{pcall(function() return {call} end)}} return dump(r)");
    Case { script, arguments }
}

fn bytes(numbers: &mut Numbers, most: usize) -> Vec<u8> {
    (0..numbers.below(most)).map(|_| numbers.below(256) as u8).collect()
}

fn number(numbers: &mut Numbers) -> Vec<u8> {
    numbers
        .pick(&[
            b"0",
            b"-1",
            b"1.5",
            b"255",
            b"1e10",
            b"-2147483649",
            b"9007199254740993",
            b"1e300",
            b"abc",
            b"",
        ])
        .to_vec()
}

fn format(numbers: &mut Numbers) -> Vec<u8> {
    let options: &[&[u8]] = &[
        b"b", b"B", b"h", b"H", b"l", b"L", b"T", b"i", b"I", b"i3", b"I5", b"i16", b"f", b"d", b"s", b"c0",
        b"c3", b"c", b"x", b"<", b">", b"!", b"!4", b"!2", b" ", b"i0", b"Bc0", b"z",
    ];
    (0..numbers.below(6)).flat_map(|_| numbers.pick(options)).copied().collect()
}

fn json(numbers: &mut Numbers) -> Vec<u8> {
    let mut text = Vec::new();
    append_json(numbers, 4, &mut text);
    for _ in 0..numbers.below(3) {
        mutate(numbers, &mut text);
    }
    text
}

fn append_json(numbers: &mut Numbers, depth: usize, text: &mut Vec<u8>) {
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
    match numbers.below(if depth == 0 { 1 } else { 3 }) {
        0 => text.extend_from_slice(numbers.pick(scalars)),
        1 => {
            text.push(b'[');
            for i in 0..numbers.below(4) {
                if i > 0 {
                    text.push(b',');
                }
                append_json(numbers, depth - 1, text);
            }
            text.push(b']');
        }
        _ => {
            text.push(b'{');
            for i in 0..numbers.below(4) {
                if i > 0 {
                    text.extend_from_slice(b" ,");
                }
                text.extend_from_slice(numbers.pick(&[b"\"a\"", b"\"b\"", b"\"1\"", b"\"long key\""]));
                text.push(b':');
                append_json(numbers, depth - 1, text);
            }
            text.push(b'}');
        }
    }
}

fn mutate(numbers: &mut Numbers, text: &mut Vec<u8>) {
    let at = numbers.below(text.len() + 1);
    match numbers.below(3) {
        0 if at < text.len() => drop(text.remove(at)),
        1 if at < text.len() => {
            text[at] = numbers.pick(&[b"\"", b"]", b"}", b",", b"\\", b"0", b"-", b"\0", b"e", b"."])[0]
        }
        _ => text.insert(at, numbers.below(256) as u8),
    }
}

fn message_pack(numbers: &mut Numbers) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..numbers.below(4) {
        append_message_pack(numbers, 3, &mut data);
    }
    for _ in 0..numbers.below(3) {
        mutate(numbers, &mut data);
    }
    data
}

fn append_message_pack(numbers: &mut Numbers, depth: usize, data: &mut Vec<u8>) {
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
    match numbers.below(if depth == 0 { 1 } else { 4 }) {
        0 | 1 => {
            let (kind, len) = kinds[numbers.below(kinds.len())];
            data.push(kind);
            (0..len).for_each(|_| data.push(numbers.below(256) as u8));
        }
        2 => {
            let len = numbers.below(4);
            match numbers.below(3) {
                0 => data.push(0x90 | len as u8),
                1 => data.extend_from_slice(&[0xdc, 0, len as u8]),
                _ => data.extend_from_slice(&[0xdd, 0, 0, 0, len as u8]),
            }
            (0..len).for_each(|_| append_message_pack(numbers, depth - 1, data));
        }
        _ => {
            let len = numbers.below(4);
            data.push(0x80 | len as u8);
            (0..len * 2).for_each(|_| append_message_pack(numbers, depth - 1, data));
        }
    }
}
