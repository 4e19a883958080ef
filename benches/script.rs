//! Measures scripts with a host that does almost nothing. Prints nanoseconds per script; arguments select the scripts
//! whose names contain one of them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::hint::black_box;
use std::time::Instant;

use redlatch::Version;
use redlatch_compare::bench::workload;
use redlatch_core::script::{Host, LogLevel, Step, Vm};
use redlatch_core::wire::reply::{Protocol, Reply};

const KEYS: &[&[u8]] = &[b"myLock"];
const ARGV: &[&[u8]] = &[b"30000", b"2f4c3a0c-5c1e-4f0e-9a37-0b1df2f7a9d1:47"];

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

fn main() {
    let acquire = workload::script("acquire").expect("a script of the benchmarks");
    let scripts = [
        ("return 1", "return 1", 0),
        ("one redis.call", "return redis.call('get', KEYS[1])", 0),
        ("lock acquire, free lock (3 calls)", acquire, 0),
        ("lock acquire, held lock (3 calls)", acquire, 5),
        ("loop of 1000", "local s = 0 for i = 1, 1000 do s = s + i end return s", 0),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    for (name, body, answer) in scripts.into_iter().filter(|(name, ..)| is_wanted(name)) {
        println!("{:>9.1} ns  {name}", time_script(body, answer));
    }
    if is_wanted("suspension") {
        println!("{:>9.1} ns  one suspension and resumption", time_suspension());
    }
}

/// Returns nanoseconds per run, the best of several rounds.
fn time_script(body: &str, answer: i64) -> f64 {
    const RUNS: u32 = 200_000;
    let mut vm = Vm::new(Version::V7_4);
    let script = vm.load(body.as_bytes()).expect("the script compiles");
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    let mut host = Fixed(answer);
    best_of(7, || {
        let start = Instant::now();
        for _ in 0..RUNS {
            reply.clear();
            let step = vm.start(&script, KEYS, ARGV, &mut host, &mut reply);
            assert_eq!(step, Step::Done);
        }
        start.elapsed().as_nanos() as f64 / RUNS as f64
    })
}

/// Measures a suspension, in nanoseconds: runs an endless loop in slices of 1 and of 2 instructions, which differ by
/// one suspension for each slice.
fn time_suspension() -> f64 {
    const SLICES: u32 = 200_000;
    let time = |slice: u32, slices: u32| {
        let mut vm = Vm::with_limits(Version::V7_4, slice, 64 << 20);
        let script = vm.load(b"while true do end").expect("the script compiles");
        let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
        let mut host = Fixed(0);
        best_of(5, || {
            let start = Instant::now();
            let mut step = vm.start(&script, &[], &[], &mut host, &mut reply);
            for _ in 1..slices {
                step = vm.resume(&mut host, &mut reply);
            }
            let elapsed = start.elapsed().as_nanos() as f64;
            assert_eq!(step, Step::Suspended);
            vm.kill();
            vm.resume(&mut host, &mut reply);
            elapsed
        })
    };
    let instructions = SLICES * 10;
    (time(10, SLICES) - time(instructions, 1)) / SLICES as f64
}

fn best_of(rounds: u32, mut run: impl FnMut() -> f64) -> f64 {
    (0..rounds).map(|_| run()).fold(f64::INFINITY, f64::min)
}
