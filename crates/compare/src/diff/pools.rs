//! Small pools of arguments, so that commands use the same keys, fields and members. They include unusual ones that are hard
//! to parse.

use super::libraries;
use redlatch_core::rng::Rng;

/// Picks random arguments from named pools.
pub struct Pools {
    pub rng: Rng,
    /// The keys of the present family. Any command may use any key, but most use these.
    pub home: &'static [&'static str],
    /// Whether scripts are generated, rather than picked from a list.
    pub grows_scripts: bool,
    /// The time of the newest id of a stream entry: ids have to grow.
    entry_ms: usize,
}

/// All keys. The first letter hints at the type of the value that a key mostly has.
pub const KEYS: &[&str] =
    &["s1", "s2", "b1", "b2", "p1", "g1", "h1", "h2", "l1", "l2", "e1", "e2", "z1", "z2", "k1", "k2"];

/// A field, member or value that is too long for compact encodings.
const LONG: &str = "a-value-that-is-longer-than-the-sixty-four-bytes-that-a-listpack-takes";
const EMBSTR_44: &str = "exactly-forty-four-bytes-that-stay-embedded!";
const RAW_45: &str = "exactly-forty-five-bytes-that-are-a-raw-text!";

const SMALL: &[&str] = &["0", "1", "2", "3", "5", "10", "-1", "-2", "-3", "100"];

/// Numbers at limits, and texts that are almost numbers.
const ODD: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "2147483648",
    "-2147483649",
    "",
    " 1",
    "1 ",
    "+1",
    "01",
    "-0",
    "1.5",
    "0x10",
    "1e3",
    "abc",
    "nan",
    "inf",
    "1e400",
    "a\0b",
];

const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "1.5",
    "-2.25",
    "0.1",
    "0.2",
    "3.0",
    "10",
    "1e3",
    "5e-1",
    "-0.0",
    "+1.5",
    "1e17",
    "1e-7",
    "1e20",
    "3.141592653589793",
    "100000000000000000000",
    "9007199254740993",
];

const ODD_FLOATS: &[&str] = &[
    "inf",
    "+inf",
    "-inf",
    "Infinity",
    "nan",
    "-nan",
    "1e400",
    "-1e400",
    "1e-400",
    "1e308",
    "0x1p3",
    "0x10",
    " 1.5",
    "1.5 ",
    "1.5abc",
    "",
    ".",
    "1.",
    ".5",
    "1e",
    "--1",
    "1,5",
    "9223372036854775807",
    "1e4000",
];

/// Those of them that a double cannot represent.
pub const OVERFLOWS: &[&[u8]] = &[b"1e400", b"-1e400", b"1e-400", b"1e4000"];

/// Positions of bits; those with a `#` count fields.
const OFFSETS: &[&str] =
    &["0", "1", "7", "8", "9", "15", "33", "64", "100", "130", "#0", "#1", "#3", "600", "-1", "-9", "-20"];
const ODD_OFFSETS: &[&str] = &[
    "4294967296",
    "9223372036854775807",
    "#9223372036854775807",
    "#2305843009213693953",
    "9223372036854775808",
    "-9223372036854775808",
    "#",
    "##1",
    "#-1",
    "",
    " 1",
    "01",
    "abc",
];
const FIELD_TYPES: &[&str] =
    &["u1", "i1", "u2", "i5", "u8", "i8", "u8", "i8", "u16", "i16", "i31", "u32", "i33", "u63", "i63", "i64"];
const ODD_FIELD_TYPES: &[&str] =
    &["u64", "i65", "u0", "U8", "u", "", "i08", "x8", "u8\0z", "i-1", "u99999999999999999999"];

const DISTANCES: &[&str] = &[
    "0", "1", "100", "500", "1000", "2000.5", "5000", "12000", "20000", "100000", "3000000", "1e7", "inf",
    "-1",
];

/// A key that holds a stream whose ids are in a far future, so that no clock decides about the id of an entry added with `*`.
pub const FAR: &str = "far";
pub const FAR_MS: &str = "99999999999999";

/// Ids of stream entries at limits, and texts that are almost ids.
const ODD_IDS: &[&str] = &[
    "0-0",
    "0",
    "0-1",
    "0-*",
    "1-*",
    "18446744073709551615-18446744073709551615",
    "18446744073709551615",
    "18446744073709551615-*",
    "18446744073709551616-0",
    "9223372036854775808-9223372036854775808",
    "1--1",
    "1--01",
    "-1-1",
    "01-01",
    " 5-1",
    "5-+1",
    "5- 1",
    "5-1-1",
    "1-",
    "-",
    "+",
    "$",
    ">",
    "abc",
    "",
    "5-1\0",
];

/// TTLs are long or over at once: no key may expire while commands run.
const SECONDS: &[&str] = &["1000", "20000", "300000", "1000"];
const MS: &[&str] = &["1000000", "20000999", "300000500", "1000000"];
const AT: &[&str] = &["4102444800", "33177117420"];
const AT_MS: &[&str] = &["4102444800000", "33177117420000"];
const ODD_TIMES: &[&str] = &[
    "0",
    "-1",
    "-1000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775",
    "9223372036854776",
    "",
    " 1000",
    "abc",
    "1000.5",
    "1e9",
    "0x1000",
    "9223372036854775808",
];

impl Pools {
    pub fn new(seed: u64) -> Pools {
        Pools { rng: Rng::new(seed), home: KEYS, grows_scripts: false, entry_ms: 0 }
    }

    /// Returns true once in `times`, at random.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.rng.below(times) == 0
    }

    pub fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.rng.below(words.len())]
    }

    /// Returns an argument from the pool `name`. Any other name is a keyword, returned in random upper or lower case.
    pub fn word(&mut self, name: &str) -> Vec<u8> {
        let text = match name {
            "key" => return self.key(),
            "lexkey" => "x1",
            "value" => return self.value(),
            "long" => LONG,
            "any" => self.any(),
            "longitude" => return self.degrees(190),
            "latitude" => return self.degrees(90),
            "spot" => return format!("m{}", self.rng.below(40)).into(),
            "distance" => self.mostly(DISTANCES, ODD_FLOATS),
            "unit" => self.mostly(&["m", "km", "km", "mi", "ft"], &["", "yard", "M", "kM", "km "]),
            // The start of each string is what most commands see.
            "offset" => self.mostly(OFFSETS, ODD_OFFSETS),
            "fieldtype" => self.mostly(FIELD_TYPES, ODD_FIELD_TYPES),
            "element" if self.makes_hyperloglogs() => return self.rng.below(100_000).to_string().into(),
            "field" | "member" | "element" => self.item(),
            "int" => self.mostly(SMALL, ODD),
            "count" => self.mostly(&["0", "1", "2", "3", "10"], ODD),
            "float" => self.mostly(FLOATS, ODD_FLOATS),
            "seconds" => self.mostly(SECONDS, ODD_TIMES),
            "ms" => self.mostly(MS, ODD_TIMES),
            "at" => self.mostly(AT, ODD_TIMES),
            // Of `hello`, of the empty string, and of nothing.
            "digest" => self.mostly(
                &["9555e8555c62dcfd", "2d06800538d394c2", "2D06800538D394C2"],
                &["", "abc", "0123456789abcdez"],
            ),
            "past" => self.pick(&["1", "1000000000"]),
            "atms" => self.mostly(AT_MS, ODD_TIMES),
            "timeout" => {
                self.mostly(&["0", "0.0", "1000"], &["-1", "abc", "", "inf", "nan", "1e400", "-0.0", " 1"])
            }
            "pattern" => self.pick(&[
                "*", "k*", "?1", "[a-h]?", "[^k]*", "*1", "\\k1", "[", "", "h[1-", "c*", "[]", "a*b",
            ]),
            "bound" => self.mostly(
                &["-inf", "+inf", "(1", "1", "(2.5", "10", "(-inf", "0"],
                &["(", "abc", "", "nan", "((1", "( 1", "(nan"],
            ),
            "lex" => {
                self.mostly(&["-", "+", "[a", "(a", "[b", "(field", "[", "("], &["a", "", "-1", "+a", "(\0"])
            }
            "newid" => return self.new_entry_id().into_bytes(),
            "id" if !self.once_in(12) => return self.entry_id().into_bytes(),
            "id" => self.pick(ODD_IDS),
            "prefix" => self.pick(&["", "s", "k", "s1", "h", "zz", "k1", "h1"]),
            "dumped" => return super::payloads::dumped(&mut self.rng),
            "far" => FAR,
            "farid" => return format!("{FAR_MS}-{}", 1 + self.rng.below(20)).into(),
            "newfarid" => return format!("{FAR_MS}-*").into(),
            "producer" => self.mostly(&["p", "p", "q"], &["", "p\0"]),
            "request" => self.mostly(&["r1", "r2", "r3"], &["", "12"]),
            "idbound" => return self.id_bound().into_bytes(),
            "group" => self.pick(&["g", "g", "g", "g2", "nogroup"]),
            "consumer" => self.pick(&["c", "c", "d", "e", ""]),
            "idle" => self.mostly(&["0", "0", "100000"], ODD_TIMES),
            "channel" => self.pick(&["c1", "c2", "chan", "", "c\0", "__keyspace@0__:k1"]),
            "channels" => self.pick(&["c*", "c?", "*", "[c]1", "chan", "__keyevent@*__:*", ""]),
            "db" => self.mostly(&["0", "1", "0", "1"], &["-1", "16", "15", "abc", "", "99999999999", "1 "]),
            "user" => self.pick(&["default", "nobody", ""]),
            "name" => self.pick(&["me", "a b", "", "x-1", "\u{e9}"]),
            "param" => self.pick(&[
                "maxmemory-policy",
                "hash-max-*",
                "list-max-listpack-size",
                "notify-keyspace-events",
                "MAXMEMORY-POLICY",
                "no-such-parameter",
                "zset-max-listpack-[ev]*",
                "",
            ]),
            "command" => self.pick(&[
                "get",
                "SET",
                "hset",
                "del",
                "mset",
                "eval",
                "nosuch",
                "config|get",
                "lcs",
                "expire",
                "",
            ]),
            "library" => self.pick(libraries::LIBRARIES),
            "libraryname" => self.pick(libraries::LIBRARY_NAMES),
            "function" => self.pick(libraries::FUNCTION_NAMES),
            "username" => self.pick(libraries::USERS),
            "rule" => self.pick(libraries::RULES),
            "lua" if self.grows_scripts => return super::lua::script(self),
            "lua" => self.pick(super::shapes::LUA),
            keyword => return self.keyword(keyword),
        };
        text.as_bytes().to_vec()
    }

    /// Returns an argument that fits nowhere in particular. None is a small number, which as a TTL would expire too soon.
    pub fn any(&mut self) -> &'static str {
        match self.rng.below(4) {
            0 => self.pick(ODD),
            1 => self.pick(ODD_FLOATS),
            _ => self.pick(&[
                "NX",
                "XX",
                "GT",
                "COUNT",
                "k1",
                "GET",
                "LIMIT",
                "*",
                "-1",
                "0",
                "nokey",
                "WITHSCORES",
            ]),
        }
    }

    /// Returns the id of a new entry, mostly one that is greater than all before.
    fn new_entry_id(&mut self) -> String {
        self.entry_ms += self.rng.below(3);
        match self.rng.below(24) {
            0 => self.pick(ODD_IDS).to_owned(),
            1 => self.entry_id(),
            2..=8 => format!("{}-{}", self.entry_ms, self.rng.below(4)),
            _ => format!("{}-*", self.entry_ms),
        }
    }

    /// Returns the id of an entry that may be there.
    fn entry_id(&mut self) -> String {
        let ms = self.entry_ms.saturating_sub(self.rng.below(30).min(self.rng.below(30)));
        match self.rng.below(6) {
            0 => ms.to_string(),
            1 => format!("{ms}-1"),
            _ => format!("{ms}-0"),
        }
    }

    fn id_bound(&mut self) -> String {
        match self.rng.below(10) {
            0..=2 => "-".to_owned(),
            3..=5 => "+".to_owned(),
            6 => format!("({}", self.entry_id()),
            7 if self.once_in(2) => self.pick(&["(-", "(", "(0-0", "(18446744073709551615", "(+"]).to_owned(),
            _ => self.entry_id(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let text = match self.rng.below(40) {
            0 => "",
            1 => "nokey",
            2 => return b"\x00\xff".to_vec(),
            3..=12 => self.pick(KEYS),
            _ => self.pick(self.home),
        };
        text.as_bytes().to_vec()
    }

    /// Returns an angle, mostly below `limit`: near a few places, which have neighbours then, or anywhere.
    fn degrees(&mut self, limit: usize) -> Vec<u8> {
        let sign = if self.once_in(2) { -1.0 } else { 1.0 };
        let (whole, fraction) = (self.rng.below(limit) as f64, self.rng.below(100_000) as f64 / 100_000.0);
        let number = match self.rng.below(8) {
            0 | 1 => sign * (whole + fraction),
            2 | 3 => 13.0 + fraction,
            4 => sign * fraction / 10.0,
            5 => sign * (limit as f64 - 10.0 + fraction),
            6 => sign * whole,
            _ => return self.mostly(FLOATS, ODD_FLOATS).into(),
        };
        number.to_string().into()
    }

    fn makes_hyperloglogs(&self) -> bool {
        self.home == super::shapes::HYPERLOGLOGS
    }

    fn value(&mut self) -> Vec<u8> {
        if self.makes_hyperloglogs() && self.once_in(2) {
            return super::payloads::hyperloglog(&mut self.rng);
        }
        let text = match self.rng.below(12) {
            0 => self.pick(ODD),
            1 => self.pick(&[LONG, EMBSTR_44, RAW_45]),
            2 => return b"\x00\xff\r\n$".to_vec(),
            3 | 4 => self.pick(FLOATS),
            5 | 6 => self.pick(SMALL),
            7 => self.pick(ODD_FLOATS),
            _ => self.item(),
        };
        text.as_bytes().to_vec()
    }

    fn item(&mut self) -> &'static str {
        match self.rng.below(30) {
            0 => LONG,
            1 => "",
            2..=6 => self.pick(SMALL),
            7 => self.pick(ODD),
            _ => self.pick(&["a", "b", "c", "d", "e", "field", "hello", "B", "aa", "ab"]),
        }
    }

    fn mostly<'a>(&mut self, usual: &[&'a str], odd: &[&'a str]) -> &'a str {
        if self.once_in(6) { self.pick(odd) } else { self.pick(usual) }
    }

    pub fn keyword(&mut self, word: &str) -> Vec<u8> {
        let mut word = word.as_bytes().to_vec();
        match self.rng.below(6) {
            0 => word.make_ascii_lowercase(),
            1 => word.iter_mut().for_each(|byte| {
                if self.rng.below(2) == 0 {
                    byte.make_ascii_lowercase();
                }
            }),
            _ => {}
        }
        word
    }
}
