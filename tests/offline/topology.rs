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
