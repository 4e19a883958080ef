//! Scripts that run out of memory at any request for it, or are killed at any instruction: whatever happens, the reply is an error or
//! right, and the node goes on as if nothing had been.
//!
//! `tests/run hostile` runs all of it on a release build; debug builds, in which the node checks itself after every event, try a part.

use std::fmt::Write;

use super::bridge::Refusal;
use super::{MEMORY_LIMIT, Vm};
use crate::node::Config;
use crate::version::Version;
use crate::world::{ClockMode, ConnId, World, WorldOptions};

/// Hostile scripts, and the scripts that are compared with real servers, separated by lines of dashes.
const CORPUS: &[&str] = &[
    include_str!("hostile.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/bit.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/cjson.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/cmsgpack.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/conversion.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/errors.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/lua.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/redis.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/sandbox.lua"),
    include_str!("../../../../tests/oracle/script_differential/cases/struct.lua"),
];

/// A script with more than 10,000 requests for memory, of every kind that Lua makes.
const LONG: &str = "
    local kept, n = {}, 0
    for i = 1, 800 do
        kept['k' .. i] = {i, tostring(i + 0.5), [i + 0.25] = i}
        kept[i % 40] = function() return kept, i end
        if i % 3 == 0 then pcall(error, {i}) n = n + #(('x'):rep(i) .. i) end
        if i % 5 == 0 then coroutine.wrap(function(...) coroutine.yield(...) end)(unpack({}, 1, i)) end
        if i % 7 == 0 then kept[loadstring('return function(a) return a .. ' .. i .. ' end')()(i)] = true end
        if i % 11 == 0 then kept['k' .. i] = ('%d %s'):format(i, ('abc'):gsub('%w', {a = i})) end
        if i % 13 == 0 then kept[i] = cjson.decode(cjson.encode({i, {a = i}})) redis.call('set', 'k', i) end
    end
    return n";

fn corpus() -> impl Iterator<Item = &'static str> {
    let scripts = CORPUS.iter().flat_map(|text| text.split("\n----\n"));
    scripts.map(|script| script.trim_matches('\n')).filter(|script| !script.starts_with("--only"))
}

/// A node with one client.
struct Bench {
    world: World,
    client: ConnId,
}

impl Bench {
    /// Creates the node. `slice` is in instructions.
    fn new(slice: u32) -> Bench {
        let version = Version::V7_4;
        let mut world = World::new(WorldOptions {
            seed: 1,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![Config::new(version)],
            topology: None,
        });
        *world.node_mut(0).scripts.vm() = Vm::with_limits(version, slice, MEMORY_LIMIT);
        let client = world.open(0, "127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned());
        Bench { world, client }
    }

    fn vm(&mut self) -> &mut Vm {
        self.world.node_mut(0).scripts.vm()
    }

    fn call(&mut self, argv: &[&str]) {
        let argv: Vec<&[u8]> = argv.iter().map(|arg| arg.as_bytes()).collect();
        self.world.request(self.client, &argv);
    }

    /// Returns what the client has got, with the numbers of objects left out.
    fn reply(&mut self) -> String {
        let mut bytes = Vec::new();
        self.world.take_output(self.client, &mut bytes);
        let mut pieces = bytes.split(|&byte| byte == b'x');
        let mut text = pieces.next().unwrap_or_default().escape_ascii().to_string();
        for piece in pieces {
            let digits = piece.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let piece = if digits == 12 { &piece[12..] } else { piece };
            let _ = write!(text, "x{}", piece.escape_ascii());
        }
        text
    }

    /// Starts a script on a node without keys.
    fn start(&mut self, script: &str) {
        self.call(&["FLUSHALL"]);
        self.call(&["HELLO", "2"]);
        self.reply();
        self.call(&["EVAL", script, "2", "key", "{k}two", "10", "arg two", "", ""]);
    }

    /// Runs a script to its end. Returns the reply.
    fn run(&mut self, script: &str) -> String {
        self.start(script);
        while self.world.run_slice(0) {}
        self.reply()
    }

    /// Runs some slices of a script and kills it. Returns the reply, or `None` if the script has ended before.
    fn kill(&mut self, script: &str, slices: usize) -> Option<String> {
        self.start(script);
        let has_ended = (0..slices).any(|_| !self.world.run_slice(0));
        if has_ended || !self.world.is_running_script(0) {
            return None;
        }
        self.vm().kill();
        self.world.run_slice(0);
        Some(self.reply())
    }

    /// Asserts that a script which ended early has left nothing, and that the next one works.
    fn assert_sound(&mut self, before: (usize, usize), what: impl Fn() -> String) {
        assert!(!self.world.is_running_script(0), "{}: still running", what());
        self.world.nodes()[0].check();
        assert_eq!(self.run(SIMPLE), SIMPLE_REPLY, "{}: the next script", what());
        let mut held = self.vm().held();
        // Each collection halves Lua's stacks and buffers, which are a block each.
        while held.1 > before.1 + SLACK {
            let again = self.vm().held();
            assert!(again < held, "{}: {held:?} blocks and bytes are held, {before:?} before", what());
            held = again;
        }
        assert!(held.0 <= before.0, "{}: {held:?} blocks and bytes are held, {before:?} before", what());
    }
}

/// By how many bytes stacks and buffers may have shrunk less than before.
const SLACK: usize = 16 << 10;

const SIMPLE: &str =
    "redis.call('set', KEYS[1], 'v') return {redis.call('get', 'key'), #ARGV, cjson.encode({1, 'x'})}";
const SIMPLE_REPLY: &str = r#"*3\r\n$1\r\nv\r\n:4\r\n$7\r\n[1,\"x\"]\r\n"#;

/// How many cases a debug build, and a checker of memory, leaves out for each one that it tries.
const SKIPPED: usize = if cfg!(debug_assertions) || cfg!(feature = "system-allocator") { 96 } else { 0 };

/// Refuses memory at the requests up to `most` of a run. Returns how many these are.
fn refuse_at_each(bench: &mut Bench, script: &str, most: u64) -> u64 {
    // A script that catches errors may go on with anything.
    let catches = ["pcall", "resume", "load"].iter().any(|name| script.contains(name));
    let right = bench.run(script);
    let repeats = bench.run(script) == right;
    bench.vm().refuse_memory(Refusal::Never);
    bench.run(script);
    let requests = bench.vm().refuse_memory(Refusal::Never).min(most);
    bench.run(SIMPLE);
    let before = bench.vm().held();
    for n in (1..=requests).step_by(SKIPPED + 1) {
        for refusal in [Refusal::Once(n), Refusal::From(n)] {
            bench.vm().refuse_memory(refusal);
            let reply = bench.run(script);
            bench.vm().refuse_memory(Refusal::Never);
            let is_error = reply.starts_with('-') || reply.contains("not enough memory");
            assert!(is_error || catches || !repeats || reply == right, "{script}, {refusal:?}: {reply}");
            bench.assert_sound(before, || format!("{script}, {refusal:?}"));
        }
    }
    requests
}

#[test]
fn memory_may_be_refused_at_every_request() {
    let mut bench = Bench::new(super::SLICE);
    let requests: u64 = corpus().map(|script| refuse_at_each(&mut bench, script, 1000)).sum();
    assert!(requests > 10_000, "{requests} requests for memory");
}

#[test]
fn memory_may_be_refused_at_each_of_ten_thousand_requests_of_one_script() {
    let requests = refuse_at_each(&mut Bench::new(super::SLICE), LONG, 10_000);
    assert_eq!(requests, 10_000);
}

#[test]
fn a_script_may_be_killed_at_every_instruction() {
    const MOST: usize = 300;
    let mut bench = Bench::new(1);
    let mut kills = 0;
    for script in corpus() {
        bench.kill(script, MOST);
        bench.run(SIMPLE);
        let before = bench.vm().held();
        for n in (0..MOST).step_by(SKIPPED + 1) {
            let Some(reply) = bench.kill(script, n) else { break };
            assert!(reply.starts_with("-ERR Script killed by user"), "{script}, instruction {n}: {reply}");
            bench.assert_sound(before, || format!("{script}, killed at instruction {n}"));
            kills += 1;
        }
    }
    assert!(kills > 20_000 / (SKIPPED + 1), "{kills} kills");
}
