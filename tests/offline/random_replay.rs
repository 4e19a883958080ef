//! Random walks over the whole command table and all SIM commands, recorded from a START in the middle of the run, replay
//! without a difference.
//!
//! `tests/campaign replays` walks for longer: REDLATCH_REPLAY_EVENTS says how many events, REDLATCH_REPLAY_SEED where to begin.

#![allow(clippy::disallowed_methods)]

use redlatch::{Client, Sim, SimOptions, Version};
use redlatch_compare::diff;
use redlatch_core::rng::Rng;
use redlatch_lab::trace::{Replay, Tape};

/// SIM commands with random parts: `#` is a small number, `@` a node, `&` a key, `%` a command, `~` a label.
const SIM: &[&str] = &[
    "SIM.CHECK LIST SINCE #",
    "SIM.CHECK OFF",
    "SIM.CHECK ON ALL",
    "SIM.CHECK RESET",
    "SIM.CHECK STATUS",
    "SIM.CLOCK ADVANCE #",
    "SIM.CLOCK ADVANCE 3000",
    "SIM.CLOCK JUMP # NODE @",
    "SIM.CLOCK JUMP #",
    "SIM.CLOCK JUMP -# NODE @",
    "SIM.CLOCK JUMP HOST",
    "SIM.CLOCK NEXT #",
    "SIM.CLOCK NOW",
    "SIM.CLOCK SKEW",
    "SIM.CLOCK TIMERS COUNT #",
    "SIM.COST LIST",
    "SIM.COST OFF",
    "SIM.COST ON",
    "SIM.FAULT ADD CHANNEL * DO DELAY PUSH # TIMES 3",
    "SIM.FAULT ADD CHANNEL * DO DROP PUSH P 500000 TIMES 3",
    "SIM.FAULT ADD CHANNEL * DO DUP PUSH 2 TIMES 3",
    "SIM.FAULT ADD CMD % DO CLOSE AFTER TIMES 1",
    "SIM.FAULT ADD CMD % DO CLOSE BEFORE TIMES 1",
    "SIM.FAULT ADD CMD % DO CLOSE BYTES # TIMES 1",
    "SIM.FAULT ADD CMD % DO DELAY REPLY # TIMES 2",
    "SIM.FAULT ADD CMD % DO DELAY REQUEST # TIMES 2",
    "SIM.FAULT ADD CMD % DO DROP REPLY TIMES 1",
    "SIM.FAULT ADD CMD % DO DROP REQUEST TIMES 1",
    "SIM.FAULT ADD CMD % DO DUP 3 REPLY FIRST P 300000 TIMES 4",
    "SIM.FAULT ADD CMD % DO ERROR OOM AFTER TIMES 2 LABEL ~",
    "SIM.FAULT ADD CMD % DO ERROR OOM BEFORE TIMES 2",
    "SIM.FAULT ADD CMD % DO LOSE TIMES 2",
    "SIM.FAULT ADD CMD % DO LOSE NOTHING TIMES 2",
    "SIM.FAULT ADD CMD % DO REWRITE ARG 1 SET & TIMES 2",
    "SIM.FAULT ADD CMD eval DO FAIL SUBCALL 1 TIMES 2",
    "SIM.FAULT ADD CMD eval* DO FORGET SCRIPTS TIMES 2",
    "SIM.FAULT CLEAR",
    "SIM.FAULT DEL #",
    "SIM.FAULT HITS #",
    "SIM.FAULT LIST",
    "SIM.FAULT PAUSE",
    "SIM.FAULT RESUME",
    "SIM.GATE ADD CHANNEL * AT PUSH TIMES 2",
    "SIM.GATE ADD CMD % AT POST TIMES 2 KEEP LABEL ~",
    "SIM.GATE AWAIT ~ COUNT 2 TIMEOUT #",
    "SIM.GATE AWAIT ~ COUNT 9",
    "SIM.GATE ADD CMD % AT POST TIMES 2 KEEP",
    "SIM.GATE ADD CMD % AT PRE TIMES 2 LABEL ~",
    "SIM.GATE DEL ~",
    "SIM.GATE LIST",
    "SIM.GATE RELEASE ALL LAST",
    "SIM.GATE RELEASE t#",
    "SIM.GATE STEP 2",
    "SIM.HELP",
    "SIM.KEY DIGEST",
    "SIM.KEY DUMP * NODE @",
    "SIM.KEY LOSE & NODE @",
    "SIM.KEY TTL & # NODE @",
    "SIM.KEY TTL & 0",
    "SIM.NODE ACK @ 1",
    "SIM.NODE ACK @ REAL",
    "SIM.NODE LINK @ DOWN",
    "SIM.NODE LINK @ LAG 2",
    "SIM.NODE LINK @ UP",
    "SIM.NODE LIST",
    "SIM.NODE PAUSE @",
    "SIM.NODE PROMOTE @",
    "SIM.NODE REPLICATE @ OF @",
    "SIM.NODE RESUME @",
    "SIM.NODE START @",
    "SIM.NODE START @ AFTER #",
    "SIM.NODE STATE @ OOM OFF",
    "SIM.NODE STATE @ OOM ON",
    "SIM.NODE STATE @ READONLY OFF",
    "SIM.NODE STATE @ READONLY ON",
    "SIM.NODE STOP @",
    "SIM.NODE STOP @ WIPE",
    "SIM.NODE STATE @ MAXCLIENTS ON",
    "SIM.NODE STATE @ MAXCLIENTS OFF",
    "SIM.RUN INFO",
    "SIM.RUN RESET",
    "SIM.RUN RESTORE ~",
    "SIM.RUN SEED #",
    "SIM.RUN SNAPSHOT ~",
    "SIM.RUN STORE READ &",
    "SIM.RUN STORE WRITE & v TOKEN #",
    "SIM.TRACE DIGEST",
    "SIM.TRACE MARK text",
];

/// Requests that leave a client or its node in some state; their words are separated by bars.
const STATE: &[&str] = &[
    "MULTI",
    "NO SUCH COMMAND",
    "WATCH|a|k1",
    "WATCH|list",
    "BLPOP|list|0.03",
    "BLPOP|list|queue|0",
    "BZPOPMIN|z1|0",
    "XGROUP|CREATE|stream|g|$|MKSTREAM",
    "XREADGROUP|GROUP|g|c|BLOCK|0|STREAMS|stream|>",
    "XADD|stream|*|f|v",
    "WAIT|1|0",
    "WAIT|1|40",
    "CLIENT|TRACKING|ON",
    "CLIENT|TRACKING|ON|BCAST|PREFIX|k|NOLOOP",
    "CLIENT|TRACKING|ON|OPTIN",
    "CLIENT|CACHING|YES",
    "CLIENT|PAUSE|30|WRITE",
    "CLIENT|PAUSE|20",
    "CLIENT|REPLY|SKIP",
    "CLIENT|SETNAME|app",
    "HELLO|3",
    "HELLO|2",
    "SUBSCRIBE|c",
    "PSUBSCRIBE|*",
    "UNSUBSCRIBE",
    "PUBLISH|c|hello",
    "ACL|SETUSER|ann|on|>hush|~*|&*|+@all",
    "ACL|SETUSER|ann|on|resetkeys|~k*|(+get ~h*)|-flushall",
    "ACL|SETUSER|ben|on|nopass|~*|+@read|+@connection",
    "ACL|DELUSER|ben",
    "ACL|LIST",
    "AUTH|ann|hush",
    "AUTH|ann|wrong",
    "AUTH|default|any",
    "AUTH|ben|any",
    "FUNCTION|LOAD|REPLACE|#!lua name=lib\nredis.register_function('f', function(k, a) return redis.call('INCR', k[1]) end)",
    "FCALL|f|1|n",
    "EVAL|return redis.call('INCRBY', KEYS[1], ARGV[1])|1|n|3",
    "EVALSHA|0c41f0a4e4df09ae0a2dd5b2bcf9d4e5b86ae4f4|0",
    "SCRIPT|LOAD|return {KEYS[1], redis.call('TIME')}",
    "CONFIG|SET|hash-max-listpack-entries|4",
    "CONFIG|SET|maxmemory-policy|allkeys-lfu",
    "CONFIG|SET|maxmemory-policy|noeviction",
    "CONFIG|SET|notify-keyspace-events|KEA",
    "DEBUG|SET-ACTIVE-EXPIRE|0",
    "DEBUG|SET-ACTIVE-EXPIRE|1",
    "SET|k1|v|PX|20",
    "SET|a|v|PX|5",
    "SELECT|1",
    "SELECT|0",
];

/// The most commands before the trace begins.
const BEFORE: usize = 400;

/// A run of random commands on two nodes.
struct Walk {
    sim: Sim,
    choices: Rng,
    version: Version,
    control: Client,
    /// Some clients of each node.
    clients: Vec<Client>,
}

impl Walk {
    fn new(seed: u64) -> Walk {
        let mut choices = Rng::new(seed);
        let versions = [Version::V7_0, Version::V7_2, Version::V7_4, Version::V8_6, Version::Valkey8_1];
        let version = versions[choices.below(versions.len())];
        let mut sim = Sim::new(SimOptions::default().seed(seed).nodes(2).version(version));
        let control = sim.connect(0);
        let clients = (0..8).map(|n| sim.connect(n % 2)).collect();
        Walk { sim, choices, version, control, clients }
    }

    /// Sends a request, unless the client waits. A client that was disconnected connects again.
    fn send(&mut self, which: usize, argv: &[&[u8]]) {
        let mut client = self.clients[which];
        if self.sim.is_closed(client) {
            self.sim.disconnect(client);
            client = self.sim.connect(which % 2);
            self.clients[which] = client;
        }
        if !self.sim.is_waiting(client) {
            self.sim.send(client, argv);
        }
        // A driver takes output now and then.
        if self.choices.below(3) == 0 {
            self.sim.received(client);
        }
    }

    /// Sends a request that leaves some state behind.
    fn leave_state(&mut self) {
        let which = self.choices.below(self.clients.len());
        let line = STATE[self.choices.below(STATE.len())];
        let words: Vec<&[u8]> = line.split('|').map(str::as_bytes).collect();
        self.send(which, &words);
    }

    fn sim_command(&mut self) {
        const KEYS: [&str; 4] = ["a", "b", "k1", "list"];
        const COMMANDS: [&str; 8] = ["get", "set", "*", "incr", "lpush", "eval", "h*", "exec"];
        let form = SIM[self.choices.below(SIM.len())];
        let words: Vec<String> = form
            .split(' ')
            .map(|word| {
                word.replace('#', &self.choices.below(60).to_string())
                    .replace('@', &self.choices.below(2).to_string())
                    .replace('&', KEYS[self.choices.below(4)])
                    .replace('%', COMMANDS[self.choices.below(8)])
                    .replace('~', ["x", "y"][self.choices.below(2)])
            })
            .collect();
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        // Not every SIM command comes from a control connection.
        match self.choices.below(4) {
            0 => {
                let which = self.choices.below(self.clients.len());
                self.send(which, &words);
            }
            _ if self.sim.is_closed(self.control) => {
                self.sim.disconnect(self.control);
                self.control = self.sim.connect(0);
            }
            _ if !self.sim.is_waiting(self.control) => self.sim.send(self.control, &words),
            _ => {}
        }
    }

    /// Sends random commands of every family, with SIM commands, time and disconnections between them; at most so many, from a
    /// random family on.
    fn go(&mut self, each: usize, sims: usize, most: usize) {
        let mut families: Vec<&str> = diff::family_names().collect();
        let first = self.choices.below(families.len());
        families.rotate_left(first);
        let mut left = most;
        for family in families {
            let seed = self.choices.next_u64();
            let commands = diff::commands(family, self.version, seed, each).expect("the family is there");
            for (number, argv) in commands.collect::<Vec<_>>() {
                let name = argv.first().map_or(&b""[..], |name| name).to_ascii_uppercase();
                if name == b"SHUTDOWN" {
                    continue;
                }
                if left == 0 {
                    return;
                }
                left -= 1;
                let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
                let node = self.choices.below(2);
                self.send((number * 2 + node) % 8, &argv);
                if self.choices.below(sims) == 0 {
                    self.sim_command();
                }
                match self.choices.below(60) {
                    0..3 => drop(self.sim.advance(self.choices.below(40) as u64)),
                    3 => {
                        let which = self.choices.below(self.clients.len());
                        self.sim.disconnect(self.clients[which]);
                        self.clients[which] = self.sim.connect(which % 2);
                    }
                    4..10 => self.leave_state(),
                    _ => {}
                }
            }
        }
    }
}

/// Walks, starts a trace in the middle and walks on. Returns the trace.
pub(super) fn record(seed: u64, each: usize) -> Result<String, String> {
    let mut walk = Walk::new(seed);
    let most = walk.choices.below(BEFORE);
    walk.go(BEFORE / 10, 4, most);
    walk.sim.control().start_trace().map_err(|error| format!("seed {seed}: {error}"))?;
    walk.go(each, 4, usize::MAX);
    Ok(walk.sim.finish_trace())
}

/// Records a walk and replays it. Returns the number of events, or the difference.
fn walk(seed: u64, each: usize) -> Result<u64, String> {
    let trace = record(seed, each)?;
    match Replay::run(&trace) {
        Ok(replay) => {
            let before = Tape::of(&trace).events().map_or(0, |(before, _)| before);
            Ok(replay.events - before)
        }
        Err(error) => {
            let file = format!("target/random-replay-{seed}.jsonl");
            let _ = std::fs::write(&file, trace);
            let error: String = error.to_string().chars().take(3000).collect();
            Err(format!("seed {seed} ({file}): {error}"))
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_walks_replay_without_a_difference() {
    let first = setting("REDLATCH_REPLAY_SEED", 1);
    let wanted = setting("REDLATCH_REPLAY_EVENTS", 20_000);
    let (mut events, mut walks, mut differences) = (0, 0, Vec::new());
    while events < wanted && differences.len() < 10 {
        match walk(first + walks, 60) {
            Ok(more) => events += more,
            Err(difference) => differences.push(difference),
        }
        walks += 1;
    }
    println!("{walks} walks, {events} events without a difference, {} walks with one", differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
