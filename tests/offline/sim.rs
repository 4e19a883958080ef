//! The in-process handle: time, blocked clients, messages, scripts and several nodes, without sockets.

use redlatch::{Client, Sim, SimOptions};

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

fn sim() -> Sim {
    Sim::new(SimOptions::default())
}

fn call(sim: &mut Sim, client: Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8(sim.call(client, &words)).unwrap()
}

fn acquire(sim: &mut Sim, client: Client, owner: &str) -> String {
    String::from_utf8(sim.call(client, &["EVAL", ACQUIRE, "1", "lock", "30000", owner])).unwrap()
}

#[test]
fn a_lease_ends_at_its_millisecond() {
    let mut sim = sim();
    let (a, b) = (sim.connect(0), sim.connect(0));
    assert_eq!(acquire(&mut sim, a, "A"), "$-1\r\n");
    sim.advance(29_999);
    assert_eq!(acquire(&mut sim, b, "B"), ":1\r\n");
    sim.advance(1);
    // The key is alive to the end of its last millisecond, as in Redis.
    assert_eq!(acquire(&mut sim, b, "B"), ":0\r\n");
    sim.advance(1);
    assert_eq!(acquire(&mut sim, b, "B"), "$-1\r\n");
    assert_eq!(call(&mut sim, b, "HGETALL lock"), "*2\r\n$1\r\nB\r\n$1\r\n1\r\n");
}

#[test]
fn keys_that_nobody_touches_end_with_their_event_in_the_order_of_their_deadlines() {
    let mut sim = sim();
    let (a, listener) = (sim.connect(0), sim.connect(0));
    call(&mut sim, a, "CONFIG SET notify-keyspace-events Ex");
    call(&mut sim, listener, "SUBSCRIBE __keyevent@0__:expired");
    for (key, ttl_ms) in [("late", "500"), ("first", "100"), ("second", "100")] {
        call(&mut sim, a, &format!("SET {key} v PX {ttl_ms}"));
    }
    assert_eq!(sim.advance(100), 0);
    assert_eq!(sim.advance(3_600_000), 3);
    let heard = String::from_utf8(sim.received(listener)).unwrap();
    let order: Vec<usize> = ["first", "second", "late"].iter().map(|key| heard.find(key).unwrap()).collect();
    assert!(order.is_sorted(), "{heard}");
    assert_eq!(call(&mut sim, a, "DBSIZE"), ":0\r\n");
}

#[test]
fn the_caller_of_an_unlock_has_its_reply_after_the_waiter_has_its_message() {
    let mut sim = sim();
    let (holder, waiter) = (sim.connect(0), sim.connect(0));
    call(&mut sim, waiter, "SUBSCRIBE channel");
    let reply = sim.call(holder, &["EVAL", "redis.call('publish', 'channel', '0') return 1", "0"]);
    assert_eq!(reply, b":1\r\n");
    assert_eq!(sim.received(waiter), b"*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$1\r\n0\r\n");
}

#[test]
fn a_script_sees_time_stand_still() {
    let mut sim = sim();
    let a = sim.connect(0);
    let reply = sim.call(
        a,
        &[
            "EVAL",
            "local t = redis.call('time') for i = 1, 300000 do end local u = redis.call('time') \
          return t[1] == u[1] and t[2] == u[2]",
            "0",
        ],
    );
    assert_eq!(reply, b":1\r\n");
}

#[test]
fn a_script_that_loops_is_busy_and_can_be_killed() {
    let mut sim = sim();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, b, "CONFIG SET busy-reply-threshold 3");
    assert_eq!(call(&mut sim, b, "SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.\r\n");
    assert_eq!(sim.call(a, &["EVAL", "while true do pcall(function() while true do end end) end", "0"]), b"");
    assert!(sim.is_waiting(a));
    assert!(call(&mut sim, b, "GET k").starts_with("-BUSY "));
    assert_eq!(call(&mut sim, b, "SCRIPT KILL"), "+OK\r\n");
    sim.run_slice(0);
    let reply = String::from_utf8(sim.received(a)).unwrap();
    assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL"), "{reply}");
    assert_eq!(call(&mut sim, b, "GET k"), "$-1\r\n");
    assert_eq!(call(&mut sim, a, "PING"), "+PONG\r\n");
}

#[test]
fn a_script_that_has_written_cannot_be_killed_and_its_transaction_goes_on_after_it() {
    let mut sim = sim();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, b, "CONFIG SET busy-reply-threshold 2");
    call(&mut sim, a, "MULTI");
    sim.call(a, &["EVAL", "redis.call('set', 'k', '1') for i = 1, 2000000 do end return 7", "0"]);
    call(&mut sim, a, "INCR k");
    assert_eq!(call(&mut sim, a, "EXEC"), "");
    assert!(call(&mut sim, b, "SCRIPT KILL").starts_with("-UNKILLABLE "));
    while sim.run_slice(0) {}
    assert_eq!(sim.received(a), b"*2\r\n:7\r\n:2\r\n");
}

#[test]
fn blocked_clients_are_served_in_the_order_they_came() {
    let mut sim = sim();
    let (a, b, c) = (sim.connect(0), sim.connect(0), sim.connect(0));
    assert_eq!(call(&mut sim, b, "BLPOP l 0"), "");
    assert_eq!(call(&mut sim, c, "BLPOP l 5"), "");
    assert_eq!(sim.call(a, &["EVAL", "return redis.call('rpush', 'l', 'x')", "0"]), b":1\r\n");
    assert_eq!(sim.received(b), b"*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    assert_eq!(sim.received(c), b"");
    sim.advance(5_000);
    assert_eq!(sim.received(c), b"*-1\r\n");
}

#[test]
fn nodes_share_one_clock_and_nothing_else() {
    let mut sim = Sim::new(SimOptions::default().nodes(3));
    let clients: Vec<Client> = (0..3).map(|node| sim.connect(node)).collect();
    call(&mut sim, clients[0], "SET k v PX 1000");
    assert_eq!(call(&mut sim, clients[1], "GET k"), "$-1\r\n");
    let times: Vec<String> = clients.iter().map(|&client| call(&mut sim, client, "TIME")).collect();
    assert!(times.iter().all(|time| *time == times[0]));
    sim.advance(1_001);
    assert_eq!(call(&mut sim, clients[0], "DBSIZE"), ":0\r\n");
}

#[test]
fn a_pause_holds_back_and_then_lets_go_in_order() {
    let mut sim = sim();
    let (a, b, c) = (sim.connect(0), sim.connect(0), sim.connect(0));
    call(&mut sim, a, "CLIENT PAUSE 1000 WRITE");
    assert_eq!(call(&mut sim, b, "RPUSH l b"), "");
    assert_eq!(call(&mut sim, c, "RPUSH l c"), "");
    assert_eq!(call(&mut sim, a, "LLEN l"), ":0\r\n");
    sim.advance(1_000);
    assert_eq!((sim.received(b), sim.received(c)), (b":1\r\n".to_vec(), b":2\r\n".to_vec()));
}

#[test]
fn the_script_of_a_client_that_left_goes_on_where_it_was() {
    let mut sim = sim();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, b, "CONFIG SET busy-reply-threshold 2");
    call(&mut sim, a, "SELECT 3");
    sim.call(a, &["EVAL", "for i = 1, 2000000 do end redis.call('set', 'k', 'v')", "0"]);
    sim.disconnect(a);
    while sim.run_slice(0) {}
    assert_eq!(call(&mut sim, b, "DBSIZE"), ":0\r\n");
    call(&mut sim, b, "SELECT 3");
    assert_eq!(call(&mut sim, b, "GET k"), "$1\r\nv\r\n");
    assert!(!call(&mut sim, b, "CLIENT LIST").contains("cmd=eval"));
}

#[test]
fn a_key_past_its_end_that_still_stands_is_as_good_as_gone() {
    let mut sim = sim();
    let a = sim.connect(0);
    call(&mut sim, a, "SET k v PX 10");
    call(&mut sim, a, "CLIENT PAUSE 1000 WRITE");
    sim.advance(20);
    assert_eq!(call(&mut sim, a, "GET k"), "$-1\r\n");
    call(&mut sim, a, "CLIENT UNPAUSE");
    call(&mut sim, a, "SET k w");
    sim.advance(10_000);
    assert_eq!(call(&mut sim, a, "GET k"), "$1\r\nw\r\n");
    assert!(call(&mut sim, a, "INFO keyspace").contains("keys=1,expires=0"));
}

#[test]
fn a_client_that_leaves_leaves_nothing() {
    let mut sim = sim();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, b, "SUBSCRIBE x");
    sim.disconnect(b);
    let c = sim.connect(0);
    call(&mut sim, c, "BLPOP l 0");
    sim.disconnect(c);
    assert_eq!(call(&mut sim, a, "PUBSUB CHANNELS"), "*0\r\n");
    assert_eq!(call(&mut sim, a, "RPUSH l x"), ":1\r\n");
    assert_eq!(call(&mut sim, a, "LLEN l"), ":1\r\n");
}

#[test]
fn a_save_moves_lastsave_and_ends_the_count_of_changes() {
    let mut sim = sim();
    let a = sim.connect(0);
    let at_start: i64 = call(&mut sim, a, "LASTSAVE")[1..].trim().parse().unwrap();
    call(&mut sim, a, "SET k v");
    assert!(call(&mut sim, a, "INFO persistence").contains("rdb_changes_since_last_save:1\r\n"));
    for (seconds, save) in [(3, "SAVE"), (5, "BGSAVE")] {
        sim.advance(seconds * 1000);
        call(&mut sim, a, save);
    }
    assert_eq!(call(&mut sim, a, "LASTSAVE"), format!(":{}\r\n", at_start + 8));
    let info = call(&mut sim, a, "INFO persistence");
    assert!(info.contains("rdb_changes_since_last_save:0\r\n") && info.contains("rdb_saves:2\r\n"));
}
