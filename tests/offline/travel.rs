//! Time travel: any moment of a recorded run, back and forth, the first bad moment, other futures, and where two runs part.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use redlatch::{Client, Sim, SimOptions};
use redlatch_core::rng::Rng;
use redlatch_lab::trace::{Player, Tape};
use redlatch_lab::travel::{ForkOptions, Journey, Parting, Predicate, State, TravelError};

use crate::crowd::{ACQUIRE, call, crowd};
use crate::random_replay;
use crate::support::client::Client as Socket;

const UNLOCK: &str = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; \
    local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
    if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; \
    else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;";

fn acquire(sim: &mut Sim, client: Client, lock: &str, owner: &str) -> Vec<u8> {
    sim.call(client, &["EVAL", ACQUIRE, "1", lock, "30000", owner])
}

fn unlock(sim: &mut Sim, client: Client, lock: &str, owner: &str) -> Vec<u8> {
    sim.call(client, &["EVAL", UNLOCK, "2", lock, "channel", "0", "30000", owner])
}

fn predicate(text: &str) -> Predicate {
    Predicate::parse(text, |script| Ok(script.into())).unwrap()
}

fn state(journey: &Journey) -> String {
    serde_json::to_string(&State::of(journey.lab())).unwrap()
}

/// A run in which a gate holds a request and another a reply while clients block, a transaction is open, a reply is delayed,
/// a replica lags, a node is paused, a pause of clients holds a write, and a script is suspended.
fn crowded() -> String {
    let mut sim = Sim::new(SimOptions::default().nodes(3).seed(3).config("busy-reply-threshold", "5"));
    sim.start_trace();
    let control = sim.connect(0);
    let clients: Vec<Client> = (0..8).map(|_| sim.connect(0)).collect();
    let other = sim.connect(2);
    call(&mut sim, control, "SIM.CHECK ON");
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    call(&mut sim, control, "SIM.NODE LINK 1 LAG 2");
    for n in 0..5 {
        call(&mut sim, clients[0], &format!("SET k{n} v{n} PX {}", 100 + n));
        acquire(&mut sim, clients[1], &format!("lock{n}"), "a:1");
    }
    crowd(&mut sim, control, &clients, other);
    call(&mut sim, clients[5], "INCRBY n 7");
    call(&mut sim, control, "SIM.GATE RELEASE before");
    call(&mut sim, clients[5], "EXEC");
    sim.advance(100);
    call(&mut sim, control, "SIM.GATE RELEASE ALL");
    call(&mut sim, control, "SIM.NODE RESUME 2");
    call(&mut sim, control, "SIM.CLOCK JUMP 50 NODE 0");
    call(&mut sim, control, "CLIENT PAUSE 40 WRITE");
    call(&mut sim, clients[7], "SET paused 1");
    sim.advance(50);
    sim.send(
        clients[4],
        &[
            b"EVAL",
            b"local x = 0 for i = 1, 3000000 do x = x + i end redis.call('set', 'x', x) return x",
            b"0",
        ],
    );
    call(&mut sim, clients[0], "GET k1");
    while sim.run_slice(0) {}
    call(&mut sim, control, "SIM.NODE LINK 1 UP");
    sim.call(clients[0], &["EVAL", "return {math.random(1000), cjson.encode({1, 2})}", "0"]);
    sim.finish_trace()
}

/// A run in which a failover loses a lock, with `rounds` of ordinary use before. Returns the event of the promotion too.
fn failover(rounds: usize) -> (String, u64) {
    let mut sim = Sim::new(SimOptions::default().nodes(2).seed(5));
    sim.start_trace();
    let control = sim.connect(1);
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    let (a, b) = (sim.connect(0), sim.connect(0));
    for round in 0..rounds {
        let lock = format!("lock:{}", round % 50);
        acquire(&mut sim, a, &lock, "aaaa:1");
        acquire(&mut sim, b, &lock, "bbbb:1");
        sim.advance(3);
        unlock(&mut sim, a, &lock, "aaaa:1");
        acquire(&mut sim, b, &lock, "bbbb:1");
        unlock(&mut sim, b, &lock, "bbbb:1");
    }
    call(&mut sim, control, "SIM.NODE LINK 1 DOWN");
    assert_eq!(acquire(&mut sim, a, "orders", "aaaa:1"), b"$-1\r\n");
    sim.advance(5);
    call(&mut sim, control, "SIM.NODE STOP 0");
    call(&mut sim, control, "SIM.NODE PROMOTE 1");
    let promoted = sim.world().events();
    let c = sim.connect(1);
    call(&mut sim, c, "PING");
    assert_eq!(acquire(&mut sim, c, "orders", "bbbb:1"), b"$-1\r\n");
    call(&mut sim, c, "GET x");
    (sim.finish_trace(), promoted)
}

/// Replays a trace in which, every few lines, a copy of the state takes over. Returns how many copies did, and why others did not.
fn relay(trace: &str, every: usize) -> (usize, Vec<&'static str>) {
    let tape = Tape::of(trace);
    let mut player = Player::new(&tape).unwrap();
    let (mut copies, mut refused, mut steps) = (0, Vec::new(), 0);
    while player.step().unwrap_or_else(|error| panic!("after {copies} copies: {error}")) {
        steps += 1;
        if steps % every == 0 {
            match player.copy() {
                Ok(copy) => (player, copies) = (copy, copies + 1),
                Err(why) => refused.push(why),
            }
        }
    }
    player.finish().map(|_| ()).unwrap_or_else(|error| panic!("after {copies} copies: {error}"));
    (copies, refused)
}

#[test]
fn a_copy_goes_on_as_its_original_does() {
    let (copies, refused) = relay(&crowded(), 1);
    assert!(copies > 80, "{copies}");
    assert!(!refused.is_empty() && refused.iter().all(|why| *why == "a script is suspended"), "{refused:?}");
    for file in std::fs::read_dir("tests/traces").unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let (copies, _) = relay(&std::fs::read_to_string(&path).unwrap(), 3);
            assert!(copies > 20, "{}: {copies}", path.display());
        }
    }
}

#[test]
fn copies_of_random_walks_go_on_as_their_originals_do() {
    let mut copies = 0;
    for seed in 1..5 {
        let trace = random_replay::record(seed, 30).unwrap();
        copies += relay(&trace, 7).0;
    }
    assert!(copies > 500, "{copies}");
}

#[test]
fn back_and_forth_shows_the_same_as_straight_on() {
    let trace = crowded();
    let tape = Tape::of(&trace);
    let mut straight = Journey::new(&tape).unwrap();
    let mut seen = vec![(straight.event(), state(&straight))];
    while straight.event() < straight.last_event() {
        straight.step(1).unwrap();
        seen.push((straight.event(), state(&straight)));
    }
    assert!(seen.len() > 80);
    // Every kind of waiting is in it.
    let all = seen.iter().map(|(_, state)| &state[..]).collect::<String>();
    for word in [
        "Held: DECR",
        "List at queue other",
        "\"multi\":[\"SET",
        "\"at\":\"POST\"",
        "lag 2",
        "paused",
        "Postponed",
    ] {
        assert!(all.contains(word), "{word}");
    }
    for (event, expected) in seen.iter().rev() {
        straight.go_to(*event).unwrap();
        assert_eq!((straight.event(), &state(&straight)), (*event, expected));
    }
    let mut rng = Rng::new(1);
    for _ in 0..100 {
        let (event, expected) = &seen[rng.below(seen.len())];
        straight.go_to(*event).unwrap();
        assert_eq!(&state(&straight), expected, "event {event}");
    }
    // One request of the run fires several timers: what lies inside is reached with its end, and going back leaves it.
    let mut here = straight.last_event();
    straight.go_to(here).unwrap();
    while here > 0 {
        straight.back(1).unwrap();
        assert!(straight.event() < here);
        here = straight.event();
    }
}

#[test]
fn a_moment_that_cannot_be_copied_can_be_visited_but_not_forked() {
    let trace = crowded();
    let tape = Tape::of(&trace);
    let mut journey = Journey::looking_for(&tape, predicate("key x == 1")).unwrap();
    let runs = |journey: &Journey| journey.lab().world().is_running_script(0);
    while !runs(&journey) {
        journey.step(1).unwrap();
    }
    let event = journey.event();
    let here = state(&journey);
    let error = journey.fork(&ForkOptions::default()).unwrap_err();
    assert_eq!(error, TravelError::Uncopyable { event, why: "a script is suspended" });
    journey.step(10).unwrap();
    journey.go_to(event).unwrap();
    assert!(runs(&journey));
    assert_eq!(state(&journey), here);
    let error = journey.go_to(1 << 40).unwrap_err().to_string();
    assert!(error.starts_with("there is no event 1099511627776: the trace has events 0 to "), "{error}");
}

#[test]
fn functions_and_what_scripts_leave_behind_are_not_copied() {
    for (request, why) in [
        (
            &[
                "FUNCTION",
                "LOAD",
                "#!lua name=l\nlocal n = 0 redis.register_function('f', function() n = n + 1 return n end)",
            ][..],
            "libraries of functions are loaded",
        ),
        (
            &["EVAL", "return tostring({})", "0"],
            "a script has set options of cjson, or has shown a table with tostring",
        ),
        (
            &["EVAL", "cjson.encode_number_precision(3)", "0"],
            "a script has set options of cjson, or has shown a table with tostring",
        ),
    ] {
        let mut sim = Sim::new(SimOptions::default());
        let client = sim.connect(0);
        assert!(sim.lab().copy().is_ok());
        sim.call(client, request);
        assert_eq!(sim.lab().copy().err(), Some(why), "{request:?}");
    }
}

#[test]
fn the_first_bad_moment_is_found() {
    let (trace, _) = failover(30);
    let tape = Tape::of(&trace);
    let find = |text: &str| {
        let mut journey = Journey::looking_for(&tape, predicate(text)).unwrap();
        journey.find().unwrap().then(|| journey.event())
    };
    let found = find("two-owners").unwrap();
    // Every script was right: only the history shows it.
    assert_eq!(find("invariant M1"), None);
    assert_eq!(find("invariant H1"), Some(found));
    assert_eq!(find("script return redis.call('exists', 'nothing')"), None);
    let taken = find("script return redis.call('exists', 'orders')").unwrap();
    assert!(taken < found);
    assert_eq!(find("queue orders > 0"), Some(taken));
    assert_eq!(find("queue orders > 1"), None);
    // Not because it is not there yet.
    assert!(find("absent lock:0").unwrap() > 4);
    assert_eq!(find("absent orders"), None, "the node that had it has stopped with its data");
    let mut journey = Journey::looking_for(&tape, predicate("two-owners")).unwrap();
    assert!(journey.find().unwrap());
    let two = journey.lab().with_history(|history| history.two_owners().cloned()).flatten().unwrap();
    let grants: Vec<(&[u8], u64)> = two.grants.iter().map(|grant| (&grant.owner[..], grant.event)).collect();
    assert_eq!(grants, [(&b"aaaa:1"[..], taken), (b"bbbb:1", found)]);
    let failing = predicate("script return redis.call('nonsense')");
    let error = Journey::looking_for(&tape, failing).unwrap().find().unwrap_err();
    assert!(matches!(error, TravelError::Script(_)), "{error}");
}

#[test]
fn violated_invariants_are_found_whether_the_run_checked_them_or_not() {
    for has_checked in [false, true] {
        let mut sim = Sim::new(SimOptions::default());
        sim.start_trace();
        let client = sim.connect(0);
        if has_checked {
            call(&mut sim, client, "SIM.CHECK ON");
        }
        acquire(&mut sim, client, "lock", "a:1");
        // A script that looks like the acquire of a lock, and always grants it.
        let greedy = ACQUIRE.replace("== 0)", "== 0 or true)");
        sim.call(client, &["EVAL", &greedy, "1", "lock", "30000", "b:1"]);
        let bad = sim.world().events();
        call(&mut sim, client, "PING");
        let trace = sim.finish_trace();
        let tape = Tape::of(&trace);
        let found = |text: &str| {
            let mut journey = Journey::looking_for(&tape, predicate(text)).unwrap();
            journey.find().map(|is_there| is_there.then(|| journey.event())).unwrap()
        };
        for text in ["invariant ALL", "invariant rlock", "two-owners"] {
            assert_eq!(found(text), Some(bad), "{text}, {has_checked}");
        }
        assert_eq!(found("invariant rate"), None);
    }
}

#[test]
fn ordinary_use_has_no_two_owners() {
    let mut sim = Sim::new(SimOptions::default().nodes(3));
    sim.start_trace();
    let clients: Vec<Client> = (0..6).map(|n| sim.connect(n % 3)).collect();
    let owners = ["a:1", "b:1"];
    // Locks on three independent nodes: of two owners who each got some nodes, none has most of them.
    for (client, owner) in [(0, 0), (1, 1), (3, 1), (4, 0), (2, 0), (5, 1)] {
        acquire(&mut sim, clients[client], "red", owners[owner]);
    }
    // A lease that ends, a lock that is given back, a hold inside a hold, and a plain lock by SET NX.
    acquire(&mut sim, clients[0], "l", "a:1");
    sim.advance(30_001);
    acquire(&mut sim, clients[3], "l", "b:1");
    acquire(&mut sim, clients[3], "l", "b:1");
    unlock(&mut sim, clients[3], "l", "b:1");
    unlock(&mut sim, clients[3], "l", "b:1");
    acquire(&mut sim, clients[0], "l", "a:1");
    call(&mut sim, clients[0], "SET plain a NX PX 5000");
    call(&mut sim, clients[3], "SET plain b NX PX 5000");
    sim.call(
        clients[0],
        &[
            "EVAL",
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
            "1",
            "plain",
            "a",
        ],
    );
    call(&mut sim, clients[3], "SET plain b NX PX 5000");
    let trace = sim.finish_trace();
    let tape = Tape::of(&trace);
    let mut journey = Journey::looking_for(&tape, predicate("two-owners")).unwrap();
    assert!(
        !journey.find().unwrap(),
        "{:?}",
        journey.lab().with_history(|history| history.two_owners().cloned())
    );
    let shown = State::of(journey.lab()).to_string();
    assert!(shown.contains("lock plain\n  held by b (client 0:"), "{shown}");
    assert!(shown.contains("lock l\n  held by a:1"), "{shown}");
}

#[test]
fn blame_names_the_promotion() {
    let (trace, promoted) = failover(100);
    let tape = Tape::of(&trace);
    let mut journey = Journey::looking_for(&tape, predicate("two-owners")).unwrap();
    let blame = journey.blame(&ForkOptions { runs: 30, ..ForkOptions::default() }).unwrap().unwrap();
    assert_eq!(blame.event, Some(promoted));
    assert!(journey.lines().any(|line| line.contains("\"PROMOTE\"")));
    assert!(blame.found > promoted);
}

/// Two clients count and write their names into a list, at nearly the same time but one after the other.
fn nearly_at_once() -> String {
    let mut sim = Sim::new(SimOptions::default());
    sim.start_trace();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, a, "SET n 0");
    sim.advance(100);
    for (client, name) in [(a, "a"), (b, "b")] {
        call(&mut sim, client, "INCR n");
        call(&mut sim, client, &format!("RPUSH order {name}"));
    }
    sim.advance(100);
    call(&mut sim, a, "PING");
    sim.finish_trace()
}

#[test]
fn other_futures_reorder_what_was_concurrent() {
    let trace = nearly_at_once();
    let tape = Tape::of(&trace);
    let options = ForkOptions { runs: 200, seed: 4, ..ForkOptions::default() };
    let mut journey = Journey::looking_for(&tape, predicate("queue order > 1")).unwrap();
    journey.go_to(3).unwrap();
    let all = journey.fork(&options).unwrap();
    assert_eq!(all, journey.fork(&options).unwrap(), "the same seeds, the same futures");
    assert_eq!(all.seeds.len(), 200, "nothing is lost, in whatever order");
    // Only in the other order.
    let other = predicate("script return redis.call('lindex', 'order', 1) == 'a' and 1 or 0");
    let mut journey = Journey::looking_for(&tape, other).unwrap();
    assert!(!journey.find().unwrap());
    journey.go_to(3).unwrap();
    let some = journey.fork(&options).unwrap().seeds;
    assert!((40..160).contains(&some.len()), "{}", some.len());
    let one = ForkOptions { seed: some[0], runs: 1, ..options };
    assert_eq!(journey.fork(&one).unwrap().seeds, some[..1]);
    // Each client's own requests keep their order: nobody has written its name before it counted.
    let early = predicate(
        "script return redis.call('llen', 'order') > tonumber(redis.call('get', 'n') or 9) and 1 or 0",
    );
    let mut journey = Journey::looking_for(&tape, early).unwrap();
    journey.go_to(3).unwrap();
    assert!(journey.fork(&options).unwrap().seeds.is_empty());
}

#[test]
fn a_long_run_keeps_few_copies() {
    let (trace, _) = failover(3_000);
    let tape = Tape::of(&trace);
    let mut journey = Journey::new(&tape).unwrap();
    journey.go_to(journey.last_event()).unwrap();
    assert!((5..=256).contains(&journey.copies()), "{}", journey.copies());
    let middle = journey.last_event() / 2;
    journey.go_to(middle).unwrap();
    let there = state(&journey);
    let mut fresh = Journey::new(&tape).unwrap();
    fresh.go_to(middle).unwrap();
    assert_eq!(state(&fresh), there);
}

#[test]
fn a_trace_that_ends_with_what_a_timer_did_ends_at_its_last_input() {
    let mut sim = Sim::new(SimOptions::default().config("notify-keyspace-events", "KEA"));
    sim.start_trace();
    let (listener, client) = (sim.connect(0), sim.connect(0));
    call(&mut sim, listener, "PSUBSCRIBE *");
    call(&mut sim, client, "SET k v PX 10");
    let set = sim.world().events();
    sim.advance(20);
    call(&mut sim, client, "PING");
    let trace = sim.finish_trace();
    let (cut, _) = trace.split_once("{\"k\":\"req\",\"e\":6,").unwrap();
    let tape = Tape::of(cut);
    let mut journey = Journey::looking_for(&tape, predicate("absent k")).unwrap();
    assert_eq!((journey.last_event(), set), (5, 4));
    assert!(!journey.find().unwrap());
    let error = journey.go_to(5).unwrap_err();
    assert_eq!(error, TravelError::NoSuchEvent { event: 5, first: 0, last: 4 });
    journey.go_to(2).unwrap();
    journey.go_to_end().unwrap();
    assert_eq!(journey.event(), 4);
    let tape = Tape::of(&trace);
    let mut whole = Journey::looking_for(&tape, predicate("absent k")).unwrap();
    assert!(whole.find().unwrap());
    // At the instant of the timer, not at that of the request behind it.
    assert_eq!((whole.event(), whole.lab().world().clock().now().mono_ms()), (5, 11));
}

#[test]
fn two_runs_part_where_they_first_differ() {
    let (a, _) = failover(10);
    let (b, promoted) = failover(10);
    assert_eq!(Parting::of(&Tape::of(&a), &Tape::of(&b)), Ok(None));
    let other = b.replacen("\"PROMOTE\"", "\"RESUME\"", 1);
    let parting = Parting::of(&Tape::of(&a), &Tape::of(&other)).unwrap().unwrap();
    let [Some((one, a)), Some((two, b))] = &parting.sides else { panic!("{parting}") };
    assert!(*one <= promoted && one == two);
    assert!(a.contains("PROMOTE") && b.contains("RESUME"), "{parting}");
}

fn redlatch(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn file(name: &str, text: &str) -> String {
    let path = format!("{}/travel-{}-{name}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn options_of_futures_need_a_fork() {
    for option in ["--seed", "--runs", "--window"] {
        let program = std::process::Command::new(env!("CARGO_BIN_EXE_redlatch"));
        let output = { program }.args(["replay", "none.jsonl", option, "7"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains("--fork EVENT"), "{option}: {text}");
    }
}

#[test]
fn the_program_travels() {
    let (trace, promoted) = failover(5);
    let path = file("failover.jsonl", &trace);
    let run = |args: &[&str], input: &str| {
        let output = redlatch(args, input);
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = run(&["replay", &path, "--find", "two-owners"], "");
    assert!(code == Some(0) && text.contains("two owners of orders:\n  aaaa:1: granted by event"), "{text}");
    let (code, text) = run(&["replay", &path, "--find", "key a == b"], "");
    assert!(code == Some(1) && text.starts_with("key a == b: never, in "), "{text}");
    let (code, text) = run(&["replay", &path, "--to", "7", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["nodes"][1]["role"]), (Some(0), &"replica of 0 (up)".into()));
    let (code, text) = run(&["replay", &path, "--step"], "next\nback\nstep 2\nhop\nto 9999\nprint\nquit\n");
    assert_eq!(code, Some(0));
    assert!(text.contains("'hop' is unknown") && text.contains("there is no event 9999"), "{text}");
    assert!(text.contains("held by aaaa:1"), "{text}");
    let (code, text) =
        run(&["replay", &path, "--fork", &promoted.to_string(), "--find", "two-owners", "--runs", "20"], "");
    assert!(code == Some(0) && text.starts_with("it holds in 20 of 20 futures from event"), "{text}");
    let (code, text) = run(&["trace", "blame", &path, "--find", "two-owners"], "");
    assert!(code == Some(0) && text.contains(&format!("inevitable after event {promoted}:")), "{text}");
    let (code, text) = run(&["trace", "diff", &path, &path], "");
    assert_eq!((code, &text[..]), (Some(0), "the runs do not part\n"));
    let (code, text) = run(&["replay", &path, "--to", "99999"], "");
    assert!(code == Some(2) && text.contains("there is no event 99999: the trace has events"), "{text}");
    let (code, text) = run(&["replay", &path, "--find", "key a"], "");
    assert!(code == Some(2) && text.contains("the forms are: key NAME == VALUE"), "{text}");
    // A trace that was cut in the middle of a line.
    let cut = file("cut.jsonl", &trace[..trace.len() - 30]);
    let (code, text) = run(&["replay", &cut], "");
    assert!(code == Some(0) && text.contains("the trace is incomplete"), "{text}");
    assert_eq!(run(&["replay", &cut, "--json"], "").0, Some(0));
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&cut).unwrap();
}

#[test]
fn a_moment_of_a_run_can_be_served() {
    let (trace, _) = failover(5);
    let path = file("served.jsonl", &trace);
    let mut child = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["replay", &path, "--find", "queue orders > 0", "--serve", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address =
        lines.find_map(|line| line.strip_prefix("Redlatch listens on ").map(str::to_owned)).unwrap();
    let mut client = Socket::connect(address.rsplit(':').next().unwrap().parse().unwrap());
    let mut call = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8(client.call(&words)).unwrap()
    };
    assert_eq!(call("HGETALL orders"), "*2\r\n$6\r\naaaa:1\r\n$1\r\n1\r\n");
    // The clock stands still until a client moves it.
    assert_eq!(call("PTTL orders"), ":30000\r\n");
    assert!(call("SIM.CLOCK ADVANCE 30001").starts_with("*4"));
    assert_eq!(call("EXISTS orders"), ":0\r\n");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(&path).unwrap();
}
