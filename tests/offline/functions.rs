//! Functions as data and as scripts: replicas, snapshots, stops, node states and traces.

use redlatch::{Client, Sim, SimOptions};
use redlatch_lab::trace::Replay;

const LIBRARY: &str = "#!lua name=locks\n\
    redis.register_function('acquire', function(keys, args)\n\
      return redis.call('SET', keys[1], args[1], 'NX', 'PX', 1000)\n\
    end)\n\
    redis.register_function{function_name='owner', flags={'no-writes'}, callback=function(keys)\n\
      return redis.call('GET', keys[1])\n\
    end}\n\
    redis.register_function{function_name='release', flags={'allow-oom'}, callback=function(keys)\n\
      return redis.call('DEL', keys[1])\n\
    end}\n\
    redis.register_function('loop', function() while true do end end)\n\
    redis.register_function('draw', function() return math.random(1000) end)";

fn call(sim: &mut Sim, client: Client, words: &[&str]) -> String {
    String::from_utf8_lossy(&sim.call(client, words)).into_owned()
}

fn line(sim: &mut Sim, client: Client, line: &str) -> String {
    call(sim, client, &line.split(' ').collect::<Vec<_>>())
}

fn world(nodes: usize) -> (Sim, Client) {
    let mut sim = Sim::new(SimOptions::default().nodes(nodes));
    let client = sim.connect(0);
    assert_eq!(call(&mut sim, client, &["FUNCTION", "LOAD", LIBRARY]), "$5\r\nlocks\r\n");
    (sim, client)
}

#[test]
fn replicas_have_the_libraries_of_their_master() {
    let (mut sim, master) = world(2);
    let replica = sim.connect(1);
    assert_eq!(line(&mut sim, replica, "FCALL owner 1 k"), "-ERR Function not found\r\n");
    line(&mut sim, master, "SIM.NODE REPLICATE 1 OF 0");
    line(&mut sim, master, "FCALL acquire 1 k A");
    assert_eq!(line(&mut sim, replica, "FCALL owner 1 k"), "$1\r\nA\r\n");
    assert!(line(&mut sim, replica, "FCALL acquire 1 k B").starts_with("-READONLY "));
    assert!(line(&mut sim, replica, "FUNCTION DELETE locks").starts_with("-READONLY "));
    let other = "#!lua name=other\nredis.register_function('f', function() return 7 end)";
    call(&mut sim, master, &["FUNCTION", "LOAD", other]);
    line(&mut sim, master, "FUNCTION DELETE locks");
    line(&mut sim, master, "SIM.NODE PROMOTE 1");
    assert_eq!(line(&mut sim, replica, "FCALL f 0"), ":7\r\n");
    assert_eq!(line(&mut sim, replica, "FCALL owner 1 k"), "-ERR Function not found\r\n");
}

#[test]
fn libraries_are_data() {
    let (mut sim, client) = world(1);
    line(&mut sim, client, "SIM.RUN SNAPSHOT s");
    line(&mut sim, client, "FUNCTION FLUSH");
    line(&mut sim, client, "SIM.RUN RESTORE s");
    assert_eq!(line(&mut sim, client, "FCALL acquire 1 k A"), "+OK\r\n");
    line(&mut sim, client, "SCRIPT FLUSH");
    line(&mut sim, client, "FLUSHALL");
    assert_eq!(line(&mut sim, client, "FCALL acquire 1 k B"), "+OK\r\n");
    line(&mut sim, client, "SIM.RUN RESET");
    assert_eq!(line(&mut sim, client, "FCALL owner 1 k"), "-ERR Function not found\r\n");
}

#[test]
fn the_flags_of_a_function_decide_where_it_runs() {
    let (mut sim, client) = world(1);
    line(&mut sim, client, "FCALL acquire 1 k A");
    line(&mut sim, client, "SIM.NODE STATE 0 OOM ON");
    assert!(line(&mut sim, client, "FCALL acquire 1 k B").starts_with("-OOM "));
    assert_eq!(line(&mut sim, client, "FCALL OWNER 1 k"), "$1\r\nA\r\n");
    assert_eq!(line(&mut sim, client, "FCALL release 1 k"), ":1\r\n");
    line(&mut sim, client, "SIM.NODE STATE 0 OOM OFF");
    line(&mut sim, client, "SIM.NODE STATE 0 MASTERDOWN ON");
    assert!(line(&mut sim, client, "FCALL owner 1 k").starts_with("-MASTERDOWN "));
}

/// Records a run with functions, one of which is killed.
fn run() -> String {
    let mut sim = Sim::new(SimOptions::default().seed(3));
    sim.start_trace();
    let (a, b) = (sim.connect(0), sim.connect(0));
    call(&mut sim, a, &["FUNCTION", "LOAD", LIBRARY]);
    for round in 0..20 {
        line(&mut sim, a, &format!("FCALL acquire 1 k {round}"));
        line(&mut sim, a, "FCALL draw 0");
        sim.call(b, &["EVAL", "return math.random(1000)", "0"]);
        sim.advance(100);
    }
    line(&mut sim, a, "CONFIG SET busy-reply-threshold 5");
    sim.send_bytes(b, b"*3\r\n$5\r\nFCALL\r\n$4\r\nloop\r\n$1\r\n0\r\n");
    sim.advance(100);
    // Requests wait until the function counts as busy.
    sim.run_slice(0);
    line(&mut sim, a, "FUNCTION STATS");
    line(&mut sim, a, "FUNCTION KILL");
    sim.advance(100);
    while sim.run_slice(0) {}
    line(&mut sim, b, "FUNCTION DUMP");
    sim.finish_trace()
}

#[test]
fn a_run_with_functions_replays_with_no_difference() {
    let trace = run();
    let replay = Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    assert!(replay.complete && replay.outputs > 60, "{replay:?}");
    assert!(trace.contains("killed by user"), "{trace}");
    assert_eq!(run(), trace, "and is the same when it is made again");
}

#[test]
fn a_library_that_takes_too_much_is_refused() {
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let bodies = [
        "local t = 'x' while true do t = t .. t end",
        "local function f() return 1 + f() end f()",
        "local b = ('y'):rep(1000000) local n = 0 while true do n = n + 1 redis.register_function(b .. n, redis.log) end",
        "local n = 0 while true do n = n + 1 redis.register_function('f' .. n, redis.log) end",
        "while true do end",
    ];
    for body in bodies {
        let reply = call(&mut sim, client, &["FUNCTION", "LOAD", &format!("#!lua name=a\n{body}")]);
        assert!(reply.starts_with("-ERR Error registering functions: ERR "), "{body}: {reply}");
    }
    assert_eq!(call(&mut sim, client, &["FUNCTION", "LOAD", LIBRARY]), "$5\r\nlocks\r\n");
    assert_eq!(line(&mut sim, client, "FCALL acquire 1 k A"), "+OK\r\n");
}
