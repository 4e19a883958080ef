//! Exchanges payloads of DUMP between Redlatch and the real redis-server.
//!
//! The same commands have to give the same bytes, and each server has to restore the other's dumps.

use crate::support::client::{Client, elements};
use crate::support::server::Server;
use redlatch::Version;
use redlatch_core::rng::Rng;
use redlatch_core::store::rdb;

/// A connection to each of two servers.
struct Pair {
    release: &'static str,
    ours: Client,
    theirs: Client,
}

impl Pair {
    fn both(&mut self, argv: &[impl AsRef<[u8]>]) -> [Vec<u8>; 2] {
        [self.ours.call(argv), self.theirs.call(argv)]
    }

    fn same(&mut self, argv: &[impl AsRef<[u8]>], why: &str) -> Vec<u8> {
        let [ours, theirs] = self.both(argv);
        assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string(), "{why}");
        ours
    }

    /// Compares the value of a key; returns its encoding.
    fn same_value(&mut self, key: &str, why: &str) -> Vec<u8> {
        let kind = self.same(&["TYPE", key], why);
        let encoding = self.same(&["OBJECT", "ENCODING", key], why);
        let read: &[&str] = match kind.as_slice() {
            b"+string\r\n" => &["GET", key],
            b"+list\r\n" => &["LRANGE", key, "0", "-1"],
            b"+set\r\n" => &["SMEMBERS", key],
            b"+zset\r\n" => &["ZRANGE", key, "0", "-1", "WITHSCORES"],
            b"+hash\r\n" => &["HGETALL", key],
            _ => return encoding,
        };
        let replies = self.both(read);
        let [mut ours, mut theirs] = [elements(&replies[0]), elements(&replies[1])];
        if encoding.ends_with(b"hashtable\r\n") {
            ours.sort();
            theirs.sort();
        }
        assert_eq!(ours, theirs, "{why}");
        if kind == b"+hash\r\n" && self.release >= "7.4" {
            for field in ["a", "b", "c", "f1"] {
                self.same(&["HPEXPIRETIME", key, "FIELDS", "1", field], why);
            }
        }
        encoding
    }
}

fn with_servers(test: impl Fn(&mut Pair)) {
    for release in ["7.0", "7.4", "8.6"] {
        let Some(theirs) = Server::redis(release, &[]) else { continue };
        let ours = Server::redlatch(release, &[]);
        test(&mut Pair { release, ours: ours.connect(), theirs: theirs.connect() });
    }
}

/// Returns the string in a reply.
fn bulk(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    reply.get(start..reply.len() - 2).unwrap_or_default()
}

/// Generates integers of all sizes, and texts that compress well, badly, or not at all.
fn word(rng: &mut Rng, most: usize) -> String {
    if rng.below(4) == 0 {
        let number = (rng.next_u64() >> rng.below(64)) as i64;
        return if rng.below(2) == 0 { number.to_string() } else { number.wrapping_neg().to_string() };
    }
    let len = rng.below(most + 1);
    let letters = [1, 2, 16, 64][rng.below(4)];
    let piece_len = 1 + rng.below(12);
    let repeats = rng.below(2) == 0;
    let piece: Vec<u8> = (0..piece_len).map(|_| b'0' + rng.below(letters) as u8).collect();
    let text = (0..len).map(|at| match repeats && rng.below(20) > 0 {
        true => piece[at % piece_len],
        false => b'0' + rng.below(letters) as u8,
    });
    text.map(char::from).collect()
}

fn score(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => ["inf", "-inf", "-0", "1e300"][rng.below(4)].to_owned(),
        1 => ((rng.next_u64() >> rng.below(64)) as i64).to_string(),
        _ => format!("{}", rng.below(2_000_000) as f64 / 8.0 - 70_000.0),
    }
}

/// Generates the commands that create a random value at `k`.
fn recipe(rng: &mut Rng, release: &str) -> Vec<Vec<String>> {
    let count = [1, 3, 20, 200][rng.below(4)];
    let command = |name: &str, words: Vec<String>| [vec![name.to_owned(), "k".to_owned()], words].concat();
    let words = |rng: &mut Rng, count, most| -> Vec<String> { (0..count).map(|_| word(rng, most)).collect() };
    match rng.below(7) {
        0 => vec![command("SET", words(rng, 1, 10_000))],
        1 => vec![command("RPUSH", words(rng, count, 100))],
        2 => (0..count).map(|_| command(["LPUSH", "RPUSH"][rng.below(2)], words(rng, 1, 9000))).collect(),
        3 => vec![command("SADD", words(rng, count, 70))],
        4 => vec![command("SADD", (0..count).map(|_| (rng.next_u64() as i64 >> 40).to_string()).collect())],
        5 => {
            let pairs = (0..count).flat_map(|_| [score(rng), word(rng, 66)]).collect();
            vec![command("ZADD", pairs)]
        }
        _ => {
            let mut recipe = vec![command("HSET", words(rng, 2 * count, 66))];
            if release >= "7.4" && rng.below(2) == 0 {
                recipe.push(command("HSET", vec!["f1".to_owned(), word(rng, 66)]));
                let end = ["2000000000000", "FIELDS", "1", "f1"].map(str::to_owned).to_vec();
                recipe.push(command("HPEXPIREAT", end));
            }
            recipe
        }
    }
}

#[test]
fn dumps_have_the_same_bytes_and_each_server_restores_the_other_s() {
    with_servers(|pair| {
        let mut rng = Rng::new(1);
        for round in 0..400 {
            let why = format!("round {round} as Redis {}", pair.release);
            pair.same(&["DEL", "k", "copy"], &why);
            for command in recipe(&mut rng, pair.release) {
                pair.same(&command, &why);
            }
            let encoding = pair.same_value("k", &why);
            let [ours, theirs] = pair.both(&["DUMP", "k"]);
            // Hash-table order differs between the servers.
            if !encoding.ends_with(b"hashtable\r\n") {
                assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string(), "{why}");
            }
            let restore = |payload| [&b"RESTORE"[..], b"copy", b"0", payload];
            assert_eq!(pair.ours.call(&restore(bulk(&theirs))), b"+OK\r\n", "{why}");
            assert_eq!(pair.theirs.call(&restore(bulk(&ours))), b"+OK\r\n", "{why}");
            pair.same_value("copy", &why);
        }
    });
}

#[test]
fn objects_of_all_releases_are_taken_or_refused_alike() {
    with_servers(|pair| {
        for (name, object) in OBJECTS {
            let payload = rdb::seal(object.to_vec(), Version::V7_0);
            let why = format!("{name} as Redis {}", pair.release);
            pair.same(&["DEL", "k"], &why);
            pair.same(&[&b"RESTORE"[..], b"k", b"0", &payload], &why);
            pair.same_value("k", &why);
        }
    });
}

/// Objects as earlier releases wrote them, and some that no release wrote.
const OBJECTS: &[(&str, &[u8])] = &[
    ("hash ziplist", b"\x0d@pp\x00\x00\x00e\x00\x00\x00\x08\x00\x00\x01f\x03\xf2\x02\x01g\x03@FxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxI\x01h\x03\xf0\x90\xee\xfe\x05\xf6\x02\xe0\x00\x00\x00\x00\x00\x01\x00\x00\xff"),
    ("sorted set ziplist", b"\x0c@mm\x00\x00\x00g\x00\x00\x00\x08\x00\x00\x01a\x03\xf2\x02\x01b\x03\x031.5\x05@@ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccC\xe0\x00\x00\x00\x80\x00\x00\x00\x00\x0a\x01d\x03\x03inf\xff"),
    ("list ziplist", b"\x0a@hh\x00\x00\x00c\x00\x00\x00\x08\x00\x00\x01a\x03\xf1\x02\xfd\x02\xfe\x0d\x03\xfe\xff\x03@FbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbI\xfe\xfb\x03\xc0,\x01\xff"),
    ("empty ziplist", b"\x0a\x0b\x0b\x00\x00\x00\x0a\x00\x00\x00\x00\x00\xff"),
    ("field without a value", b"\x0d\x0e\x0e\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x01a\xff"),
    ("field twice", b"\x0d\x15\x15\x00\x00\x00\x12\x00\x00\x00\x04\x00\x00\x01a\x03\xf2\x02\x01a\x03\xf3\xff"),
    ("quicklist of ziplists", b"\x0e\x03\x10\x10\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01a\x03\xf2\xff\x0b\x0b\x00\x00\x00\x0a\x00\x00\x00\x00\x00\xff\x0e\x0e\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x01c\xff"),
    ("quicklist without nodes", b"\x0e\x00"),
    ("list of strings", b"\x01\x03\x01a\xc0\x05\x02bc"),
    ("sorted set with text scores", b"\x03\x03\x01a\x031.5\x01b\xfe\x01c\xff"),
    ("score that is no number", b"\x03\x01\x01a\xfd"),
    ("member twice", b"\x03\x02\x01a\x011\x01a\x012"),
    ("binary score that is no number", b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f"),
    ("binary scores", b"\x05\x02\x01a\x00\x00\x00\x00\x00\x00\x00\x80\x01b\x9cu\x00\x88<\xe47~"),
    ("hash with a long value", b"\x04\x02\x01a\x011\x01b@Axxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ("empty hash", b"\x04\x00"),
    ("set with a member twice", b"\x02\x02\x01a\x01a"),
    ("set of both kinds", b"\x02\x03\x01a\x011\xc0\x05"),
    ("set of integers", b"\x02\x02\xc0\x07\xc0\x05"),
    ("zipmap", b"\x09\x11\x02\x01a\x01\x021xx\x01b\x02\x02yyxx\xff"),
    ("zipmap with a field twice", b"\x09\x10\x02\x01a\x01\x021xx\x01a\x01\x02yxx\xff"),
    ("unknown string encoding", b"\x00\xc5"),
    ("broken compression", b"\x00\xc3\x02\x05\x00\x00"),
    ("modules", b"\x07\x81\x00\x00\x00\x00\x00\x00\x00\x00"),
    ("unknown type", b"\xff"),
    ("length that is an encoding", b"\x04\xc1\x01a\x01b"),
    ("unknown container", b"\x12\x01\x03\x03abc"),
    ("plain nodes", b"\x12\x02\x01\x03abc\x01\x01d"),
    ("empty plain node", b"\x12\x01\x01\x00"),
    ("hash with expiries", b"\x18\x00 J\xa9\xd1\x01\x00\x00\x02\x01\x01a\x01b\x08\x01c\x01d"),
    ("hash with expiries and a long value", b"\x18\x00 J\xa9\xd1\x01\x00\x00\x02\x01\x01a\x01b\x00\x01c@Axxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ("hash with an impossible expiry", b"\x18\x00\x00\x00\x00\x00\x00\x00@\x02\x01\x01a\x01b\x08\x01c\x01d"),
    ("hash with expiries from the epoch on", b"\x16\x02\x81\x00\x00\x01\xd1\xa9J \x00\x01a\x01b\x00\x01c\x01d"),
];
