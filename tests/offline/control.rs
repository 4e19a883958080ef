//! The control plane: SIM.* commands inject faults, hold requests, and control time and nodes.

use redlatch::{Client, Sim, SimOptions};

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

struct World {
    sim: Sim,
    control: Client,
}

impl World {
    fn of(nodes: usize) -> World {
        let mut sim = Sim::new(SimOptions::default().nodes(nodes));
        let control = sim.connect(0);
        World { sim, control }
    }

    fn named(&mut self, node: usize, name: &str) -> Client {
        let client = self.sim.connect(node);
        assert_eq!(self.call(client, &format!("CLIENT SETNAME {name}")), "+OK\r\n");
        client
    }

    fn call(&mut self, client: Client, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8(self.sim.call(client, &words)).unwrap()
    }

    /// Sends a SIM command that has a reply at once.
    fn sim(&mut self, line: &str) -> String {
        self.call(self.control, &format!("SIM.{line}"))
    }

    fn acquire(&mut self, client: Client, owner: &str) -> String {
        String::from_utf8(self.sim.call(client, &["EVAL", ACQUIRE, "1", "lock", "10000", owner])).unwrap()
    }

    fn received(&mut self, client: Client) -> String {
        String::from_utf8(self.sim.received(client)).unwrap()
    }
}

const TAKEN: &str = "$-1\r\n";

#[test]
fn a_report_says_that_checks_are_off() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let report =
        |sim: &mut Sim| String::from_utf8_lossy(&sim.call(client, &["SIM.CHECK", "REPORT"])).into_owned();
    let off = report(&mut sim);
    assert!(off.contains("checks are off") && !off.contains("judged"), "{off}");
    sim.call(client, &["SIM.CHECK", "ON"]);
    let on = report(&mut sim);
    assert!(!on.contains("checks are off") && on.contains("judged 0"), "{on}");
}

#[test]
fn the_clock_of_a_command_that_is_not_there_does_not_jump() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let reply = sim.call(client, &["SIM.CLOCK", "JUMP", "1000", "COMMAND"]);
    assert!(reply.starts_with(b"-SIMERR STATE there is no command"), "{}", reply.escape_ascii());
}

#[test]
fn a_lost_reply_leaves_the_lock_taken_and_the_connection_silent() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    assert_eq!(world.sim("FAULT ADD SCRIPT rlock.acquire NAME app1 NTH 1 DO DROP REPLY"), ":1\r\n");
    assert_eq!(world.acquire(app, "A"), "");
    assert_eq!(world.call(app, "PING"), "", "TCP does not lose the middle of a stream");
    assert!(world.sim("FAULT HITS 1").contains("DROP REPLY"));
    let again = world.named(0, "app1");
    assert_eq!(world.acquire(again, "A"), TAKEN);
    assert_eq!(world.call(again, "HGET lock A"), "$1\r\n2\r\n");
}

#[test]
fn a_lost_reply_takes_no_earlier_reply_with_it() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD CMD incr DO DROP REPLY");
    // One read of the server: nothing was written to the client in between.
    world.sim.send(app, &[b"PING"]);
    world.sim.send(app, &[b"INCR", b"n"]);
    world.sim.send(app, &[b"PING"]);
    assert_eq!(world.received(app), "+PONG\r\n");
    assert_eq!(world.call(world.control, "GET n"), "$1\r\n1\r\n");
}

#[test]
fn a_held_reply_without_bytes_does_not_break_the_next_read() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD CMD set DO DELAY REPLY 5");
    world.sim.send(app, &[b"PING"]);
    world.sim.send(app, &[b"CLIENT", b"REPLY", b"OFF"]);
    world.sim.send(app, &[b"SET", b"k", b"v"]);
    assert_eq!(world.received(app), "+PONG\r\n");
    world.sim.send(app, &[b"PING"]);
    assert_eq!(world.received(app), "");
    world.sim.advance(5);
    assert_eq!(world.call(app, "CLIENT REPLY ON"), "+OK\r\n");
}

#[test]
fn a_lost_request_does_nothing() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD SCRIPT rlock.* DO DROP REQUEST TIMES 1");
    assert_eq!(world.acquire(app, "A"), "");
    assert_eq!(world.sim("FAULT CLEAR"), "+OK\r\n");
    assert_eq!(world.call(app, "PING"), "", "what follows on the connection is lost too");
    let other = world.named(0, "app2");
    assert_eq!(world.call(other, "EXISTS lock"), ":0\r\n");
}

#[test]
fn a_request_runs_twice_and_is_answered_once() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD OWNER A DO DUP 2 REPLY FIRST");
    assert_eq!(world.acquire(app, "A"), TAKEN);
    assert_eq!(world.call(app, "HGET lock A"), "$1\r\n2\r\n");
    world.sim("FAULT ADD CMD incr DO DUP 3");
    assert_eq!(world.call(app, "INCR n"), ":3\r\n");
}

#[test]
fn errors_before_after_and_inside() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD CMD incr DO ERROR LOADING BEFORE TIMES 1");
    assert_eq!(world.call(app, "INCR n"), "-LOADING\r\n");
    world.sim("FAULT ADD CMD incr DO ERROR OOM AFTER TIMES 1");
    assert_eq!(world.call(app, "INCR n"), "-OOM\r\n");
    assert_eq!(world.call(app, "INCR n"), ":2\r\n");
    world.sim("FAULT ADD SCRIPT rlock.acquire DO FAIL SUBCALL 3 TIMES 1");
    let reply = world.acquire(app, "A");
    assert!(reply.starts_with("-ERR refused by a fault rule script: "), "{reply}");
    assert_eq!(world.call(app, "PTTL lock"), ":-1\r\n", "the second call was made, the third was not");
}

#[test]
fn connections_close_before_after_and_in_the_middle() {
    let mut world = World::of(1);
    for (action, received, written) in
        [("BEFORE", "", 0), ("AFTER", "", 1), ("BYTES 3", "$-1", 1), ("BYTES 100", TAKEN, 1)]
    {
        world.sim("RUN RESET");
        let app = world.named(0, "app1");
        world.sim(&format!("FAULT ADD SCRIPT rlock.acquire DO CLOSE {action}"));
        assert_eq!(world.acquire(app, "A"), received, "{action}");
        assert!(world.sim.is_closed(app), "{action}");
        let other = world.named(0, "app2");
        assert_eq!(world.call(other, "EXISTS lock"), format!(":{written}\r\n"), "{action}");
    }
}

#[test]
fn arguments_are_rewritten_and_replies_made_up() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD SCRIPT rlock.acquire DO REWRITE ARGV 1 ADD 5000 TIMES 1");
    world.sim("FAULT ADD CMD get DO REPLY :7\r\n");
    world.sim("FAULT ADD CMD set ARG 2 old DO REWRITE ARG 2 SET new");
    world.acquire(app, "A");
    assert_eq!(world.call(app, "PTTL lock"), ":15000\r\n");
    assert_eq!(world.call(app, "GET x"), ":7\r\n");
    world.call(app, "SET k old");
    assert_eq!(world.call(app, "GETEX k"), "$3\r\nnew\r\n");
    world.sim("FAULT ADD CMD evalsha DO FORGET SCRIPTS TIMES 1");
    let sha = world.call(app, &["SCRIPT", "LOAD", "return", "1"].join(" "));
    assert!(sha.starts_with("-ERR"), "{sha}");
    let sha = world.sim.call(app, &["SCRIPT", "LOAD", "return 1"]);
    let sha = String::from_utf8(sha).unwrap().lines().nth(1).unwrap().to_owned();
    assert!(world.call(app, &format!("EVALSHA {sha} 0")).starts_with("-NOSCRIPT"));
}

#[test]
fn delays_pass_on_the_worlds_clock_and_hold_back_what_follows() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("FAULT ADD CMD incr NTH 1 DO DELAY REPLY 300");
    assert_eq!(world.call(app, "INCR n"), "");
    assert_eq!(world.call(app, "INCR n"), "", "behind the first");
    assert_eq!(world.sim.advance(299), 0);
    assert_eq!(world.received(app), "");
    assert_eq!(world.sim.advance(1), 1);
    assert_eq!(world.received(app), ":1\r\n:2\r\n");
    world.sim("FAULT ADD CMD decr DO DELAY REQUEST 50");
    assert_eq!(world.call(app, "DECR n"), "");
    let other = world.named(0, "app2");
    assert_eq!(world.call(other, "GET n"), "$1\r\n2\r\n");
    world.sim.advance(50);
    assert_eq!(
        (world.received(app), world.call(other, "GET n")),
        (":1\r\n".to_owned(), "$1\r\n1\r\n".to_owned())
    );
}

#[test]
fn messages_are_lost_late_or_twice_for_one_subscriber() {
    let mut world = World::of(1);
    let (a, b, publisher) = (world.named(0, "a"), world.named(0, "b"), world.named(0, "c"));
    world.call(a, "SUBSCRIBE ch");
    world.call(b, "SUBSCRIBE ch");
    let message = "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\n0\r\n";
    world.sim("FAULT ADD NAME a CHANNEL c? DO DROP PUSH TIMES 1");
    world.sim("FAULT ADD NAME b CHANNEL ch NTH 1 DO DUP PUSH 2");
    world.sim("FAULT ADD NAME b CHANNEL ch NTH 1 DO DELAY PUSH 10");
    assert_eq!(world.call(publisher, "PUBLISH ch 0"), ":2\r\n", "the publisher does not notice");
    assert_eq!((world.received(a), world.received(b)), (String::new(), message.repeat(2)));
    world.call(publisher, "PUBLISH ch 0");
    assert_eq!((world.received(a), world.received(b)), (message.to_owned(), String::new()));
    world.sim.advance(10);
    assert_eq!(world.received(b), message);
}

#[test]
fn gates_hold_and_release_in_any_order() {
    let mut world = World::of(1);
    let (a, b) = (world.named(0, "a"), world.named(0, "b"));
    assert_eq!(world.sim("GATE ADD SCRIPT rlock.acquire AT PRE LABEL pause"), ":1\r\n");
    assert_eq!(world.acquire(a, "A"), "");
    assert_eq!(world.acquire(b, "B"), "");
    assert_eq!(world.sim("GATE AWAIT pause COUNT 2"), "*2\r\n$2\r\nt1\r\n$2\r\nt2\r\n");
    assert_eq!(world.sim("GATE RELEASE pause LAST"), ":2\r\n");
    assert_eq!((world.received(b), world.received(a)), (TAKEN.to_owned(), ":10000\r\n".to_owned()));
    assert_eq!(world.sim("GATE DEL pause"), "+OK\r\n");
    world.sim("GATE ADD CMD get AT POST");
    world.call(a, "GET x");
    assert!(world.sim("GATE LIST").contains("POST"));
    assert_eq!(world.sim("GATE STEP 5"), ":1\r\n");
    assert_eq!(world.received(a), TAKEN);
}

#[test]
fn links_stop_one_by_one_and_come_back_in_another_order() {
    let mut world = World::of(1);
    let clients: Vec<Client> = (0..3).map(|i| world.named(0, &format!("app{i}"))).collect();
    for (i, client) in clients.iter().enumerate() {
        world.sim(&format!("GATE ADD NAME app{i} AT PRE LABEL link{i}"));
        assert_eq!(world.acquire(*client, &format!("owner{i}")), "");
    }
    for i in [2, 0, 1] {
        assert_eq!(world.sim(&format!("GATE DEL link{i}")), "+OK\r\n");
    }
    let received: Vec<String> = clients.iter().map(|client| world.received(*client)).collect();
    assert_eq!(received, [":10000\r\n", ":10000\r\n", TAKEN]);
}

#[test]
fn two_clients_with_one_id_share_a_lock() {
    let mut world = World::of(1);
    let (a, b) = (world.named(0, "a"), world.named(0, "b"));
    assert_eq!(world.sim("FAULT ADD SCRIPT rlock.* NAME b DO REWRITE ARGV 2 SET A ALWAYS"), ":1\r\n");
    assert_eq!(world.acquire(a, "A"), TAKEN);
    assert_eq!(world.acquire(b, "B"), TAKEN);
    assert_eq!(world.call(a, "HGET lock A"), "$1\r\n2\r\n");
}

#[test]
fn a_cluster_redirects() {
    let mut world = World::of(1);
    let app = world.named(0, "app");
    for reply in [
        "-MOVED 866 127.0.0.1:7001",
        "-ASK 866 127.0.0.1:7001",
        "-TRYAGAIN Multiple keys request during rehashing of slot",
    ] {
        let words = [
            "SIM.FAULT",
            "ADD",
            "SCRIPT",
            "rlock.acquire",
            "DO",
            "REPLY",
            &format!("{reply}\r\n"),
            "TIMES",
            "1",
        ];
        world.sim.call(world.control, &words);
        assert_eq!(world.acquire(app, "A"), format!("{reply}\r\n"));
    }
    assert_eq!(world.acquire(app, "A"), TAKEN);
}

#[test]
fn a_control_connection_waits_at_a_gate_until_something_comes_and_takes_its_gates_along() {
    let mut world = World::of(1);
    let app = world.named(0, "app1");
    world.sim("GATE ADD NAME app1 CMD set AT PRE");
    assert_eq!(world.sim("GATE AWAIT 1"), "");
    world.call(app, "SET k v");
    assert_eq!(world.received(world.control), "*1\r\n$2\r\nt1\r\n");
    world.sim.disconnect(world.control);
    assert_eq!(world.received(app), "+OK\r\n", "a gate does not outlive the test that made it");
    world.control = world.sim.connect(0);
    world.sim("GATE ADD CMD set AT PRE KEEP");
    world.sim.disconnect(world.control);
    assert_eq!(world.call(app, "SET k v"), "", "unless it was asked to");
}

#[test]
fn the_clock_advances_jumps_and_tells() {
    let mut world = World::of(2);
    let (a, b) = (world.named(0, "a"), world.named(1, "b"));
    for client in [a, b] {
        world.call(client, "SET k v PX 1000");
    }
    assert!(world.sim("CLOCK TIMERS").contains("key"));
    // A jump of one wall clock fires no timer; the key is expired at the next access.
    world.sim("CLOCK JUMP 1001 NODE 1");
    assert_eq!((world.call(a, "PTTL k"), world.call(b, "PTTL k")), (":1000\r\n".into(), ":-2\r\n".into()));
    let answer = world.sim("CLOCK ADVANCE 1001");
    assert!(answer.ends_with(":1\r\n:1\r\n"), "one timer fired and one key ended: {answer}");
    world.call(a, "SET k v PX 500");
    assert!(world.sim("CLOCK NEXT").ends_with(":1\r\n:1\r\n"));
    assert!(world.sim("CLOCK NOW").ends_with("MANUAL\r\n"));
    assert!(world.sim("CLOCK ADVANCE TO 5").starts_with("-SIMERR STATE it is "));
}

#[test]
fn keys_are_lost_and_mistimed_without_an_event() {
    let mut world = World::of(1);
    let (a, listener) = (world.named(0, "a"), world.named(0, "l"));
    world.call(a, "CONFIG SET notify-keyspace-events KEA");
    world.call(a, "SET k v PX 1000");
    world.call(listener, "PSUBSCRIBE *");
    assert_eq!(world.sim("KEY TTL k 5"), ":1\r\n");
    assert_eq!(world.call(a, "PTTL k"), ":5\r\n");
    assert_eq!(world.sim("KEY TTL k -1"), ":1\r\n");
    assert_eq!(world.sim("KEY LOSE k"), ":1\r\n");
    assert_eq!(world.sim("KEY LOSE k"), ":0\r\n");
    assert_eq!((world.call(a, "EXISTS k"), world.received(listener)), (":0\r\n".into(), String::new()));
}

#[test]
fn states_answer_as_redis_does() {
    let mut world = World::of(1);
    let a = world.named(0, "a");
    world.call(a, "SET k v");
    const STALE: &str =
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n";
    for (state, command, reply) in [
        ("OOM", "SET k w", "-OOM command not allowed when used memory > 'maxmemory'.\r\n"),
        ("OOM", "DEL x", ":0\r\n"),
        ("LOADING", "GET k", "-LOADING Redis is loading the dataset in memory\r\n"),
        ("LOADING", "PING", "-LOADING Redis is loading the dataset in memory\r\n"),
        ("READONLY", "SET k w", "-READONLY You can't write against a read only replica.\r\n"),
        ("READONLY", "GET k", "$1\r\nv\r\n"),
        ("NOREPLICAS", "SET k w", "-NOREPLICAS Not enough good replicas to write.\r\n"),
        ("MASTERDOWN", "GET k", STALE),
        ("MASTERDOWN", "EVAL return 0", STALE),
        ("CLUSTERDOWN", "GET k", "-CLUSTERDOWN The cluster is down\r\n"),
    ] {
        assert_eq!(world.sim(&format!("NODE STATE 0 {state} ON")), "+OK\r\n");
        assert_eq!(world.call(a, command), reply, "{state}");
        world.sim(&format!("NODE STATE 0 {state} OFF"));
    }
    world.sim("NODE STATE 0 BUSY ON");
    assert!(world.call(a, "GET k").starts_with("-BUSY Redis is busy running a script."));
    world.sim("NODE STATE 0 BUSY OFF");
    // The unlock fails at its first write. The renewal does not: PEXPIRE needs no memory.
    world.sim("NODE STATE 0 OOM ON");
    assert!(
        world
            .acquire(a, "A")
            .starts_with("-OOM command not allowed when used memory > 'maxmemory'. script: ")
    );
    world.sim("NODE STATE 0 MAXCLIENTS ON");
    let refused = world.sim.connect(0);
    assert_eq!(world.received(refused), "-ERR max number of clients reached\r\n");
}

#[test]
fn a_paused_node_answers_later_a_stopped_one_not_at_all() {
    let mut world = World::of(2);
    let (a, b) = (world.named(0, "a"), world.named(1, "b"));
    world.sim("NODE PAUSE 1");
    world.call(a, "SET k v PX 10");
    assert_eq!(world.call(b, "SET k v PX 10"), "");
    world.sim.advance(100);
    world.sim("NODE RESUME 1");
    assert_eq!(world.received(b), "+OK\r\n");
    assert_eq!((world.call(a, "EXISTS k"), world.call(b, "EXISTS k")), (":0\r\n".into(), ":1\r\n".into()));
    world.sim("NODE STOP 1 WIPE");
    assert!(world.sim.is_closed(b));
    let refused = world.sim.connect(1);
    assert!(world.sim.is_closed(refused));
    world.sim("NODE START 1 AFTER 500");
    world.sim.advance(500);
    let again = world.named(1, "b");
    assert_eq!(world.call(again, "EXISTS k"), ":0\r\n");
}

#[test]
fn a_lock_that_never_reached_the_replica_is_given_away_after_failover() {
    let mut world = World::of(2);
    let (master, replica) = (world.named(0, "a"), world.named(1, "b"));
    world.sim("NODE REPLICATE 1 OF 0");
    world.call(master, "SET warm up");
    assert_eq!(world.call(replica, "GET warm"), "$2\r\nup\r\n");
    assert_eq!(world.call(master, "WAIT 1 100"), ":1\r\n");
    assert!(world.call(replica, "ROLE").starts_with("*5\r\n$5\r\nslave\r\n"));
    assert!(world.call(replica, "SET x y").starts_with("-READONLY "));
    world.sim("NODE LINK 1 DOWN");
    assert_eq!(world.acquire(master, "A"), TAKEN);
    assert_eq!(world.call(master, "WAIT 1 100"), "", "the write is not on any replica");
    world.sim.advance(100);
    assert_eq!(world.received(master), ":0\r\n");
    world.sim("NODE STOP 0");
    world.sim("NODE PROMOTE 1");
    assert_eq!(world.acquire(replica, "B"), TAKEN, "the same lock again");
    assert!(world.call(replica, "INFO replication").contains("role:master"));
}

#[test]
fn a_link_lags_and_wait_counts_the_forced_acknowledgements() {
    let mut world = World::of(3);
    let master = world.named(0, "a");
    let replica = world.named(1, "b");
    world.sim("NODE REPLICATE 1 OF 0");
    world.sim("NODE REPLICATE 2 OF 0");
    world.sim("NODE LINK 1 LAG 1");
    world.call(master, "SET k 1");
    assert_eq!(
        (world.call(replica, "EXISTS k"), world.call(master, "WAIT 1 0")),
        (":0\r\n".into(), ":1\r\n".into())
    );
    world.call(master, "SET k 2");
    assert_eq!(world.call(replica, "GET k"), "$1\r\n1\r\n");
    assert_eq!(world.call(master, "WAIT 2 0"), "");
    world.sim("NODE LINK 1 UP");
    assert_eq!(world.received(master), ":2\r\n");
    world.sim("NODE ACK 0 0");
    assert_eq!(world.call(master, "WAIT 1 5"), "");
    world.sim.advance(5);
    assert_eq!(world.received(master), ":0\r\n");
    // Keys on the replica expire when the master's do.
    world.call(master, "SET short v PX 10");
    world.sim.advance(11);
    assert_eq!(world.call(replica, "EXISTS short"), ":0\r\n");
}

#[test]
fn snapshots_bring_data_back_with_the_time_it_had_to_live() {
    let mut world = World::of(1);
    let a = world.named(0, "a");
    world.acquire(a, "A");
    world.sim("RUN SNAPSHOT held");
    world.sim.advance(20_000);
    assert_eq!(world.call(a, "EXISTS lock"), ":0\r\n");
    world.sim("RUN RESTORE held");
    assert_eq!(
        (world.call(a, "HGET lock A"), world.call(a, "PTTL lock")),
        ("$1\r\n1\r\n".into(), ":10000\r\n".into())
    );
}

#[test]
fn a_fenced_store_refuses_a_stale_token() {
    let mut world = World::of(1);
    assert_eq!(world.sim("RUN STORE WRITE doc v2 TOKEN 34"), ":1\r\n");
    assert_eq!(world.sim("RUN STORE WRITE doc v1 TOKEN 33"), ":0\r\n");
    assert_eq!(world.sim("RUN STORE WRITE doc v3 TOKEN 34 MODE GT"), ":0\r\n");
    assert_eq!(world.sim("RUN STORE READ doc"), "*2\r\n$2\r\nv2\r\n:34\r\n");
}

#[test]
fn sim_commands_of_scripts_are_applied_after_the_script() {
    let mut world = World::of(1);
    let a = world.named(0, "a");
    let script = "redis.call('SIM.KEY', 'LOSE', 'k'); return redis.call('exists', 'k')";
    world.call(a, "SET k v");
    assert_eq!(world.sim.call(a, &["EVAL", script, "0"]), b":1\r\n");
    assert_eq!(world.call(a, "EXISTS k"), ":0\r\n");
    let reply = world.sim.call(a, &["EVAL", "return redis.call('SIM.KEY', 'LOOSE', 'k')", "0"]);
    assert!(String::from_utf8_lossy(&reply).contains("SIMERR SYNTAX \"LOOSE\" is not known here"));
}

#[test]
fn mistakes_are_named() {
    let mut world = World::of(1);
    for (line, error) in [
        ("FOO", "UNKNOWN there is no command \"SIM.FOO\": SIM.HELP lists them"),
        ("CLOCK", "SYNTAX NOW, MODE, ADVANCE, TO, NEXT, JUMP, TIMERS or SKEW is missing at the beginning"),
        ("CLOCK ADVANCE x", "SYNTAX \"x\" is not a whole number for the time to advance by, in ms"),
        (
            "CLOCK ADVANCE -1",
            "RANGE the time to advance by, in ms is -1, and has to be between 0 and 31622400000000",
        ),
        ("CLOCK NOW now", "SYNTAX \"now\" is not expected after \"NOW\""),
        (
            "FAULT ADD CMD nosuch DO DROP REPLY",
            "UNKNOWN there is no command \"nosuch\": this could never match",
        ),
        (
            "FAULT ADD SCRIPT rlok.* DO DROP REPLY",
            "UNKNOWN no script has the role \"rlok.*\": this could never match",
        ),
        (
            "FAULT ADD CMD get DO DROP PUSH",
            "SYNTAX CMD get says nothing about messages: this could never match",
        ),
        ("FAULT ADD CMD get DROP REPLY", "SYNTAX \"DROP\" is not known here"),
        ("FAULT ADD CMD get DO DROP", "SYNTAX what to drop is missing after \"DROP\""),
        ("FAULT ADD NODE 3 DO DROP REPLY", "RANGE there is no node 3: they are numbered from 0 to 0"),
        ("FAULT HITS 9", "UNKNOWN there is no rule \"9\""),
        ("GATE RELEASE t9", "UNKNOWN there is no ticket t9"),
        ("GATE ADD AT SIDE", "SYNTAX \"SIDE\" is not a place: PRE, POST, PUSH"),
        ("NODE PAUSE 4", "RANGE there is no node 4: they are numbered from 0 to 0"),
        ("NODE REPLICATE 0 OF 0", "STATE node 0 cannot follow node 0: it would follow itself"),
        ("RUN RESTORE x", "UNKNOWN there is no snapshot \"x\""),
    ] {
        assert_eq!(world.sim(line), format!("-SIMERR {error}\r\n"), "{line}");
    }
}

/// A regression that the fuzz target for commands found.
#[test]
fn a_key_that_a_jump_has_ended_leaves_no_timer_behind() {
    let mut world = World::of(1);
    let app = world.named(0, "app");
    assert_eq!(world.call(app, "SET k v PX 1000"), "+OK\r\n");
    world.sim("CLOCK JUMP 5000");
    assert_eq!(world.sim("NODE RESUME 0"), "+OK\r\n");
    assert_eq!(world.sim("CLOCK TIMERS"), "*0\r\n");
}

#[test]
fn what_fell_due_while_a_node_stood_still_happens_when_it_goes_on() {
    for (still, on) in [("NODE PAUSE 0", "NODE RESUME 0"), ("NODE PAUSE 0", "RUN RESET")] {
        let mut world = World::of(2);
        let (a, b) = (world.named(0, "a"), world.named(1, "b"));
        world.call(a, "BLPOP list 0.1");
        world.call(b, &format!("SIM.{still}"));
        world.call(b, "SIM.CLOCK ADVANCE 200");
        assert_eq!(world.received(a), "");
        world.call(b, &format!("SIM.{on}"));
        assert_eq!(world.received(a), "*-1\r\n", "{on}");
    }
    // The same through the handle, and for a key.
    let mut world = World::of(1);
    let a = world.named(0, "a");
    world.call(a, "SET k v PX 100");
    world.sim.control().pause_node(0).unwrap();
    world.sim.advance(200);
    world.sim.control().resume_node(0).unwrap();
    assert_eq!(world.call(a, "DBSIZE"), ":0\r\n");
    world.call(a, "SET k v PX 100");
    assert!(world.sim("CLOCK JUMP 101").starts_with('*'));
    assert_eq!(world.call(a, "DBSIZE"), ":0\r\n", "the wall clock is past the end of the key");
}

#[test]
fn a_held_write_reaches_the_replicas_when_another_node_releases_it() {
    let mut world = World::of(3);
    let (a, replica) = (world.named(0, "a"), world.named(1, "r"));
    let (other, observer) = (world.named(2, "o"), world.named(1, "l"));
    world.sim("NODE REPLICATE 1 OF 0");
    world.sim("GATE ADD CMD set AT PRE LABEL g");
    world.call(observer, "SUBSCRIBE c");
    for command in ["SET k 1", "SET k 2"] {
        world.call(a, command);
        match command {
            "SET k 1" => assert_eq!(world.call(other, "SIM.GATE RELEASE ALL"), ":1\r\n"),
            _ => assert_eq!(world.call(other, "SIM.RUN SEED 1"), "+OK\r\n"),
        }
        assert_eq!(world.call(replica, "GET k"), "$1\r\n1\r\n");
    }
}

#[test]
fn a_reset_leaves_nothing_that_a_later_test_could_notice() {
    let mut world = World::of(2);
    let now = |world: &mut World| world.sim("CLOCK NOW").lines().nth(2).unwrap()[1..].parse::<i64>().unwrap();
    let began_ms = now(&mut world);
    let (a, b) = (world.named(0, "a"), world.named(1, "b"));
    for round in 0..2 {
        assert_eq!(world.sim("FAULT ADD CMD get DO DELAY REPLY 60000"), ":1\r\n", "round {round}");
        assert_eq!(world.sim("GATE ADD CMD set AT PRE LABEL g"), ":1\r\n");
        assert_eq!(world.call(a, "SET k v"), "");
        assert_eq!(world.sim("GATE AWAIT g"), "*1\r\n$2\r\nt1\r\n");
        world.call(b, "GET k");
        world.call(b, "CLIENT PAUSE 60000 WRITE");
        world.sim("CLOCK ADVANCE 30001");
        world.sim("CLOCK JUMP 5000");
        assert_eq!(now(&mut world), began_ms + 35_001, "NOW knows of a jump of all nodes");
        assert!(world.sim("RUN INFO").contains(&format!("wall_ms\r\n:{}\r\n", began_ms + 35_001)));
        world.sim("CLOCK JUMP 7 NODE 1");
        assert_eq!(world.sim("RUN RESET"), "+OK\r\n");
        assert_eq!(
            (world.received(a), world.received(b)),
            ("+OK\r\n".to_owned(), "$-1\r\n+OK\r\n".to_owned())
        );
        assert_eq!(now(&mut world), began_ms);
        assert!(!world.sim("CLOCK TIMERS").contains("ticket"));
        assert_eq!(world.call(b, "SET k v"), "+OK\r\n");
        assert_eq!(world.call(a, "TIME"), world.call(b, "TIME"));
        assert_eq!(world.call(b, "DEL k"), ":1\r\n");
    }
    // The way back without a reset: a wall clock that jumps.
    world.call(a, "SET k v PX 1000");
    world.sim("CLOCK ADVANCE 500");
    world.sim("CLOCK JUMP HOST");
    assert_eq!(now(&mut world), began_ms);
    assert_eq!(world.call(a, "PTTL k"), ":1000\r\n");
}

#[test]
fn a_reset_forgets_measured_skews() {
    let mut world = World::of(1);
    let app = world.named(0, "app");
    let permit = "local value = redis.call('get', KEYS[1]); if (value == false) then return 0 end; return 1";
    world.sim.call(app, &["EVAL", permit, "1", "k"]);
    world.sim("RUN RESET");
    assert_eq!(world.sim("CLOCK SKEW"), "*0\r\n");
}

#[test]
fn a_rule_that_could_never_act_is_refused() {
    let mut world = World::of(2);
    for line in [
        "FAULT ADD CMD get CMD set DO DROP REPLY",
        "FAULT ADD CMD g* CMD set DO DROP REPLY",
        "FAULT ADD NODE 0 NODE 1 DO DROP REPLY",
        "FAULT ADD NTH 1 NTH 2 DO DROP REPLY",
        "FAULT ADD ARG 1 a ARG 1 b DO DROP REPLY",
        "FAULT ADD CMD get SCRIPT rlock.* DO DROP REPLY",
        "FAULT ADD OWNER A CMD get DO DROP REPLY",
        "FAULT ADD CMD get CHANNEL c DO DROP REPLY",
        "FAULT ADD CMD ping KEY k DO DROP REPLY",
        "FAULT ADD NAME a NAME b DO DROP PUSH",
        "FAULT ADD CMD get DO FAIL SUBCALL 1",
        "FAULT ADD CMD set DO REWRITE ARGV 1 ADD 5",
        "FAULT ADD CHANNEL c DO FAIL SUBCALL 1",
        "GATE ADD CMD get CMD set AT PRE",
    ] {
        let answer = world.sim(line);
        assert!(
            answer.starts_with("-SIMERR SYNTAX ") && answer.contains("this could never "),
            "{line}: {answer}"
        );
    }
    for line in [
        "FAULT ADD CMD get CMD g* DO DROP REPLY",
        "FAULT ADD CMD eval* SCRIPT rlock.* DO FAIL SUBCALL 1",
        "FAULT ADD KEY a KEY b DO DROP REPLY",
        "FAULT ADD SHA ab SHA abcd DO DROP REPLY",
        "FAULT ADD CMD publish CHANNEL c DO DROP REPLY",
        "FAULT ADD DO FAIL SUBCALL 1",
        "FAULT ADD ARG 1 a ARG 2 b DO REWRITE ARGV 1 ADD 5",
    ] {
        assert!(world.sim(line).starts_with(':'), "{line}");
    }
}

#[test]
fn the_bytes_of_a_reply_may_be_escaped_as_a_shell_passes_them() {
    let mut world = World::of(1);
    let app = world.named(0, "app");
    for (bytes, reply) in [
        (r"-ASK_866_127.0.0.1:7001\r\n", "-ASK_866_127.0.0.1:7001\r\n"),
        (r"$3\r\n\x41\\\t\r\n", "$3\r\nA\\\t\r\n"),
        ("$2\r\n\\r\r\n", "$2\r\n\\r\r\n"),
    ] {
        world.sim("FAULT CLEAR");
        world.sim(&format!("FAULT ADD CMD get DO REPLY {bytes}"));
        assert_eq!(world.call(app, "GET k"), reply, "{bytes}");
    }
    for bytes in [":7", r":7\r", r":7\q"] {
        let answer = world.sim(&format!("FAULT ADD CMD get DO REPLY {bytes}"));
        assert!(answer.starts_with("-SIMERR SYNTAX"), "{bytes}: {answer}");
    }
}

#[test]
fn one_lost_request_takes_nothing_else_with_it() {
    let mut world = World::of(1);
    let app = world.named(0, "app");
    for (action, reply) in [
        ("LOSE", "-ERR the request was lost by a fault rule\r\n"),
        (r"LOSE REPLY :1\r\n", ":1\r\n"),
        ("LOSE NOTHING", ""),
    ] {
        world.sim("FAULT CLEAR");
        world.call(app, "SET k v PX 1000");
        world.sim(&format!("FAULT ADD CMD pexpire NTH 1 DO {action} TIMES 1"));
        assert!(world.sim("FAULT LIST").contains("DO LOSE"));
        // One read of the server: the requests before and behind it are served, in order.
        world.sim.send(app, &[b"PING"]);
        world.sim.send(app, &[b"PEXPIRE", b"k", b"5000"]);
        world.sim.send(app, &[b"PTTL", b"k"]);
        assert_eq!(world.received(app), format!("+PONG\r\n{reply}:1000\r\n"), "{action}");
        assert_eq!(world.call(app, "PEXPIRE k 5000"), ":1\r\n", "{action}");
    }
}

#[test]
fn a_gate_that_went_with_its_connection_says_so() {
    let mut world = World::of(1);
    let once = world.sim.connect(0);
    assert_eq!(world.call(once, "SIM.GATE ADD CMD set AT PRE LABEL g"), ":1\r\n");
    world.sim.disconnect(once);
    for name in ["1", "g"] {
        assert_eq!(
            world.sim(&format!("GATE AWAIT {name}")),
            format!(
                "-SIMERR UNKNOWN there is no gate \"{name}\": it was removed with the connection that added it, because it had no KEEP\r\n"
            )
        );
    }
    assert_eq!(world.sim("GATE AWAIT h"), "-SIMERR UNKNOWN there is no gate \"h\"\r\n");
}

#[test]
fn help_explains_matches_and_actions() {
    let mut world = World::of(1);
    let help = world.sim("HELP");
    for word in [
        "CONN <id>",
        "CHANNEL <channel>",
        "DROP REQUEST",
        "LOSE",
        "REWRITE ARG",
        "DUP PUSH <n>",
        "without KEEP",
    ] {
        assert!(help.to_lowercase().contains(&word.to_lowercase()), "{word}");
    }
}
