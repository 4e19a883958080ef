//! Measures how the cost of operations depends on the size of the data. Run with `cargo bench --bench growth`;
//! arguments select the rows whose names contain one of them. Prints ns per operation; in flat rows the cost does not
//! depend on the size.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

#[path = "support/in_process.rs"]
mod in_process;

use std::env;
use std::hint::black_box;
use std::time::Instant;

use in_process::InProcess;
use redlatch_compare::bench::workload;
use redlatch_core::wheel::Wheel;
use redlatch_core::wire::client::encode;
use redlatch_core::world::ConnId;

/// Returns ns per operation for data of the given size.
type Measure = fn(usize) -> f64;

const ROWS: &[(&str, &[usize], Measure)] = &[
    ("GET of one of N keys with a TTL", &[1_000, 10_000, 100_000, 1_000_000, 10_000_000], get),
    ("GETRANGE of ten bytes of N", &[1_000, 1_000_000, 100_000_000], getrange),
    ("acquire of one of N locks", &[1_000, 10_000, 100_000, 1_000_000, 10_000_000], acquire),
    ("PUBLISH, N channels with a subscriber each", &[1, 100, 1_000, 10_000], publish_among_channels),
    ("PUBLISH, for each of N subscribers", &[1, 100, 1_000, 10_000], publish_to_subscribers),
    ("LPUSH that serves one of N clients in BLPOP", &[1, 100, 1_000, 10_000], wake_one),
    ("a command of a script of N commands", &[10, 100, 1_000, 10_000], command_of_script),
    ("an EVALSHA, N scripts in the cache", &[1, 100, 400], among_scripts),
    ("move one of N timers", &[1_000, 10_000, 100_000, 1_000_000, 10_000_000], rearm),
];

fn main() {
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    for (name, sizes, measure) in ROWS {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        println!("{name}");
        for &size in *sizes {
            println!("{size:>12} {:>10.1} ns", measure(size));
        }
    }
}

/// Returns the best of several rounds of `times` runs each, in ns per run.
fn best(times: usize, mut run: impl FnMut(usize)) -> f64 {
    const ROUNDS: usize = 5;
    let round = |_| {
        let began = Instant::now();
        (0..times).for_each(&mut run);
        began.elapsed().as_nanos() as f64 / times as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Returns the numbers below `size` in an order that defeats processor caches.
fn mixed(size: usize) -> impl Iterator<Item = usize> {
    const MANY: usize = 100_000;
    (0..MANY).map(move |at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size)
}

fn over_keys(size: usize, fill: &str, run: &str) -> f64 {
    let (mut server, client) = server();
    (0..size).for_each(|key| server.send(client, &workload::request(fill, key)));
    let requests: Vec<Vec<u8>> = mixed(size).map(|key| workload::request(run, key)).collect();
    best(requests.len(), |at| server.send(client, &requests[at]))
}

/// Returns a server that has loaded the scripts of the workloads, and a client.
fn server() -> (InProcess, ConnId) {
    let mut server = InProcess::new();
    let client = server.connect();
    workload::load_scripts().for_each(|request| server.send(client, &request));
    (server, client)
}

fn get(keys: usize) -> f64 {
    over_keys(keys, "SET {key} {value} PX 3600000", "GET {key}")
}

fn getrange(bytes: usize) -> f64 {
    let (mut server, client) = server();
    server.send(client, &encode(&["SETRANGE", "key", &(bytes - 1).to_string(), "x"]));
    let request = encode(&["GETRANGE", "key", "500", "509"]);
    best(100_000, |_| server.send(client, &request))
}

fn acquire(locks: usize) -> f64 {
    const ACQUIRE: &str = "EVALSHA {acquire} 1 {key} 3600000 {holder}";
    over_keys(locks, ACQUIRE, ACQUIRE)
}

fn publish_among_channels(channels: usize) -> f64 {
    let (mut server, client) = server();
    let subscribers: Vec<_> = (0..channels).map(|_| server.connect()).collect();
    for (at, &subscriber) in subscribers.iter().enumerate() {
        server.send(subscriber, &encode(&["SUBSCRIBE", &format!("channel:{at}")]));
    }
    let request = encode(&["PUBLISH", "channel:0", "free"]);
    best(20_000, |_| {
        server.send(client, &request);
        server.receive(subscribers[0]);
    })
}

fn publish_to_subscribers(count: usize) -> f64 {
    let (mut server, client) = server();
    let subscribers: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for &subscriber in &subscribers {
        server.send(subscriber, &encode(&["SUBSCRIBE", "channel"]));
    }
    let request = encode(&["PUBLISH", "channel", "free"]);
    let ns = best((20_000 / count).max(5), |_| {
        server.send(client, &request);
        subscribers.iter().for_each(|&subscriber| server.receive(subscriber));
    });
    ns / count as f64
}

fn wake_one(count: usize) -> f64 {
    let (mut server, client) = server();
    let wait = encode(&["BLPOP", "queue", "0"]);
    let waiting: Vec<_> = (0..count).map(|_| server.connect()).collect();
    waiting.iter().for_each(|&waiting| server.send(waiting, &wait));
    let push = encode(&["LPUSH", "queue", "element"]);
    let mut next = 0;
    best(2_000, |_| {
        // Clients are served in the order of waiting; a served client waits again, behind all others.
        server.send(client, &push);
        server.send(waiting[next], &wait);
        next = (next + 1) % count;
    })
}

fn command_of_script(commands: usize) -> f64 {
    let (mut server, client) = server();
    let body = format!("for i = 1, {commands} do redis.call('get', KEYS[1]) end");
    let request = encode(&["EVAL", &body, "1", "key"]);
    best((200_000 / commands).max(3), |_| server.send(client, &request)) / commands as f64
}

fn among_scripts(scripts: usize) -> f64 {
    let (mut server, client) = server();
    (0..scripts).for_each(|at| server.send(client, &encode(&["SCRIPT", "LOAD", &format!("return {at}")])));
    let request = workload::request("EVALSHA {renew} 1 {key} 30000 {holder}", 0);
    best(100_000, |_| server.send(client, &request))
}

fn rearm(timers: usize) -> f64 {
    let mut wheel = Wheel::new(0);
    let ids: Vec<_> = (0..timers as u64).map(|at| wheel.arm(at * 7919 % 3_600_000, ())).collect();
    let ids: Vec<_> = mixed(timers).map(|at| ids[at]).collect();
    best(ids.len(), |at| {
        black_box(wheel.rearm(ids[at], 30_000 + at as u64 % 1_000));
    })
}
