//! Scripts out of released jars, and what they are recognised as.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::jars;

use std::collections::BTreeSet;

use redlatch::locks::binding::Binding;
use redlatch::locks::role::{Recognised, Role, recognise, role};

/// Every release that the tests know.
fn releases() -> impl Iterator<Item = &'static str> {
    include_str!("releases").split_whitespace()
}

/// The classes whose scripts are lock scripts.
fn is_lock_class(class: &str) -> bool {
    let name = class.split('$').next().unwrap_or(class);
    name.starts_with("renewal.")
        || name.starts_with("Redisson")
            && ["Lock", "Semaphore", "Latch", "RateLimiter"].iter().any(|end| name.ends_with(end))
}

/// Scripts of those classes that are no operation of a lock.
const OTHER: &[&str] = &["clearExpireAsync", "expireAsync", "expireAtAsync"];

#[test]
fn every_lock_script_of_every_release_is_recognised() {
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
            Role::RlockAcquire,
            Role::RlockUnlock,
            Role::ReadAcquire,
            Role::WriteUnlock,
            Role::LatchCountDown,
        ];
        for role in everywhere {
            assert!(found.contains(&role), "{release} has no {}", role.name());
        }
    }
}

/// Class and method, role, owner, time, lock: what is where in the arguments.
type Row = (&'static str, Role, usize, usize, usize);

const OLDEST: &[Row] = &[
    ("RedissonLock.tryLockInner", Role::RlockAcquire, 1, 0, 1),
    ("RedissonLock.unlock", Role::RlockUnlock, 1, 0, 1),
    ("RedissonLock.getHoldCount", Role::RlockHoldCount, 0, 0, 1),
];

const CURRENT: &[Row] = &[
    ("RedissonLock.tryLockInnerAsync", Role::RlockAcquire, 2, 0, 1),
    ("RedissonLock.unlockInnerAsync", Role::RlockUnlock, 3, 0, 1),
    ("RedissonLock.forceUnlockAsync", Role::RlockForceUnlock, 0, 0, 1),
    ("RedissonSpinLock.unlockInnerAsync", Role::SpinUnlock, 2, 0, 1),
    ("RedissonFencedLock.tryLockInnerAsync", Role::FencedAcquireToken, 2, 0, 1),
    ("RedissonNonReentrantLock.tryLockInnerAsync", Role::NonReentrantAcquire, 2, 0, 1),
    ("RedissonFairLock.tryLockInnerAsync", Role::FairTryAcquire, 2, 3, 1),
    ("RedissonFairLock.tryLockInnerAsync#1", Role::FairAcquire, 2, 4, 1),
    ("RedissonFairLock.unlockInnerAsync", Role::FairUnlock, 3, 4, 1),
    ("RedissonFairLock.forceUnlockAsync", Role::FairForceUnlock, 0, 2, 1),
    ("RedissonFairLock.acquireFailedAsync", Role::FairAbandon, 1, 0, 0),
    ("RedissonReadLock.tryLockInnerAsync", Role::ReadAcquire, 2, 0, 1),
    ("RedissonReadLock.unlockInnerAsync", Role::ReadUnlock, 2, 0, 1),
    ("RedissonReadLock.isLocked", Role::ReadIsLocked, 0, 0, 1),
    ("RedissonWriteLock.tryLockInnerAsync", Role::WriteAcquire, 2, 0, 1),
    ("RedissonWriteLock.unlockInnerAsync", Role::WriteUnlock, 3, 0, 1),
    ("renewal.LockTask.buildChunk", Role::RlockRenew, 2, 0, 1),
    ("renewal.ReadLockTask.buildChunk", Role::ReadRenew, 3, 0, 1),
    ("renewal.FastMultilockTask.buildChunk", Role::FasterRenew, 3, 2, 1),
    ("RedissonSemaphore.trySetPermitsAsync", Role::SemaphoreTrySet, 0, 0, 1),
    ("RedissonSemaphore.addPermitsAsync", Role::SemaphoreAdd, 0, 0, 1),
    ("RedissonPermitExpirableSemaphore.addPermitsAsync", Role::PermitAdd, 0, 0, 1),
    ("RedissonPermitExpirableSemaphore.tryAcquireAsync", Role::PermitAcquire, 0, 3, 1),
    ("RedissonPermitExpirableSemaphore.tryReleaseAsync", Role::PermitRelease, 0, 3, 1),
    ("RedissonPermitExpirableSemaphore.tryReleaseAsync#1", Role::PermitReleaseAll, 0, 2, 1),
    ("RedissonPermitExpirableSemaphore.updateLeaseTimeAsync", Role::PermitUpdateLease, 0, 3, 1),
    ("RedissonCountDownLatch.countDownAsync", Role::LatchCountDown, 0, 0, 1),
    ("RedissonCountDownLatch.deleteAsync", Role::LatchDelete, 0, 0, 1),
    ("RedissonRateLimiter.tryAcquireAsync", Role::RateAcquire, 0, 2, 1),
    ("RedissonRateLimiter.setOrUpdateAsync", Role::RateUpdate, 0, 5, 1),
    ("RedissonFasterMultiLock.tryLockInnerAsync", Role::FasterAcquire, 3, 2, 1),
    ("RedissonFasterMultiLock.tryLockOnceInnerAsync", Role::FasterTryAcquire, 3, 1, 1),
    ("RedissonFasterMultiLock.unlockInnerAsync", Role::FasterUnlock, 1, 6, 1),
];

#[test]
fn arguments_are_found() {
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
    assert_eq!(recognise(spaced.as_bytes()).map(|found| found.role), Some(Role::RlockRenew));
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
    let mut unknown = BTreeSet::new();
    // 2.2 kept locks as JSON, and fair locks knew their waiters by a key each until 2.6.
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
