//! Runs every script of `cases/` here and on real servers; the replies have to be the same bytes. There are no expected values.
//! `cases/` has no script whose replies have to differ: `tests/offline/script.rs` tests those.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod host;
mod oracle;

use host::FakeHost;
use oracle::Oracle;
use redlatch::Version;
use redlatch_core::script::{Step, Vm};
use redlatch_core::wire::reply::{Protocol, Reply};

/// The scripts by topic, separated by lines of dashes in each file.
const CASES: &[(&str, &str)] = &[
    ("conversion", include_str!("cases/conversion.lua")),
    ("errors", include_str!("cases/errors.lua")),
    ("redis", include_str!("cases/redis.lua")),
    ("sandbox", include_str!("cases/sandbox.lua")),
    ("lua", include_str!("cases/lua.lua")),
    ("bit", include_str!("cases/bit.lua")),
    ("cjson", include_str!("cases/cjson.lua")),
    ("cmsgpack", include_str!("cases/cmsgpack.lua")),
    ("struct", include_str!("cases/struct.lua")),
];

const KEYS: &[&[u8]] = &[b"key", b"{k}two"];
const ARGV: &[&[u8]] = &[b"10", b"arg two", b"\x00\xff", b""];

#[test]
fn replies_are_those_of_redis_7_0() {
    compare(Version::V7_0, "redis-7.0");
}

#[test]
fn replies_are_those_of_redis_7_4() {
    compare(Version::V7_4, "redis-7.4");
}

fn compare(version: Version, program: &str) {
    let Some(program) = crate::support::oracle::server(program) else { return };
    let mut oracle = Oracle::start(&program.to_string_lossy());
    let mut vm = Vm::new(version);
    let mut differences = Vec::new();
    let mut compared = 0;
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        oracle.connect(protocol);
        for (topic, text) in CASES {
            for script in split(text) {
                let Some(script) = for_version(script, version) else { continue };
                let theirs = oracle.eval(script.as_bytes(), KEYS, ARGV);
                let ours = eval(&mut vm, version, protocol, script.as_bytes(), ARGV);
                compared += 1;
                if ours != theirs {
                    differences.push(format!(
                        "{topic}, {protocol:?}:\n{script}\n  Redis: {}\n  ours:  {}\n",
                        theirs.escape_ascii(),
                        ours.escape_ascii()
                    ));
                }
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {compared} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// Scripts that fill Lua's stack of 8,000 values by nesting or by many arguments, at every depth around that limit.
const DEEP: &[&str] = &[
    "local t = {} for i = 1, DEPTH do t = {t} end return t",
    "local t = {map = {a = 1}} for i = 1, DEPTH do t = {t} end return t",
    "local t = {map = string} for i = 1, DEPTH do t = {t} end return t",
    "local t = {set = bit} for i = 1, DEPTH do t = {t} end return t",
    "local t = {} for i = 1, HALF do t = {map = {a = t}} end return t",
    "cjson.encode_max_depth(100000) local t = {} for i = 1, DEPTH do t = {t} end return cjson.encode(t)",
    "cjson.encode_max_depth(100000) local t = {} for i = 1, HALF do t = {a = t} end return cjson.encode(t)",
    "cjson.encode_max_depth(100000) local t = {a = 1} for i = 1, DEPTH do t = {t} end return cjson.encode(t)",
    "cjson.decode_max_depth(100000) return #cjson.decode(('['):rep(DEPTH) .. (']'):rep(DEPTH))",
    "cjson.decode_max_depth(100000) return type(cjson.decode(('{\"a\":'):rep(HALF) .. '1' .. ('}'):rep(HALF)))",
    "return #cmsgpack.pack(unpack({}, 1, DEPTH))",
    "return #cmsgpack.pack(unpack({}, 1, HALF))",
    "return select('#', cmsgpack.unpack(('\\1'):rep(DEPTH)))",
    "return {cmsgpack.unpack_limit(('\\1'):rep(9000), DEPTH)}",
    "return type(cmsgpack.unpack(('\\145'):rep(HALF) .. '\\1'))",
    "return type(cmsgpack.unpack(('\\129\\1'):rep(HALF) .. '\\1'))",
    "return {struct.unpack(('b'):rep(DEPTH), ('\\1'):rep(DEPTH))}",
    "local t = {} for i = 1, DEPTH do t[i] = 1 end return struct.pack(('b'):rep(DEPTH), unpack(t))",
    "local t = {} for i = 1, DEPTH do t[i] = 1 end return bit.bor(unpack(t))",
    "local t = {} for i = 1, DEPTH do t[i] = 'k' end return #string.char(unpack(t))",
];

fn deep() -> impl Iterator<Item = String> {
    DEEP.iter().flat_map(|body| {
        (7985..8006).map(|depth: u32| {
            body.replace("DEPTH", &depth.to_string()).replace("HALF", &(depth / 2).to_string())
        })
    })
}

#[test]
fn a_full_stack_is_as_deep_as_in_redis_7_0() {
    compare_deep(Version::V7_0, "redis-7.0");
}

#[test]
fn a_full_stack_is_as_deep_as_in_redis_7_4() {
    compare_deep(Version::V7_4, "redis-7.4");
}

fn compare_deep(version: Version, program: &str) {
    let Some(program) = crate::support::oracle::server(program) else { return };
    let mut oracle = Oracle::start(&program.to_string_lossy());
    let mut vm = Vm::new(version);
    oracle.connect(Protocol::Resp2);
    let mut differences = Vec::new();
    for script in deep() {
        let theirs = oracle.eval(script.as_bytes(), &[], &[]);
        let ours = eval(&mut vm, version, Protocol::Resp2, script.as_bytes(), &[]);
        if ours != theirs {
            let tail = |reply: &[u8]| reply[reply.len().saturating_sub(150)..].escape_ascii().to_string();
            differences.push(format!("{script}\n  Redis: {}\n  ours:  {}\n", tail(&theirs), tail(&ours)));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("\n----\n").map(|script| script.trim_matches('\n'))
}

/// Returns the script if it is for this version: one that begins with the line `--7.4` is for 7.4 only.
fn for_version(script: &str, version: Version) -> Option<&str> {
    match script.strip_prefix("--only ").and_then(|rest| rest.split_once('\n')) {
        Some((only, script)) => (only == version.to_string()).then_some(script),
        None => Some(script),
    }
}

fn eval(vm: &mut Vm, version: Version, protocol: Protocol, body: &[u8], argv: &[&[u8]]) -> Vec<u8> {
    let mut reply = Reply::new(protocol, version);
    let mut host = FakeHost::default();
    match vm.load(body) {
        Err(error) => reply.error(error.text()),
        Ok(script) => {
            let mut step = vm.start(&script, KEYS, argv, &mut host, &mut reply);
            while step == Step::Suspended {
                step = vm.resume(&mut host, &mut reply);
            }
            vm.unload(&script);
        }
    }
    reply.as_bytes().to_vec()
}
