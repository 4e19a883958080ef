//! The parts of the server that benchmarks measure: `time.rs` in time, `instructions.rs` in instructions.

use std::hint::black_box;

use redlatch::Version;
use redlatch_compare::bench::workload::{self, WORKLOADS};
use redlatch_core::node;
use redlatch_core::script::{Host, LogLevel, Step, Vm};
use redlatch_core::store::{Hash, Now, Store, Value};
use redlatch_core::wheel::Wheel;
use redlatch_core::wire::{Protocol, Reply, RequestLimits, RequestParser};

use crate::in_process::InProcess;

/// An operation that a benchmark repeats.
pub type Run = Box<dyn FnMut()>;

/// A part: its name, and a function that prepares its operation.
pub type Part = (&'static str, fn() -> Run);

pub const PARTS: &[Part] = &[
    ("parse a lock request", parse),
    ("write a reply of three values", write),
    ("script without commands", || script("return 1", 0)),
    ("lock script, a host that does nothing", || script(workload::script("acquire").unwrap(), 0)),
    ("wheel: move a lease among 100,000", rearm),
    ("store: find one of 100,000 keys", find),
    ("store: a key with a TTL comes and goes", come_and_go),
    ("request: ping", || request("ping")),
    ("request: get", || request("get")),
    ("request: set", || request("set")),
    ("request: hset", || request("hset")),
    ("request: acquire", || request("acquire")),
    ("request: acquire, while a trace is written", traced_acquire),
    ("request: contend", || request("contend")),
    ("request: renew", || request("renew")),
    ("two requests: lock", || request("lock")),
    ("five requests: fair", || request("fair")),
    ("six requests: readwrite", || request("readwrite")),
];

const LIMITS: RequestLimits =
    RequestLimits { max_bulk_len: 512 << 20, authenticated: true, version: Version::V7_4 };

fn parse() -> Run {
    let bytes = workload::request("EVALSHA {acquire} 1 {key} 30000 {holder}", 1);
    let mut parser = RequestParser::default();
    Box::new(move || {
        let len = parser.parse(&bytes, LIMITS).unwrap();
        black_box((len, parser.args(&bytes).len()));
    })
}

fn write() -> Run {
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    Box::new(move || {
        reply.clear();
        reply.array(3);
        reply.int(30_000);
        reply.bulk(b"0123456789abcdef");
        reply.null();
        black_box(reply.as_bytes());
    })
}

/// A host that answers every command with an integer.
struct Fixed(i64);

impl Host for Fixed {
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply) {
        black_box(argv);
        reply.int(self.0);
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        Some(true)
    }
}

fn script(body: &str, answer: i64) -> Run {
    const KEYS: &[&[u8]] = &[b"myLock"];
    const ARGV: &[&[u8]] = &[b"30000", b"2f4c3a0c-5c1e-4f0e-9a37-0b1df2f7a9d1:47"];
    let mut vm = Vm::new(Version::V7_4);
    let script = vm.load(body.as_bytes()).unwrap();
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    let mut host = Fixed(answer);
    Box::new(move || {
        reply.clear();
        assert_eq!(vm.start(&script, KEYS, ARGV, &mut host, &mut reply), Step::Done);
    })
}

fn rearm() -> Run {
    let mut wheel = Wheel::new(0);
    let ids: Vec<_> = (0..100_000u64).map(|i| wheel.arm(i * 7919 % 3_600_000, ())).collect();
    let mut draw = 0;
    Box::new(move || {
        draw = (draw + 7919) % ids.len();
        black_box(wheel.rearm(ids[draw], 30_000 + draw as u64 % 1000));
    })
}

fn filled_store() -> Store {
    let limits = node::Config::new(Version::V7_4).limits();
    let mut store = Store::new(1, Now::default(), limits);
    for i in 0..100_000 {
        let slot = store.insert(0, format!("lock:{i}").as_bytes(), Value::Hash(Hash::new()));
        store.set_expiry(0, slot, Some(30_000 + i));
    }
    store
}

fn find() -> Run {
    let store = filled_store();
    Box::new(move || {
        black_box(store.dbs[0].find(black_box(b"lock:77777")));
    })
}

fn come_and_go() -> Run {
    let mut store = filled_store();
    Box::new(move || {
        let slot = store.insert(0, black_box(b"another"), Value::Hash(Hash::new()));
        store.set_expiry(0, slot, Some(30_000));
        black_box(store.remove(0, slot));
    })
}

/// Prepares all steps of a workload, from the bytes of the requests to those of the replies.
fn request(name: &str) -> Run {
    request_to(name, InProcess::new())
}

fn traced_acquire() -> Run {
    let mut server = InProcess::new();
    server.lab.start_trace();
    request_to("acquire", server)
}

fn request_to(name: &str, mut server: InProcess) -> Run {
    let workload = WORKLOADS.iter().find(|workload| workload.name == name).unwrap();
    let client = server.connect();
    workload::load_scripts().chain(workload.before(0)).for_each(|request| server.send(client, &request));
    let steps = workload.batches(0, workload.steps.len());
    Box::new(move || server.send(client, &steps[0]))
}
