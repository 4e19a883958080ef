//! Clusters of a few nodes on one clock.

use std::rc::Rc;

use crate::image::Reader;
use crate::node::{Config, ConnId};
use crate::rng::Rng;
use crate::slots::hash_slot;
use crate::stages::NoStages;
use crate::topology::Topology;
use crate::version::Version;
use crate::world::{ClockMode, World, WorldOptions};

struct Cluster {
    world: World,
    conns: Vec<ConnId>,
}

impl Cluster {
    fn start(masters: usize, replicas: usize) -> Cluster {
        let topology = Topology::Cluster { masters, replicas };
        let mut cluster = Cluster::of(topology.parts().len(), Some(topology), Version::V7_4);
        cluster.conns = (0..cluster.world.nodes().len()).map(|node| cluster.connect(node)).collect();
        cluster
    }

    fn of(nodes: usize, topology: Option<Topology>, version: Version) -> Cluster {
        let node = |node: usize| {
            let mut config = Config::new(version);
            config.set_at_start("port", (7000 + node).to_string().as_bytes()).unwrap();
            config.set_at_start("cluster-enabled", b"yes").unwrap();
            config.set_at_start("cluster-node-timeout", b"2000").unwrap();
            config
        };
        let options = WorldOptions {
            seed: 1,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: (0..nodes).map(node).collect(),
            topology,
        };
        Cluster { world: World::new(options), conns: Vec::new() }
    }

    fn connect(&mut self, node: usize) -> ConnId {
        self.world.open(node, "127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned())
    }

    fn ask_on(&mut self, conn: ConnId, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        self.world.request(conn, &words);
        self.output(conn)
    }

    fn output(&mut self, conn: ConnId) -> String {
        let mut bytes = Vec::new();
        self.world.take_output(conn, &mut bytes);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    fn ask(&mut self, node: usize, request: &str) -> String {
        let conn = self.connect(node);
        let reply = self.ask_on(conn, request);
        self.world.close(conn);
        reply
    }

    fn state(&mut self, node: usize) -> bool {
        self.world.nodes()[node].cluster.as_ref().unwrap().is_ok
    }

    fn roles(&self) -> Vec<bool> {
        self.world.nodes().iter().map(|node| node.cluster.as_ref().unwrap().me().is_master()).collect()
    }
}

/// A key in the slot of the first, second or third master of three.
const KEYS: [&str; 3] = ["bar", "hello", "foo"];

#[test]
fn a_complete_cluster_serves_at_once_and_needs_no_timers() {
    let mut cluster = Cluster::start(3, 1);
    assert_eq!(KEYS.map(|key| hash_slot(key.as_bytes())), [5061, 866, 12182]);
    assert!((0..6).all(|node| cluster.state(node)));
    assert_eq!(cluster.ask(0, "SET bar 1"), "+OK");
    assert_eq!(cluster.ask(0, "SET foo 1"), "-MOVED 12182 127.0.0.1:7002");
    assert_eq!(cluster.ask(3, "GET bar"), "-MOVED 5061 127.0.0.1:7000");
    assert_eq!(cluster.ask(0, "MGET foo bar"), "-CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(cluster.world.next_timer(), None);
    let replica = cluster.conns[3];
    assert_eq!(cluster.ask_on(replica, "READONLY"), "+OK");
    assert_eq!(cluster.ask_on(replica, "GET bar"), "$1\r\n1");
}

#[test]
fn a_replica_takes_over_and_the_old_master_follows_it() {
    let mut cluster = Cluster::start(3, 1);
    cluster.ask(0, "SET bar 1");
    cluster.world.stop_node(0, false, None);
    cluster.world.advance(1999);
    assert!(cluster.state(1));
    cluster.world.advance(1);
    assert!(!cluster.state(1));
    assert_eq!(cluster.ask(1, "GET bar"), "-CLUSTERDOWN The cluster is down");
    cluster.world.advance(1000);
    assert_eq!(cluster.roles(), [true, true, true, true, false, false]);
    assert!(cluster.state(1));
    assert_eq!(cluster.ask(1, "GET bar"), "-MOVED 5061 127.0.0.1:7003");
    assert_eq!(cluster.ask(3, "GET bar"), "$1\r\n1");
    cluster.world.start_node(0);
    assert_eq!(cluster.roles(), [false, true, true, true, false, false]);
    cluster.world.advance(60_000);
    assert!((0..6).all(|node| cluster.state(node)));
    assert_eq!(cluster.world.next_timer(), None);
}

#[test]
fn a_master_in_the_minority_stops_serving_and_follows_its_replica_later() {
    let mut cluster = Cluster::start(3, 1);
    for other in 1..6 {
        cluster.world.set_partition(0, other, true);
        cluster.world.set_partition(other, 0, true);
    }
    assert_eq!(cluster.ask(0, "SET bar 2"), "+OK");
    cluster.world.advance(3000);
    assert_eq!(cluster.ask(0, "SET bar 3"), "-CLUSTERDOWN The cluster is down");
    assert_eq!(cluster.ask(3, "SET bar 4"), "+OK");
    cluster.world.heal();
    assert_eq!(cluster.roles(), [false, true, true, true, false, false]);
    cluster.world.advance(10_000);
    assert_eq!(cluster.ask(0, "SET bar 5"), "-MOVED 5061 127.0.0.1:7003");
    assert!((0..6).all(|node| cluster.state(node)));
}

#[test]
fn failovers_by_command_take_one_event() {
    for (kind, lost) in
        [("CLUSTER FAILOVER", 0), ("CLUSTER FAILOVER FORCE", 0), ("CLUSTER FAILOVER TAKEOVER", 0)]
    {
        let mut cluster = Cluster::start(3, 1);
        cluster.ask(0, "SET bar 1");
        assert_eq!(cluster.ask(3, kind), "+OK");
        assert_eq!(cluster.roles(), [false, true, true, true, false, false], "{kind}");
        assert_eq!(cluster.ask(0, "SET bar 2"), "-MOVED 5061 127.0.0.1:7003");
        assert_eq!(cluster.ask(3, "SET bar 2"), "+OK");
        assert_eq!(cluster.ask(3, "INFO replication").contains("connected_slaves:1"), lost == 0);
        cluster.world.advance(60_000);
        assert_eq!(cluster.world.next_timer(), None);
    }
}

#[test]
fn nodes_meet_and_share_slots() {
    let mut cluster = Cluster::of(3, None, Version::V7_0);
    assert_eq!(cluster.ask(0, "GET foo"), "-CLUSTERDOWN Hash slot not served");
    for node in 0..3 {
        let (first, last) = [(0, 5460), (5461, 10922), (10923, 16383)][node];
        assert_eq!(cluster.ask(node, &format!("CLUSTER ADDSLOTSRANGE {first} {last}")), "+OK");
        assert_eq!(cluster.ask(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", node + 1)), "+OK");
    }
    assert_eq!(cluster.ask(0, "CLUSTER MEET 127.0.0.1 7001"), "+OK");
    assert_eq!(cluster.ask(0, "CLUSTER MEET 127.0.0.1 7002"), "+OK");
    cluster.world.advance(5000);
    assert!((0..3).all(|node| cluster.state(node)));
    assert_eq!(cluster.ask(0, "GET foo"), "-MOVED 12182 127.0.0.1:7002");
    assert_eq!(cluster.ask(1, "GET foo"), "-MOVED 12182 127.0.0.1:7002");
}

#[test]
fn a_slot_moves_with_its_keys() {
    let mut cluster = Cluster::start(2, 0);
    let ids = [0, 1].map(|node| cluster.ask(node, "CLUSTER MYID").split_once("\r\n").unwrap().1.to_owned());
    let (a, b) = (cluster.conns[0], cluster.conns[1]);
    assert_eq!(cluster.ask_on(a, "MSET {bar}1 1 {bar}2 2"), "+OK");
    assert_eq!(cluster.ask_on(b, &format!("CLUSTER SETSLOT 5061 IMPORTING {}", ids[0])), "+OK");
    assert_eq!(cluster.ask_on(a, &format!("CLUSTER SETSLOT 5061 MIGRATING {}", ids[1])), "+OK");
    assert_eq!(cluster.ask_on(a, "CLUSTER COUNTKEYSINSLOT 5061"), ":2");
    assert_eq!(cluster.ask_on(a, "MIGRATE 127.0.0.1 7001 {bar}1 0 1000"), "+OK");
    assert_eq!(cluster.ask_on(a, "GET {bar}1"), "-ASK 5061 127.0.0.1:7001");
    assert_eq!(
        cluster.ask_on(a, "MGET {bar}1 {bar}2"),
        "-TRYAGAIN Multiple keys request during rehashing of slot"
    );
    assert_eq!(cluster.ask_on(b, "GET {bar}1"), "-MOVED 5061 127.0.0.1:7000");
    assert_eq!(cluster.ask_on(b, "ASKING"), "+OK");
    assert_eq!(cluster.ask_on(b, "GET {bar}1"), "$1\r\n1");
    assert_eq!(cluster.ask_on(b, "GET {bar}1"), "-MOVED 5061 127.0.0.1:7000");
    assert_eq!(cluster.ask_on(a, "MIGRATE 127.0.0.1 7001 {bar}2 0 1000"), "+OK");
    for node in [b, a] {
        assert_eq!(cluster.ask_on(node, &format!("CLUSTER SETSLOT 5061 NODE {}", ids[1])), "+OK");
    }
    assert_eq!(cluster.ask_on(b, "GET {bar}2"), "$1\r\n2");
    assert_eq!(cluster.ask_on(a, "GET {bar}2"), "-MOVED 5061 127.0.0.1:7001");
    assert_eq!(cluster.ask_on(a, "DBSIZE"), ":0");
}

#[test]
fn clients_that_wait_are_sent_to_the_new_master() {
    let mut cluster = Cluster::start(3, 1);
    let (popper, reader) = (cluster.connect(0), cluster.conns[0]);
    assert_eq!(cluster.ask_on(popper, "BLPOP bar 0"), "");
    assert_eq!(cluster.ask_on(reader, "SSUBSCRIBE bar"), "*3\r\n$10\r\nssubscribe\r\n$3\r\nbar\r\n:1");
    assert_eq!(cluster.ask(3, "CLUSTER FAILOVER"), "+OK");
    assert_eq!(
        cluster.output(popper),
        "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
    );
    assert_eq!(cluster.output(reader), "*3\r\n$12\r\nsunsubscribe\r\n$3\r\nbar\r\n:0");
}

#[test]
fn scripts_stay_in_one_slot() {
    let mut cluster = Cluster::start(3, 0);
    let conn = cluster.conns[0];
    assert_eq!(cluster.ask_on(conn, "EVAL return(1) 2 foo bar").split(' ').next(), Some("-CROSSSLOT"));
    assert_eq!(cluster.ask_on(conn, "EVAL return(redis.call('get','bar')) 0"), "$-1");
    let reply = cluster.ask_on(conn, "EVAL return(redis.call('get','foo')) 0");
    assert!(
        reply.starts_with("-ERR Script attempted to access a non local key in a cluster node"),
        "{reply}"
    );
}

impl Cluster {
    fn without_clients() -> Cluster {
        Cluster::of(6, Some(Topology::Cluster { masters: 3, replicas: 1 }), Version::V7_4)
    }

    /// Does something that `rng` chooses, and returns what can be seen of it.
    fn act(&mut self, rng: &mut Rng) -> String {
        let (node, other, key) = (rng.below(6), rng.below(6), rng.below(30));
        let id = self.world.nodes()[other].cluster.as_ref().unwrap().me().id;
        let slot = hash_slot(format!("k{key}").as_bytes());
        let runs = !self.world.nodes()[node].stopped && !self.world.nodes()[node].paused;
        let request = match rng.below(16) {
            0 => {
                self.world.advance(rng.below(3000) as u64);
                return String::new();
            }
            1 => {
                self.world.set_partition(node, other, rng.below(2) == 0);
                return String::new();
            }
            2 => {
                match rng.below(4) {
                    0 => self.world.stop_node(node, rng.below(2) == 0, None),
                    1 => self.world.pause_node(node),
                    _ => (0..6).for_each(|node| {
                        self.world.resume_node(node);
                        self.world.start_node(node);
                    }),
                }
                return String::new();
            }
            3 => {
                self.world.heal();
                return String::new();
            }
            4 => format!("CLUSTER SETSLOT {slot} MIGRATING {id}"),
            5 => format!("CLUSTER SETSLOT {slot} IMPORTING {id}"),
            6 => format!("CLUSTER SETSLOT {slot} NODE {id}"),
            7 => format!("MIGRATE 127.0.0.1 {} k{key} 0 100", 7000 + other),
            8 => ["CLUSTER FAILOVER", "CLUSTER FAILOVER FORCE", "CLUSTER FAILOVER TAKEOVER"][rng.below(3)]
                .into(),
            9 => format!("CLUSTER REPLICATE {id}"),
            10 if rng.below(8) == 0 => format!("CLUSTER FORGET {id}"),
            11 => format!("CLUSTER MEET 127.0.0.1 {}", 7000 + other),
            12 => "CLUSTER NODES".to_owned(),
            _ => format!("SET k{key} {}", rng.below(100)),
        };
        if runs { self.ask(node, &request) } else { String::new() }
    }

    /// Begins anew from the lines of an image.
    fn begin_with(&mut self, lines: &[Vec<Vec<u8>>]) {
        self.world.reseed(5);
        self.world.begin_anew();
        for line in lines {
            let words: Vec<&[u8]> = line[1..].iter().map(Vec::as_slice).collect();
            let line_is_taken = self.world.take_image(&line[0], &mut Reader::new(&words));
            assert_eq!(line_is_taken, Some(()), "{}", String::from_utf8_lossy(&line.join(&b' ')));
        }
        self.world.finish_image();
    }
}

#[test]
fn whatever_happens_is_repeated_by_a_rerun_a_copy_and_an_image() {
    for seed in 0..8 {
        let (mut rng, mut again) = (Rng::new(seed), Rng::new(seed));
        let (mut first, mut second) = (Cluster::without_clients(), Cluster::without_clients());
        for step in 0..150 {
            assert_eq!(first.act(&mut rng), second.act(&mut again), "seed {seed}, step {step}");
        }
        assert_eq!(first.world.digest(), second.world.digest(), "seed {seed}");
        let mut copy = Cluster { world: first.world.copy(Rc::new(NoStages)), conns: Vec::new() };
        let lines: Vec<_> = second.world.image().into_iter().map(|line| line.finish()).collect();
        let due_ms = second.world.next_due_ms();
        second.begin_with(&lines);
        assert_eq!(second.world.next_due_ms(), due_ms, "seed {seed}");
        let mut restored = Cluster::without_clients();
        restored.world.clock_mut().move_to(second.world.clock().now().mono_us);
        restored.begin_with(&lines);
        let mut others = [rng.clone(), rng.clone(), rng.clone()];
        for step in 0..150 {
            let reply = first.act(&mut rng);
            assert_eq!(copy.act(&mut others[0]), reply, "seed {seed}, step {step} of the copy");
            let reply = second.act(&mut others[1]);
            assert_eq!(restored.act(&mut others[2]), reply, "seed {seed}, step {step} after the image");
        }
        assert_eq!(copy.world.digest(), first.world.digest(), "seed {seed}");
        assert_eq!(restored.world.digest(), second.world.digest(), "seed {seed}");
    }
}

#[test]
fn failovers_follow_one_another() {
    let mut cluster = Cluster::start(3, 1);
    for round in 0..60 {
        let master = if round % 2 == 0 { 0 } else { 3 };
        cluster.world.stop_node(master, false, None);
        cluster.world.advance(4000);
        assert_eq!(cluster.ask(3 - master, "SET bar 1"), "+OK", "round {round}");
        cluster.world.start_node(master);
    }
}
