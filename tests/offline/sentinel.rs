//! Sentinels in recorded runs: what they decide comes from the seed and the inputs alone.

use redlatch::{Client, Sim};
use redlatch_core::node::Config;
use redlatch_core::node::sentinel::SentinelSettings;
use redlatch_core::version::Version;
use redlatch_core::world::{ClockMode, WorldOptions};
use redlatch_lab::trace::Replay;

const SENTINELS: std::ops::Range<usize> = 3..6;

/// Returns a master, two replicas and three sentinels, by their settings.
fn group(seed: u64) -> Sim {
    let config = |node: usize| {
        let mut config = Config::new(Version::V7_4);
        let set = |config: &mut Config, name: &str, value: String| {
            config.set_at_start(name, value.as_bytes()).expect("a setting");
        };
        set(&mut config, "port", (7000 + node).to_string());
        if (1..3).contains(&node) {
            set(&mut config, "replicaof", "127.0.0.1 7000".to_owned());
        }
        if SENTINELS.contains(&node) {
            let mut settings = SentinelSettings::default();
            for line in ["monitor mymaster 127.0.0.1 7000 2", "down-after-milliseconds mymaster 1000"] {
                let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                settings.read_line(&words).expect("a line");
            }
            config.sentinel = Some(Box::new(settings));
        }
        config
    };
    Sim::with_world(WorldOptions {
        seed,
        clock: ClockMode::Manual,
        wall_start_ms: 1_700_000_000_000,
        nodes: (0..6).map(config).collect(),
        topology: None,
    })
}

fn call(sim: &mut Sim, client: Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8_lossy(&sim.call(client, &words)).into_owned()
}

fn master_of(sim: &mut Sim, sentinel: usize) -> String {
    let client = sim.connect(sentinel);
    let reply = call(sim, client, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
    reply.split("\r\n").nth(4).unwrap_or_default().to_owned()
}

/// Lets the master stop, come back, and a partition separate a sentinel meanwhile. `middle`: after which step the trace begins.
fn run(seed: u64, middle: usize) -> (String, Vec<String>) {
    let mut sim = group(seed);
    let control = sim.connect(4);
    let listener = sim.connect(5);
    call(&mut sim, listener, "PSUBSCRIBE *");
    let mut seen = Vec::new();
    let steps = [
        "SENTINEL SET mymaster failover-timeout 60000",
        "SIM.NODE STOP 0",
        "SIM.CLOCK ADVANCE 1000",
        "SIM.CLOCK ADVANCE 250",
        "SENTINEL MASTERS",
        "SIM.CLOCK ADVANCE 3000",
        "SENTINEL REPLICAS mymaster",
        "SIM.NODE START 0",
        "SIM.CLOCK ADVANCE 9000",
        "SENTINEL FAILOVER mymaster",
        "SIM.CLOCK ADVANCE 20000",
        "SENTINEL SENTINELS mymaster",
        "SENTINEL RESET *",
        "SIM.NODE PAUSE 3",
        "SIM.CLOCK ADVANCE 2000",
        "SENTINEL CKQUORUM mymaster",
        "SIM.NODE RESUME 3",
        "INFO sentinel",
    ];
    for (at, step) in steps.iter().enumerate() {
        if at == middle {
            sim.control().start_trace().expect("a trace begins");
        }
        seen.push(call(&mut sim, control, step));
    }
    seen.extend(SENTINELS.map(|sentinel| master_of(&mut sim, sentinel)));
    (sim.finish_trace(), seen)
}

#[test]
fn a_run_with_failovers_replays_to_the_byte_wherever_its_trace_begins() {
    for middle in [0, 2, 3, 4, 5, 8, 10, 13, 15] {
        let (trace, seen) = run(11, middle);
        let replay = Replay::run(&trace).unwrap_or_else(|error| panic!("from step {middle}: {error}"));
        assert!(replay.complete && replay.outputs > 5, "{replay:?}");
        let masters = &seen[seen.len() - 3..];
        assert!(masters.iter().all(|port| *port == masters[0]), "{masters:?}");
    }
}

#[test]
fn the_seed_decides() {
    assert_eq!(run(1, 0), run(1, 0));
    let leaders: std::collections::BTreeSet<String> = (0..8).map(|seed| run(seed, 0).1.concat()).collect();
    assert!(leaders.len() > 1);
}

#[test]
fn an_idle_day_costs_nothing() {
    let mut sim = group(5);
    let events = sim.world().events();
    sim.advance(24 * 3_600_000);
    assert_eq!(sim.world().events(), events);
}
