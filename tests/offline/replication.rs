//! REPLICAOF and FAILOVER between the nodes of one process.

use redlatch::{Client, Sim, SimOptions};

fn line(sim: &mut Sim, client: Client, line: &str) -> String {
    String::from_utf8_lossy(&sim.call(client, &line.split(' ').collect::<Vec<_>>())).into_owned()
}

#[test]
fn a_replica_follows_serves_reads_and_refuses_writes() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (master, replica) = (sim.connect(0), sim.connect(1));
    line(&mut sim, master, "SET before 1");
    assert_eq!(line(&mut sim, replica, "REPLICAOF 127.0.0.1 6379"), "+OK\r\n");
    assert_eq!(
        line(&mut sim, replica, "replicaof LOCALHOST 6379"),
        "+OK Already connected to specified master\r\n"
    );
    line(&mut sim, master, "SET after 2");
    assert_eq!(line(&mut sim, replica, "MGET before after"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
    assert!(line(&mut sim, replica, "SET k v").starts_with("-READONLY "));
    assert!(
        line(&mut sim, replica, "FAILOVER")
            .starts_with("-ERR FAILOVER is not valid when server is a replica.")
    );
    assert_eq!(line(&mut sim, master, "WAIT 1 100"), ":1\r\n");
    assert_eq!(line(&mut sim, replica, "SLAVEOF NO ONE"), "+OK\r\n");
    assert_eq!(line(&mut sim, replica, "SET k v"), "+OK\r\n");
    assert!(line(&mut sim, master, "INFO replication").contains("connected_slaves:0"));
}

#[test]
fn a_failover_loses_nothing_although_the_link_lags() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (old, new) = (sim.connect(0), sim.connect(1));
    line(&mut sim, new, "REPLICAOF 127.0.0.1 6379");
    line(&mut sim, old, "SIM.NODE LINK 1 LAG 1");
    line(&mut sim, old, "SET lock me NX PX 30000");
    assert_eq!(line(&mut sim, new, "EXISTS lock"), ":0\r\n");
    assert_eq!(line(&mut sim, old, "FAILOVER TO 127.0.0.1 6379 TIMEOUT 100"), "+OK\r\n");
    assert_eq!(line(&mut sim, new, "GET lock"), "$2\r\nme\r\n");
    assert_eq!(line(&mut sim, new, "SET lock other NX"), "$-1\r\n");
    assert!(line(&mut sim, old, "SET k v").starts_with("-READONLY "));
    assert!(line(&mut sim, new, "ROLE").contains("master"));
}

#[test]
fn a_replica_of_a_server_elsewhere_keeps_its_data_and_waits() {
    let mut sim = Sim::new(SimOptions::default().nodes(1));
    let client = sim.connect(0);
    line(&mut sim, client, "SET k v");
    for address in ["127.0.0.1 1", "10.0.0.1 6379"] {
        assert_eq!(line(&mut sim, client, &format!("REPLICAOF {address}")), "+OK\r\n");
        let again = line(&mut sim, client, &format!("SLAVEOF {address}"));
        assert_eq!(again, "+OK Already connected to specified master\r\n");
        assert!(line(&mut sim, client, "SET k w").starts_with("-READONLY "));
    }
    let role = "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$7\r\nconnect\r\n:-1\r\n";
    assert_eq!(line(&mut sim, client, "ROLE"), role);
    let info = line(&mut sim, client, "INFO replication");
    for field in
        ["role:slave", "master_host:10.0.0.1", "master_link_status:down", "master_link_down_since_seconds:-1"]
    {
        assert!(info.contains(field), "{field}: {info}");
    }
    assert_eq!(line(&mut sim, client, "GET k"), "$1\r\nv\r\n");
    assert_eq!(line(&mut sim, client, "REPLICAOF NO ONE"), "+OK\r\n");
    assert_eq!(line(&mut sim, client, "SET k w"), "+OK\r\n");
}

#[test]
fn nodes_that_cannot_follow_one_another_change_nothing() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let client = sim.connect(0);
    // Two nodes cannot follow one another.
    let other = sim.connect(1);
    assert_eq!(line(&mut sim, other, "REPLICAOF 127.0.0.1 6379"), "+OK\r\n");
    line(&mut sim, client, "REPLICAOF 127.0.0.1 6379");
    assert_eq!(line(&mut sim, client, "SET k v"), "+OK\r\n");
    // A link that is down hands nothing over.
    line(&mut sim, client, "SIM.NODE LINK 1 DOWN");
    assert!(
        line(&mut sim, client, "FAILOVER TO 127.0.0.1 6379")
            .starts_with("-ERR FAILOVER target replica is not online.")
    );
}

#[test]
fn roles_change_inside_of_transactions() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (master, replica) = (sim.connect(0), sim.connect(1));
    line(&mut sim, replica, "MULTI");
    line(&mut sim, replica, "REPLICAOF 127.0.0.1 6379");
    line(&mut sim, replica, "SET mine 1");
    line(&mut sim, replica, "EXEC");
    line(&mut sim, master, "SET k v");
    assert_eq!(line(&mut sim, replica, "GET k"), "$1\r\nv\r\n");
    assert_eq!(line(&mut sim, replica, "GET mine"), "$-1\r\n");
}
