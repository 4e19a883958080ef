//! Runs each fuzz target on its corpus and on mutations of it, which are the same in each run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redlatch_core::rng::Rng;
use redlatch_fuzz_targets::{TARGETS, run};

const MAX_LEN: usize = 512;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Mutates an input: changes, removes or doubles bytes, or takes some from another input.
fn mutate(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[rng.below(corpus.len())].clone();
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(bytes.len() + 1);
        let len = rng.below(bytes.len() - at + 1).min(16);
        match rng.below(6) {
            0 => drop(bytes.drain(at..at + len)),
            1 => {
                let piece = bytes[at..at + len].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            2 => {
                let other = &corpus[rng.below(corpus.len())];
                let from = rng.below(other.len() + 1);
                drop(bytes.splice(at..at + len, other[from..].iter().copied()));
            }
            3 => bytes.insert(at, rng.next_u64() as u8),
            _ if at < bytes.len() => {
                bytes[at] = match rng.below(3) {
                    0 => bytes[at] ^ 1 << rng.below(8),
                    1 => [0, 1, 0x7f, 0x80, 0xff, b'\n', b'0'][rng.below(7)],
                    _ => rng.next_u64() as u8,
                };
            }
            _ => {}
        }
    }
    bytes.truncate(MAX_LEN);
    bytes
}

fn fuzz(name: &str, count: usize) {
    let mut inputs = corpus(name);
    assert!(!inputs.is_empty(), "{name} has no corpus");
    let mut rng = Rng::new(7);
    for index in 0..count {
        let input = match inputs.get(index) {
            Some(input) if index < inputs.len() => input.clone(),
            _ => mutate(&mut rng, &inputs),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(name, &input))) {
            eprintln!("{name}, input {index}: {}", input.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        // Keeps some of the inputs that passed, to be mutated further.
        if index % 16 == 0 && inputs.len() < 64 && index >= inputs.len() {
            inputs.push(input);
        }
    }
}

macro_rules! targets {
    ($($name:ident $target:literal $count:literal)*) => {
        $(#[test]
        fn $name() {
            fuzz($target, $count);
        })*

        #[test]
        fn every_target_is_run_here_and_by_the_fuzzer() {
            let here = [$($target),*];
            let binary = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/targets/{name}.rs")).exists();
            assert!(TARGETS.iter().all(|target| here.contains(&target.name) && binary(target.name)));
        }
    };
}

// How many inputs each target gets: fewer if each is a whole session.
targets! {
    requests "request" 2000
    replies "reply" 2000
    globs "glob" 2000
    config_files "config" 2000
    structs "struct" 2000
    message_packs "cmsgpack" 2000
    json "cjson" 2000
    scripts "lua" 2000
    timers "wheel" 2000
    command_sequences "commands" 2000
    lock_schedules "schedule" 2000
    sessions "session" 500
    traces "trace" 500
    dumps "dump" 2000
    jars "jar" 2000
    classes "class" 2000
    lock_descriptions "own" 2000
    scripted_schedules "demo" 1000
    schedule_tokens "token" 2000
    reports "report" 2000
}
