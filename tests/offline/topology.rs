//! Shapes of a world at its start, and partitions between its nodes.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use redlatch::{Sim, SimOptions, Topology};
use redlatch_lab::trace::Replay;

#[test]
fn a_program_learns_all_ports_from_one_line() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["--topology", "masters:3", "--port", "0", "--control-port", "0", "--ready-json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let port = |value: &serde_json::Value| value.as_u64().unwrap() as u16;
    for node in 0..3 {
        let told = &ready["nodes"][node];
        assert_eq!((&told["node"], &told["part"]), (&node.into(), &"master".into()));
        std::net::TcpStream::connect(("127.0.0.1", port(&told["port"]))).unwrap();
    }
    std::net::TcpStream::connect(("127.0.0.1", port(&ready["control_port"]))).unwrap();
    assert_eq!(ready["pid"], server.id());
    assert_eq!(ready["topology"], "masters:3");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_topology_says_how_many_nodes_there_are() {
    let topology: Topology = "masters:3".parse().unwrap();
    let sim = Sim::new(SimOptions::default().topology(topology));
    assert_eq!(sim.world().nodes().len(), 3);
    let error = Sim::try_new(SimOptions::default().topology(topology).nodes(2)).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the topology masters:3 has 3 nodes, not 2");
}

#[test]
fn partitions_are_listed_and_end() {
    let mut sim = Sim::new(SimOptions::default().nodes(3));
    let client = sim.connect(0);
    let mut call =
        |words: &str| String::from_utf8(sim.call(client, &words.split(' ').collect::<Vec<_>>())).unwrap();
    assert_eq!(call("SIM.LINK LIST"), "*0\r\n");
    assert_eq!(call("SIM.LINK CUT 0 1 ONEWAY"), "+OK\r\n");
    assert_eq!(call("SIM.LINK LIST"), "*1\r\n*2\r\n:0\r\n:1\r\n");
    assert_eq!(call("SIM.LINK ISOLATE 2"), "+OK\r\n");
    assert!(call("SIM.LINK LIST").starts_with("*5\r\n"));
    assert_eq!(call("SIM.LINK HEAL 2 0"), "+OK\r\n");
    assert!(call("SIM.LINK LIST").starts_with("*3\r\n"));
    assert!(call("SIM.LINK CUT 0 0").starts_with("-SIMERR SYNTAX a node always reaches itself"));
    assert!(call("SIM.LINK CUT 0 3").starts_with("-SIMERR RANGE there is no node 3"));
    assert!(call("SIM.LINK CUT 0").starts_with("-SIMERR SYNTAX"));
    assert_eq!(call("SIM.LINK HEAL"), "+OK\r\n");
    assert_eq!(call("SIM.LINK LIST"), "*0\r\n");
    call("SIM.LINK ISOLATE 1");
    call("SIM.RUN RESET");
    assert_eq!(call("SIM.LINK LIST"), "*0\r\n");
}

#[test]
fn a_trace_from_the_middle_has_the_topology_and_its_partitions() {
    let mut sim = Sim::new(SimOptions::default().topology("replicas:2".parse().unwrap()));
    let client = sim.connect(0);
    sim.call(client, &["SIM.LINK", "CUT", "0", "2", "ONEWAY"]);
    let before = sim.digest();
    sim.control().start_trace().unwrap();
    sim.call(client, &["SET", "k", "v"]);
    sim.call(client, &["SIM.LINK", "LIST"]);
    sim.call(client, &["SIM.LINK", "HEAL"]);
    assert_ne!(sim.digest(), before);
    let trace = sim.finish_trace();
    assert!(trace.lines().next().unwrap().contains("\"topology\":\"replicas:2\""));
    let replay = Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    assert!(replay.complete && replay.outputs >= 3, "{replay:?}");
    let edited = trace.replace("replicas:2", "replicas:3");
    assert!(Replay::run(&edited).unwrap_err().to_string().contains("does not have the number of nodes"));
}

/// Returns the bytes of a reply as text.
fn ask(sim: &mut Sim, client: redlatch::Client, words: &str) -> String {
    String::from_utf8_lossy(&sim.call(client, &words.split(' ').collect::<Vec<_>>())).into_owned()
}

/// Lets clients of a cluster lock while a master stops, its replica takes over, a slot moves and a partition comes and goes.
fn run_cluster(sim: &mut Sim) {
    let clients: Vec<_> = (0..6).map(|node| sim.connect(node)).collect();
    let other = ask(sim, clients[1], "CLUSTER MYID")[5..45].to_owned();
    ask(sim, clients[0], "SET {orders}:lock c1 NX PX 60000");
    ask(sim, clients[3], "SSUBSCRIBE {orders}");
    ask(sim, clients[1], "SIM.NODE STOP 0");
    sim.advance(17_000);
    assert!(
        ask(sim, clients[1], "SET {orders}:lock c2 NX PX 60000").starts_with("-MOVED 105 127.0.0.1:6382")
    );
    ask(sim, clients[1], "SIM.NODE START 0");
    ask(sim, clients[1], "SIM.LINK ISOLATE 2");
    sim.advance(20_000);
    assert!(ask(sim, clients[2], "SET foo v").starts_with("-CLUSTERDOWN"));
    ask(sim, clients[1], "SIM.LINK HEAL");
    sim.advance(10_000);
    ask(sim, clients[1], &format!("CLUSTER SETSLOT 105 NODE {other}"));
    ask(sim, clients[1], "CLUSTER BUMPEPOCH");
    assert_eq!(ask(sim, clients[1], "SET {orders}:lock c3 NX"), "+OK\r\n");
}

#[test]
fn a_run_of_a_cluster_replays_from_its_start_and_from_its_middle() {
    for middle in [false, true] {
        let mut sim = Sim::new(SimOptions::default().topology("cluster:3x1".parse().unwrap()).seed(7));
        if middle {
            let client = sim.connect(0);
            ask(&mut sim, client, "SET {orders}:before v");
            ask(&mut sim, client, "SIM.NODE STOP 4");
            sim.advance(16_000);
        }
        sim.control().start_trace().unwrap();
        run_cluster(&mut sim);
        let replay = Replay::run(&sim.finish_trace()).unwrap_or_else(|error| panic!("{middle}: {error}"));
        assert!(replay.complete && replay.outputs >= 12, "{replay:?}");
    }
}

#[test]
fn a_reset_brings_the_topology_back() {
    for shape in ["cluster:3x1", "sentinel:1x2+3", "replicas:2"] {
        let mut sim = Sim::new(SimOptions::default().topology(shape.parse().unwrap()));
        let before: Vec<_> = sim.world().nodes().iter().map(|node| node.replication.role).collect();
        let client = sim.connect(1);
        ask(&mut sim, client, "SIM.NODE STOP 0");
        sim.advance(60_000);
        // A sentinel disconnects the clients of a node that it promotes.
        let client = sim.connect(1);
        ask(&mut sim, client, "SIM.NODE PROMOTE 1");
        let client = sim.connect(1);
        assert_eq!(ask(&mut sim, client, "SIM.RUN RESET"), "+OK\r\n", "{shape}");
        let after: Vec<_> = sim.world().nodes().iter().map(|node| node.replication.role).collect();
        assert_eq!(before, after, "{shape}");
        let client = sim.connect(0);
        assert_eq!(ask(&mut sim, client, "SET {orders}:lock c1 NX"), "+OK\r\n", "{shape}");
    }
}
