//! MIGRATE between two nodes of a process, between two real servers, and between Redlatch and a real server.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use redlatch_core::wire::request::split_words;

use crate::support::client::Client;
use crate::support::server::{Server, free_port};

/// The number of the server, and the command. `PORT` is the port of the other server.
const STEPS: &str = r#"
0 SET k v
0 SET t v PX 100000
0 RPUSH l a b c
0 MIGRATE 127.0.0.1 PORT k 0 1000
1 GET k
0 GET k
0 MIGRATE 127.0.0.1 PORT "" 3 1000 COPY KEYS t l nokey
1 DBSIZE
1 SELECT 3
1 LRANGE l 0 -1
1 TTL t
1 SELECT 0
0 LRANGE l 0 -1
0 MIGRATE 127.0.0.1 PORT l 3 1000
0 MIGRATE 127.0.0.1 PORT l 3 1000 REPLACE
0 SET k v2
0 SET j v2
0 MIGRATE 127.0.0.1 PORT "" 0 1000 KEYS k j
0 EXISTS k j
0 MIGRATE 127.0.0.1 PORT k 99 1000
1 CONFIG SET requirepass secret
0 MIGRATE 127.0.0.1 PORT k 0 1000 REPLACE AUTH2 default secret
0 SET j v3
0 MIGRATE 127.0.0.1 PORT "" 0 1000 REPLACE AUTH wrong KEYS j k
0 EXISTS j
0 MIGRATE 127.0.0.1 PORT "" 99 1000 AUTH secret KEYS j k
0 EXISTS j
1 AUTH secret
1 GET k
0 DBSIZE
0 WATCH w
0 SET w 1
0 MIGRATE 127.0.0.1 PORT w 0 1000 AUTH secret
0 MULTI
0 PING
0 EXEC
"#;

fn replies(ports: [u16; 2]) -> Vec<(String, String)> {
    let mut clients = ports.map(Client::connect);
    let steps = STEPS.lines().filter(|line| !line.is_empty()).map(|line| {
        let (server, command) = line.split_at(1);
        let command = command.replace("PORT", &ports[1].to_string());
        let words = split_words(command.trim().as_bytes()).unwrap();
        let reply = clients[server.parse::<usize>().unwrap()].call(&words);
        (line.to_owned(), String::from_utf8_lossy(&reply).into_owned())
    });
    steps.collect()
}

/// Returns what MIGRATE says of servers that are not there, and of one that is silent.
fn failures(server: &Server, silent: &str) -> Vec<String> {
    let mut client = server.connect();
    client.call(&["SET", "k", "v"]);
    let targets = [
        ("127.0.0.1", silent),
        ("127.0.0.1", "1"),
        ("localhost", "1"),
        ("127.0.0.1", "x"),
        ("no.invalid", "1"),
    ];
    let mut said: Vec<String> = targets
        .iter()
        .map(|(host, port)| client.call(&["MIGRATE", host, port, "k", "0", "100"]))
        .map(|reply| String::from_utf8_lossy(&reply).into_owned())
        .collect();
    said.push(String::from_utf8_lossy(&client.call(&["GET", "k"])).into_owned());
    said
}

#[test]
fn servers_that_do_not_answer_are_errors() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = listener.local_addr().expect("its address").port().to_string();
    for release in ["7.0", "8.6", "valkey-9.1"] {
        let Some(theirs) = Server::redis(release, &[]) else { return };
        assert_eq!(
            failures(&Server::redlatch(release, &[]), &silent),
            failures(&theirs, &silent),
            "{release}"
        );
    }
}

#[test]
fn nodes_migrate_keys_as_servers_do() {
    for release in ["7.0", "7.4", "8.6", "valkey-9.1"] {
        let other = free_port();
        let ours = Server::redlatch(release, &["--port", &other.to_string()]);
        let (Some(one), Some(two)) = (Server::redis(release, &[]), Server::redis(release, &[])) else {
            return;
        };
        let expected = replies([one.port, two.port]);
        assert_eq!(replies([ours.port, other]), expected, "{release}");
        let ours = || Server::redlatch(release, &[]);
        let theirs = || Server::redis(release, &[]).expect("it has started before");
        let (from, to) = (ours(), theirs());
        assert_eq!(replies([from.port, to.port]), expected, "from Redlatch to {release}");
        let (from, to) = (theirs(), ours());
        assert_eq!(replies([from.port, to.port]), expected, "from {release} to Redlatch");
    }
}
