//! Targets that test whole servers: random commands, and schedules on a lock.

use std::cell::RefCell;

use arbitrary::Unstructured;

use redlatch_core::version::Version;
use redlatch_core::wire::client::value_len;
use redlatch_lab::sim::{Sim, SimOptions};
use redlatch_locks::fuzz::runner::{Line, Runner};
use redlatch_locks::fuzz::runner_for;
use redlatch_locks::fuzz::schedule::{Step, decode, encode};
use redlatch_locks::invariant::Rules;
use redlatch_locks::model::{Violation, Wanted};
use redlatch_locks::script_set::ScriptSet;

/// Arguments that have a meaning for some commands.
const WORDS: &[&str] = &[
    "k1",
    "k2",
    "k3",
    "h",
    "l",
    "s",
    "z",
    "0",
    "1",
    "-1",
    "2",
    "10",
    "100",
    "3.5",
    "-inf",
    "nan",
    "(1",
    "[a",
    "+",
    "-",
    "a",
    "b",
    "*",
    "a*",
    "NX",
    "XX",
    "GT",
    "LT",
    "EX",
    "PX",
    "KEEPTTL",
    "GET",
    "LEFT",
    "RIGHT",
    "LIMIT",
    "WITHSCORES",
    "COUNT",
    "MATCH",
    "BY",
    "STORE",
    "REV",
    "FIELDS",
    "ON",
    "OFF",
    "SET",
    "LIST",
    "NODE",
    "9223372036854775807",
    "",
    "WEIGHTS",
    "AGGREGATE",
    "SUM",
    "ID",
    "return redis.call('incr', KEYS[1])",
    "return {1, 2, {ok = 'x'}, false}",
    "DB",
    "REPLACE",
    "ASYNC",
    "SYNC",
    "100000",
    "KEYS",
];

/// Requests that affect one another. `k` is one of a few keys, `n` a number, `f` a field or a member.
const FORMS: &[&str] = &[
    "SET k f PX n",
    "SET k n",
    "PEXPIRE k n",
    "EXPIRE k n",
    "PERSIST k",
    "DEL k",
    "UNLINK k k",
    "RENAME k k",
    "COPY k k REPLACE",
    "MOVE k 1",
    "GETEX k PX n",
    "GETDEL k",
    "INCRBY k n",
    "APPEND k f",
    "HSET k f n f n",
    "HDEL k f",
    "HPEXPIRE k n FIELDS 1 f",
    "HPERSIST k FIELDS 1 f",
    "RPUSH k f f",
    "LPOP k n",
    "LMOVE k k LEFT RIGHT",
    "BLPOP k k 1",
    "ZADD k n f n f",
    "ZREM k f",
    "ZPOPMIN k n",
    "BZPOPMAX k 1",
    "SADD k f f",
    "SREM k f",
    "SINTERSTORE k k k",
    "ZUNIONSTORE k 2 k k",
    "SORT k STORE k",
    "SELECT 1",
    "SELECT 0",
    "SWAPDB 0 1",
    "FLUSHDB",
    "MULTI",
    "EXEC",
    "WATCH k",
    "SUBSCRIBE f",
    "PUBLISH f n",
    "CLIENT PAUSE n",
    "DEBUG SET-ACTIVE-EXPIRE 0",
    "SIM.CLOCK JUMP n",
    "SIM.KEY TTL k n",
    "SIM.RUN SNAPSHOT f",
    "SIM.RUN RESTORE f",
    "SIM.NODE PAUSE 0",
    "SIM.NODE RESUME 0",
];

/// Runs any sequence of commands of three clients, while time passes. Fails if a command panics, a reply is malformed,
/// a second run differs, or databases and timers disagree.
pub fn commands(bytes: &[u8]) {
    assert_eq!(run_commands(bytes), run_commands(bytes));
}

fn run_commands(bytes: &[u8]) -> String {
    let mut input = Unstructured::new(bytes);
    let version = Version::ALL[input.int_in_range(0..=Version::ALL.len() - 1).unwrap_or(0)];
    let mut sim = Sim::new(SimOptions::default().version(version));
    let names = names(version);
    let clients = [sim.connect(0), sim.connect(0), sim.connect(0)];
    // As in Redis, CLIENT REPLY and failed AUTH commands leave gaps in the reply of a transaction.
    let mut is_muted = false;
    while !input.is_empty() {
        let client = clients[input.int_in_range(0..=2).unwrap_or(0)];
        if input.ratio(1, 12).unwrap_or(false) {
            sim.advance(input.int_in_range(0..=3_000).unwrap_or(0));
        }
        let words = match input.ratio(3, 4) {
            Ok(true) => formed(&mut input),
            _ => any_words(&mut input, &names),
        };
        let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        // A client that waits, or whose connection is closed, sends nothing.
        let _ = sim.try_send(client, &argv);
        is_muted |= argv[0].eq_ignore_ascii_case(b"auth");
        is_muted |= argv.len() > 1 && argv[1].eq_ignore_ascii_case(b"reply");
        for client in clients {
            let bytes = sim.received(client);
            if !is_muted {
                check_replies(&bytes, &argv);
            }
        }
        sim.world().nodes()[0].check();
    }
    sim.digest()
}

fn formed(input: &mut Unstructured) -> Vec<Vec<u8>> {
    let form = input.choose(FORMS).unwrap_or(&"PING");
    let mut one_of = |words: &[&str]| input.choose(words).map_or("", |word| *word).as_bytes().to_vec();
    let word = |word: &str| match word {
        "k" => one_of(&["k1", "k2", "k3", "k4"]),
        "n" => one_of(&["1", "2", "40", "1000", "3000", "-1", "0", "100000"]),
        "f" => one_of(&["a", "b", "c"]),
        _ => word.as_bytes().to_vec(),
    };
    form.split(' ').map(word).collect()
}

/// Returns a command with arguments that have a meaning for some commands.
fn any_words(input: &mut Unstructured, names: &[String]) -> Vec<Vec<u8>> {
    let name = input.choose(names).map_or("PING", |name| name.as_str());
    let mut words: Vec<Vec<u8>> = name.split('|').map(|word| word.as_bytes().to_vec()).collect();
    for _ in 0..input.int_in_range(0..=6).unwrap_or(0) {
        words.push(match input.ratio(1, 10) {
            Ok(true) => input.bytes(3.min(input.len())).unwrap_or_default().to_vec(),
            _ => input.choose(WORDS).map_or(Vec::new(), |word| word.as_bytes().to_vec()),
        });
    }
    words
}

/// Returns the names of all commands and subcommands, and of the SIM commands.
fn names(version: Version) -> Vec<String> {
    let mut names = Vec::new();
    for command in redlatch_core::commands::table::all(version) {
        names.push(command.name.to_owned());
        names.extend(command.subcommands.iter().map(|sub| sub.name.to_owned()));
    }
    for order in ["CLOCK", "FAULT", "GATE", "KEY", "NODE", "RUN", "COST", "CHECK", "TRACE", "HELP"] {
        names.push(format!("SIM.{order}"));
    }
    names
}

fn check_replies(mut bytes: &[u8], argv: &[&[u8]]) {
    let show = || argv.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    while !bytes.is_empty() {
        let Some(len) = value_len(bytes) else { panic!("{}: not a reply: {}", show(), bytes.escape_ascii()) };
        bytes = &bytes[len..];
    }
}

thread_local! {
    /// The runner of a correct lock. Making one takes longer than a schedule.
    static SOUND: RefCell<Runner> = RefCell::new({
        let scripts = ScriptSet::of_own(include_str!("../../../docs/locks/set-nx.toml"));
        runner_for(&scripts.expect("the description is well-formed"), "own").expect("it has a lock")
    });
}

/// Runs a schedule on a correct lock. Fails if it violates an invariant, or if a second run differs.
pub fn schedule(bytes: &[u8]) {
    let steps: Vec<Step> = bytes
        .chunks_exact(3)
        .map(|step| Step { action: step[0] % 16, owner: step[1], choice: step[2] })
        .collect();
    let (found, lines) = run_sound(&steps);
    assert_eq!(found, None);
    assert_eq!(run_sound(&steps).1, lines);
}

/// Decodes a schedule token and runs it on a correct lock. Fails if the schedule has another token.
pub fn token(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(steps) = decode(&text) else { return };
    assert_eq!(encode(&steps), text.to_ascii_lowercase());
    assert_eq!(run_sound(&steps).0, None);
}

fn run_sound(steps: &[Step]) -> (Option<(usize, Violation)>, Vec<Line>) {
    let mut lines = Vec::new();
    let found =
        SOUND.with_borrow_mut(|sound| sound.run(steps, Rules::Strict, &Wanted::default(), Some(&mut lines)));
    (found, lines)
}
