//! Traces: a recorded run replays with the same bytes and states, and a replay detects an edited trace.

use redlatch::{Client, Code, Sim, SimOptions};
use redlatch_lab::trace::{Replay, ReplayError, TraceError};

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

fn call(sim: &mut Sim, client: Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8_lossy(&sim.call(client, &words)).into_owned()
}

/// Records a run with locks, messages, blocked clients, random choices, faults, gates, a failover and a long script.
fn run() -> String {
    let mut sim = Sim::new(SimOptions::default().nodes(3).seed(7));
    sim.start_trace();
    let control = sim.connect(0);
    let (a, b, listener) = (sim.connect(0), sim.connect(0), sim.connect(0));
    call(&mut sim, listener, "HELLO 3");
    call(&mut sim, listener, "PSUBSCRIBE *");
    call(&mut sim, a, "CONFIG SET notify-keyspace-events KEA");
    for round in 0..60 {
        let owner = format!("owner:{round}");
        sim.call(a, &["EVAL", ACQUIRE, "1", "lock", "30", &owner]);
        sim.advance(17);
        call(&mut sim, b, "SADD members a b c \u{e9}\n\"");
        call(&mut sim, b, "SPOP members");
    }
    call(&mut sim, b, "BLPOP queue 0.5");
    sim.advance(600);
    call(&mut sim, control, "SIM.FAULT ADD CMD incr DO DELAY REPLY 20 P 500000");
    call(&mut sim, control, "SIM.GATE ADD CMD decr AT PRE LABEL g");
    for _ in 0..5 {
        call(&mut sim, a, "INCR n");
    }
    call(&mut sim, b, "DECR n");
    call(&mut sim, control, "SIM.GATE RELEASE g");
    sim.advance(100);
    call(&mut sim, control, "SIM.NODE REPLICATE 1 OF 0");
    call(&mut sim, control, "SIM.NODE LINK 1 DOWN");
    call(&mut sim, a, "SET k v PX 100");
    call(&mut sim, a, "WAIT 1 50");
    sim.advance(500);
    call(&mut sim, control, "SIM.NODE PROMOTE 1");
    call(&mut sim, control, "SIM.CLOCK JUMP 1000 NODE 2");
    sim.call(a, &["EVAL", "for i = 1, 3000000 do end return math.random(1000)", "0"]);
    sim.send_bytes(b, b"*1\r\n$x\r\n");
    sim.disconnect(listener);
    call(&mut sim, control, "SIM.RUN INFO");
    sim.finish_trace()
}

#[test]
fn a_run_replays_with_no_difference() {
    let trace = run();
    let replay = Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    assert!(replay.complete && replay.outputs > 200 && replay.digests >= 3, "{replay:?}");
    assert_eq!(run(), trace, "and is the same when it is made again");
}

#[test]
fn the_first_difference_is_shown_with_both_sides() {
    let trace = run();
    let at = trace.rfind("\"b\":\":2\\r\\n\"").unwrap();
    let mut edited = trace.clone();
    edited.replace_range(at..at + 12, "\"b\":\":3\\r\\n\"");
    let Err(ReplayError::Differs { line, recorded, replayed, last_digest }) = Replay::run(&edited) else {
        panic!("an edited reply was not noticed");
    };
    assert_eq!(line, trace[..at].lines().count());
    assert!(recorded.unwrap().contains(":3") && replayed.unwrap().contains(":2"));
    assert!(last_digest.is_some());
}

#[test]
fn a_malformed_trace_is_refused_with_the_line() {
    let trace = run();
    let lines: Vec<&str> = trace.lines().collect();
    let refused = |text: &str| match Replay::run(text) {
        Err(ReplayError::Malformed { line, error }) => (line, error),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("").0, 1);
    assert_eq!(refused(&lines[1..].join("\n")).1, TraceError::NoHeader);
    assert_eq!(refused(&trace.replacen("\"format\":1", "\"format\":9", 1)).0, 1);
    let half_line = format!("{}\n", &trace[..trace.len() / 2]);
    assert_eq!(refused(&half_line).0, half_line.lines().count());
    assert_eq!(refused(&format!("{trace}{}\n", lines[5])).1, TraceError::AfterEnd);
}

#[test]
fn a_trace_that_was_cut_off_replays_as_far_as_it_goes() {
    let trace = run();
    let half: Vec<&str> = trace.lines().take(300).collect();
    let replay = Replay::run(&half.join("\n")).unwrap_or_else(|error| panic!("{error}"));
    assert!(!replay.complete);
}

/// Records what `act` does in a world in which `before` has happened, and replays it.
fn replays(before: &[&str], act: &[&str]) -> Result<Replay, ReplayError> {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (control, a, b) = (sim.connect(0), sim.connect(0), sim.connect(1));
    for line in before {
        call(&mut sim, control, line);
    }
    sim.control().start_trace().unwrap();
    for line in act {
        let (client, line) = match line.split_at(2) {
            ("a ", line) => (a, line),
            ("b ", line) => (b, line),
            _ => (control, *line),
        };
        if !sim.is_waiting(client) && !sim.is_closed(client) {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            sim.send(client, &words);
        }
    }
    Replay::run(&sim.finish_trace())
}

#[track_caller]
fn assert_replays(before: &[&str], act: &[&str]) {
    let replay = replays(before, act).unwrap_or_else(|error| panic!("{act:?}: {error}"));
    assert!(replay.complete);
}

#[test]
fn the_command_that_starts_a_trace_is_not_part_of_it() {
    assert_replays(&[], &["a SET k v", "a GET k"]);
    let many: Vec<String> = (0..300).map(|i| format!("a SET k v{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    // The digests come after the same events.
    assert!(replays(&[], &many).unwrap().digests > 2);
}

#[test]
fn a_mark_is_written_once() {
    let mut sim = Sim::new(SimOptions::default());
    let control = sim.connect(0);
    sim.start_trace();
    call(&mut sim, control, "SIM.TRACE MARK begin");
    sim.control().mark("between").unwrap();
    sim.call(control, &["EVAL", "return redis.call('SIM.TRACE', 'MARK', 'inside')", "0"]);
    let trace = sim.finish_trace();
    assert_eq!(trace.matches("\"k\":\"mark\"").count(), 3);
    Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_falls_due_without_time_passing_comes_before_the_next_request() {
    for act in [
        &["a SET k v EXAT 1", "a DBSIZE", "a GET k"][..],
        &["a CLIENT PAUSE 0", "b PING", "a SET k v", "a GET k"],
        &["a SET k v PX 100", "SIM.CLOCK JUMP 314 NODE 0", "a SORT l", "a DBSIZE"],
        &["a SET k v", "SIM.KEY TTL k 0", "SIM.CLOCK ADVANCE 1", "a DBSIZE"],
        &["a SET k v PX 5", "a SELECT 1", "a SET k w EXAT 1", "a SWAPDB 0 1", "a DBSIZE"],
        &["SIM.FAULT ADD CMD get DO DELAY REQUEST 0", "a GET k", "b SET k v", "a SET k v"],
        &["SIM.NODE PAUSE 0", "a BLPOP l 0.05", "SIM.CLOCK ADVANCE 100", "SIM.NODE RESUME 0", "b SET k v"],
        &["SIM.NODE STOP 0", "SIM.NODE START 0", "b SET k v"],
    ] {
        assert_replays(&[], act);
    }
}

#[test]
fn a_trace_does_not_depend_on_which_output_a_driver_has_taken() {
    assert_replays(
        &[],
        &[
            "a SUBSCRIBE c",
            "b CLIENT LIST",
            "PUBLISH c hello",
            "CLIENT LIST",
            "PUBLISH c hello",
            "CLIENT LIST",
        ],
    );
    assert_replays(
        &[],
        &["SIM.GATE ADD CHANNEL c AT PUSH", "a SUBSCRIBE c", "PUBLISH c hello", "CLIENT LIST"],
    );
}

#[test]
fn a_reset_after_a_start_in_the_middle_replays() {
    assert_replays(
        &["SIM.CLOCK ADVANCE 5000", "SIM.CLOCK JUMP HOST", "SIM.CLOCK JUMP 77"],
        &[
            "a TIME",
            "SIM.RUN RESET",
            "a TIME",
            "SIM.CLOCK ADVANCE 40",
            "SIM.CLOCK JUMP HOST",
            "a TIME",
            "SIM.CLOCK NOW",
        ],
    );
}

#[test]
fn a_trace_that_was_cut_in_a_line_replays_to_its_last_whole_line() {
    let trace = run();
    let mut lengths: Vec<usize> =
        trace.match_indices('\n').map(|(at, _)| at + 1).skip(200).take(40).collect();
    lengths =
        lengths.windows(2).flat_map(|ends| [ends[0] + 1, (ends[0] + ends[1]) / 2, ends[1] - 2]).collect();
    for len in lengths {
        let replay = Replay::run(&trace[..len]).unwrap_or_else(|error| panic!("{len}: {error}"));
        assert!(!replay.complete);
    }
}

/// Records what `act` does in a world in which `before` has happened, as [`replays`] does, and returns what client a received
/// after the trace had begun. Lines of `before` are the control client's, or begin with a or b too.
fn received_after(before: &[&str], act: &[&str]) -> String {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (control, a, b) = (sim.connect(0), sim.connect(0), sim.connect(1));
    let mut replies = Vec::new();
    for (lines, is_traced) in [(before, false), (act, true)] {
        if is_traced {
            sim.received(a);
            sim.control().start_trace().unwrap_or_else(|error| panic!("{before:?}: {error}"));
        }
        for line in lines {
            let (client, line) = match line.split_at(2) {
                ("a ", line) => (a, line),
                ("b ", line) => (b, line),
                _ => (control, *line),
            };
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            if !sim.is_waiting(client) && !sim.is_closed(client) {
                sim.send(client, &words);
            }
            replies.extend(sim.received(a).into_iter().filter(|_| is_traced));
        }
    }
    let replay = Replay::run(&sim.finish_trace()).unwrap_or_else(|error| panic!("{before:?}: {error}"));
    assert!(replay.complete);
    String::from_utf8_lossy(&replies).replace("\r\n", " ")
}

#[test]
fn a_trace_begins_with_the_state_that_there_is() {
    for (before, act, expected) in [
        (
            &["SET k v PX 50", "RPUSH l 1 2"][..],
            &["a GET k", "a LRANGE l 0 -1", "SIM.CLOCK ADVANCE 60", "a GET k"][..],
            "$1 v *2 $1 1 $1 2 $-1 ",
        ),
        (
            &["SIM.FAULT ADD CMD get DO ERROR LOST BEFORE TIMES 2", "GET k"],
            &["a GET k", "a GET k", "SIM.FAULT LIST", "SIM.FAULT HITS 1", "SIM.FAULT ADD DO DELAY REPLY 1"],
            "-LOST $-1 ",
        ),
        (
            &["SIM.FAULT ADD CMD get DO DELAY REPLY 30", "a GET k"],
            &["SIM.CLOCK TIMERS", "SIM.CLOCK ADVANCE 40", "a PING"],
            "$-1 +PONG ",
        ),
        (
            &["SIM.FAULT ADD CMD incr DO DELAY REQUEST 30", "a INCR n"],
            &["SIM.GATE LIST", "SIM.CLOCK ADVANCE 40"],
            ":1 ",
        ),
        (
            &["SIM.GATE ADD CMD get AT PRE LABEL g", "a GET k"],
            &["SET k v", "SIM.GATE LIST", "SIM.GATE RELEASE g", "SIM.GATE ADD AT POST"],
            "$1 v ",
        ),
        (
            &["SIM.GATE ADD CMD get AT POST LABEL g", "SET k v", "a GET k"],
            &["SET k w", "CLIENT LIST", "SIM.GATE RELEASE g"],
            "$1 v ",
        ),
        (
            &["SIM.GATE ADD CHANNEL c AT PUSH LABEL g", "a SUBSCRIBE c", "PUBLISH c hello"],
            &["SIM.GATE DEL g"],
            "*3 $7 message $1 c $5 hello ",
        ),
        (&["SIM.FAULT ADD CMD get DO DROP REPLY", "a GET k"], &["a PING", "SIM.FAULT CLEAR", "a PING"], ""),
        (&["SIM.FAULT ADD CMD get DO DROP REQUEST", "a GET k"], &["SIM.FAULT CLEAR", "a PING"], ""),
        (&["a MULTI", "a SET k v", "a GET k"], &["CLIENT LIST", "a EXEC"], "*2 +OK $1 v "),
        (&["a MULTI", "a NO"], &["a EXEC"], "-EXECABORT Transaction discarded because of previous errors. "),
        (&["SET k v", "a WATCH k"], &["SET k w", "a MULTI", "a EXEC"], "+OK *-1 "),
        (&["a WATCH k", "SET k v"], &["a MULTI", "a EXEC"], "+OK *-1 "),
        (&["a BLPOP l m 0"], &["RPUSH m x", "INFO clients"], "*2 $1 m $1 x "),
        (&["a BLPOP l 0.1"], &["SIM.CLOCK ADVANCE 99", "SIM.CLOCK ADVANCE 2"], "*-1 "),
        (
            &["XGROUP CREATE s g $ MKSTREAM", "a XREADGROUP GROUP g c BLOCK 0 STREAMS s >"],
            &["XADD s 1-1 f v"],
            "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 f $1 v ",
        ),
        (
            &["SIM.CLOCK JUMP 5000 NODE 1", "b SET k v PX 100"],
            &["b TIME", "b PTTL k", "SIM.CLOCK JUMP -5000 NODE 1", "b PTTL k", "SIM.CLOCK NOW"],
            "",
        ),
        (
            &["SIM.CLOCK JUMP 77", "SIM.CLOCK MODE MANUAL"],
            &["a TIME", "SIM.CLOCK JUMP HOST", "SIM.CLOCK NOW"],
            "",
        ),
        (
            &["SET k v", "SIM.NODE REPLICATE 1 OF 0", "SIM.NODE LINK 1 LAG 1", "SET k w"],
            &[
                "b GET k",
                "b ROLE",
                "ROLE",
                "a WAIT 1 10",
                "SIM.NODE LINK 1 UP",
                "b GET k",
                "SIM.CLOCK ADVANCE 20",
                "SIM.NODE PROMOTE 1",
            ],
            ":1 ",
        ),
        (
            &[
                "SET k v",
                "SIM.NODE REPLICATE 1 OF 0",
                "SIM.NODE LINK 1 DOWN",
                "DEL k",
                "PUBLISH c m",
                "FUNCTION FLUSH",
            ],
            &["b GET k", "SIM.NODE LINK 1 UP", "b GET k", "a PING"],
            "+PONG ",
        ),
        (&["SIM.NODE PAUSE 0", "a INCR n"], &["SIM.NODE LIST", "SIM.NODE RESUME 0", "a INCR n"], ":1 :2 "),
        (
            &["SIM.NODE STATE 0 OOM ON", "SIM.NODE STATE 0 NOREPLICAS ON"],
            &["a SET k v", "SIM.NODE LIST"],
            "-OOM command not allowed when used memory > 'maxmemory'. ",
        ),
        (
            &["SIM.NODE STOP 1"],
            &["SIM.NODE LIST", "SIM.NODE START 1 AFTER 10", "SIM.CLOCK ADVANCE 20", "SIM.NODE LIST"],
            "",
        ),
        (&["SIM.NODE ACK 0 2"], &["a WAIT 2 0"], ":2 "),
        (&["SET k v", "SIM.RUN SNAPSHOT s", "DEL k"], &["SIM.RUN RESTORE s", "a GET k"], "$1 v "),
        (
            &["SIM.RUN STORE WRITE r 1 TOKEN 7"],
            &["SIM.RUN STORE WRITE r 1 TOKEN 6", "SIM.RUN STORE READ r"],
            "",
        ),
        (
            &["SIM.COST ON", "SIM.CHECK ON RLOCK STRICT"],
            &["a EVALSHA x 0", "SIM.COST LIST", "SIM.CHECK STATUS"],
            "-NOSCRIPT No matching script. Please use EVAL. ",
        ),
        (
            &["ACL SETUSER ann on >hush ~k* +@all", "ACL SETUSER default -get"],
            &[
                "a AUTH ann wrong",
                "a AUTH ann hush",
                "a GET x",
                "ACL LIST",
                "a ACL SETUSER ann <hush",
                "a AUTH ann hush",
            ],
            "-WRONGPASS invalid username-password pair or user is disabled. +OK -NOPERM No permissions to access a key +OK -WRONGPASS invalid username-password pair or user is disabled. ",
        ),
        (
            &["ACL SETUSER ann on >hush ~k* +@all", "a AUTH ann hush"],
            &["a ACL WHOAMI", "a GET x"],
            "$3 ann -NOPERM No permissions to access a key ",
        ),
        (&["a HELLO 3", "a CLIENT TRACKING ON", "a GET k"], &["SET k v"], ">2 $10 invalidate *1 $1 k "),
        (
            &["a HELLO 3", "a CLIENT TRACKING ON BCAST PREFIX k NOLOOP"],
            &["SET k v", "a SET k v"],
            ">2 $10 invalidate *1 $1 k +OK ",
        ),
        (&["CLIENT PAUSE 100 WRITE", "a SET k v"], &["a GET k", "SIM.CLOCK ADVANCE 101"], "+OK "),
        (
            &["SCRIPT LOAD return", "EVAL return 0"],
            &[
                "a SCRIPT EXISTS 63143b6f8007b98c53ca2149822777b3566f9241",
                "a EVALSHA 63143b6f8007b98c53ca2149822777b3566f9241 0",
            ],
            "*1 :1 $-1 ",
        ),
        (
            &["CONFIG SET notify-keyspace-events KEA", "CONFIG SET maxmemory-policy allkeys-lfu", "SET k v"],
            &["a CONFIG GET maxmemory-policy", "OBJECT FREQ k"],
            "*2 $16 maxmemory-policy $11 allkeys-lfu ",
        ),
        (
            &["DEBUG SET-ACTIVE-EXPIRE 0", "SET k v PX 5", "SIM.CLOCK ADVANCE 10"],
            &["a DBSIZE", "DEBUG SET-ACTIVE-EXPIRE 1", "a DBSIZE"],
            ":1 :0 ",
        ),
    ] {
        let received = received_after(before, act);
        // An empty expectation: only the replay counts.
        assert!(expected.is_empty() || received == expected, "{before:?}: {received}");
    }
}

#[test]
fn libraries_and_waiting_control_clients_are_in_a_trace() {
    let mut sim = Sim::new(SimOptions::default().nodes(2));
    let (control, waiting, a) = (sim.connect(0), sim.connect(0), sim.connect(0));
    let library =
        "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)";
    sim.call(control, &["FUNCTION", "LOAD", library]);
    call(&mut sim, control, "SIM.GATE ADD CMD get AT PRE LABEL g");
    sim.send(waiting, &[b"SIM.GATE", b"AWAIT", b"g"]);
    sim.start_trace();
    assert_eq!(call(&mut sim, a, "FCALL f 1 n"), ":1\r\n");
    assert!(sim.is_waiting(waiting));
    sim.send(a, &[b"GET", b"n"]);
    assert_eq!(sim.received(waiting), b"*1\r\n$2\r\nt1\r\n");
    Replay::run(&sim.finish_trace()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_trace_with_state_has_no_password() {
    let mut sim = Sim::new(SimOptions::default());
    let (control, a) = (sim.connect(0), sim.connect(0));
    call(&mut sim, control, "ACL SETUSER ann on >top-secret +@all");
    call(&mut sim, control, "CONFIG SET requirepass hush-hush");
    sim.start_trace();
    assert_eq!(call(&mut sim, a, "AUTH ann top-secret"), "+OK\r\n");
    call(&mut sim, a, "ACL SETUSER ben on >other-secret");
    call(&mut sim, a, "ACL LIST");
    assert_eq!(call(&mut sim, a, "AUTH ben other-secret"), "+OK\r\n");
    assert_eq!(call(&mut sim, a, "AUTH hush-hush"), "+OK\r\n");
    let trace = sim.finish_trace();
    Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    for secret in ["top-secret", "hush-hush", "other-secret"] {
        assert!(!trace.contains(secret), "{secret} is in the trace");
    }
}

#[test]
fn a_trace_that_could_not_replay_is_not_begun() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let long = "x".repeat(100);
    sim.call(client, &["SIM.FAULT", "ADD", "CMD", "set", "DO", "REWRITE", "ARG", "2", "SET", &long]);
    let error = sim.control().start_trace().unwrap_err();
    assert!(error.code == Code::State && error.text.contains("longer than 64 bytes"), "{error}");
}

#[test]
fn a_malformed_state_is_refused_with_its_subject() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    call(&mut sim, client, "SET k v");
    call(&mut sim, client, "SIM.GATE ADD CMD get AT PRE");
    sim.start_trace();
    let trace = sim.finish_trace();
    for (good, bad, what) in [
        ("[\"KEY\",\"0\"", "[\"KEY\",\"7\"", "KEY"),
        ("[\"GATE\",\"1\"", "[\"GATE\",\"x\"", "GATE"),
        ("[\"END\"]", "[\"THE END\"]", "THE END"),
        ("[\"END\"]", "[\"REPLICA\",\"0\",\"7\",\"0\"]", "REPLICA"),
        ("[\"END\"]", "[\"REPLICA\",\"0\",\"0\",\"0\"]", "REPLICA"),
    ] {
        let error = Replay::run(&trace.replacen(good, bad, 1)).unwrap_err();
        let expected = TraceError::BadState(what.to_owned());
        assert!(matches!(&error, ReplayError::Malformed { error, .. } if *error == expected), "{error}");
    }
}

#[test]
fn clients_keep_their_state_when_a_trace_begins() {
    assert_replays(
        &[
            "HELLO 3",
            "CLIENT SETNAME app",
            "CLIENT SETINFO lib-name x",
            "SELECT 3",
            "SUBSCRIBE c",
            "CLIENT NO-EVICT ON",
        ],
        &[
            "a PUBLISH c hello",
            "CLIENT LIST",
            "a SET k v",
            "DBSIZE",
            "INFO",
            "a CLIENT INFO",
            "SCRIPT EXISTS x",
            "SLOWLOG LEN",
        ],
    );
    assert_replays(&["MONITOR"], &["a SET k v", "b SET k v"]);
    assert_replays(&["CLIENT REPLY OFF"], &["PING", "CLIENT REPLY ON", "PING"]);
}
