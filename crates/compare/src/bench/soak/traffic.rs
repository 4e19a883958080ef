//! The clients of a soak. Each kind runs in a thread of its own until the time is over, with connections that come and go.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::server::Server;
use super::super::workload::{self, WORKLOADS};
use crate::diff::link::Link;
use redlatch_core::rng::Rng;
use redlatch_core::wire::client::encode;

/// The lease in the requests of the workloads, and the one that they have here: all leases end soon after the clients have left.
const LEASE: (&str, &str) = ("30000", "2000");

/// How many keys a client of locks uses.
const KEYS: usize = 16;

/// What clients count.
#[derive(Default)]
pub struct Counts {
    locks: AtomicU64,
    cut: AtomicU64,
    waits: AtomicU64,
    messages: AtomicU64,
    client_kills: AtomicU64,
    script_kills: AtomicU64,
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// One client, or a few that belong together.
struct Actor<'a> {
    addr: SocketAddr,
    until: Instant,
    rng: Rng,
    /// The first of the keys that only this client uses.
    first_key: usize,
    counts: &'a Counts,
}

type Act = fn(&mut Actor) -> Result<(), String>;

/// What clients do until the time is over, again and again.
const ACTS: &[(&str, Act)] = &[
    ("lock", lock),
    ("lock", lock),
    ("lock", lock),
    ("lock", lock),
    ("wait for elements", wait_for_elements),
    ("take permits", take_permits),
    ("listen", listen),
    ("read slowly", read_slowly),
    ("expire together", expire_together),
    ("kill clients", kill_clients),
    ("kill scripts", kill_scripts),
];

/// How long the server may take for a reply. It has much to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs all clients for this long. Returns what they did.
///
/// # Errors
/// The server does not answer.
pub fn run(server: &Server, length: Duration) -> Result<[(&'static str, u64); 6], String> {
    let mut link = server.link()?;
    for request in workload::load_scripts() {
        server.call(&mut link, &request)?;
    }
    drop(link);
    let counts = Counts::default();
    let until = Instant::now() + length;
    thread::scope(|scope| {
        let threads: Vec<_> = ACTS
            .iter()
            .enumerate()
            .map(|(index, (name, act))| {
                let rng = Rng::new(index as u64);
                let mut actor =
                    Actor { addr: server.addr, until, rng, first_key: index * KEYS, counts: &counts };
                scope.spawn(move || {
                    while Instant::now() < actor.until {
                        act(&mut actor).map_err(|why| format!("{why} (clients that {name})"))?;
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned())))
    })?;
    // Queues of fair locks have no lease.
    let mut link = Link::open_with(server.addr, PATIENCE)?;
    for key in 0..ACTS.len() * KEYS {
        server.call(&mut link, &workload::clean(key))?;
    }
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok([
        ("requests to locks", read(&counts.locks)),
        ("connections that ended within a request", read(&counts.cut)),
        ("blocking requests", read(&counts.waits)),
        ("messages to subscribers", read(&counts.messages)),
        ("CLIENT KILL", read(&counts.client_kills)),
        ("SCRIPT KILL", read(&counts.script_kills)),
    ])
}

impl Actor<'_> {
    fn open(&self) -> Result<Link, String> {
        Link::open_with(self.addr, PATIENCE)
    }

    fn key(&mut self) -> usize {
        self.first_key + self.rng.below(KEYS)
    }

    /// Sends a request and waits for its reply. Errors are replies too: a script may be busy.
    fn call(&self, link: &mut Link, request: &[u8]) -> Result<Vec<u8>, String> {
        link.send(request);
        link.receive().ok_or_else(|| format!("{} stopped answering", self.addr))
    }

    /// Returns a connection of which the server knows, and its CLIENT ID.
    fn open_known(&self) -> Result<(Link, String), String> {
        let mut link = self.open()?;
        let reply = self.call(&mut link, &encode(&["CLIENT", "ID"]))?;
        let id = String::from_utf8_lossy(&reply).trim().trim_start_matches(':').to_owned();
        Ok((link, id))
    }
}

/// Takes locks of every kind and gives them back, then leaves, sometimes in the middle of a request.
fn lock(actor: &mut Actor) -> Result<(), String> {
    let locks: Vec<_> =
        WORKLOADS.iter().filter(|workload| workload.steps[0].starts_with("EVALSHA")).collect();
    let mut link = actor.open()?;
    for _ in 0..actor.rng.below(20) {
        let (workload, key) = (locks[actor.rng.below(locks.len())], actor.key());
        for step in workload.steps {
            let request = workload::request(&step.replace(LEASE.0, LEASE.1), key);
            // Some holders die with the lock.
            if actor.rng.below(200) == 0 {
                let cut = actor.rng.below(request.len());
                link.send(&request[..cut]);
                count(&actor.counts.cut, 1);
                return Ok(());
            }
            actor.call(&mut link, &request)?;
            count(&actor.counts.locks, 1);
        }
    }
    Ok(())
}

/// Waits for elements of lists, of which only some come.
fn wait_for_elements(actor: &mut Actor) -> Result<(), String> {
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut link = actor.open()?;
        let key = actor.key();
        let timeout = ["0", "0.05", "1"][actor.rng.below(3)];
        link.send(&workload::request(&format!("BLPOP {{key}}:list {timeout}"), key));
        waiting.push(link);
    }
    let mut giver = actor.open()?;
    for _ in 0..KEYS {
        let key = actor.key();
        actor.call(&mut giver, &workload::request("RPUSH {key}:list a b", key))?;
    }
    for key in actor.first_key..actor.first_key + KEYS {
        actor.call(&mut giver, &workload::request("DEL {key}:list", key))?;
    }
    count(&actor.counts.waits, 20);
    Ok(())
}

/// Takes permits of a semaphore and waits for a message when there is none, as a client of Redisson does.
fn take_permits(actor: &mut Actor) -> Result<(), String> {
    let key = actor.key();
    let mut holder = actor.open()?;
    actor.call(&mut holder, &workload::request("SET {key}:permits 3 PX 2000", key))?;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let mut link = actor.open()?;
        let taken = actor
            .call(&mut link, &workload::request("EVALSHA {semaphore_acquire} 1 {key}:permits 1", key))?;
        if taken != b":1\r\n" {
            actor.call(&mut link, &workload::request("SUBSCRIBE {key}:permits:channel", key))?;
        }
        waiting.push(link);
    }
    for _ in 0..5 {
        let release = "EVALSHA {semaphore_release} 2 {key}:permits {key}:permits:channel 1";
        actor.call(&mut holder, &workload::request(release, key))?;
    }
    actor.call(&mut holder, &workload::request("DEL {key}:permits", key))?;
    count(&actor.counts.waits, 5);
    Ok(())
}

/// Subscribes to channels, patterns and keyspace events, and leaves in every way.
fn listen(actor: &mut Actor) -> Result<(), String> {
    let mut listeners = Vec::new();
    for _ in 0..20 {
        let mut link = actor.open()?;
        let key = actor.key();
        let request =
            ["SUBSCRIBE {key}:channel", "PSUBSCRIBE {key}*", "PSUBSCRIBE __key*__:*"][actor.rng.below(3)];
        actor.call(&mut link, &workload::request(request, key))?;
        if actor.rng.below(3) == 0 {
            link.send(&encode(&["UNSUBSCRIBE"]));
        }
        listeners.push(link);
    }
    let mut publisher = actor.open()?;
    for key in actor.first_key..actor.first_key + KEYS {
        actor.call(&mut publisher, &workload::request("PUBLISH {key}:channel free", key))?;
    }
    count(&actor.counts.messages, KEYS as u64);
    Ok(())
}

/// Subscribes without reading, until the server ends that, and asks for much without reading it.
fn read_slowly(actor: &mut Actor) -> Result<(), String> {
    let key = actor.key();
    let (mut deaf, mut publisher) = (actor.open()?, actor.open()?);
    actor.call(&mut deaf, &workload::request("SUBSCRIBE {key}:slow", key))?;
    let message = "m".repeat(50_000);
    let publish = workload::request(&format!("PUBLISH {{key}}:slow {message}"), key);
    while actor.call(&mut publisher, &publish)? == b":1\r\n" {
        count(&actor.counts.messages, 1);
    }
    actor.call(&mut publisher, &workload::request(&format!("SET {{key}}:big {message} PX 1000"), key))?;
    let mut asking = actor.open()?;
    asking.send(&workload::request("GET {key}:big", key).repeat(100));
    Ok(())
}

/// Creates a thousand keys and fields that expire within a few milliseconds of one another.
fn expire_together(actor: &mut Actor) -> Result<(), String> {
    const STORM: &str = "for i = 1, 1000 do redis.call('set', KEYS[1] .. i, i, 'px', ARGV[1] + i % 3) end \
                         for i = 1, 100 do redis.call('hset', KEYS[1], i, i) redis.call('hpexpire', KEYS[1], ARGV[1], 'fields', 1, i) end";
    let mut link = actor.open()?;
    let key = format!("redlatch-bench:{}:storm", actor.key());
    actor.call(&mut link, &encode(&["EVAL", STORM, "1", &key, "300"]))?;
    thread::sleep(Duration::from_millis(200));
    Ok(())
}

/// Kills clients while they wait, listen, watch keys or do nothing.
fn kill_clients(actor: &mut Actor) -> Result<(), String> {
    const BEFORE: &[&str] = &[
        "BLPOP {key}:never 0",
        "SUBSCRIBE {key}:channel",
        "WATCH {key}",
        "MULTI",
        "MONITOR",
        "CLIENT TRACKING ON BCAST",
        "PING",
    ];
    let (mut killer, _) = actor.open_known()?;
    let mut victims = Vec::new();
    for before in BEFORE {
        let (mut link, id) = actor.open_known()?;
        link.send(&workload::request(before, actor.first_key));
        let reply = actor.call(&mut killer, &encode(&["CLIENT", "KILL", "ID", &id]))?;
        count(&actor.counts.client_kills, u64::from(reply == b":1\r\n"));
        victims.push(link);
    }
    thread::sleep(Duration::from_millis(20));
    Ok(())
}

/// Runs scripts that do not end, and kills them.
fn kill_scripts(actor: &mut Actor) -> Result<(), String> {
    const ENDLESS: &[&str] = &[
        "while true do end",
        "local t = {} while true do t[#t % 1000 + 1] = {('x'):rep(100)} end",
        "while true do pcall(function() while true do redis.call('get', 'k') end end) end",
        "load(function() while true do end end)",
        "coroutine.wrap(function() while true do end end)()",
        "return ('a'):rep(50):find(('a?'):rep(50) .. ('a'):rep(50))",
    ];
    let (mut link, mut killer) = (actor.open()?, actor.open()?);
    link.send(&encode(&["EVAL", ENDLESS[actor.rng.below(ENDLESS.len())], "0"]));
    let began = Instant::now();
    while actor.call(&mut killer, &encode(&["SCRIPT", "KILL"]))? != b"+OK\r\n" {
        if began.elapsed() > Duration::from_secs(5) {
            return Err("a script cannot be killed".to_owned());
        }
    }
    count(&actor.counts.script_kills, 1);
    if actor.rng.below(2) == 0 {
        link.receive().ok_or("a killed script has no reply")?;
    }
    // Others have to get on as well.
    thread::sleep(Duration::from_millis(200));
    Ok(())
}
