//! The roles of the scripts in released jars are recognised.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::jars;

use std::collections::BTreeSet;

use redlatch::{Sim, SimOptions};
use redlatch_core::script::sha1_hex;
use redlatch_locks::binding::Binding;
use redlatch_locks::jar::JarScript;
use redlatch_locks::model::Sends;
use redlatch_locks::role::{Recognised, Role, recognise, role};
use redlatch_locks::script_set::ScriptSet;
use redlatch_locks::sites::{self, Reading};
use redlatch_locks::{fair, faster, latch, permit, rate, rlock, rw, semaphore};

/// Returns all releases that the tests use.
fn releases() -> impl Iterator<Item = &'static str> {
    include_str!("releases").split_whitespace()
}

/// Lock scripts that no model calls: two queries of 2.2, whose locks are JSON, and the forced unlock of its read/write
/// lock.
const NOT_RUN: &[&str] = &[
    "2.2.3 RedissonLock.isHeldByCurrentThread (rlock.is_held): no model calls it",
    "2.2.3 RedissonLock.getHoldCount (rlock.hold_count): no model calls it",
    "2.2.3 RedissonReadLock.forceUnlockAsync (rw.force_unlock): no model calls it",
];

#[test]
fn every_lock_script_of_every_release_has_its_role_by_class_and_method_and_by_text() {
    if jars::are_missing() {
        return;
    }
    let mut not_run = Vec::new();
    for release in releases() {
        let jar = jars::jar(release);
        assert!(jar.scripts.len() > 100, "{release}: {} scripts", jar.scripts.len());
        let mut found = BTreeSet::new();
        for (script, reading) in jar.scripts.iter().zip(sites::read(&jar.scripts)) {
            let by_text = role(script.text.as_bytes()).map(|role| role.of_class(&script.class));
            let name = format!("{release} {} {reading:?}\n{}", script.name(), script.text);
            match reading {
                Reading::Site { role, text } => {
                    assert_eq!((Some(role), text), (by_text, None), "{name}");
                    // The byte code shows all arguments. It agrees with what the text shows, except where a script
                    // does not use all that it gets.
                    let call = Binding::of_call(role, script.call.as_ref().expect(&name)).expect(&name);
                    let text = Binding::of(role, script.text.as_bytes()).expect(&name);
                    assert!(call.keys.starts_with(&text.keys) && call.args.starts_with(&text.args), "{name}");
                    found.insert(role);
                }
                Reading::Text(_) | Reading::Unknown => panic!("{name}"),
                Reading::Other => {
                    let is_part_of_queue = script.class == "RedissonBoundedBlockingQueue";
                    assert!(by_text.is_none() || is_part_of_queue, "{name}");
                }
            }
        }
        let everywhere = [
            rlock::roles::ACQUIRE,
            rlock::roles::UNLOCK,
            rw::roles::READ_ACQUIRE,
            rw::roles::WRITE_UNLOCK,
            latch::roles::COUNT_DOWN,
        ];
        for role in everywhere {
            assert!(found.contains(&role), "{release} has no {}", role.name());
        }
        let problems = ScriptSet::of_jar(&jar).problems(&[]);
        not_run
            .extend(problems.iter().map(|problem| format!("{release} {}: {}", problem.script, problem.what)));
    }
    assert_eq!(not_run, NOT_RUN);
}

/// Nothing is run that a client of the release does not send: no renewal by `PEXPIRE` but in the first releases, and no
/// lock over several nodes before there was one.
#[test]
fn releases_without_a_script_send_a_plain_command_only_if_their_byte_code_shows_it() {
    if jars::are_missing() {
        return;
    }
    let plain = [
        (Sends::ScriptOrPexpire(rlock::roles::RENEW), ["2.2.3", "2.3.0"].as_slice()),
        (Sends::ScriptOrGet(permit::roles::AVAILABLE), &["2.4.0"]),
    ];
    for release in releases() {
        let mut jar = jars::jar(release);
        let set = ScriptSet::of_jar(&jar);
        for (sends, expected) in plain {
            let is_plain = set.sends(sends) && set.find(sends).is_none();
            assert_eq!(is_plain, expected.contains(&release), "{release} {sends:?}");
        }
        let mode = Sends::ScriptOrMode(rw::roles::READ_IS_LOCKED);
        assert!(set.sends(mode) || release == "2.2.3", "{release}");
        let objects: Vec<&str> = set.models().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            objects.contains(&"multi") && objects.contains(&"redlock"),
            release != "2.2.3",
            "{release}"
        );
        // Without its script, the renewal is missing.
        jar.scripts.retain(|script| role(script.text.as_bytes()) != Some(rlock::roles::RENEW));
        let renews = ScriptSet::of_jar(&jar).sends(plain[0].0);
        assert_eq!(renews, plain[0].1.contains(&release), "{release}");
    }
}

/// Splits Lua into tokens, without spaces.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if ["==", "~=", "<=", ">=", ".."].iter().any(|two| rest.starts_with(two)) => 2,
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            tokens.push(at..at + len);
        }
        at += len;
    }
    tokens
}

/// Every token of every lock script of 4.7.0 is left out, and replaced by `nil` and by a text. The scripts that Lua accepts keep their
/// role, and can be called.
#[test]
fn a_script_keeps_its_role_whichever_token_changes() {
    if jars::are_missing() {
        return;
    }
    let mut sim = Sim::new(SimOptions::default());
    let client = sim.connect(0);
    let scripts = jars::scripts("4.7.0");
    let (mut mutants, mut by_text) = (0, 0);
    for (at, reading) in sites::read(&scripts).into_iter().enumerate() {
        let Some(known) = reading.role() else { continue };
        let site = scripts[at].site();
        let mut same_site: Vec<JarScript> =
            scripts.iter().filter(|script| script.site() == site).cloned().collect();
        let index = scripts[at].index;
        let text = scripts[at].text.clone();
        for token in tokens(&text) {
            for new in ["", "nil", "'unlink'"] {
                let mutant = [&text[..token.start], new, &text[token.end..]].concat();
                if !sim.call(client, &["SCRIPT", "LOAD", &mutant]).starts_with(b"$") {
                    continue;
                }
                mutants += 1;
                by_text += usize::from(
                    role(mutant.as_bytes()).map(|role| role.of_class(&scripts[at].class)) == Some(known),
                );
                same_site[index].text.clone_from(&mutant);
                let set = ScriptSet::new(&same_site);
                assert_eq!(set.script(known).map(|script| &script.text), Some(&mutant), "{site}");
            }
        }
    }
    println!("{mutants} mutants have their role by class and method, {by_text} by text");
    assert!(mutants > 5_000, "{mutants}");
}

/// Every text of a lock script in these releases, by SHA-1: its role, and the indexes of owner, clock and lock; 0: it has no such
/// argument. The list only changes on purpose.
#[test]
fn every_text_keeps_its_role() {
    if jars::are_missing() {
        return;
    }
    let mut lines = BTreeSet::new();
    for script in releases().flat_map(jars::scripts) {
        let text = script.text.as_bytes();
        let Some(found) = recognise(text) else { continue };
        let sha = String::from_utf8_lossy(&sha1_hex(text)).into_owned();
        let role = found.role.of_class(&script.class).name();
        let [owner, time, lock] = [found.owner, found.time, found.lock].map(|index| index.unwrap_or(0));
        lines.insert(format!("{sha} {role} {owner} {time} {lock}"));
    }
    let known: BTreeSet<String> = include_str!("roles").lines().map(str::to_owned).collect();
    let differs: Vec<&String> = lines.symmetric_difference(&known).collect();
    assert!(differs.is_empty(), "{differs:#?}");
}

/// Class and method, role, and the indexes of owner, time and lock among the arguments.
type Row = (&'static str, Role, usize, usize, usize);

const OLDEST: &[Row] = &[
    ("RedissonLock.tryLockInner", rlock::roles::ACQUIRE, 1, 0, 1),
    ("RedissonLock.unlock", rlock::roles::UNLOCK, 1, 0, 1),
    ("RedissonLock.getHoldCount", rlock::roles::HOLD_COUNT, 0, 0, 1),
];

const CURRENT: &[Row] = &[
    ("RedissonLock.tryLockInnerAsync", rlock::roles::ACQUIRE, 2, 0, 1),
    ("RedissonLock.unlockInnerAsync", rlock::roles::UNLOCK, 3, 0, 1),
    ("RedissonLock.forceUnlockAsync", rlock::roles::FORCE_UNLOCK, 0, 0, 1),
    ("RedissonSpinLock.unlockInnerAsync", rlock::roles::SPIN_UNLOCK, 2, 0, 1),
    ("RedissonFencedLock.tryLockInnerAsync", rlock::roles::FENCED_ACQUIRE_TOKEN, 2, 0, 1),
    ("RedissonNonReentrantLock.tryLockInnerAsync", rlock::roles::NONREENTRANT_ACQUIRE, 2, 0, 1),
    ("RedissonFairLock.tryLockInnerAsync", fair::roles::TRY_ACQUIRE, 2, 3, 1),
    ("RedissonFairLock.tryLockInnerAsync#1", fair::roles::ACQUIRE, 2, 4, 1),
    ("RedissonFairLock.unlockInnerAsync", fair::roles::UNLOCK, 3, 4, 1),
    ("RedissonFairLock.forceUnlockAsync", fair::roles::FORCE_UNLOCK, 0, 2, 1),
    ("RedissonFairLock.acquireFailedAsync", fair::roles::ABANDON, 1, 0, 0),
    ("RedissonReadLock.tryLockInnerAsync", rw::roles::READ_ACQUIRE, 2, 0, 1),
    ("RedissonReadLock.unlockInnerAsync", rw::roles::READ_UNLOCK, 2, 0, 1),
    ("RedissonReadLock.isLocked", rw::roles::READ_IS_LOCKED, 0, 0, 1),
    ("RedissonWriteLock.tryLockInnerAsync", rw::roles::WRITE_ACQUIRE, 2, 0, 1),
    ("RedissonWriteLock.unlockInnerAsync", rw::roles::WRITE_UNLOCK, 3, 0, 1),
    ("renewal.LockTask.buildChunk", rlock::roles::RENEW, 2, 0, 1),
    ("renewal.ReadLockTask.buildChunk", rw::roles::READ_RENEW, 3, 0, 1),
    ("renewal.FastMultilockTask.buildChunk", faster::roles::RENEW, 3, 2, 1),
    ("RedissonSemaphore.trySetPermitsAsync", semaphore::roles::TRY_SET, 0, 0, 1),
    ("RedissonSemaphore.addPermitsAsync", semaphore::roles::ADD, 0, 0, 1),
    ("RedissonPermitExpirableSemaphore.addPermitsAsync", permit::roles::ADD, 0, 0, 1),
    ("RedissonPermitExpirableSemaphore.tryAcquireAsync", permit::roles::ACQUIRE, 0, 3, 1),
    ("RedissonPermitExpirableSemaphore.tryReleaseAsync", permit::roles::RELEASE, 0, 3, 1),
    ("RedissonPermitExpirableSemaphore.tryReleaseAsync#1", permit::roles::RELEASE_ALL, 0, 2, 1),
    ("RedissonPermitExpirableSemaphore.updateLeaseTimeAsync", permit::roles::UPDATE_LEASE, 0, 3, 1),
    ("RedissonCountDownLatch.countDownAsync", latch::roles::COUNT_DOWN, 0, 0, 1),
    ("RedissonCountDownLatch.deleteAsync", latch::roles::DELETE, 0, 0, 1),
    ("RedissonRateLimiter.tryAcquireAsync", rate::roles::ACQUIRE, 0, 2, 1),
    ("RedissonRateLimiter.setOrUpdateAsync", rate::roles::UPDATE, 0, 5, 1),
    ("RedissonFasterMultiLock.tryLockInnerAsync", faster::roles::ACQUIRE, 3, 2, 1),
    ("RedissonFasterMultiLock.tryLockOnceInnerAsync", faster::roles::TRY_ACQUIRE, 3, 1, 1),
    ("RedissonFasterMultiLock.unlockInnerAsync", faster::roles::UNLOCK, 1, 6, 1),
];

#[test]
fn arguments_are_found() {
    if jars::are_missing() {
        return;
    }
    for (release, rows) in [("2.2.3", OLDEST), ("4.7.0", CURRENT)] {
        let scripts = jars::scripts(release);
        for &(name, role, owner, time, lock) in rows {
            let script = scripts.iter().find(|script| script.name() == name).expect(name);
            let place = |index: usize| (index > 0).then_some(index);
            let expected = Recognised { role, owner: place(owner), time: place(time), lock: place(lock) };
            assert_eq!(
                recognise(script.text.as_bytes()),
                Some(expected),
                "{release} {name}\n{}",
                script.text
            );
        }
    }
}

#[test]
fn spaces_do_not_matter_and_other_calls_do() {
    let text = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";
    let spaced = text.replace(' ', "\n  ");
    assert_eq!(recognise(spaced.as_bytes()).map(|found| found.role), Some(rlock::roles::RENEW));
    let changed = text.replace("'pexpire'", "'expire'");
    assert_eq!(recognise(changed.as_bytes()), None);
    assert_eq!(recognise(b""), None);
    assert_eq!(recognise(b"redis.call("), None);
    assert_eq!(recognise(b"redis.call('hexists"), None);
}
