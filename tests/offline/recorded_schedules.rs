//! Schedules of recorded runs: they repeat the runs, and shrink to the few steps that matter.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use redlatch::{Client, Sim, SimOptions};
use redlatch_core::rng::Rng;
use redlatch_lab::demo::DEMOS;
use redlatch_lab::schedule::{NoFiles, Recorded, Schedule};
use redlatch_lab::trace::Tape;

use crate::crowd::{ACQUIRE, call, crowd};
use crate::random_replay;

fn run(text: &str) -> Result<(), String> {
    let schedule =
        Schedule::parse("s.txt", text.as_bytes(), &mut NoFiles).map_err(|error| error.to_string())?;
    schedule.run(&mut NoFiles, &mut |_| {}).map_err(|error| error.to_string())
}

fn recorded(trace: &str) -> Recorded {
    Recorded::of(&Tape::of(trace)).unwrap_or_else(|error| panic!("{error}"))
}

/// A run with several nodes, replicas, blocked clients, transactions, messages, gates, delays, binary arguments, a busy script, and
/// clients that disconnect.
fn crowded() -> String {
    let mut sim = Sim::new(SimOptions::default().nodes(3).seed(3).config("busy-reply-threshold", "5"));
    sim.start_trace();
    let control = sim.connect(0);
    let clients: Vec<Client> = (0..8).map(|_| sim.connect(0)).collect();
    let other = sim.connect(2);
    call(&mut sim, clients[0], "CLIENT SETNAME app");
    call(&mut sim, clients[1], "CLIENT SETNAME app");
    call(&mut sim, clients[2], "CLIENT SETNAME controller");
    call(&mut sim, clients[3], "HELLO 3 SETNAME three");
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    call(&mut sim, control, "SIM.NODE LINK 1 LAG 2");
    sim.call(clients[0], &[&b"SET"[..], b"bytes \"${x}\" $x", b"\xff\x00\r\n'\\ \xc3\xa9"]);
    sim.call(clients[0], &[&b"GET"[..], b"bytes \"${x}\" $x"]);
    sim.call(clients[0], &[&b"SET"[..], b"$x", b""]);
    for n in 0..5 {
        call(&mut sim, clients[0], &format!("SET k{n} v{n} PX {}", 100 + n));
        sim.call(clients[1], &["EVAL", ACQUIRE, "1", &format!("lock{n}"), "30000", "a:1"]);
    }
    crowd(&mut sim, control, &clients, other);
    sim.call(clients[5], &["SET", "long", &"text of two lines\n".repeat(9)]);
    call(&mut sim, control, "SIM.GATE RELEASE before");
    call(&mut sim, clients[5], "EXEC");
    sim.advance(100);
    call(&mut sim, control, "SIM.GATE RELEASE ALL");
    call(&mut sim, control, "SIM.NODE RESUME 2");
    call(&mut sim, clients[7], "QUIT");
    sim.disconnect(clients[7]);
    sim.send(clients[5], &[b"EVAL", b"while true do end", b"0"]);
    call(&mut sim, clients[0], "PING");
    call(&mut sim, clients[0], "SCRIPT KILL");
    while sim.run_slice(0) {}
    sim.received(clients[5]);
    call(&mut sim, control, "SIM.NODE LINK 1 UP");
    sim.call(clients[0], &["EVAL", "return {math.random(1000), cjson.encode({1, 2})}", "0"]);
    sim.finish_trace()
}

#[test]
fn a_schedule_repeats_the_run() {
    let recorded = recorded(&crowded());
    assert_eq!((recorded.different, recorded.missing, recorded.left_out), (0, 0, 0), "{}", recorded.text());
    assert!(recorded.exact > 40, "{}", recorded.exact);
    run(&recorded.text()).unwrap_or_else(|error| panic!("{error} in\n{}", recorded.text()));
    // It expects what was recorded: something else is noticed.
    let other = recorded.text().replace("SET k3 v3", "SET k3 v4 NX");
    run(&(other + "app: GET k3\n= nil\n")).unwrap();
    assert!(run(&recorded.text().replace("DECR n", "INCR n")).is_err());
}

/// The demos and the recipes of the page, as recorded runs.
#[test]
fn schedules_become_traces_and_schedules_again() {
    let page = fs::read_to_string("docs/scenarios.md").unwrap();
    let recipes = page.split("```schedule\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let texts: Vec<&str> = DEMOS.iter().map(|demo| demo.text).chain(recipes).collect();
    let (mut exact, mut different) = (0, 0);
    for text in &texts {
        let schedule = Schedule::parse("s.txt", text.as_bytes(), &mut NoFiles).unwrap();
        let report = schedule.run_traced(&mut NoFiles, &mut |_| {});
        assert_eq!(report.error, None);
        let recorded = recorded(&report.trace.unwrap());
        run(&recorded.text()).unwrap_or_else(|error| panic!("{error} in\n{}of\n{text}", recorded.text()));
        exact += recorded.exact;
        different += recorded.different + recorded.left_out;
    }
    println!("{} schedules, {exact} replies as recorded, {different} different", texts.len());
    assert!(texts.len() > 50 && exact > 300 && different <= 3, "{exact} {different}");
}

#[test]
fn schedules_of_older_builds_traces_run() {
    let (mut exact, mut different) = (0, 0);
    for entry in fs::read_dir("tests/traces").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let recorded = recorded(&fs::read_to_string(&path).unwrap());
        run(&recorded.text()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        exact += recorded.exact;
        different += recorded.different;
    }
    assert!(exact > 3_500 && different < 150, "{exact} {different}");
}

/// Walks begin in the middle of a run, over the whole command table and all SIM commands, on two nodes.
#[test]
fn schedules_of_random_walks_run() {
    let (mut exact, mut different) = (0, 0);
    for seed in 0..6 {
        let recorded = recorded(&random_replay::record(seed, 6).unwrap());
        run(&recorded.text()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        exact += recorded.exact;
        different += recorded.different;
    }
    println!("{exact} replies as recorded, {different} different");
    assert!(exact > 8 * different, "{exact} {different}");
}

#[test]
fn a_trace_that_is_cut_anywhere_is_a_schedule_or_an_error() {
    let trace = crowded();
    let (head, rest) = trace.split_at(trace.find('\n').unwrap() + 1);
    for at in (0..rest.len()).step_by(211) {
        if let Ok(recorded) = Recorded::of(&Tape::of(&format!("{head}{}", &rest[..at]))) {
            run(&recorded.text()).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
        // The beginning is lost.
        let later = rest[at..].find('\n').map_or("", |end| &rest[at + end + 1..]);
        if let Ok(recorded) = Recorded::of(&Tape::of(&format!("{head}{later}"))) {
            run(&recorded.text()).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
    }
    for text in ["", "{}", "{\"k\":\"end\",\"e\":1,\"t\":0}", "nonsense\n"] {
        assert!(Recorded::of(&Tape::of(text)).is_err(), "{text}");
    }
}

/// A run of several hundred events in which a failover gives a lock to two owners, amid clients that have nothing to do with it.
fn failover_amid_noise() -> String {
    let mut sim = Sim::new(SimOptions::default().nodes(2).seed(5));
    let mut rng = Rng::new(9);
    sim.start_trace();
    let control = sim.connect(0);
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    let clients: Vec<Client> = (0..8).map(|_| sim.connect(0)).collect();
    for (number, client) in clients.iter().enumerate() {
        call(&mut sim, *client, &format!("CLIENT SETNAME app{number}"));
    }
    let noise = |sim: &mut Sim, rng: &mut Rng, rounds: usize| {
        for round in 0..rounds {
            let client = clients[rng.below(clients.len())];
            let owner = format!("{}:1", rng.below(8));
            match rng.below(7) {
                0 => drop(call(sim, client, "PING")),
                1 => drop(call(sim, client, &format!("SET page{} {round} PX 500", rng.below(9)))),
                2 => drop(call(sim, client, &format!("GET page{}", rng.below(9)))),
                3 => {
                    let lock = format!("lock{}", rng.below(5));
                    sim.call(client, &["EVAL", ACQUIRE, "1", &lock, "300", &owner]);
                }
                4 => drop(call(sim, client, "CLIENT ID")),
                5 => drop(call(sim, client, &format!("HSET user{} name x", rng.below(20)))),
                _ => drop(sim.advance(rng.below(40) as u64)),
            }
        }
    };
    noise(&mut sim, &mut rng, 300);
    call(&mut sim, control, "SIM.NODE LINK 1 DOWN");
    noise(&mut sim, &mut rng, 60);
    assert_eq!(sim.call(clients[3], &["EVAL", ACQUIRE, "1", "orders", "30000", "a:1"]), b"$-1\r\n");
    noise(&mut sim, &mut rng, 60);
    let at_replica = sim.connect(1);
    let promoter = sim.connect(1);
    call(&mut sim, at_replica, "CLIENT SETNAME late");
    call(&mut sim, promoter, "SIM.NODE STOP 0");
    sim.advance(7);
    call(&mut sim, promoter, "SIM.NODE PROMOTE 1");
    call(&mut sim, at_replica, "PING");
    assert_eq!(sim.call(at_replica, &["EVAL", ACQUIRE, "1", "orders", "30000", "b:1"]), b"$-1\r\n");
    call(&mut sim, at_replica, "GET page1");
    sim.finish_trace()
}

#[test]
fn a_run_with_two_owners_is_shrunk_to_what_matters() {
    let trace = failover_amid_noise();
    let recorded = recorded(&trace);
    assert_eq!((recorded.different, recorded.missing, recorded.left_out), (0, 0, 0));
    let began = Instant::now();
    let shrunk = recorded.shrink("two-owners", |_| unreachable!()).unwrap().unwrap();
    println!("{} of {} steps in {:?}:\n{}", shrunk.left, shrunk.steps, began.elapsed(), shrunk.text);
    // A replica whose link is down or which is promoted at once, a grant on each side.
    assert!(shrunk.steps > 400 && shrunk.left <= 5, "{shrunk:?}");
    assert!(began.elapsed().as_secs() < 20);
    run(&shrunk.text).unwrap();
    // Without any of its steps it does not show it.
    let lines: Vec<&str> = shrunk.text.lines().collect();
    let is_step = |line: &str| line.contains(": ") && !line.starts_with(['#', 'l']);
    for (number, _) in lines.iter().enumerate().filter(|(_, line)| is_step(line)) {
        let kept = lines.iter().enumerate().filter(|(other, line)| {
            *other != number && !line.starts_with(['=', '~']) && !line.contains(" <")
        });
        let rest: Vec<String> = kept.map(|(_, line)| (*line).to_owned()).collect();
        assert!(run(&rest.join("\n")).is_err(), "without {}", lines[number]);
    }
    assert_eq!(recorded.shrink("absent nosuch", |_| unreachable!()), Ok(None));
    assert!(recorded.shrink("nonsense", |_| unreachable!()).is_err());
    assert!(recorded.shrink("script x", |_| Ok(b"error('x')".to_vec())).is_err());
}

#[test]
fn each_kind_of_predicate_can_be_kept() {
    let recorded = recorded(&failover_amid_noise());
    for predicate in ["key page3 == 17", "absent page3", "invariant H1", "queue user7 > 0", "script x.lua"] {
        let script = |_: &str| Ok(b"return redis.call('EXISTS', 'page5')".to_vec());
        // Not every value was ever written.
        let Some(shrunk) = recorded.shrink(predicate, script).unwrap() else { continue };
        assert!(shrunk.left <= 6, "{}", shrunk.text);
        if !predicate.starts_with("script") {
            run(&shrunk.text).unwrap_or_else(|error| panic!("{predicate}: {error}\n{}", shrunk.text));
        }
    }
}

#[test]
fn the_program_makes_schedules() {
    let folder = std::env::temp_dir().join(format!("redlatch-recorded-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let redlatch = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_redlatch")).args(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    fs::write(path("run.jsonl"), failover_amid_noise()).unwrap();
    let (code, schedule, said) = redlatch(&["trace", "to-schedule", &path("run.jsonl")]);
    assert_eq!(code, Some(0));
    assert!(said.ends_with(" replies as recorded, 0 different, 0 missing, 0 inputs left out\n"), "{said}");
    fs::write(path("run.txt"), schedule).unwrap();
    assert_eq!(redlatch(&["demo", "-q", &path("run.txt")]).0, Some(0));
    let shrink = ["trace", "to-schedule", &path("run.jsonl"), "--shrink", "--keep"];
    let (code, shrunk, said) = redlatch(&[&shrink[..], &["two-owners"]].concat());
    assert_eq!(code, Some(0), "{said}");
    fs::write(path("shrunk.txt"), shrunk).unwrap();
    let (code, report, _) = redlatch(&["demo", &path("shrunk.txt")]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("(two-owners holds)"), "{report}");
    assert_eq!(redlatch(&[&shrink[..], &["absent nosuch"]].concat()).0, Some(1));
    assert_eq!(redlatch(&[&shrink[..], &["nonsense"]].concat()).0, Some(2));
    assert_eq!(redlatch(&["trace", "to-schedule", &path("run.jsonl"), "--shrink"]).0, Some(2));
    assert_eq!(redlatch(&["trace", "to-schedule", &path("run.txt")]).0, Some(2));
    fs::remove_dir_all(folder).unwrap();
}
