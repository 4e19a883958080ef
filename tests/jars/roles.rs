//! The roles of the scripts in released jars are recognised.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::jars;

use std::collections::BTreeSet;

use redlatch_core::script::sha1_hex;
use redlatch_locks::binding::Binding;
use redlatch_locks::role::{Recognised, Role, recognise, role};
use redlatch_locks::{fair, faster, latch, permit, rate, rlock, rw, semaphore};

/// Returns all releases that the tests use.
fn releases() -> impl Iterator<Item = &'static str> {
    include_str!("releases").split_whitespace()
}

/// Returns whether the scripts of a class are lock scripts.
fn is_lock_class(class: &str) -> bool {
    let name = class.split('$').next().unwrap_or(class);
    name.starts_with("renewal.")
        || name.starts_with("Redisson")
            && ["Lock", "Semaphore", "Latch", "RateLimiter"].iter().any(|end| name.ends_with(end))
}

/// Scripts of those classes that are not operations of a lock.
const OTHER: &[&str] = &["clearExpireAsync", "expireAsync", "expireAtAsync"];

#[test]
fn every_lock_script_of_every_release_is_recognised() {
    if jars::are_missing() {
        return;
    }
    for release in releases() {
        let scripts = jars::scripts(release);
        assert!(scripts.len() > 100, "{release}: {} scripts", scripts.len());
        let mut found = BTreeSet::new();
        for script in &scripts {
            let recognised = recognise(script.text.as_bytes());
            let other = OTHER.contains(&script.method.as_str()) || script.class == "RedissonQueueSemaphore";
            assert_eq!(
                recognised.is_some(),
                is_lock_class(&script.class) && !other
                    || script.class == "RedissonBoundedBlockingQueue"
                        && script.method == "trySetCapacityAsync",
                "{release} {}: {recognised:?}\n{}",
                script.name(),
                script.text
            );
            found.extend(recognised.map(|found| found.role));
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
    }
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

/// Objects whose scripts the fuzzer can call.
const BOUND: &[&str] = &[
    "rlock",
    "spin",
    "fenced",
    "nonreentrant",
    "fair",
    "rw.read",
    "rw.write",
    "semaphore",
    "permit",
    "latch",
];

#[test]
fn the_arguments_of_modelled_objects_are_understood() {
    if jars::are_missing() {
        return;
    }
    let mut unknown = BTreeSet::new();
    // 2.2 stores locks as JSON, and until 2.6 fair locks have a key per waiter.
    for release in releases().filter(|release| *release != "2.2.3") {
        for script in jars::scripts(release) {
            let Some(role) = role(script.text.as_bytes()) else { continue };
            let role = role.of_class(&script.class);
            if BOUND.contains(&role.object()) && !script.text.contains("'redisson_lock_thread:{'") {
                let binding = Binding::of(role, script.text.as_bytes());
                unknown.extend(
                    binding
                        .err()
                        .map(|error| format!("{} {}: {error}\n{}", script.name(), role.name(), script.text)),
                );
            }
        }
    }
    assert!(unknown.is_empty(), "{}", Vec::from_iter(unknown).join("\n"));
}
