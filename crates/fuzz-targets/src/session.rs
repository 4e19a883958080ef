//! Whole sessions of several clients, with the requests of the command table and of the control plane.
//!
//! The first byte selects the release, the second the number of nodes. Then each step has five bytes: what happens, which
//! client does it, which request it is, and two that choose its arguments. So a changed byte changes one step.

use std::sync::OnceLock;

use redlatch_compare::diff::pools::Pools;
use redlatch_compare::diff::{any_request, grammar, lua};
use redlatch_core::commands::command::Command;
use redlatch_core::commands::table;
use redlatch_core::rng::Rng;
use redlatch_core::version::Version;
use redlatch_core::wire::client::value_len;
use redlatch_lab::sim::{Client, Sim, SimOptions};
use redlatch_lab::trace::Replay;

/// The bytes of a step, and the most steps of a session.
const STEP_BYTES: usize = 5;
const STEPS: usize = 100;

const CLIENTS: usize = 4;

/// By how much a step advances the clock, in ms.
const ADVANCES_MS: &[u64] = &[0, 1, 2, 10, 50, 100, 1_000, 20_000, 1_000_000, 400_000_000];

/// Bytes that are not a request, or not a whole one.
const BAD_BYTES: &[&[u8]] = &[
    b"*1\r\n$x\r\n",
    b"*-2147483649\r\n",
    b"*2\r\n$3\r\nGET\r\n",
    b"\"unbalanced\r\n",
    b"POST / HTTP/1.1\r\n",
    b"*1\r\n:1\r\n",
    b"PING\r\n",
];

/// Requests that change what follows, in the notation of `compare::diff::grammar`.
const FORMS: &[&str] = &[
    "MULTI",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH key...",
    "HELLO 3",
    "HELLO 2",
    "SET key value PX ( 1 | 20 | 1000 )",
    "PEXPIRE key ( 0 | 1 | 20 | 1000 )",
    "HPEXPIRE key ( 1 | 20 ) FIELDS #field",
    "BLPOP key key ( 0.01 | 1 | 0 )",
    "BLMOVE key key LEFT RIGHT 1",
    "XREAD BLOCK 100 STREAMS key $",
    "WAIT 1 ( 10 | 0 )",
    "MONITOR",
    "RESET",
    "QUIT",
    "SUBSCRIBE channel...",
    "PSUBSCRIBE channels...",
    "PUBLISH channel value",
    "CLIENT TRACKING ON { BCAST | NOLOOP | OPTIN | PREFIX k }",
    "CLIENT TRACKING OFF",
    "CLIENT CACHING ( YES | NO )",
    "CLIENT KILL ( TYPE ( normal | pubsub ) | ID ( 1 | 2 | 3 | 4 ) | SKIPME no )",
    "CLIENT PAUSE ( 1 | 100 ) [ WRITE | ALL ]",
    "CLIENT UNPAUSE",
    "CLIENT REPLY ( ON | OFF | SKIP )",
    "CLIENT UNBLOCK ( 1 | 2 | 3 | 4 ) [ TIMEOUT | ERROR ]",
    "CONFIG SET notify-keyspace-events ( KEA | KEAn | q )",
    "CONFIG SET hash-max-listpack-entries ( 1 | 512 )",
    "CONFIG SET list-max-listpack-size ( 1 | -2 )",
    "CONFIG SET ( maxmemory | requirepass | maxclients | lazyfree-lazy-expire | proto-max-bulk-len ) ( int | value )",
    "ACL SETUSER user ( on | off | nopass | ~k* | +@all | -@write | >value | reset | +get | %R~* )...",
    "ACL DELUSER user",
    "AUTH user value",
    "DEBUG OBJECT key",
    "DEBUG SET-ACTIVE-EXPIRE ( 0 | 1 )",
    "DEBUG SLEEP ( 0 | 0.01 )",
    "DEBUG PROTOCOL ( string | integer | double | null | array | set | map | attrib | push | verbatim | true | false | bignum )",
    "DUMP key",
    "FLUSHALL",
    "SWAPDB 0 1",
    "FAILOVER",
    "SHUTDOWN NOSAVE",
    "SCRIPT KILL",
    "FUNCTION KILL",
    "EVAL repeat(type)(1)until(false) 0",
    "EVAL repeat(redis.call)('incr',KEYS[1])until(false) 1 key",
    "EVAL return(redis.call(unpack(ARGV))) 1 key PEXPIRE key 1",
    "SIM.CHECK ( ON ALL | ON rlock | OFF | STATUS | LIST | RESET )",
    "SIM.CLOCK ADVANCE ( 1 | 1000 | ms )",
    "SIM.CLOCK ( NOW | NEXT | TIMERS | SKEW | MODE MANUAL | JUMP HOST | TO atms | TIMERS COUNT int )",
    "SIM.CLOCK JUMP ( 1000 | -1000 | int ) [ NODE ( 0 | 1 ) ]",
    "SIM.COST ( ON | OFF | LIST | CLEAR )",
    "SIM.FAULT ADD { CMD ( get | set | eval | publish | * ) | KEY pattern | NODE ( 0 | 1 ) | NTH count | CHANNEL channels | CONN ( 1 | 2 ) | ARG int pattern } DO ( DROP ( REQUEST | REPLY | PUSH ) | LOSE [ NOTHING ] | DELAY ( REQUEST | REPLY | PUSH ) ( 0 | 20 | ms ) | DUP count | DUP PUSH count | ERROR value ( BEFORE | AFTER ) | FAIL SUBCALL count | CLOSE ( BEFORE | AFTER | BYTES count ) | REWRITE ARG int ( ADD int | SET value ) | FORGET SCRIPTS ) [ TIMES count | ALWAYS | P int ] [ LABEL name ]",
    "SIM.FAULT ( LIST | CLEAR | PAUSE | RESUME | DEL count | HITS count )",
    "SIM.GATE ADD { CMD ( get | set | eval | incr | * ) | KEY pattern | NODE ( 0 | 1 ) | CHANNEL channels } AT ( PRE | POST | PUSH ) [ TIMES count ] [ KEEP ]",
    "SIM.GATE ( LIST | STEP | STEP count | RELEASE ALL | RELEASE ALL LAST | RELEASE t1 | DEL 1 | DEL 2 | AWAIT 1 | AWAIT 1 TIMEOUT ms )",
    "SIM.KEY LOSE key",
    "SIM.KEY TTL key ( int | ms )",
    "SIM.KEY ( DUMP | DUMP pattern | DIGEST )",
    "SIM.NODE ( LIST | PAUSE 0 | PAUSE 1 | RESUME 0 | RESUME 1 | STOP 1 | STOP 1 WIPE | START 1 | START 1 AFTER ms | PROMOTE 1 | REPLICATE 1 OF 0 | REPLICATE 0 OF 1 )",
    "SIM.NODE STATE 0 ( OOM | LOADING | READONLY | BUSY | MAXCLIENTS | MASTERDOWN | NOREPLICAS | CLUSTERDOWN ) ( ON | OFF | OFF )",
    "SIM.NODE LINK 1 ( UP | DOWN | LAG count )",
    "SIM.NODE ACK 0 ( int | REAL )",
    "SIM.RUN ( INFO | SEED int | RESET | SNAPSHOT name | RESTORE name | STORE READ key )",
    "SIM.RUN STORE WRITE key value [ TOKEN int ] [ MODE ( NONE | GE | GT ) ]",
    "SIM.TRACE ( MARK value | DIGEST | STOP | START name )",
    "SIM.HELP",
];

/// Runs a session. Fails if a request panics, a reply is malformed, or the parts of a node disagree.
pub fn session(bytes: &[u8]) {
    let Some(mut play) = Play::new(bytes) else { return };
    for step in bytes[2..].chunks_exact(STEP_BYTES).take(STEPS) {
        play.step(step);
        play.receive(step);
        play.sim.world().nodes().iter().for_each(|node| node.check());
    }
}

/// Runs a session whose trace is recorded, and replays it; the replay has to be the same. Then changes the trace as the first
/// bytes say, and replays that: it ends with whatever result. Input that begins with `{` is a trace itself.
pub fn trace(bytes: &[u8]) {
    if bytes.first() == Some(&b'{') {
        let _ = Replay::run(&String::from_utf8_lossy(bytes));
        return;
    }
    let Some((&changes, rest)) = bytes.split_first() else { return };
    let (changes, rest) = rest.split_at(rest.len().min(usize::from(changes % 8) * 4));
    let Some(mut play) = Play::new(rest) else { return };
    play.sim.start_trace();
    for step in rest[2..].chunks_exact(STEP_BYTES).take(STEPS) {
        play.step(step);
        play.receive(step);
    }
    let text = play.sim.finish_trace();
    let replay = Replay::run(&text);
    assert!(replay.as_ref().is_ok_and(|replay| replay.complete), "{replay:?}");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes.chunks_exact(4) {
        change_line(&mut lines, change);
    }
    let _ = Replay::run(&lines.join("\n"));
}

/// Changes a line of a trace: removes, repeats, moves or cuts it, or replaces one of its numbers or texts.
fn change_line(lines: &mut Vec<String>, change: &[u8]) {
    const NUMBERS: &[&str] = &[
        "0",
        "1",
        "-1",
        "7",
        "255",
        "18446744073709551615",
        "9223372036854775807",
        "-9223372036854775808",
        "1e9",
        "null",
    ];
    const TEXTS: &[&str] =
        &["", "0:1", "1:0", "9:9", "SIM.RUN", "manual", "real", "rate 1000000", "\\u00ff", "\\u0100"];
    let [what, line, part, value] = *change else { return };
    let count = lines.len();
    let at = usize::from(line) % count.max(1);
    let Some(text) = lines.get_mut(at) else { return };
    let (part, value) = (usize::from(part), usize::from(value));
    match what % 8 {
        0 => drop(lines.remove(at)),
        1 => lines.insert(value % count, lines[at].clone()),
        2 => lines.swap(at, value % count),
        3 => text
            .truncate((0..=part.min(text.len())).rev().find(|&len| text.is_char_boundary(len)).unwrap_or(0)),
        4 | 5 => replace(text, part, NUMBERS[value % NUMBERS.len()], |c| c.is_ascii_digit()),
        _ => replace(text, 2 * part + 1, TEXTS[value % TEXTS.len()], |c| c != '"'),
    }
}

/// Replaces the run of such characters with this number.
fn replace(text: &mut String, number: usize, by: &str, is_part: impl Fn(char) -> bool) {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|&(at, c)| is_part(c) && !text[..at].ends_with(&is_part))
        .map(|(at, _)| at)
        .collect();
    if let Some(&start) = starts.get(number % starts.len().max(1)) {
        let len = text[start..].find(|c| !is_part(c)).unwrap_or(text.len() - start);
        text.replace_range(start..start + len, by);
    }
}

/// A session that runs.
struct Play {
    sim: Sim,
    clients: Vec<Client>,
    rows: &'static [&'static Command],
    pools: Pools,
    /// Replies can no longer be told apart: CLIENT REPLY, failed AUTH commands and fault rules leave gaps in them.
    is_muted: bool,
}

impl Play {
    /// Begins the session that the first two bytes describe.
    fn new(bytes: &[u8]) -> Option<Play> {
        let (&release, &nodes) = (bytes.first()?, bytes.get(1)?);
        let version = Version::ALL[usize::from(release) % Version::ALL.len()];
        let options = SimOptions::default().version(version).nodes(1 + usize::from(nodes % 2));
        // So that a script without an end is busy soon.
        let mut sim = Sim::new(options.config("busy-reply-threshold", "2"));
        let last = sim.world().nodes().len() - 1;
        let clients =
            (0..CLIENTS).map(|client| sim.connect(if client == CLIENTS - 1 { last } else { 0 })).collect();
        let mut pools = Pools::new(0);
        pools.grows_scripts = true;
        Some(Play { sim, clients, rows: rows(version), pools, is_muted: false })
    }

    /// Does one step. A client that waits sends nothing; one whose connection is closed connects again.
    fn step(&mut self, step: &[u8]) {
        let &[what, slot, which, high, low] = step else { return };
        let slot = usize::from(slot) % CLIENTS;
        if self.sim.is_closed(self.clients[slot]) {
            self.clients[slot] = self.sim.connect(0);
        }
        let client = self.clients[slot];
        let seed = u64::from_le_bytes([high, low, which, 0, 0, 0, 0, 0]);
        self.pools.rng = Rng::new(seed);
        match what % 32 {
            0..=2 => drop(self.sim.advance(ADVANCES_MS[usize::from(which) % ADVANCES_MS.len()])),
            3 => {
                self.sim.disconnect(client);
                self.clients[slot] = self.sim.connect(usize::from(high) % self.sim.world().nodes().len());
            }
            4 if !self.sim.is_waiting(client) => {
                self.sim.send_bytes(client, BAD_BYTES[usize::from(which) % BAD_BYTES.len()]);
            }
            5 => drop(self.sim.run_slice(0)),
            _ => {
                let words = self.request(what % 32, which, high);
                let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let mutes = |word: &[u8]| {
                    [&b"auth"[..], b"reply", b"sim.fault"].iter().any(|name| word.eq_ignore_ascii_case(name))
                };
                self.is_muted |= argv.iter().any(|word| mutes(word));
                let _ = self.sim.try_send(client, &argv);
            }
        }
    }

    fn request(&mut self, what: u8, which: u8, high: u8) -> Vec<Vec<u8>> {
        let form = FORMS[usize::from(which) % FORMS.len()];
        let row = self.rows[usize::from(u16::from_le_bytes([which, high])) % self.rows.len()];
        let script = |body: &[u8]| vec![b"EVAL".to_vec(), body.to_vec(), b"0".to_vec()];
        match what {
            6..=14 => grammar::expand(form, &mut self.pools),
            15 => script(&lua::script(&mut self.pools)),
            16 | 17 => {
                let call = if what == 16 { "call" } else { "pcall" };
                let mut argv = script(format!("return redis.{call}(unpack(ARGV))").as_bytes());
                argv.extend(match high % 4 {
                    0 => grammar::expand(form, &mut self.pools),
                    _ => any_request(row, &mut self.pools),
                });
                argv
            }
            _ => any_request(row, &mut self.pools),
        }
    }

    /// Takes what all clients have received. Fails if that is not a sequence of replies and messages.
    fn receive(&mut self, step: &[u8]) {
        for &client in &self.clients {
            let bytes = self.sim.received(client);
            let mut rest = &bytes[..];
            while !rest.is_empty() && !self.is_muted {
                let len = value_len(rest);
                assert!(len.is_some(), "after {step:?}: not a reply: {}", bytes.escape_ascii());
                rest = &rest[len.unwrap_or(rest.len())..];
            }
        }
    }
}

/// Returns the rows of all commands and subcommands of a release but PFSELFTEST, which takes a second.
fn rows(version: Version) -> &'static [&'static Command] {
    static ROWS: [OnceLock<Vec<&'static Command>>; Version::ALL.len()] =
        [const { OnceLock::new() }; Version::ALL.len()];
    ROWS[version as usize].get_or_init(|| {
        let subcommands =
            |row: &'static Command| row.subcommands.iter().filter(move |sub| sub.exists_in(version));
        let rows = table::all(version).flat_map(|row| std::iter::once(row).chain(subcommands(row)));
        rows.filter(|row| row.name != "pfselftest").collect()
    })
}
