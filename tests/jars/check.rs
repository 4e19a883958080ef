//! SIM.CHECK: invariants of locks, checked while plain clients run the scripts of released jars.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::jars;

use redlatch::{Client, Sim, SimOptions};
use redlatch_lab::trace::Replay;
use redlatch_locks::binding::*;
use redlatch_locks::check::Checks;
use redlatch_locks::fair::{self, names as queue};
use redlatch_locks::jar::JarScript;
use redlatch_locks::permit::names as permit;
use redlatch_locks::rlock::names::TOKEN;
use redlatch_locks::role::role;
use redlatch_locks::rw::names as rw;

/// Clients that run the lock scripts of one Redisson release.
struct App {
    sim: Sim,
    scripts: Vec<JarScript>,
    requests: u64,
}

/// The lock, the owner and other arguments of a call.
#[derive(Clone, Copy)]
struct Ask<'a> {
    lock: &'a str,
    owner: &'a str,
    lease_ms: i64,
    count: i64,
    permit: &'a str,
    /// How late the request comes after the client has read its clock, in ms.
    late_ms: i64,
}

impl<'a> Ask<'a> {
    fn of(lock: &'a str, owner: &'a str) -> Ask<'a> {
        Ask { lock, owner, lease_ms: 10_000, count: 1, permit: "0123456789abcdef", late_ms: 0 }
    }
}

impl App {
    fn new(release: &str, checks: &str) -> App {
        let mut sim = Sim::new(SimOptions::default());
        let client = sim.connect(0);
        let order: Vec<&str> = format!("SIM.CHECK ON {checks}").leak().split_whitespace().collect();
        assert_eq!(sim.call(client, &order), b"+OK\r\n");
        App { sim, scripts: jars::scripts(release), requests: 0 }
    }

    /// Runs the script with this role, with the arguments that its text expects.
    fn call(&mut self, client: Client, name: &str, ask: Ask) -> String {
        let is_it = |script: &&JarScript| {
            role(script.text.as_bytes()).is_some_and(|role| role.of_class(&script.class).name() == name)
        };
        let script = self.scripts.iter().find(is_it).unwrap_or_else(|| panic!("no {name}"));
        let role = role(script.text.as_bytes()).unwrap();
        let binding = Binding::of(role, script.text.as_bytes()).unwrap();
        let writes = name.contains(".write.");
        self.requests += 1;
        let now_ms = 1_700_000_000_000 + self.sim.world().clock().now().mono_ms() as i64;
        let word = |parameter: &Parameter| match *parameter {
            LOCK => ask.lock.to_owned(),
            CHANNEL if matches!(role, fair::roles::UNLOCK | fair::roles::FORCE_UNLOCK) => {
                format!("redisson_lock__channel:{{{}}}", ask.lock)
            }
            CHANNEL => format!("channel:{{{}}}", ask.lock),
            LATCH => format!("redisson_unlock_latch:{{{}}}:{}", ask.lock, self.requests),
            queue::QUEUE => format!("redisson_lock_queue:{{{}}}", ask.lock),
            queue::TIMEOUTS | permit::TIMEOUTS => format!("timeouts:{{{}}}", ask.lock),
            rw::HOLDS => format!("{{{}}}:{}:rwlock_timeout", ask.lock, ask.owner),
            rw::ALL_HOLDS => format!("{{{}}}", ask.lock),
            TOKEN => format!("token:{{{}}}", ask.lock),
            OWNER if writes => format!("{}:write", ask.owner),
            OWNER => ask.owner.to_owned(),
            rw::WRITER => format!("{}:write", ask.owner),
            LEASE_MS => ask.lease_ms.to_string(),
            queue::WAIT_MS => "5000".to_owned(),
            CLOCK_MS => now_ms.saturating_sub(ask.late_ms).to_string(),
            permit::LEASE_DEADLINE => (now_ms + ask.lease_ms).to_string(),
            permit::NEVER => "922337203685477".to_owned(),
            // As Redisson does: a new count closes the latch.
            MESSAGE if name == "latch.try_set" => "1".to_owned(),
            MESSAGE => "0".to_owned(),
            PUBLISH => "publish".to_owned(),
            LATCH_TTL => "20000".to_owned(),
            COUNT => ask.count.to_string(),
            permit::PERMIT | permit::PERMITS => ask.permit.to_owned(),
            other => panic!("{name} takes {other:?}"),
        };
        let mut words = vec!["EVAL".to_owned(), script.text.clone(), binding.keys.len().to_string()];
        words.extend(binding.keys.iter().map(word));
        words.extend(binding.args.iter().map(word));
        self.send(client, &words)
    }

    fn send(&mut self, client: Client, words: &[impl AsRef<[u8]>]) -> String {
        String::from_utf8_lossy(&self.sim.call(client, words)).into_owned()
    }

    fn sim(&mut self, line: &str) -> String {
        let client = self.sim.connect(0);
        let words: Vec<&str> = line.split(' ').collect();
        self.send(client, &words)
    }

    fn found(&self) -> Vec<String> {
        self.sim.findings().iter().map(|finding| finding.promise()).collect()
    }

    fn unjudged(&self) -> Vec<String> {
        self.sim.lab().check_tally().unjudged.into_keys().collect()
    }
}

const A: &str = "11111111-1111-4111-8111-111111111111:31";
const B: &str = "22222222-2222-4222-8222-222222222222:32";

#[test]
fn the_nested_read_unlock_of_3_4_2_is_reported_with_what_happened() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("3.4.2", "");
    let client = app.sim.connect(0);
    let ask = Ask::of("orders", A);
    for name in ["rw.write.acquire", "rw.read.acquire", "rw.read.unlock"] {
        app.call(client, name, ask);
    }
    let [finding] = app.sim.findings() else { panic!("{:?}", app.sim.findings()) };
    assert_eq!((finding.promise().as_str(), finding.object), ("A1@read.unlock", "rw"));
    assert_eq!((&finding.key[..], &finding.owner[..]), (&b"orders"[..], A.as_bytes()));
    assert_eq!(finding.owners, [('A', A.as_bytes().to_vec())]);
    assert_eq!(finding.before[0], "orders = {mode: write, A:write: 1, A: 1}, 10000 ms");
    assert_eq!(finding.after, [""; 0], "the lock is gone");
    assert_eq!(finding.reply, "1");
    let event = finding.event;
    let list = app.sim("SIM.CHECK LIST");
    assert!(list.contains("A1@read.unlock") && list.contains("holds are counted"), "{list}");
    assert_eq!(app.sim(&format!("SIM.CHECK LIST SINCE {}", event + 1)), "*0\r\n");
    assert!(app.sim("SIM.CHECK STATUS").contains("judged\r\n:3\r\n"));
    assert_eq!(app.sim("SIM.CHECK RESET"), "+OK\r\n");
    assert_eq!(app.sim("SIM.CHECK LIST"), "*0\r\n");
}

#[test]
fn the_same_schedule_on_the_fixed_release_breaks_nothing() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("3.4.3", "");
    let client = app.sim.connect(0);
    for name in ["rw.write.acquire", "rw.read.acquire", "rw.read.unlock", "rw.write.unlock"] {
        app.call(client, name, Ask::of("orders", A));
    }
    assert_eq!((app.found(), app.unjudged()), (vec![], vec![]));
}

/// Correct use of several locks by several owners, for all objects of the current release.
#[test]
fn correct_use_is_not_reported() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "");
    let (one, two) = (app.sim.connect(0), app.sim.connect(0));
    app.sim.call(two, &["HELLO", "3"]);
    for lock in ["orders", "a:b", "{tag}x"] {
        let (a, b) = (Ask::of(lock, A), Ask::of(lock, B));
        for object in ["rlock", "spin", "fenced"] {
            app.call(one, &format!("{object}.acquire"), a);
            app.call(one, &format!("{object}.acquire"), a);
            app.call(two, &format!("{object}.acquire"), b);
            let unlock = if object == "spin" { "spin.unlock" } else { "rlock.unlock" };
            app.call(two, unlock, b);
            app.call(one, unlock, a);
            app.sim.advance(3_000);
            app.call(one, "rlock.renew", a);
            app.call(two, "rlock.renew", b);
            app.sim.advance(9_000);
            app.call(one, unlock, a);
            app.call(two, &format!("{object}.acquire"), b);
            app.sim.advance(10_001);
            app.call(one, &format!("{object}.acquire"), a);
            app.call(one, "rlock.force_unlock", a);
        }
        for name in ["rw.read.acquire", "rw.read.acquire", "rw.write.acquire", "rw.read.unlock"] {
            app.call(one, name, a);
            app.call(two, name, b);
        }
        app.sim.advance(20_000);
        for owner in [a, b] {
            app.call(one, "rw.write.acquire", owner);
            app.call(one, "rw.write.unlock", owner);
        }
        for owner in [a, b, a, b] {
            app.call(one, "fair.acquire", owner);
        }
        app.call(one, "fair.unlock", a);
        app.call(one, "fair.unlock", a);
        app.call(two, "fair.acquire", b);
        app.call(two, "fair.unlock", b);
    }
    let permits = Ask { count: 3, ..Ask::of("permits", A) };
    app.call(one, "permit.try_set", permits);
    let permits = Ask { count: 1, ..permits };
    app.call(one, "permit.acquire", permits);
    app.call(two, "permit.acquire", Ask { permit: "another permit..", ..permits });
    app.call(one, "permit.available", permits);
    app.call(one, "permit.release", permits);
    app.sim.advance(10_001);
    app.call(one, "permit.available", permits);
    let semaphore = Ask { count: 3, ..Ask::of("semaphore", A) };
    for name in ["semaphore.try_set", "semaphore.acquire", "semaphore.acquire", "semaphore.release"] {
        app.call(one, name, semaphore);
    }
    let latch = Ask { count: 2, ..Ask::of("latch", A) };
    for name in ["latch.try_set", "latch.count_down", "latch.count_down", "latch.count_down"] {
        app.call(one, name, latch);
    }
    assert_eq!((app.found(), app.unjudged()), (vec![], vec![]));
    assert!(app.sim.lab().check_tally().judged > 100);
}

/// Locks of all kinds, used by three owners over the connections of a pool. Their leases often run out. `leases_ms`: those of
/// read/write locks.
fn use_all_locks(app: &mut App, leases_ms: &[i64]) {
    let groups: [(&str, &[&str]); 5] = [
        ("plain", &["rlock.acquire", "rlock.acquire", "rlock.unlock", "rlock.renew"]),
        ("spin", &["spin.acquire", "spin.unlock", "rlock.renew"]),
        ("fenced", &["fenced.acquire", "rlock.unlock", "rlock.renew"]),
        ("fair", &["fair.acquire", "fair.try_acquire", "fair.unlock", "rlock.renew", "fair.acquire"]),
        ("rw", &["rw.read.acquire", "rw.read.unlock", "rw.write.acquire", "rw.write.unlock"]),
    ];
    let clients: Vec<Client> = (0..3).map(|_| app.sim.connect(0)).collect();
    let mut rng = redlatch_core::rng::Rng::new(5);
    for _ in 0..20_000 {
        let (lock, names) = groups[rng.below(groups.len())];
        let owner = [A, B, "33333333-3333-4333-8333-333333333333:33"][rng.below(3)];
        let leases_ms = if lock == "rw" { leases_ms } else { &[100, 200, 10_000] };
        let lease_ms = leases_ms[rng.below(leases_ms.len())];
        let client = clients[rng.below(3)];
        app.call(client, names[rng.below(names.len())], Ask { lease_ms, ..Ask::of(lock, owner) });
        let ms = if rng.below(200) == 0 { 10_001 } else { rng.below(60) };
        app.sim.advance(ms as u64);
    }
}

#[test]
fn the_history_of_ordinary_use_has_no_violation() {
    if jars::are_missing() {
        return;
    }
    for release in ["3.23.5", "4.7.0"] {
        let mut app = App::new(release, "H1 H2 H3 H4");
        use_all_locks(&mut app, &[200]);
        let found: Vec<String> = app.sim.findings().iter().map(ToString::to_string).collect();
        assert_eq!(found, [""; 0], "{release}");
        assert!(app.sim.lab().history_tally().judged > 10_000);
    }
}

/// Where leases of read/write locks differ, Redisson loses some. Models and history name the same events.
#[test]
fn the_history_finds_two_owners_where_the_models_do() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "M1 H1");
    use_all_locks(&mut app, &[100, 200, 10_000]);
    let events = |promise: &str| -> Vec<u64> {
        let found = app.sim.findings().iter().filter(|finding| finding.promise().starts_with(promise));
        found.map(|finding| finding.event).collect()
    };
    assert_eq!(events("H1"), events("M1"));
    assert_eq!(events("M1").len(), 4);
}

#[test]
fn changes_outside_scripts_are_accepted() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "");
    let client = app.sim.connect(0);
    let (a, b) = (Ask::of("orders", A), Ask::of("orders", B));
    let plain: [&[&str]; 8] = [
        &["DEL", "orders"],
        &["FLUSHALL"],
        &["SIM.KEY", "LOSE", "orders"],
        &["PEXPIRE", "orders", "1"],
        &["HDEL", "orders", A],
        &["SWAPDB", "0", "1"],
        &["MULTI"],
        &["RENAME", "orders", "elsewhere"],
    ];
    for words in plain {
        app.call(client, "rlock.acquire", a);
        app.send(client, words);
        if words[0] == "MULTI" {
            app.send(client, &["DEL", "orders"]);
            app.call(client, "rlock.acquire", a);
            app.call(client, "rlock.unlock", a);
            app.send(client, &["EXEC"]);
        }
        app.sim.advance(2);
        app.call(client, "rlock.acquire", b);
        app.call(client, "rlock.unlock", b);
        app.send(client, &["FLUSHALL"]);
    }
    // No script is to blame. The owner was not told, but where it was he who changed the lease, or where MULTI hides it.
    assert_eq!((app.found(), app.unjudged()), (vec!["H1@acquire".to_owned(); 6], vec![]));
    app.sim("SIM.CHECK RESET");
    // A lock that exists before the checks begin.
    app.sim("SIM.CHECK OFF");
    app.call(client, "rlock.acquire", a);
    app.sim("SIM.CHECK ON rlock");
    app.call(client, "rlock.acquire", b);
    app.call(client, "rlock.unlock", a);
    assert_eq!((app.found(), app.unjudged()), (vec![], vec![]));
}

/// A request on a busy machine comes late, so the deadline of a waiter that it sets is early. That is no wrong clock.
#[test]
fn a_late_request_of_a_waiter_does_not_lengthen_its_wait() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "");
    let client = app.sim.connect(0);
    let ask = |owner, late_ms| Ask { late_ms, ..Ask::of("late", owner) };
    app.call(client, "fair.acquire", ask(A, 0));
    assert_eq!(app.call(client, "fair.acquire", ask(B, 200)), ":10000\r\n");
    // Just after the deadline, by which another client removes the waiter.
    app.sim.advance(10_000 + 5_000 - 200 + 50);
    assert_eq!(app.call(client, "fair.acquire", ask("c:1", 0)), "$-1\r\n");
    assert_eq!(app.found(), [""; 0]);
    // The client has read its clock after the server had read its own.
    let ask = |owner, late_ms| Ask { late_ms, ..Ask::of("early", owner) };
    app.call(client, "fair.acquire", ask(A, 0));
    app.call(client, "fair.acquire", ask(B, 0));
    app.sim.advance(10_000 + 5_000 - 1);
    assert_eq!(app.call(client, "fair.acquire", ask("c:1", -1)), "$-1\r\n");
    assert_eq!(app.found(), [""; 0]);
    // What is no time of this world is no call of a client.
    app.call(client, "fair.acquire", ask(A, i64::MAX));
    assert_eq!(app.found(), [""; 0]);
}

#[test]
fn runs_that_cannot_be_checked_are_counted_and_not_reported() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "");
    let client = app.sim.connect(0);
    // Two kinds of lock with one name.
    app.call(client, "rw.read.acquire", Ask::of("orders", A));
    app.call(client, "rlock.acquire", Ask::of("orders", B));
    // A key of another type.
    app.send(client, &["SET", "text", "x"]);
    app.call(client, "rlock.acquire", Ask::of("text", A));
    // Scripts that a fault rule makes fail.
    app.sim("SIM.FAULT ADD SCRIPT rlock.acquire KEY rule DO FAIL SUBCALL 1");
    app.call(client, "rlock.acquire", Ask::of("rule", A));
    app.sim("SIM.NODE STATE 0 OOM ON");
    app.call(client, "rlock.acquire", Ask::of("full", A));
    app.sim("SIM.NODE STATE 0 OOM OFF");
    // More readers than a model tracks.
    for reader in ["r:1", "r:2", "r:3", "r:4", "r:5", "r:6", "r:7"] {
        app.call(client, "rw.read.acquire", Ask::of("many", reader));
    }
    assert_eq!(app.found(), [""; 0]);
    let reasons = app.unjudged().join("; ");
    for reason in ["another form", "refused a command", "a rule makes it fail", "six owners"] {
        assert!(reasons.contains(reason), "{reason}: {reasons}");
    }
}

/// The lease is the one that the client knows, not the one that the server stores.
#[test]
fn a_lease_that_a_script_cuts_short_is_noticed_when_the_lock_is_granted_again() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "M1");
    let client = app.sim.connect(0);
    // The keys of the holds are known from the first reader on.
    app.call(client, "rw.read.acquire", Ask::of("other", A));
    let a = Ask::of("orders", A);
    app.call(client, "rw.write.acquire", a);
    app.call(client, "rw.read.acquire", Ask { lease_ms: 2_000, ..a });
    app.call(client, "rw.read.acquire", Ask { lease_ms: 2_000, ..a });
    app.call(client, "rw.read.unlock", Ask { lease_ms: 2_000, ..a });
    app.sim.advance(3_000);
    app.call(client, "rw.write.acquire", Ask::of("orders", B));
    assert_eq!(app.found(), ["M1@write.acquire"]);
}

#[test]
fn a_request_that_is_sent_again_has_to_be_answered_alike() {
    if jars::are_missing() {
        return;
    }
    for (release, promises) in [("3.23.5", vec![]), ("4.7.0", vec![])] as [(&str, Vec<&str>); 2] {
        let mut app = App::new(release, "");
        let client = app.sim.connect(0);
        app.call(client, "rlock.acquire", Ask::of("orders", A));
        app.sim("SIM.FAULT ADD SCRIPT rlock.unlock DO DUP 2");
        app.call(client, "rlock.unlock", Ask::of("orders", A));
        assert_eq!(app.found(), promises, "{release}");
    }
}

#[test]
fn a_custom_lock_is_checked() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("4.7.0", "");
    let broken = std::fs::read_to_string("docs/locks/broken.toml").unwrap();
    let (one, two) = (app.sim.connect(0), app.sim.connect(0));
    assert_eq!(app.send(one, &["SIM.CHECK", "ON", "OWN", &broken]), "+OK\r\n");
    let table: toml::Table = broken.parse().unwrap();
    let script = |part: &str| table[part]["script"].as_str().unwrap().to_owned();
    let (acquire, release) = (script("acquire"), script("release"));
    assert_eq!(app.send(one, &["EVAL", &acquire, "1", "mine", "me", "1000"]), ":1\r\n");
    app.sim.advance(1_001);
    assert_eq!(app.send(two, &["EVAL", &acquire, "1", "mine", "you", "1000"]), ":1\r\n");
    assert_eq!(app.found(), [""; 0]);
    assert_eq!(app.send(one, &["EVAL", &release, "1", "mine"]), ":1\r\n");
    assert_eq!(app.found(), ["U1@release"]);
    assert_eq!(app.sim.findings()[0].owner, b"me");
}

/// The owner of a release without an owner argument is known from earlier requests of the connection, as long as they are remembered.
#[test]
fn who_released_is_remembered_of_so_many_connections() {
    if jars::are_missing() {
        return;
    }
    for (others, found, unjudged) in [(100, vec!["U1@release"], 0), (300, vec![], 1)] {
        let mut app = App::new("4.7.0", "");
        let broken = std::fs::read_to_string("docs/locks/broken.toml").unwrap();
        let one = app.sim.connect(0);
        assert_eq!(app.send(one, &["SIM.CHECK", "ON", "OWN", &broken]), "+OK\r\n");
        let table: toml::Table = broken.parse().unwrap();
        let script = |part: &str| table[part]["script"].as_str().unwrap().to_owned();
        let (acquire, release) = (script("acquire"), script("release"));
        app.send(one, &["EVAL", &acquire, "1", "mine", "me", "1000"]);
        for _ in 0..others {
            let client = app.sim.connect(0);
            app.sim.advance(1_001);
            app.send(client, &["EVAL", &acquire, "1", "mine", "you", "1000"]);
            app.sim.disconnect(client);
        }
        app.send(one, &["EVAL", &release, "1", "mine"]);
        assert_eq!(app.found(), found, "{others} others");
        let status = app.sim("SIM.CHECK STATUS");
        assert_eq!(status.matches("it is not known who asks").count(), unjudged, "{status}");
    }
}

#[test]
fn only_what_is_asked_for_is_reported() {
    if jars::are_missing() {
        return;
    }
    for (what, count) in
        [("rw", 1), ("rlock fair", 0), ("A1", 1), ("A1@read.unlock", 1), ("A1@read.acquire", 0)]
    {
        let mut app = App::new("3.4.2", what);
        let client = app.sim.connect(0);
        for name in ["rw.write.acquire", "rw.read.acquire", "rw.read.unlock"] {
            app.call(client, name, Ask::of("orders", A));
        }
        assert_eq!(app.found().len(), count, "{what}");
    }
    let mut app = App::new("4.7.0", "STRICT");
    let client = app.sim.connect(0);
    app.call(client, "rw.write.acquire", Ask::of("orders", A));
    app.call(client, "rw.write.acquire", Ask::of("orders", A));
    assert_eq!(app.found(), ["G7@write.acquire"], "leases add up");
    assert!(app.sim("SIM.CHECK ON nonsense").starts_with("-SIMERR UNKNOWN \"nonsense\""));
    assert!(app.sim("SIM.CHECK").starts_with("-SIMERR SYNTAX"));
}

#[test]
fn violations_are_in_the_trace_and_recur_in_its_replay() {
    if jars::are_missing() {
        return;
    }
    let mut app = App::new("3.4.2", "");
    app.sim.check(Checks::default());
    app.sim.start_trace();
    let client = app.sim.connect(0);
    for name in ["rw.write.acquire", "rw.read.acquire", "rw.read.unlock"] {
        app.call(client, name, Ask::of("orders", A));
    }
    let trace = app.sim.finish_trace();
    let line = trace.lines().find(|line| line.contains("\"k\":\"check\"")).expect("a line for the finding");
    assert!(line.contains("A1@read.unlock") && line.contains("orders"), "{line}");
    Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    let silent = trace.replace(line, "").replace("\n\n", "\n");
    assert!(Replay::run(&silent).is_err(), "a finding that is not in the trace is a difference");
}
