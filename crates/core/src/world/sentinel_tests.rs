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

#[test]
fn a_sentinel_that_is_cut_off_still_names_the_old_master() {
    let mut group = Group::new(2, 3);
    for node in 1..5 {
        group.world.set_partition(5, node, true);
        group.world.set_partition(node, 5, true);
    }
    group.world.stop_node(0, false, None);
    group.pass(40_000);
    assert_ne!(group.master_of(3), "6379");
    assert_eq!(group.master_of(5), "6379");
    let listener = group.listen(5);
    group.world.heal();
    group.pass(0);
    assert_eq!(group.master_of(5), group.master_of(3));
    assert!(group.names(listener).contains(&"+switch-master".to_owned()));
}

#[test]
fn without_a_majority_there_is_no_failover() {
    let mut group = Group::new(1, 3);
    group.world.stop_node(3, false, None);
    group.world.stop_node(4, false, None);
    group.world.stop_node(0, false, None);
    group.pass(600_000);
    assert_eq!(group.master_of(2), "6379");
    let reply = group.ask(2, "SENTINEL CKQUORUM mymaster");
    assert!(
        reply.starts_with("-NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the"),
        "{reply}"
    );
    // One more is enough to replace the master.
    group.world.start_node(3);
    group.pass(60_000);
    assert_eq!(group.master_of(2), "6380");
}

#[test]
fn an_old_master_that_comes_back_becomes_a_replica() {
    let mut group = Group::new(1, 3);
    group.world.stop_node(0, false, None);
    group.pass(80_000);
    assert_eq!(group.master_of(2), "6380");
    let listener = group.listen(2);
    group.world.start_node(0);
    assert_eq!(group.ask(0, "SET stray 1"), "+OK ");
    group.pass(7_000);
    assert!(group.ask(0, "ROLE").contains("master"));
    group.pass(2_000);
    assert!(group.ask(0, "ROLE").contains("slave"), "{:?}", group.names(listener));
    assert_eq!(group.ask(0, "GET stray"), "$-1 ");
    let names = group.names(listener).join(" ");
    assert!(names.contains("-role-change") && names.contains("-sdown"), "{names}");
    assert!(group.ask(2, "SENTINEL REPLICAS mymaster").contains("flags $5 slave"));
}

#[test]
fn a_pause_shorter_than_down_after_changes_nothing() {
    let mut group = Group::new(1, 3);
    let listener = group.listen(2);
    group.world.pause_node(0);
    group.pass(29_000);
    group.world.resume_node(0);
    group.pass(100_000);
    assert_eq!(group.names(listener), Vec::<String>::new());
    group.world.pause_node(0);
    group.pass(40_000);
    group.world.resume_node(0);
    group.pass(20_000);
    assert_eq!(group.master_of(2), "6380");
    assert!(group.ask(0, "ROLE").contains("slave"));
}

#[test]
fn a_client_forces_a_failover() {
    let mut group = Group::new(2, 3);
    let listener = group.listen(3);
    assert_eq!(group.ask(3, "SENTINEL FAILOVER mymaster"), "+OK ");
    assert!(group.ask(3, "SENTINEL FAILOVER mymaster").starts_with("-INPROG "));
    group.pass(30_000);
    assert_ne!(group.master_of(5), "6379");
    let names = group.names(listener).join(" ");
    assert!(names.starts_with("+new-epoch +try-failover +vote-for-leader +elected-leader"), "{names}");
    assert!(group.ask(0, "ROLE").contains("slave"));
    // A replica that may not be promoted is none.
    let mut group = Group::new(1, 1);
    group.ask(1, "CONFIG SET replica-priority 0");
    group.ask(2, "SENTINEL RESET *");
    assert!(group.ask(2, "SENTINEL FAILOVER mymaster").starts_with("-NOGOODSLAVE "));
}

#[test]
fn partitions_hold_writes_back_and_replicas_say_so() {
    let mut group = Group::of(Topology::Replicas(2), 1);
    group.ask(1, "CONFIG SET replica-serve-stale-data no");
    group.ask(0, "SET k 1");
    group.world.set_partition(0, 1, true);
    group.ask(0, "SET k 2");
    assert!(group.ask(1, "GET k").starts_with("-MASTERDOWN "));
    assert_eq!(group.ask(2, "GET k"), "$1 2 ");
    group.pass(5_000);
    assert!(group.ask(1, "INFO replication").contains("master_link_status:down"));
    assert!(group.ask(1, "INFO replication").contains("master_link_down_since_seconds:5"));
    group.world.heal();
    assert_eq!(group.ask(1, "GET k"), "$1 2 ");
    group.ask(0, "CONFIG SET min-replicas-to-write 2");
    group.world.stop_node(2, false, None);
    assert!(group.ask(0, "SET k 3").starts_with("-NOREPLICAS "));
}

#[test]
fn a_thousand_failovers_take_little_time() {
    let mut group = Group::new(2, 3);
    for round in 0..1000_usize {
        let port = group.master_of(3);
        let master = port.parse::<usize>().expect("a port") - 6379;
        group.ask(master, &format!("SET k {round}"));
        group.world.stop_node(master, false, None);
        group.pass(35_000);
        group.world.start_node(master);
        group.pass(15_000);
        assert_ne!(group.master_of(3), port, "round {round}");
    }
}
