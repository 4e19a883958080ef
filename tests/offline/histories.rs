//! The history of locks for others: what is exported, live and from a trace, and whether it is linearizable.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::Path;
use std::process::{Command, Output};

use redlatch::{Client, Sim, SimOptions};
use redlatch_core::rng::Rng;
use redlatch_lab::trace::{Replay, Tape};
use redlatch_lab::travel::history;
use redlatch_locks::check::Checks;
use redlatch_locks::datum::Datum;
use redlatch_locks::history::Cause;
use redlatch_locks::history::export::Format;
use redlatch_locks::history::log::MAX_OPERATIONS;
use redlatch_locks::linearize::{Limit, ModelName, Report, judge, read};

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";
const RENEW: &str = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]); \
    return 1; end; return 0;";
const UNLOCK: &str = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; \
    local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); if (counter > 0) then \
    redis.call('pexpire', KEYS[1], ARGV[2]); return 0; else redis.call('del', KEYS[1]); \
    redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;";
const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

fn call(sim: &mut Sim, client: Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8_lossy(&sim.call(client, &words)).into_owned()
}

fn acquire(sim: &mut Sim, client: Client, owner: &str, lease: &str) -> Vec<u8> {
    sim.call(client, &["EVAL", ACQUIRE, "1", "orders", lease, owner])
}

fn unlock(sim: &mut Sim, client: Client, owner: &str) -> Vec<u8> {
    sim.call(client, &["EVAL", UNLOCK, "2", "orders", "channel", "0", "30000", owner])
}

fn judged(text: &str, model: Option<&str>) -> Report {
    let model = model.map(|name| ModelName::parse(name).unwrap());
    let mut limit = Limit { configurations: 1_000_000, is_over: &mut || false };
    judge(&read(text).unwrap(), model, &mut limit).unwrap()
}

fn operations(report: &Report) -> usize {
    report.locks.iter().map(|lock| lock.operations).sum()
}

/// Returns the history of a trace, which is judged alike in both formats.
fn export(trace: &str) -> (String, Report) {
    let tape = Tape::of(trace);
    let [edn, json] = [Format::Edn, Format::Json].map(|format| history::export(&tape, format).unwrap());
    let report = judged(&edn, None);
    assert_eq!(report.to_string(), judged(&json, None).to_string());
    (edn, report)
}

/// Locks of two kinds in random use, with leases that end.
fn ordinary(rounds: u64, seed: u64) -> Sim {
    let mut sim = Sim::new(SimOptions::default());
    sim.check(Checks::default());
    sim.start_trace();
    let clients: Vec<Client> = (0..4).map(|_| sim.connect(0)).collect();
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        let n = rng.below(4);
        let (client, owner) = (clients[n], format!("{n}-5f0d7c1be9a84cf3:1"));
        match rng.below(9) {
            0 | 1 => drop(acquire(&mut sim, client, &owner, "30000")),
            2 => drop(sim.call(client, &["EVAL", RENEW, "1", "orders", "30000", &owner])),
            3 | 4 => drop(unlock(&mut sim, client, &owner)),
            5 => drop(call(&mut sim, client, &format!("SET stock {owner} NX PX 40"))),
            6 => drop(sim.call(client, &["EVAL", COMPARE_AND_DELETE, "1", "stock", &owner])),
            7 => drop(call(&mut sim, client, &format!("SET page v{round} NX EX 1"))),
            _ => drop(sim.advance(rng.below(if round % 50 == 0 { 40_000 } else { 30 }) as u64)),
        }
    }
    sim
}

#[test]
fn ordinary_use_is_linearizable() {
    for seed in 0..8 {
        let (edn, report) = export(&ordinary(2_000, seed).finish_trace());
        assert_eq!(report.is_linearizable(), Some(true), "{report}");
        assert!(operations(&report) > 300, "{report}");
        // A cache is no lock.
        assert!(
            !edn.contains(":key \"page\"") && edn.contains("that nothing but NX shows to be locks"),
            "{edn}"
        );
        // What is checked is that only one holds the lock.
        assert_eq!(judged(&edn, Some("mutex")).is_linearizable(), Some(false));
    }
}

#[test]
fn a_lock_that_is_lost_is_not_linearizable() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    sim.start_trace();
    let control = sim.connect(1);
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    let (a, b) = (sim.connect(0), sim.connect(1));
    acquire(&mut sim, a, "z:1", "30000");
    unlock(&mut sim, a, "z:1");
    call(&mut sim, control, "SIM.NODE LINK 1 DOWN");
    acquire(&mut sim, a, "a:1", "30000");
    call(&mut sim, control, "SIM.NODE PROMOTE 1");
    acquire(&mut sim, b, "b:1", "30000");
    let (_, report) = export(&sim.finish_trace());
    assert_eq!(report.is_linearizable(), Some(false));
    let shown = report.to_string();
    assert!(shown.starts_with("orders (reentrant, 4 operations): not linearizable\n"), "{shown}");
    assert!(
        shown.contains("ends with the reply to\n    operation 3: b:1 acquire, lease 30000 ms: ok"),
        "{shown}"
    );
    assert!(shown.contains("then a:1 holds it, at least until 30000 ms"), "{shown}");
}

#[test]
fn what_was_cut_off_may_have_happened() {
    for action in ["DROP REPLY", "ERROR no AFTER"] {
        let mut sim = Sim::new(SimOptions::default());
        sim.start_trace();
        let (a, b) = (sim.connect(0), sim.connect(0));
        call(&mut sim, b, "SET some:lock a NX PX 50000");
        call(&mut sim, a, &format!("SIM.FAULT ADD CMD delex DO {action}"));
        call(&mut sim, a, "DELEX some:lock IFEQ a");
        call(&mut sim, b, "DEL some:lock");
        call(&mut sim, b, "SET some:lock b NX PX 50000");
        let (edn, report) = export(&sim.finish_trace());
        assert!(edn.contains(":type :info, :process 0, :f :release"), "{edn}");
        assert_eq!(report.is_linearizable(), Some(true), "{edn}");
        let without: String = edn.lines().filter(|line| !line.contains(":f :delete")).collect();
        assert_eq!(judged(&without, None).is_linearizable(), Some(true));
        let without: String = without.replace(":type :info", ":type :fail");
        assert_eq!(judged(&without, None).is_linearizable(), Some(false));
    }
}

#[test]
fn the_live_history_has_the_last_operations() {
    let mut sim = ordinary(300, 3);
    let control = sim.connect(0);
    let live = |sim: &mut Sim, format: &str| {
        let reply = sim.call(control, &["SIM.CHECK", "HISTORY", format]);
        let reply = String::from_utf8(reply).unwrap();
        reply.split_once("\r\n").unwrap().1.strip_suffix("\r\n").unwrap().to_owned()
    };
    let trace_so_far = live(&mut sim, "EDN");
    let a = sim.connect(0);
    let text = live(&mut sim, "TEXT");
    assert!(text.contains("lock orders (rlock, database 0, node 0)\n  "), "{text}");
    for _ in 0..MAX_OPERATIONS {
        call(&mut sim, a, "SET other:lock a NX PX 50000");
    }
    let json = live(&mut sim, "JSON");
    let Datum::List(rows) = &Datum::read_all(&json).unwrap()[0] else { panic!("{json}") };
    assert_eq!(rows.len(), MAX_OPERATIONS);
    let first = rows[0].get("Input").unwrap().get("Op").unwrap().int().unwrap();
    assert!(first > 100, "{first}");
    assert!(live(&mut sim, "EDN").starts_with(&format!("; {first} older operations were dropped\n")));
    // It begins in the middle, and is judged so.
    assert_eq!(judged(&json, None).is_linearizable(), Some(true));
    call(&mut sim, control, "SIM.CHECK RESET");
    assert_eq!(live(&mut sim, "EDN"), "");
    call(&mut sim, a, "SET other:lock b NX PX 50000");
    assert!(live(&mut sim, "EDN").contains(":op 0, "));
    call(&mut sim, control, "SIM.CHECK OFF");
    assert_eq!(
        call(&mut sim, control, "SIM.CHECK HISTORY"),
        "-SIMERR STATE there is no history: checks are off\r\n"
    );
    let refused = call(&mut sim, control, "SIM.CHECK HISTORY XML");
    assert!(refused.starts_with("-SIMERR SYNTAX \"XML\" is not a format: TEXT, EDN, JSON"), "{refused}");
    // The trace has all of them, in spite of the reset, and its replay gives the same replies.
    let trace = sim.finish_trace();
    Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    let (edn, report) = export(&trace);
    assert_eq!(report.is_linearizable(), Some(true), "{report}");
    assert!(edn.lines().count() > 2 * MAX_OPERATIONS + trace_so_far.lines().count());
}

/// Sets another lease for a lock, whoever holds it.
const EXPIRE: &str = "return redis.call(ARGV[2] == '' and 'pexpire' or 'pexpireat', KEYS[1], ARGV[1])";

#[test]
fn a_lease_that_its_own_program_shortens_ends_earlier() {
    let program = "5f0d7c1b-e9a8-4cf3-8d2e-0b1a2c3d4e5f";
    for (sender, is_own) in [("own", true), ("pool", true), ("fresh", true), ("other", false)] {
        for with_script in [true, false] {
            let mut sim = Sim::new(SimOptions::default());
            sim.check(Checks::default());
            sim.start_trace();
            let [own, pool, fresh, other] = [0; 4].map(|node| sim.connect(node));
            acquire(&mut sim, pool, &format!("{program}:2"), "5");
            acquire(&mut sim, other, "other:1", "5");
            sim.advance(6);
            acquire(&mut sim, own, &format!("{program}:1"), "30000");
            let sender = match sender {
                "own" => own,
                "pool" => pool,
                "fresh" => fresh,
                _ => other,
            };
            match with_script {
                true => drop(sim.call(sender, &["EVAL", EXPIRE, "1", "orders", "3", ""])),
                false => drop(call(&mut sim, sender, "PEXPIRE orders 3")),
            }
            sim.advance(4);
            acquire(&mut sim, pool, &format!("{program}:2"), "30000");
            let causes: Vec<Option<Cause>> = sim.findings().iter().map(|finding| finding.cause).collect();
            assert_eq!(causes.is_empty(), is_own, "{causes:?}");
            assert!(is_own || causes == [Some(Cause::LeaseChange)], "{causes:?}");
            let unjudged = sim.lab().history_tally().unjudged;
            assert_eq!(
                unjudged.keys().any(|why| why.starts_with("expire: ")),
                sender == fresh,
                "{unjudged:?}"
            );
            let (_, report) = export(&sim.finish_trace());
            assert_eq!(report.is_linearizable(), Some(is_own), "{report}");
        }
    }
}

/// Runs `redlatch trace` on a file with this text.
fn trace(name: &str, text: &str, args: &[&str]) -> Output {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlatch"));
    command.arg("trace").arg(args[0]).arg(&file).args(&args[1..]).output().unwrap()
}

#[test]
fn the_program_exports_and_judges() {
    let run = ordinary(200, 1).finish_trace();
    let mut histories = Vec::new();
    for format in ["edn", "json", "text"] {
        let output = trace("run.jsonl", &run, &["history", "--format", format]);
        assert!(output.status.success(), "{output:?}");
        histories.push(String::from_utf8(output.stdout).unwrap());
    }
    let [edn, json, text] = &histories[..] else { panic!() };
    assert!(text.starts_with("lock orders (rlock") || text.contains("\nlock orders (rlock"), "{text}");
    let twice = "{:process 0, :type :invoke, :f :acquire} {:process 0, :type :ok, :f :acquire} \
        {:process 1, :type :invoke, :f :acquire} {:process 1, :type :ok, :f :acquire}";
    for (code, text, args, said) in [
        (0, &run[..], &["linearize"][..], "\nlinearizable: locks 2; "),
        (0, edn, &["linearize"], "linearizable: locks 2; "),
        (0, json, &["linearize"], "linearizable: locks 2; "),
        (1, json, &["linearize", "--model", "mutex"], "the shortest prefix ends with the reply to"),
        (1, twice, &["linearize"], "(mutex, 2 operations): not linearizable"),
        (0, twice, &["linearize", "--model", "semaphore=2"], "linearizable: locks 1; "),
        (3, twice, &["linearize", "--step-limit", "0"], "unknown: the limit was reached"),
        (2, "{", &["linearize"], "line 1: a bracket is not closed"),
        (2, "", &["linearize"], "there are no operations"),
        (2, twice, &["linearize", "--model", "lock"], "there are mutex, reentrant, fenced, rw, semaphore=N"),
    ] {
        let output = trace("history", text, args);
        let all = [b"\n", &output.stdout[..], &output.stderr[..]].concat();
        let all = String::from_utf8(all).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {all}");
        assert!(all.contains(said), "{args:?}: {all}");
    }
}
