//! The requests of the benchmarks, as text with placeholders for keys, owners and scripts.

use redlatch_core::script::sha1_hex;
use redlatch_core::wire::client::encode;

/// A sequence of requests that is sent repeatedly.
#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    /// The requests that prepare a key before the measurement.
    before: &'static [&'static str],
    /// The requests that are measured: all of them for one key, then for the next.
    pub steps: &'static [&'static str],
}

/// The workload that measures the time from a PUBLISH until all subscribers of the channel have the message.
pub const WAKEUP: &str = "wakeup";

/// The scripts that names in braces refer to. A placeholder is replaced by the SHA-1 of the script.
const SCRIPTS: &[(&str, &str)] = &[
    ("acquire", include_str!("scripts/acquire.lua")),
    ("release", include_str!("scripts/release.lua")),
    ("renew", include_str!("scripts/renew.lua")),
    ("fair_acquire", include_str!("scripts/fair_acquire.lua")),
    ("fair_release", include_str!("scripts/fair_release.lua")),
    ("read_acquire", include_str!("scripts/read_acquire.lua")),
    ("read_release", include_str!("scripts/read_release.lua")),
    ("semaphore_acquire", include_str!("scripts/semaphore_acquire.lua")),
    ("semaphore_release", include_str!("scripts/semaphore_release.lua")),
    ("write_acquire", include_str!("scripts/write_acquire.lua")),
    ("write_release", include_str!("scripts/write_release.lua")),
];

/// The library of the function that a workload calls.
const LIBRARY: &str = "#!lua name=redlatch_bench\nredis.register_function('redlatch_bench_get', function(keys) return redis.call('GET', keys[1]) end)";

const PREFIX: &str = "redlatch-bench";

pub const WORKLOADS: &[Workload] = &[
    Workload { name: "ping", about: "PING", before: &[], steps: &["PING"] },
    Workload { name: "get", about: "GET of 16 bytes", before: &["SET {key} {value}"], steps: &["GET {key}"] },
    Workload { name: "set", about: "SET of 16 bytes", before: &[], steps: &["SET {key} {value}"] },
    Workload {
        name: "hset",
        about: "HSET of one field",
        before: &[],
        steps: &["HSET {key} {holder} {value}"],
    },
    Workload {
        name: "acquire",
        about: "a holder takes its lock once more",
        before: &[],
        steps: &["EVALSHA {acquire} 1 {key} 30000 {holder}"],
    },
    Workload {
        name: "contend",
        about: "asking for a lock that another holds",
        before: &["HSET {key} {other} 1", "PEXPIRE {key} 3600000"],
        steps: &["EVALSHA {acquire} 1 {key} 30000 {holder}"],
    },
    Workload {
        name: "lock",
        about: "a free lock is taken, then given back",
        before: &[],
        steps: &[
            "EVALSHA {acquire} 1 {key} 30000 {holder}",
            "EVALSHA {release} 2 {key} {key}:channel 30000 {holder}",
        ],
    },
    Workload {
        name: "renew",
        about: "a watchdog makes a held lock last longer",
        before: &["HSET {key} {holder} 1"],
        steps: &["EVALSHA {renew} 1 {key} 30000 {holder}"],
    },
    Workload {
        name: "fair",
        about: "two take a fair lock in turn: one waits in its queue",
        before: &[],
        steps: &[
            "EVALSHA {fair_acquire} 3 {key} {key}:queue {key}:due 30000 {holder} 5000 1000",
            "EVALSHA {fair_acquire} 3 {key} {key}:queue {key}:due 30000 {other} 5000 1000",
            "EVALSHA {fair_release} 3 {key} {key}:queue {key}:channel {holder}",
            "EVALSHA {fair_acquire} 3 {key} {key}:queue {key}:due 30000 {other} 5000 1000",
            "EVALSHA {fair_release} 3 {key} {key}:queue {key}:channel {other}",
        ],
    },
    Workload {
        name: "readwrite",
        about: "two read under a lock, then one writes",
        before: &[],
        steps: &[
            "EVALSHA {read_acquire} 2 {key} {key}:{holder} 30000 {holder}",
            "EVALSHA {read_acquire} 2 {key} {key}:{other} 30000 {other}",
            "EVALSHA {read_release} 3 {key} {key}:channel {key}:{holder} {holder}",
            "EVALSHA {read_release} 3 {key} {key}:channel {key}:{other} {other}",
            "EVALSHA {write_acquire} 1 {key} 30000 {holder}",
            "EVALSHA {write_release} 2 {key} {key}:channel 30000 {holder}",
        ],
    },
    Workload {
        name: "xadd",
        about: "XADD of one field to a stream of 1000 entries",
        before: &[],
        steps: &["XADD {key} MAXLEN ~ 1000 * field {value}"],
    },
    Workload {
        name: "xreadgroup",
        about: "an entry is added, and a group reads it",
        before: &["XGROUP CREATE {key} group 0 MKSTREAM"],
        steps: &[
            "XADD {key} MAXLEN ~ 1000 * field {value}",
            "XREADGROUP GROUP group {holder} COUNT 1 NOACK STREAMS {key} >",
        ],
    },
    Workload { name: "setbit", about: "SETBIT in 2 kB", before: &[], steps: &["SETBIT {key} 16000 1"] },
    Workload {
        name: "pfadd",
        about: "PFADD of an element that is there",
        before: &[],
        steps: &["PFADD {key} {holder}"],
    },
    Workload {
        name: "geosearch",
        about: "GEOSEARCH that finds two of three",
        before: &["GEOADD {key} 13.361389 38.115556 a 15.087269 37.502669 b 2.349014 48.864716 c"],
        steps: &["GEOSEARCH {key} FROMLONLAT 15 37 BYRADIUS 200 km ASC"],
    },
    Workload {
        name: "fcall",
        about: "FCALL of a function that gets a key",
        before: &["SET {key} {value}"],
        steps: &["FCALL redlatch_bench_get 1 {key}"],
    },
    Workload {
        name: "tracking",
        about: "a key is read under CLIENT TRACKING, then changed",
        before: &["SET {key} {value}"],
        steps: &["CLIENT TRACKING ON", "GET {key}", "SET {key} {value}"],
    },
    Workload {
        name: WAKEUP,
        about: "from a PUBLISH until a subscriber has the message",
        before: &[],
        steps: &["PUBLISH {channel} free"],
    },
];

/// Returns the names of the workloads.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name)
}

/// Returns the text of a script.
pub fn script(name: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns the requests that load all scripts and the library.
pub fn load_scripts() -> impl Iterator<Item = Vec<u8>> {
    let scripts = SCRIPTS.iter().map(|(_, text)| encode(&["SCRIPT", "LOAD", text]));
    scripts.chain([encode(&["FUNCTION", "LOAD", "REPLACE", LIBRARY])])
}

/// Returns the request that subscribes to the channel of [`WAKEUP`].
pub fn subscribe() -> Vec<u8> {
    request("SUBSCRIBE {channel}", 0)
}

impl Workload {
    /// Returns the requests that prepare a key.
    pub fn before(&self, key: usize) -> impl Iterator<Item = Vec<u8>> {
        self.before.iter().map(move |text| request(text, key))
    }

    /// Returns the batches that one connection sends in a loop: `pipeline` requests each, over keys from `first_key` on.
    pub fn batches(&self, first_key: usize, pipeline: usize) -> Vec<Vec<u8>> {
        let steps = self.steps.len();
        let batches = (1..=steps).find(|count| (count * pipeline).is_multiple_of(steps)).unwrap_or(steps);
        let requests: Vec<Vec<u8>> = (0..batches * pipeline)
            .map(|at| request(self.steps[at % steps], first_key + at / steps))
            .collect();
        requests.chunks(pipeline).map(<[_]>::concat).collect()
    }
}

/// Returns the request that removes everything that the workloads have written for a key.
pub fn clean(key: usize) -> Vec<u8> {
    request("DEL {key} {channel} {key}:queue {key}:due {key}:{holder}:1 {key}:{other}:1", key)
}

/// Encodes a line as a request, with the placeholders replaced.
pub fn request(text: &str, key: usize) -> Vec<u8> {
    let words: Vec<String> = text
        .split(' ')
        .map(|word| {
            let mut word = word
                .replace("{key}", &format!("{PREFIX}:{key}"))
                .replace("{channel}", &format!("{PREFIX}:channel"))
                .replace("{value}", "0123456789abcdef")
                .replace("{holder}", &format!("2f4c3a0c-5c1e-4f0e-9a37-0b1df2f7a9d1:{key}"))
                .replace("{other}", &format!("91d40b58-1a7e-4c3b-8a66-7c1f20c5e0ab:{key}"));
            if let Some(script) = word.strip_prefix('{').and_then(|name| script(name.strip_suffix('}')?)) {
                word = String::from_utf8_lossy(&sha1_hex(script.as_bytes())).into_owned();
            }
            word
        })
        .collect();
    encode(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlatch_lab::sim::{Sim, SimOptions};

    /// Every workload runs without an error reply and leaves no keys.
    #[test]
    fn workloads_run_clean() {
        for workload in WORKLOADS {
            for pipeline in [1, 16] {
                let mut sim = Sim::new(SimOptions::default());
                let client = sim.connect(0);
                load_scripts().for_each(|request| sim.send_bytes(client, &request));
                let before = (0..16).flat_map(|key| workload.before(key));
                before.for_each(|request| sim.send_bytes(client, &request));
                for batch in workload.batches(0, pipeline).iter().cycle().take(60) {
                    sim.send_bytes(client, batch);
                }
                let replies = String::from_utf8(sim.received(client)).unwrap();
                assert!(!replies.contains("\r\n-"), "{}: {replies}", workload.name);
                (0..16).for_each(|key| sim.send_bytes(client, &clean(key)));
                sim.received(client);
                assert_eq!(sim.call(client, &["DBSIZE"]), b":0\r\n", "{} x {pipeline}", workload.name);
            }
        }
    }

    #[test]
    fn a_fair_lock_goes_to_the_one_who_waits() {
        let mut sim = Sim::new(SimOptions::default());
        let client = sim.connect(0);
        load_scripts().for_each(|request| sim.send_bytes(client, &request));
        sim.received(client);
        let fair = WORKLOADS.iter().find(|workload| workload.name == "fair").unwrap();
        sim.send_bytes(client, &fair.batches(0, 5)[0]);
        assert_eq!(sim.received(client), b"$-1\r\n:30000\r\n:1\r\n$-1\r\n:1\r\n");
    }

    #[test]
    fn batches_go_on_where_the_last_one_ended() {
        let pairs = WORKLOADS.iter().find(|workload| workload.name == "lock").unwrap();
        assert_eq!(pairs.batches(0, 1).len(), 2);
        assert_eq!(pairs.batches(0, 16).len(), 1);
        assert_eq!(pairs.batches(0, 3).len(), 2);
    }
}
