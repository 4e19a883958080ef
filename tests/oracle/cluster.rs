//! A cluster of Redlatch's nodes in one process, beside a cluster of real servers.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redlatch_core::wire::request::split_words;

use crate::support::client::Client;
use crate::support::server::{Server, free_port};

const STEPS: &str = include_str!("cluster.txt");

/// How long the nodes of a real cluster may take to agree.
const PATIENCE: Duration = Duration::from_secs(20);

const NODES: usize = 4;

/// The nodes of a cluster, by their ports.
struct Cluster {
    ports: [u16; NODES],
    ids: Vec<String>,
    clients: Vec<Client>,
    /// Further connections, by the names in the steps.
    others: BTreeMap<String, Client>,
    _servers: Vec<Server>,
}

impl Cluster {
    /// Returns a cluster of three masters and a replica of the first.
    fn form(ports: [u16; NODES], bus_ports: [u16; NODES], servers: Vec<Server>) -> Cluster {
        let clients = ports.map(Client::connect).into();
        let mut cluster =
            Cluster { ports, ids: Vec::new(), clients, others: BTreeMap::new(), _servers: servers };
        for (node, (first, last)) in [(0, 5460), (5461, 10922), (10923, 16383)].into_iter().enumerate() {
            cluster.ask(node, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        for node in 0..NODES {
            cluster.ask(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", node + 1));
            let id = cluster.ask(node, "CLUSTER MYID");
            cluster.ids.push(id.lines().nth(1).unwrap_or_default().to_owned());
        }
        for (port, bus) in ports.into_iter().zip(bus_ports).skip(1) {
            cluster.ask(0, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        for node in 0..NODES {
            cluster.ask_until(node, "CLUSTER INFO", |info| {
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:4")
            });
            cluster.ask_until(node, "CLUSTER NODES", |nodes| !nodes.contains("handshake"));
        }
        let master = cluster.ids[0].clone();
        cluster.ask(3, &format!("CLUSTER REPLICATE {master}"));
        cluster.ask_until(3, "INFO replication", |info| info.contains("master_link_status:up"));
        for node in 0..NODES {
            cluster.ask_until(node, "CLUSTER NODES", |nodes| nodes.contains(&format!("slave {master}")));
        }
        cluster
    }

    fn ask(&mut self, node: usize, command: &str) -> String {
        let words = split_words(command.as_bytes()).unwrap();
        String::from_utf8_lossy(&self.clients[node].call(&words)).into_owned()
    }

    /// Repeats a request until its reply is as wanted. Returns the last reply.
    fn ask_until(&mut self, node: usize, command: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let reply = self.ask(node, command);
            if is_wanted(&reply) || began.elapsed() > PATIENCE {
                return reply;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Replaces the names in a step by the ids and ports of this cluster.
    fn fill_in(&self, step: &str) -> String {
        (0..NODES).fold(step.to_owned(), |step, node| {
            let step = step.replace(&format!("ID{node}"), &self.ids[node]);
            step.replace(&format!("PORT{node}"), &self.ports[node].to_string())
        })
    }

    /// Replaces ids and ports in a reply by their names. Lengths of strings differ with the ports.
    fn normal(&self, reply: &str) -> String {
        (0..NODES).fold(reply.to_owned(), |reply, node| {
            let reply = reply.replace(&self.ids[node], &format!("ID{node}"));
            reply.replace(&self.ports[node].to_string(), &format!("PORT{node}"))
        })
    }

    fn other(&mut self, name: &str) -> &mut Client {
        let node: usize = name[1..].parse().expect("a letter and a node");
        let port = self.ports[node];
        self.others.entry(name.to_owned()).or_insert_with(|| Client::connect(port))
    }

    /// Carries out a step. Returns what is compared.
    fn step(&mut self, step: &str) -> String {
        if let Some((request, wanted)) = step.strip_prefix("? ").and_then(|step| step.split_once(" => ")) {
            let (node, command) = request.split_once(' ').expect("a node and a command");
            let (command, wanted) = (self.fill_in(command), self.fill_in(wanted));
            let reply = self.ask_until(node.parse().unwrap(), &command, |reply| reply.contains(&wanted));
            return if reply.contains(&wanted) { String::new() } else { format!("never: {reply}") };
        }
        let (name, command) = step.split_once(' ').unwrap_or((step, ""));
        let words = split_words(self.fill_in(command).as_bytes()).unwrap();
        let reply = match (name.parse::<usize>(), name.strip_suffix('<'), name.strip_suffix('!')) {
            (Ok(node), ..) => self.clients[node].call(&words),
            (_, Some(name), _) => self.other(name).receive(),
            (_, _, Some(name)) => {
                self.other(name).send(&words);
                // The next step may be for another node, which has to find this request there.
                sleep(Duration::from_millis(100));
                Vec::new()
            }
            _ => self.other(name).call(&words),
        };
        self.normal(&String::from_utf8_lossy(&reply))
    }
}

const SETTINGS: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];

/// Returns a free port whose bus port exists.
fn bus_capable_port() -> u16 {
    std::iter::repeat_with(free_port).take(1000).find(|&port| port < 55_000).expect("a free port below 55000")
}

fn real(release: &str) -> Option<Cluster> {
    let bus_ports = [(); NODES].map(|()| bus_capable_port());
    let mut servers = Vec::new();
    for bus_port in bus_ports {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("cluster-{}-{release}-{bus_port}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for nodes.conf");
        let (folder, bus_port) = (folder.display().to_string(), bus_port.to_string());
        let own = ["--cluster-port", &bus_port, "--dir", &folder, "--repl-diskless-sync-delay", "0"];
        servers.push(Server::redis(release, &[&SETTINGS[..], &own].concat())?);
    }
    let ports = std::array::from_fn(|node| servers[node].port);
    Some(Cluster::form(ports, bus_ports, servers))
}

fn ours(release: &str) -> Cluster {
    let others = [(); NODES - 1].map(|()| bus_capable_port().to_string());
    let mut args = SETTINGS.to_vec();
    others.iter().for_each(|port| args.extend(["--port", port]));
    let server = Server::redlatch(release, &args);
    let ports: Vec<u16> =
        std::iter::once(server.port).chain(others.iter().map(|port| port.parse().unwrap())).collect();
    let ports: [u16; NODES] = ports.try_into().unwrap();
    Cluster::form(ports, ports, vec![server])
}

fn compare(release: &str) {
    let Some(mut real) = real(release) else { return };
    let mut ours = ours(release);
    for step in STEPS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expected, found) = (real.step(step), ours.step(step));
        assert_eq!(found, expected, "{release}: {step}");
    }
}

#[test]
fn a_cluster_answers_like_redis_7_0() {
    compare("7.0");
}

#[test]
fn a_cluster_answers_like_redis_7_4() {
    compare("7.4");
}

#[test]
fn a_cluster_answers_like_redis_8_6() {
    compare("8.6");
}
