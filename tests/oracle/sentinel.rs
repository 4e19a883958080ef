//! Sentinels side by side with redis-sentinel: a master, two replicas and three sentinels as processes, and the same as the
//! nodes of a world.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redlatch_core::node::Config;
use redlatch_core::node::sentinel::SentinelSettings;
use redlatch_core::topology::Topology;
use redlatch_core::version::Version;
use redlatch_core::world::{ClockMode, ConnId, World, WorldOptions};

use crate::support::client::Client;
use crate::support::oracle;
use crate::support::server::free_port;

const TOPOLOGY: Topology = Topology::Sentinel { replicas: 2, sentinels: 3 };
const DOWN_AFTER: &str = "down-after-milliseconds mymaster 1000";

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The real servers; the master first, then the replicas, then the sentinels.
struct Real {
    processes: Vec<Process>,
    ports: Vec<u16>,
}

impl Real {
    fn start(release: &str) -> Option<Real> {
        let program = oracle::server(&format!("redis-{release}"))?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("sentinels-{release}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let ports: Vec<u16> = (0..6).map(|_| free_port()).collect();
        let spawn = |node: usize, args: &[String]| {
            let dir = folder.join(node.to_string());
            std::fs::create_dir_all(&dir).expect("a folder");
            let child = Command::new(&program)
                .args(args)
                .args(["--dir", &dir.display().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            Process(child.expect("a server starts"))
        };
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let mut processes = Vec::new();
        for node in 0..3 {
            let mut args = words(format!("--port {} --save", ports[node]));
            args.push(String::new());
            if node > 0 {
                args.extend(words(format!("--replicaof 127.0.0.1 {}", ports[0])));
            }
            processes.push(spawn(node, &args));
            await_port(ports[node]);
        }
        until("the replicas follow", || {
            text(&Client::connect(ports[0]).call(&["INFO", "replication"])).matches("state=online").count()
                == 2
        });
        for node in 3..6 {
            let path = folder.join(format!("{node}.conf"));
            let monitor = format!("sentinel monitor mymaster 127.0.0.1 {} 2", ports[0]);
            let lines = format!("port {}\n{monitor}\nsentinel {DOWN_AFTER}\n", ports[node]);
            std::fs::write(&path, lines).expect("a file");
            processes.push(spawn(node, &[path.display().to_string(), "--sentinel".to_owned()]));
            await_port(ports[node]);
        }
        for port in &ports[3..] {
            until("the sentinels know one another", || {
                let mut client = Client::connect(*port);
                let info = text(&client.call(&["INFO", "sentinel"]));
                let mut is_connected =
                    |what| !text(&client.call(&["SENTINEL", what, "mymaster"])).contains("disconnected");
                info.contains("slaves=2,sentinels=3") && is_connected("REPLICAS") && is_connected("SENTINELS")
            });
        }
        Some(Real { processes, ports })
    }
}

fn await_port(port: u16) {
    until("a server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same as nodes of a world.
struct Ours {
    world: World,
    ports: Vec<u16>,
}

impl Ours {
    fn start(release: Version) -> Ours {
        let config = |node: usize| {
            let mut config = Config::new(release);
            config.set_at_start("port", (40_001 + node).to_string().as_bytes()).expect("a port");
            if node >= 3 {
                let mut settings = SentinelSettings::default();
                let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
                settings.read_line(&words("monitor mymaster 127.0.0.1 40001 2")).expect("a line");
                settings.read_line(&words(DOWN_AFTER)).expect("a line");
                config.sentinel = Some(Box::new(settings));
            }
            config
        };
        let world = World::new(WorldOptions {
            seed: 1,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: (0..6).map(config).collect(),
            topology: Some(TOPOLOGY),
        });
        Ours { world, ports: (40_001..40_007).collect() }
    }

    fn open(&mut self, node: usize) -> ConnId {
        self.world.open(node, "127.0.0.1:50000".to_owned(), "127.0.0.1:1".to_owned())
    }

    fn call(&mut self, conn: ConnId, words: &[&str]) -> Vec<u8> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.world.request(conn, &words);
        self.world.advance(0);
        self.read(conn)
    }

    fn read(&mut self, conn: ConnId) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.world.take_output(conn, &mut bytes);
        bytes
    }
}

/// The fields whose values differ from moment to moment, or that real sentinels learn late.
const UNSTABLE: [&str; 13] = [
    "runid",
    "last-ping-sent",
    "last-ok-ping-reply",
    "last-ping-reply",
    "info-refresh",
    "role-reported-time",
    "master-link-down-time",
    "master-link-status",
    "slave-repl-offset",
    "last-hello-message",
    "s-down-time",
    "name",
    "link-pending-commands",
];

/// Returns the lines of a reply without lengths, ports, identifiers and times.
fn normalized(reply: &[u8], ports: &[u16]) -> Vec<String> {
    let mut text = text(reply);
    for (node, port) in ports.iter().enumerate() {
        let part = ["MASTER", "REPLICA", "REPLICA"].get(node).unwrap_or(&"SENTINEL");
        text = text.replace(&port.to_string(), part);
    }
    let mut lines: Vec<String> = Vec::new();
    let is_id = |line: &str| line.len() == 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    for line in text.split("\r\n").filter(|line| !line.starts_with('$')) {
        let is_unstable = lines.last().is_some_and(|name| UNSTABLE.contains(&name.as_str()));
        // Help is told in other words.
        let is_prose = line.starts_with("+    ");
        if !is_prose {
            lines.push(match is_unstable || is_id(line) {
                true => "…".to_owned(),
                false => line.to_owned(),
            });
        }
    }
    lines
}

const REQUESTS: &[&str] = &[
    "PING",
    "PING x",
    "ROLE",
    "SENTINEL MASTERS",
    "SENTINEL MASTER mymaster",
    "SENTINEL MASTER x",
    "SENTINEL REPLICAS mymaster",
    "SENTINEL SLAVES x",
    "SENTINEL SENTINELS mymaster",
    "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster",
    "SENTINEL GET-MASTER-ADDR-BY-NAME x",
    "SENTINEL CKQUORUM mymaster",
    "SENTINEL CKQUORUM x",
    "SENTINEL PENDING-SCRIPTS",
    "SENTINEL MYID",
    "SENTINEL FLUSHCONFIG",
    "SENTINEL INFO-CACHE",
    "SENTINEL SIMULATE-FAILURE",
    "SENTINEL SIMULATE-FAILURE x",
    "SENTINEL SIMULATE-FAILURE help",
    "SENTINEL CONFIG GET *",
    "SENTINEL CONFIG GET announce*",
    "SENTINEL CONFIG GET nosuch",
    "SENTINEL CONFIG GET",
    "SENTINEL CONFIG SET",
    "SENTINEL CONFIG SET foo bar",
    "SENTINEL CONFIG SET announce-port x",
    "SENTINEL CONFIG SET resolve-hostnames maybe",
    "SENTINEL CONFIG SET sentinel-user u",
    "SENTINEL CONFIG",
    "SENTINEL CONFIG FOO x",
    "SENTINEL DEBUG",
    "SENTINEL DEBUG info-period",
    "SENTINEL DEBUG info-period 0",
    "SENTINEL DEBUG foo 3",
    "SENTINEL DEBUG ask-period 1000",
    "SENTINEL FOO",
    "SENTINEL",
    "SENTINEL MONITOR a b",
    "SENTINEL MONITOR a 127.0.0.1 abc 1",
    "SENTINEL MONITOR a 127.0.0.1 6379 0",
    "SENTINEL MONITOR a 127.0.0.1 6379 x",
    "SENTINEL MONITOR a notahost.invalid 6379 1",
    "SENTINEL MONITOR mymaster 127.0.0.1 6379 1",
    "SENTINEL REMOVE x",
    "SENTINEL SET x quorum 1",
    "SENTINEL SET mymaster",
    "SENTINEL SET mymaster quorum",
    "SENTINEL SET mymaster quorum 0",
    "SENTINEL SET mymaster quorum abc",
    "SENTINEL SET mymaster foo 1",
    "SENTINEL SET mymaster down-after-milliseconds 0",
    "SENTINEL SET mymaster notification-script /nonexistent",
    "SENTINEL SET mymaster parallel-syncs 0",
    "SENTINEL SET mymaster parallel-syncs 1",
    "SENTINEL SET mymaster auth-pass secret",
    "SENTINEL SET mymaster auth-user u",
    "SENTINEL SET mymaster failover-timeout x",
    "SENTINEL SET mymaster rename-command GET a",
    "SENTINEL SET mymaster rename-command GET",
    "SENTINEL SET mymaster master-reboot-down-after-period 0",
    "SENTINEL SET mymaster quorum 2 down-after-milliseconds",
    "SENTINEL RESET nosuch*",
    "SENTINEL RESET",
    "SENTINEL FAILOVER x",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 x *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 1 2",
    "SENTINEL HELP",
    "INFO sentinel",
    "INFO nosuch",
    "COMMAND COUNT",
    "PUBLISH a b",
    "GET a",
    "SELECT 1",
    "CONFIG GET *",
    "CLIENT GETNAME",
    "ACL WHOAMI",
    "AUTH x",
    "RESET",
    "MULTI",
    "EVAL 1 0",
    "SLAVEOF no one",
    "QUIT",
    "SENTINEL MONITOR b@c 127.0.0.1 6379 1",
    "SENTINEL REMOVE b@c",
];

fn compare_replies(real: &Real, ours: &mut Ours) {
    let mut theirs = Client::connect(real.ports[3]);
    let conn = ours.open(3);
    let (mut their_events, our_events) = (Client::connect(real.ports[3]), ours.open(3));
    their_events.call(&["PSUBSCRIBE", "*"]);
    ours.call(our_events, &["PSUBSCRIBE", "*"]);
    for request in REQUESTS {
        let words: Vec<&str> = request.split(' ').collect();
        let expected = normalized(&theirs.call(&words), &real.ports);
        assert_eq!(normalized(&ours.call(conn, &words), &ours.ports), expected, "{request}");
    }
    let expected = normalized(&their_events.drain(Duration::from_millis(200)), &real.ports);
    assert_eq!(normalized(&ours.read(our_events), &ours.ports), expected, "the events of these requests");
    for node in 0..3 {
        // The order of the lines counts; offsets and identifiers differ.
        let names = |reply: Vec<u8>| -> Vec<String> {
            let text = text(&reply);
            let shape = text.lines().map(|line| line.split([':', '=']).next().unwrap_or_default().to_owned());
            shape.filter(|name| !name.starts_with('$')).collect()
        };
        let expected = names(Client::connect(real.ports[node]).call(&["INFO", "replication"]));
        let conn = ours.open(node);
        assert_eq!(names(ours.call(conn, &["INFO", "replication"])), expected, "INFO of node {node}");
    }
}

/// Returns the names of the events of a failover at its leader, without those whose moment depends on when it asks the others.
fn failover_events(events: &[u8]) -> Vec<String> {
    let text = text(events);
    let messages = text.split("*4\r\n").skip(1);
    let names = messages.filter_map(|message| message.split("\r\n").nth(5).map(str::to_owned));
    names.filter(|name| !name.ends_with("role-change") && name != "-odown").collect()
}

fn compare_failovers(real: &mut Real, ours: &mut Ours) {
    let is_over = |events: &[u8]| {
        let names = failover_events(events);
        names.iter().any(|name| name == "+switch-master")
            && names.iter().filter(|name| *name == "+slave").count() == 2
    };
    let mut listeners: Vec<Client> = real.ports[3..].iter().map(|&port| Client::connect(port)).collect();
    listeners.iter_mut().for_each(|listener| drop(listener.call(&["PSUBSCRIBE", "*"])));
    let our_listeners: Vec<ConnId> = (3..6).map(|node| ours.open(node)).collect();
    our_listeners.iter().for_each(|&conn| drop(ours.call(conn, &["PSUBSCRIBE", "*"])));
    drop(real.processes.remove(0));
    let mut seen = vec![Vec::new(); 3];
    let began = Instant::now();
    while !seen.iter().all(|events| is_over(events)) {
        assert!(began.elapsed() < Duration::from_secs(30), "no failover of the real servers");
        for (listener, events) in listeners.iter_mut().zip(&mut seen) {
            events.extend(listener.drain(Duration::from_millis(20)));
        }
    }
    ours.world.stop_node(0, false, None);
    ours.world.advance(3_000);
    let our_seen: Vec<Vec<u8>> = our_listeners.iter().map(|&conn| ours.read(conn)).collect();
    let leader_of = |seen: &[Vec<u8>]| -> Vec<String> {
        let all = seen.iter().map(|events| failover_events(events));
        let found = all.into_iter().find(|names| names.iter().any(|name| name == "+elected-leader"));
        let mut names = found.expect("a leader");
        let last = names.iter().rposition(|name| name == "+slave").expect("a replica");
        names.truncate(last + 1);
        names
    };
    assert_eq!(leader_of(&our_seen), leader_of(&seen));
}

#[test]
fn sentinels_answer_and_fail_over_as_real_ones() {
    let Some(mut real) = Real::start("7.4") else { return };
    let mut ours = Ours::start(Version::V7_4);
    compare_replies(&real, &mut ours);
    compare_failovers(&mut real, &mut ours);
}

#[test]
fn sentinels_of_other_releases_answer_as_real_ones() {
    for (release, version) in [("7.0", Version::V7_0), ("8.6", Version::V8_6)] {
        let Some(real) = Real::start(release) else { continue };
        compare_replies(&real, &mut Ours::start(version));
    }
}
