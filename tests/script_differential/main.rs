//! Every script of `cases/` runs here and on real servers, and the replies have to be the same bytes. Nobody writes down what to
//! expect. Scripts that must differ stand in `cases/` nowhere; `script.rs` tests them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod fuzz;
mod host;
mod oracle;

use host::FakeHost;
use oracle::Oracle;
use redlatch::Version;
use redlatch::script::{Step, Vm};
use redlatch::wire::reply::{Protocol, Reply};

/// The scripts, by topic. In a file they are separated by lines of dashes.
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
    compare(Version::V7_0, "redis-server");
}

#[test]
fn replies_are_those_of_redis_7_4() {
    compare(Version::V7_4, concat!(env!("CARGO_MANIFEST_DIR"), "/target/oracles/redis-7.4"));
}

/// Made-up data for the libraries. The count is small enough for every run; raise it when one of them changes.
#[test]
fn libraries_treat_odd_data_as_redis_does() {
    const CASES: usize = 4000;
    let mut oracle = Oracle::start("redis-server");
    oracle.connect(Protocol::Resp2);
    let mut vm = Vm::new(Version::V7_0);
    let mut numbers = fuzz::Numbers::new(1);
    for i in 0..CASES {
        let case = fuzz::case(&mut numbers);
        let argv = case.arguments.each_ref().map(Vec::as_slice);
        let theirs = oracle.eval(case.script.as_bytes(), KEYS, &argv);
        let ours = eval(&mut vm, Version::V7_0, Protocol::Resp2, case.script.as_bytes(), &argv);
        // Tables as keys come in the order of their addresses: then the parts may be in another order.
        let sorted = |mut bytes: Vec<u8>| {
            bytes.sort_unstable();
            bytes
        };
        assert!(
            ours == theirs || sorted(ours.clone()) == sorted(theirs.clone()),
            "case {i}: {}\n{}\n{}\n  Redis: {}\n  ours:  {}",
            case.script,
            argv[0].escape_ascii(),
            argv[1].escape_ascii(),
            theirs.escape_ascii(),
            ours.escape_ascii()
        );
    }
}

fn compare(version: Version, program: &str) {
    let mut oracle = Oracle::start(program);
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

fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("\n----\n").map(|script| script.trim_matches('\n'))
}

/// A script whose first line is `--7.4` is for that version only.
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
