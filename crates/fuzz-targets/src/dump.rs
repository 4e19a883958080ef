//! Serialized values that RESTORE reads.

use std::cell::RefCell;
use std::collections::BTreeMap;

use redlatch_core::store::rdb::seal;
use redlatch_core::version::Version;
use redlatch_lab::sim::{Client, Sim, SimOptions};

/// What is done to a restored value: commands that read all of it or change it, for each type that TYPE names.
const USES: &[(&str, &[&str])] = &[
    (
        "string",
        &["GET k", "GETRANGE k 1 -2", "BITCOUNT k", "PFCOUNT k", "SETRANGE k 3 x", "APPEND k y", "INCR k"],
    ),
    (
        "hash",
        &[
            "HGETALL k",
            "HSCAN k 0",
            "HPTTL k FIELDS 2 a b",
            "HSET k a 1 new 2",
            "HPEXPIRE k 5 FIELDS 1 a",
            "HDEL k b",
            "HRANDFIELD k -3 WITHVALUES",
        ],
    ),
    (
        "list",
        &["LRANGE k 0 -1", "LPOS k a", "LINSERT k BEFORE a b", "LSET k -1 z", "LTRIM k 1 -2", "RPUSH k a 1"],
    ),
    (
        "set",
        &["SMEMBERS k", "SSCAN k 0", "SISMEMBER k 1", "SADD k a 5 -70000", "SREM k 1", "SRANDMEMBER k -3"],
    ),
    (
        "zset",
        &[
            "ZRANGE k 0 -1 WITHSCORES",
            "ZSCAN k 0",
            "ZRANK k a",
            "ZADD k 1.5 a 7 b",
            "ZREM k c",
            "ZREMRANGEBYSCORE k 2 3",
        ],
    ),
    (
        "stream",
        &[
            "XRANGE k - +",
            "XREVRANGE k + -",
            "XINFO STREAM k FULL",
            "XINFO GROUPS k",
            "XPENDING k g",
            "XREADGROUP GROUP g c COUNT 2 STREAMS k >",
            "XAUTOCLAIM k g d 0 0",
            "XTRIM k MAXLEN 3",
            "XDEL k 1-1",
            "XADD k * f v",
        ],
    ),
];

thread_local! {
    /// A server for each release: a new one for each input would take most of the time.
    static SERVERS: RefCell<BTreeMap<Version, (Sim, Client)>> = const { RefCell::new(BTreeMap::new()) };
}

/// Restores any object (the first byte selects the release). Fails if the value that it becomes breaks an invariant of the
/// server, or cannot be dumped and restored.
pub fn dump(bytes: &[u8]) {
    let Some((&release, object)) = bytes.split_first() else { return };
    let version = Version::ALL[release as usize % Version::ALL.len()];
    SERVERS.with_borrow_mut(|servers| {
        let (sim, client) = servers.entry(version).or_insert_with(|| {
            let mut sim = Sim::new(SimOptions::default().version(version));
            let client = sim.connect(0);
            (sim, client)
        });
        restore(sim, *client, &seal(object.to_vec(), version));
        sim.call(*client, &["FLUSHALL"]);
    });
}

fn restore(sim: &mut Sim, client: Client, payload: &[u8]) {
    let ok = sim.call(client, &[&b"RESTORE"[..], b"k", b"0", payload]);
    sim.world().nodes()[0].check();
    if ok != b"+OK\r\n" {
        return;
    }
    let first = sim.call(client, &["DUMP", "k"]);
    // Every field of a hash may have expired.
    if first == b"$-1\r\n" {
        return;
    }
    // A small value becomes compact when it is restored, so that only later dumps are alike.
    let second = through_dump(sim, client, &first);
    let third = through_dump(sim, client, &second);
    assert_eq!(second, third, "{} became {}", second.escape_ascii(), third.escape_ascii());
    let kind = sim.call(client, &["TYPE", "k"]);
    let uses =
        USES.iter().find(|(name, _)| kind[1..].starts_with(name.as_bytes())).map_or(&[][..], |found| found.1);
    for request in uses {
        let argv: Vec<&str> = request.split(' ').collect();
        sim.call(client, &argv);
        sim.world().nodes()[0].check();
    }
    sim.call(client, &["COPY", "k", "copy"]);
    sim.call(client, &["OBJECT", "ENCODING", "k"]);
    sim.call(client, &["MEMORY", "USAGE", "k"]);
    sim.world().nodes()[0].check();
}

/// Restores the value in the reply to DUMP, and dumps it again.
fn through_dump(sim: &mut Sim, client: Client, dumped: &[u8]) -> Vec<u8> {
    let reply = sim.call(client, &[&b"RESTORE"[..], b"again", b"0", text_of(dumped), b"REPLACE"]);
    assert_eq!(reply, b"+OK\r\n", "its own dump is refused: {}", dumped.escape_ascii());
    sim.call(client, &["DUMP", "again"])
}

/// Returns the bytes of a bulk string.
fn text_of(reply: &[u8]) -> &[u8] {
    let start = memchr::memchr(b'\n', reply).map_or(0, |at| at + 1);
    &reply[start..reply.len() - 2]
}
