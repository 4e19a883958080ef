//! What the fuzzer notices of changes to scripts: `redlatch mutate`.

use redlatch_locks::jar::Jar;
use redlatch_locks::mutate::report::{json, merge, scores};
use redlatch_locks::mutate::{self, Fate, Options};

use crate::jars;

fn options(object: &str) -> Options {
    Options { objects: vec![object.to_owned()], runs: 500, ..Options::default() }
}

#[test]
fn changes_of_small_scripts_are_noticed() {
    if jars::are_missing() {
        return;
    }
    for object in ["rlock", "latch", "semaphore"] {
        let outcomes = mutate::run(&jars::jar("4.7.0"), &options(object)).unwrap();
        let (_, all) = scores(&outcomes);
        assert!(all.killed > 40 && all.percent() >= 95.0, "{object}: {all:?}");
        let killed = outcomes.iter().find(|outcome| matches!(outcome.fate, Fate::Killed { .. })).unwrap();
        assert_ne!(killed.mutant.mutation.old, killed.mutant.mutation.new);
    }
}

#[test]
fn the_same_seed_kills_the_same_in_any_number_of_threads_and_shards() {
    if jars::are_missing() {
        return;
    }
    let scripts = jars::jar("4.7.0");
    let all = mutate::run(&scripts, &options("spin")).unwrap();
    let in_threads = mutate::run(&scripts, &Options { jobs: 3, ..options("spin") }).unwrap();
    assert_eq!(json(&all), json(&in_threads));
    let of_shard = |shard| mutate::run(&scripts, &Options { shard: (shard, 2), ..options("spin") }).unwrap();
    let merged = merge(&[json(&of_shard(0)), json(&of_shard(1))]);
    assert_eq!(merged["scores"], json(&all)["scores"]);
    assert_eq!(merged["mutants"].as_array().map(Vec::len), Some(all.len()));
}

/// A script that is not recognised any more is not run, which nobody may take for a success.
#[test]
fn every_mutant_in_a_jar_is_run() {
    if jars::are_missing() {
        return;
    }
    let outcomes = mutate::run(&jars::jar("4.7.0"), &options("spin")).unwrap();
    assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.fate != Fate::NotRecognised));
    assert!(mutate::run(&Jar::default(), &Options::default()).unwrap().is_empty());
}
