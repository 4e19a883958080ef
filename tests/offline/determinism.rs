//! The same seed and the same inputs give the same outputs and the same state, within a process and across processes.

#![allow(clippy::disallowed_methods)]

use std::process::Command;

use redlatch::{Client, Sim, SimOptions, Version};
use redlatch_core::rng::Rng;

const RELEASE: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end \
    if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end \
    redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1";
const ACQUIRE: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then \
    redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return nil end \
    return redis.call('pttl', KEYS[1])";
const UNORDERED: &str = "local t = {} for i = 1, 20 do t['k' .. math.random(1000)] = i end \
    local s = '' for k, v in pairs(t) do s = s .. k .. tostring(v) end return s";

/// Runs random commands on locks, lists, random choices, expiry and blocked clients, chosen by a seed. Returns the digest.
fn walk(seed: u64, version: Version) -> String {
    let mut sim = Sim::new(SimOptions::default().seed(seed).nodes(2).version(version));
    let mut choices = Rng::new(seed);
    let clients: Vec<Client> = (0..6).map(|n| sim.connect(n % 2)).collect();
    for &client in &clients[4..] {
        sim.call(client, &["SUBSCRIBE", "channel", "__keyevent@0__:expired"]);
    }
    sim.call(clients[0], &["CONFIG", "SET", "notify-keyspace-events", "KEA"]);
    for step in 0..2_000 {
        let client = clients[choices.below(4)];
        let key = ["a", "b", "c"][choices.below(3)];
        let owner = ["x", "y", "z"][choices.below(3)];
        let number = choices.below(50).to_string();
        // A client that waits sends nothing.
        let mut request = |argv: &[&str]| match sim.is_waiting(client) {
            true => drop(sim.received(client)),
            false => drop(sim.call(client, argv)),
        };
        match choices.below(14) {
            0 | 1 => request(&["EVAL", ACQUIRE, "1", key, owner, "200"]),
            2 | 3 => request(&["EVAL", RELEASE, "2", key, "channel", owner]),
            4 => request(&["EVAL", UNORDERED, "0"]),
            5 => request(&["SADD", "set", &number, owner]),
            6 => request(&["SPOP", "set"]),
            7 => request(&["SRANDMEMBER", "set", "-5"]),
            8 => request(&["ZADD", "zset", &number, &format!("{owner}{number}")]),
            9 => request(&["ZRANDMEMBER", "zset", "3", "WITHSCORES"]),
            10 => request(&["RPUSH", "list", &step.to_string()]),
            11 => request(&["BLPOP", "list", "0.05"]),
            12 => request(&["RANDOMKEY"]),
            _ => {
                sim.advance(choices.below(60) as u64);
                clients.iter().for_each(|&client| drop(sim.received(client)));
            }
        }
    }
    sim.digest()
}

#[test]
fn a_second_run_gives_the_same_digest() {
    for version in [Version::V7_0, Version::V7_4] {
        for seed in 0..20 {
            assert_eq!(walk(seed, version), walk(seed, version), "seed {seed} as Redis {version}");
        }
    }
    assert_ne!(walk(1, Version::V7_4), walk(2, Version::V7_4), "the digest has to depend on what happened");
}

/// Runs in the other processes; prints the digest.
#[test]
fn digest_for_another_process() {
    println!("digest {}", walk(42, Version::V7_4));
}

#[test]
fn another_process_gives_the_same_digest() {
    let run = || {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program)
            .args(["--exact", "determinism::digest_for_another_process", "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split("digest ").nth(1).map(|rest| rest.split_whitespace().next().unwrap_or_default().to_owned())
    };
    let first = run();
    assert_eq!(first.as_deref(), Some(walk(42, Version::V7_4).as_str()));
    assert_eq!(first, run());
}
