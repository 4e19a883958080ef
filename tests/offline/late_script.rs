//! A long script goes on wherever it began: after a pause, behind a gate, in another client's request, on a clock that a test
//! moves. Nobody is served in the middle of it.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::server::{Server, free_port};

/// Runs for several slices, and tells whether `k` has changed meanwhile.
const LONG: &str = "redis.call('set', 'k', 'script') local x = 0 for i = 1, 1000000 do x = x + i end \
    return redis.call('get', 'k')";
const UNDISTURBED: &[u8] = b"$6\r\nscript\r\n";

fn sim(client: &mut Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8(client.call(&words)).unwrap()
}

/// Starts the long script and a write behind it, lets `begin` begin them, and expects them to run one after the other.
fn runs_whole(server: &Server, mut begin: impl FnMut(&mut Client)) {
    let (mut a, mut b, mut control) = (server.connect(), server.connect(), server.connect());
    a.call(&["CLIENT", "SETNAME", "app"]);
    b.call(&["CLIENT", "SETNAME", "app"]);
    sim(&mut control, "SIM.GATE ADD NAME app AT PRE LABEL g KEEP");
    a.send(&["EVAL", LONG, "0"]);
    sim(&mut control, "SIM.GATE AWAIT g COUNT 1");
    b.send(&["SET", "k", "other"]);
    sim(&mut control, "SIM.GATE AWAIT g COUNT 2");
    begin(&mut control);
    assert_eq!(a.receive(), UNDISTURBED);
    assert_eq!(b.receive(), b"+OK\r\n");
    let mut c = server.connect();
    assert_eq!(c.call(&["EVAL", "return redis.call('get', 'k')", "0"]), b"$5\r\nother\r\n");
}

#[test]
fn behind_a_gate_that_opens() {
    let server = Server::redlatch("7.4", &[]);
    runs_whole(&server, |control| {
        assert_eq!(sim(control, "SIM.GATE RELEASE ALL"), ":2\r\n");
        sim(control, "SIM.GATE DEL g");
    });
}

#[test]
fn behind_a_gate_that_opens_from_another_node_or_the_control_port() {
    let port = free_port();
    let control = port.to_string();
    let server = Server::redlatch("7.4", &["--port", "0", "--control-port", &control]);
    runs_whole(&server, |_| {
        assert_eq!(sim(&mut Client::connect(port), "SIM.GATE DEL g"), "+OK\r\n");
    });
    let ports = server.ports().to_vec();
    assert_eq!(ports.len(), 3, "{ports:?}");
    runs_whole(&server, |_| {
        let mut other = Client::connect(ports[1]);
        assert_eq!(sim(&mut other, "SIM.GATE RELEASE ALL"), ":2\r\n");
        sim(&mut other, "SIM.GATE DEL g");
    });
}

#[test]
fn behind_the_gate_of_a_client_that_leaves() {
    let server = Server::redlatch("7.4", &[]);
    let (mut a, mut owner) = (server.connect(), server.connect());
    sim(&mut owner, "SIM.GATE ADD CMD eval AT PRE LABEL g");
    a.send(&["EVAL", LONG, "0"]);
    sim(&mut owner, "SIM.GATE AWAIT g");
    drop(owner);
    assert_eq!(a.receive(), UNDISTURBED);
}

#[test]
fn after_a_delay_and_on_a_node_that_resumes() {
    let server = Server::redlatch("7.4", &["--port", "0", "--clock", "manual"]);
    let other = server.ports()[1];
    for begin in ["SIM.CLOCK ADVANCE 50", "SIM.NODE RESUME 0"] {
        let (mut a, mut b) = (server.connect(), server.connect());
        let mut control = Client::connect(other);
        match begin {
            "SIM.NODE RESUME 0" => sim(&mut control, "SIM.NODE PAUSE 0"),
            _ => sim(&mut control, "SIM.FAULT ADD CMD eval NODE 0 DO DELAY REQUEST 50 TIMES 1"),
        };
        a.send(&["EVAL", LONG, "0"]);
        std::thread::sleep(Duration::from_millis(50));
        b.send(&["PING"]);
        std::thread::sleep(Duration::from_millis(50));
        // The next request of the same read comes after the script, too.
        control.send_bytes(format!("{begin}\r\nSIM.KEY LOSE k NODE 0\r\n").as_bytes());
        assert_eq!(a.receive(), UNDISTURBED, "{begin}");
        assert_eq!(b.receive(), b"+PONG\r\n", "{begin}");
        control.receive();
        assert_eq!(control.receive(), b":1\r\n", "{begin}");
    }
}

#[test]
fn an_endless_script_on_a_manual_clock_leaves_every_port_served() {
    let port = free_port();
    let control = port.to_string();
    let args =
        ["--clock", "manual", "--port", "0", "--busy-reply-threshold", "200", "--control-port", &control];
    let server = Server::redlatch("7.4", &args);
    for end in ["SCRIPT KILL", "SIM.RUN RESET", "SIM.NODE STOP 0"] {
        let mut looping = server.connect();
        looping.send(&["EVAL", "while true do redis.call('GET', 'x') end", "0"]);
        std::thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        let mut other = server.connect();
        assert!(other.call(&["GET", "x"]).starts_with(b"-BUSY "), "{end}");
        assert_eq!(Client::connect(server.ports()[1]).call(&["GET", "x"]), b"$-1\r\n", "{end}");
        assert!(sim(&mut Client::connect(port), "SIM.CLOCK NOW").starts_with('*'), "{end}");
        assert_eq!(sim(&mut other, end), "+OK\r\n");
        if end != "SIM.NODE STOP 0" {
            assert!(looping.receive().starts_with(b"-ERR Script killed"), "{end}");
        } else {
            assert_eq!(looping.receive(), b"");
            assert_eq!(sim(&mut Client::connect(port), "SIM.NODE START 0"), "+OK\r\n");
        }
        assert_eq!(server.connect().call(&["GET", "x"]), b"$-1\r\n", "{end}");
        assert!(began.elapsed() < Duration::from_secs(5), "{end}: {:?}", began.elapsed());
    }
}

#[test]
fn a_busy_script_goes_on_after_its_node_was_paused() {
    let server = Server::redlatch("7.4", &["--port", "0", "--busy-reply-threshold", "50"]);
    let mut looping = server.connect();
    looping.send(&["EVAL", "for i = 1, 60000000 do end return 7", "0"]);
    assert!(server.connect().call(&["GET", "x"]).starts_with(b"-BUSY "));
    let mut control = Client::connect(server.ports()[1]);
    sim(&mut control, "SIM.NODE PAUSE 0");
    assert_eq!(looping.receive_within(Duration::from_millis(500)), b"");
    sim(&mut control, "SIM.NODE RESUME 0");
    assert_eq!(looping.receive(), b":7\r\n");
}

#[test]
fn a_rule_that_forgets_scripts_spares_the_running_one() {
    let server = Server::redlatch("7.4", &["--busy-reply-threshold", "50"]);
    let (mut looping, mut other) = (server.connect(), server.connect());
    sim(&mut other, "SIM.FAULT ADD CMD ping DO FORGET SCRIPTS");
    looping.send(&["EVAL", "while true do end", "0"]);
    // The server may read this connection first.
    let began = Instant::now();
    while !other.call(&["PING"]).starts_with(b"-BUSY ") {
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(other.call(&["SCRIPT", "KILL"]), b"+OK\r\n");
    assert!(looping.receive().starts_with(b"-ERR Script killed"));
}
