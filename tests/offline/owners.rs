//! The history of locks: who was told that he holds what, across nodes and time. The numbers are those of the scenarios in
//! docs/scenarios.md.

use redlatch::{Client, Sim, SimOptions};
use redlatch_locks::check::{Checks, Finding};
use redlatch_locks::history::Cause;

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

const RENEW: &str = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
    redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";

const UNLOCK: &str = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; \
    local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
    if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; \
    else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;";

const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const COMPARE_AND_EXPIRE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

const NIL: &[u8] = b"$-1\r\n";

/// Nodes with checks on, a client of each owner at each node, and one that injects faults.
struct Run {
    sim: Sim,
    control: Client,
}

impl Run {
    fn of(nodes: usize) -> Run {
        let mut sim = Sim::new(SimOptions::default().nodes(nodes).seed(7));
        sim.check(Checks::default());
        sim.start_trace();
        let control = sim.connect(0);
        Run { sim, control }
    }

    fn connect(&mut self, node: usize, name: &str) -> Client {
        let client = self.sim.connect(node);
        self.sim.call(client, &["CLIENT", "SETNAME", name]);
        client
    }

    fn call(&mut self, client: Client, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8_lossy(&self.sim.call(client, &words)).into_owned()
    }

    fn control(&mut self, line: &str) -> String {
        let reply = self.call(self.control, line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        reply
    }

    fn acquire(&mut self, client: Client, owner: &str) -> Vec<u8> {
        self.sim.call(client, &["EVAL", ACQUIRE, "1", "orders", "30000", owner])
    }

    fn renew(&mut self, client: Client, owner: &str) -> Vec<u8> {
        self.sim.call(client, &["EVAL", RENEW, "1", "orders", "30000", owner])
    }

    fn unlock(&mut self, client: Client, owner: &str) -> Vec<u8> {
        self.sim.call(client, &["EVAL", UNLOCK, "2", "orders", "channel", "0", "30000", owner])
    }

    fn take(&mut self, client: Client, owner: &str) {
        assert_eq!(self.acquire(client, owner), NIL, "{owner}");
    }

    /// Returns the only violation, which names the grants of these owners.
    #[track_caller]
    fn only(&mut self, promise: &str, cause: Cause, owners: &[&str]) -> Finding {
        let found = self.sim.findings().to_vec();
        let [finding] = &found[..] else { panic!("{} violations: {found:#?}", found.len()) };
        assert_eq!((&finding.promise()[..], finding.cause), (promise, Some(cause)), "{finding}");
        let named: Vec<String> =
            finding.grants.iter().map(|grant| String::from_utf8_lossy(&grant.owner).into_owned()).collect();
        assert_eq!(named, owners, "{finding}");
        let report = self.control("SIM.CHECK REPORT");
        assert!(report.contains("violations 1; ") && report.contains("violated 1 times"), "{report}");
        let listed = self.control("SIM.CHECK LIST");
        assert!(
            owners.iter().all(|owner| listed.contains(&format!("{owner}: granted by event"))),
            "{listed}"
        );
        let trace = self.sim.finish_trace();
        redlatch_lab::trace::Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
        finding.clone()
    }
}

#[test]
fn row_1_the_lease_expires_while_its_holder_is_paused() {
    let mut run = Run::of(1);
    let (first, second) = (run.connect(0, "first"), run.connect(0, "second"));
    run.take(first, "a:1");
    run.control("SIM.GATE ADD NAME first AT PRE LABEL pause");
    run.control("SIM.CLOCK ADVANCE 10000");
    assert_eq!(run.renew(first, "a:1"), b"");
    run.control("SIM.CLOCK ADVANCE 20001");
    run.take(second, "b:1");
    run.control("SIM.GATE DEL pause");
    assert_eq!(run.sim.received(first), b":0\r\n");
    run.only("H1@acquire", Cause::LostRenewal, &["a:1", "b:1"]);
}

#[test]
fn row_2_a_renewal_is_missing_or_late() {
    for action in ["DROP REQUEST", "DELAY REQUEST 60000"] {
        let mut run = Run::of(1);
        let (a, b) = (run.connect(0, "a"), run.connect(0, "b"));
        run.take(a, "a:1");
        run.sim.advance(10_000);
        assert_eq!(run.renew(a, "a:1"), b":1\r\n");
        run.control(&format!("SIM.FAULT ADD SCRIPT rlock.renew DO {action}"));
        run.sim.advance(10_000);
        assert_eq!(run.renew(a, "a:1"), b"");
        run.sim.advance(20_001);
        run.take(b, "b:1");
        run.only("H1@acquire", Cause::LostRenewal, &["a:1", "b:1"]);
    }
}

#[test]
fn row_5_a_request_runs_twice() {
    let mut run = Run::of(1);
    let a = run.connect(0, "a");
    run.control("SIM.FAULT ADD SCRIPT rlock.acquire DO DUP 2");
    run.take(a, "a:1");
    assert_eq!(run.call(a, "HGET orders a:1"), "$1\r\n2\r\n");
    assert_eq!(run.unlock(a, "a:1"), b":0\r\n");
    let finding = run.only("H4@unlock", Cause::Rule, &["a:1"]);
    assert!(finding.between[0].contains("DUP 2"), "{finding}");
}

#[test]
fn row_14_a_failover_loses_a_lock() {
    let mut run = Run::of(2);
    run.control("SIM.NODE REPLICATE 1 OF 0");
    let (a, b) = (run.connect(0, "a"), run.connect(1, "b"));
    run.control = run.connect(1, "control");
    run.control("SIM.NODE LINK 1 DOWN");
    run.take(a, "a:1");
    run.control("SIM.NODE STOP 0");
    run.control("SIM.NODE PROMOTE 1");
    run.take(b, "b:1");
    let finding = run.only("H1@acquire", Cause::Promotion, &["a:1", "b:1"]);
    assert!(finding.between.iter().any(|line| line.contains("SIM.NODE PROMOTE 1")), "{finding}");
    assert_eq!(finding.grants.iter().map(|grant| grant.conn.node).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn row_17_the_clock_of_one_node_of_a_redlock_jumps() {
    let mut run = Run::of(3);
    let clients: Vec<Client> = (0..6).map(|n| run.connect(n % 3, "any")).collect();
    run.take(clients[0], "a:1");
    run.take(clients[1], "a:1");
    assert_ne!(run.acquire(clients[3], "b:1"), NIL);
    assert_ne!(run.acquire(clients[4], "b:1"), NIL);
    run.take(clients[5], "b:1");
    // One of three nodes: no majority yet.
    assert!(run.sim.findings().is_empty());
    run.control("SIM.CLOCK JUMP 30001 NODE 1");
    run.take(clients[4], "b:1");
    run.only("H1@acquire", Cause::ClockJump, &["a:1", "b:1"]);
}

#[test]
fn row_18_two_masters_at_once() {
    let mut run = Run::of(2);
    run.control("SIM.NODE REPLICATE 1 OF 0");
    let (a, b) = (run.connect(0, "a"), run.connect(1, "b"));
    run.control("SIM.NODE PROMOTE 1");
    run.take(a, "a:1");
    run.take(b, "b:1");
    run.control("SIM.NODE REPLICATE 0 OF 1");
    run.only("H1@acquire", Cause::Promotion, &["a:1", "b:1"]);
}

#[test]
fn row_31_another_client_deletes_the_lock() {
    for (line, cause) in [("FLUSHALL", Cause::DataLoss), ("DEL orders", Cause::Deletion)] {
        let mut run = Run::of(1);
        let (a, b, other) = (run.connect(0, "a"), run.connect(0, "b"), run.connect(0, "other"));
        run.take(a, "a:1");
        run.call(other, line);
        run.take(b, "b:1");
        let finding = run.only("H1@acquire", cause, &["a:1", "b:1"]);
        assert!(finding.between.iter().any(|happening| happening.contains(line)), "{finding}");
        // Nobody else takes it: its owner finds out.
        let mut run = Run::of(1);
        let (a, other) = (run.connect(0, "a"), run.connect(0, "other"));
        run.take(a, "a:1");
        run.call(other, line);
        assert_eq!(run.unlock(a, "a:1"), NIL);
        run.only("H2@unlock", cause, &["a:1"]);
    }
}

#[test]
fn row_33_two_clients_have_the_same_id() {
    let mut run = Run::of(1);
    let (a, b) = (run.connect(0, "a"), run.connect(0, "b"));
    run.control("SIM.FAULT ADD SCRIPT rlock.* NAME b DO REWRITE ARGV 2 SET a:1 ALWAYS");
    run.take(a, "a:1");
    run.take(b, "b:1");
    run.only("H1@acquire", Cause::Rule, &["a:1", "b:1"]);
}

#[test]
fn an_owner_who_deletes_without_looking_sets_another_owners_lock_free() {
    let mut run = Run::of(1);
    let (a, b) = (run.connect(0, "a"), run.connect(0, "b"));
    assert_eq!(run.call(a, "SET job:lock a NX PX 1000"), "+OK\r\n");
    run.sim.advance(1_001);
    assert_eq!(run.call(b, "SET job:lock b NX PX 1000"), "+OK\r\n");
    assert_eq!(run.call(a, "DEL job:lock"), ":1\r\n");
    let finding = run.only("H3@delete", Cause::Deletion, &["a", "b"]);
    assert!(finding.violation.text.contains("which he does not hold any more: b holds it"), "{finding}");
}

#[test]
fn locks_by_tokens_are_judged_by_their_effects() {
    let token = ["2f0d7c1be9a84cf3", "91be0a44d7c35f68"];
    let mut run = Run::of(2);
    run.control("SIM.NODE REPLICATE 1 OF 0");
    let (a, b) = (run.connect(0, "a"), run.connect(1, "b"));
    run.control("SIM.NODE LINK 1 DOWN");
    assert_eq!(run.call(a, &format!("SET stock {} NX PX 5000", token[0])), "+OK\r\n");
    run.sim.advance(4_000);
    assert_eq!(run.sim.call(a, &["EVAL", COMPARE_AND_EXPIRE, "1", "stock", token[0], "5000"]), b":1\r\n");
    run.sim.advance(4_000);
    run.control("SIM.NODE PROMOTE 1");
    assert_eq!(run.call(b, &format!("SET stock {} NX PX 5000", token[1])), "+OK\r\n");
    run.only("H1@acquire", Cause::Promotion, &token);
}

/// Locks of all kinds, used as they should be.
#[test]
fn ordinary_use_is_no_violation() {
    let mut run = Run::of(1);
    let clients: Vec<Client> = (0..4).map(|n| run.connect(0, &format!("c{n}"))).collect();
    let mut rng = redlatch_core::rng::Rng::new(11);
    let (mut granted, mut refused) = (0, 0);
    for round in 0..4_000_u64 {
        let n = rng.below(4);
        let (client, owner) = (clients[n], format!("{n}-5f0d7c1be9a84cf3:1"));
        match rng.below(12) {
            0 | 1 => match run.acquire(client, &owner) == NIL {
                true => granted += 1,
                false => refused += 1,
            },
            2 => drop(run.renew(client, &owner)),
            // After the lease, too: it answers that the lock is not held.
            3 | 4 => drop(run.unlock(client, &owner)),
            5 | 6 => drop(run.call(client, &format!("SET stock {owner} NX PX 40"))),
            7 => drop(run.sim.call(client, &["EVAL", COMPARE_AND_DELETE, "1", "stock", &owner])),
            8 => drop(run.sim.call(client, &["EVAL", COMPARE_AND_EXPIRE, "1", "stock", &owner, "60"])),
            // A cache, and a key that only the first may write.
            9 => drop(run.call(client, &format!("SET page v{round} NX EX 1"))),
            10 => drop(run.call(client, "DEL page")),
            _ => drop(run.sim.advance(rng.below(if round % 50 == 0 { 40_000 } else { 30 }) as u64)),
        }
    }
    assert!(granted > 50 && refused > 50, "{granted} {refused}");
    assert_eq!(run.sim.findings(), []);
    let report = run.control("SIM.CHECK REPORT");
    assert!(report.contains("violations 0; scripts judged ") && report.contains("not judged"), "{report}");
    assert!(run.sim.lab().history_tally().judged > 1_000, "{report}");
}

#[test]
fn a_thousand_violations_of_one_kind_do_not_hide_another() {
    let mut run = Run::of(1);
    let (a, b, other) = (run.connect(0, "a"), run.connect(0, "b"), run.connect(0, "other"));
    for _ in 0..1_200 {
        run.take(a, "a:1");
        run.call(other, "FLUSHALL");
        run.take(b, "b:1");
        run.unlock(b, "b:1");
        run.sim.advance(30_001);
    }
    run.take(a, "a:1");
    run.call(other, "DEL orders");
    assert_eq!(run.unlock(a, "a:1"), NIL);
    let report = run.control("SIM.CHECK REPORT");
    assert!(report.contains("violated 1200 times: H1@acquire of rlock, cause: loss of data"), "{report}");
    assert!(report.contains("violated 1 times: H2@unlock of rlock, cause: deletion of the key"), "{report}");
    assert!(run.sim.findings().len() < 110);
}

/// The scripts of other libraries have other texts and replies, and leave the same traces in the data.
const OBTAIN: &str = "local owner = redis.call('GET', KEYS[1]); if owner == ARGV[1] then \
    redis.call('PEXPIRE', KEYS[1], ARGV[2]); return true elseif not owner then \
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]); return true end return false";
const OBTAIN_ALL: &str = "for _, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end \
    for _, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS";
const RELEASE_AND_SIGNAL: &str = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('del', KEYS[2]) \
    redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2]) redis.call('del', KEYS[1]) return 0";

#[test]
fn locks_of_other_libraries_are_judged() {
    let (first, second) = ("3c2f7d0e-70d4-4b57-9d0f-1", "77a1c0de-02b6-4a55-8a6e-2");
    for (acquire, release) in [
        (OBTAIN, COMPARE_AND_DELETE),
        (OBTAIN_ALL, COMPARE_AND_DELETE),
        (OBTAIN, RELEASE_AND_SIGNAL),
        (OBTAIN_ALL, "DELEX"),
    ] {
        let mut run = Run::of(1);
        let (a, b, other) = (run.connect(0, "a"), run.connect(0, "b"), run.connect(0, "other"));
        let obtain = |run: &mut Run, client: Client, owner: &str| {
            run.sim.call(client, &["EVAL", acquire, "1", "stock", owner, "1000"])
        };
        let give_back = |run: &mut Run, client: Client, owner: &str| match release {
            "DELEX" => run.sim.call(client, &["DELEX", "stock", "IFEQ", owner]),
            _ => run.sim.call(client, &["EVAL", release, "2", "stock", "signal", owner, "1000"]),
        };
        // Refused, released, given to the next, left to end, taken by the first, who comes too late.
        for owner in [first, second, first] {
            obtain(&mut run, a, owner);
            obtain(&mut run, b, second);
            give_back(&mut run, a, first);
            obtain(&mut run, b, second);
            run.sim.advance(1_001);
            give_back(&mut run, b, second);
        }
        assert_eq!(run.sim.findings(), [], "{acquire} {release}");
        obtain(&mut run, a, first);
        run.call(other, "FLUSHALL");
        obtain(&mut run, b, second);
        let judged = run.sim.lab().history_tally();
        assert!(judged.judged > 8, "{judged:?}");
        run.only("H1@acquire", Cause::DataLoss, &[first, second]);
    }
}

#[test]
fn a_job_that_keeps_its_key_for_a_while_has_released_it() {
    let mut run = Run::of(1);
    let (a, b) = (run.connect(0, "a"), run.connect(0, "b"));
    assert_eq!(run.call(a, "SET job-lock:report ADDED:12:00@one NX PX 60000"), "+OK\r\n");
    assert_eq!(run.call(a, "SET job-lock:report ADDED:12:01@one XX PX 2000"), "+OK\r\n");
    assert_eq!(run.call(b, "SET job-lock:report ADDED:12:01@two NX PX 60000"), "$-1\r\n");
    run.sim.advance(2_001);
    assert_eq!(run.call(b, "SET job-lock:report ADDED:12:02@two NX PX 60000"), "+OK\r\n");
    assert_eq!(run.sim.findings(), []);
}

#[test]
fn what_is_not_judged_is_counted_with_the_reason() {
    let mut run = Run::of(1);
    let (a, b) = (run.connect(0, "a"), run.connect(0, "b"));
    run.call(a, "MULTI");
    run.acquire(a, "a:1");
    run.call(a, "EXEC");
    run.call(b, "SUBSCRIBE channel");
    run.call(b, "SET some:lock b NX");
    run.sim.call(a, &["EVAL", "return redis.call('get', KEYS[1])", "1", "x"]);
    run.control("SIM.NODE STATE 0 OOM ON");
    run.acquire(a, "a:1");
    let report = run.control("SIM.CHECK REPORT");
    for reason in [
        "violations 0; scripts judged ",
        "rlock: inside MULTI",
        "set-nx: the replies of its connection cannot be followed",
        "script: a script that is not known, and has changed no lock",
        "rlock: an error",
    ] {
        assert!(report.contains(reason), "{reason}: {report}");
    }
}
