//! What a Rust user gets: `Sim`, `TestServer`, and `Control` over both; and what becomes of misuse.

// Servers with a real clock are on the other side of a socket.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{
    Action, At, CallError, Checks, Clause, ClockMode, Code, Control, DbId, Fence, Gate, Link, Match,
    OptionsError, Rule, ServerOptions, Sim, SimError, SimOptions, Stage, StartError, State, TestServer,
    Value, Version,
};

/// How long a server may take to stop, whatever it does.
const SOON: Duration = Duration::from_secs(3);

fn manual() -> ServerOptions {
    ServerOptions::default().clock(ClockMode::Manual)
}

fn start(options: ServerOptions) -> TestServer {
    TestServer::start(options).unwrap()
}

fn cmd(name: &str) -> Match {
    Match::any().and(Clause::Cmd(name.as_bytes().to_vec()))
}

/// A client with a socket.
struct Tcp {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Tcp {
    fn connect(server: &TestServer, node: usize) -> Tcp {
        let stream = TcpStream::connect(server.addr(node)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Tcp { stream, unread: Vec::new() }
    }

    fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// The next reply; `None` if the connection ends.
    fn receive(&mut self) -> Option<Value> {
        let mut buf = [0; 4096];
        loop {
            if let Some((value, len)) = Value::decode(&self.unread).unwrap() {
                self.unread.drain(..len);
                return Some(value);
            }
            match self.stream.read(&mut buf) {
                Ok(0) => return None,
                Ok(len) => self.unread.extend_from_slice(&buf[..len]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn call(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive().expect("a reply")
    }
}

fn ok() -> Value {
    Value::Status("OK".to_owned())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

// ---- Sim ---------------------------------------------------------------------------------------------------------

#[test]
fn misuse_of_a_sim_is_an_error() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    assert_eq!(sim.try_connect(2), Err(CallError::NoNode { node: 2, nodes: 2 }));
    let client = sim.connect(1);
    assert_eq!(sim.try_call(client, &["BLPOP", "list", "0"]), Ok(vec![]));
    assert_eq!(sim.try_call(client, &["PING"]), Err(CallError::Waiting));
    assert_eq!(sim.try_send(client, &[b"PING"]), Err(CallError::Waiting));
    let other = sim.connect(1);
    assert_eq!(sim.query(other, &["RPUSH", "list", "a"]), Ok(Value::Int(1)));
    assert_eq!(sim.values(client), Ok(vec![Value::Array(vec![bulk("list"), bulk("a")])]));
    assert_eq!(sim.query(client, &["BLPOP", "list", "0"]), Err(CallError::NoReply));
    assert_eq!(sim.query(other, &["QUIT"]), Ok(ok()));
    assert_eq!(sim.try_call(other, &["PING"]), Err(CallError::Closed));
    sim.disconnect(client);
    assert_eq!(sim.try_call(client, &["PING"]), Err(CallError::Closed));
}

#[test]
#[should_panic(expected = "there is no node 1: there are 1, numbered from 0")]
fn to_connect_to_no_node_panics() {
    Sim::new(SimOptions::default()).connect(1);
}

#[test]
#[should_panic(expected = "the client still waits for the reply to an earlier request")]
fn a_call_of_a_client_that_waits_panics() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    sim.call(client, &["BLPOP", "list", "0"]);
    sim.call(client, &["PING"]);
}

#[test]
#[should_panic(expected = "the connection of the client is closed")]
fn bytes_for_a_connection_that_is_closed_panic() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    sim.call(client, &["QUIT"]);
    sim.send_bytes(client, b"PING\r\n");
}

#[test]
fn options_that_cannot_be_had_are_errors() {
    let setting = |name: &str, value: &str| Sim::try_new(SimOptions::default().config(name, value)).err();
    assert_eq!(Sim::try_new(SimOptions::default().nodes(0)).err(), Some(OptionsError::NoNodes));
    assert!(
        matches!(setting("no-such-setting", "1"), Some(OptionsError::Setting { name, .. }) if name == "no-such-setting")
    );
    assert!(matches!(setting("databases", "x"), Some(OptionsError::Setting { .. })));
    assert_eq!(setting("requirepass", "secret"), None);
    let refused = TestServer::start(manual().nodes(0));
    assert!(matches!(refused, Err(StartError::Options(OptionsError::NoNodes))));
}

#[test]
fn values_that_a_rule_made_up_are_errors() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let _made_up = sim.fault(Rule::new(cmd("get"), Action::Reply(b"?!".to_vec())));
    assert!(matches!(sim.query(client, &["GET", "k"]), Err(CallError::NotAReply(_))));
}

#[test]
fn replies_of_both_protocols_are_values() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    sim.query(client, &["HSET", "h", "f", "v"]).unwrap();
    assert_eq!(sim.query(client, &["HGETALL", "h"]), Ok(Value::Array(vec![bulk("f"), bulk("v")])));
    assert!(matches!(sim.query(client, &["HELLO", "3"]), Ok(Value::Map(_))));
    assert_eq!(sim.query(client, &["HGETALL", "h"]), Ok(Value::Map(vec![(bulk("f"), bulk("v"))])));
    assert_eq!(sim.query(client, &["GET", "none"]), Ok(Value::Nil));
    let error = sim.query(client, &["INCR", "h"]).unwrap();
    assert!(error.as_error().is_some_and(|text| text.starts_with("WRONGTYPE")));
}

// ---- Control -----------------------------------------------------------------------------------------------------

/// What has a control plane, and a client for each of two nodes.
trait Subject {
    fn control(&mut self) -> Control<'_>;
    fn call(&mut self, node: usize, line: &str) -> Value;
}

struct InProcess {
    sim: Sim,
    clients: [redlatch::Client; 2],
}

impl Subject for InProcess {
    fn control(&mut self) -> Control<'_> {
        self.sim.control()
    }

    fn call(&mut self, node: usize, line: &str) -> Value {
        let words = redlatch_core::wire::request::split_words(line.as_bytes()).unwrap();
        self.sim.query(self.clients[node], &words).unwrap()
    }
}

struct OverSockets {
    server: TestServer,
    clients: [Tcp; 2],
}

impl Subject for OverSockets {
    fn control(&mut self) -> Control<'_> {
        self.server.control()
    }

    fn call(&mut self, node: usize, line: &str) -> Value {
        self.clients[node].call(line)
    }
}

/// Everything that the control plane does.
fn control_everything(s: &mut dyn Subject) {
    let first = DbId::default();
    let code = |error: SimError| error.code;

    // The clock.
    let began = s.control().now().unwrap();
    assert_eq!(began.mode, ClockMode::Manual);
    s.call(0, "SET lock a PX 1000");
    let timers = s.control().timers(10).unwrap();
    assert_eq!(
        (timers[0].kind, &timers[0].what[..], timers[0].due_ms),
        ("key", &b"lock"[..], began.mono_ms + 1_001)
    );
    let advanced = s.control().advance_to_next_timer(5_000).unwrap();
    assert_eq!((advanced.expired, advanced.wall_ms), (1, began.wall_ms + 1_001));
    assert_eq!(s.control().advance_to(began.wall_ms + 2_000).unwrap().wall_ms, began.wall_ms + 2_000);
    assert_eq!(s.control().advance_to(began.wall_ms).map_err(code), Err(Code::State));
    assert_eq!(s.control().advance(500).unwrap().wall_ms, began.wall_ms + 2_500);
    assert_eq!(s.control().jump(1, 60_000).unwrap(), began.wall_ms + 62_500);
    assert_eq!(s.control().jump(9, 1).map_err(code), Err(Code::State));
    assert_eq!(s.control().skews().unwrap(), []);

    // Keys.
    s.call(0, "SET k v");
    assert_eq!(s.control().set_ttl(first, "k", Some(700)), Ok(true));
    assert_eq!(s.call(0, "PTTL k"), Value::Int(700));
    let dumped = s.control().dump_keys(first, "*").unwrap();
    assert_eq!((&dumped[0].key[..], dumped[0].kind, dumped[0].ttl_ms), (&b"k"[..], "string", Some(700)));
    assert_eq!(s.control().lose_key(first, "k"), Ok(true));
    assert_eq!(s.control().lose_key(first, "k"), Ok(false));
    assert_eq!(s.call(0, "EXISTS k"), Value::Int(0));
    assert_eq!(s.control().lose_key(DbId { node: 0, db: 99 }, "k").map_err(code), Err(Code::Range));

    // Faults.
    let refuse = Action::Error { text: b"ERR refused".to_vec(), runs: false };
    let guard = s.control().fault(Rule::new(cmd("get"), refuse.clone())).unwrap();
    assert_eq!(s.call(0, "GET k").as_error(), Some("ERR refused"));
    assert_eq!(guard.hits(), 1);
    let hits = s.control().fault_hits(guard.id()).unwrap();
    assert_eq!((&hits[0].summary[..], hits.len()), (r#"GET "k""#, 1));
    s.control().pause_faults().unwrap();
    assert_eq!(s.call(0, "GET k"), Value::Nil);
    s.control().resume_faults().unwrap();
    assert_eq!(s.control().faults().unwrap()[0].id, guard.id());
    drop(guard);
    assert_eq!(s.call(0, "GET k"), Value::Nil);
    let id = s.control().add_fault(Rule::new(cmd("get"), refuse.clone())).unwrap();
    assert!(s.call(0, "GET k").as_error().is_some());
    s.control().remove_fault(id).unwrap();
    assert_eq!(s.control().remove_fault(id).map_err(code), Err(Code::Unknown));
    let nowhere = Match::any().and(Clause::Node(9));
    assert_eq!(s.control().fault(Rule::new(nowhere, refuse)).map(drop).map_err(code), Err(Code::State));
    let never = Rule::new(cmd("get"), Action::Drop(Stage::Push));
    assert_eq!(s.control().add_fault(never).map_err(code), Err(Code::Syntax));

    // Nodes.
    s.control().set_state(1, State::Oom, true).unwrap();
    assert!(s.call(1, "SET k v").as_error().is_some_and(|text| text.starts_with("OOM")));
    s.control().set_state(1, State::Oom, false).unwrap();
    s.control().replicate(1, 0).unwrap();
    assert_eq!(s.control().nodes().unwrap()[1].replica_of, Some((0, Link::Up)));
    s.call(0, "SET k v");
    assert_eq!(s.call(1, "GET k"), bulk("v"));
    s.control().set_link(1, Link::Down).unwrap();
    s.call(0, "SET k w");
    assert_eq!(s.call(1, "GET k"), bulk("v"));
    s.control().set_acks(0, Some(5)).unwrap();
    assert_eq!(s.call(0, "WAIT 5 0"), Value::Int(5));
    s.control().set_acks(0, None).unwrap();
    s.control().promote(1).unwrap();
    assert_eq!(s.control().nodes().unwrap()[1].replica_of, None);
    assert_eq!(s.control().set_link(1, Link::Up).map_err(code), Err(Code::State));
    s.control().pause_node(1).unwrap();
    assert!(s.control().nodes().unwrap()[1].is_paused);
    s.control().resume_node(1).unwrap();
    assert_eq!(s.control().pause_node(9).map_err(code), Err(Code::State));

    // The run.
    s.control().snapshot("before").unwrap();
    let digest = s.control().digest().unwrap();
    s.call(0, "SET k changed");
    assert_ne!(s.control().digest().unwrap(), digest);
    s.control().restore("before").unwrap();
    assert_eq!(s.call(0, "GET k"), bulk("w"));
    assert_eq!(s.control().restore("other").map_err(code), Err(Code::Unknown));
    assert_eq!(s.control().store_write("r", "1", 7, Fence::GreaterOrEqual), Ok(true));
    assert_eq!(s.control().store_write("r", "2", 6, Fence::GreaterOrEqual), Ok(false));
    assert_eq!(s.control().store_read("r"), Ok(Some((b"1".to_vec(), 7))));
    assert_eq!(s.control().store_read("none"), Ok(None));

    // Costs and checks.
    s.control().count_costs(true).unwrap();
    s.call(0, "EVAL \"return redis.call('get',KEYS[1])\" 1 k");
    let costs = s.control().costs().unwrap();
    assert_eq!((costs[0].runs, costs[0].calls, costs[0].keys), (1, 1, 1));
    s.control().clear_costs().unwrap();
    assert_eq!(s.control().costs().unwrap(), []);
    s.control().count_costs(false).unwrap();
    s.control().start_checks(Checks::default()).unwrap();
    assert_eq!(s.control().violations().unwrap(), []);
    assert_eq!(s.control().checked().unwrap().judged, 0);
    s.control().reset_checks().unwrap();
    s.control().stop_checks().unwrap();

    // Traces.
    s.control().reseed(5).unwrap();
    assert_eq!(s.control().finish_trace().map_err(code), Err(Code::State));
    s.control().start_trace().unwrap();
    assert_eq!(s.control().start_trace().map_err(code), Err(Code::State));
    s.call(0, "SET traced 1");
    s.control().mark("here").unwrap();
    let trace = s.control().finish_trace().unwrap();
    assert!(
        trace.starts_with(r#"{"k":"head""#) && trace.contains(r#""traced""#) && trace.contains("here"),
        "{trace}"
    );
    assert!(trace.trim_end().lines().last().is_some_and(|line| line.starts_with(r#"{"k":"end""#)), "{trace}");
}

#[test]
fn a_sim_can_be_controlled() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let clients = [sim.connect(0), sim.connect(1)];
    control_everything(&mut InProcess { sim, clients });
}

#[test]
fn a_server_can_be_controlled_in_the_same_way() {
    let server = start(manual().nodes(2));
    let clients = [Tcp::connect(&server, 0), Tcp::connect(&server, 1)];
    control_everything(&mut OverSockets { server, clients });
}

#[test]
fn gates_of_a_sim_hold_and_release() {
    let mut sim = Sim::new(SimOptions::default());
    let (a, b) = (sim.connect(0), sim.connect(0));
    let gate = sim.gate(Gate::new(cmd("incr"), At::Pre));
    sim.send(a, &[b"INCR", b"n"]);
    let too_few = sim.control().await_held(gate.id(), 2, Duration::MAX);
    assert_eq!(too_few.map_err(|error| error.code), Err(Code::State));
    sim.send(b, &[b"INCR", b"n"]);
    let tickets = sim.control().await_held(gate.id(), 2, Duration::ZERO).unwrap();
    assert_eq!((gate.held(), tickets.len()), (2, 2));
    sim.control().release(tickets[1]).unwrap();
    assert_eq!(sim.received(b), b":1\r\n");
    assert_eq!(sim.control().release(tickets[1]).map_err(|error| error.code), Err(Code::Unknown));
    drop(gate);
    sim.advance(0);
    assert_eq!(sim.received(a), b":2\r\n");
}

// ---- TestServer --------------------------------------------------------------------------------------------------

#[test]
fn a_server_has_a_port_for_each_node_and_knows_it() {
    let server = start(manual().nodes(3).version(Version::V7_2).config("requirepass", "p@ss").seed(3));
    assert_eq!(server.nodes(), 3);
    assert_eq!(server.url(1), format!("redis://:p%40ss@127.0.0.1:{}", server.port(1)));
    for node in 0..3 {
        let mut client = Tcp::connect(&server, node);
        assert!(client.call("PING").as_error().is_some_and(|text| text.starts_with("NOAUTH")));
        assert_eq!(client.call("AUTH p@ss"), ok());
        let port = client.call("CONFIG GET port");
        assert_eq!(port, Value::Array(vec![bulk("port"), bulk(&server.port(node).to_string())]));
        let info = client.call("INFO server");
        assert!(String::from_utf8_lossy(info.as_bytes().unwrap()).contains("redis_version:7.2"));
    }
}

#[test]
#[should_panic(expected = "there is no node 1")]
fn the_port_of_no_node_panics() {
    start(manual()).port(1);
}

#[test]
fn clocks_go_as_they_are_told() {
    let real = start(ServerOptions::default());
    let fast = start(ServerOptions::default().clock(ClockMode::Rate(1000.0)).wall_start_ms(5_000));
    for (server, lease_ms) in [(&real, 20), (&fast, 20_000)] {
        let mut client = Tcp::connect(server, 0);
        assert_eq!(client.call(&format!("SET lock a PX {lease_ms}")), ok());
        thread::sleep(Duration::from_millis(60));
        assert_eq!(client.call("GET lock"), Value::Nil);
    }
    let still = start(manual().wall_start_ms(5_000));
    let mut client = Tcp::connect(&still, 0);
    assert_eq!(client.call("SET lock a PX 1"), ok());
    thread::sleep(Duration::from_millis(60));
    assert_eq!(client.call("GET lock"), bulk("a"));
    assert_eq!(client.call("TIME"), Value::Array(vec![bulk("5"), bulk("0")]));
    // A clock that is moved wakes who waits for time to pass.
    client.send("BLPOP list 10");
    let control = &mut still.control();
    while !control.timers(10).unwrap().iter().any(|timer| timer.kind == "blocked") {}
    control.advance(10_000).unwrap();
    assert_eq!(client.receive(), Some(Value::Nil));
}

#[test]
fn a_server_may_listen_on_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("redlatch-facade-{}.sock", std::process::id()));
    let server = start(manual().unix_socket(&path));
    assert_eq!(server.unix_socket(), Some(path.as_path()));
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    drop(server);
    assert!(!path.exists());
    let taken = std::env::temp_dir().join("redlatch-no-such-folder").join("socket");
    assert!(matches!(TestServer::start(manual().unix_socket(taken)), Err(StartError::Io(_))));
}

#[test]
fn two_servers_of_a_process_know_nothing_of_each_other() {
    let (one, two) = (start(manual()), start(manual()));
    let (mut a, mut b) = (Tcp::connect(&one, 0), Tcp::connect(&two, 0));
    assert_eq!(a.call("SET k one"), ok());
    one.control().advance(5_000).unwrap();
    assert_eq!(b.call("GET k"), Value::Nil);
    assert_eq!(two.control().now().unwrap().mono_ms, 0);
    drop(one);
    assert_eq!(a.receive(), None);
    assert_eq!(b.call("PING"), Value::Status("PONG".to_owned()));
}

#[test]
fn any_thread_may_control_a_server() {
    let server = start(manual());
    let gate = server.control().add_gate(Gate::new(cmd("incr"), At::Pre)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.control().await_held(gate, 2, Duration::from_secs(10)));
        let clients: Vec<_> =
            (0..2).map(|_| scope.spawn(|| Tcp::connect(&server, 0).call("INCR n").as_int())).collect();
        let tickets = waiting.join().unwrap().unwrap();
        assert_eq!(tickets.len(), 2);
        assert_eq!(server.control().step(1), Ok(1));
        server.control().remove_gate(gate).unwrap();
        let mut counted: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        counted.sort();
        assert_eq!(counted, [Some(1), Some(2)]);
    });
    let began = Instant::now();
    let gate = server.control().gate(Gate::new(cmd("incr"), At::Pre)).unwrap();
    let late = server.control().await_held(gate.id(), 1, Duration::from_millis(50));
    assert_eq!(late.map_err(|error| error.code), Err(Code::State));
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_trace_of_a_server_is_whole_even_if_it_takes_a_while() {
    let server = start(manual());
    server.control().start_trace().unwrap();
    let mut client = Tcp::connect(&server, 0);
    assert_eq!(client.call("SET first 1"), ok());
    // Longer than the time after which the trace of a server with a file is written to it.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(client.call("SET second 2"), ok());
    let trace = server.control().finish_trace().unwrap();
    assert!(trace.contains("first") && trace.contains("second"), "{trace}");
}

/// Drops a server and checks that it is gone soon.
fn drop_soon(server: TestServer) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        drop(server);
        tell.send(()).unwrap();
    });
    told.recv_timeout(SOON).expect("the server stops soon");
}

#[test]
fn a_server_stops_while_a_script_loops() {
    for clock in [ClockMode::Manual, ClockMode::Real] {
        let server = start(ServerOptions::default().clock(clock).config("busy-reply-threshold", "100000000"));
        let mut client = Tcp::connect(&server, 0);
        client.send("EVAL \"while true do end\" 0");
        thread::sleep(Duration::from_millis(100));
        drop_soon(server);
        assert_eq!(client.receive(), None);
    }
    // And when the script counts as busy, so that others are served in between.
    let server = start(ServerOptions::default().config("busy-reply-threshold", "1"));
    let (mut client, mut other) = (Tcp::connect(&server, 0), Tcp::connect(&server, 0));
    client.send("EVAL \"while true do end\" 0");
    while !other.call("PING").as_error().is_some_and(|text| text.starts_with("BUSY")) {}
    assert!(server.control().now().is_ok());
    drop_soon(server);
}

#[test]
fn a_server_stops_while_clients_are_blocked_or_held() {
    let server = start(manual());
    let _gate = server.control().add_gate(Gate::new(cmd("get"), At::Pre)).unwrap();
    let guard = server.control().gate(Gate::new(cmd("incr"), At::Post)).unwrap();
    let mut clients = [Tcp::connect(&server, 0), Tcp::connect(&server, 0), Tcp::connect(&server, 0)];
    for (client, line) in clients.iter_mut().zip(["BLPOP list 0", "GET k", "INCR n"]) {
        client.send(line);
    }
    let waits = guard.id();
    server.control().await_held(waits, 1, Duration::from_secs(10)).unwrap();
    let (tell, told) = mpsc::channel();
    let mut control = server.control();
    // Another thread waits for a ticket that never comes.
    let addr = server.addr(0);
    thread::scope(|scope| {
        let held = &server;
        scope.spawn(move || {
            let found = held.control().await_held(waits, 5, Duration::from_millis(200));
            tell.send(found.map_err(|error| error.code)).unwrap();
        });
    });
    assert_eq!(told.recv().unwrap(), Err(Code::State));
    drop_soon(server);
    assert!(clients.iter_mut().all(|client| client.receive().is_none()));
    assert!(TcpStream::connect(addr).is_err(), "the port is free");

    // What is left of it says that it is gone, and waits for nothing.
    assert_eq!(control.now().map_err(|error| error.code), Err(Code::Stopped));
    assert_eq!(control.await_held(waits, 1, SOON).map_err(|error| error.code), Err(Code::Stopped));
    assert_eq!((guard.held(), guard.id()), (0, waits));
    drop(guard);
}

#[test]
fn a_server_that_a_client_shuts_down_is_dropped_like_any_other() {
    let server = start(manual());
    let mut client = Tcp::connect(&server, 0);
    client.send("SHUTDOWN NOSAVE");
    assert_eq!(client.receive(), None);
    while server.control().now().is_ok() {}
    drop_soon(server);
}

#[test]
fn a_server_and_its_errors_may_cross_threads() {
    fn is_shared<T: Send + Sync>() {}
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_shared::<TestServer>();
    is_error::<SimError>();
    is_error::<CallError>();
    is_error::<StartError>();
    is_error::<OptionsError>();
}
