//! Sentinels of a world: what they see, say and do.

use super::*;
use crate::version::Version;

struct Group {
    world: World,
    clients: Vec<ConnId>,
}

impl Group {
    /// Creates a master, replicas and sentinels, with a client at each.
    fn new(replicas: usize, sentinels: usize) -> Group {
        Group::of(Topology::Sentinel { replicas, sentinels }, 7)
    }

    fn of(topology: Topology, seed: u64) -> Group {
        let mut world = World::new(WorldOptions {
            seed,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![Config::new(Version::V7_4); topology.parts().len()],
            topology: Some(topology),
        });
        let open = |node| world.open(node, "127.0.0.1:50000".to_owned(), "127.0.0.1:1".to_owned());
        let clients = (0..topology.parts().len()).map(open).collect();
        Group { world, clients }
    }

    /// Sends a request to a node, through a new connection if the last one was closed, and returns the reply.
    fn ask(&mut self, node: usize, line: &str) -> String {
        if self.world.is_closing(self.clients[node]) {
            self.world.close(self.clients[node]);
            self.clients[node] = self.world.open(node, "127.0.0.1:50000".to_owned(), String::new());
        }
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.world.request(self.clients[node], &words);
        self.pass(0);
        self.read(self.clients[node])
    }

    fn read(&mut self, conn: ConnId) -> String {
        let mut bytes = Vec::new();
        self.world.take_output(conn, &mut bytes);
        String::from_utf8_lossy(&bytes).replace("\r\n", " ")
    }

    fn pass(&mut self, ms: u64) {
        self.world.advance(ms);
    }

    /// Listens to all events of a sentinel.
    fn listen(&mut self, node: usize) -> ConnId {
        let conn = self.world.open(node, "127.0.0.1:50001".to_owned(), String::new());
        self.world.request(conn, &[b"PSUBSCRIBE", b"*"]);
        self.read(conn);
        conn
    }

    /// Returns the events since the last call, as names and texts.
    fn events(&mut self, conn: ConnId) -> Vec<String> {
        let mut bytes = Vec::new();
        self.world.take_output(conn, &mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let messages = text.split("*4\r\n").skip(1);
        messages
            .map(|message| {
                let lines: Vec<&str> = message.split("\r\n").collect();
                format!("{} {}", lines[5], lines[7])
            })
            .collect()
    }

    fn names(&mut self, conn: ConnId) -> Vec<String> {
        let first = |event: &String| event.split(' ').next().unwrap_or_default().to_owned();
        self.events(conn).iter().map(first).collect()
    }

    fn master_of(&mut self, sentinel: usize) -> String {
        let reply = self.ask(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
        reply.split(' ').nth(4).unwrap_or_default().to_owned()
    }
}

#[test]
fn sentinels_know_the_master_its_replicas_and_one_another() {
    let mut group = Group::new(2, 3);
    assert_eq!(group.master_of(3), "6379");
    for sentinel in 3..6 {
        let info = group.ask(sentinel, "INFO sentinel");
        assert!(info.contains("status=ok,address=127.0.0.1:6379,slaves=2,sentinels=3"), "{info}");
        assert!(group.ask(sentinel, "SENTINEL CKQUORUM mymaster").starts_with("+OK 3 usable"));
    }
    assert!(group.ask(3, "GET k").starts_with("-ERR unknown command 'GET'"));
    assert!(group.ask(0, "SENTINEL MASTERS").starts_with("-ERR unknown command 'SENTINEL'"));
}

#[test]
fn a_replica_replaces_a_master_that_stops() {
    let mut group = Group::new(2, 3);
    let listeners: Vec<ConnId> = (3..6).map(|sentinel| group.listen(sentinel)).collect();
    group.ask(0, "SET k v");
    group.world.stop_node(0, false, None);
    group.pass(30_000);
    assert_eq!(group.master_of(3), "6379", "not before down-after-milliseconds");
    group.pass(2_000);
    let events: Vec<Vec<String>> = listeners.iter().map(|&listener| group.names(listener)).collect();
    let leader = events.iter().find(|names| names.contains(&"+elected-leader".to_owned()));
    assert_eq!(
        leader.expect("a leader").join(" "),
        "+sdown +odown +new-epoch +try-failover +vote-for-leader +elected-leader +failover-state-select-slave \
         +selected-slave +failover-state-send-slaveof-noone +failover-state-wait-promotion -role-change \
         +promoted-slave +failover-state-reconf-slaves +slave-reconf-sent +slave-reconf-inprog +slave-reconf-done \
         +failover-end +switch-master +slave +slave"
    );
    let followers = events.iter().filter(|names| !names.contains(&"+elected-leader".to_owned()));
    for names in followers {
        assert!(names.join(" ").contains("+config-update-from +switch-master +slave +slave"), "{names:?}");
    }
    let ports: Vec<String> = (3..6).map(|sentinel| group.master_of(sentinel)).collect();
    assert!(ports.iter().all(|port| *port == ports[0] && port != "6379"), "{ports:?}");
    let new: usize = ports[0].parse::<usize>().expect("a port") - 6379;
    assert_eq!(group.ask(new, "GET k"), "$1 v ");
    assert_eq!(group.ask(new, "SET k w"), "+OK ");
    assert_eq!(group.ask(3 - new, "GET k"), "$1 w ");
}
