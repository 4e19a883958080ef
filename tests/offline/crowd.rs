//! A crowd of clients in different states, for tests of recorded runs.

use redlatch::{Client, Sim};

/// The script of a re-entrant lock.
pub const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

/// Sends a request, given as words, and returns the reply.
pub fn call(sim: &mut Sim, client: Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8_lossy(&sim.call(client, &words)).into_owned()
}

/// Lets a gate hold a request and another a reply, clients block, a transaction stay open, a reply be delayed, a node be paused.
/// `clients` are seven or more of node 0, `other` is one of node 2.
pub fn crowd(sim: &mut Sim, control: Client, clients: &[Client], other: Client) {
    call(sim, control, "SIM.GATE ADD CMD decr AT PRE LABEL before KEEP");
    call(sim, control, "SIM.GATE ADD CMD incr AT POST LABEL after KEEP");
    call(sim, control, "SIM.FAULT ADD CMD append DO DELAY REPLY 30 ALWAYS");
    call(sim, clients[2], "DECR n");
    call(sim, clients[3], "INCR n");
    call(sim, clients[4], "BLPOP queue other 0.08");
    call(sim, clients[5], "MULTI");
    call(sim, clients[5], "SET in multi");
    call(sim, clients[6], "SUBSCRIBE news");
    call(sim, clients[0], "WATCH k0");
    call(sim, clients[1], "APPEND text x");
    call(sim, control, "SIM.NODE PAUSE 2");
    call(sim, other, "SET waits yes");
    sim.advance(20);
    call(sim, clients[0], "PUBLISH news one");
}
